//! Long values in runs of pages.
//!
//! A value over `INLINE_MAX` bytes does not lie in its leaf. It lies in up to [`VALUE_RUNS`] runs of contiguous
//! pages, each inside one segment; its record holds `{length u64, count u64, runs u64 x count}`. Example: a value
//! of 20,000 bytes takes 3 pages, 900 to 902; its record says 20,000 bytes, one run, 3 pages from 900 on.
//!
//! Invariant: runs are filled while nobody can reach them and never changed after, but by patches (`patch`); a new
//! value gets new runs.
//!
//! What if we are killed? While filling: the pages are locked by us and DEAD, repair frees them. After the record
//! is published: repair makes them EXTENT as we would have.

use std::ops::Range;
use std::sync::atomic::Ordering::Relaxed;

use perilune_store::{Error, Result};

use super::Seat;
use crate::error::Attempt;
use crate::image::layout::Run;
use crate::image::Image;
use crate::limits::{PAGE, PATCH_SLACK, RUN_PAGES, VALUE_MAX, VALUE_RUNS};
use crate::proof;

/// A list of runs as a record's value.
pub(crate) struct List {
    bytes: [u8; 16 + 8 * VALUE_RUNS],
    len: usize,
    pub(crate) runs: Vec<Run>,
}

impl List {
    /// The list for a value of `bytes` bytes in `runs`.
    pub(crate) fn new(bytes: usize, runs: Vec<Run>) -> List {
        let value_bytes = bytes as u64;
        let mut bytes = [0; 16 + 8 * VALUE_RUNS];
        bytes[..8].copy_from_slice(&value_bytes.to_le_bytes());
        bytes[8..16].copy_from_slice(&(runs.len() as u64).to_le_bytes());
        for (index, run) in runs.iter().enumerate().take(VALUE_RUNS) {
            bytes[16 + index * 8..24 + index * 8].copy_from_slice(&run.to_word().to_le_bytes());
        }
        List { bytes, len: 16 + 8 * runs.len().min(VALUE_RUNS), runs }
    }

    /// The list's bytes, as they lie in the record.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// Takes runs for `bytes` bytes, as few as segments allow.
///
/// # Errors
/// `NoSpace` and what else growing can answer; runs taken before stay noted as claimed.
pub(crate) fn take(seat: &Seat, bytes: usize) -> Result<Vec<Run>> {
    let mut left = bytes.div_ceil(PAGE) as u64;
    let mut runs = Vec::new();
    while left > 0 {
        let pages = left.min(RUN_PAGES.into()) as u32;
        match seat.take_run(pages) {
            Ok(run) => runs.push(run),
            Err(error) => {
                seat.give_back_runs(&runs);
                return Err(error);
            }
        }
        left -= u64::from(pages);
    }
    Ok(runs)
}

/// Stores `value` in new runs and answers their list.
///
/// # Errors
/// `ValueTooLong`; as [`take`].
pub(crate) fn store(seat: &Seat, value: &[u8]) -> Result<List> {
    if value.len() > VALUE_MAX {
        return Err(Error::ValueTooLong { bytes: value.len(), limit: VALUE_MAX });
    }
    let runs = take(seat, value.len())?;
    Writer::new(&seat.image, &runs).write(value);
    Ok(List::new(value.len(), runs))
}

/// The length and runs that a record's value lists; None if it is no good list for this image.
pub(crate) fn parse(image: &Image, list: &[u8]) -> Option<(usize, Vec<Run>)> {
    parse_within(image.npages(), list)
}

/// The length and runs that a record's value lists; None if it is no good list for a file of `npages` pages.
pub(crate) fn parse_within(npages: u64, list: &[u8]) -> Option<(usize, Vec<Run>)> {
    let word = |index: usize| Some(u64::from_le_bytes(list.get(index * 8..index * 8 + 8)?.try_into().ok()?));
    let (len, count) = (word(0)? as usize, word(1)? as usize);
    if len > VALUE_MAX || count > VALUE_RUNS || list.len() != 16 + 8 * count {
        return None;
    }
    let runs = (0..count).map(|index| word(2 + index).map(Run::from_word)).collect::<Option<Vec<_>>>()?;
    let pages: u64 = runs.iter().map(|run| u64::from(run.pages)).sum();
    let inside = runs.iter().all(|run| {
        run.pages > 0
            && u64::from(run.first) + u64::from(run.pages) <= npages
            && Image::is_data_page(run.first.into())
    });
    let beyond = pages.checked_sub(len.div_ceil(PAGE) as u64);
    (inside && beyond.is_some_and(|beyond| beyond <= PATCH_SLACK as u64)).then_some((len, runs))
}

/// Appends the first `len` bytes of `runs`, which a leaf names that is still to be checked, to `out`, once their pages are
/// proved.
///
/// # Errors
/// `Restart` if they have been freed; `Corrupt`.
pub(crate) fn append_proved(image: &Image, runs: &[Run], len: usize, out: &mut Vec<u8>) -> Attempt<()> {
    let mut left = len.div_ceil(PAGE) as u32;
    for run in runs {
        let pages = run.pages.min(left);
        proof::run(image, Run { pages, ..*run })?;
        left -= pages;
    }
    append(image, runs, len, out);
    Ok(())
}

/// Appends the first `len` bytes of `runs` to `out`.
pub(crate) fn append(image: &Image, runs: &[Run], len: usize, out: &mut Vec<u8>) {
    let end = out.len() + len;
    out.reserve(len);
    for run in runs {
        let words = (end - out.len()).min(run.pages as usize * PAGE).div_ceil(8);
        for word in image.db.slice(run.first as usize * PAGE, words) {
            out.extend_from_slice(&word.load(Relaxed).to_le_bytes());
        }
        out.truncate(end);
    }
}

/// Appends the bytes `piece` of the value in `runs`, which a leaf names that is still to be checked, to `out`, once their
/// pages are proved.
///
/// # Errors
/// `Restart` if they have been freed; `Corrupt`.
pub(crate) fn append_piece_proved(
    image: &Image,
    runs: &[Run],
    piece: Range<usize>,
    out: &mut Vec<u8>,
) -> Attempt<()> {
    for run in pages_of(runs, &piece) {
        proof::run(image, run)?;
    }
    append_piece(image, runs, piece, out);
    Ok(())
}

/// The pages in which the bytes `piece` of the value in `runs` lie.
pub(crate) fn pages_of(runs: &[Run], piece: &Range<usize>) -> Vec<Run> {
    let mut begin = 0;
    let mut pages = Vec::new();
    for run in runs {
        let end = begin + run.pages as usize * PAGE;
        let (from, to) = (piece.start.max(begin), piece.end.min(end));
        if from < to {
            let (first, last) = ((from - begin) / PAGE, (to - begin).div_ceil(PAGE));
            pages.push(Run { first: run.first + first as u32, pages: (last - first) as u32 });
        }
        begin = end;
    }
    pages
}

/// Appends the bytes `piece` of the value in `runs` to `out`.
pub(crate) fn append_piece(image: &Image, runs: &[Run], piece: Range<usize>, out: &mut Vec<u8>) {
    let mut begin = 0;
    for run in runs {
        let end = begin + run.pages as usize * PAGE;
        let (from, to) = (piece.start.max(begin), piece.end.min(end));
        if from < to {
            append_from(image, run.first as usize * PAGE + from - begin, to - from, out);
        }
        begin = end;
        if begin >= piece.end {
            return;
        }
    }
}

/// Appends `len` bytes from `offset` (any) of the image on to `out`; they lie in one run.
fn append_from(image: &Image, offset: usize, len: usize, out: &mut Vec<u8>) {
    let skipped = offset % 8;
    let mut words = image.db.slice(offset - skipped, (skipped + len).div_ceil(8)).iter();
    let end = out.len() + len;
    if skipped > 0 {
        if let Some(word) = words.next() {
            out.extend_from_slice(&word.load(Relaxed).to_le_bytes()[skipped..]);
        }
    }
    for word in words {
        out.extend_from_slice(&word.load(Relaxed).to_le_bytes());
    }
    out.truncate(end);
}

/// Writes bytes one after the other into runs that nobody else can reach.
pub(crate) struct Writer<'a> {
    image: &'a Image,
    runs: &'a [Run],
    /// Bytes written to the first of `runs`.
    at: usize,
    word: [u8; 8],
}

impl<'a> Writer<'a> {
    pub(crate) fn new(image: &'a Image, runs: &'a [Run]) -> Writer<'a> {
        Writer { image, runs, at: 0, word: [0; 8] }
    }

    /// Appends `bytes`. The runs are long enough.
    pub(crate) fn write(&mut self, mut bytes: &[u8]) {
        while let Some((first, rest)) = bytes.split_first() {
            if self.at.is_multiple_of(8) && bytes.len() >= 8 {
                bytes = self.write_words(bytes);
                continue;
            }
            self.word[self.at % 8] = *first;
            bytes = rest;
            self.at += 1;
            if self.at.is_multiple_of(8) || bytes.is_empty() {
                self.store_word();
            }
        }
    }

    /// Stores as many whole words as the first run takes, and answers the rest.
    fn write_words<'b>(&mut self, bytes: &'b [u8]) -> &'b [u8] {
        let Some(run) = self.runs.first() else { return &[] };
        let room = run.pages as usize * PAGE - self.at;
        let count = (bytes.len().min(room)) / 8;
        let target = self.image.db.slice(run.first as usize * PAGE + self.at, count);
        for (word, chunk) in target.iter().zip(bytes.chunks_exact(8)) {
            let mut array = [0; 8];
            array.copy_from_slice(chunk);
            word.store(u64::from_le_bytes(array), Relaxed);
        }
        self.at += count * 8;
        self.next_run();
        &bytes[count * 8..]
    }

    /// Stores the partial word that holds the last byte written.
    fn store_word(&mut self) {
        let Some(run) = self.runs.first() else { return };
        let offset = run.first as usize * PAGE + ((self.at - 1) & !7);
        let keep = (self.at - 1) % 8 + 1;
        let mut word = [0; 8];
        word[..keep].copy_from_slice(&self.word[..keep]);
        self.image.db.word(offset).store(u64::from_le_bytes(word), Relaxed);
        self.next_run();
    }

    fn next_run(&mut self) {
        if self.runs.first().is_some_and(|run| self.at == run.pages as usize * PAGE) {
            self.runs = &self.runs[1..];
            self.at = 0;
        }
    }
}
