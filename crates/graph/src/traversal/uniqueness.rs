//! What a walk may meet again.
//!
//! Example: over a triangle, `VertexGlobal` finds three paths, `EdgePath` all ways around it, and `None` never ends.
//!
//! Invariant: "global" remembers all, "recent" the last n, "path" and "none" nothing.

use std::collections::{HashSet, VecDeque};
use std::hash::Hash;

use crate::{Path, VertexId};

/// What must not be met again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Uniqueness {
    /// A vertex of the walk.
    VertexGlobal,
    /// A vertex of the path.
    VertexPath,
    /// One of the last so many vertices of the walk.
    VertexRecent(usize),
    /// An edge of the walk.
    EdgeGlobal,
    /// An edge of the path.
    EdgePath,
    /// One of the last so many edges of the walk.
    EdgeRecent(usize),
    /// Everything may be: give the walk a greatest depth, or it goes around circles for ever.
    None,
}

/// What a walk remembers for its uniqueness.
#[derive(Debug)]
pub(super) enum Seen {
    Vertices(Memory<VertexId>),
    Edges(Memory<i64>),
    VertexPath,
    EdgePath,
    None,
}

impl Seen {
    pub(super) fn new(uniqueness: Uniqueness) -> Seen {
        match uniqueness {
            Uniqueness::VertexGlobal => Seen::Vertices(Memory::new(usize::MAX)),
            Uniqueness::VertexRecent(most) => Seen::Vertices(Memory::new(most)),
            Uniqueness::EdgeGlobal => Seen::Edges(Memory::new(usize::MAX)),
            Uniqueness::EdgeRecent(most) => Seen::Edges(Memory::new(most)),
            Uniqueness::VertexPath => Seen::VertexPath,
            Uniqueness::EdgePath => Seen::EdgePath,
            Uniqueness::None => Seen::None,
        }
    }

    /// Whether the path may be gone, its end having been reached now.
    pub(super) fn admit(&mut self, path: &Path) -> bool {
        match self {
            Seen::Vertices(memory) => memory.admit(path.end()),
            Seen::Edges(memory) => path.last_edge().is_none_or(|edge| memory.admit(&edge.id)),
            Seen::VertexPath => !path.repeats_vertex(),
            Seen::EdgePath => !path.repeats_edge(),
            Seen::None => true,
        }
    }
}

/// The last so many things.
#[derive(Debug)]
pub(super) struct Memory<T> {
    known: HashSet<T>,
    /// In the order of their coming; kept only where some are to be forgotten.
    order: VecDeque<T>,
    most: usize,
}

impl<T: Clone + Eq + Hash> Memory<T> {
    fn new(most: usize) -> Memory<T> {
        Memory { known: HashSet::new(), order: VecDeque::new(), most }
    }

    /// Whether it is not known; then it is from now on.
    fn admit(&mut self, thing: &T) -> bool {
        if self.known.contains(thing) {
            return false;
        }
        self.known.insert(thing.clone());
        if self.most == usize::MAX {
            return true;
        }
        self.order.push_back(thing.clone());
        if self.order.len() > self.most {
            if let Some(oldest) = self.order.pop_front() {
                self.known.remove(&oldest);
            }
        }
        true
    }
}
