//! Each session's own digest of the root page: the heads of its separators, taken behind the bytes with which all of
//! them begin.
//!
//! Nothing bounds the keys below the root, so it has no common prefix to leave out: the heads of its slots are all alike
//! when all keys are of one name, and a search compares whole keys, as long as the rest of the descent together.
//!
//! Invariants
//! - A digest is used only with the word of the root under which it was made, and the root is latched by nobody.
//! - It tells a child only where heads alone decide; else the page is searched.
//!
//! Deliberately absent: other inner pages, whose fences give them a prefix; keeping a digest up to date, since a root that
//! changes often is not worth one.

use std::cell::RefCell;
use std::ops::Range;

use super::{Page, Seen};
use crate::image::Image;
use crate::page::{self, find_child, inner_count, InnerSlots};

/// A root is digested when it has stayed unchanged for so many searches for each of its slots. A digest costs as much as one
/// search for each slot. If it was of no use, the next one is made after twice as many searches.
const USES_PER_SLOT: usize = 4;

/// Fewer separators are searched as fast in the page.
const SLOTS_MIN: usize = 4;

/// The digest of one session.
#[derive(Default)]
pub(super) struct Root(RefCell<State>);

#[derive(Default)]
struct State {
    root: Option<Seen>,
    /// Searches in a row that the digest did not answer.
    misses: usize,
    digest: Digest,
}

/// Heads and children of neighbouring separators that begin alike.
#[derive(Default)]
struct Digest {
    prefix: Vec<u8>,
    heads: Vec<u64>,
    /// One more: the last is for keys above all these separators.
    children: Vec<u32>,
}

impl Root {
    /// The child of the inner page `root` that covers `key`; the page is still to be checked.
    #[inline]
    pub(super) fn child(&self, image: &Image, root: Seen, key: &[u8]) -> u32 {
        let mut state = self.0.borrow_mut();
        if state.root != Some(root) {
            *state = State { root: Some(root), ..State::default() };
        }
        if let Some(child) = state.digest.find(key) {
            state.misses = 0;
            return child;
        }
        let page = image.page(root.number);
        state.misses += 1;
        if state.misses.is_power_of_two() && state.misses >= USES_PER_SLOT * inner_count(page) {
            state.digest = digest(page, key);
            if root.check(image).is_err() {
                state.root = None;
            }
        }
        find_child(page, key).1
    }
}

#[cfg(test)]
impl Root {
    /// Whether a digest tells the child of `key`.
    pub(super) fn tells(&self, key: &[u8]) -> bool {
        self.0.borrow().digest.find(key).is_some()
    }
}

/// Digests a page; nothing of use if it changes meanwhile.
#[cold]
fn digest(page: &Page, key: &[u8]) -> Digest {
    let separator = |index| {
        let mut out = Vec::new();
        page::key_into::<InnerSlots>(page, index, &mut out);
        out
    };
    let separators: Vec<Vec<u8>> = (0..inner_count(page)).map(separator).collect();
    Digest::of(&separators, key, |index| page::child(page, index))
}

/// How many bytes both begin with.
fn common(one: &[u8], other: &[u8]) -> usize {
    one.iter().zip(other).take_while(|(one, other)| one == other).count()
}

/// The first eight bytes behind `prefix`, zeros behind what is shorter: as numbers in the order of what they begin.
#[inline]
fn head(key: &[u8], prefix: usize) -> u64 {
    let rest = key.get(prefix..).unwrap_or(&[]);
    if let Some(bytes) = rest.first_chunk::<8>() {
        return u64::from_be_bytes(*bytes);
    }
    let mut bytes = [0; 8];
    bytes[..rest.len()].copy_from_slice(rest);
    u64::from_be_bytes(bytes)
}

impl Digest {
    /// The digest of the largest part of ascending separators around `key` in which most heads belong to one separator only.
    fn of(separators: &[Vec<u8>], key: &[u8], child: impl Fn(usize) -> u32) -> Digest {
        let Range { start: mut low, end: mut high } = 0..separators.len();
        while high - low >= SLOTS_MIN {
            let prefix = common(&separators[low], &separators[high - 1]);
            if !key.starts_with(&separators[low][..prefix]) {
                break;
            }
            let heads: Vec<u64> = separators[low..high].iter().map(|each| head(each, prefix)).collect();
            if heads.chunk_by(PartialEq::eq).count() * 2 >= heads.len() {
                let children = (low..=high).map(child).collect();
                return Digest { prefix: separators[low][..prefix].to_vec(), heads, children };
            }
            let wanted = head(key, prefix);
            high = low + heads.partition_point(|head| *head <= wanted);
            low += heads.partition_point(|head| *head < wanted);
        }
        Digest::default()
    }

    /// The child that covers `key`, if heads tell.
    #[inline]
    fn find(&self, key: &[u8]) -> Option<u32> {
        if self.heads.is_empty() || !key.starts_with(&self.prefix) {
            return None;
        }
        let head = head(key, self.prefix.len());
        let index = self.heads.partition_point(|known| *known < head);
        if self.heads.get(index) == Some(&head) {
            return None;
        }
        self.children.get(index).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keys of several names, some that begin others, and the same with other ends.
    fn keys() -> Vec<Vec<u8>> {
        let mut keys = Vec::new();
        for name in ["a", "name: ", "name: element:00000", "name: other", "z"] {
            for number in 0..400_u32 {
                keys.push(format!("{name}{number:04}").into_bytes());
                keys.push(format!("{name}{number:04}\0").into_bytes());
                keys.push(format!("{name}{number}").into_bytes());
            }
            keys.push(name.as_bytes().to_vec());
        }
        keys.sort();
        keys.dedup();
        keys
    }

    #[test]
    fn a_digest_tells_what_a_search_tells_or_nothing() {
        let keys = keys();
        let mut told = 0;
        for each in [1, 7, 50, 400] {
            let separators: Vec<Vec<u8>> = keys.iter().step_by(each).cloned().collect();
            for around in
                keys.iter().step_by(97).map(Vec::as_slice).chain([&b""[..], b"name: element:000002", b"~"])
            {
                let digest = Digest::of(&separators, around, |index| index as u32);
                assert!(digest.heads.is_empty() || digest.children.len() == digest.heads.len() + 1);
                for key in &keys {
                    let expected = separators.partition_point(|separator| separator < key) as u32;
                    let child = digest.find(key);
                    assert!(child.is_none_or(|child| child == expected), "{key:?} around {around:?}");
                    told += usize::from(child.is_some());
                }
            }
        }
        assert!(told > 10_000, "{told}");
    }

    #[test]
    fn separators_that_are_alike_are_told_apart_around_the_key() {
        let numbered =
            |name: &str| (0..100).map(|number| format!("{name}{number:08}").into_bytes()).collect();
        let mut separators: Vec<Vec<u8>> = numbered("^redis key:");
        separators.extend::<Vec<Vec<u8>>>(numbered("^redis set element:"));
        let digest = Digest::of(&separators, b"^redis set element:00000050x", |index| index as u32);
        assert_eq!(digest.prefix, b"^redis set element:000000");
        assert_eq!(digest.find(b"^redis set element:00000050x"), Some(151));
        assert_eq!(digest.find(b"^redis set element:000000"), Some(100), "below all of them");
        assert_eq!(digest.find(b"^redis set element:000000~"), Some(200), "above all of them");
        assert_eq!(digest.find(b"^redis key:00000001"), None);
    }
}
