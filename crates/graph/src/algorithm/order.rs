//! Order: one in which all edges lead forward, or a circle for which there is none.
//!
//! Example: of the edges 3-1 and 1-2 it is 3, 1, 2.
//!
//! Invariant: there is an order if and only if there is no cycle. A loop is a cycle.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::compact::Compact;
use crate::{Direction, Error, Reach, Result, VertexId, View};

/// All vertices, so that each edge that `reach` means leads from an earlier one to a later one, and otherwise in the order of
/// ids; `None` if there is a cycle. Not for both directions.
///
/// # Errors
/// `Invalid` for a reach of both directions; `Limit`; `Damaged`; the database's.
pub fn topological_order(view: &mut View<'_>, reach: &Reach) -> Result<Option<Vec<VertexId>>> {
    let graph = directed(view, reach)?;
    let mut coming = vec![0_u64; graph.len()];
    for vertex in 0..graph.len() {
        for next in graph.neighbours(vertex) {
            coming[*next as usize] += 1;
        }
    }
    let mut free: BinaryHeap<Reverse<usize>> =
        (0..graph.len()).filter(|vertex| coming[*vertex] == 0).map(Reverse).collect();
    let mut order = Vec::with_capacity(graph.len());
    while let Some(Reverse(vertex)) = free.pop() {
        order.push(graph.ids[vertex].clone());
        for next in graph.neighbours(vertex) {
            coming[*next as usize] -= 1;
            if coming[*next as usize] == 0 {
                free.push(Reverse(*next as usize));
            }
        }
    }
    Ok((order.len() == graph.len()).then_some(order))
}

/// The vertices of a cycle, each once, in the order of its edges; `None` if there is none.
///
/// # Errors
/// As [`topological_order`].
pub fn find_cycle(view: &mut View<'_>, reach: &Reach) -> Result<Option<Vec<VertexId>>> {
    let graph = directed(view, reach)?;
    let mut is_known = vec![false; graph.len()];
    let mut place_on_way = vec![None; graph.len()];
    for first in 0..graph.len() {
        // The way that is searched, each vertex with how many of its neighbours have been looked at.
        let mut way: Vec<(usize, usize)> = Vec::new();
        if !is_known[first] {
            way.push((first, 0));
        }
        while let Some((vertex, looked_at)) = way.last_mut() {
            let vertex = *vertex;
            if *looked_at == 0 {
                is_known[vertex] = true;
                place_on_way[vertex] = Some(way.len() - 1);
            }
            let place = way.len() - 1;
            let next = graph.neighbours(vertex).get(way[place].1).map(|next| *next as usize);
            way[place].1 += 1;
            match next {
                None => {
                    place_on_way[vertex] = None;
                    way.pop();
                }
                Some(next) => match place_on_way[next] {
                    Some(start) => {
                        let cycle = way[start..].iter().map(|(member, _)| graph.ids[*member].clone());
                        return Ok(Some(cycle.collect()));
                    }
                    None if !is_known[next] => way.push((next, 0)),
                    None => {}
                },
            }
        }
    }
    Ok(None)
}

fn directed(view: &mut View<'_>, reach: &Reach) -> Result<Compact> {
    if reach.direction == Direction::Both {
        return Err(Error::invalid("edges that lead both ways have no order: give one direction"));
    }
    Compact::read(view, reach)
}
