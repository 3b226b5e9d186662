//! The undo area: bytes about to be overwritten, appended in order, restored backwards.
//!
//! Entry: `{offset u64 (top bit: in -shm, else in the image), length u64, bytes}`, all multiples of 8. Example:
//! before 8 bytes at 16 in page 57 change, an entry of 24 bytes is appended: 57 * 8192 + 16, 8, and these bytes.
//!
//! The length of the area is raised only after the entry is complete, and a byte is changed only after that. What
//! if we are killed? Before the raise: the bytes are unchanged. After: restored.

use std::sync::atomic::Ordering::Relaxed;

use perilune_shm::words;

use super::{ordered, Seat};
use crate::image::layout::session;
use crate::limits::{PAGE, UNDO};
use crate::page::{Page, Save};
use crate::planted::{is_planted, Bug};

/// Bit of an entry's offset: the bytes lie in `-shm`.
const IN_SHM: u64 = 1 << 63;

/// Saves ranges of one page.
pub(crate) struct PageUndo<'a> {
    pub(crate) seat: &'a Seat,
    pub(crate) number: u32,
}

impl Save for PageUndo<'_> {
    #[inline]
    fn save(&mut self, offset: usize, len: usize) {
        let from = offset & !7;
        let until = (offset + len + 7) & !7;
        let page: &Page = self.seat.image.page(self.number);
        let undo = self.seat.undo_words();
        let at = self.seat.get(session::UNDO_LEN) as usize;
        debug_assert!(at + 16 + until - from <= UNDO && until <= PAGE);
        if is_planted(Bug::EarlyLength) {
            self.seat.put(session::UNDO_LEN, (at + 16 + until - from) as u64);
        }
        words::put_u64(undo, at, self.number as u64 * PAGE as u64 + from as u64);
        words::put_u64(undo, at + 8, (until - from) as u64);
        words::copy_part(page, from, undo, at + 16, until - from);
        ordered();
        self.seat.put(session::UNDO_LEN, (at + 16 + until - from) as u64);
        ordered();
    }
}

impl Seat {
    /// Saves the word at `offset` of `-shm`.
    pub(crate) fn save_shared_word(&self, offset: usize) {
        let undo = self.undo_words();
        let at = self.get(session::UNDO_LEN) as usize;
        words::put_u64(undo, at, IN_SHM | offset as u64);
        words::put_u64(undo, at + 8, 8);
        words::put_u64(undo, at + 16, self.image.shm.word(offset).load(Relaxed));
        ordered();
        self.put(session::UNDO_LEN, at as u64 + 24);
        ordered();
    }

    /// Puts everything back that was saved since the step began. Can be repeated.
    pub(crate) fn restore(&self) {
        let undo = self.undo_words();
        let len = (self.get(session::UNDO_LEN) as usize).min(UNDO);
        let mut entries = Vec::new();
        let mut at = 0;
        while at + 16 <= len {
            entries.push(at);
            at += 16 + words::u64_at(undo, at + 8) as usize;
        }
        for at in entries.into_iter().rev() {
            let target = words::u64_at(undo, at);
            let bytes = words::u64_at(undo, at + 8) as usize;
            let region = if target & IN_SHM == 0 { &self.image.db } else { &self.image.shm };
            let first = (target & !IN_SHM) as usize;
            for offset in (0..bytes).step_by(8) {
                region.word(first + offset).store(words::u64_at(undo, at + 16 + offset), Relaxed);
            }
        }
        ordered();
    }
}
