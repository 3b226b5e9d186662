//! Reading: single values and their pieces, neighbours, entries read together, counts and estimates.

use std::ops::Range;

use perilune_store::{Entries, Presence, Result, Scan, Span};

use super::Access;
use crate::tree::{self, Groups, Neighbour, Read, Seek, Seen, Visit, Wanted, Which};

impl Access {
    /// Copies the value at `key` into `out`; false when there is none.
    ///
    /// # Errors
    /// I/O and damage; `Busy`, as of everything here.
    #[inline]
    pub(crate) fn get(
        &self,
        which: Which,
        key: &[u8],
        out: &mut Vec<u8>,
        visit: &mut impl Visit,
    ) -> Result<bool> {
        self.read(|| tree::get(self.reader(which), key, out, visit))
    }

    /// Copies pieces of the value at `key` into `out`, and answers how many bytes it has; None when there is none.
    ///
    /// # Errors
    /// I/O and damage only.
    pub(crate) fn pieces(
        &self,
        which: Which,
        key: &[u8],
        pieces: &[Range<usize>],
        out: &mut Vec<u8>,
        visit: &mut impl Visit,
    ) -> Result<Option<usize>> {
        self.read(|| tree::pieces(self.reader(which), key, pieces, out, visit))
    }

    /// As [`perilune_store::Bulk::count_groups`].
    ///
    /// # Errors
    /// I/O and damage only.
    pub(crate) fn count_groups(
        &self,
        which: Which,
        span: &Span<'_>,
        group: &dyn Fn(&[u8]) -> usize,
        key: &mut Vec<u8>,
    ) -> Result<u64> {
        let mut groups = Groups::new(which, span, group);
        while self.read(|| groups.step(&self.seat.image))? {}
        Ok(groups.end(key))
    }

    /// As [`perilune_store::Bulk::estimate`].
    ///
    /// # Errors
    /// I/O and damage only.
    pub(crate) fn estimate(&self, low: &[u8], high: &[u8]) -> Result<u64> {
        self.read(|| tree::estimate(&self.seat.image, Which::Main, low, high))
    }

    /// Whether there is a value at `key`.
    ///
    /// # Errors
    /// I/O and damage only.
    pub(crate) fn has_value(&self, which: Which, key: &[u8], visit: &mut impl Visit) -> Result<bool> {
        self.read(|| tree::has_value(self.reader(which), key, visit))
    }

    /// Copies the neighbour of `from` out; false when there is none within `bound` (empty: anywhere).
    ///
    /// # Errors
    /// I/O and damage only.
    #[inline]
    pub(crate) fn neighbour(
        &self,
        which: Which,
        seek: Seek<'_>,
        key: &mut Vec<u8>,
        mut value: Option<Wanted<'_>>,
        visit: &mut impl Visit,
    ) -> Result<bool> {
        self.read(|| {
            let value = value.as_mut().map(Wanted::again);
            tree::neighbour(self.reader(which), seek, key, value, visit)
        })
    }

    /// Reads the entries of one leaf that `scan` asks for.
    ///
    /// # Errors
    /// I/O and damage only.
    pub(crate) fn entries(
        &self,
        which: Which,
        scan: &Scan<'_>,
        out: &mut Entries,
        visit: &mut impl Visit,
    ) -> Result<Read> {
        self.read(|| {
            out.clear();
            tree::entries(self.reader(which), scan, out, visit)
        })
    }

    /// What lies at `key`, as of one moment. `scratch` is overwritten.
    ///
    /// # Errors
    /// I/O and damage only.
    #[inline]
    pub(crate) fn presence(&self, which: Which, key: &[u8], scratch: &mut Vec<u8>) -> Result<Presence> {
        match self.read(|| tree::presence(self.reader(which), key))? {
            Some(presence) => Ok(presence),
            None => self.presence_beyond(which, key, scratch),
        }
    }

    /// What lies at `key` where more than one leaf has to tell.
    #[cold]
    fn presence_beyond(&self, which: Which, key: &[u8], scratch: &mut Vec<u8>) -> Result<Presence> {
        let image = &self.seat.image;
        let mut visited: Vec<Seen> = Vec::new();
        let end = tree::removal_end(key);
        self.read(|| {
            visited.clear();
            let mut seek = |side, scratch: &mut Vec<u8>| {
                tree::neighbour(
                    self.reader(which),
                    Seek { from: key, side, bound: &end },
                    scratch,
                    None,
                    &mut visited,
                )
            };
            let mut found = seek(Neighbour::AtOrNext, scratch)?;
            let value = found && scratch == key;
            if value {
                found = seek(Neighbour::Next, scratch)?;
            }
            for seen in &visited {
                seen.check(image)?;
            }
            Ok(Presence { value, descendants: found && scratch.starts_with(key) })
        })
    }
}
