//! What lies within some steps: the vertices of a breadth-first walk, without its paths.
//!
//! Problem: a walk makes a path for every edge that it meets, which tells how it came there; friends of friends are only to be known
//! or counted. Idea: a level at a time, with a set of what is known and nothing else.
//!
//! Example: `within(&mut view, ["ada"], &Reach::both().of("KNOWS"), 2)` are ada, her friends and theirs.
//!
//! Invariant: vertices come nearest first; of each the least distance is told.

use std::collections::HashSet;

use crate::{Reach, Result, VertexId, View};

/// The vertices within `depth` edges of those given, themselves among them, and how far each is.
///
/// # Errors
/// `NoVertex`; `Limit`; the database's.
pub fn within<V: Into<VertexId>>(
    view: &mut View<'_>,
    starts: impl IntoIterator<Item = V>,
    reach: &Reach,
    depth: usize,
) -> Result<Vec<(VertexId, usize)>> {
    let starts: Vec<VertexId> = starts.into_iter().map(Into::into).collect();
    view.begin(&starts.iter().collect::<Vec<_>>())?;
    let mut known: HashSet<VertexId> = HashSet::new();
    let mut found: Vec<(VertexId, usize)> = Vec::new();
    for start in starts {
        if known.insert(start.clone()) {
            found.push((start, 0));
        }
    }
    let mut next = 0;
    while let Some((vertex, distance)) = found.get(next).cloned() {
        if distance == depth {
            break;
        }
        next += 1;
        view.each_neighbour(&vertex, reach, &mut |other| {
            if known.insert(other.clone()) {
                found.push((other, distance + 1));
            }
        })?;
    }
    Ok(found)
}
