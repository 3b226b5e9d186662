//! A view: a graph as it is at one moment. Every walk and algorithm reads one.
//!
//! Problem: a walk is many reads, between which others commit; half of an old graph and half of a new one is neither. Idea:
//! whoever walks must come with a view, and a view is had of a snapshot, which blocks nobody, or of a transaction.
//!
//! ```
//! # let directory = std::env::temp_dir().join(format!("perilune-doc-view-{}", std::process::id()));
//! # std::fs::create_dir_all(&directory).unwrap();
//! use perilune::{node, Database};
//! use perilune_graph::{Graph, GraphOptions, Reach};
//!
//! let database = Database::open(directory.join("t.db"))?;
//! let mut session = database.session()?;
//! let graph = Graph::create(&mut session, &node!("^g")?, &GraphOptions::default())?;
//! graph.add_vertex(&mut session, 1, &[])?;
//! let mut view = graph.snapshot(&database)?;
//! assert_eq!(view.edges(&1.into(), &Reach::both())?, []);
//! # let _ = std::fs::remove_dir_all(&directory);
//! # Ok::<(), perilune_graph::Error>(())
//! ```
//!
//! Invariant: all that is read by one view is one state.

use perilune::{Cursor, Database, Session, TransactionOptions};

use crate::budget::{Budget, Limits};
use crate::{Direction, Edge, Error, Graph, Reach, Result, VertexId};

/// A graph at one moment.
#[derive(Debug)]
pub struct View<'s> {
    graph: Graph,
    session: Held<'s>,
    budget: Budget,
}

#[derive(Debug)]
enum Held<'s> {
    Snapshot(Box<Session>),
    Lent(&'s mut Session),
}

impl Graph {
    /// The graph as it is now, however long it is looked at. It blocks nobody.
    ///
    /// # Errors
    /// As [`Database::snapshot`].
    pub fn snapshot(&self, database: &Database) -> Result<View<'static>> {
        Ok(View::new(self, Held::Snapshot(Box::new(database.snapshot()?))))
    }

    /// The graph as the session's open transaction sees it, with what that has written.
    ///
    /// # Errors
    /// `Invalid` if none is open.
    pub fn view<'s>(&self, session: &'s mut Session) -> Result<View<'s>> {
        if session.depth() == 0 {
            return Err(Error::invalid("a view needs a transaction: call it in one, or use a snapshot"));
        }
        Ok(View::new(self, Held::Lent(session)))
    }

    /// The graph as a session sees it that sees one state by itself: a snapshot's ([`Database::snapshot`]). It is the caller who
    /// knows that it is one.
    #[must_use]
    pub fn view_of_snapshot<'s>(&self, session: &'s mut Session) -> View<'s> {
        View::new(self, Held::Lent(session))
    }

    /// Runs `body` over the graph as it is at one moment, in a transaction that only reads. For walks of milliseconds: it may
    /// run again after a conflict, and what takes seconds is for [`Graph::snapshot`].
    ///
    /// # Errors
    /// The body's; else as [`Session::transaction`].
    pub fn read<R>(
        &self,
        session: &mut Session,
        mut body: impl FnMut(&mut View<'_>) -> Result<R>,
    ) -> Result<R> {
        let options = TransactionOptions { read_only: true, ..TransactionOptions::default() };
        Ok(session.transaction_with(&options, |session| Ok(body(&mut self.view(session)?)?))?)
    }
}

impl<'s> View<'s> {
    fn new(graph: &Graph, session: Held<'s>) -> View<'s> {
        View { graph: graph.clone(), session, budget: Budget::new(Limits::default()) }
    }

    /// Sets the limits of each walk and algorithm that follows.
    pub fn limit(&mut self, limits: Limits) {
        self.budget = Budget::new(limits);
    }

    /// The graph, and the session by which it is seen, to read what a view has no words for.
    pub fn parts(&mut self) -> (&Graph, &mut Session) {
        let session: &mut Session = match &mut self.session {
            Held::Snapshot(session) => session,
            Held::Lent(session) => session,
        };
        (&self.graph, session)
    }

    /// The edges of `vertex` that `reach` means, as [`Graph::edges`].
    ///
    /// # Errors
    /// `Limit`; the database's.
    pub fn edges(&mut self, vertex: &VertexId, reach: &Reach) -> Result<Vec<Edge>> {
        let mut edges = Vec::new();
        let mut budget = self.budget;
        budget.take_vertex()?;
        let (graph, session) = self.parts();
        graph.read_edges(session, vertex, reach, &mut |edge| {
            budget.take_edge()?;
            edges.push(edge);
            Ok(())
        })?;
        self.budget = budget;
        Ok(edges)
    }

    /// Goes on with what a walk over several views has used, and answers what this one has.
    pub(crate) fn replace_budget(&mut self, budget: Budget) -> Budget {
        std::mem::replace(&mut self.budget, budget)
    }

    /// Shows `visit` the other end of each edge of `vertex` that `reach` means, as often as there are edges.
    pub(crate) fn each_neighbour(
        &mut self,
        vertex: &VertexId,
        reach: &Reach,
        visit: &mut dyn FnMut(VertexId),
    ) -> Result<()> {
        let mut budget = self.budget;
        budget.take_vertex()?;
        let (graph, session) = self.parts();
        graph.read_neighbours(session, vertex, reach, &mut |other| {
            budget.take_edge()?;
            visit(other);
            Ok(())
        })?;
        self.budget = budget;
        Ok(())
    }

    /// Makes sure that there is time left.
    pub(crate) fn look_at_time(&self) -> Result<()> {
        self.budget.look_at_time()
    }

    /// Makes sure that there are these vertices, and begins to count anew for the limits.
    pub(crate) fn begin(&mut self, vertices: &[&VertexId]) -> Result<()> {
        self.budget.renew();
        let (graph, session) = self.parts();
        for vertex in vertices {
            graph.known_vertex(session, vertex)?;
        }
        Ok(())
    }

    /// Shows `visit` every vertex, in the order of ids.
    ///
    /// # Errors
    /// `Limit`; the database's.
    pub fn each_vertex(&mut self, visit: &mut dyn FnMut(VertexId)) -> Result<()> {
        let mut cursor = Cursor::children(&self.graph.vertex).without_values();
        loop {
            let (_, session) = self.parts();
            if !cursor.next(session)? {
                return Ok(());
            }
            visit(VertexId::from_subscript(&cursor.subscript()?));
            self.budget.take_vertex()?;
        }
    }

    /// Shows `visit` every edge of the types of `reach`, whose direction does not matter, by source, type and target.
    ///
    /// # Errors
    /// `Limit`; the database's.
    pub fn each_edge(&mut self, reach: &Reach, visit: &mut dyn FnMut(Edge)) -> Result<()> {
        let out = Reach { direction: Direction::Out, kinds: reach.kinds.clone() };
        let mut sources = Cursor::children(&self.graph.out).without_values();
        let mut budget = self.budget;
        loop {
            let (graph, session) = self.parts();
            if !sources.next(session)? {
                break;
            }
            let source = VertexId::from_subscript(&sources.subscript()?);
            graph.read_edges(session, &source, &out, &mut |edge| {
                budget.take_edge()?;
                visit(edge);
                Ok(())
            })?;
        }
        self.budget = budget;
        Ok(())
    }
}
