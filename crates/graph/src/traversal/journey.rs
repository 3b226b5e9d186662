//! A walk that borrows nothing: for callers that come back for each path, as SQL's cursors and other languages do.
//!
//! Each call brings a view, which must show the same state as the one before: of the same snapshot or transaction. Between two
//! calls the caller may decide about the last path what a function of a [`Traversal`] would: leave out what lies behind it, or say
//! by itself where it leads.
//!
//! ```
//! # let mut session = perilune::Database::open("memory:")?.session()?;
//! use perilune::node;
//! use perilune_graph::{Graph, GraphOptions, Journey, Limits, Reach, Traversal};
//!
//! let graph = Graph::create(&mut session, &node!("^g")?, &GraphOptions::default())?;
//! graph.add_vertex(&mut session, "ada", &[])?;
//! let found = graph.read(&mut session, |view| {
//!     let traversal = Traversal::breadth_first(Reach::out());
//!     let mut journey = Journey::begin(traversal, Limits::default(), view, vec!["ada".into()])?;
//!     journey.next(view)
//! })?;
//! assert_eq!(found.map(|path| path.to_string()), Some("ada".to_owned()));
//! # Ok::<(), perilune_graph::Error>(())
//! ```
//!
//! Invariant: the limits count from the beginning on, over all views.

use super::walk::Steps;
use super::Traversal;
use crate::budget::{Budget, Limits};
use crate::{Edge, Path, Result, VertexId, View};

/// An edge by which the caller has the last path go on.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// The edge, one of whose ends is the path's.
    pub edge: Edge,
    /// What it costs.
    pub cost: f64,
    /// Where the longer path stands in a walk by rank; other orders do not look at it.
    pub rank: f64,
}

/// A walk that borrows nothing. It ends after an error.
#[derive(Debug)]
pub struct Journey {
    traversal: Traversal<'static>,
    steps: Steps,
    budget: Budget,
}

impl Journey {
    /// Begins a walk from these vertices.
    ///
    /// # Errors
    /// `NoVertex`; the database's.
    pub fn begin(
        mut traversal: Traversal<'static>,
        limits: Limits,
        view: &mut View<'_>,
        starts: Vec<VertexId>,
    ) -> Result<Journey> {
        view.begin(&starts.iter().collect::<Vec<_>>())?;
        let steps = Steps::new(&mut traversal, starts);
        Ok(Journey { traversal, steps, budget: Budget::new(limits) })
    }

    /// The next path that counts.
    ///
    /// # Errors
    /// `Limit`; `Cost`; the database's.
    pub fn next(&mut self, view: &mut View<'_>) -> Result<Option<Path>> {
        let before = view.replace_budget(self.budget);
        let path = self.steps.next(&mut self.traversal, view);
        self.budget = view.replace_budget(before);
        path
    }

    /// Does not follow the path that was answered last.
    pub fn prune(&mut self) {
        self.steps.take_last();
    }

    /// Follows the path that was answered last by these edges instead of the traversal's; false: it is not to be followed, being as
    /// long as the traversal allows, or pruned.
    pub fn follow(&mut self, steps: Vec<Step>) -> bool {
        let Some(path) = self.steps.take_last() else { return false };
        let ranked = steps.into_iter().map(|step| (step.rank, path.with(step.edge, step.cost)));
        self.steps.add_ranked(ranked.collect());
        true
    }
}
