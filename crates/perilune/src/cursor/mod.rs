//! Cursors: a place in the tree that moves both ways over children, a subtree or a range.
//!
//! A cursor stands before the first entry, at an entry, or behind the last one, and each step looks
//! at the tree as it is then: what others commit ahead of it is seen, and an entry under it may go
//! without harm. In a transaction all steps see one state. A cursor borrows nothing, so the session
//! can be used between its steps.
//!
//! Invariants
//! - Every entry lies in `low <= key < high`.
//! - For children `key` is the child's own key, whether or not it has a value; what lies below it is
//!   skipped by a search, not by reading through it.

mod count;
mod entry;
mod iterators;
mod steps;
mod taking;

use std::ops::{Bound, RangeBounds};

use perilune_key::range;
use perilune_store::{Entries, Granularity};

pub use self::iterators::{Children, Subtree};
use self::steps::Ahead;
pub use self::taking::Child;
use crate::node::limit;
use crate::{Error, IntoSubscript, Node, NodeRef, Result};

/// A place among the children of a node, in a subtree, or in a range of nodes.
///
/// ```
/// # let directory = std::env::temp_dir().join(format!("perilune-doc-cursor-{}", std::process::id()));
/// # std::fs::create_dir_all(&directory).unwrap();
/// # let mut session = perilune::Database::open(directory.join("t.db"))?.session()?;
/// use perilune::{node, Cursor};
///
/// for (name, born) in [("Ada", 1815), ("Grace", 1906), ("Mary", 1797)] {
///     session.set(&node!("^born", name)?, born)?;
/// }
/// let mut cursor = Cursor::children(&node!("^born")?);
/// let mut names = Vec::new();
/// while cursor.previous(&mut session)? {
///     names.push(format!("{} {}", cursor.subscript()?, cursor.value()?.unwrap()));
/// }
/// assert_eq!(names, [r#""Mary" 1797"#, r#""Grace" 1906"#, r#""Ada" 1815"#]);
/// # let _ = std::fs::remove_dir_all(&directory);
/// # Ok::<(), perilune::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Cursor {
    local: bool,
    over: Over,
    /// What a step looks at of the key that it finds.
    granularity: Granularity,
    with_values: bool,
    /// The least key of the range.
    low: Vec<u8>,
    /// What lies right behind the range.
    high: Vec<u8>,
    place: Place,
    /// Those that were read together with the one that it stands at.
    entries: Entries,
    /// Memory for the next ones.
    spare: Entries,
    /// Bytes of the key at which `entries` stand that are the entry's own.
    length: usize,
    has_value: bool,
    /// Whether the value lies in `own`: going backwards, a child is found by a key below it, and its own value read for itself.
    is_own: bool,
    own: Vec<u8>,
    /// The key that it stands before.
    key: Vec<u8>,
    seek: Vec<u8>,
    ahead: Ahead,
}

#[derive(Clone, Debug)]
enum Over {
    /// The children of the node with this key.
    Children(Vec<u8>),
    /// Nodes with a value.
    Valued,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// Nowhere yet: either direction begins at its end of the range.
    Fresh,
    BeforeFirst,
    At,
    /// Right before the key, which need not exist.
    Before,
    AfterLast,
}

impl Cursor {
    /// A cursor over the children of `node`, `""` included, in the order of subscripts.
    #[must_use]
    pub fn children<'n>(node: impl Into<NodeRef<'n>>) -> Cursor {
        let node = node.into();
        // No code begins with 00 or 01: this is below every child and above the node itself.
        let low = [node.encoded(), &[0]].concat();
        Cursor::over(node.is_local(), Over::Children(node.encoded().to_vec()), low, past(node))
    }

    /// A cursor over the nodes with a value in the subtree of `node`, itself included, depth first.
    #[must_use]
    pub fn subtree<'n>(node: impl Into<NodeRef<'n>>) -> Cursor {
        let node = node.into();
        Cursor::over(node.is_local(), Over::Valued, node.encoded().to_vec(), past(node))
    }

    /// A cursor over the nodes with a value in a range of nodes, across subtrees and names:
    /// `Cursor::range(&from..&to)`. An upper bound that is included is so without its descendants.
    ///
    /// # Errors
    /// `Invalid` if one bound is local and the other is not, or there is none.
    pub fn range(range: impl RangeBounds<Node>) -> Result<Cursor> {
        let from = range.start_bound().map(NodeRef::from);
        let to = range.end_bound().map(NodeRef::from);
        let kind = |bound: &Bound<NodeRef<'_>>| match bound {
            Bound::Included(node) | Bound::Excluded(node) => Some(node.is_local()),
            Bound::Unbounded => None,
        };
        let local = match (kind(&from), kind(&to)) {
            (Some(from), Some(to)) if from != to => {
                return Err(Error::invalid("one bound of the range is local: give both with ^, or none"))
            }
            (Some(local), _) | (None, Some(local)) => local,
            (None, None) => return Err(Error::invalid("a range needs at least one bound")),
        };
        // Names begin with bytes from 25 to 7A.
        let mut cursor = Cursor::over(local, Over::Valued, vec![0x25], vec![0x7B]);
        cursor.bound(from, to);
        Ok(cursor)
    }

    /// Leaves out what lies before `from` or behind `to`. Bounds of a cursor over children must be
    /// children of the same node; an included one counts with its subtree.
    pub fn bound(&mut self, from: Bound<NodeRef<'_>>, to: Bound<NodeRef<'_>>) {
        let children = matches!(self.over, Over::Children(_));
        let behind = |node: NodeRef<'_>| if children { past(node) } else { [node.encoded(), &[0]].concat() };
        let low = match from {
            Bound::Included(node) => Some(node.encoded().to_vec()),
            Bound::Excluded(node) => Some(behind(node)),
            Bound::Unbounded => None,
        };
        let high = match to {
            Bound::Included(node) => Some(behind(node)),
            Bound::Excluded(node) => Some(node.encoded().to_vec()),
            Bound::Unbounded => None,
        };
        if let Some(low) = low.filter(|low| *low > self.low) {
            self.low = low;
        }
        if let Some(high) = high.filter(|high| *high < self.high) {
            self.high = high;
        }
        self.rewind();
    }

    /// Leaves out the children before `from` or behind `to`, given as subscripts.
    ///
    /// # Errors
    /// `Invalid` for a cursor that is not over children; else as [`Node::child`].
    pub fn between(
        mut self,
        from: Bound<impl IntoSubscript>,
        to: Bound<impl IntoSubscript>,
    ) -> Result<Cursor> {
        let Over::Children(parent) = &self.over else {
            return Err(Error::invalid("subscripts bound a cursor over children: use `bound` for nodes"));
        };
        let parent = NodeRef::from_encoded(parent, self.local).to_node()?;
        let (from, to) = (child(&parent, from)?, child(&parent, to)?);
        self.bound(from.as_ref().map(NodeRef::from), to.as_ref().map(NodeRef::from));
        Ok(self)
    }

    /// Leaves out the child `""`, as M's `$ORDER` does.
    #[must_use]
    pub fn without_empty(mut self) -> Cursor {
        if let Over::Children(parent) = &self.over {
            let mut low = Vec::new();
            range::after_empty_child(parent, &mut low);
            // A bound longer than any key would be refused; a parent that long has no children.
            if low > self.low && low.len() <= limit(self.local) {
                self.low = low;
            }
        }
        self
    }

    /// Does not read values: a little faster where only subscripts are wanted.
    #[must_use]
    pub fn without_values(mut self) -> Cursor {
        self.with_values = false;
        self
    }

    /// Shows what lies at and below each child as well, as far as it was read together with it: see [`Cursor::below`].
    #[must_use]
    pub fn looking_below(mut self) -> Cursor {
        self.granularity = Granularity::Whole;
        self
    }

    /// Does not tell either which children have values.
    pub(crate) fn counting(mut self) -> Cursor {
        if let Over::Children(parent) = &self.over {
            self.granularity = Granularity::Child(parent.len());
        }
        self.without_values()
    }

    /// Puts the cursor back to where it began.
    pub fn rewind(&mut self) {
        self.place = Place::Fresh;
    }

    /// Puts the cursor before `node`, which need not exist: [`Cursor::next`] answers it or what
    /// follows it, [`Cursor::previous`] what lies before it.
    pub fn seek<'n>(&mut self, node: impl Into<NodeRef<'n>>) {
        self.stand_before(node.into().encoded());
    }

    /// Puts the cursor behind the subtree of `node`: [`Cursor::next`] answers what follows all of it.
    pub fn seek_past<'n>(&mut self, node: impl Into<NodeRef<'n>>) {
        self.stand_before(&past(node.into()));
    }

    fn stand_before(&mut self, key: &[u8]) {
        if key <= &self.low[..] {
            self.place = Place::BeforeFirst;
        } else if key >= &self.high[..] {
            self.place = Place::AfterLast;
        } else {
            self.key.clear();
            self.key.extend_from_slice(key);
            self.place = Place::Before;
        }
    }

    fn over(local: bool, over: Over, low: Vec<u8>, high: Vec<u8>) -> Cursor {
        let granularity = match &over {
            Over::Children(parent) => Granularity::Entry(parent.len()),
            Over::Valued => Granularity::Whole,
        };
        Cursor {
            local,
            over,
            granularity,
            with_values: true,
            low,
            high,
            place: Place::Fresh,
            entries: Entries::default(),
            spare: Entries::default(),
            length: 0,
            has_value: false,
            is_own: false,
            own: Vec::new(),
            key: Vec::new(),
            seek: Vec::new(),
            ahead: Ahead::default(),
        }
    }
}

/// Where the descendants of `node` end.
fn past(node: NodeRef<'_>) -> Vec<u8> {
    [node.encoded(), &[0xFF]].concat()
}

fn copy(from: &[u8], to: &mut Vec<u8>) {
    to.clear();
    to.extend_from_slice(from);
}

fn child(parent: &Node, bound: Bound<impl IntoSubscript>) -> Result<Bound<Node>> {
    Ok(match bound {
        Bound::Included(subscript) => Bound::Included(parent.child(subscript)?),
        Bound::Excluded(subscript) => Bound::Excluded(parent.child(subscript)?),
        Bound::Unbounded => Bound::Unbounded,
    })
}
