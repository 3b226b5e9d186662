//! Many entries one behind another, in whatever a session reads: the present, a transaction, a snapshot.
//!
//! Invariants
//! - Entries of the present are current as long as their leaf has the word under which it was read: so whoever steps through
//!   them sees at each step what the tree holds then.
//! - Those of a transaction or a snapshot are so as long as the session has neither written nor begun or ended anything.
//! - No entries of one session, or of its parent process, are current for another.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use perilune_shm::latch::{self, LatchWord};
use perilune_store::{Entries, Error, Origin, Result, Scan};

use super::mode::{Mode, Scene};
use super::Session;
use crate::limits::USER_KEY_MAX;
use crate::tree::{side_of, Read, Seek, Wanted, Which};

/// Bit of a place: what was read there stays so for whoever has read it, whatever others do.
const STEADY: u64 = 1 << 32;

/// A number that no other session of this process has.
pub(super) fn new_number() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    LAST.fetch_add(1, Relaxed) + 1
}

impl Session {
    /// As [`perilune_store::Bulk::are_current`].
    #[inline]
    pub(super) fn holds(&self, entries: &Entries) -> bool {
        let Origin { session, moment, place, version, .. } = *entries.origin();
        let is_ours = session == self.number && moment == self.moment && self.mark.is_same_process();
        let holds =
            |number| latch::validate(self.access.seat.image.latch(number), LatchWord::from_raw(version));
        is_ours && (place & STEADY != 0 || holds(place as u32))
    }

    /// As [`perilune_store::Bulk::entries`].
    pub(super) fn read_entries(&mut self, scan: &Scan<'_>, out: &mut Entries) -> Result<bool> {
        self.here()?;
        if scan.from.len() > USER_KEY_MAX + 1 {
            return Err(Error::KeyTooLong { bytes: scan.from.len(), limit: USER_KEY_MAX });
        }
        // NB: inside the engine an empty bound is none.
        if scan.bound.is_empty() && !scan.backwards {
            return Ok(false);
        }
        if scan.most > 1 && !scan.bound.is_empty() {
            match self.read_many(scan, out)? {
                Read::Some(leaf, next) => {
                    let is_steady = self.snapshot.is_some() || !self.is_present();
                    out.come_from(Origin {
                        session: self.number,
                        moment: self.moment,
                        place: u64::from(leaf.number) | if is_steady { STEADY } else { 0 },
                        version: leaf.word.raw(),
                        next,
                    });
                    return Ok(out.advance());
                }
                Read::None => return Ok(false),
                Read::Single => {}
            }
        }
        let (key, value) = out.single();
        let value = scan.values.then(|| Wanted::whole(value));
        let seek = Seek { from: scan.from, side: side_of(scan), bound: scan.bound };
        self.neighbour(seek, key, value)
    }

    fn read_many(&mut self, scan: &Scan<'_>, out: &mut Entries) -> Result<Read> {
        // What another session, or this one at another moment, has come to says nothing about where this one goes on.
        let is_after = scan.after.session == self.number && scan.after.moment == self.moment;
        let scan = &Scan { after: if is_after { scan.after } else { Origin::default() }, ..*scan };
        self.going_on(|session| {
            let Scene { access, mode, .. } = session.mode_to_read()?;
            match mode {
                Mode::Present | Mode::Hooked => access.entries(Which::Main, scan, out, &mut ()),
                Mode::Transaction(running) => access.txn_entries(&mut running.txn, Which::Main, scan, out),
                Mode::OneShot(one_shot) => one_shot.entries(access, scan, out),
                Mode::Snapshot(snapshot) => snapshot.entries(scan, out),
            }
        })
    }
}
