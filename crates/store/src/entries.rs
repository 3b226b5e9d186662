//! Entries that stand one behind another, read together, so that whoever walks over many asks the store once for all that
//! lie in one place.
//!
//! A walker asks for some ([`crate::Bulk::entries`]) and steps through them in its own memory. Before each step it asks
//! whether they are still what the store would read ([`crate::Bulk::are_current`]); if not, it asks for others, from the
//! key at which it stands.
//!
//! Invariants
//! - All of one reading stood in the store at one moment, side by side: no key of the store lies between two of them.
//! - They stand in the order in which the walker goes.
//! - A key or value is lent until the next step or reading.
//!
//! Deliberately absent: which entries a walker wants, and how many (it says so in [`Scan`]).

/// Which entries [`crate::Bulk::entries`] is to read.
#[derive(Clone, Copy, Debug)]
pub struct Scan<'a> {
    /// Where it begins; backwards it does not count itself.
    pub from: &'a [u8],
    /// Whether an entry at `from` counts; forwards only.
    pub inclusive: bool,
    /// Where it ends, which is not empty: forwards it does not count, backwards it does.
    pub bound: &'a [u8],
    /// Whether it goes towards smaller keys.
    pub backwards: bool,
    /// Whether values are wanted.
    pub values: bool,
    /// The highest number of entries to be read. The store may read fewer, but at least one if there is any.
    pub most: usize,
    /// If this goes on behind the last entry of an earlier reading: that reading's [`Entries::origin`], by which the store finds
    /// the place again without a search. Else the default.
    pub after: Origin,
}

/// Where and when a store has read entries, in its own terms; the default says nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// The session that has read them; 0: nobody.
    pub session: u64,
    /// The state of that session.
    pub moment: u64,
    /// Where they lay in the store, as the number of a leaf.
    pub place: u64,
    /// The version that this place had.
    pub version: u64,
    /// Where in that place the walk goes on.
    pub next: usize,
}

/// Where the key and the value of an entry end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ends {
    /// The key begins where the value before it ends.
    pub key: u32,
    /// The value begins where its key ends.
    pub value: u32,
}

/// Entries that were read together, and the one at which a walker stands.
#[derive(Clone, Debug, Default)]
pub struct Entries {
    /// Keys and values, one behind the other, and perhaps something behind them.
    bytes: Vec<u8>,
    ends: Vec<Ends>,
    /// How many were stepped to.
    at: usize,
    /// Where the present one begins.
    start: usize,
    ends_here: Ends,
    is_single: bool,
    /// A single entry, whose bytes the store copies as a whole.
    key: Vec<u8>,
    value: Vec<u8>,
    origin: Origin,
}

impl Entries {
    /// Where they come from.
    #[inline]
    #[must_use]
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// Steps to the next entry; false, and it stands where it stood, at the end.
    #[inline]
    pub fn advance(&mut self) -> bool {
        let Some(ends) = self.ends.get(self.at) else { return false };
        self.start = self.ends_here.value as usize;
        self.ends_here = *ends;
        self.at += 1;
        true
    }

    /// Steps to the next entry whose key does not begin with the first `length` bytes of this one's; false, and it stands
    /// where it stood, if there is none.
    #[inline]
    pub fn advance_past(&mut self, length: usize) -> bool {
        let before = (self.at, self.start, self.ends_here);
        // NB: who has any to step to is no single one.
        let own = self.start;
        while self.advance() {
            let key = self.bytes.get(self.start..self.ends_here.key as usize).unwrap_or_default();
            let own = self.bytes.get(own..own + length).unwrap_or_default();
            // Of siblings mostly the last bytes differ.
            let begins = match (key.get(..length), length.checked_sub(1)) {
                (Some(begin), Some(last)) => begin.get(last) == own.get(last) && begin == own,
                (begin, _) => begin.is_some(),
            };
            if !begins {
                return true;
            }
        }
        (self.at, self.start, self.ends_here) = before;
        false
    }

    /// Shows the entries behind the present one, key and value, in their order to `take` until it answers false, and steps to
    /// the last one that it took; how many it took.
    #[inline]
    pub fn take_while(&mut self, mut take: impl FnMut(&[u8], &[u8]) -> bool) -> usize {
        let behind = self.ends.get(self.at..).unwrap_or_default();
        let (mut start, mut here, mut taken) = (self.start, self.ends_here, 0);
        for ends in behind {
            let Some(entry) = self.bytes.get(here.value as usize..ends.value as usize) else { break };
            let Some((key, value)) = entry.split_at_checked((ends.key - here.value) as usize) else { break };
            if !take(key, value) {
                break;
            }
            (start, here) = (here.value as usize, *ends);
            taken += 1;
        }
        (self.start, self.ends_here) = (start, here);
        self.at += taken;
        taken
    }

    /// The present entry, key and value, and those behind it, without a step.
    pub fn from_here(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let behind = self.ends.get(self.at..).unwrap_or_default();
        let mut start = self.ends_here.value as usize;
        let behind = behind.iter().map_while(move |ends| {
            let entry = self.bytes.get(start..ends.value as usize)?;
            let parts = entry.split_at_checked((ends.key as usize).checked_sub(start)?);
            start = ends.value as usize;
            parts
        });
        let is_there = self.is_single || self.at > 0;
        is_there.then(|| (self.key(), self.value())).into_iter().chain(behind)
    }

    /// How many entries it can still step to.
    #[inline]
    #[must_use]
    pub fn ahead(&self) -> usize {
        self.ends.len() - self.at
    }

    /// The key of the present entry; empty before the first.
    #[inline]
    #[must_use]
    pub fn key(&self) -> &[u8] {
        if self.is_single {
            return &self.key;
        }
        self.bytes.get(self.start..self.ends_here.key as usize).unwrap_or_default()
    }

    /// Its value, if values were read.
    #[inline]
    #[must_use]
    pub fn value(&self) -> &[u8] {
        if self.is_single {
            return &self.value;
        }
        self.bytes.get(self.ends_here.key as usize..self.ends_here.value as usize).unwrap_or_default()
    }

    /// Forgets all entries, and lends the buffers of a single one to be filled: it then stands there.
    #[inline]
    pub fn single(&mut self) -> (&mut Vec<u8>, &mut Vec<u8>) {
        self.clear();
        self.is_single = true;
        (&mut self.key, &mut self.value)
    }

    /// Forgets all entries.
    #[inline]
    pub fn clear(&mut self) {
        self.ends.clear();
        (self.at, self.start, self.ends_here) = (0, 0, Ends::default());
        (self.is_single, self.origin) = (false, Origin::default());
    }

    /// The memory of many entries, for the store to add to: bytes behind the last end are of no account.
    #[inline]
    pub fn many(&mut self) -> (&mut Vec<u8>, &mut Vec<Ends>) {
        (&mut self.bytes, &mut self.ends)
    }

    /// Says where they come from.
    #[inline]
    pub fn come_from(&mut self, origin: Origin) {
        self.origin = origin;
    }

    /// Keys and values of all entries, one behind the other, and their ends.
    #[must_use]
    pub fn all(&self) -> (&[u8], &[Ends]) {
        let end = self.ends.last().map_or(0, |ends| ends.value as usize);
        (self.bytes.get(..end).unwrap_or_default(), &self.ends)
    }

    /// The key of the last of many entries.
    #[must_use]
    pub fn last_key(&self) -> &[u8] {
        let Some((last, before)) = self.ends.split_last() else { return &[] };
        let start = before.last().map_or(0, |ends| ends.value as usize);
        self.bytes.get(start..last.key as usize).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_walker_steps_to_each_entry_and_stays_at_the_last() {
        let mut entries = Entries::default();
        assert!(!entries.advance() && entries.key().is_empty());
        let (bytes, ends) = entries.many();
        bytes.extend_from_slice(b"a1bb22c-behind");
        ends.extend([(1, 2), (4, 6), (7, 7)].map(|(key, value)| Ends { key, value }));
        assert_eq!((entries.last_key(), entries.all().0), (&b"c"[..], &b"a1bb22c"[..]));
        for (key, value) in [("a", "1"), ("bb", "22"), ("c", "")] {
            assert!(entries.advance());
            assert_eq!((entries.key(), entries.value()), (key.as_bytes(), value.as_bytes()));
        }
        assert!(!entries.advance() && entries.ahead() == 0);
        assert_eq!(entries.key(), b"c");
    }

    #[test]
    fn a_walker_steps_over_what_begins_as_its_entry() {
        let mut entries = Entries::default();
        let (bytes, ends) = entries.many();
        // a, ab, ac, bx, b, c, ac
        bytes.extend_from_slice(b"aabacbxbcac");
        ends.extend([1, 3, 5, 7, 8, 9, 11].map(|end| Ends { key: end, value: end }));
        assert!(entries.advance() && entries.advance_past(1));
        assert_eq!(entries.key(), b"bx");
        assert!(entries.advance_past(1), "what it begins with itself is one of those, going back");
        assert_eq!((entries.key(), entries.ahead()), (&b"c"[..], 1));
        assert!(entries.advance_past(1));
        assert!(!entries.advance_past(1));
        assert_eq!((entries.key(), entries.ahead()), (&b"ac"[..], 0));
    }

    #[test]
    fn a_walker_takes_those_behind_it_as_long_as_it_wants() {
        let mut entries = Entries::default();
        assert_eq!(entries.take_while(|_, _| true), 0, "there is none");
        let (bytes, ends) = entries.many();
        bytes.extend_from_slice(b"a1bb22c-behind");
        ends.extend([(1, 2), (4, 6), (7, 7)].map(|(key, value)| Ends { key, value }));
        assert_eq!(entries.from_here().next(), Some((&b"a"[..], &b"1"[..])), "it stands before the first");
        assert!(entries.advance());
        let all =
            [("a", "1"), ("bb", "22"), ("c", "")].map(|(key, value)| (key.as_bytes(), value.as_bytes()));
        assert!(entries.from_here().eq(all) && entries.from_here().eq(all), "it has not moved");
        let mut seen = Vec::new();
        let mut take = |key: &[u8], value: &[u8]| {
            seen.push((key.to_vec(), value.to_vec()));
            key != b"c"
        };
        assert_eq!(entries.take_while(&mut take), 1);
        assert_eq!((entries.key(), entries.value(), entries.ahead()), (&b"bb"[..], &b"22"[..], 1));
        assert_eq!(entries.take_while(&mut take), 0, "what was not taken is shown again");
        assert_eq!(seen, [("bb", "22"), ("c", ""), ("c", "")].map(|(key, value)| (key.into(), value.into())));
        assert_eq!(entries.take_while(|_, _| true), 1);
        assert_eq!((entries.key(), entries.ahead()), (&b"c"[..], 0));
        let (key, _) = entries.single();
        key.extend_from_slice(b"one");
        assert_eq!(entries.from_here().collect::<Vec<_>>(), [(&b"one"[..], &b""[..])]);
        assert_eq!(entries.take_while(|_, _| true), 0);
        assert_eq!(entries.key(), b"one");
    }

    #[test]
    fn a_single_entry_takes_the_place_of_many() {
        let mut entries = Entries::default();
        let (bytes, ends) = entries.many();
        bytes.extend_from_slice(b"kv");
        ends.push(Ends { key: 1, value: 2 });
        entries.come_from(Origin { session: 7, ..Origin::default() });
        let (key, value) = entries.single();
        key.extend_from_slice(b"one");
        value.extend_from_slice(b"two");
        assert_eq!((entries.key(), entries.value()), (&b"one"[..], &b"two"[..]));
        assert!(!entries.advance() && *entries.origin() == Origin::default());
        entries.clear();
        assert!(entries.key().is_empty() && entries.all().1.is_empty());
    }
}
