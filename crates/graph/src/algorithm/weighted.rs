//! Cheapest paths: Dijkstra's algorithm, A*, and the search from both ends.
//!
//! Example: `cheapest_path_toward(&mut view, &a, &b, &reach, &mut Cost::Weight, &mut |vertex, view| ...)` goes first where the
//! estimate of what is left says.
//!
//! Invariants
//! - The heap holds only what was reached. An entry that a cheaper one has overtaken is passed over when its turn comes.
//! - Costs are from 0 on (`cost.rs`), so what has its turn can become no cheaper; of A* that holds for estimates that never
//!   say too much, since a vertex that becomes cheaper has its turn again.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, HashMap, HashSet};

use crate::{Cost, Edge, Error, Path, Reach, Result, VertexId, View};

/// The cheapest path from `from` to `to`; `None` if there is no path.
///
/// # Errors
/// `NoVertex`; `Cost`; `Limit`; the database's.
pub fn cheapest_path(
    view: &mut View<'_>,
    from: &VertexId,
    to: &VertexId,
    reach: &Reach,
    cost: &mut Cost<'_>,
) -> Result<Option<Path>> {
    cheapest_path_toward(view, from, to, reach, cost, &mut |_, _| Ok(0.0))
}

/// The cheapest path from `from` to `to`, found sooner by an estimate of what is left from a vertex to `to`. If that ever says
/// more than the true cost, the path may not be the cheapest.
///
/// # Errors
/// As [`cheapest_path`]; `Invalid` for an estimate that is no finite number; the estimate's own.
pub fn cheapest_path_toward(
    view: &mut View<'_>,
    from: &VertexId,
    to: &VertexId,
    reach: &Reach,
    cost: &mut Cost<'_>,
    estimate: &mut Estimate<'_>,
) -> Result<Option<Path>> {
    view.begin(&[from, to])?;
    search(view, Ends { from, to }, reach, cost, estimate, &Banned::default())
}

/// What is left from a vertex to the end of the path.
pub(super) type Estimate<'f> = dyn FnMut(&VertexId, &mut View<'_>) -> Result<f64> + 'f;

/// Where a path is to begin and to end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ends<'v> {
    pub(super) from: &'v VertexId,
    pub(super) to: &'v VertexId,
}

/// What a search goes around.
#[derive(Debug, Default)]
pub(super) struct Banned {
    pub(super) vertices: HashSet<VertexId>,
    pub(super) edges: HashSet<i64>,
}

/// Dijkstra's algorithm, with an estimate A*.
pub(super) fn search(
    view: &mut View<'_>,
    ends: Ends<'_>,
    reach: &Reach,
    cost: &mut Cost<'_>,
    estimate: &mut Estimate<'_>,
    banned: &Banned,
) -> Result<Option<Path>> {
    let Ends { from, to } = ends;
    let mut side = Side::new(from, reach.clone());
    while let Some(vertex) = side.take() {
        if vertex == *to {
            return Ok(Some(side.edges_back(to).into_iter().rev().fold(Path::at(from.clone()), extended)));
        }
        for edge in view.edges(&vertex, &side.reach)? {
            if banned.edges.contains(&edge.id) || banned.vertices.contains(edge.other(&vertex)) {
                continue;
            }
            let price = cost.of(&edge)?;
            if let Some(next) = side.offer(&vertex, edge, price) {
                let left = estimate(&next, view)?;
                if !left.is_finite() {
                    return Err(Error::invalid(format!("the estimate of vertex {next} is no finite number")));
                }
                side.queue(next, left);
            }
        }
    }
    Ok(None)
}

/// The cheapest path from `from` to `to`, searched from both ends: on large graphs it reads a fraction.
///
/// # Errors
/// As [`cheapest_path`].
pub fn cheapest_path_both_ways(
    view: &mut View<'_>,
    from: &VertexId,
    to: &VertexId,
    reach: &Reach,
    cost: &mut Cost<'_>,
) -> Result<Option<Path>> {
    view.begin(&[from, to])?;
    let mut sides = [Side::new(from, reach.clone()), Side::new(to, reach.reversed())];
    let mut best: Option<(f64, VertexId)> = (from == to).then(|| (0.0, from.clone()));
    while let (Some(ahead), Some(behind)) = (sides[0].least(), sides[1].least()) {
        // Whatever is found from now on costs at least both together.
        if best.as_ref().is_some_and(|(cost, _)| ahead + behind >= *cost) {
            break;
        }
        let [first, second] = &mut sides;
        let (side, other) = if ahead <= behind { (first, second) } else { (second, first) };
        let Some(vertex) = side.take() else { break };
        for edge in view.edges(&vertex, &side.reach)? {
            let price = cost.of(&edge)?;
            let Some(next) = side.offer(&vertex, edge, price) else { continue };
            if let (Some(here), Some(there)) = (side.reached.get(&next), other.reached.get(&next)) {
                let whole = here.cost + there.cost;
                if best.as_ref().is_none_or(|(cost, _)| whole < *cost) {
                    best = Some((whole, next.clone()));
                }
            }
            side.queue(next, 0.0);
        }
    }
    Ok(best.map(|(_, middle)| {
        let before = sides[0].edges_back(&middle).into_iter().rev();
        before.chain(sides[1].edges_back(&middle)).fold(Path::at(from.clone()), extended)
    }))
}

fn extended(path: Path, (edge, price): (Edge, f64)) -> Path {
    path.with(edge, price)
}

/// What a search has reached from one end.
struct Side {
    reach: Reach,
    reached: HashMap<VertexId, Reached>,
    heap: BinaryHeap<Waiting>,
}

struct Reached {
    cost: f64,
    /// The last edge with its price; none at the end itself.
    by: Option<(Edge, f64)>,
}

/// A vertex whose turn will come.
struct Waiting {
    /// Its cost and what is estimated to be left.
    rank: f64,
    cost: f64,
    vertex: VertexId,
}

impl Side {
    fn new(end: &VertexId, reach: Reach) -> Side {
        let mut side = Side { reach, reached: HashMap::new(), heap: BinaryHeap::new() };
        side.reached.insert(end.clone(), Reached { cost: 0.0, by: None });
        side.queue(end.clone(), 0.0);
        side
    }

    /// The vertex whose turn it is.
    fn take(&mut self) -> Option<VertexId> {
        self.least()?;
        self.heap.pop().map(|waiting| waiting.vertex)
    }

    /// The least rank that waits.
    fn least(&mut self) -> Option<f64> {
        while let Some(first) = self.heap.peek() {
            let is_overtaken = self.reached.get(&first.vertex).is_some_and(|held| held.cost < first.cost);
            if !is_overtaken {
                return Some(first.rank);
            }
            self.heap.pop();
        }
        None
    }

    /// The other end of the edge, if the way over it is cheaper than what was known.
    fn offer(&mut self, vertex: &VertexId, edge: Edge, price: f64) -> Option<VertexId> {
        let cost = self.reached.get(vertex)?.cost + price;
        let next = edge.other(vertex);
        if self.reached.get(next).is_some_and(|held| held.cost <= cost) {
            return None;
        }
        let next = next.clone();
        self.reached.insert(next.clone(), Reached { cost, by: Some((edge, price)) });
        Some(next)
    }

    /// Has the turn of a reached vertex come, with so much estimated to be left.
    fn queue(&mut self, vertex: VertexId, left: f64) {
        if let Some(held) = self.reached.get(&vertex) {
            self.heap.push(Waiting { rank: held.cost + left, cost: held.cost, vertex });
        }
    }

    /// The edges between the end and a vertex, from that vertex on.
    fn edges_back(&self, vertex: &VertexId) -> Vec<(Edge, f64)> {
        let mut edges = Vec::new();
        let mut at = vertex.clone();
        while let Some(Reached { by: Some((edge, price)), .. }) = self.reached.get(&at) {
            at = edge.other(&at).clone();
            edges.push((edge.clone(), *price));
        }
        edges
    }
}

impl Ord for Waiting {
    fn cmp(&self, other: &Waiting) -> Ordering {
        // The heap gives its greatest: here the lowest rank. Of equal ones the least id, so that answers do not vary.
        other.rank.total_cmp(&self.rank).then_with(|| other.vertex.cmp(&self.vertex))
    }
}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Waiting) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Waiting) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Waiting {}
