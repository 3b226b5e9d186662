//! Reading the database as it was when a snapshot was taken.
//!
//! The pages of a pinned generation do not change. So a reader looks at no latch, waits for nobody, is never made
//! to start again, and writes nothing. Each reader remembers the last leaf that it read, and begins there.
//!
//! Invariants
//! - What cannot be in a good tree is damage of the file, and an error: no page is trusted.
//! - A page is compared with its sum (`proof`) when a descent comes to it. The leaf that is remembered was, then.
//!
//! Deliberately absent: how a generation is kept (`pin`); the volatile tree, which is in no snapshot.

use std::cell::Cell;
use std::ops::Range;

use perilune_shm::latch::{LatchWord, State};
use perilune_store::{copy_pieces, Entries, Error, Presence, Result, Scan};

use crate::image::Image;
use crate::limits::HEIGHT_MAX;
use crate::page::{self, contains, find, find_child, leaf_count, Page, INNER, LEAF, RECORD_BIG};
use crate::pin::Pin;
use crate::proof;
use crate::session::extent;
use crate::tree::{copy_entries, index_after, place, side_of, Neighbour, Read, Seen, Wanted};

/// A snapshot, and where its reader was last.
pub(crate) struct Snapshot {
    pin: Pin,
    leaf: Cell<u32>,
    /// Leaf and index of the record that was answered last.
    answered: Cell<(u32, usize)>,
}

impl Snapshot {
    pub(crate) fn new(pin: Pin) -> Snapshot {
        let leaf = Cell::new(0);
        Snapshot { pin, leaf, answered: Cell::new((0, 0)) }
    }

    /// What keeps it.
    pub(crate) fn pin(&self) -> &Pin {
        &self.pin
    }

    fn image(&self) -> &Image {
        self.pin.image()
    }

    fn damaged(&self, number: u32, what: &str) -> Error {
        Error::Corrupt { place: format!("{}: page {number}: {what}", self.image().path.display()) }
    }

    /// The leaf that covers `key`, and its page.
    fn leaf_of(&self, key: &[u8]) -> Result<(u32, &Page)> {
        // NB: page 0 is meta, which is none.
        let last = self.image().page(self.leaf.get());
        if self.leaf.get() != 0 && page::kind(last) == LEAF && contains(last, key) {
            return Ok((self.leaf.get(), last));
        }
        let (mut number, mut parent) = (self.pin.root(), None);
        for _ in 0..HEIGHT_MAX {
            let proved = proof::pinned_tree_page(self.image(), number);
            proved.map_err(|error| match parent {
                Some(parent) => proof::with_range(error, parent, number),
                None => error,
            })?;
            let at = self.image().page(number);
            match page::kind(at) {
                LEAF => {
                    self.leaf.set(number);
                    return Ok((number, at));
                }
                INNER => {
                    let (_, child) = find_child(at, key);
                    if u64::from(child) >= self.image().npages() || !Image::is_data_page(child.into()) {
                        return Err(self.damaged(number, "it has a child that is no page"));
                    }
                    (number, parent) = (child, Some(at));
                }
                _ => return Err(self.damaged(number, "it is neither leaf nor inner page")),
            }
        }
        Err(self.damaged(number, "the tree is too high"))
    }

    fn value_into(&self, number: u32, index: usize, value: &mut Vec<u8>) -> Result<()> {
        value.clear();
        let flags = page::append_value(self.image().page(number), index, value);
        if flags & RECORD_BIG != 0 {
            let (len, runs) = extent::parse(self.image(), value)
                .ok_or_else(|| self.damaged(number, "a record lists bad runs"))?;
            value.clear();
            runs.iter().try_for_each(|run| proof::pinned_run(self.image(), *run))?;
            extent::append(self.image(), &runs, len, value);
        }
        Ok(())
    }

    /// Copies as much of a value as is wanted.
    fn wanted_into(&self, number: u32, index: usize, wanted: Wanted<'_>) -> Result<()> {
        match wanted.parts() {
            (out, usize::MAX) => self.value_into(number, index, out),
            (out, most) => self.pieces_into(number, index, std::slice::from_ref(&(0..most)), out).map(drop),
        }
    }

    /// Copies pieces of a value into `out`, and answers how many bytes it has.
    fn pieces_into(
        &self,
        number: u32,
        index: usize,
        pieces: &[Range<usize>],
        out: &mut Vec<u8>,
    ) -> Result<usize> {
        let mut value = Vec::new();
        let flags = page::append_value(self.image().page(number), index, &mut value);
        if flags & RECORD_BIG == 0 {
            copy_pieces(&value, pieces, out);
            return Ok(value.len());
        }
        let (len, runs) = extent::parse(self.image(), &value)
            .ok_or_else(|| self.damaged(number, "a record lists bad runs"))?;
        out.clear();
        for piece in pieces {
            let piece = piece.start..piece.end.min(len);
            let pages = extent::pages_of(&runs, &piece);
            pages.iter().try_for_each(|run| proof::pinned_run(self.image(), *run))?;
            extent::append_piece(self.image(), &runs, piece, out);
        }
        Ok(len)
    }

    /// Copies pieces of the value at `key` into `out`, and answers how many bytes it has; None when there is none.
    ///
    /// # Errors
    /// `Corrupt`.
    pub(crate) fn pieces(
        &self,
        key: &[u8],
        pieces: &[Range<usize>],
        out: &mut Vec<u8>,
    ) -> Result<Option<usize>> {
        let (number, leaf) = self.leaf_of(key)?;
        let found = find(leaf, key);
        if !found.equal {
            return Ok(None);
        }
        self.pieces_into(number, found.index, pieces, out).map(Some)
    }

    /// Copies the value at `key` into `value`; false when there is none.
    ///
    /// # Errors
    /// `Corrupt`.
    pub(crate) fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        let (number, leaf) = self.leaf_of(key)?;
        let found = find(leaf, key);
        value.clear();
        if found.equal {
            self.value_into(number, found.index, value)?;
        }
        Ok(found.equal)
    }

    /// Copies the neighbour of `from` out; false when there is none.
    ///
    /// # Errors
    /// `Corrupt`.
    pub(crate) fn neighbour(
        &self,
        from: &[u8],
        side: Neighbour,
        key: &mut Vec<u8>,
        mut value: Option<Wanted<'_>>,
    ) -> Result<bool> {
        let mut at = match self.beside_answered(from, side) {
            Some(at) => Some(at),
            None => {
                let (number, leaf) = self.leaf_of(from)?;
                self.leaf.set(number);
                place(leaf, from, side).map(|index| (number, index))
            }
        };
        // Each leaf passed is another one, so this ends even in a damaged tree.
        for _ in 0..self.image().npages() {
            if let Some((number, index)) = at {
                page::leaf_key(self.image().page(number), index, key);
                if let Some(wanted) = &mut value {
                    self.wanted_into(number, index, wanted.again())?;
                }
                self.answered.set((number, index));
                return Ok(true);
            }
            let Some((number, leaf)) = self.beyond(side, key)? else { return Ok(false) };
            let slots = leaf_count(leaf);
            let index = if side == Neighbour::Previous { slots.checked_sub(1) } else { Some(0) };
            at = index.filter(|index| *index < slots).map(|index| (number, index));
        }
        Err(self.damaged(self.leaf.get(), "its leaves go round in a circle"))
    }

    /// Reads the entries of one leaf that `scan` asks for.
    ///
    /// # Errors
    /// `Corrupt`.
    pub(crate) fn entries(&self, scan: &Scan<'_>, out: &mut Entries) -> Result<Read> {
        out.clear();
        let side = side_of(scan);
        if side.ends_before(scan.from, scan.bound) {
            return Ok(Read::None);
        }
        let (mut number, mut index) = match scan.after.place as u32 {
            0 => {
                let (number, leaf) = self.leaf_of(scan.from)?;
                (number, place(leaf, scan.from, side))
            }
            number => (number, index_after(self.image().page(number), scan.backwards, scan.after.next)),
        };
        self.leaf.set(number);
        let mut scratch = Vec::new();
        // Each leaf passed is another one, so this ends even in a damaged tree.
        for _ in 0..self.image().npages() {
            if let Some(index) = index {
                // Its word is looked at by nobody.
                let leaf = Seen { number, word: LatchWord::unlocked(State::Tree, 0) };
                return Ok(copy_entries(self.image().page(number), leaf, index, scan, out));
            }
            let Some((beside, leaf)) = self.beyond(side, &mut scratch)? else { return Ok(Read::None) };
            if !side.is_within(&scratch, scan.bound) {
                return Ok(Read::None);
            }
            let slots = leaf_count(leaf);
            number = beside;
            index = if scan.backwards { slots.checked_sub(1) } else { (slots > 0).then_some(0) };
        }
        Err(self.damaged(self.leaf.get(), "its leaves go round in a circle"))
    }

    /// The wanted record, if it stands beside the one that was answered last.
    fn beside_answered(&self, from: &[u8], side: Neighbour) -> Option<(u32, usize)> {
        let (number, index) = self.answered.get();
        if number == 0 {
            return None;
        }
        let leaf = self.image().page(number);
        let found = match side {
            Neighbour::Next => page::next_is(leaf, index, from, false),
            Neighbour::AtOrNext => page::next_is(leaf, index, from, true),
            Neighbour::Previous => page::previous_is(leaf, index, from),
        };
        self.leaf.set(number);
        found.map(|index| (number, index))
    }

    /// The leaf beside the last one, or None at the tree's edge. `scratch` is overwritten.
    fn beyond(&self, side: Neighbour, scratch: &mut Vec<u8>) -> Result<Option<(u32, &Page)>> {
        let last = self.image().page(self.leaf.get());
        if side == Neighbour::Previous {
            page::lo_fence(last, scratch);
        } else {
            page::hi_fence(last, scratch);
        }
        if scratch.is_empty() {
            return Ok(None);
        }
        if side != Neighbour::Previous {
            // The smallest key above the inclusive fence.
            scratch.push(0);
        }
        self.leaf_of(scratch).map(Some)
    }

    /// What lies at `key`. `scratch` is overwritten.
    ///
    /// # Errors
    /// `Corrupt`.
    pub(crate) fn presence(&self, key: &[u8], scratch: &mut Vec<u8>) -> Result<Presence> {
        let mut found = self.neighbour(key, Neighbour::AtOrNext, scratch, None)?;
        let value = found && scratch == key;
        if value {
            found = self.neighbour(key, Neighbour::Next, scratch, None)?;
        }
        Ok(Presence { value, descendants: found && scratch.starts_with(key) })
    }
}
