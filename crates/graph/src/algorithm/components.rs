//! Connected components: which vertices hang together, whatever the direction of edges.
//!
//! Example: of the edges 1-2 and 3-4 `components` answers `[[1, 2], [3, 4]]`.
//!
//! Invariant: each vertex is in one component.

use super::compact::Compact;
use crate::{Direction, Reach, Result, VertexId, View};

/// The components by the edges of the types of `reach`, whose direction does not matter: the largest first, of equal ones the
/// one with the first id; each in the order of ids.
///
/// # Errors
/// `Limit`; `Damaged`; the database's.
pub fn components(view: &mut View<'_>, reach: &Reach) -> Result<Vec<Vec<VertexId>>> {
    let reach = Reach { direction: Direction::Both, kinds: reach.kinds.clone() };
    let graph = Compact::read(view, &reach)?;
    let mut is_known = vec![false; graph.len()];
    let mut components = Vec::new();
    let mut open = Vec::new();
    for first in 0..graph.len() {
        if std::mem::replace(&mut is_known[first], true) {
            continue;
        }
        open.push(first);
        let mut members = Vec::new();
        while let Some(vertex) = open.pop() {
            members.push(vertex);
            for next in graph.neighbours(vertex) {
                if !std::mem::replace(&mut is_known[*next as usize], true) {
                    open.push(*next as usize);
                }
            }
        }
        members.sort_unstable();
        components.push(members);
    }
    components.sort_by_key(|members| std::cmp::Reverse(members.len()));
    let name = |members: Vec<usize>| members.into_iter().map(|member| graph.ids[member].clone()).collect();
    Ok(components.into_iter().map(name).collect())
}
