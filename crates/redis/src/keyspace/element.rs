//! One element of a hash, list, set or sorted set, for what is done with it by one operation.
//!
//! Invariant: the key's own node and that of its part are where the element's begins, so that all three are made at once.
//!
//! Deliberately absent: long names, expiries, keys that are to come into being or to go. What is here says that it is one
//! of those, and a transaction does it.

use perilune::key::KeyMark;
use perilune::{Node, NodeRef, Probe, Probed, ValueRef};

use super::{name, score, Keys, Kind, ORDER};
use crate::failure::Result;
use crate::limits::{KEY_BYTES, MEMBER_BYTES};

/// The probe that looks at what a key begins with.
pub(crate) const HEAD: usize = 0;
/// The one that looks at the element.
pub(crate) const ELEMENT: usize = 1;

/// A key and one of its elements.
pub(crate) struct Element {
    node: Node,
    key: usize,
    part: KeyMark,
    part_end: usize,
}

impl Element {
    /// The part of this kind of the key called `name`. None: its name is long, or a transaction is open, which is to do
    /// what is to be done.
    #[inline(always)]
    pub(crate) fn part_of(keys: &Keys<'_>, name: &[u8], kind: Kind) -> Result<Option<Element>> {
        if keys.session.depth() > 0 || !name::is_whole(name, KEY_BYTES) {
            return Ok(None);
        }
        let mut node = keys.root()?;
        node.push(name)?;
        let key = node.encoded().len();
        node.push(kind.name())?;
        let (part, part_end) = (node.mark(), node.encoded().len());
        Ok(Some(Element { node, key, part, part_end }))
    }

    /// The element called `element`, whose name is not long, of the part of this kind of the key called `name`; None as
    /// [`Element::part_of`].
    #[inline(always)]
    pub(crate) fn of(keys: &Keys<'_>, name: &[u8], kind: Kind, element: &[u8]) -> Result<Option<Element>> {
        if !name::is_whole(element, MEMBER_BYTES) {
            return Ok(None);
        }
        let mut found = Element::part_of(keys, name, kind)?;
        if let Some(found) = &mut found {
            found.node.push(element)?;
        }
        Ok(found)
    }

    /// The key's own node.
    #[inline]
    pub(crate) fn key(&self) -> NodeRef<'_> {
        NodeRef::from_encoded(&self.node.encoded()[..self.key], false)
    }

    /// The node of the part, which holds how many elements there are, but in a list.
    #[inline]
    pub(crate) fn part(&self) -> NodeRef<'_> {
        NodeRef::from_encoded(&self.node.encoded()[..self.part_end], false)
    }

    /// The element's node.
    #[inline]
    pub(crate) fn node(&self) -> NodeRef<'_> {
        NodeRef::from(&self.node)
    }

    /// Goes to the element of a list at `index`.
    #[inline]
    pub(crate) fn go(&mut self, index: i64) -> Result<()> {
        self.node.truncate(self.part);
        Ok(self.node.push(index)?)
    }

    /// The element of a list at `index`, beside this one.
    pub(crate) fn at(&self, index: i64) -> Result<Element> {
        let mut node = self.node.clone();
        node.truncate(self.part);
        let mut other = Element { node, ..*self };
        other.go(index)?;
        Ok(other)
    }

    /// Where a member lies with this score in the order of its sorted set.
    pub(crate) fn place(&self, keys: &Keys<'_>, name: &[u8], score: f64, member: &[u8]) -> Result<Node> {
        Ok(keys.root()?.with(name)?.with(ORDER)?.with(&score::place(score, member))?)
    }

    /// The probes of the head and of the element.
    #[inline]
    pub(crate) fn probes(&self) -> [Probe<'_>; 2] {
        [Probe::first(self.key()), Probe::at(self.node())]
    }

    /// How many elements there are, if the key begins with that: so it is of this kind and does not expire.
    #[inline]
    pub(crate) fn count(&self, probed: &mut Probed<'_>) -> Option<i64> {
        if !probed.is_at(HEAD, self.part()) {
            return None;
        }
        match probed.value(HEAD) {
            Some(ValueRef::Int(count)) if count > 0 => Some(count),
            _ => None,
        }
    }

    /// The index in the list of the element that `probe` stands at, if it is one.
    #[inline]
    pub(crate) fn index(&self, probed: &mut Probed<'_>, probe: usize) -> Option<i64> {
        probed.index(probe, self.part())
    }
}
