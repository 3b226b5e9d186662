//! A graph as arrays of numbers, for algorithms that look at all of it again and again.
//!
//! Vertices are numbered in the order of their ids; the neighbours of one lie side by side, those of the next behind them.
//! Example: the neighbours of vertex 3 are `ends[starts[3]..starts[4]]`.
//!
//! Invariant: `starts` has one number more than there are vertices, and none is less than the one before.

use std::collections::HashMap;

use crate::{Direction, Error, Reach, Result, VertexId, View};

/// Who is whose neighbour.
#[derive(Debug)]
pub(super) struct Compact {
    pub(super) ids: Vec<VertexId>,
    starts: Vec<usize>,
    ends: Vec<u32>,
}

impl Compact {
    /// Reads all edges that `reach` means: along them, against them, or as neighbours both ways.
    pub(super) fn read(view: &mut View<'_>, reach: &Reach) -> Result<Compact> {
        view.begin(&[])?;
        let mut ids = Vec::new();
        view.each_vertex(&mut |id| ids.push(id))?;
        if u32::try_from(ids.len()).is_err() {
            return Err(Error::invalid("this algorithm is for graphs of less than 4 billion vertices"));
        }
        let numbers: HashMap<&VertexId, u32> = ids.iter().zip(0..).collect();
        let mut pairs = Vec::new();
        let mut stray = None;
        view.each_edge(reach, &mut |edge| match (numbers.get(&edge.source), numbers.get(&edge.target)) {
            (Some(source), Some(target)) => {
                if reach.direction.goes_out() {
                    pairs.push((*source, *target));
                }
                if reach.direction == Direction::In
                    || (reach.direction == Direction::Both && source != target)
                {
                    pairs.push((*target, *source));
                }
            }
            _ => stray = Some(edge.id),
        })?;
        if let Some(edge) = stray {
            return Err(Error::Damaged(format!("edge {edge} ends at no vertex")));
        }
        pairs.sort_unstable();
        drop(numbers);
        Ok(Compact::of(ids, &pairs))
    }

    /// Each neighbour once, and no vertex its own.
    pub(super) fn simple(self) -> Compact {
        let mut pairs = Vec::with_capacity(self.ends.len());
        for vertex in 0..self.ids.len() {
            let mut last = None;
            for end in self.neighbours(vertex) {
                if last != Some(end) && *end as usize != vertex {
                    pairs.push((vertex as u32, *end));
                }
                last = Some(end);
            }
        }
        Compact::of(self.ids, &pairs)
    }

    fn of(ids: Vec<VertexId>, sorted: &[(u32, u32)]) -> Compact {
        let mut starts = vec![0; ids.len() + 1];
        for (source, _) in sorted {
            starts[*source as usize + 1] += 1;
        }
        for vertex in 0..ids.len() {
            starts[vertex + 1] += starts[vertex];
        }
        Compact { ids, starts, ends: sorted.iter().map(|(_, target)| *target).collect() }
    }

    /// How many vertices there are.
    pub(super) fn len(&self) -> usize {
        self.ids.len()
    }

    /// The neighbours of a vertex, ascending.
    pub(super) fn neighbours(&self, vertex: usize) -> &[u32] {
        &self.ends[self.starts[vertex]..self.starts[vertex + 1]]
    }
}
