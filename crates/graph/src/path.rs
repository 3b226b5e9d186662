//! Paths: a vertex, and the edges that a walk has taken from there.
//!
//! Paths of one walk share their beginnings, so that a walk of a million paths holds a million steps, not a million lists.
//!
//! Example: `A-[KNOWS]->B<-[KNOWS]-C` is how a path is written.
//!
//! Invariant: letting go of a path takes no more of the stack the longer it is.

use std::fmt;
use std::sync::Arc;

use crate::{Edge, VertexId};

/// A way from one vertex to another. Clones share it.
#[derive(Clone, Debug)]
pub struct Path {
    last: Arc<Step>,
}

#[derive(Debug)]
struct Step {
    before: Option<Arc<Step>>,
    /// None at the start.
    edge: Option<Edge>,
    vertex: VertexId,
    length: usize,
    cost: f64,
}

impl Path {
    /// The path of no edges.
    #[must_use]
    pub fn at(vertex: VertexId) -> Path {
        Path { last: Arc::new(Step { before: None, edge: None, vertex, length: 0, cost: 0.0 }) }
    }

    /// This path and an edge more, which costs so much.
    #[must_use]
    pub fn with(&self, edge: Edge, cost: f64) -> Path {
        let step = Step {
            vertex: edge.other(self.end()).clone(),
            edge: Some(edge),
            length: self.last.length + 1,
            cost: self.last.cost + cost,
            before: Some(self.last.clone()),
        };
        Path { last: Arc::new(step) }
    }

    /// How many edges it has.
    #[must_use]
    pub fn length(&self) -> usize {
        self.last.length
    }

    /// What its edges cost together.
    #[must_use]
    pub fn cost(&self) -> f64 {
        self.last.cost
    }

    /// Where it begins.
    #[must_use]
    pub fn start(&self) -> &VertexId {
        self.steps().last().map_or(&self.last.vertex, |step| &step.vertex)
    }

    /// Where it ends.
    #[must_use]
    pub fn end(&self) -> &VertexId {
        &self.last.vertex
    }

    /// The last edge; `None` if there is none.
    #[must_use]
    pub fn last_edge(&self) -> Option<&Edge> {
        self.last.edge.as_ref()
    }

    /// Its vertices, from start to end.
    #[must_use]
    pub fn vertices(&self) -> Vec<&VertexId> {
        let mut vertices: Vec<_> = self.steps().map(|step| &step.vertex).collect();
        vertices.reverse();
        vertices
    }

    /// Its edges, from start to end.
    #[must_use]
    pub fn edges(&self) -> Vec<&Edge> {
        let mut edges: Vec<_> = self.steps().filter_map(|step| step.edge.as_ref()).collect();
        edges.reverse();
        edges
    }

    /// All its beginnings, from the path of no edges on to itself. They share what they have.
    #[must_use]
    pub fn beginnings(&self) -> Vec<Path> {
        let steps = std::iter::successors(Some(&self.last), |step| step.before.as_ref());
        let mut beginnings: Vec<Path> = steps.map(|step| Path { last: step.clone() }).collect();
        beginnings.reverse();
        beginnings
    }

    /// Whether the vertex at its end lies on it before, too.
    pub(crate) fn repeats_vertex(&self) -> bool {
        self.steps().skip(1).any(|step| step.vertex == self.last.vertex)
    }

    /// Whether its last edge lies on it before, too.
    pub(crate) fn repeats_edge(&self) -> bool {
        let id = |step: &Step| step.edge.as_ref().map(|edge| edge.id);
        self.last.edge.is_some() && self.steps().skip(1).any(|step| id(step) == id(&self.last))
    }

    /// From the end to the start.
    fn steps(&self) -> impl Iterator<Item = &Step> {
        std::iter::successors(Some(&*self.last), |step| step.before.as_deref())
    }
}

impl PartialEq for Path {
    fn eq(&self, other: &Path) -> bool {
        self.start() == other.start() && self.edges() == other.edges()
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut at = self.start();
        at.fmt(f)?;
        for edge in self.edges() {
            let next = edge.other(at);
            if edge.source == *at {
                write!(f, "-[{}]->{next}", edge.kind)?;
            } else {
                write!(f, "<-[{}]-{next}", edge.kind)?;
            }
            at = next;
        }
        Ok(())
    }
}

impl Drop for Step {
    fn drop(&mut self) {
        // NB: left to itself this would call itself for each step of the path.
        let mut before = self.before.take();
        while let Some(mut step) = before.and_then(Arc::into_inner) {
            before = step.before.take();
        }
    }
}
