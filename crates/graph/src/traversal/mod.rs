//! Traversals: which paths a walk finds, in which order.
//!
//! A traversal says where edges lead (expander), which of the paths count and which are followed (evaluators), what may be met
//! again (uniqueness), and in which order. A walk then answers a path at a time, and reads no further than it is asked.
//!
//! ```
//! # let directory = std::env::temp_dir().join(format!("perilune-doc-walk-{}", std::process::id()));
//! # std::fs::create_dir_all(&directory).unwrap();
//! # let database = perilune::Database::open(directory.join("t.db"))?;
//! # let mut session = database.session()?;
//! use perilune::node;
//! use perilune_graph::{Graph, GraphOptions, Reach, Traversal};
//!
//! let mut graph = Graph::create(&mut session, &node!("^g")?, &GraphOptions::default())?;
//! for name in ["ada", "ben", "cem"] {
//!     graph.add_vertex(&mut session, name, &["Person"])?;
//! }
//! graph.add_edge(&mut session, &"ada".into(), "KNOWS", &"ben".into())?;
//! graph.add_edge(&mut session, &"cem".into(), "KNOWS", &"ben".into())?;
//!
//! let mut friends_of_friends = Traversal::breadth_first(Reach::both().of("KNOWS")).depths(2, 2);
//! let mut view = graph.snapshot(&database)?;
//! for path in friends_of_friends.walk(&mut view, ["ada"])? {
//!     assert_eq!(path?.to_string(), "ada-[KNOWS]->ben<-[KNOWS]-cem");
//! }
//! # drop(view);
//! # let _ = std::fs::remove_dir_all(&directory);
//! # Ok::<(), perilune_graph::Error>(())
//! ```
//!
//! Invariants
//! - A walk reads one view. What it holds is its frontier, and what uniqueness must remember.
//! - The start is a path of no edges: depth 0.

mod uniqueness;

mod walk;

mod journey;

use std::fmt;

pub use self::journey::{Journey, Step};
pub use self::uniqueness::Uniqueness;
pub use self::walk::Walk;
use crate::{Cost, Edge, Path, Reach, Result, VertexId, View};

/// What is to be done with a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evaluation {
    /// It counts, and is followed.
    IncludeAndContinue,
    /// It counts; what lies behind it is not looked at.
    IncludeAndPrune,
    /// It does not count, but is followed.
    ExcludeAndContinue,
    /// Neither.
    ExcludeAndPrune,
}

impl Evaluation {
    /// The evaluation that includes and continues as told.
    #[must_use]
    pub fn of(includes: bool, continues: bool) -> Evaluation {
        match (includes, continues) {
            (true, true) => Evaluation::IncludeAndContinue,
            (true, false) => Evaluation::IncludeAndPrune,
            (false, true) => Evaluation::ExcludeAndContinue,
            (false, false) => Evaluation::ExcludeAndPrune,
        }
    }

    pub(crate) fn includes(self) -> bool {
        matches!(self, Evaluation::IncludeAndContinue | Evaluation::IncludeAndPrune)
    }

    pub(crate) fn continues(self) -> bool {
        matches!(self, Evaluation::IncludeAndContinue | Evaluation::ExcludeAndContinue)
    }
}

type Expand<'f> = dyn FnMut(&Path, &mut View<'_>) -> Result<Vec<Edge>> + 'f;
type Evaluate<'f> = dyn FnMut(&Path, &mut View<'_>) -> Result<Evaluation> + 'f;
type Rank<'f> = dyn FnMut(&Path) -> f64 + 'f;

/// Where the edges of a path's end lead.
enum Expander<'f> {
    Reach(Reach),
    Function(Box<Expand<'f>>),
}

enum Order<'f> {
    BreadthFirst,
    DepthFirst,
    /// Lowest first.
    Rank(Box<Rank<'f>>),
}

/// A description of walks: made once, walked as often as wanted.
pub struct Traversal<'f> {
    order: Order<'f>,
    expander: Expander<'f>,
    evaluators: Vec<Box<Evaluate<'f>>>,
    uniqueness: Uniqueness,
    cost: Cost<'f>,
    from: usize,
    to: usize,
}

impl<'f> Traversal<'f> {
    fn new(order: Order<'f>, reach: Reach) -> Traversal<'f> {
        Traversal {
            order,
            expander: Expander::Reach(reach),
            evaluators: Vec::new(),
            uniqueness: Uniqueness::VertexGlobal,
            cost: Cost::One,
            from: 0,
            to: usize::MAX,
        }
    }

    /// Shorter paths before longer ones.
    #[must_use]
    pub fn breadth_first(reach: Reach) -> Traversal<'f> {
        Traversal::new(Order::BreadthFirst, reach)
    }

    /// Each path before its neighbours, what lies behind it first.
    #[must_use]
    pub fn depth_first(reach: Reach) -> Traversal<'f> {
        Traversal::new(Order::DepthFirst, reach)
    }

    /// Paths of lower rank before those of higher; of equal rank, those found first. Rank by [`Path::cost`] walks cheapest
    /// paths first.
    #[must_use]
    pub fn lowest_first(reach: Reach, rank: impl FnMut(&Path) -> f64 + 'f) -> Traversal<'f> {
        Traversal::new(Order::Rank(Box::new(rank)), reach)
    }

    /// Follows the edges that the function answers for a path, which must have an end at the path's end, instead of those of
    /// a reach.
    #[must_use]
    pub fn expand(
        mut self,
        expander: impl FnMut(&Path, &mut View<'_>) -> Result<Vec<Edge>> + 'f,
    ) -> Traversal<'f> {
        self.expander = Expander::Function(Box::new(expander));
        self
    }

    /// Asks the function about each path, besides those given before. A path counts if all include it, and is followed if all
    /// continue.
    #[must_use]
    pub fn evaluate(
        mut self,
        evaluator: impl FnMut(&Path, &mut View<'_>) -> Result<Evaluation> + 'f,
    ) -> Traversal<'f> {
        self.evaluators.push(Box::new(evaluator));
        self
    }

    /// What may be met again; [`Uniqueness::VertexGlobal`] if not told.
    #[must_use]
    pub fn unique(mut self, uniqueness: Uniqueness) -> Traversal<'f> {
        self.uniqueness = uniqueness;
        self
    }

    /// Only paths of `from` to `to` edges count. Those of `to` edges are not followed.
    #[must_use]
    pub fn depths(mut self, from: usize, to: usize) -> Traversal<'f> {
        (self.from, self.to) = (from, to);
        self
    }

    /// What edges add to [`Path::cost`]; one each if not told.
    #[must_use]
    pub fn cost(mut self, cost: Cost<'f>) -> Traversal<'f> {
        self.cost = cost;
        self
    }

    /// Walks from these vertices, each a path of no edges.
    ///
    /// # Errors
    /// `NoVertex`; the database's.
    pub fn walk<'t, 'v, 's, V: Into<VertexId>>(
        &'t mut self,
        view: &'v mut View<'s>,
        starts: impl IntoIterator<Item = V>,
    ) -> Result<Walk<'t, 'f, 'v, 's>> {
        Walk::new(self, view, starts.into_iter().map(Into::into).collect())
    }

    /// What is to be done with a path, all considered.
    fn judge(&mut self, path: &Path, view: &mut View<'_>) -> Result<Evaluation> {
        let length = path.length();
        let (mut includes, mut continues) = (length >= self.from && length <= self.to, length < self.to);
        for evaluator in &mut self.evaluators {
            let evaluation = evaluator(path, view)?;
            includes &= evaluation.includes();
            continues &= evaluation.continues();
        }
        Ok(Evaluation::of(includes, continues))
    }

    /// The paths that have one edge more.
    fn follow(&mut self, path: &Path, view: &mut View<'_>) -> Result<Vec<Path>> {
        let edges = match &mut self.expander {
            Expander::Reach(reach) => view.edges(path.end(), reach)?,
            Expander::Function(function) => function(path, view)?,
        };
        edges
            .into_iter()
            .map(|edge| {
                let cost = self.cost.of(&edge)?;
                Ok(path.with(edge, cost))
            })
            .collect()
    }
}

impl fmt::Debug for Traversal<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Traversal")
            .field("uniqueness", &self.uniqueness)
            .field("depths", &(self.from..=self.to))
            .finish_non_exhaustive()
    }
}
