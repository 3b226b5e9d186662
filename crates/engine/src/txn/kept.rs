//! What a transaction has read, kept beyond its end, for others to rest on.
//!
//! The server's WATCH needs this: each command of a client must know that the watched keys are as they were. To read
//! them all again each time is slow where they are many. So the read set of the transaction that read them is kept,
//! and a later transaction looks only at the words of its leaves; it asks again only what lies in leaves that others
//! have written to.
//!
//! Invariants
//! - The word that is kept of a leaf is the one under which all answers that rest on the leaf held, at the last good
//!   pass.
//! - When a transaction that rests on kept reads commits, or checks itself, all that it has read and all that is kept
//!   held at one moment: the words of the kept leaves have not changed from before the pass over its own leaves to
//!   after it.
//!
//! What if we are killed? Nothing of this is in shared memory.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use perilune_store::{Error, KeptReads, Result};

use super::{Reads, Transaction};
use crate::access::Access;
use crate::image::Image;

/// Rounds of comparing before others have been too many.
const ROUNDS: usize = 1_000;

/// Reads that are kept.
pub(super) struct Kept {
    image: Arc<Image>,
    reads: Mutex<Reads>,
}

impl Kept {
    /// A panic leaves words that are noted too early: they are compared again.
    fn locked(&self) -> MutexGuard<'_, Reads> {
        self.reads.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Transaction {
    /// Takes what it has read, to be kept; None if that is not all noted.
    pub(crate) fn keep_reads(&mut self, access: &Access) -> Option<KeptReads> {
        self.take_reads(access, Reads::settle)
    }

    /// As [`Transaction::keep_reads`], with all that adding to it needs.
    pub(crate) fn suspend(&mut self, access: &Access) -> Option<KeptReads> {
        self.take_reads(access, |_| ())
    }

    /// Goes on from what was suspended, as if this transaction had read it.
    ///
    /// # Errors
    /// `Invalid` for what was kept of another database, or is not this one's alone.
    pub(crate) fn resume(&mut self, access: &Access, kept: KeptReads) -> Result<()> {
        let kept = kept.into_reads().downcast::<Kept>().ok().and_then(Arc::into_inner);
        let Some(kept) = kept.filter(|kept| Arc::ptr_eq(&kept.image, &access.seat.image)) else {
            return Err(Error::Invalid(
                "what was read elsewhere, or is kept for others, cannot go on here".into(),
            ));
        };
        if self.reads.leaf_count() > 0 {
            return Err(Error::Invalid(
                "a transaction that has read already goes on from nothing else".into(),
            ));
        }
        self.reads = kept.reads.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok(())
    }

    fn take_reads(&mut self, access: &Access, settle: impl FnOnce(&mut Reads)) -> Option<KeptReads> {
        let is_lost = self.has_lost_lease() && self.validate(access).is_err();
        if self.doomed || self.unnoted || is_lost {
            return None;
        }
        let mut reads = std::mem::take(&mut self.reads);
        settle(&mut reads);
        let bytes = reads.bytes();
        let kept = Kept { image: Arc::clone(&access.seat.image), reads: Mutex::new(reads) };
        Some(KeptReads::new(Arc::new(kept), bytes))
    }

    /// Rests on all that is kept, if that is still so.
    ///
    /// # Errors
    /// `Invalid` for what was kept of another database; `Conflict`.
    pub(crate) fn rest_on(&mut self, access: &Access, all: &[KeptReads]) -> Result<bool> {
        let before = self.kept.len();
        for kept in all {
            let kept = kept.reads().downcast::<Kept>().ok();
            let Some(kept) = kept.filter(|kept| Arc::ptr_eq(&kept.image, &access.seat.image)) else {
                return Err(Error::Invalid("what was read in another database says nothing here".into()));
            };
            let passed = kept.locked().pass_again(access, 0);
            match passed {
                Ok(()) if self.kept[..before].iter().any(|known| Arc::ptr_eq(known, &kept)) => {}
                Ok(()) => self.kept.push(kept),
                Err(Error::Conflict) => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        self.validate(access)?;
        Ok(true)
    }

    /// The part of validation that is about what is kept, behind a good pass over the own reads. `me`: as there.
    pub(super) fn pass_kept(&mut self, access: &Access, me: u16) -> Result<()> {
        for _ in 0..ROUNDS {
            let mut is_whole = true;
            for kept in &self.kept {
                let mut reads = kept.locked();
                if reads.has_changed(access, me) {
                    reads.pass_again(access, me)?;
                    is_whole = false;
                }
            }
            // NB: what has just been compared by asking again may have changed and changed back since the pass before.
            if is_whole {
                return Ok(());
            }
            self.reads.pass(access, me)?;
        }
        Err(Error::Conflict)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::session::Seat;
    use crate::tree::tests::scratch;
    use crate::tree::Which::Main;

    fn key(number: u32) -> Vec<u8> {
        format!("k{number:06}").into_bytes()
    }

    /// Two sessions on a tree of many leaves, and what the first has read of every tenth key.
    fn bench() -> (Access, Access, KeptReads) {
        let image = scratch(4_000);
        let [one, other] = [1, 2].map(|id| Access::new(Seat::new(Arc::clone(&image), id)));
        (0..5_000).for_each(|number| _ = one.set(Main, &key(number), b"as it was").unwrap());
        let mut txn = Transaction::new();
        let mut value = Vec::new();
        for number in (0..5_000).step_by(10) {
            assert!(one.txn_get(&mut txn, Main, &key(number), &mut value).unwrap());
        }
        assert!(!one.txn_get(&mut txn, Main, b"k000000 absent", &mut value).unwrap());
        let kept = txn.keep_reads(&one).unwrap();
        assert!(kept.bytes() > 5_000);
        (one, other, kept)
    }

    /// What a new transaction says, and whether it gets through with a write of its own, `between` running before that.
    fn try_it(access: &Access, kept: &KeptReads, between: impl FnOnce()) -> (bool, bool) {
        let mut txn = Transaction::new();
        let held = txn.rest_on(access, std::slice::from_ref(kept)).unwrap();
        txn.set(Main, b"own", format!("{:?}", Instant::now()).as_bytes());
        between();
        (held, access.commit(&mut txn, None).is_ok())
    }

    #[test]
    fn a_transaction_commits_only_while_what_it_rests_on_holds() {
        let (one, other, kept) = bench();
        assert_eq!(try_it(&one, &kept, || ()), (true, true));
        assert_eq!(try_it(&other, &kept, || ()), (true, true), "of another session");
        // Neighbours in all the leaves come, go, change, and split them.
        for number in (1..5_000).step_by(7).filter(|number| number % 10 != 0) {
            let near = [&key(number)[..], b" and more"].concat();
            other.set(Main, &near, &[7; 300]).unwrap();
            other.set(Main, &key(number), b"changed").unwrap();
        }
        assert_eq!(try_it(&one, &kept, || ()), (true, true), "neighbours do not count");
        assert_eq!(try_it(&one, &kept, || _ = other.set(Main, &key(11), b"x").unwrap()), (true, true));
        // One that was read.
        assert_eq!(try_it(&one, &kept, || _ = other.set(Main, &key(10), b"x").unwrap()), (true, false));
        assert!(!try_it(&one, &kept, || ()).0);
        other.set(Main, &key(10), b"as it was").unwrap();
        assert_eq!(try_it(&one, &kept, || ()), (true, true), "changed back");
        // One that was found to be absent.
        other.set(Main, b"k000000 absent", b"x").unwrap();
        assert!(!try_it(&one, &kept, || ()).0);
    }

    #[test]
    fn what_is_asked_again_and_again_stays_small() {
        let (one, other, kept) = bench();
        for round in 0..3_000_u32 {
            other.set(Main, &key(1 + round % 500 * 10), &round.to_le_bytes()).unwrap();
            assert_eq!(try_it(&one, &kept, || ()), (true, true));
        }
        let kept = kept.reads().downcast::<Kept>().unwrap();
        let bytes = kept.locked().bytes();
        assert!(bytes < 300_000, "{bytes}");
    }

    #[test]
    fn a_transaction_goes_on_from_what_was_suspended() {
        let (one, other, _) = bench();
        let (mut value, mut txn) = (Vec::new(), Transaction::new());
        assert!(one.txn_get(&mut txn, Main, &key(20), &mut value).unwrap());
        for number in 1..2_000 {
            let kept = txn.suspend(&one).expect("all is noted");
            txn = Transaction::new();
            txn.resume(&one, kept).unwrap();
            assert!(one.txn_get(&mut txn, Main, &key(number), &mut value).unwrap());
            txn.validate(&one).unwrap();
        }
        // What lies beside it may change, and it does not grow by being asked again.
        other.set(Main, &key(3_000), b"x").unwrap();
        txn.validate(&one).unwrap();
        let bytes = txn.reads.bytes();
        (1..2_000).for_each(|number| _ = one.txn_get(&mut txn, Main, &key(number), &mut value).unwrap());
        assert!(txn.reads.bytes() <= 2 * bytes, "{bytes}");
        let kept = txn.suspend(&one).unwrap();
        other.set(Main, &key(20), b"x").unwrap();
        let mut txn = Transaction::new();
        txn.resume(&one, kept.clone()).unwrap_err();
        txn.resume(&one, kept).unwrap();
        assert!(matches!(txn.validate(&one), Err(Error::Conflict)));
    }

    #[test]
    fn what_another_database_has_kept_is_refused() {
        let (_one, _other, kept) = bench();
        let access = Access::new(Seat::new(scratch(4_000), 1));
        assert!(matches!(Transaction::new().rest_on(&access, &[kept]), Err(Error::Invalid(_))));
    }
}
