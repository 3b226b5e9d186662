//! What a transaction has read, leaf by leaf, and whether it is still one state.
//!
//! Each query is noted with the leaves its answer rests on and a digest of the answer. As long as all
//! leaves have the words under which they were read, everything read was true at one moment: that of
//! the last pass over them. A leaf whose word has changed may be forgiven by asking its queries again:
//! if all digests are the same, the new words are noted, and passes go on until one sees no change.
//! Only that pass counts (single re-executions at different moments prove nothing).
//!
//! After NOrec's validation by value (Dalessandro et al., PPoPP 2010).

use std::ops::Range;

use perilune_shm::latch::{self, LatchWord};
use perilune_store::{Entries, Error, Origin, Result, Scan, Span};

use super::bare::{same, BareReads};
use super::spread::Numbered;
use crate::access::Access;
use crate::error::{Attempt, Stop};
use crate::image::Image;
use crate::repair::Patience;
use crate::session::{head_of_session, sessions_ever};
use crate::tree::{self, Neighbour, Read, Reader, Seek, Seen, Wanted, Which};

/// Beyond so many leaves or queries they are looked up by a hash table.
const LINEAR: usize = 16;
/// Rounds of waiting for a foreign latch while latches are held: none of them is one of sleep.
const SPINS_HOLDING: u32 = 150;

/// What was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Ask {
    Value,
    Existence,
    Key(Neighbour),
    /// With the first so many bytes of its value.
    KeyAndValue(Neighbour, usize),
    /// How long the value is, and its bytes between two places.
    Piece(usize, usize),
    Count {
        backwards: bool,
        most: u64,
    },
    /// All entries between a key and another, with their values or without.
    Entries(Neighbour, bool),
}

#[derive(Debug)]
struct Query {
    ask: Ask,
    which: Which,
    key: Range<usize>,
    /// Where neighbours are looked for; empty: anywhere.
    bound: Range<usize>,
    digest: u64,
    /// Indices of leaves, in `touches`.
    leaves: Range<usize>,
}

/// A digest of what tells queries apart.
fn place_of(ask: Ask, which: Which, keys: [&[u8]; 2]) -> u64 {
    let (kind, most) = match ask {
        Ask::Value => (0, 0),
        Ask::Existence => (1, 0),
        Ask::Key(side) => (2 + side as u64, 0),
        Ask::KeyAndValue(side, most) => (8 + side as u64, most as u64),
        Ask::Piece(from, to) => (16, (from as u64) << 32 ^ to as u64),
        Ask::Count { backwards, most } => (14 + u64::from(backwards), most),
        Ask::Entries(side, values) => (18 + side as u64, values.into()),
    };
    digest(true, keys)
        ^ (kind << 1 | which as u64).wrapping_add(most << 6).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// The read set.
#[derive(Default)]
pub(crate) struct Reads {
    leaves: Vec<Seen>,
    index: Numbered<usize>,
    queries: Vec<Query>,
    /// Where queries stand, as soon as there are more than [`LINEAR`].
    known: Numbered<usize>,
    touches: Vec<usize>,
    keys: Vec<u8>,
    /// Where the heads of all sessions stood before the last good pass.
    heads: Heads,
    /// Those of a one-shot transaction that goes on as this one: nobody knows what was asked there, so that others change one
    /// is a conflict.
    pub(super) bare: BareReads,
}

/// Where the heads of all sessions stood: as long as none has moved, nothing was published.
#[derive(Default)]
pub(super) struct Heads(Vec<u64>);

impl Heads {
    /// Forgets them.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// Whether they stand where they stood when this was asked last.
    pub(super) fn are_same(&mut self, image: &Image) -> bool {
        let high = usize::from(sessions_ever(image));
        let mut same = self.0.len() == high;
        self.0.resize(high, 0);
        for (id, seen) in (1..).zip(&mut self.0) {
            let head = head_of_session(image, id);
            same &= head == *seen;
            *seen = head;
        }
        same
    }
}

/// A digest of an answer: found or not, and bytes, 8 at a time.
pub(crate) fn digest(found: bool, parts: [&[u8]; 2]) -> u64 {
    let mut hash = 0x9e37_79b9_7f4a_7c15 ^ u64::from(found);
    let mut add = |word: u64| {
        let product = u128::from(hash ^ word) * 0xa076_1d64_78bd_642f_u128;
        hash = (product as u64 ^ (product >> 64) as u64).wrapping_add(0xe703_7ed1_a0b4_28db);
    };
    for part in parts {
        add(part.len() as u64);
        let mut chunks = part.chunks_exact(8);
        for chunk in &mut chunks {
            add(chunk.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)));
        }
        add(chunks.remainder().iter().fold(0, |word, byte| word << 8 | u64::from(*byte)));
    }
    hash
}

/// A digest of many entries: one of their bytes, and one of where they end, each in turns that the processor takes at once.
pub(crate) fn entries_digest(entries: &Entries) -> u64 {
    let add = |hash: u64, word: u64| {
        let product = u128::from(hash ^ word) * 0xa076_1d64_78bd_642f_u128;
        (product as u64 ^ (product >> 64) as u64).wrapping_add(0xe703_7ed1_a0b4_28db)
    };
    let (bytes, ends) = entries.all();
    let (mut even, mut odd, mut places) = (0x9e37_79b9_7f4a_7c15, 1, 2);
    let (pairs, rest) = bytes.as_chunks::<16>();
    for pair in pairs {
        let pair = u128::from_le_bytes(*pair);
        (even, odd) = (add(even, pair as u64), add(odd, (pair >> 64) as u64));
    }
    for end in ends {
        places = add(places, u64::from(end.key) << 32 | u64::from(end.value));
    }
    digest(true, [rest, &[even, odd, places].map(u64::to_le_bytes).concat()])
}

/// A digest of the answer to a count.
pub(crate) fn count_digest(count: u64, span: &Span<'_>, key: &[u8]) -> u64 {
    // NB: otherwise the buffer holds what it held before.
    let last = if count == span.most { key } else { &[] };
    digest(true, [&count.to_le_bytes(), last])
}

/// A digest of how long a value is, if there is one, and of a piece of it.
pub(crate) fn piece_digest(bytes: Option<usize>, piece: &[u8]) -> u64 {
    digest(bytes.is_some(), [&bytes.unwrap_or(0).to_le_bytes(), piece])
}

impl Reads {
    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.leaves.clear();
        self.index.clear();
        self.queries.clear();
        self.known.clear();
        self.touches.clear();
        self.keys.clear();
        self.heads.clear();
        self.bare.clear();
    }

    /// Notes the leaves of a one-shot transaction that goes on as this one, which has read nothing yet.
    pub(super) fn rest_on_leaves(&mut self, leaves: impl Iterator<Item = Seen>) {
        debug_assert!(self.queries.is_empty() && self.leaves.is_empty());
        self.bare.note(leaves);
    }

    /// Number of leaves read.
    pub(crate) fn leaf_count(&self) -> usize {
        self.leaves.len() + self.bare.len()
    }

    /// About how many bytes it takes.
    pub(super) fn bytes(&self) -> usize {
        self.leaves.capacity() * size_of::<Seen>()
            + self.queries.capacity() * size_of::<Query>()
            + self.touches.capacity() * size_of::<usize>()
            + self.keys.capacity()
            + self.bare.bytes()
    }

    /// Gives back what only adding to it needs.
    pub(super) fn settle(&mut self) {
        self.known = Numbered::default();
        self.heads = Heads::default();
        self.queries.shrink_to_fit();
        self.touches.shrink_to_fit();
        self.keys.shrink_to_fit();
    }

    /// Whether any leaf no longer has its word; `me` as in [`Reads::pass`].
    pub(super) fn has_changed(&self, access: &Access, me: u16) -> bool {
        !self.bare.hold(access, me) || (0..self.leaves.len()).any(|at| !self.holds(access, at, me))
    }

    /// As [`Reads::pass`], for what is kept for long: each query that is asked again adds to what is noted.
    ///
    /// # Errors
    /// As there.
    pub(super) fn pass_again(&mut self, access: &Access, me: u16) -> Result<()> {
        let before = self.touches.len();
        let passed = self.pass(access, me);
        if self.touches.len() != before {
            self.tidy();
        }
        passed
    }

    /// Forgets where queries rested before, once that is most of what is noted.
    fn tidy(&mut self) {
        let rests: usize = self.queries.iter().map(|query| query.leaves.len()).sum();
        if self.touches.len() <= 2 * rests + 1_024 {
            return;
        }
        let mut touches = Vec::with_capacity(rests);
        for query in &mut self.queries {
            let first = touches.len();
            touches.extend_from_slice(&self.touches[query.leaves.clone()]);
            query.leaves = first..touches.len();
        }
        self.touches = touches;
    }

    /// Number of different queries that are noted.
    #[cfg(test)]
    pub(crate) fn query_count(&self) -> usize {
        self.queries.len()
    }

    /// The leaf on which one of the last queries for exactly `key` rests: where a write of it will go.
    pub(crate) fn leaf_of(&self, which: Which, key: &[u8]) -> Option<u32> {
        let recent = self.queries.iter().rev().take(LINEAR);
        let query =
            recent.into_iter().find(|query| query.which == which && self.keys[query.key.clone()] == *key)?;
        let leaf = *self.touches.get(query.leaves.start)?;
        Some(self.leaves[leaf].number)
    }

    fn find(&mut self, number: u32) -> Option<usize> {
        if self.leaves.len() <= LINEAR {
            return self.leaves.iter().position(|seen| seen.number == number);
        }
        if self.index.len() != self.leaves.len() {
            self.index =
                self.leaves.iter().enumerate().map(|(at, seen)| (u64::from(seen.number), at)).collect();
        }
        self.index.get(&u64::from(number)).copied()
    }

    /// Notes a query, for a key within a bound, and the leaves it rests on; true when a pass is due. What was asked
    /// before, and answered so, is noted once.
    pub(crate) fn note(
        &mut self,
        ask: Ask,
        which: Which,
        [key, bound]: [&[u8]; 2],
        digest: u64,
        visited: &[Seen],
    ) -> bool {
        let first = self.touches.len();
        let due = self.touch(visited);
        let leaves = first..self.touches.len();
        // NB: few are compared one by one; a digest would cost more.
        let place = (self.queries.len() > LINEAR).then(|| place_of(ask, which, [key, bound]));
        let noted = self.noted(ask, which, place, [key, bound]);
        if let Some(at) = noted.filter(|at| self.queries[*at].digest == digest) {
            let known = self.queries[at].leaves.clone();
            if self.touches[known] == self.touches[leaves.clone()] {
                self.touches.truncate(first);
            } else {
                self.queries[at].leaves = leaves;
            }
            return due;
        }
        let start = self.keys.len();
        self.keys.extend_from_slice(key);
        let middle = self.keys.len();
        self.keys.extend_from_slice(bound);
        let (key, bound) = (start..middle, middle..self.keys.len());
        if let Some(place) = place {
            self.known.insert(place, self.queries.len());
        }
        self.queries.push(Query { ask, which, key, bound, digest, leaves });
        due
    }

    /// The query that asks just this, if there is one; `place` once there are many.
    fn noted(
        &mut self,
        ask: Ask,
        which: Which,
        place: Option<u64>,
        [key, bound]: [&[u8]; 2],
    ) -> Option<usize> {
        let Reads { queries, known, keys, .. } = self;
        let is_same = |query: &Query| {
            (query.ask, query.which) == (ask, which)
                && keys[query.key.clone()] == *key
                && keys[query.bound.clone()] == *bound
        };
        let Some(place) = place else { return queries.iter().rposition(is_same) };
        if known.is_empty() {
            let place_of = |query: &Query| {
                let words = [&keys[query.key.clone()], &keys[query.bound.clone()]];
                place_of(query.ask, query.which, words)
            };
            known.extend(queries.iter().enumerate().map(|(at, query)| (place_of(query), at)));
        }
        known.get(&place).copied().filter(|at| is_same(&queries[*at]))
    }

    /// Adds leaves to `touches`; true when one is new or has another word than noted.
    fn touch(&mut self, visited: &[Seen]) -> bool {
        let mut due = false;
        for seen in visited {
            match self.find(seen.number) {
                Some(at) => {
                    due |= !same(self.leaves[at].word, seen.word);
                    self.touches.push(at);
                }
                None => {
                    due |= self.leaf_count() > 0;
                    if !self.index.is_empty() {
                        self.index.insert(u64::from(seen.number), self.leaves.len());
                    }
                    self.touches.push(self.leaves.len());
                    self.leaves.push(*seen);
                }
            }
        }
        due
    }

    /// Checks that all that was read is one state, while the body runs. If no session has published
    /// since before the last good pass, nothing has changed, and a look at the leaves is spared. (Not
    /// enough at the commit: others that have latched a leaf we read may be about to publish.)
    ///
    /// # Errors
    /// As [`Reads::pass`].
    pub(crate) fn follow(&mut self, access: &Access) -> Result<()> {
        let image = &access.seat.image;
        let high = usize::from(sessions_ever(image));
        if high >= self.leaf_count() {
            return self.pass(access, 0);
        }
        if self.heads.are_same(image) {
            return Ok(());
        }
        self.pass(access, 0).inspect_err(|_| self.heads.clear())
    }

    /// Checks that all that was read is one state. `me`: the session whose own latches do not count,
    /// while it holds some; else 0.
    ///
    /// # Errors
    /// `Conflict` when it is not.
    pub(crate) fn pass(&mut self, access: &Access, me: u16) -> Result<()> {
        for _ in 0..1000 {
            let changed: Vec<usize> =
                (0..self.leaves.len()).filter(|at| !self.holds(access, *at, me)).collect();
            let are_bare_same = self.bare.hold(access, me);
            if changed.is_empty() && are_bare_same {
                return Ok(());
            }
            self.bare.wait(access, me, SPINS_HOLDING)?;
            self.ask_again(access, &changed, me)?;
        }
        Err(Error::Conflict)
    }

    /// Whether a leaf still has its word.
    fn holds(&self, access: &Access, at: usize, me: u16) -> bool {
        let seen = self.leaves[at];
        let now = latch::load(access.seat.image.latch(seen.number));
        if now.locked() && !(me != 0 && now.is_locked_by(me)) {
            return false;
        }
        same(now, seen.word)
    }

    /// Asks all queries again that rest on changed leaves.
    fn ask_again(&mut self, access: &Access, changed: &[usize], me: u16) -> Result<()> {
        let mut again: Vec<(usize, Vec<Seen>)> = Vec::new();
        let mut is_changed = vec![false; self.leaves.len()];
        changed.iter().for_each(|at| is_changed[*at] = true);
        for (at, query) in self.queries.iter().enumerate() {
            if !self.touches[query.leaves.clone()].iter().any(|leaf| is_changed[*leaf]) {
                continue;
            }
            let key = [&self.keys[query.key.clone()], &self.keys[query.bound.clone()]];
            let (digest, visited) = ask(access, query.ask, query.which, key, me)?;
            if digest != query.digest {
                return Err(Error::Conflict);
            }
            again.push((at, visited));
        }
        // NB: a leaf that no query rests on any more keeps its newest word and does no harm.
        for at in changed {
            let number = self.leaves[*at].number;
            self.leaves[*at].word = latch::load(access.seat.image.latch(number));
        }
        // NB: of two queries that met a leaf under two words the earlier word is noted: what that query
        // was told need not hold under the later one, so the next pass must see the leaf as changed.
        let mut met: Numbered<LatchWord> = Numbered::default();
        for seen in again.iter().flat_map(|(_, visited)| visited) {
            if let Some(leaf) = self.find(seen.number) {
                let word = met.entry(leaf as u64).or_insert(seen.word);
                if seen.word.version() < word.version() {
                    *word = seen.word;
                }
                self.leaves[leaf].word = *word;
            }
        }
        for (at, visited) in again {
            let first = self.touches.len();
            self.touch(&visited);
            self.queries[at].leaves = first..self.touches.len();
        }
        Ok(())
    }
}

/// Asks the trees, without an overlay. Answers the digest and the leaves it rests on.
fn ask(
    access: &Access,
    ask: Ask,
    which: Which,
    [key, bound]: [&[u8]; 2],
    me: u16,
) -> Result<(u64, Vec<Seen>)> {
    let (mut found_key, mut value, mut visited) = (Vec::new(), Vec::new(), Vec::new());
    let image = &access.seat.image;
    let reader = Reader { image, fingers: &access.fingers, which, me };
    let attempt = || {
        visited.clear();
        value.clear();
        let found = match ask {
            Ask::Value => tree::get(reader, key, &mut value, &mut visited)?,
            Ask::Existence => tree::has_value(reader, key, &mut visited)?,
            Ask::Key(side) => {
                let out = &mut found_key;
                tree::neighbour(reader, Seek { from: key, side, bound }, out, None, &mut visited)?
            }
            Ask::KeyAndValue(side, most) => {
                let (out, value) = (&mut found_key, Some(Wanted::first(&mut value, most)));
                tree::neighbour(reader, Seek { from: key, side, bound }, out, value, &mut visited)?
            }
            Ask::Piece(from, to) => {
                let piece = from..to;
                let pieces = std::slice::from_ref(&piece);
                let bytes = tree::pieces(reader, key, pieces, &mut value, &mut visited)?;
                return Ok(piece_digest(bytes, &value));
            }
            Ask::Entries(side, values) => {
                return ask_entries(reader, Seek { from: key, side, bound }, values, &mut visited);
            }
            Ask::Count { backwards, most } => {
                let span = Span { low: key, high: bound, backwards, most };
                let count = tree::count(image, which, &span, me, &mut found_key, &mut visited)?;
                return Ok(count_digest(count, &span, &found_key));
            }
        };
        if !found {
            found_key.clear();
            value.clear();
        }
        Ok(digest(found, [&found_key, &value]))
    };
    let digest = if me == 0 { access.read(attempt)? } else { read_holding(access, attempt)? };
    Ok((digest, visited))
}

/// Reads all entries between two keys, in as many leaves as they lie in by now.
fn ask_entries(
    reader: Reader<'_>,
    Seek { from, side, bound }: Seek<'_>,
    values: bool,
    visited: &mut Vec<Seen>,
) -> Attempt<u64> {
    let (mut entries, mut from) = (Entries::default(), from.to_vec());
    let (backwards, mut inclusive) = (side == Neighbour::Previous, side == Neighbour::AtOrNext);
    loop {
        let after = Origin::default();
        let scan = Scan { from: &from, inclusive, bound, backwards, values, most: usize::MAX, after };
        match tree::entries(reader, &scan, &mut entries, visited)? {
            Read::Some(..) => entries.last_key().clone_into(&mut from),
            Read::None => break,
            // There was no long value among them.
            Read::Single => return Ok(digest(false, [&[], &[]])),
        }
        inclusive = false;
    }
    visited.iter().try_for_each(|leaf| leaf.check(reader.image))?;
    Ok(entries_digest(&entries))
}

/// Repeats a reading attempt while latches are held: waits only for a moment.
fn read_holding<T>(access: &Access, mut attempt: impl FnMut() -> Attempt<T>) -> Result<T> {
    let mut patience = Patience::new();
    loop {
        match attempt() {
            Ok(result) => return Ok(result),
            Err(Stop::Fail(error)) => return Err(error),
            Err(_) if patience.rounds() >= SPINS_HOLDING => return Err(Error::Conflict),
            Err(stop) => patience.wait_for_stop(&access.seat, stop)?,
        }
    }
}
