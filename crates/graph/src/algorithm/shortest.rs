//! Paths of the fewest edges.
//!
//! Problem: around a vertex of a social network lie millions within a few steps. Idea: search from both ends, a level at a
//! time, always where the frontier is smaller; two small circles meet long before one large one arrives.
//!
//! Example: `shortest_path(&mut view, &a, &b, &Reach::both())`.
//!
//! Invariant: a level is finished before the search ends, so no shorter path is missed.

use std::collections::HashMap;

use crate::{Edge, Path, Reach, Result, VertexId, View};

/// A path of the fewest edges from `from` to `to`; `None` if there is no path.
///
/// # Errors
/// `NoVertex`; `Limit`; the database's.
pub fn shortest_path(
    view: &mut View<'_>,
    from: &VertexId,
    to: &VertexId,
    reach: &Reach,
) -> Result<Option<Path>> {
    view.begin(&[from, to])?;
    let mut sides = [Side::new(from, reach.clone()), Side::new(to, reach.reversed())];
    if from == to {
        return Ok(Some(Path::at(from.clone())));
    }
    while sides.iter().all(|side| !side.frontier.is_empty()) {
        let smaller = usize::from(sides[1].frontier.len() < sides[0].frontier.len());
        let [first, second] = &mut sides;
        let (side, other) = if smaller == 0 { (first, second) } else { (second, first) };
        if let Some(middle) = side.advance(view, other)? {
            return Ok(Some(sides_as_path(from, &middle, &sides)));
        }
    }
    Ok(None)
}

/// What one end has reached.
struct Side {
    reach: Reach,
    /// The edge by which each vertex was reached; none for the end itself.
    reached: HashMap<VertexId, Option<Edge>>,
    frontier: Vec<VertexId>,
}

impl Side {
    fn new(end: &VertexId, reach: Reach) -> Side {
        Side { reach, reached: HashMap::from([(end.clone(), None)]), frontier: vec![end.clone()] }
    }

    /// Goes a level further; answers a vertex that the other end has reached, too.
    fn advance(&mut self, view: &mut View<'_>, other: &Side) -> Result<Option<VertexId>> {
        for vertex in std::mem::take(&mut self.frontier) {
            for edge in view.edges(&vertex, &self.reach)? {
                let next = edge.other(&vertex).clone();
                if self.reached.contains_key(&next) {
                    continue;
                }
                self.reached.insert(next.clone(), Some(edge));
                // All that the other end has reached but its frontier was passed by it before: the first meeting is at the
                // frontier, and so is as near as any.
                if other.reached.contains_key(&next) {
                    return Ok(Some(next));
                }
                self.frontier.push(next);
            }
        }
        Ok(None)
    }

    /// The edges between the end and a vertex, from that vertex on.
    fn edges_back(&self, vertex: &VertexId) -> Vec<Edge> {
        let mut edges = Vec::new();
        let mut at = vertex.clone();
        while let Some(Some(edge)) = self.reached.get(&at) {
            at = edge.other(&at).clone();
            edges.push(edge.clone());
        }
        edges
    }
}

fn sides_as_path(from: &VertexId, middle: &VertexId, sides: &[Side; 2]) -> Path {
    let before = sides[0].edges_back(middle).into_iter().rev();
    let edges = before.chain(sides[1].edges_back(middle));
    edges.fold(Path::at(from.clone()), |path, edge| path.with(edge, 1.0))
}

/// All paths of the fewest edges from `from` to `to`, but at most `most`: there may be exponentially many.
///
/// # Errors
/// As [`shortest_path`].
pub fn all_shortest_paths(
    view: &mut View<'_>,
    from: &VertexId,
    to: &VertexId,
    reach: &Reach,
    most: usize,
) -> Result<Vec<Path>> {
    view.begin(&[from, to])?;
    // How far each vertex is, and the edges by which it is reached from those that are one nearer.
    let mut reached: HashMap<VertexId, (usize, Vec<Edge>)> = HashMap::from([(from.clone(), (0, Vec::new()))]);
    let mut level = vec![from.clone()];
    let mut depth = 0;
    while !level.is_empty() && !reached.contains_key(to) {
        depth += 1;
        for vertex in std::mem::take(&mut level) {
            for edge in view.edges(&vertex, reach)? {
                let next = edge.other(&vertex).clone();
                let (found, edges) = reached.entry(next.clone()).or_insert_with(|| {
                    level.push(next);
                    (depth, Vec::new())
                });
                if *found == depth {
                    edges.push(edge);
                }
            }
        }
    }
    Ok(unwind(from, to, &reached, most))
}

/// The paths that end at `to`, put together from their ends.
fn unwind(
    from: &VertexId,
    to: &VertexId,
    reached: &HashMap<VertexId, (usize, Vec<Edge>)>,
    most: usize,
) -> Vec<Path> {
    let mut paths = Vec::new();
    let mut open: Vec<(VertexId, Vec<Edge>)> = vec![(to.clone(), Vec::new())];
    while let Some((vertex, edges)) = open.pop() {
        if paths.len() >= most {
            break;
        }
        if vertex == *from {
            let whole = edges.into_iter().rev();
            paths.push(whole.fold(Path::at(from.clone()), |path, edge| path.with(edge, 1.0)));
            continue;
        }
        let Some((_, before)) = reached.get(&vertex) else { continue };
        for edge in before.iter().rev() {
            let mut longer = edges.clone();
            longer.push(edge.clone());
            open.push((edge.other(&vertex).clone(), longer));
        }
    }
    paths
}
