//! What a client does not reach, though it may reach nodes: a tree but for some of its children, and channels.
//!
//! A server keeps things of its own in the database that it serves - who its users are, say - and these lie in the tree
//! as all else does. A client behind a fence is refused each node there that it names, and its walks pass over them, as
//! if there were none.
//!
//! Invariants
//! - What is closed is whole subtrees, and the root: so a request about a subtree reaches something closed only
//!   if its own node is.
//! - Conditions of a commit are about what the client has seen: they pass over the same.

use std::ops::{Bound, Range};

use perilune_store::{Error as StoreError, Result as StoreResult, Session as StoreSession};

use crate::{Error, IntoSubscript, Node, NodeRef, Result};

/// A side of what is closed.
#[derive(Clone, Copy, Debug)]
pub(super) enum Side {
    Before,
    Behind,
}

/// What is closed to a client.
#[derive(Debug)]
pub struct Fence {
    /// Ranges of keys, in order.
    closed: [Range<Vec<u8>>; 2],
    /// What the names of channels begin with.
    channels: String,
    /// What a client is told that names something closed.
    why: String,
}

impl Fence {
    /// Closes `root` and all below it but its children from `open.start` to before `open.end`, and the channels
    /// whose names begin with `channels`. `why` says so to who asks for them.
    ///
    /// # Errors
    /// Those of making nodes.
    pub fn new(
        root: &Node,
        open: Range<impl IntoSubscript>,
        channels: impl Into<String>,
        why: impl Into<String>,
    ) -> Result<Fence> {
        let start = root.encoded().to_vec();
        let (first, last) = (root.child(open.start)?, root.child(open.end)?);
        // No code begins with FF: this is behind all of the tree.
        let end = [&start[..], &[0xFF]].concat();
        let closed = [start..first.encoded().to_vec(), last.encoded().to_vec()..end];
        Ok(Fence { closed, channels: channels.into(), why: why.into() })
    }

    /// Whether a node is closed.
    #[must_use]
    pub fn closes<'n>(&self, node: impl Into<NodeRef<'n>>) -> bool {
        let node = node.into();
        !node.is_local() && self.range_of(node.encoded()).is_some()
    }

    /// What a client is told that asks for what is closed.
    #[must_use]
    pub fn why(&self) -> &str {
        &self.why
    }

    /// Where what is closed around a key ends, on one side of it; None if the key is open.
    pub(super) fn edge(&self, key: &[u8], side: Side) -> Option<&[u8]> {
        self.range_of(key).map(|range| match side {
            Side::Behind => &range.end[..],
            Side::Before => &range.start[..],
        })
    }

    fn range_of(&self, key: &[u8]) -> Option<&Range<Vec<u8>>> {
        self.closed.iter().find(|range| range.start.as_slice() <= key && key < range.end.as_slice())
    }

    fn refusal(&self) -> Error {
        StoreError::Refused(self.why.clone()).into()
    }
}

/// Refuses a key that is closed.
pub(super) fn check_key(fence: Option<&Fence>, key: &[u8]) -> Result<()> {
    match fence {
        Some(fence) if fence.range_of(key).is_some() => Err(fence.refusal()),
        _ => Ok(()),
    }
}

/// Refuses a channel that is closed.
pub(super) fn check_channel(fence: Option<&Fence>, name: &[u8]) -> Result<()> {
    match fence {
        Some(fence) if name.starts_with(fence.channels.as_bytes()) => Err(fence.refusal()),
        _ => Ok(()),
    }
}

/// A place where a walk forwards begins.
pub(super) fn bound(from: &[u8], inclusive: bool) -> Bound<&[u8]> {
    if inclusive {
        Bound::Included(from)
    } else {
        Bound::Excluded(from)
    }
}

/// The first key from a place on, before `end` (empty: no end), that is not closed.
pub(super) fn next(
    database: &mut impl StoreSession,
    fence: Option<&Fence>,
    from: Bound<&[u8]>,
    end: &[u8],
    key: &mut Vec<u8>,
    mut value: Option<&mut Vec<u8>>,
) -> StoreResult<bool> {
    let (mut from, mut inclusive) = match from {
        Bound::Included(from) => (from, true),
        Bound::Excluded(from) => (from, false),
        Bound::Unbounded => (&[][..], true),
    };
    loop {
        let out = value.as_deref_mut();
        let is_there = if end.is_empty() {
            database.next(from, inclusive, key, out)?
        } else {
            database.next_within(from, inclusive, end, key, out)?
        };
        match fence.filter(|_| is_there).and_then(|fence| fence.range_of(key)) {
            None => return Ok(is_there),
            Some(range) if !end.is_empty() && range.end.as_slice() >= end => return Ok(false),
            Some(range) => (from, inclusive) = (&range.end, true),
        }
    }
}

/// The last key before a place, from `begin` on, that is not closed.
pub(super) fn previous(
    database: &mut impl StoreSession,
    fence: Option<&Fence>,
    from: &[u8],
    begin: &[u8],
    key: &mut Vec<u8>,
    mut value: Option<&mut Vec<u8>>,
) -> StoreResult<bool> {
    let mut from = from;
    loop {
        let is_there = database.previous_within(from, begin, key, value.as_deref_mut())?;
        match fence.filter(|_| is_there).and_then(|fence| fence.range_of(key)) {
            None => return Ok(is_there),
            Some(range) if range.start.as_slice() <= begin => return Ok(false),
            Some(range) => from = &range.start,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node;

    #[test]
    fn all_but_the_open_children_is_closed() -> Result<()> {
        let fence = Fence::new(&node!("^kept")?, 0..10, "own ", "it is closed")?;
        for closed in [
            "^kept",
            "^kept(\"\")",
            "^kept(-1)",
            "^kept(-.5,3)",
            "^kept(10)",
            "^kept(10.5)",
            "^kept(\"x\",1)",
        ] {
            assert!(fence.closes(&Node::parse(closed)?), "{closed}");
        }
        for open in ["^kept(0)", "^kept(9,\"x\")", "^keps", "^kept1", "^kep", "kept", "kept(\"x\")"] {
            assert!(!fence.closes(&Node::parse(open)?), "{open}");
        }
        assert!(
            check_channel(Some(&fence), b"own 1").is_err() && check_channel(Some(&fence), b"own").is_ok()
        );
        Ok(())
    }
}
