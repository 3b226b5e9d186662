//! Where a leaf is divided that has no room for several keys which are to be set at once.
//!
//! Example: a leaf is full, and a hundred keys come before all that is there. If it were divided between two of these, its
//! right half would be as full as before, and be divided again for the next few of them, into as many leaves of a few records.
//! So what is there is parted from what comes.
//!
//! Invariant: of what is there and what comes, both halves get something. So it ends, however often a leaf is divided.
//!
//! Deliberately absent: keys that come one by one (`build`), and runs that are written leaf by leaf (`tree/run`).

use super::{find, leaf_count, leaf_key, need, taken, Page};
use crate::limits::PAGE;
use crate::page::contains;

/// A leaf is cleared of what lies behind a place, or a gap is for keys that come, only for so many bytes.
const MANY: usize = PAGE / 4;

/// One of several operations on one key each, which ascend.
#[derive(Clone, Copy)]
pub(crate) struct Coming<'a> {
    pub(crate) key: &'a [u8],
    /// Bytes of the value that is set; none if one is removed.
    pub(crate) value: Option<usize>,
}

/// Operations by their numbers, from 0 to the last one.
pub(crate) type Ahead<'o, 'a> = &'o dyn Fn(usize) -> Option<Coming<'a>>;

/// Two keys that are to be parted; only the second if the leaf is to be divided as for that one alone.
pub(crate) struct Parting {
    pub(crate) before: Option<Vec<u8>>,
    pub(crate) key: Vec<u8>,
}

/// Where to divide a leaf that has no room for operation `at` and those before it there. None: there is no such operation.
pub(crate) fn parting(page: &Page, at: usize, ahead: Ahead<'_, '_>) -> Option<Parting> {
    let short = ahead(at)?;
    let found = find(page, short.key);
    let next = found.index + usize::from(found.equal);
    let count = leaf_count(page);
    let mut behind = 0;
    let is_much = (next..count).any(|slot| {
        behind += taken(page, slot) + 8;
        behind > MANY
    });
    if !is_much {
        // There is room for the rest beside what lies behind, and what comes before fills the left half.
        let before = at.checked_sub(1).and_then(ahead).filter(|before| contains(page, before.key));
        return Some(Parting { before: before.map(|before| before.key.to_vec()), key: short.key.to_vec() });
    }
    let (mut low, mut high) = (Vec::new(), Vec::new());
    leaf_key(page, next, &mut high);
    if let Some(last) = next.checked_sub(1) {
        leaf_key(page, last, &mut low);
    }
    let is_before = |coming: &Coming<'_>| *coming.key >= low[..] && contains(page, coming.key);
    let in_gap = (0..at).rev().map_while(ahead).take_while(is_before);
    let behind = (at..).map_while(ahead).take_while(|coming| *coming.key < high[..]);
    let last = behind.clone().last().unwrap_or(short).key;
    let bytes = |coming: Coming<'_>| coming.value.map_or(0, |len| need(page, coming.key, len) + 8);
    if in_gap.chain(behind).map(bytes).sum::<usize>() > MANY {
        return Some(Parting { before: Some(last.to_vec()), key: high });
    }
    // NB: the last one of its gap, before which others may come that are to stay with it.
    Some(Parting { before: None, key: last.to_vec() })
}
