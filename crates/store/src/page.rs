//! Ranges of keys, and pages of them: entries that were read at once, in one piece of memory.
//!
//! A loop that asks a store for one key after another pays for a search, or a round trip, each time. A page holds as many
//! entries as are cheap to read together.
//!
//! Example: of `^person` with a million nodes a page has some hundred; the next page is asked for from behind its last key.
//!
//! Invariant: the entries of a page are of one moment.
//!
//! Deliberately absent: how many entries a page has. The back end decides, and [`Page::is_last`] says whether there are
//! more.

/// The first keys of a range, up to a number, counted from either end of it.
#[derive(Clone, Copy, Debug)]
pub struct Span<'a> {
    /// The lowest key that may belong to the range.
    pub low: &'a [u8],
    /// What all keys of the range lie before.
    pub high: &'a [u8],
    /// Whether they are read, or counted, from `high` downwards.
    pub backwards: bool,
    /// The highest number of keys to be read or counted.
    pub most: u64,
}

/// Entries of a range, as [`crate::Session::page`] reads them: keys in the order of the range, each with its value if that was asked
/// for. Its memory is kept for the next page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    bytes: Vec<u8>,
    /// Where the key, and the value behind it, of each entry end in `bytes`.
    ends: Vec<[usize; 2]>,
    is_last: bool,
}

impl Page {
    /// Forgets all entries.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        self.is_last = false;
    }

    /// Appends an entry; for back ends. A value that was not asked for is empty.
    pub fn push(&mut self, key: &[u8], value: &[u8]) {
        self.bytes.extend_from_slice(key);
        let key_end = self.bytes.len();
        self.bytes.extend_from_slice(value);
        self.ends.push([key_end, self.bytes.len()]);
    }

    /// Notes that the range ends with this page; for back ends.
    pub fn end(&mut self) {
        self.is_last = true;
    }

    /// Whether nothing of the range lies behind this page.
    #[must_use]
    pub fn is_last(&self) -> bool {
        self.is_last
    }

    /// How many entries there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// How many bytes its keys and values have.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// The key and the value of an entry.
    #[must_use]
    pub fn entry(&self, index: usize) -> Option<(&[u8], &[u8])> {
        let [key_end, end] = *self.ends.get(index)?;
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before][1]);
        Some((&self.bytes[start..key_end], &self.bytes[key_end..end]))
    }

    /// Keys and values in order.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        (0..self.len()).filter_map(|index| self.entry(index))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_come_back_as_they_were_put() {
        let mut page = Page::default();
        assert!(page.is_empty() && !page.is_last() && page.entry(0).is_none());
        page.push(b"a", b"1");
        page.push(b"bc", b"");
        page.push(b"", b"3");
        page.end();
        let all: Vec<_> = page.iter().collect();
        assert_eq!(all, [(&b"a"[..], &b"1"[..]), (b"bc", b""), (b"", b"3")]);
        assert!((page.len(), page.bytes(), page.is_last()) == (3, 5, true) && page.entry(3).is_none());
        page.clear();
        assert_eq!(page, Page::default());
    }
}
