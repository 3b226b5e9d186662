//! The first or last node with a value in a range of a subtree, with its value, in one search.
//!
//! For callers that keep many values below one node and want the one at an end of them, as a queue does:
//! one search instead of a walk and a read, and without a [`crate::Cursor`]'s buffers.

use std::ops::Bound;

use perilune_key::{range, ValueRef};
use perilune_store::UpdateBuffer;

use crate::{NodeRef, Result, Session};

/// The entries at the ends of a range.
pub trait RangeEnds {
    /// The first node with a value in the subtree of `root` (itself included) that does not lie before
    /// `from`, and its value; they last until the next operation. `from` is of the same kind as `root`,
    /// local or not; an excluded one leaves out that node, not its descendants.
    ///
    /// ```
    /// # let directory = std::env::temp_dir().join(format!("perilune-doc-entries-{}", std::process::id()));
    /// # std::fs::create_dir_all(&directory).unwrap();
    /// # let mut session = perilune::Database::open(directory.join("t.db"))?.session()?;
    /// use perilune::{node, RangeEnds};
    /// use std::ops::Bound;
    ///
    /// let queue = node!("^queue")?;
    /// session.set(&node!("^queue", 7)?, "seven")?;
    /// session.set(&node!("^queue", 9)?, "nine")?;
    /// let (first, value) = session.first_entry(&queue, Bound::Unbounded)?.unwrap();
    /// assert_eq!((first.to_string(), value.to_string()), ("^queue(7)".into(), "\"seven\"".into()));
    /// let (last, _) = session.last_entry(&queue, Bound::Unbounded)?.unwrap();
    /// assert_eq!(last.to_string(), "^queue(9)");
    /// # let _ = std::fs::remove_dir_all(&directory);
    /// # Ok::<(), perilune::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Session::get`].
    fn first_entry<'n, 'f>(
        &mut self,
        root: impl Into<NodeRef<'n>>,
        from: Bound<NodeRef<'f>>,
    ) -> Result<Option<(NodeRef<'_>, ValueRef<'_>)>>;

    /// As [`RangeEnds::first_entry`], but without values of more than 63 bytes, which take no time then: `None` stands for
    /// such a one.
    ///
    /// # Errors
    /// As [`Session::get`].
    fn first_entry_at<'n, 'f>(
        &mut self,
        root: impl Into<NodeRef<'n>>,
        from: Bound<NodeRef<'f>>,
    ) -> Result<Option<(NodeRef<'_>, Option<ValueRef<'_>>)>>;

    /// The last node with a value in the subtree of `root` (itself included) that lies before `to`, and
    /// its value, as [`RangeEnds::first_entry`]. An included `to` counts without its descendants.
    ///
    /// # Errors
    /// As [`Session::get`].
    fn last_entry<'n, 't>(
        &mut self,
        root: impl Into<NodeRef<'n>>,
        to: Bound<NodeRef<'t>>,
    ) -> Result<Option<(NodeRef<'_>, ValueRef<'_>)>>;
}

impl RangeEnds for Session {
    #[inline]
    fn first_entry<'n, 'f>(
        &mut self,
        root: impl Into<NodeRef<'n>>,
        from: Bound<NodeRef<'f>>,
    ) -> Result<Option<(NodeRef<'_>, ValueRef<'_>)>> {
        let root = root.into();
        range::subtree_end(root.encoded(), &mut self.end);
        let (start, inclusive) = first_place(root, from);
        let (found, value) = (&mut self.found, Some(&mut self.value));
        let tree = self.trees.of(root.is_local());
        if !tree.next_within(start, inclusive, &self.end, found, value)? {
            return Ok(None);
        }
        self.entry(root.is_local()).map(Some)
    }

    #[inline]
    fn first_entry_at<'n, 'f>(
        &mut self,
        root: impl Into<NodeRef<'n>>,
        from: Bound<NodeRef<'f>>,
    ) -> Result<Option<(NodeRef<'_>, Option<ValueRef<'_>>)>> {
        let root = root.into();
        range::subtree_end(root.encoded(), &mut self.end);
        let (start, inclusive) = first_place(root, from);
        let tree = self.trees.of(root.is_local());
        if !tree.preview_within(start, inclusive, &self.end, &mut self.found, &mut self.value)? {
            return Ok(None);
        }
        let is_whole = self.value.len() < size_of::<UpdateBuffer>();
        let value = is_whole.then(|| ValueRef::decode(&self.value)).transpose()?;
        Ok(Some((NodeRef::from_encoded(&self.found, root.is_local()), value)))
    }

    fn last_entry<'n, 't>(
        &mut self,
        root: impl Into<NodeRef<'n>>,
        to: Bound<NodeRef<'t>>,
    ) -> Result<Option<(NodeRef<'_>, ValueRef<'_>)>> {
        let root = root.into();
        range::subtree_end(root.encoded(), &mut self.end);
        self.from.clear();
        match to {
            Bound::Included(node) => {
                self.from.extend_from_slice(node.encoded());
                // No code begins with 00: this is behind the node and before its descendants.
                self.from.push(0);
            }
            Bound::Excluded(node) => self.from.extend_from_slice(node.encoded()),
            Bound::Unbounded => self.from.extend_from_slice(&self.end),
        }
        let before = if self.from < self.end { &self.from } else { &self.end };
        let (found, value) = (&mut self.found, Some(&mut self.value));
        let tree = self.trees.of(root.is_local());
        if !tree.previous_within(before, root.encoded(), found, value)? {
            return Ok(None);
        }
        self.entry(root.is_local()).map(Some)
    }
}

impl Session {
    #[inline]
    fn entry(&self, local: bool) -> Result<(NodeRef<'_>, ValueRef<'_>)> {
        Ok((NodeRef::from_encoded(&self.found, local), ValueRef::decode(&self.value)?))
    }
}

/// Where a search for the first node begins, and whether that counts.
#[inline]
fn first_place<'a>(root: NodeRef<'a>, from: Bound<NodeRef<'a>>) -> (&'a [u8], bool) {
    let (start, inclusive) = match from {
        Bound::Included(node) => (node.encoded(), true),
        Bound::Excluded(node) => (node.encoded(), false),
        Bound::Unbounded => (root.encoded(), true),
    };
    if start < root.encoded() {
        (root.encoded(), true)
    } else {
        (start, inclusive)
    }
}
