//! Where the log stands, in `-shm`: the last batch that was written, the end of its interval, and where the next
//! begins. Two copies and a selector.
//!
//! Only the owner of the duty `log` writes here: the copy that is not selected, then the selector, which is the
//! moment in which a batch counts. Anybody may read.
//!
//! What if we are killed? Before the selector: the batch is written again, in the same place. After: the next owner
//! goes on behind it.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::batch::Spot;
use crate::image::layout::control;
use crate::image::Image;

/// Bytes from one copy to the other.
const COPY: usize = 64;

/// Where the log stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Position {
    /// The last batch written.
    pub(super) batch: u64,
    /// The end of its interval.
    pub(super) until: u64,
    /// Where the next one begins.
    pub(super) spot: Spot,
}

/// The position that counts.
pub(super) fn read(image: &Image) -> Position {
    let selector = image.control(control::LOG_SELECTOR);
    loop {
        let selected = selector.load(Acquire);
        let word = |index: usize| image.control(place(selected) + 8 * index).load(Acquire);
        let spot = Spot { slot: word(2) as u32, sequence: word(3), offset: word(4) };
        let position = Position { batch: word(0), until: word(1), spot };
        // NB: a copy is written again only when the other one has been selected.
        if selector.load(Acquire) == selected {
            return position;
        }
    }
}

/// Makes `position` the one that counts. The caller owns the log, or nobody else is attached.
pub(super) fn select(image: &Image, position: &Position) {
    let selector = image.control(control::LOG_SELECTOR);
    let next = selector.load(Relaxed) + 1;
    let Spot { slot, sequence, offset } = position.spot;
    for (index, word) in
        [position.batch, position.until, slot.into(), sequence, offset].into_iter().enumerate()
    {
        image.control(place(next) + 8 * index).store(word, Release);
    }
    selector.store(next, Release);
}

fn place(selector: u64) -> usize {
    control::LOG_POSITION + COPY * (selector & 1) as usize
}
