//! Betweenness: over how many of the shortest paths of others a vertex lies, by Brandes' algorithm.
//!
//! Example: in the middle of a star of n others it is the number of their pairs, and 0 for those.
//!
//! Invariant: a vertex is no part of the paths that begin or end at it.

use std::collections::VecDeque;

use super::compact::Compact;
use crate::{Direction, Reach, Result, VertexId, View};

/// The betweenness of each vertex, in the order of ids: the sum, over all pairs of others, of the share of their shortest paths
/// that lead over it. Both ways, a pair counts once. It takes a search from every vertex; loops and several edges between two
/// vertices do not matter.
///
/// # Errors
/// `Limit`; `Damaged`; the database's.
pub fn betweenness(view: &mut View<'_>, reach: &Reach) -> Result<Vec<(VertexId, f64)>> {
    let graph = Compact::read(view, reach)?.simple();
    let mut scores = vec![0.0; graph.len()];
    for source in 0..graph.len() {
        view.look_at_time()?;
        let search = Search::from(&graph, source);
        let mut shares = vec![0.0; graph.len()];
        for vertex in search.order.iter().rev().copied() {
            for next in graph.neighbours(vertex) {
                let next = *next as usize;
                if search.depths[next] == search.depths[vertex] + 1 {
                    shares[vertex] += search.paths[vertex] / search.paths[next] * (1.0 + shares[next]);
                }
            }
            if vertex != source {
                scores[vertex] += shares[vertex];
            }
        }
    }
    let once = if reach.direction == Direction::Both { 0.5 } else { 1.0 };
    Ok(graph.ids.into_iter().zip(scores.into_iter().map(|score| score * once)).collect())
}

/// The shortest paths from one vertex, counted.
struct Search {
    /// Vertices as they were reached, nearest first.
    order: Vec<usize>,
    depths: Vec<usize>,
    /// How many shortest paths lead to each.
    paths: Vec<f64>,
}

impl Search {
    fn from(graph: &Compact, source: usize) -> Search {
        // NB: what is not reached must not look as if it lay behind anything.
        let mut search = Search {
            order: Vec::new(),
            depths: vec![usize::MAX - 1; graph.len()],
            paths: vec![0.0; graph.len()],
        };
        (search.depths[source], search.paths[source]) = (0, 1.0);
        let mut queue = VecDeque::from([source]);
        while let Some(vertex) = queue.pop_front() {
            search.order.push(vertex);
            let depth = search.depths[vertex] + 1;
            for next in graph.neighbours(vertex) {
                let next = *next as usize;
                if search.depths[next] > depth {
                    search.depths[next] = depth;
                    queue.push_back(next);
                }
                if search.depths[next] == depth {
                    search.paths[next] += search.paths[vertex];
                }
            }
        }
        search
    }
}
