//! Operations on whole subtrees: copy, merge, count. Each is one transaction.

use perilune_key::range;
use perilune_store::{Entries, Granularity, Origin, Scan, Span};

use crate::{Cursor, Error, NodeRef, Result, Session};

/// Entries that a copy reads at once, if they lie together.
const GRAFTED: usize = 1024;

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
            let mut cursor = Cursor::children(node).counting();
            let mut count = 0;
            while cursor.next(session)? {
                count += 1;
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
            let (mut low, mut high) = (node.encoded().to_vec(), Vec::new());
            // No code begins with 00: this is behind the node and before its descendants.
            low.push(0);
            range::subtree_end(node.encoded(), &mut high);
            let span = Span { low: &low, high: &high, backwards: false, most: u64::MAX };
            Ok(session.trees.of(node.is_local()).count(&span, &mut Vec::new())?)
        })
    }

    fn graft(&mut self, from: NodeRef<'_>, to: NodeRef<'_>, replace: bool) -> Result<()> {
        let (source, target) = (from.encoded(), to.encoded());
        let same_trees = from.is_local() == to.is_local();
        if same_trees && (source.starts_with(target) || target.starts_with(source)) {
            return Err(Error::Overlap);
        }
        let (mut at, mut key, mut end) = (Vec::new(), Vec::new(), Vec::new());
        let mut entries = Entries::default();
        range::subtree_end(source, &mut end);
        let (most, after) = (GRAFTED, Origin::default());
        let scan =
            Scan { from: &[], inclusive: true, bound: &[], backwards: false, values: true, most, after };
        self.transaction(|session| {
            if replace {
                session.trees.of(to.is_local()).remove_prefix(target)?;
            }
            at.clear();
            at.extend_from_slice(source);
            let mut inclusive = true;
            loop {
                let bounds = Scan { from: &at, inclusive, bound: &end, ..scan };
                if !session.trees.entries_at(from.is_local(), &bounds, Granularity::Whole, &mut entries)? {
                    return Ok(());
                }
                // NB: none of what is written lies in the source, so what was read ahead stays true.
                loop {
                    key.clear();
                    key.extend_from_slice(target);
                    key.extend_from_slice(&entries.key()[source.len()..]);
                    session.trees.of(to.is_local()).set(&key, entries.value())?;
                    if !entries.advance() {
                        break;
                    }
                }
                at.clear();
                at.extend_from_slice(entries.key());
                inclusive = false;
            }
        })
    }
}
