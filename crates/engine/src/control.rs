//! The control words, and the one handshake by which they change: store, freeze all heads, wait.
//!
//! Problem: control words (generation, flush number, lease, flags) say what a writer may do now. A writer reads
//! them first and publishes its record later. Without care a record of the old generation could appear after the
//! new one has begun.
//!
//! Idea: who changes a control word stores it, and then sets the FROZEN bit in the head of every session. A writer
//! publishes by a compare-and-swap of its own head from an unfrozen value. So the publication fails; the writer
//! clears the bit, reads the control words again, and checks everything that depends on them. All are AcqRel
//! read-modify-writes of one word: no fences.
//!
//! Example: a session holds a leaf and is about to publish in generation 8, when a cut stores 9. If the session's
//! swap comes before the freeze, the record lies below the head that the freeze has read: it belongs to 8, and the
//! cut waits until it is applied. If the freeze comes first, the swap fails, the session reads 9, and copies the
//! leaf before it changes anything.
//!
//! Invariants
//! - After freezing, everything published under the old word lies below the heads read.
//! - A new generation waits until all that has been applied, and until each structure change seen under way has
//!   ended.
//! - Who takes the lease or sets a watch waits for that only a moment ([`settle`]). What is published is latched
//!   until it is applied, so nobody sees a part of it; and a process that is stopped there keeps nobody from
//!   exclusive mode.
//!
//! What if we are killed? Between store and freeze: some writers read the words once more; the next owner of the
//! duty stores and freezes again. As holder of the lease: any waiter takes it.
//!
//! Checked by the exhaustive model in `tests/model_handshake.rs` and, on atomics, by `tests/loom_handshake.rs`;
//! both find their canaries.

use std::io;
use std::sync::atomic::Ordering::{AcqRel, Acquire};
use std::sync::Arc;
use std::time::{Duration, Instant};

use perilune_shm::futex;
use perilune_store::{Error, Result};

use crate::image::layout::{control, phase, session, FLAG_FAILED};
use crate::image::Image;
use crate::limits::{LEASE_CLASS_MAX, LEASE_LONGEST, LEASE_SHORTEST, SESSIONS, SETTLING, WAIT_SLICE};
use crate::repair::{dead_session, sessions_high, Patience};
use crate::session::{lease_session, Counter, Limit, Seat, Whom};

/// Freezes the heads of all sessions. Answers where each stood, and its step.
pub(crate) fn freeze(image: &Arc<Image>) -> Vec<(Seat, u64, u64)> {
    // NB: by a read-modify-write. A plain load may answer an old mark although the control word has been
    // stored: a session above it, made meanwhile, could publish under the old word unfrozen.
    let high = image.control(control::SESSIONS_HIGH).fetch_add(0, AcqRel).min(SESSIONS as u64) as u16;
    (1..=high)
        .map(|id| {
            let seat = Seat::new(image.clone(), id);
            let head = seat.head_word().fetch_or(session::FROZEN, AcqRel) & !session::FROZEN;
            let step = seat.step();
            (seat, head, step)
        })
        .collect()
}

/// Sets a bit of the FLAGS word: nothing is published any more without it being seen.
pub(crate) fn raise_flag(image: &Arc<Image>, flag: u64) {
    if image.control(control::FLAGS).fetch_or(flag, AcqRel) & flag != flag {
        freeze(image);
    }
}

/// Clears a bit of the FLAGS word.
pub(crate) fn lower_flag(image: &Arc<Image>, flag: u64) {
    if image.control(control::FLAGS).fetch_and(!flag, AcqRel) & flag != 0 {
        freeze(image);
    }
}

/// Where the heads of all sessions stand, and their steps; nothing is frozen.
fn look(image: &Arc<Image>) -> Vec<(Seat, u64, u64)> {
    let look = |id| {
        let seat = Seat::new(image.clone(), id);
        let (head, step) = (seat.head_word().load(Acquire) & !session::FROZEN, seat.step());
        (seat, head, step)
    };
    (1..=sessions_high(image)).map(look).collect()
}

/// Waits until all that was published when `frozen` was taken has been applied, and every step that
/// was under way has ended. Repairs the dead. `but` is the session that is not waited for.
///
/// # Errors
/// `Busy` at the limit; as [`crate::repair::dead_processes`].
fn wait_applied(image: &Arc<Image>, frozen: &[(Seat, u64, u64)], but: u16, limit: &Limit) -> Result<()> {
    for (seat, head, step) in frozen.iter().filter(|(seat, ..)| seat.id != but) {
        let mut patience = Patience::new();
        while seat.applied() < *head || step & 3 != phase::NONE && seat.step() == *step {
            patience.wait(image, limit, || Whom::Session(seat.id))?;
        }
    }
    Ok(())
}

/// Gives sessions that published before the freeze a moment to apply their records. One that is stopped there is not
/// waited for.
///
/// What is not applied then is latched, wholly, since before it was published: nobody sees a part of it, and it is
/// told from what comes later by the control word that was stored before the freeze.
///
/// # Errors
/// As [`crate::repair::dead_processes`].
pub(crate) fn settle(image: &Arc<Image>, frozen: &[(Seat, u64, u64)], but: u16) -> Result<()> {
    let limit = Limit::of(SETTLING).until(Instant::now().checked_add(SETTLING));
    match wait_applied(image, frozen, but, &limit) {
        Err(Error::Busy { .. }) => Ok(()),
        settled => settled,
    }
}

/// Begins a new generation: everything committed before is in the old one, whose number and root are
/// answered. The caller holds the duty `cut` and has noted a pin for it before (see `pin`).
///
/// # Errors
/// `Busy`: somebody is stopped with a published record that he has not applied, and nobody can for him. As a rule nothing
/// has happened then; if he was stopped just now, a generation is begun that nobody has cut off, as by one who was killed.
/// As [`wait_applied`]; `Internal` when the generations are used up.
pub(crate) fn cut(image: &Arc<Image>, but: u16) -> Result<(u32, u32)> {
    let old = image.generation();
    if u64::from(old) >= crate::limits::GENERATION_MAX {
        return Err(Error::Internal("the database has used up its generations".into()));
    }
    let limit = Limit::of(image.wait_limit);
    // NB: before anything is done. Each generation that is begun in vain costs a copy of every page that is written.
    wait_applied(image, &look(image), but, &limit)?;
    image.control(control::GEN).store(u64::from(old) + 1, std::sync::atomic::Ordering::SeqCst);
    image.control(control::FLUSH).fetch_add(1, AcqRel);
    let frozen = freeze(image);
    wait_applied(image, &frozen, but, &limit)?;
    Ok((old, root_at_end(image, old)))
}

/// The root of the generation that was ended by a cut and not followed by another.
fn root_at_end(image: &Image, generation: u32) -> u32 {
    let kept = image.control(control::ROOT_PREV + 8 * (generation as usize & 1));
    loop {
        let root = image.control(control::ROOT).load(Acquire);
        let before = kept.load(Acquire);
        if (before >> 32) as u32 == generation {
            return before as u32;
        }
        // NB: a new root is stored after the old one is kept, and taken back before; so an unchanged one
        // that nobody has replaced is the root.
        if image.control(control::ROOT).load(Acquire) == root && image.life(root as u32).born <= generation {
            return root as u32;
        }
    }
}

/// Stops all writing for good: what a failed `fdatasync` has left on the disk nobody knows. It was that of the
/// log's segment in slot `log`, or of the database file.
pub(crate) fn stop_writes(image: &Arc<Image>, log: Option<u32>, source: &io::Error) {
    // NB: before the flag, for whoever sees that tells this.
    image.note_failure(log, source);
    raise_flag(image, FLAG_FAILED);
}

/// Exclusive mode: while a session holds it, no other publishes. Given up when dropped.
pub(crate) struct Lease {
    image: Arc<Image>,
    word: u64,
}

impl Lease {
    /// Whether it is still ours.
    pub(crate) fn is_held(&self) -> bool {
        self.image.control(control::LEASE).load(Acquire) == self.word
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let word = self.image.control(control::LEASE);
        if word.compare_exchange(self.word, 0, AcqRel, Acquire).is_ok() {
            wake_waiters(&self.image);
        }
    }
}

fn wake_waiters(image: &Image) {
    let bell = image.shm.word32(control::LEASE_FUTEX);
    bell.fetch_add(1, AcqRel);
    futex::wake(bell, u32::MAX);
}

/// How long a lease of this class may be kept.
pub(crate) fn lease_length(class: u64) -> Duration {
    LEASE_SHORTEST.saturating_mul(1 << class.min(LEASE_CLASS_MAX)).min(LEASE_LONGEST)
}

fn lease_word(image: &Image, id: u16, class: u64) -> u64 {
    let ticket = image.control(control::LEASE_TICKET).fetch_add(1, AcqRel) + 1;
    u64::from(id) << 51 | class.min(LEASE_CLASS_MAX) << 48 | ticket & ((1 << 48) - 1)
}

/// Takes the lease, waiting for others and taking it from those who keep it too long. `class`: how
/// often it has been lost before. None: not until `deadline`.
///
/// # Errors
/// As [`settle`].
pub(crate) fn take_lease(seat: &Seat, class: u64, deadline: Instant) -> Result<Option<Lease>> {
    let image = &seat.image;
    loop {
        let seen = image.control(control::LEASE).load(Acquire);
        if seen != 0 && !outlasted(image, seen, deadline)? {
            if Instant::now() >= deadline {
                return Ok(None);
            }
            continue;
        }
        let word = lease_word(image, seat.id, class);
        if image.control(control::LEASE).compare_exchange(seen, word, AcqRel, Acquire).is_ok() {
            let lease = Lease { image: image.clone(), word };
            settle(image, &freeze(image), seat.id)?;
            seat.count(Counter::Leases);
            return Ok(Some(lease));
        }
    }
}

/// Whether the session is in exclusive mode.
pub(crate) fn holds_lease(seat: &Seat) -> bool {
    let word = seat.image.control(control::LEASE).load(Acquire);
    word != 0 && lease_session(word) == seat.id
}

/// Waits until nobody else has the lease, or until `deadline`.
///
/// # Errors
/// As [`settle`].
pub(crate) fn wait_lease(seat: &Seat, deadline: Instant) -> Result<()> {
    let image = &seat.image;
    loop {
        let seen = image.control(control::LEASE).load(Acquire);
        if seen == 0 || lease_session(seen) == seat.id {
            return Ok(());
        }
        if outlasted(image, seen, deadline)? {
            take_away(seat, seen);
            return Ok(());
        }
        if Instant::now() >= deadline {
            return Ok(());
        }
    }
}

/// Takes the lease away and gives it back: the old holder's publication fails from now on. What he has published before is
/// latched until it is applied.
fn take_away(seat: &Seat, seen: u64) {
    let image = &seat.image;
    let word = lease_word(image, seat.id, 0);
    if image.control(control::LEASE).compare_exchange(seen, word, AcqRel, Acquire).is_ok() {
        let _lease = Lease { image: image.clone(), word };
        freeze(image);
    }
}

/// Waits for a lease to be given back; true when its holder has died or has kept it for its length.
fn outlasted(image: &Arc<Image>, seen: u64, deadline: Instant) -> Result<bool> {
    let until = Instant::now() + lease_length(seen >> 48 & 7);
    let bell = image.shm.word32(control::LEASE_FUTEX);
    loop {
        let rung = bell.load(Acquire);
        if image.control(control::LEASE).load(Acquire) != seen {
            return Ok(false);
        }
        let now = Instant::now();
        if now >= until {
            return Ok(true);
        }
        if now >= deadline {
            return Ok(false);
        }
        futex::wait(bell, rung, Some(WAIT_SLICE.min(until - now).min(deadline - now)));
        dead_session(image, lease_session(seen))?;
        if holder_is_dead(image, lease_session(seen)) {
            return Ok(true);
        }
    }
}

/// Whether the session that holds the lease belongs to nobody alive.
fn holder_is_dead(image: &Arc<Image>, id: u16) -> bool {
    let owner = Seat::new(image.clone(), id).owner_word().load(Acquire);
    crate::image::layout::Owner::from_word(owner).is_none_or(|owner| !image.is_alive(owner))
}
