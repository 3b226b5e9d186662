//! PageRank: how often a walker comes by who follows edges at random, and now and then jumps anywhere.
//!
//! Example: `page_rank(&mut view, &Reach::out(), 0.85, 20)`.
//!
//! Invariant: ranks add up to 1. What a vertex without edges would pass on is shared by all.

use super::compact::Compact;
use crate::{Error, Reach, Result, VertexId, View};

/// The rank of each vertex after `rounds`, in the order of ids. The walker follows an edge with the chance `damping`, 0 to 1;
/// of several edges to one vertex each counts.
///
/// # Errors
/// `Invalid` for the damping; `Limit`; `Damaged`; the database's.
pub fn page_rank(
    view: &mut View<'_>,
    reach: &Reach,
    damping: f64,
    rounds: usize,
) -> Result<Vec<(VertexId, f64)>> {
    if !(0.0..=1.0).contains(&damping) {
        return Err(Error::invalid(format!("the damping is a number from 0 to 1, not {damping}")));
    }
    let graph = Compact::read(view, reach)?;
    let count = graph.len() as f64;
    let mut ranks = vec![1.0 / count; graph.len()];
    for _ in 0..rounds {
        view.look_at_time()?;
        let stuck: f64 = (0..graph.len())
            .filter(|vertex| graph.neighbours(*vertex).is_empty())
            .map(|vertex| ranks[vertex])
            .sum();
        let mut next = vec![(1.0 - damping + damping * stuck) / count; graph.len()];
        for (vertex, rank) in ranks.iter().enumerate() {
            let neighbours = graph.neighbours(vertex);
            let share = damping * rank / neighbours.len() as f64;
            for neighbour in neighbours {
                next[*neighbour as usize] += share;
            }
        }
        ranks = next;
    }
    Ok(graph.ids.into_iter().zip(ranks).collect())
}
