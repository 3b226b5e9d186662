//! Operations on whole subtrees: copy, merge, count. Each is one transaction.

use perilune_key::range;

use crate::{Error, NodeRef, Result, Session};

impl Session {
    /// Replaces the subtree of `to` by a copy of the subtree of `from`: values and descendants. One
    /// of them may be local. An empty `from` leaves `to` empty.
    ///
    /// # Errors
    /// `Overlap` if one contains the other; `KeyTooLong` if a copied key does not fit below `to`;
    /// else as [`Session::transaction`]. Nothing was written.
    pub fn copy<'f, 't>(&mut self, from: impl Into<NodeRef<'f>>, to: impl Into<NodeRef<'t>>) -> Result<()> {
        self.graft(from.into(), to.into(), true)
    }

    /// Lays a copy of the subtree of `from` over the subtree of `to`, as M's `MERGE`: what `to` has
    /// besides stays.
    ///
    /// # Errors
    /// As [`Session::copy`].
    pub fn merge<'f, 't>(&mut self, from: impl Into<NodeRef<'f>>, to: impl Into<NodeRef<'t>>) -> Result<()> {
        self.graft(from.into(), to.into(), false)
    }

    /// How many children `node` has: subscripts below it that exist.
    ///
    /// # Errors
    /// As [`Session::transaction`].
    pub fn count_children<'n>(&mut self, node: impl Into<NodeRef<'n>>) -> Result<u64> {
        let node = node.into();
        self.at_one_moment(node.is_local(), |session| {
            let mut count = 0;
            let parent = node.encoded();
            let mut at_end = !session.step(node, parent, false)?;
            while !at_end {
                match range::child_of(parent, &session.found)? {
                    Some(child) => range::after_child(child, &mut session.from),
                    None => break,
                }
                count += 1;
                let from = std::mem::take(&mut session.from);
                at_end = !session.step(node, &from, true)?;
                session.from = from;
            }
            Ok(count)
        })
    }

    /// How many nodes below `node` have a value (itself not counted).
    ///
    /// # Errors
    /// As [`Session::transaction`].
    pub fn count_valued<'n>(&mut self, node: impl Into<NodeRef<'n>>) -> Result<u64> {
        let node = node.into();
        self.at_one_moment(node.is_local(), |session| {
            let mut count = 0;
            let mut more = session.step(node, node.encoded(), false)?;
            while more && session.found.starts_with(node.encoded()) {
                count += 1;
                let from = std::mem::take(&mut session.found);
                more = session.step(node, &from, false)?;
            }
            Ok(count)
        })
    }

    fn step(&mut self, node: NodeRef<'_>, from: &[u8], inclusive: bool) -> Result<bool> {
        Ok(self.trees.of(node.is_local()).next(from, inclusive, &mut self.found, None)?)
    }

    fn graft(&mut self, from: NodeRef<'_>, to: NodeRef<'_>, replace: bool) -> Result<()> {
        let (source, target) = (from.encoded(), to.encoded());
        let same_trees = from.is_local() == to.is_local();
        if same_trees && (source.starts_with(target) || target.starts_with(source)) {
            return Err(Error::Overlap);
        }
        let (mut at, mut found, mut key, mut value) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        self.transaction(|session| {
            if replace {
                session.trees.of(to.is_local()).remove_prefix(target)?;
            }
            at.clear();
            at.extend_from_slice(source);
            let mut inclusive = true;
            let tree = session.trees.of(from.is_local());
            let mut more = tree.next(&at, inclusive, &mut found, Some(&mut value))?;
            while more && found.starts_with(source) {
                key.clear();
                key.extend_from_slice(target);
                key.extend_from_slice(&found[source.len()..]);
                session.trees.of(to.is_local()).set(&key, &value)?;
                std::mem::swap(&mut at, &mut found);
                inclusive = false;
                more =
                    session.trees.of(from.is_local()).next(&at, inclusive, &mut found, Some(&mut value))?;
            }
            Ok(())
        })
    }
}
