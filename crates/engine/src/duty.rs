//! What one thread at a time does for everybody: take a checkpoint, write the log, begin a generation.
//!
//! A duty is a word of the control area that holds its owner {process slot, incarnation}; threads of one
//! process keep each other out of it too. It is taken from nobody (0) or from a dead owner, never from a
//! living one, however slow. Taken in the order checkpoint, log, cut; with no latch held.
//!
//! What if we are killed? Whoever needs the duty next finds its owner dead and takes it; what that one
//! left half done is told where the duty is used.

use std::sync::atomic::Ordering::{AcqRel, Acquire};
use std::sync::Arc;

use perilune_store::Result;

use crate::image::layout::Owner;
use crate::image::Image;
use crate::repair::Patience;
use crate::session::{Limit, Whom};

/// A duty taken; given back when dropped.
pub(crate) struct Duty {
    image: Arc<Image>,
    word: usize,
}

/// Takes the duty at control word `word`; None when somebody else who lives has it.
pub(crate) fn try_take(image: &Arc<Image>, word: usize) -> Option<Duty> {
    let owner = image.control(word);
    let seen = owner.load(Acquire);
    if Owner::from_word(seen).is_some_and(|owner| image.is_alive(owner)) {
        return None;
    }
    let taken = owner.compare_exchange(seen, image.me.to_word(), AcqRel, Acquire).is_ok();
    taken.then(|| Duty { image: image.clone(), word })
}

/// Takes the duty at control word `word`, waiting for whoever has it as long as he works.
///
/// # Errors
/// `Busy`: he is stopped, and has been waited for; as `repair::dead_processes`.
pub(crate) fn take(image: &Arc<Image>, word: usize) -> Result<Duty> {
    let (mut patience, limit) = (Patience::new(), Limit::of(image.wait_limit));
    loop {
        if let Some(duty) = try_take(image, word) {
            return Ok(duty);
        }
        patience.wait(image, &limit, || worker(image, word))?;
    }
}

/// Who has the duty at control word `word`.
pub(crate) fn worker(image: &Image, word: usize) -> Whom {
    Whom::Worker(Owner::from_word(image.control(word).load(Acquire)))
}

impl Drop for Duty {
    fn drop(&mut self) {
        // Fails only if we were taken for dead.
        let word = self.image.control(self.word);
        let _ = word.compare_exchange(self.image.me.to_word(), 0, AcqRel, Acquire);
    }
}
