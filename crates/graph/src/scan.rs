//! Edges one at a time, without holding them: those of a vertex, of one type, between two vertices, or all.
//!
//! Problem: a hub has a million edges, and whoever asks for ten of them should not wait for all. Idea: the entries below
//! `^g("out",source,type,target)` lie in one order, so any beginning of these is a range of the tree.
//!
//! Example: `EdgeScan::new(&graph, &Reach::incoming().of("LIVES"), Some(&city), None)?` finds who lives in a city.
//!
//! Invariants
//! - A scan holds no edge, and reads no further than it is asked.
//! - Of a loop only the entry of "out" is told where both directions are asked for.

use std::sync::Arc;

use perilune::key::decode_subscript;
use perilune::{Cursor, Node, Session};

use crate::adjacency::Entry;
use crate::edge::weight_of;
use crate::{Direction, Edge, Graph, Reach, Result, VertexId};

/// Edges one at a time. See the head of the module.
#[derive(Debug)]
pub struct EdgeScan {
    /// What is left to be read, the next one last.
    sides: Vec<Side>,
    reach: Reach,
    other: Option<VertexId>,
    kind: Arc<str>,
}

#[derive(Debug)]
struct Side {
    cursor: Cursor,
    is_out: bool,
    /// How many bytes of a key come before the vertex.
    above: usize,
}

impl EdgeScan {
    /// The edges that `reach` means of `vertex`, or of all vertices, in the order of [`Graph::edges`]; with `other` only those
    /// whose other end that is. All that is told up to the first thing that is not narrows what is read.
    ///
    /// # Errors
    /// The database's, for an id or a type that no key can hold.
    pub fn new(
        graph: &Graph,
        reach: &Reach,
        vertex: Option<&VertexId>,
        other: Option<&VertexId>,
    ) -> Result<EdgeScan> {
        let mut sides = Vec::new();
        let both = [
            (reach.direction.goes_out(), true, &graph.out),
            (reach.direction.goes_in(), false, &graph.inward),
        ];
        for (is_asked, is_out, side) in both {
            if !is_asked {
                continue;
            }
            for place in places(side, &reach.kinds, vertex, other)? {
                sides.push(Side { cursor: Cursor::subtree(&place), is_out, above: side.encoded().len() });
            }
        }
        sides.reverse();
        Ok(EdgeScan { sides, reach: reach.clone(), other: other.cloned(), kind: Arc::from("") })
    }

    /// The next edge.
    ///
    /// # Errors
    /// The database's; `Damaged`.
    pub fn next(&mut self, session: &mut Session) -> Result<Option<Edge>> {
        while let Some(side) = self.sides.last_mut() {
            if !side.cursor.next(session)? {
                self.sides.pop();
                continue;
            }
            let codes = &side.cursor.node_ref()?.encoded()[side.above..];
            let (vertex, length) = decode_subscript(codes).map_err(perilune::Error::from)?;
            let vertex = VertexId::from_subscript(&vertex);
            let entry = Entry::read(&codes[length..], &mut self.kind)?;
            let is_told = self.reach.direction == Direction::Both && !side.is_out && entry.other == vertex;
            let is_meant = self.other.as_ref().is_none_or(|other| *other == entry.other)
                && (self.reach.kinds.is_empty() || self.reach.kinds.contains(&self.kind));
            if is_told || !is_meant {
                continue;
            }
            let weight = side.cursor.value()?.and_then(|value| weight_of(&value));
            let (source, target) = if side.is_out { (vertex, entry.other) } else { (entry.other, vertex) };
            return Ok(Some(Edge { id: entry.id, source, kind: self.kind.clone(), target, weight }));
        }
        Ok(None)
    }
}

/// The nodes below which the entries lie.
fn places(
    side: &Node,
    kinds: &[Arc<str>],
    vertex: Option<&VertexId>,
    other: Option<&VertexId>,
) -> Result<Vec<Node>> {
    let Some(vertex) = vertex else { return Ok(vec![side.clone()]) };
    let place = side.child(vertex)?;
    if kinds.is_empty() {
        return Ok(vec![place]);
    }
    kinds
        .iter()
        .map(|kind| {
            let typed = place.child(&**kind)?;
            Ok(match other {
                Some(other) => typed.with(other)?,
                None => typed,
            })
        })
        .collect()
}
