//! What is read ahead of walks: the server's answers to steps that have not been asked for yet.
//!
//! A walk is a series of searches of which each begins where the one before it has ended. From its second step on
//! answers come in pages: the first of [`FIRST`], each one four times the one before it, up to [`MOST`]. A page lies in one
//! piece of memory, from which a step is answered without any of its own.
//!
//! Invariants
//! - A stretch says what the server answered for every search that begins in it.
//! - Outside a transaction only the next step of a walk is answered, by what is not older than [`AGE`]: a walk that
//!   begins anew, like any other search, asks the server, and what was read ahead from there on is forgotten. Inside,
//!   each answer that is used is a condition of the commit, and those that are not used are none.
//! - What the session itself changes is no longer known ahead. Whatever else it does at the server but read, nothing is.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::search::{PartOfKey, Search};
use crate::wire::{child_of, step_behind};

/// Steps of the first page.
const FIRST: usize = 8;
/// Steps of a page at most; the server ends one sooner that has many bytes.
const MOST: usize = 512;
/// How long an answer holds outside a transaction.
const AGE: Duration = Duration::from_millis(50);
/// Walks that are followed at a time: those of loops in loops.
const WALKS: usize = 8;

/// Some bytes of a page.
#[derive(Clone, Copy, Debug)]
struct Part {
    start: usize,
    end: usize,
}

/// Searches that begin between `edge` and what is found have that answer, which lies in their direction.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    edge: Part,
    /// None: nothing up to the walk's bound. Without a value: it is not known. Of a walk back over children that has come
    /// to one by a key below it the value is the child's own, and without one it has none.
    found: Option<(Part, Option<Part>)>,
}

/// What a page says of a step: the key and the value that it finds.
type Step = (Vec<u8>, Option<Vec<u8>>);

#[derive(Debug)]
struct Walk {
    forward: bool,
    /// Over whose children it goes, by the length of that key: a loop in a loop over children begins where that one goes on.
    parent: Option<usize>,
    /// What its last step has found.
    last: Vec<u8>,
    /// Steps of the next page.
    count: usize,
    bound: Vec<u8>,
    /// Whether values are known, and not only where there are some.
    with_values: bool,
    /// In the direction of the walk.
    stretches: VecDeque<Stretch>,
    /// The bytes of all of them.
    bytes: Vec<u8>,
    read: Instant,
}

/// The walks of a session, the one that went on last at the end.
#[derive(Debug, Default)]
pub(crate) struct Ahead {
    walks: Vec<Walk>,
}

impl Walk {
    fn at(&self, part: Part) -> &[u8] {
        &self.bytes[part.start..part.end]
    }

    /// Keeps some bytes, which stand in two pieces.
    fn keep(&mut self, bytes: &[u8], more: Option<u8>) -> Part {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        self.bytes.extend(more);
        Part { start, end: self.bytes.len() }
    }

    /// The stretch that answers a search.
    fn stretch_for(&self, search: &Search<'_>, aging: bool) -> Option<usize> {
        if self.forward != search.forward || self.stretches.is_empty() || aging && self.read.elapsed() > AGE {
            return None;
        }
        let begins = |stretch: &Stretch| {
            let order = search.compare_start(self.at(stretch.edge));
            if self.forward {
                order.is_ge()
            } else {
                order.is_le()
            }
        };
        let at = self.stretches.partition_point(begins).checked_sub(1)?;
        let answers = match self.stretches[at].found {
            Some((key, value)) => {
                let key = self.at(key);
                let order = search.compare_start(key);
                let is_before = if self.forward { order.is_le() } else { order.is_gt() };
                is_before && (value.is_some() || !search.wants_value(key))
            }
            None if self.forward => {
                self.bound.is_empty() || !search.bound.is_empty() && search.bound <= &self.bound[..]
            }
            None => search.bound >= &self.bound[..],
        };
        answers.then_some(at)
    }

    /// Whether a search is its next step.
    fn goes_on(&self, search: &Search<'_>) -> bool {
        let (step, more) = step_behind(&self.last, self.forward, self.parent);
        (self.forward, self.parent) == (search.forward, search.granularity.parent())
            && search.starts_at(step, more)
    }

    /// Forgets the answers to come that say what lies at `key`: somebody has asked the server for it.
    fn give_way(&mut self, key: &[u8]) {
        let used = |stretch: &Stretch| stretch.found.is_some_and(|(found, _)| self.at(found) == self.last);
        if self.stretches.front().is_some_and(used) {
            let front = self.stretches.pop_front();
            self.touch(key, key);
            self.stretches.extend(front);
            self.stretches.rotate_right(1);
        } else {
            self.touch(key, key);
        }
    }

    /// How far back an answer reaches: to the child whose own value comes with it.
    fn reached<'k>(&self, key: &'k [u8]) -> &'k [u8] {
        self.parent.and_then(|parent| child_of(key, parent)).unwrap_or(key)
    }

    /// Forgets answers that a change between `low` and `high` may have made others.
    fn touch(&mut self, low: &[u8], high: &[u8]) {
        let touched = |stretch: &Stretch| match (self.forward, stretch.found) {
            (true, Some((key, _))) => self.at(stretch.edge) <= high && self.at(key) >= low,
            (true, None) => self.at(stretch.edge) <= high,
            (false, Some((key, _))) => self.at(stretch.edge) > low && self.reached(self.at(key)) <= high,
            (false, None) => self.at(stretch.edge) > low,
        };
        if let Some(first) = self.stretches.iter().position(touched) {
            self.stretches.truncate(first);
        }
    }
}

impl Ahead {
    /// What is known of a search, the key and the value that it finds, lent. `aging`: if it is the next step of a walk, and
    /// not too old.
    pub(crate) fn answer(&mut self, search: &Search<'_>, aging: bool) -> Option<Option<(&[u8], &[u8])>> {
        let known = |walk: &Walk| match aging && !walk.goes_on(search) {
            true => None,
            false => walk.stretch_for(search, aging),
        };
        let (at, stretch) =
            self.walks.iter().enumerate().rev().find_map(|(at, walk)| Some((at, known(walk)?)))?;
        self.walks[at..].rotate_left(1);
        let walk = self.walks.last_mut()?;
        walk.stretches.drain(..stretch);
        let found = walk.stretches.front().and_then(|stretch| stretch.found);
        let is_within = |key: &[u8]| match search.forward {
            true => search.bound.is_empty() || key < search.bound,
            false => key >= search.bound,
        };
        let Some((key, value)) = found.filter(|(key, _)| is_within(walk.at(*key))) else { return Some(None) };
        let mut last = std::mem::take(&mut walk.last);
        last.clear();
        last.extend_from_slice(walk.at(key));
        walk.last = last;
        Some(Some((walk.at(key), value.map_or(&[], |value| walk.at(value)))))
    }

    /// The own value of the child that the last step back has come to by a key below it, and whether it has one; None:
    /// that is not known. What it is if it is not wanted may be anything.
    pub(crate) fn own_value(&self, child: &[u8], is_wanted: bool) -> Option<Option<Vec<u8>>> {
        let walk = self.walks.last().filter(|walk| !walk.forward && (walk.with_values || !is_wanted))?;
        let (key, value) = walk.stretches.front()?.found?;
        let key = walk.at(key);
        let is_it = key == walk.last && key.len() > child.len() && walk.reached(key) == child;
        is_it.then(|| value.map(|value| walk.at(value).to_vec()))
    }

    /// Of how many steps the page is to be that begins with a search; none: it is no step of a walk, yet.
    pub(crate) fn page_for(&self, search: &Search<'_>) -> Option<usize> {
        self.walks.iter().rev().find(|walk| walk.goes_on(search)).map(|walk| walk.count)
    }

    /// The server has answered a search by itself: a walk may begin here.
    pub(crate) fn note(&mut self, search: &Search<'_>, found: Option<&[u8]>) {
        if let Some(key) = found {
            self.walks.iter_mut().for_each(|walk| walk.give_way(key));
            self.begin(search, key, FIRST);
        }
    }

    /// The server has answered a page of `count` steps that begins with a search, up to `bound`: what each step finds,
    /// and whether there is no more.
    pub(crate) fn fill(
        &mut self,
        search: &Search<'_>,
        bound: &[u8],
        count: usize,
        found: &[Step],
        is_all: bool,
    ) {
        self.walks.retain(|walk| !walk.goes_on(search));
        let walk = self.begin(search, &[], (count * 4).min(MOST));
        walk.bound = bound.to_vec();
        walk.with_values = search.with_value;
        walk.stretches.reserve(found.len() + 1);
        let (start, more) = search.start();
        let mut edge = walk.keep(start, more);
        for (key, value) in found {
            let found = Some((walk.keep(key, None), value.as_ref().map(|value| walk.keep(value, None))));
            walk.stretches.push_back(Stretch { edge, found });
            let (next, more) = step_behind(key, search.forward, search.granularity.parent());
            edge = walk.keep(next, more);
        }
        if is_all {
            walk.stretches.push_back(Stretch { edge, found: None });
        }
    }

    /// The session changes what lies between two keys.
    pub(crate) fn touch(&mut self, low: &[u8], high: &[u8]) {
        self.walks.iter_mut().for_each(|walk| walk.touch(low, high));
    }

    /// Forgets all.
    pub(crate) fn clear(&mut self) {
        self.walks.clear();
    }

    fn begin(&mut self, search: &Search<'_>, last: &[u8], count: usize) -> &mut Walk {
        if self.walks.len() >= WALKS {
            self.walks.remove(0);
        }
        self.walks.push(Walk {
            forward: search.forward,
            parent: search.granularity.parent(),
            last: last.to_vec(),
            count,
            bound: Vec::new(),
            with_values: false,
            stretches: VecDeque::new(),
            bytes: Vec::new(),
            read: Instant::now(),
        });
        let last = self.walks.len() - 1;
        &mut self.walks[last]
    }
}

#[cfg(test)]
mod tests {
    use perilune_store::Granularity;

    use super::*;

    fn search<'s>(forward: bool, from: &'s [u8], bound: &'s [u8]) -> Search<'s> {
        Search { forward, from, inclusive: false, bound, with_value: false, granularity: Granularity::Whole }
    }

    fn filled(forward: bool, from: &[u8], bound: &[u8], keys: &[&[u8]]) -> Ahead {
        let mut ahead = Ahead::default();
        let found: Vec<Step> = keys.iter().map(|key| (key.to_vec(), None)).collect();
        ahead.fill(&search(forward, from, bound), bound, FIRST, &found, true);
        ahead
    }

    fn keys(ahead: &mut Ahead, forward: bool, from: &[u8], bound: &[u8]) -> Option<Option<Vec<u8>>> {
        ahead.answer(&search(forward, from, bound), false).map(|found| found.map(|(key, _)| key.to_vec()))
    }

    #[test]
    fn a_page_answers_what_begins_in_it_and_nothing_else() {
        let mut ahead = filled(true, b"b", b"x", &[b"d", b"f"]);
        assert_eq!(keys(&mut ahead, true, b"a", b"x"), None);
        assert_eq!(keys(&mut ahead, true, b"c", b"x"), Some(Some(b"d".to_vec())));
        assert_eq!(keys(&mut ahead, true, b"c", b"d"), Some(None));
        assert_eq!(keys(&mut ahead, true, b"d", b"x"), Some(Some(b"f".to_vec())));
        assert_eq!(keys(&mut ahead, true, b"f", b"x"), Some(None));
        assert_eq!(keys(&mut ahead, true, b"f", b"y"), None);
        assert_eq!(keys(&mut ahead, true, b"f", b""), None);
        assert_eq!(keys(&mut ahead, false, b"f", b""), None);
        let mut ahead = filled(false, b"x", b"b", &[b"f", b"d"]);
        assert_eq!(keys(&mut ahead, false, b"y", b"b"), None);
        assert_eq!(keys(&mut ahead, false, b"g", b"b"), Some(Some(b"f".to_vec())));
        assert_eq!(keys(&mut ahead, false, b"f", b"b"), Some(Some(b"d".to_vec())));
        assert_eq!(keys(&mut ahead, false, b"d", b"c"), Some(None));
        assert_eq!(keys(&mut ahead, false, b"d", b"a"), None);
    }

    #[test]
    fn what_the_session_changes_is_not_known() {
        let mut ahead = filled(true, b"b", b"x", &[b"d", b"f", b"h"]);
        ahead.touch(b"b", b"b");
        assert_eq!(keys(&mut ahead, true, b"b", b"x"), Some(Some(b"d".to_vec())));
        ahead.touch(b"g", b"g");
        assert_eq!(keys(&mut ahead, true, b"d", b"x"), Some(Some(b"f".to_vec())));
        assert_eq!(keys(&mut ahead, true, b"f", b"x"), None);
        let mut ahead = filled(false, b"x", b"b", &[b"h", b"f", b"d"]);
        ahead.touch(b"g", b"g\xFF");
        assert_eq!(keys(&mut ahead, false, b"x", b"b"), Some(Some(b"h".to_vec())));
        assert_eq!(keys(&mut ahead, false, b"h", b"b"), None);
        let mut ahead = filled(true, b"b", b"x", &[]);
        ahead.touch(b"c", b"c");
        assert_eq!(keys(&mut ahead, true, b"b", b"x"), None);
    }

    #[test]
    fn the_own_value_of_a_child_comes_with_a_key_below_it() {
        let step = |from, with_value| Search {
            granularity: Granularity::Entry(1),
            with_value,
            ..search(false, from, b"p\0")
        };
        // A name of one byte, and integers: 3 has a value of its own, 2 has none.
        let below = |child: u8| [b'p', child, 0xF0, b'x', 0];
        let page = |with_value| {
            let mut ahead = Ahead::default();
            let own = if with_value { b"own".to_vec() } else { Vec::new() };
            let found = vec![(below(0x26).to_vec(), Some(own)), (below(0x24).to_vec(), None)];
            ahead.fill(&step(b"p\xFF", with_value), b"p\0", FIRST, &found, true);
            assert!(ahead.answer(&step(b"p\xFF", with_value), false).is_some());
            ahead
        };
        let mut ahead = page(true);
        assert_eq!(ahead.own_value(b"p\x26", true), Some(Some(b"own".to_vec())));
        assert_eq!(ahead.own_value(b"p\x24", true), None);
        assert!(ahead.answer(&step(b"p\x26", true), false).is_some());
        assert_eq!(ahead.own_value(b"p\x24", true), Some(None));
        let mut ahead = page(false);
        assert_eq!(ahead.own_value(b"p\x26", true), None);
        assert_eq!(ahead.own_value(b"p\x26", false), Some(Some(Vec::new())));
        // The session sets the value itself.
        ahead.touch(b"p\x24", b"p\x24");
        assert_eq!(ahead.own_value(b"p\x26", false), Some(Some(Vec::new())));
        assert_eq!(ahead.answer(&step(b"p\x26", false), false), None);
        ahead.touch(b"p\x26", b"p\x26");
        assert_eq!(ahead.own_value(b"p\x26", false), None);
    }

    #[test]
    fn what_is_asked_anew_is_not_known() {
        let step = |ahead: &mut Ahead, from| {
            ahead.answer(&search(true, from, b"x"), true).map(|found| found.unwrap().0.to_vec())
        };
        let mut ahead = filled(true, b"b", b"x", &[b"d", b"f", b"h"]);
        // No walk has come to `e`.
        assert_eq!(step(&mut ahead, b"e"), None);
        assert_eq!(keys(&mut ahead, true, b"b", b"x"), Some(Some(b"d".to_vec())));
        assert_eq!(step(&mut ahead, b"d"), Some(b"f".to_vec()));
        // What it has passed is no matter, what is to come is.
        ahead.note(&search(true, b"c", b"x"), Some(b"f"));
        assert_eq!(step(&mut ahead, b"f"), Some(b"h".to_vec()));
        let mut ahead = filled(true, b"b", b"x", &[b"d", b"f", b"h"]);
        assert_eq!(keys(&mut ahead, true, b"b", b"x"), Some(Some(b"d".to_vec())));
        ahead.note(&search(true, b"e", b"x"), Some(b"f"));
        assert_eq!(step(&mut ahead, b"d"), None);
    }

    #[test]
    fn pages_grow_while_a_walk_goes_on() {
        let mut ahead = Ahead::default();
        assert_eq!(ahead.page_for(&search(true, b"a", b"x")), None);
        ahead.note(&search(true, b"a", b"x"), Some(b"b"));
        assert_eq!(ahead.page_for(&search(true, b"a", b"x")), None);
        assert_eq!(ahead.page_for(&search(true, b"b", b"x")), Some(FIRST));
        assert_eq!(ahead.page_for(&search(false, b"b", b"")), None);
        ahead.fill(&search(true, b"b", b"x"), b"x", FIRST, &[(b"c".to_vec(), None)], false);
        assert_eq!(keys(&mut ahead, true, b"b", b"x"), Some(Some(b"c".to_vec())));
        assert_eq!(ahead.page_for(&search(true, b"c", b"x")), Some(4 * FIRST));
    }
}
