//! Walks of a run: a path at a time, pruned and led by the script.
//!
//! Invariant: a walk that has come to its end, or failed, is freed; its number is not given again.

use perilune::Session;
use perilune_graph::{Error, Graph, Journey, Path, Step};

use super::told::{tell_edge, tell_vertex, Given};
use super::{failure, wrong};
use crate::nodes::{Failure, Result};
use crate::sandbox::Values;

/// Walks that a run may begin.
const WALKS_MAX: usize = 100_000;

#[derive(Debug)]
struct Walk {
    graph: Graph,
    journey: Journey,
    last: Option<Path>,
}

/// The walks, by their numbers; none: it has ended.
#[derive(Debug, Default)]
pub(super) struct Walks(Vec<Option<Box<Walk>>>);

fn over() -> Failure {
    wrong("the walk has ended: begin another one")
}

impl Walks {
    /// A walk's graph.
    pub(super) fn graph(&self, number: usize) -> Result<&Graph> {
        self.0.get(number).and_then(Option::as_deref).map(|walk| &walk.graph).ok_or_else(over)
    }

    /// Begins a walk over a graph; answers its number.
    pub(super) fn begin(&mut self, session: &mut Session, graph: &Graph, given: &Given<'_>) -> Result<i64> {
        if self.0.len() >= WALKS_MAX {
            return Err(wrong("a run begins at most 100,000 walks"));
        }
        let request = given.request(1)?;
        let starts = (2..given.count()).map(|at| given.vertex(at)).collect::<Result<Vec<_>>>()?;
        let mut view = graph.view(session).map_err(failure)?;
        let journey =
            Journey::begin(request.traversal(), request.limits, &mut view, starts).map_err(failure)?;
        self.0.push(Some(Box::new(Walk { graph: graph.clone(), journey, last: None })));
        Ok(self.0.len() as i64 - 1)
    }

    fn at(&mut self, number: usize) -> Result<&mut Walk> {
        self.0.get_mut(number).and_then(Option::as_deref_mut).ok_or_else(over)
    }

    /// Tells the end, the length and the cost of the next path; nothing at the end.
    pub(super) fn next(
        &mut self,
        session: &mut Session,
        number: usize,
        values: &mut Values<'_>,
    ) -> Result<()> {
        let walk = self.at(number)?;
        let mut view = walk.graph.view(session).map_err(failure)?;
        match walk.journey.next(&mut view) {
            Ok(Some(path)) => {
                values.list(3);
                tell_vertex(path.end(), values);
                values.integer(path.length() as i64);
                values.double(path.cost());
                walk.last = Some(path);
                Ok(())
            }
            Ok(None) => {
                self.0[number] = None;
                values.nothing();
                Ok(())
            }
            Err(error) => {
                self.0[number] = None;
                Err(failure(error))
            }
        }
    }

    /// Tells the last path: a list of its vertices, a list of its edges.
    pub(super) fn path(&mut self, number: usize, values: &mut Values<'_>) -> Result<()> {
        let Some(path) = &self.at(number)?.last else { return Ok(()) };
        let (vertices, edges) = (path.vertices(), path.edges());
        values.list(2);
        values.list(vertices.len());
        vertices.into_iter().for_each(|vertex| tell_vertex(vertex, values));
        values.list(edges.len());
        edges.into_iter().for_each(|edge| tell_edge(edge, values));
        Ok(())
    }

    pub(super) fn prune(&mut self, number: usize) -> Result<()> {
        self.at(number)?.journey.prune();
        Ok(())
    }

    /// Goes on by the edges of a text: in each line an edge's number, what it costs, and its rank.
    pub(super) fn lead(&mut self, session: &mut Session, number: usize, text: &str) -> Result<()> {
        let walk = self.at(number)?;
        let Some(end) = walk.last.as_ref().map(|path| path.end().clone()) else { return Ok(()) };
        let graph = &walk.graph;
        let mut steps = Vec::new();
        for line in text.lines() {
            let mut parts = line.split(' ').map(str::parse::<f64>);
            let (Some(Ok(id)), Some(Ok(cost)), Some(Ok(rank))) = (parts.next(), parts.next(), parts.next())
            else {
                return Err(wrong("an edge that leads on has a number, a cost and a rank"));
            };
            let id = id as i64;
            let edge = graph.edge(session, id).map_err(failure)?.ok_or_else(|| failure(Error::NoEdge(id)))?;
            if edge.source != end && edge.target != end {
                return Err(wrong("an edge that leads on has an end at the path's end"));
            }
            if !cost.is_finite() || cost < 0.0 || !rank.is_finite() {
                return Err(failure(Error::Cost(id)));
            }
            steps.push(Step { edge, cost, rank });
        }
        walk.journey.follow(steps);
        Ok(())
    }
}
