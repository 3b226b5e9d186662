//! Duties: what one thread at a time does for everybody, as taking a checkpoint, writing the log, beginning a
//! generation.
//!
//! A duty is a word of the control area that holds its owner {process slot, incarnation}, or 0. Example: two
//! threads find that a checkpoint is due. Both try to swap their process's owner word into `CHECKPOINT_OWNER`; one
//! succeeds and takes it, the other leaves it.
//!
//! Invariants
//! - A duty is taken from nobody or from a dead owner, never from one who lives, however slow. Threads of one
//!   process keep each other out, too.
//! - Who takes several takes them in the order checkpoint, sync, log; the duties to make log files (spare) and to
//!   end a generation (cut) come last. No latch is held.
//!
//! What if we are killed? Whoever needs the duty next finds its owner dead and takes it. What that one left half
//! done is told where the duty is used.

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
