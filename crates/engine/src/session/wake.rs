//! A process that was stopped with pages latched is let go on for that operation, and stops again.
//!
//! Problem: a process may be stopped anywhere (`kill -STOP`, Ctrl-Z), also with pages latched. Nobody can finish its work for
//! it, since it may come back at any instruction. Whoever needs such a page would wait up to his limit.
//!
//! Idea: the one who waits notes the time in the holder's session and sends SIGCONT. The holder runs on. At the end of its
//! operation, when it holds nothing any more, it finds the note and stops itself. So the user's stop is kept, less some
//! microseconds, and takes effect where it harms nobody. GT.M and YottaDB send SIGCONT, too, but let the process run on.
//!
//! Example: A holds a leaf and is stopped. B waits for the leaf, sleeps .3 ms, sees A in state T, and lets it go on. A
//! applies its commit, releases the leaf and stops. B goes on.
//!
//! Invariants
//! - Only who is stopped in the midst of an operation, with pages latched, is let go on. Its words stand still then, so this
//!   can be told.
//! - Only a process that has mapped the database is sent a signal: a pid may mean another process in another container.
//! - A note that is old counts for nothing: whoever wrote it may have died before the signal, and the user may have let
//!   the process go on since.
//!
//! What if we are killed between note and signal? The holder stays stopped, with an old note. Between signal and the end of the
//! holder's operation? Nothing is left to do here.
//!
//! What it does not do: a debugger, a frozen container and another user's process keep what they hold; who waits is told
//! (`limit`). A SIGCONT that the user sends in the moment between ours and the holder's own stop has no effect, since the kernel
//! does not count them: the process stays stopped, without any page, until the next one.

use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use std::time::Duration;

use perilune_shm::{platform, stopped};

use super::Seat;
use crate::image::layout::{session, Owner, ProcessState};
use crate::image::Image;
use crate::limits::SESSIONS;

/// How long one who waits has slept before he looks whether the holder is stopped: less than an event loop waits.
pub(crate) const WAKE_AFTER: Duration = Duration::from_micros(300);
/// How long a note counts: longer than a busy machine keeps a process waiting for a processor.
const NOTE_COUNTS: Duration = Duration::from_secs(1);
/// How soon another may try again.
const NOTE_RESTS: Duration = Duration::from_millis(20);

/// Lets the process of session `id` go on, if it is stopped with pages latched, until the end of its operation.
#[cold]
pub(crate) fn wake(image: &Image, id: u16) {
    if image.read_only || !image.wakes_stopped || !(1..=SESSIONS).contains(&id.into()) {
        return;
    }
    let Some(owner) = Owner::from_word(Seat::owner_word_of(image, id).load(Acquire)) else { return };
    let lives = ProcessState::Live { incarnation: owner.incarnation };
    if owner == image.me || image.process(owner.slot.into()) != lives {
        return;
    }
    let pid = image.pid(owner.slot.into());
    if !stopped::can_go_on(pid) {
        return;
    }
    // It is stopped, so its words stand still.
    let words = Seat::head_words_of(image, id);
    if words[session::IN_OP].load(Acquire) == 0 || words[session::HELD_COUNT].load(Acquire) == 0 {
        return;
    }
    let note = &words[session::STOPS_AGAIN];
    let (before, now) = (note.load(Acquire), platform::monotonic_nanos());
    if is_recent(before, now, NOTE_RESTS) {
        return;
    }
    if note.compare_exchange(before, now, AcqRel, Relaxed).is_ok() {
        let file = image.home.database();
        if stopped::let_go_on(pid, file.device, file.inode).is_err() {
            // It is not ours to wake. What another has noted meanwhile stays.
            let _ = note.compare_exchange(now, 0, AcqRel, Relaxed);
        }
    }
}

/// Whether there is a note, of less than `time` ago.
fn is_recent(noted: u64, now: u64, time: Duration) -> bool {
    noted != 0 && u128::from(now.saturating_sub(noted)) < time.as_nanos()
}

impl Seat {
    /// Stops this process again, after an operation for which it was let go on.
    #[cold]
    #[inline(never)]
    pub(super) fn stop_again(&self) {
        let owner = Owner::from_word(self.owner_word().load(Relaxed));
        let noted = self.head_words()[session::STOPS_AGAIN].swap(0, AcqRel);
        // NB: who repairs a dead session ends its operation, too, and was not stopped.
        if owner == Some(self.image.me) && is_recent(noted, platform::monotonic_nanos(), NOTE_COUNTS) {
            // A sandbox that forbids it has us run on, as if nobody had stopped us.
            let _ = stopped::stop_this_process();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn an_old_note_stops_nobody_and_may_be_replaced() {
        let now = 100 * SECOND;
        assert!(!is_recent(0, now, NOTE_COUNTS), "no note");
        assert!(!is_recent(0, 1, NOTE_COUNTS), "no note, soon after the machine was started");
        assert!(is_recent(now, now, NOTE_COUNTS) && is_recent(now - SECOND / 2, now, NOTE_COUNTS));
        assert!(!is_recent(now - SECOND, now, NOTE_COUNTS), "its writer may have died before the signal");
        assert!(is_recent(now - SECOND / 100, now, NOTE_RESTS), "another has just tried");
        assert!(!is_recent(now - SECOND / 10, now, NOTE_RESTS));
    }
}
