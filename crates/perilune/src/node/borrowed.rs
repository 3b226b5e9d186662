//! Borrowed nodes: what operations take, and what searches answer without a copy.
//!
//! A [`NodeRef`] is the encoded key of a node that lies elsewhere: in a [`Node`], in the memory of a
//! binding, or in a session's buffer. Its bytes are not checked: those that are no key name nothing
//! and are refused where they are decoded.

use std::fmt;

use perilune_key::{KeyBuf, Subscript};

use super::{limit, Node};
use crate::Result;

/// A node whose encoded key lies elsewhere.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct NodeRef<'a> {
    key: &'a [u8],
    local: bool,
}

impl<'a> NodeRef<'a> {
    /// The node with the encoded key `key`, as [`Node::encoded`] gives it; unchecked.
    #[must_use]
    #[inline]
    pub fn from_encoded(key: &'a [u8], local: bool) -> NodeRef<'a> {
        NodeRef { key, local }
    }

    /// The encoded key.
    #[must_use]
    #[inline]
    pub fn encoded(self) -> &'a [u8] {
        self.key
    }

    /// Whether the node is in a local tree.
    #[must_use]
    #[inline]
    pub fn is_local(self) -> bool {
        self.local
    }

    /// Copies the node.
    ///
    /// # Errors
    /// `Malformed` if the bytes are no key; `KeyTooLong`.
    pub fn to_node(self) -> Result<Node> {
        let ends = perilune_key::prefix_ends(self.key)?.try_fold(0, |ends, end| end.map(|_| ends + 1))?;
        Ok(Node::from_key(KeyBuf::from_parts(self.key, ends - 1, limit(self.local))?, self.local))
    }

    /// Copies the node, which has `depth` subscripts.
    #[inline]
    pub(crate) fn to_node_of_depth(self, depth: usize) -> Result<Node> {
        Ok(Node::from_key(KeyBuf::from_parts(self.key, depth, limit(self.local))?, self.local))
    }

    /// The last subscript; `None` for a name alone.
    ///
    /// # Errors
    /// `Malformed` if the bytes are no key.
    pub fn last(self) -> Result<Option<Subscript<'a>>> {
        match self.parent_end()? {
            Some(end) => Ok(Some(perilune_key::decode_subscript(&self.key[end..])?.0)),
            None => Ok(None),
        }
    }

    /// The name without `^`.
    ///
    /// # Errors
    /// `Malformed` if the bytes are no key.
    pub fn name(self) -> Result<&'a [u8]> {
        Ok(perilune_key::split_name(self.key)?.0)
    }

    /// Where the key of the parent ends; `None` for a name alone.
    ///
    /// # Errors
    /// `Malformed` if the bytes are no key.
    #[inline]
    pub fn parent_end(self) -> Result<Option<usize>> {
        Ok(perilune_key::parent_end(self.key)?.0)
    }
}

impl<'a> From<&'a Node> for NodeRef<'a> {
    #[inline]
    fn from(node: &'a Node) -> NodeRef<'a> {
        NodeRef { key: node.encoded(), local: node.is_local() }
    }
}

impl fmt::Display for NodeRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.local {
            f.write_str("^")?;
        }
        perilune_key::write_key(self.key, f)
    }
}

impl fmt::Debug for NodeRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
