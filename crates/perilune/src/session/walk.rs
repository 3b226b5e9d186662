//! Neighbours of a node: siblings, children, the next valued node depth first, and names.
//!
//! None of the nodes that a walk starts from need exist. Each call sees the tree as it is then; for
//! many steps at one level or through a subtree a [`crate::Cursor`] is faster.

use perilune_key::range;
use perilune_store::{Granularity, Origin, Scan};

use crate::{Node, NodeRef, Result, Session};

/// Which neighbour of a node is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Neighbour {
    /// M's `$ORDER`: the sibling after, of `""` the first one that is not `""`.
    Next,
    /// M's `$ORDER` backwards: the sibling before that is not `""`, of `""` the last one.
    Previous,
    /// The sibling after, in the order `""`, numbers, strings.
    SiblingAfter,
    /// The sibling before, which may be `""`.
    SiblingBefore,
    /// The first child, which may be `""`.
    FirstChild,
    /// The last child.
    LastChild,
    /// M's `$QUERY`: the next node with a value, depth first, under the same name.
    NextValued,
    /// M's `$QUERY` backwards; it may answer the name itself.
    PreviousValued,
}

impl Neighbour {
    /// How many subscripts the neighbour of a node with `depth` subscripts has; `None`: any number.
    #[inline]
    fn depth(self, depth: usize) -> Option<usize> {
        match self {
            Neighbour::Next | Neighbour::Previous | Neighbour::SiblingAfter | Neighbour::SiblingBefore => {
                Some(depth)
            }
            Neighbour::FirstChild | Neighbour::LastChild => Some(depth + 1),
            Neighbour::NextValued | Neighbour::PreviousValued => None,
        }
    }
}

/// The least byte a name begins with; keys that begin with less are not nodes.
const FIRST_NAME_BYTE: u8 = b'%';
/// The greatest byte a name begins with.
const LAST_NAME_BYTE: u8 = b'z';

/// Steps to a neighbour of any kind, without a copy of the node where that is possible.
pub trait Steps {
    /// The neighbour of `node` where it was read to, without a copy; it lasts until the next
    /// operation.
    ///
    /// # Errors
    /// As [`Session::get`].
    fn neighbour<'n>(
        &mut self,
        which: Neighbour,
        node: impl Into<NodeRef<'n>>,
    ) -> Result<Option<NodeRef<'_>>>;

    /// The sibling after `node`, in the order `""`, numbers, strings.
    ///
    /// # Errors
    /// As [`Session::get`].
    fn sibling_after<'n>(&mut self, node: impl Into<NodeRef<'n>>) -> Result<Option<Node>>;

    /// The sibling before `node`, `""` included.
    ///
    /// # Errors
    /// As [`Session::get`].
    fn sibling_before<'n>(&mut self, node: impl Into<NodeRef<'n>>) -> Result<Option<Node>>;

    /// The first name with anything below it, of the database (`local` false) or the local trees.
    ///
    /// # Errors
    /// As [`Session::get`].
    fn first_name(&mut self, local: bool) -> Result<Option<Node>>;

    /// The last name with anything below it, of the database (`local` false) or the local trees.
    ///
    /// # Errors
    /// As [`Session::get`].
    fn last_name(&mut self, local: bool) -> Result<Option<Node>>;
}

impl Steps for Session {
    #[inline]
    fn neighbour<'n>(
        &mut self,
        which: Neighbour,
        node: impl Into<NodeRef<'n>>,
    ) -> Result<Option<NodeRef<'_>>> {
        let node = node.into();
        let (key, local) = (node.encoded(), node.is_local());
        match which {
            Neighbour::FirstChild => self.child_after(key, key.len(), local, Seek::Above),
            Neighbour::LastChild => self.child_before(key, key.len(), local, Seek::PastTree),
            Neighbour::NextValued => {
                range::subtree_end(range::name_of(key)?, &mut self.end);
                let found = self.trees.of(local).next_within(key, false, &self.end, &mut self.found, None)?;
                self.under_name(found, key, local)
            }
            Neighbour::PreviousValued => {
                let name = range::name_of(key)?;
                let found = self.trees.of(local).previous_within(key, name, &mut self.found, None)?;
                self.under_name(found, key, local)
            }
            Neighbour::Next | Neighbour::SiblingAfter => match node.parent_end()? {
                Some(parent) => self.child_after(key, parent, local, Seek::PastTree),
                None => self.name_after(key, local),
            },
            Neighbour::SiblingBefore => match node.parent_end()? {
                Some(parent) => self.child_before(key, parent, local, Seek::Above),
                None => self.name_before(key, local),
            },
            Neighbour::Previous => match node.parent_end()? {
                Some(parent) if is_empty(&key[parent..])? => {
                    let last = self.child_before(&key[..parent], parent, local, Seek::PastTree)?;
                    not_empty(last, parent)
                }
                Some(parent) => not_empty(self.child_before(key, parent, local, Seek::Above)?, parent),
                None => self.name_before(key, local),
            },
        }
    }

    fn sibling_after<'n>(&mut self, node: impl Into<NodeRef<'n>>) -> Result<Option<Node>> {
        self.neighbour_node(Neighbour::SiblingAfter, node)
    }

    fn sibling_before<'n>(&mut self, node: impl Into<NodeRef<'n>>) -> Result<Option<Node>> {
        self.neighbour_node(Neighbour::SiblingBefore, node)
    }

    fn first_name(&mut self, local: bool) -> Result<Option<Node>> {
        let found = self.trees.of(local).next(&[FIRST_NAME_BYTE], true, &mut self.found, None)?;
        self.named(found, local)?.map(NodeRef::to_node).transpose()
    }

    fn last_name(&mut self, local: bool) -> Result<Option<Node>> {
        let found = self.trees.of(local).previous(&[LAST_NAME_BYTE + 1], &mut self.found, None)?;
        self.named(found, local)?.map(NodeRef::to_node).transpose()
    }
}

impl Session {
    /// Moves `node` to its neighbour, in place; false, and the node is as it was, when there is none.
    ///
    /// ```
    /// # let directory = std::env::temp_dir().join(format!("perilune-doc-step-{}", std::process::id()));
    /// # std::fs::create_dir_all(&directory).unwrap();
    /// # let mut session = perilune::Database::open(directory.join("t.db"))?.session()?;
    /// use perilune::{node, Neighbour};
    ///
    /// session.set(&node!("^stock", "apples")?, 5)?;
    /// session.set(&node!("^stock", "pears")?, 7)?;
    /// let mut at = node!("^stock", "")?;
    /// let mut sum = 0;
    /// while session.move_to(Neighbour::Next, &mut at)? {
    ///     sum += session.get_int(&at)?.unwrap_or(0);
    /// }
    /// assert_eq!((sum, at), (12, node!("^stock", "pears")?));
    /// # let _ = std::fs::remove_dir_all(&directory);
    /// # Ok::<(), perilune::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Session::get`].
    #[inline]
    pub fn move_to(&mut self, which: Neighbour, node: &mut Node) -> Result<bool> {
        let depth = which.depth(node.depth());
        match self.neighbour(which, &*node)? {
            None => Ok(false),
            Some(found) => {
                let depth = match depth {
                    Some(depth) => depth,
                    None => perilune_key::parent_end(found.encoded())?.1,
                };
                node.assign(found, depth)?;
                Ok(true)
            }
        }
    }

    /// The next sibling of `node`: M's `$ORDER`. From the subscript `""` that is the first one. The
    /// sibling `""` itself is never answered ([`Session::first_child`] knows it). For a name alone
    /// it is the next name with anything below it.
    ///
    /// # Errors
    /// As [`Session::get`].
    pub fn next<'n>(&mut self, node: impl Into<NodeRef<'n>>) -> Result<Option<Node>> {
        self.neighbour_node(Neighbour::Next, node)
    }

    /// The previous sibling of `node`: M's `$ORDER` backwards. From the subscript `""` that is the
    /// last one. The sibling `""` itself is never answered.
    ///
    /// # Errors
    /// As [`Session::get`].
    pub fn previous<'n>(&mut self, node: impl Into<NodeRef<'n>>) -> Result<Option<Node>> {
        self.neighbour_node(Neighbour::Previous, node)
    }

    /// The first child of `node`, `""` included.
    ///
    /// # Errors
    /// As [`Session::get`].
    pub fn first_child<'n>(&mut self, node: impl Into<NodeRef<'n>>) -> Result<Option<Node>> {
        self.neighbour_node(Neighbour::FirstChild, node)
    }

    /// The last child of `node`, `""` included.
    ///
    /// # Errors
    /// As [`Session::get`].
    pub fn last_child<'n>(&mut self, node: impl Into<NodeRef<'n>>) -> Result<Option<Node>> {
        self.neighbour_node(Neighbour::LastChild, node)
    }

    /// The next node with a value, depth first, under the same name: M's `$QUERY`.
    ///
    /// # Errors
    /// As [`Session::get`].
    pub fn next_valued<'n>(&mut self, node: impl Into<NodeRef<'n>>) -> Result<Option<Node>> {
        self.neighbour_node(Neighbour::NextValued, node)
    }

    /// The previous node with a value, depth first, under the same name; it may be the name itself.
    ///
    /// # Errors
    /// As [`Session::get`].
    pub fn previous_valued<'n>(&mut self, node: impl Into<NodeRef<'n>>) -> Result<Option<Node>> {
        self.neighbour_node(Neighbour::PreviousValued, node)
    }

    #[inline]
    fn neighbour_node<'n>(&mut self, which: Neighbour, node: impl Into<NodeRef<'n>>) -> Result<Option<Node>> {
        let node = node.into();
        let depth = which.depth(perilune_key::parent_end(node.encoded())?.1);
        match (self.neighbour(which, node)?, depth) {
            (None, _) => Ok(None),
            (Some(found), Some(depth)) => found.to_node_of_depth(depth).map(Some),
            (Some(found), None) => found.to_node().map(Some),
        }
    }

    /// The child of `key[..parent]` that lies after `key`, or after all below `key`.
    #[inline]
    fn child_after(
        &mut self,
        key: &[u8],
        parent: usize,
        local: bool,
        seek: Seek,
    ) -> Result<Option<NodeRef<'_>>> {
        range::subtree_end(&key[..parent], &mut self.end);
        let (from, inclusive) = match seek {
            Seek::Above => (key, false),
            Seek::PastTree => {
                range::subtree_end(key, &mut self.from);
                (&self.from[..], true)
            }
        };
        let scan = step(from, inclusive, &self.end, false);
        let found = self.trees.find(local, &scan, Granularity::Child(parent), &mut self.found)?;
        self.child(found, &key[..parent], local)
    }

    /// The child of `key[..parent]` that lies before `key`, or the last at or before all below `key`.
    fn child_before(
        &mut self,
        key: &[u8],
        parent: usize,
        local: bool,
        seek: Seek,
    ) -> Result<Option<NodeRef<'_>>> {
        let from = match seek {
            Seek::Above => key,
            Seek::PastTree => {
                range::subtree_end(key, &mut self.from);
                &self.from[..]
            }
        };
        let scan = step(from, false, &key[..parent], true);
        let found = self.trees.find(local, &scan, Granularity::Child(parent), &mut self.found)?;
        self.child(found, &key[..parent], local)
    }

    fn name_after(&mut self, key: &[u8], local: bool) -> Result<Option<NodeRef<'_>>> {
        range::subtree_end(key, &mut self.from);
        let found = self.trees.of(local).next(&self.from, true, &mut self.found, None)?;
        self.named(found, local)
    }

    fn name_before(&mut self, key: &[u8], local: bool) -> Result<Option<NodeRef<'_>>> {
        let found = self.trees.of(local).previous(key, &mut self.found, None)?;
        self.named(found, local)
    }

    #[inline]
    fn child(&self, found: bool, parent: &[u8], local: bool) -> Result<Option<NodeRef<'_>>> {
        if !found {
            return Ok(None);
        }
        Ok(range::child_of(parent, &self.found)?.map(|key| NodeRef::from_encoded(key, local)))
    }

    fn under_name(&self, found: bool, key: &[u8], local: bool) -> Result<Option<NodeRef<'_>>> {
        let same = found && self.found.starts_with(range::name_of(key)?);
        Ok(same.then(|| NodeRef::from_encoded(&self.found, local)))
    }

    fn named(&self, found: bool, local: bool) -> Result<Option<NodeRef<'_>>> {
        match self.found.first() {
            Some(FIRST_NAME_BYTE..=LAST_NAME_BYTE) if found => {
                Ok(Some(NodeRef::from_encoded(range::name_of(&self.found)?, local)))
            }
            _ => Ok(None),
        }
    }
}

/// Where a search begins, seen from the key it is given.
#[derive(Clone, Copy)]
enum Seek {
    /// At the key itself, which is not answered.
    Above,
    /// Behind the key and all its descendants.
    PastTree,
}

fn is_empty(code: &[u8]) -> Result<bool> {
    Ok(perilune_key::decode_subscript(code)?.0.is_empty())
}

fn not_empty(child: Option<NodeRef<'_>>, parent: usize) -> Result<Option<NodeRef<'_>>> {
    match child {
        Some(child) if is_empty(&child.encoded()[parent..])? => Ok(None),
        other => Ok(other),
    }
}

/// One step from a place on, to a bound.
#[inline]
fn step<'s>(from: &'s [u8], inclusive: bool, bound: &'s [u8], backwards: bool) -> Scan<'s> {
    Scan { from, inclusive, bound, backwards, values: false, most: 1, after: Origin::default() }
}
