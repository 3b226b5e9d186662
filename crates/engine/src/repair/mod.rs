//! Finishing or undoing what a dead process left half done, and waiting for the living ([`patience`]).
//!
//! Problem: a process that is killed may leave half of a page changed, a split without its parent, and latches that
//! nobody releases. And whoever repairs that may be killed, too. Idea: the repairer acts *as* the dead session. It
//! uses the dead's step, undo and applied words, so its own death needs no order of its own; whoever comes next
//! goes on as the same dead session.
//!
//! Per session: an unfinished step is undone, or finished if its phase is DONE; a record that was published and not
//! applied is applied again; pages and runs that are still locked by the dead in state DEAD are freed; its latches
//! are released with a version above all it may have published; all watches are woken.
//!
//! Example: killed when half of a leaf was changed for a set. The undo area restores the leaf, the record is
//! applied, the leaf is released: the set has happened.
//!
//! Invariants
//! - Only pages latched by the dead session are touched, and no transaction is run.
//! - Every part is idempotent.
//! - In a live process only its own panicking thread repairs its own session.
//! - A repairer waits for a page that somebody alive holds only for a moment: then the repair is put off, as if it
//!   had not been begun, and whoever comes next goes on.

mod patience;

use std::sync::atomic::Ordering::{AcqRel, Acquire, Release};
use std::sync::Arc;

use perilune_shm::futex;
use perilune_shm::latch::{self, State};
use perilune_store::{Durability, Error, Result};

use crate::image::layout::{control, phase, session, Owner, ProcessState, Run};
use crate::image::{bell, Image};
use crate::limits::{PINS, PROCESSES, REPAIR_WAIT, SEGMENT_RESERVED, SESSIONS};
use crate::session::{level_of, Counter, Limit, Seat};
use crate::{notice, tree};
pub(crate) use patience::Patience;

/// Repairs all processes that have died. Cheap when there are none.
///
/// # Errors
/// `Corrupt` when a dead session's record contradicts its format.
pub(crate) fn dead_processes(image: &Arc<Image>) -> Result<()> {
    for slot in 0..PROCESSES {
        dead_process(image, slot)?;
    }
    Ok(())
}

/// Repairs process `slot` if it has died and nobody else does.
///
/// # Errors
/// As [`dead_processes`].
pub(crate) fn dead_process(image: &Arc<Image>, slot: usize) -> Result<()> {
    if image.read_only {
        // Whoever may write repairs; a reader waits for him.
        return Ok(());
    }
    let word = image.process_word(slot);
    let seen = word.load(Acquire);
    let incarnation = match ProcessState::from_word(seen) {
        ProcessState::Free { .. } => return Ok(()),
        ProcessState::Live { incarnation } => {
            if image.is_alive(Owner { slot: slot as u16, incarnation }) {
                return Ok(());
            }
            incarnation
        }
        ProcessState::Repairing { incarnation, by } => {
            if is_alive_briefly(image, by) {
                return Ok(());
            }
            incarnation
        }
    };
    let mine = ProcessState::Repairing { incarnation, by: image.me }.to_word();
    if word.compare_exchange(seen, mine, AcqRel, Acquire).is_err() {
        return Ok(());
    }
    let dead = Owner { slot: slot as u16, incarnation };
    for id in 1..=sessions_high(image) {
        let seat = Seat::new(image.clone(), id);
        if Owner::from_word(seat.owner_word().load(Acquire)) == Some(dead) {
            seat.set_limit(Limit::of(REPAIR_WAIT));
            match session(&seat) {
                Err(Error::Busy { .. }) => {
                    // NB: no error: if the caller needs that page, too, it waits for it itself; else it has no need to. The
                    // next repairer goes on from here.
                    word.store(ProcessState::Live { incarnation }.to_word(), Release);
                    return Ok(());
                }
                repaired => repaired?,
            }
            seat.owner_word().store(0, Release);
            seat.count(Counter::Repairs);
        }
    }
    drop_pins(image, dead);
    drop_watches(image, slot);
    word.store(ProcessState::Free { incarnation }.to_word(), Release);
    let done = image.shm.word32(control::REPAIR_FUTEX);
    done.fetch_add(1, AcqRel);
    futex::wake(done, u32::MAX);
    notice::info(|| format!("process {} in slot {slot} had been killed; repaired", image.pid(slot)));
    Ok(())
}

/// Whether a repairer, of whose incarnation only the low 20 bits are known, lives.
fn is_alive_briefly(image: &Image, by: Owner) -> bool {
    match image.process(usize::from(by.slot) % PROCESSES) {
        ProcessState::Live { incarnation } => {
            incarnation & 0xf_ffff == by.incarnation && image.is_alive(Owner { slot: by.slot, incarnation })
        }
        _ => false,
    }
}

/// The highest session number ever claimed. A reader of a read-only mapping only loads it; all others
/// read by a read-modify-write, which a claim under way cannot miss (see `control::freeze`).
pub(crate) fn sessions_high(image: &Image) -> u16 {
    let mark = image.control(control::SESSIONS_HIGH);
    let high = if image.read_only { mark.load(Acquire) } else { mark.fetch_add(0, AcqRel) };
    high.min(SESSIONS as u64) as u16
}

/// Repairs one session; its owner is dead, or is the panicking caller.
///
/// # Errors
/// `Corrupt` when its record contradicts its format.
pub(crate) fn session(seat: &Seat) -> Result<()> {
    match seat.phase() {
        phase::CHANGING => {
            seat.restore();
            // NB: before the step ends: to a cut, which waits for that, they look born.
            free_fresh(seat);
        }
        phase::DONE => seat.settle_structure(seat.structure_generation(), seat.seq()),
        _ => {}
    }
    if seat.phase() != phase::NONE {
        seat.set_phase(phase::NONE);
    }
    let (mut least, mut died) = (0, seat.image.generation());
    if seat.applied() < seat.head() {
        let record = seat.read_record(seat.applied())?;
        let ops = record.ops()?;
        let mut patience = Patience::new();
        while let Err(stop) = tree::apply(seat, &ops, record.generation) {
            // NB: the leaves are held, but somebody may be changing an inner page above them.
            patience.wait_for_stop(seat, stop)?;
        }
        (least, died) = (record.seq, record.generation);
        settle_freed(seat, died);
        seat.set_applied();
    }
    settle_freed(seat, died);
    free_taken(seat);
    release_latches(seat, least.max(seat.seq()));
    if seat.is_in_operation() {
        bell::ring_all(&seat.image);
    }
    seat.forget_notes();
    seat.leave();
    Ok(())
}

/// Frees runs that were cut off in generation `died` and not freed. Before `applied` says that the record
/// is done: a cut waits for that.
fn settle_freed(seat: &Seat, died: u32) {
    for run in seat.freed() {
        seat.image.free_locked(run, seat.id, Some(died));
    }
}

/// Frees fresh pages that were not published.
fn free_fresh(seat: &Seat) {
    for number in seat.fresh() {
        seat.image.free_locked(Run { first: number, pages: 1 }, seat.id, None);
    }
}

/// Frees pages and runs that the session took and did not publish.
fn free_taken(seat: &Seat) {
    free_fresh(seat);
    // NB: the runs of a long record are the log's, if there is one, until the tail has passed it.
    let flags = seat.image.control(control::FLAGS).load(Acquire);
    seat.free_long(level_of(flags) == Durability::None);
    let mut kept = seat.kept_long();
    for run in seat.claimed().into_iter().filter(|run| !kept.contains(run)) {
        seat.image.free_locked(run, seat.id, None);
    }
    let (_, overflow) = seat.held();
    if overflow {
        kept.sort_unstable_by_key(|run| run.first);
        kept.push(Run { first: seat.image.npages() as u32, pages: 0 });
        let mut first = SEGMENT_RESERVED as u32;
        for run in kept {
            let pages = run.first.saturating_sub(first);
            seat.image.free_locked(Run { first, pages }, seat.id, None);
            first = first.max(run.first + run.pages);
        }
    }
}

/// Releases every latch the session holds on tree pages.
fn release_latches(seat: &Seat, least: u64) {
    let (held, overflow) = seat.held();
    let all: Box<dyn Iterator<Item = u32>> = if overflow {
        Box::new(SEGMENT_RESERVED as u32..seat.image.npages() as u32)
    } else {
        Box::new(held.into_iter())
    };
    for number in all.filter(|number| u64::from(*number) < seat.image.npages()) {
        let seen = latch::load(seat.image.latch(number));
        if seen.is_locked_by(seat.id) && seen.state() == State::Tree {
            seat.release(number, least);
        }
    }
}

fn drop_pins(image: &Image, dead: Owner) {
    use crate::image::layout::{PINS_AT, PIN_BYTES, PIN_OWNER};
    for pin in 0..PINS {
        let owner = image.shm.word(PINS_AT + pin * PIN_BYTES + PIN_OWNER);
        if owner.load(Acquire) == dead.to_word() {
            image.shm.word(PINS_AT + pin * PIN_BYTES).store(0, Release);
            owner.store(0, Release);
        }
    }
}

/// Takes a dead process out of the masks of all watch buckets.
fn drop_watches(image: &Image, slot: usize) {
    use crate::image::layout::{WATCH_BUCKETS_AT, WATCH_BUCKET_BYTES};
    for bucket in 0..crate::limits::WATCH_BUCKETS {
        let mask = WATCH_BUCKETS_AT + bucket * WATCH_BUCKET_BYTES + 8 + slot / 64 * 8;
        let mask = image.shm.word(mask);
        if mask.load(Acquire) >> (slot % 64) & 1 != 0 {
            mask.fetch_and(!(1 << (slot % 64)), AcqRel);
        }
    }
}

/// Repairs the process that session `id` belongs to, if it has died.
///
/// # Errors
/// As [`dead_processes`].
pub(crate) fn dead_session(image: &Arc<Image>, id: u16) -> Result<()> {
    if id == 0 || usize::from(id) > SESSIONS || id > sessions_high(image) {
        return Ok(());
    }
    let word = Seat::new(image.clone(), id).owner_word().load(Acquire);
    match Owner::from_word(word) {
        Some(owner) if !image.is_alive(owner) => dead_process(image, owner.slot.into()),
        _ => Ok(()),
    }
}

const _: () = assert!(session::FROZEN == 1);

#[cfg(test)]
mod tests;
