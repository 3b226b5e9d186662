//! Page operations against a `BTreeMap`: a flat tree of one inner page and its leaves.
//!
//! After each step every touched page is checked, the keys of its leaf are compared with the model, and
//! what was saved is put back into a copy of the changed page, which must give the page before. A failure
//! prints the shortest case and its seed (`cc ...`), adding it to `SEEDS`.

use std::collections::BTreeMap;
use std::ops::Bound;

use perilune_shm::words;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;

use super::{
    append_value, check, child, compacted, contains, content_bytes, count, empty_leaf, find, find_child,
    find_near, gap_near, has_hi_fence, has_lo_fence, heap_top, hi_fence, inner_count, inner_insert,
    inner_remove, inner_room, inner_set_child, is_gap, key_behind, key_into, kind, leaf_count, leaf_free,
    leaf_insert, leaf_key, leaf_remove, leaf_remove_range, leaf_replace, level, lines_near, lo_fence, merged,
    need, new_root, next_is, place_near, previous_is, put_identity, split, stem, taken, Found, InnerSlots,
    LeafSlots, NoSave, Page, Save, Slots, INNER, LEAF,
};
use crate::limits::{INLINE_MAX, PAGE, PAGE_HEAD, USER_KEY_MAX};

/// Seeds of past failures, run first; relative to the crate.
const SEEDS: &str = "src/page/tests.seeds";

/// The inner page's own number; leaves follow.
const TOP: u32 = 7;

/// Keeps what is saved, as the undo area does.
struct Kept<'a> {
    page: &'a Page,
    entries: Vec<(usize, Vec<u64>)>,
}

impl<'a> Kept<'a> {
    fn of(page: &'a Page) -> Kept<'a> {
        Kept { page, entries: Vec::new() }
    }

    /// Restores the entries, newest first, into a copy of the page as it is now.
    fn undone(&self) -> Page {
        let copy = words::zeroed();
        words::copy(self.page, &copy);
        for (from, saved) in self.entries.iter().rev() {
            for (index, word) in saved.iter().enumerate() {
                words::put_u64(&copy, from + index * 8, *word);
            }
        }
        copy
    }
}

impl Save for Kept<'_> {
    fn save(&mut self, offset: usize, len: usize) {
        let from = offset & !7;
        let until = (offset + len + 7) & !7;
        assert!(until <= PAGE, "saved beyond the page");
        let bytes = (from..until).step_by(8).map(|at| words::u64_at(self.page, at)).collect();
        self.entries.push((from, bytes));
    }
}

fn copy_of(page: &Page) -> Box<Page> {
    let copy = words::zeroed_box();
    words::copy(page, &copy);
    copy
}

/// The bytes of a page that mean something: head, slots, heap.
fn meaning(page: &Page) -> Vec<u8> {
    let slots = if kind(page) == LEAF {
        leaf_count(page) * LeafSlots::SIZE
    } else {
        inner_count(page) * InnerSlots::SIZE
    };
    let mut bytes = Vec::new();
    words::append(page, 0, PAGE_HEAD + slots, &mut bytes);
    words::append(page, heap_top(page), PAGE - heap_top(page), &mut bytes);
    bytes
}

/// Runs a change and checks that what it saved is enough to take it back.
fn undoably<R>(page: &Page, change: impl FnOnce(&mut Kept<'_>) -> R) -> R {
    let before = meaning(page);
    let mut kept = Kept::of(page);
    let result = change(&mut kept);
    assert!(meaning(&kept.undone()) == before, "what was saved does not restore the page");
    result
}

struct FlatTree {
    top: Box<Page>,
    leaves: BTreeMap<u32, Box<Page>>,
    model: BTreeMap<Vec<u8>, Vec<u8>>,
    next_number: u32,
}

impl FlatTree {
    fn new() -> FlatTree {
        let leaf = empty_leaf(0);
        put_identity(&leaf, TOP + 1, 1);
        // A root over two leaves that divide at a key none of the tests uses.
        let top = new_root(1, 0, b"\x01", TOP + 1, TOP + 2);
        put_identity(&top, TOP, 1);
        let halves = split_at(&leaf, b"\x01");
        let leaves = BTreeMap::from([(TOP + 1, halves.0), (TOP + 2, halves.1)]);
        FlatTree { top, leaves, model: BTreeMap::new(), next_number: TOP + 3 }
    }

    fn route(&self, key: &[u8]) -> (usize, u32) {
        let (index, number) = find_child(&self.top, key);
        assert!(contains(&self.leaves[&number], key), "a key led to the wrong leaf");
        (index, number)
    }

    fn set(&mut self, key: &[u8], value: &[u8]) {
        loop {
            let (_, number) = self.route(key);
            let page = &self.leaves[&number];
            let found = find(page, key);
            assert_eq!(found.equal, self.model.contains_key(key));
            if !fits(page, found, key, value) {
                if !self.split(key, None) {
                    return;
                }
                continue;
            }
            if found.equal {
                if !undoably(page, |save| leaf_replace(page, save, found.index, 0, value)) {
                    words::copy(&compacted(page, Some(found.index)).unwrap(), page);
                    let index = find(page, key).index;
                    assert!(leaf_insert(page, &mut NoSave, index, key, 0, value), "room was promised");
                }
            } else if !undoably(page, |save| leaf_insert(page, save, found.index, key, 0, value)) {
                words::copy(&compacted(page, None).unwrap(), page);
                assert!(leaf_insert(page, &mut NoSave, found.index, key, 0, value), "room was promised");
            }
            self.model.insert(key.to_vec(), value.to_vec());
            return self.check_leaf(number);
        }
    }

    fn remove(&mut self, key: &[u8]) {
        let (_, number) = self.route(key);
        let page = &self.leaves[&number];
        let found = find(page, key);
        assert_eq!(found.equal, self.model.remove(key).is_some());
        if found.equal {
            undoably(page, |save| leaf_remove(page, save, found.index));
        }
        self.check_leaf(number);
    }

    /// Removes, of one leaf, all keys that begin with `prefix`.
    fn remove_prefix(&mut self, prefix: &[u8]) {
        let (_, number) = self.route(prefix);
        let page = &self.leaves[&number];
        let from = find(page, prefix).index;
        let mut key = Vec::new();
        let until = (from..leaf_count(page)).find(|index| {
            leaf_key(page, *index, &mut key);
            !key.starts_with(prefix)
        });
        let until = until.unwrap_or(leaf_count(page));
        for index in from..until {
            leaf_key(page, index, &mut key);
            assert!(self.model.remove(&key).is_some());
        }
        undoably(page, |save| leaf_remove_range(page, save, from, until));
        self.check_leaf(number);
    }

    fn compact(&mut self, key: &[u8]) {
        let (_, number) = self.route(key);
        let page = &self.leaves[&number];
        let compact = compacted(page, None).unwrap();
        assert_eq!((leaf_count(&compact), super::garbage(&compact)), (leaf_count(page), 0));
        assert_eq!(content_bytes(&compact), content_bytes(page));
        words::copy(&compact, page);
        self.check_leaf(number);
    }

    /// Splits the leaf of `key` as for its insertion, parting it from `before` if that is given; false when
    /// the inner page has no room left.
    fn split(&mut self, key: &[u8], before: Option<&[u8]>) -> bool {
        let (slot, number) = self.route(key);
        let page = &self.leaves[&number];
        let Some(halves) = split(page, key, find(page, key).index, before) else {
            panic!("leaf {number} of {} records cannot be split", leaf_count(page));
        };
        if !inner_room(&self.top, &halves.separator) {
            let compact = compacted(&self.top, None).unwrap();
            words::copy(&compact, &self.top);
            if !inner_room(&self.top, &halves.separator) {
                self.split_top();
                return false;
            }
        }
        let right = self.next_number;
        self.next_number += 1;
        let top = &self.top;
        undoably(top, |save| inner_insert(top, save, slot, &halves.separator, right));
        words::copy(&halves.left, page);
        put_identity(&halves.right, right, 1);
        self.leaves.insert(right, halves.right);
        check(&self.top, TOP).unwrap();
        self.check_leaf(number);
        self.check_leaf(right);
        if before.is_some_and(|before| self.route(before).1 == self.route(key).1) {
            // Where a half does not fit its new fences, the page is divided as without `before`.
            assert!(halves.separator.len() > 100, "two keys were not parted");
        }
        true
    }

    /// Splits the full inner page and merges its halves again.
    fn split_top(&self) {
        let slots = inner_count(&self.top);
        let halves = split(&self.top, b"", slots, None).unwrap();
        put_identity(&halves.right, TOP + 1, 1);
        check(&halves.left, TOP).unwrap();
        check(&halves.right, TOP + 1).unwrap();
        assert_eq!((kind(&halves.left), level(&halves.right)), (INNER, 1));
        let (left, right) = (inner_count(&halves.left), inner_count(&halves.right));
        assert_eq!(left + 1 + right, slots);
        assert_eq!(child(&halves.left, left), child(&self.top, left));
        let again = merged(&halves.left, &halves.right, &halves.separator).unwrap();
        check(&again, TOP).unwrap();
        let mut keys = [Vec::new(), Vec::new()];
        for slot in 0..slots {
            key_into::<InnerSlots>(&again, slot, &mut keys[0]);
            key_into::<InnerSlots>(&self.top, slot, &mut keys[1]);
            assert_eq!(keys[0], keys[1]);
            assert_eq!(child(&again, slot), child(&self.top, slot));
        }
        assert_eq!(child(&again, slots), child(&self.top, slots));
    }

    /// Merges the leaf of `key` with the next one, if they fit.
    fn merge(&mut self, key: &[u8]) {
        let (slot, left) = self.route(key);
        if slot == inner_count(&self.top) || inner_count(&self.top) == 1 {
            return;
        }
        let right = child(&self.top, slot + 1);
        let mut separator = Vec::new();
        key_into::<InnerSlots>(&self.top, slot, &mut separator);
        let (left_page, right_page) = (&self.leaves[&left], &self.leaves[&right]);
        let Some(page) = merged(left_page, right_page, &separator) else {
            let bytes = content_bytes(left_page) + content_bytes(right_page);
            assert!(bytes > 0, "two empty leaves do not fit into one");
            return;
        };
        words::copy(&page, left_page);
        let top = &self.top;
        undoably(top, |save| inner_remove(top, save, slot));
        self.leaves.remove(&right);
        check(&self.top, TOP).unwrap();
        self.check_leaf(left);
    }

    /// Gives the leaf of `key` another number, as a first-touch copy does.
    fn renumber(&mut self, key: &[u8]) {
        let (slot, number) = self.route(key);
        let copy = copy_of(&self.leaves[&number]);
        put_identity(&copy, self.next_number, 2);
        let (top, next) = (&self.top, self.next_number);
        undoably(top, |save| inner_set_child(top, save, slot, next));
        self.leaves.remove(&number);
        self.leaves.insert(next, copy);
        self.next_number += 1;
        check(&self.top, TOP).unwrap();
        self.check_leaf(next);
    }

    /// Checks a leaf, and that it holds what the model has between its fences.
    fn check_leaf(&self, number: u32) {
        let page = &self.leaves[&number];
        check(page, number).unwrap();
        let (mut lo, mut hi) = (Vec::new(), Vec::new());
        lo_fence(page, &mut lo);
        hi_fence(page, &mut hi);
        assert_eq!((has_lo_fence(page), has_hi_fence(page)), (!lo.is_empty(), !hi.is_empty()));
        let from = if lo.is_empty() { Bound::Unbounded } else { Bound::Excluded(lo) };
        let until = if hi.is_empty() { Bound::Unbounded } else { Bound::Included(hi) };
        let expected: Vec<_> = self.model.range((from, until)).collect();
        assert_eq!(count::<LeafSlots>(page), expected.len());
        let (mut key, mut value) = (Vec::new(), Vec::new());
        for (index, (expected_key, expected_value)) in expected.iter().enumerate() {
            leaf_key(page, index, &mut key);
            value.clear();
            append_value(page, index, &mut value);
            assert_eq!((&key, &value), (*expected_key, *expected_value));
            for at in [0, 1, key.len() / 3, key.len() / 2, key.len().saturating_sub(1), key.len()] {
                let at = at.min(key.len());
                assert!(key_behind(page, index, &key[..at], &mut value) && value == key[at..]);
                if let Some(last) = key[..at].last() {
                    let other = [&key[..at - 1], &[last ^ 1]].concat();
                    assert!(!key_behind(page, index, &other, &mut value));
                }
            }
            assert!(!key_behind(page, index, &[&key[..], b"a"].concat(), &mut value));
            // The places beside it are found without a search.
            let next = Some(index + 1).filter(|next| *next < expected.len());
            assert_eq!(next_is(page, index, &key, false), next);
            assert_eq!(next_is(page, index, &key, true), None);
            let mut above = key.clone();
            above.push(0);
            if above.len() <= crate::limits::KEY_MAX && !self.model.contains_key(&above) {
                assert_eq!(next_is(page, index, &above, true), next);
            }
            assert_eq!(previous_is(page, index, &key), index.checked_sub(1));
            assert!(contains(page, &key));
        }
    }

    /// Compares the place of a key, there or not, with the model.
    fn probe(&self, key: &[u8]) {
        let (_, number) = self.route(key);
        let page = &self.leaves[&number];
        let found = find(page, key);
        for at in
            [0, found.index.saturating_sub(2), found.index.saturating_sub(1), found.index, found.index + 1]
        {
            let near = find_near(page, key, at);
            let behind_all = at + 1 == found.index && found.index == leaf_count(page);
            let is_near = at == found.index && at < leaf_count(page) || at + 1 == found.index || behind_all;
            assert_eq!(near, is_near.then_some(found), "from {at}");
            assert_eq!(place_near(page, key, at), is_near.then_some(found), "from {at}");
            assert_eq!(is_gap(page, at, key), at == found.index, "{at} of {found:?}");
            let is_near = at.abs_diff(found.index) <= 1;
            assert_eq!(gap_near(page, at, key), is_near.then_some(found.index), "{at} of {found:?}");
        }
        let (mut lo, mut hi) = (Vec::new(), Vec::new());
        for leaf in self.leaves.values() {
            lo_fence(leaf, &mut lo);
            hi_fence(leaf, &mut hi);
            let covers = (lo.is_empty() || *lo < *key) && (hi.is_empty() || *key <= *hi);
            assert_eq!(contains(leaf, key), covers);
            let has_place = (0..=leaf_count(leaf) + 1).any(|below| is_gap(leaf, below, key));
            assert_eq!(has_place, covers, "only the leaf of a key has a place for it");
            let has_place = (0..leaf_count(leaf)).any(|at| place_near(leaf, key, at).is_some());
            assert_eq!(has_place, covers && leaf_count(leaf) > 0, "nor is it beside a record of another");
        }
        let mut beside = Vec::new();
        let at = (found.index < leaf_count(page)).then(|| leaf_key(page, found.index, &mut beside));
        let next = self.model.range(key.to_vec()..).next();
        match at {
            Some(()) => assert_eq!(Some(&beside), next.map(|(key, _)| key)),
            None => assert!(next.is_none_or(|(key, _)| !contains(page, key)), "a record was passed over"),
        }
        if let Some(before) = found.index.checked_sub(1) {
            leaf_key(page, before, &mut beside);
            let previous = self.model.range::<[u8], _>((Bound::Unbounded, Bound::Excluded(key))).next_back();
            assert_eq!(Some(&beside), previous.map(|(key, _)| key));
        }
    }
}

/// An empty leaf cut in two at a key.
fn split_at(leaf: &Page, key: &[u8]) -> (Box<Page>, Box<Page>) {
    assert!(leaf_insert(leaf, &mut NoSave, 0, key, 0, b""));
    let after = [key, b"\0"].concat();
    let halves = split(leaf, &after, 1, None).unwrap();
    assert_eq!(halves.separator, key);
    let left = halves.left;
    leaf_remove(&left, &mut NoSave, 0);
    put_identity(&halves.right, TOP + 2, 1);
    (left, halves.right)
}

/// As `tree::write` decides whether a value fits, after compaction if need be.
fn fits(page: &Page, found: Found, key: &[u8], value: &[u8]) -> bool {
    let need = need(page, key, value.len());
    if found.equal {
        need <= leaf_free(page) + taken(page, found.index)
    } else {
        need + 8 <= leaf_free(page)
    }
}

#[derive(Clone, Debug)]
enum Step {
    Set(Vec<u8>, usize, u8),
    Remove(Vec<u8>),
    RemovePrefix(Vec<u8>),
    Compact(Vec<u8>),
    Split(Vec<u8>, Vec<u8>),
    Merge(Vec<u8>),
    Renumber(Vec<u8>),
}

/// Keys of which most begin alike, some of them as long as the rest does not.
fn most_alike() -> impl Strategy<Value = Vec<u8>> {
    let stem = b"k,most of them";
    let letter = || prop_oneof![Just(0u8), Just(b'a'), Just(0xff)];
    let alike = (0u16..400, vec(letter(), 0..3))
        .prop_map(move |(n, more)| [&stem[..], &n.to_be_bytes(), &more].concat());
    let bare = vec(letter(), 0..6).prop_map(move |more| [&stem[..], &more].concat());
    let apart =
        (1..=stem.len(), vec(letter(), 0..6)).prop_map(move |(len, more)| [&stem[..len], &more].concat());
    prop_oneof![14 => alike, 1 => bare, 2 => apart]
}

/// Keys that share much and little, with heads that are equal but for their length.
fn any_key() -> impl Strategy<Value = Vec<u8>> {
    let letter = prop_oneof![Just(b'a'), Just(b'b'), Just(0u8), Just(0xfe)];
    let short = vec(letter.clone(), 0..6);
    let long = (vec(letter.clone(), 0..4), 0..USER_KEY_MAX - 12, vec(letter, 0..6))
        .prop_map(|(head, len, tail)| [head, vec![b'x'; len], tail].concat());
    let counted = (0u16..600).prop_map(|n| [b"count,".as_slice(), &n.to_be_bytes()].concat());
    prop_oneof![6 => short, 1 => long, 6 => counted].prop_map(|rest| [b"k".as_slice(), &rest].concat())
}

fn any_step(any_key: fn() -> BoxedStrategy<Vec<u8>>) -> impl Strategy<Value = Step> {
    let len = prop_oneof![12 => 0usize..40, 2 => 0..INLINE_MAX + 1, 1 => INLINE_MAX - 2..INLINE_MAX + 1];
    prop_oneof![
        40 => (any_key(), len, any::<u8>()).prop_map(|(key, len, byte)| Step::Set(key, len, byte)),
        12 => any_key().prop_map(Step::Remove),
        1 => any_key().prop_map(Step::RemovePrefix),
        2 => any_key().prop_map(Step::Compact),
        1 => (any_key(), any_key()).prop_map(|(key, before)| Step::Split(key, before)),
        3 => any_key().prop_map(Step::Merge),
        1 => any_key().prop_map(Step::Renumber),
    ]
}

fn run(steps: &[Step]) {
    let mut tree = FlatTree::new();
    for step in steps {
        match step {
            Step::Set(key, len, byte) => tree.set(key, &vec![*byte; *len]),
            Step::Remove(key) => tree.remove(key),
            Step::RemovePrefix(key) => tree.remove_prefix(key),
            Step::Compact(key) => tree.compact(key),
            Step::Split(key, before) => {
                let (_, number) = tree.route(key);
                let parted = (before < key && contains(&tree.leaves[&number], before)).then_some(&before[..]);
                if leaf_count(&tree.leaves[&number]) >= 2 {
                    tree.split(key, parted);
                }
            }
            Step::Merge(key) => tree.merge(key),
            Step::Renumber(key) => tree.renumber(key),
        }
        let (Step::Set(key, ..)
        | Step::Remove(key)
        | Step::RemovePrefix(key)
        | Step::Compact(key)
        | Step::Split(key, _)
        | Step::Merge(key)
        | Step::Renumber(key)) = step;
        tree.probe(key);
    }
    for number in tree.leaves.keys() {
        tree.check_leaf(*number);
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        // The tiny engine is tested beside the whole one, and without optimization.
        cases: if cfg!(feature = "tiny") { 10 } else { 30 },
        failure_persistence: Some(Box::new(FileFailurePersistence::Direct(SEEDS))),
        ..ProptestConfig::default()
    })]

    #[test]
    fn pages_do_what_a_map_does(steps in vec(any_step(|| any_key().boxed()), 1..500)) {
        run(&steps);
    }

    #[test]
    fn leaves_with_stems_do_too(steps in vec(any_step(|| most_alike().boxed()), 200..900)) {
        run(&steps);
    }
}

/// Keys that begin alike and go on with zeros, or end, around every word that is compared at once.
#[test]
fn keys_with_one_head_are_told_apart() {
    let tail = |length: usize, last: &[u8]| [b"\0same head", &[0; 28][..length], last].concat();
    let mut keys: Vec<Vec<u8>> =
        (0..28).flat_map(|length| [&b""[..], &[0], &[1], &[255]].map(|last| tail(length, last))).collect();
    keys.sort();
    keys.dedup();
    let records = |odd: usize| keys.iter().skip(odd).step_by(2).map(|key| (&key[..], 0, &b"v"[..]));
    for odd in [0, 1] {
        let page = super::leaf_of(b"", b"\xf0", records(odd)).expect("they fit");
        for (at, key) in keys.iter().enumerate() {
            let found = Found { index: (at + 1 - odd) / 2, equal: at % 2 == odd };
            assert_eq!(find(&page, key), found, "{key:?}");
        }
    }
}

#[test]
fn what_most_keys_begin_with_is_kept_once() {
    let key = |group: &str, n: u32| format!("^redis,{group},{n:04}").into_bytes();
    let mut keys = vec![b"^redis,a".to_vec(), b"^redis,set:0017".to_vec()];
    keys.extend((0..90).map(|n| key("set:0017,members", n)));
    keys.extend((0..6).map(|n| key("set:0018", n)));
    let page = super::leaf_of(b"^redis", b"^redjs", keys.iter().map(|key| (&key[..], 0, &b"v"[..]))).unwrap();
    put_identity(&page, TOP, 1);
    check(&page, TOP).unwrap();
    assert_eq!(stem::base_of(&page), b"^redis,set:0017,members,00");
    for (index, key) in keys.iter().enumerate() {
        assert_eq!(find(&page, key), Found { index, equal: true });
    }
    // A key apart and one with the stem that come later, a split where the groups meet, and a merge.
    for new in [&b"^redis,set:0017,m"[..], b"^redis,set:0017,members,0050,x", b"^redis,set:0017,members,00"] {
        let index = find(&page, new).index;
        assert!(undoably(&page, |save| leaf_insert(&page, save, index, new, 0, b"new")));
        check(&page, TOP).unwrap();
        assert!(find(&page, new).equal);
    }
    let halves = split(&page, &key("set:0017,members", 45), 48, Some(&key("set:0017,members", 44))).unwrap();
    check(&halves.left, TOP).unwrap();
    put_identity(&halves.right, TOP + 1, 1);
    check(&halves.right, TOP + 1).unwrap();
    assert_eq!(leaf_count(&halves.left) + leaf_count(&halves.right), keys.len() + 3);
    let again = merged(&halves.left, &halves.right, &halves.separator).unwrap();
    check(&again, TOP).unwrap();
    assert_eq!(leaf_count(&again), keys.len() + 3);
    // What is left when a record goes is laid out as before.
    let compact = compacted(&again, Some(0)).unwrap();
    check(&compact, TOP).unwrap();
    assert_eq!(stem::base_of(&compact), stem::base_of(&again));
}

#[test]
fn a_leaf_is_split_where_groups_of_keys_meet() {
    for (one, cut) in [(50, 50), (70, 70), (100, 60)] {
        let key = |n: u32| format!("^redis,set:{:04},members,{n:04}", u32::from(n >= one)).into_bytes();
        let keys: Vec<_> = (0..120).map(key).collect();
        let page =
            super::leaf_of(b"^redis", b"^redjs", keys.iter().map(|key| (&key[..], 0, &b"v"[..]))).unwrap();
        let halves = split(&page, &[&keys[20][..], b"0"].concat(), 21, None).unwrap();
        assert_eq!(leaf_count(&halves.left), cut, "{one} records of the first group");
        put_identity(&halves.right, TOP, 1);
        check(&halves.right, TOP).unwrap();
        if one < 100 {
            assert_eq!(stem::base_of(&halves.right), b"^redis,set:0001,members,0");
        }
    }
}

#[test]
fn a_group_that_grows_at_its_left_leaves_full_leaves_behind() {
    let key = |group: u32, n: u32| format!("^redis,list:{group:04},list,{n:04}").into_bytes();
    let keys: Vec<_> = (0..10).map(|n| key(0, n)).chain((500..600).map(|n| key(1, n))).collect();
    let page = super::leaf_of(b"^redis", b"^redjs", keys.iter().map(|key| (&key[..], 0, &b"v"[..]))).unwrap();
    let parted = |new: &[u8]| split(&page, new, find(&page, new).index, None).unwrap();
    assert!(leaf_count(&parted(&[&keys[60][..], b"0"].concat()).left) > 40, "in the middle");
    // What comes next goes there, too.
    let halves = parted(&key(1, 499));
    assert_eq!(leaf_count(&halves.left), 10);
    for n in [498, 499] {
        assert!(contains(&halves.left, &key(1, n)));
    }
    assert!(contains(&halves.right, &key(1, 500)));
}

#[test]
fn an_undo_that_misses_a_range_is_found() {
    let page = empty_leaf(0);
    let kept = Kept::of(&page);
    let before = meaning(&page);
    assert!(leaf_insert(&page, &mut NoSave, 0, b"key", 0, b"value"));
    assert!(meaning(&kept.undone()) != before, "the comparison sees nothing");
}

#[test]
fn inner_pages_with_the_longest_separators_split_and_merge() {
    let key = |byte: u8| vec![byte; crate::limits::KEY_MAX];
    let top = new_root(1, 0, &key(b'c'), 1, 2);
    put_identity(&top, TOP, 1);
    assert!(inner_room(&top, &key(b'b')));
    inner_insert(&top, &mut NoSave, 0, &key(b'b'), 3);
    check(&top, TOP).unwrap();
    assert_eq!((0..3).map(|index| child(&top, index)).collect::<Vec<_>>(), [1, 3, 2]);
    let halves = split(&top, &key(b'b'), 0, None).unwrap();
    check(&halves.left, TOP).unwrap();
    assert_eq!((inner_count(&halves.left), inner_count(&halves.right)), (1, 0));
    let again = merged(&halves.left, &halves.right, &halves.separator).unwrap();
    check(&again, TOP).unwrap();
    assert_eq!((0..3).map(|index| child(&again, index)).collect::<Vec<_>>(), [1, 3, 2]);
}

#[test]
fn lines_are_those_of_the_base_and_of_the_records_beside_a_place() {
    let page = empty_leaf(0);
    for index in 0..60u8 {
        let key = [b"list a", &[index; 9][..]].concat();
        assert!(leaf_insert(&page, &mut NoSave, index.into(), &key, 0, &[1; 21]));
    }
    let line = |at: usize| (at / 64) as u8;
    let record = |index| line(LeafSlots::place(&page, index).0);
    for index in [1, 30, 59] {
        assert_eq!(lines_near(&page, index), [line(PAGE), record(index), record(index - 1)]);
    }
    assert_eq!(lines_near(&page, 0)[1..], [record(0), record(0)]);
    assert_ne!(record(59), record(0));
}
