//! Triangles: three vertices of which each two are neighbours.
//!
//! Idea: each triangle is found at its least vertex, by what the lists of greater neighbours of two vertices share.
//! Example: four vertices that all know each other have four.
//!
//! Invariant: directions, loops and several edges between two vertices do not matter.

use super::compact::Compact;
use crate::{Direction, Reach, Result, View};

/// How many triangles the edges of the types of `reach` form.
///
/// # Errors
/// `Limit`; `Damaged`; the database's.
pub fn count_triangles(view: &mut View<'_>, reach: &Reach) -> Result<u64> {
    let reach = Reach { direction: Direction::Both, kinds: reach.kinds.clone() };
    let graph = Compact::read(view, &reach)?.simple();
    let greater = |vertex: usize| {
        let neighbours = graph.neighbours(vertex);
        &neighbours[neighbours.partition_point(|neighbour| *neighbour as usize <= vertex)..]
    };
    let mut count = 0;
    for vertex in 0..graph.len() {
        view.look_at_time()?;
        for neighbour in greater(vertex) {
            count += shared(greater(vertex), greater(*neighbour as usize));
        }
    }
    Ok(count)
}

/// How many numbers two ascending lists share.
fn shared(mut a: &[u32], mut b: &[u32]) -> u64 {
    let mut count = 0;
    while let (Some(first), Some(second)) = (a.first(), b.first()) {
        if first <= second {
            count += u64::from(first == second);
            a = &a[1..];
        } else {
            b = &b[1..];
        }
    }
    count
}
