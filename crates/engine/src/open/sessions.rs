//! Claiming a session's area in `-shm`, and giving it back.
//!
//! `SESSIONS_HIGH` is the highest session whose area is allocated on disk; sessions are 1 to that. An
//! area is allocated *before* the mark is raised over it, so whoever freezes all heads below the mark
//! never touches a hole. The mark is raised by a read-modify-write before the session reads the control
//! line: whoever reads the mark by one too, after storing a control word, either sees the session or is
//! seen by it.
//!
//! Who takes the last allocated area allocates one more, if there is space: when the disk is full, one session more can
//! still begin, to read, to verify, or to remove something. Example: `verify` reads by a session of its own.
//!
//! Positions of a ring are never reset: a new owner goes on where the last one stopped.
//!
//! What if we are killed? Area allocated, mark not raised: allocated again. Mark raised: a free session.
//! Claimed: a session of a dead process; repair frees it.

use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::Arc;

use perilune_store::{Durability, Error, Result};

use crate::image::layout::{control, session, SESSIONS_AT, SESSION_BYTES};
use crate::image::Image;
use crate::limits::SESSIONS;
use crate::log;
use crate::repair;
use crate::session::Seat;

/// Claims a session for this process. Ids are 1 to [`SESSIONS`].
///
/// # Errors
/// `LimitReached` when all are taken by the living; `NoSpace`, `Io`; `ReadOnly`.
pub(crate) fn claim_session(image: &Arc<Image>) -> Result<Seat> {
    if image.read_only {
        return Err(Error::ReadOnly);
    }
    let mut has_repaired = false;
    loop {
        let high = image.control(control::SESSIONS_HIGH).load(Acquire);
        if let Some(seat) = (1..=high).find_map(|id| try_claim(image, id as u16)) {
            if u64::from(seat.id) == high && high < SESSIONS as u64 {
                // NB: without space there is no spare one; whoever needs it is told so.
                let _ = raise(image, high);
            }
            return Ok(seat);
        }
        if high < SESSIONS as u64 {
            raise(image, high)?;
        } else if has_repaired {
            return Err(Error::LimitReached { what: "sessions: close some", limit: SESSIONS as u64 });
        } else {
            repair::dead_processes(image)?;
            has_repaired = true;
        }
    }
}

/// Makes one more session available.
fn raise(image: &Image, high: u64) -> Result<()> {
    let area = SESSIONS_AT + (high as usize + 1) * SESSION_BYTES;
    image.extend(&image.shm_path, area as u64, SESSION_BYTES as u64)?;
    // NB: failing means that somebody else has raised it; so much the better.
    let _ = image.control(control::SESSIONS_HIGH).compare_exchange(high, high + 1, AcqRel, Acquire);
    Ok(())
}

fn try_claim(image: &Arc<Image>, id: u16) -> Option<Seat> {
    let seat = Seat::new(image.clone(), id);
    let owner = seat.owner_word();
    if owner.load(Relaxed) != 0 || owner.compare_exchange(0, image.me.to_word(), AcqRel, Acquire).is_err() {
        return None;
    }
    let words = seat.head_words();
    words[session::IN_OP].store(0, Relaxed);
    words[session::UNDO_LEN].store(0, Relaxed);
    words[session::STOPS_AGAIN].store(0, Relaxed);
    words[session::SEQ].store(0, Relaxed);
    words[session::APPLIED].store(seat.head(), Release);
    // NB: the tail stays: what the session before has published may not be in the log yet.
    if !seat.free_long(log::level(image) == Durability::None) {
        owner.store(0, Release);
        return None;
    }
    seat.forget_notes();
    Some(seat)
}

/// Gives a session back. Nothing of it is under way.
pub(crate) fn release_session(seat: &Seat) {
    debug_assert!(!seat.is_in_operation() && seat.applied() == seat.head());
    seat.forget_notes();
    seat.owner_word().store(0, Release);
}
