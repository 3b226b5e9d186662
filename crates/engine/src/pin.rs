//! Pins: generations whose pages nobody may reuse, and the cut that makes one.
//!
//! Problem: a snapshot, or a checkpoint being written, reads pages that writers have replaced since. Idea: a pin
//! {generation, root, owner} in shared memory says that this generation is still read. Whoever looks for a free
//! page passes over those that belong to it.
//!
//! Example: a snapshot pins generation 8. In generation 9 a writer copies page 57, which was born in 5, and marks
//! it dead since 9. Page 57 belongs to 8, so it is not used again before the pin goes.
//!
//! Invariants
//! - The pages of a pinned generation are never written and never reused; it is read without latches.
//! - A pin is written before its generation is ended. So who marks a page dead in the next generation, and who then
//!   wants to reuse that page, sees it.
//! - A pin goes with its process: repair drops those of the dead.
//!
//! What if we are killed? Slot claimed, generation not stored: an empty pin of a dead owner. Pin stored, generation
//! not ended: it pins the current generation, which holds nothing back that matters. Ended, root not stored: a pin
//! that nobody reads. Repair drops all three.
//!
//! Deliberately absent: what is read through a pin (`snapshot`), what is written (`checkpoint`).

use std::sync::atomic::Ordering::{AcqRel, Acquire, Release, SeqCst};
use std::sync::Arc;

use perilune_shm::fork::ForkMark;
use perilune_store::{Error, Result};

use crate::image::layout::{control, PINS_AT, PIN_BYTES, PIN_OWNER, PIN_ROOT};
use crate::image::Image;
use crate::limits::PINS;
use crate::repair::{self, Patience};
use crate::session::{Limit, Whom};
use crate::{control as handshake, duty};

/// A generation that is kept as it was; let go when dropped.
pub(crate) struct Pin {
    image: Arc<Image>,
    at: usize,
    /// What may be the forked child's copy of a pin is not the child's to let go.
    mark: ForkMark,
    generation: u32,
    root: u32,
}

/// Who wants a pin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    Snapshot,
    /// Has the first slot for itself.
    Checkpoint,
}

impl Pin {
    /// The generation held.
    pub(crate) fn generation(&self) -> u32 {
        self.generation
    }

    /// Its root.
    pub(crate) fn root(&self) -> u32 {
        self.root
    }

    /// The database it is of.
    pub(crate) fn image(&self) -> &Arc<Image> {
        &self.image
    }

    /// Whether the caller is the process that took it.
    pub(crate) fn is_ours(&self) -> bool {
        self.mark.is_same_process()
    }

    fn claim(image: &Arc<Image>, purpose: Purpose) -> Result<Pin> {
        let slots = match purpose {
            Purpose::Snapshot => 1..PINS,
            Purpose::Checkpoint => 0..1,
        };
        let mut patience = Patience::new();
        let mut has_repaired = false;
        loop {
            for index in slots.clone() {
                let at = PINS_AT + index * PIN_BYTES;
                let owner = image.shm.word(at + PIN_OWNER);
                if owner.compare_exchange(0, image.me.to_word(), AcqRel, Acquire).is_ok() {
                    image.control(control::PINS_HIGH).fetch_max(index as u64 + 1, AcqRel);
                    let mark = ForkMark::current();
                    return Ok(Pin { image: image.clone(), at, mark, generation: 0, root: 0 });
                }
            }
            match purpose {
                Purpose::Snapshot if has_repaired => break,
                Purpose::Snapshot => {}
                // The duty is ours, so its pin is that of a dead process, which somebody else may be repairing.
                Purpose::Checkpoint => {
                    patience.wait(image, &Limit::of(image.wait_limit), || Whom::Anybody)?
                }
            }
            repair::dead_processes(image)?;
            has_repaired = true;
        }
        Err(Error::LimitReached { what: "snapshots: close some", limit: PINS as u64 - 1 })
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        if self.is_ours() {
            self.image.shm.word(self.at).store(0, Release);
            self.image.shm.word(self.at + PIN_OWNER).store(0, Release);
        }
    }
}

/// Ends the current generation and keeps it: everything committed before the call is in it. `but` is the
/// session that is not waited for (0: none). Waits for operations being applied, which take microseconds.
///
/// # Errors
/// `LimitReached` when there are too many snapshots; as `control::cut`: `Busy` if somebody is stopped in the midst of one.
pub(crate) fn cut(image: &Arc<Image>, but: u16, purpose: Purpose) -> Result<Pin> {
    let mut pin = Pin::claim(image, purpose)?;
    let duty = duty::take(image, control::CUT_OWNER)?;
    image.shm.word(pin.at).store(image.generation().into(), SeqCst);
    (pin.generation, pin.root) = handshake::cut(image, but)?;
    image.shm.word(pin.at + PIN_ROOT).store(pin.root.into(), Release);
    drop(duty);
    Ok(pin)
}
