//! What is done in a round: one worker's share, checked where the worker can see that it is wrong.
//!
//! Invariants
//! - The loop is the same for every peer; only the session's methods differ.
//! - A round by time ends with the batch that passes its end; what was done and when it began and
//!   ended is reported, so that nothing depends on how exact the end is.
//! - Warming up is part of a round, before all workers report that they are ready.

mod collatz;

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::clock;
use crate::data::{essence_of, value, Random};
use crate::subject::{missing, Result, Session, Tree};

pub(crate) use collatz::{boundaries, expected};

/// The workloads of the engine suite.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Job {
    /// Gets of random keys.
    Get,
    /// Gets of random keys, [`BATCH`] in one read transaction.
    GetSnapshot,
    /// Gets of one key.
    GetSame,
    /// Gets of random keys among [`LEAF_KEYS`] neighbours.
    GetLeaf,
    /// Sets of random keys that exist, each its own transaction.
    Set,
    /// Sets of random keys that exist, with a look at the clock after each: for what waits for a disk.
    Commit,
    /// The number after, by a search from the number before, through the first `walk` keys.
    Next,
    /// The first `walk` keys and values by the cursor.
    Scan,
    /// Increments of one key by all workers.
    Increment,
    /// Transactions of 2 gets and 2 sets on random accounts.
    Transfer,
    /// Lock and unlock of one name that nobody else wants.
    Lock,
    /// The 3n+1 program over 1..=keys.
    Collatz,
}

/// One worker's share of a round.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Order {
    pub(crate) job: Job,
    /// Keys in the tree; the numbers to solve for 3n+1.
    pub(crate) keys: u64,
    pub(crate) threads: usize,
    /// Entries of one pass of walks and scans.
    pub(crate) walk: u64,
    /// How long to run, for workloads that are no whole.
    pub(crate) milliseconds: u64,
    pub(crate) seed: u64,
    /// What values written in this round carry.
    pub(crate) stamp: u64,
}

/// What a worker has done.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Outcome {
    /// By the machine's clock, in nanoseconds.
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// Nanoseconds of CPU of all its threads in that time.
    pub(crate) cpu: u64,
    /// Operations measured.
    pub(crate) operations: u64,
    /// Operations in all, with those of warming up.
    pub(crate) applied: u64,
    /// 3n+1: reads, and updates, counted as `workload/collatz.rs` says.
    pub(crate) reads: u64,
    pub(crate) updates: u64,
}

/// Reads between two looks at the clock.
pub(crate) const BATCH: usize = 256;
/// Writes between two looks at the clock.
const WRITES: usize = 32;
/// Neighbours that surely lie in two leaves at most.
const LEAF_KEYS: u64 = 64;

/// One thread's work in one round: warmed up first, then measured.
pub(crate) struct Work<'a> {
    order: Order,
    session: &'a mut dyn Session,
    random: Random,
    keys: [u64; BATCH],
    outcome: Outcome,
}

impl<'a> Work<'a> {
    /// The share of thread `index` in `order`.
    pub(crate) fn new(order: Order, index: usize, session: &'a mut dyn Session) -> Work<'a> {
        let random = Random::new(order.seed.wrapping_add(index as u64 * 1_000_003));
        Work { order, session, random, keys: [0; BATCH], outcome: Outcome::default() }
    }

    /// Runs for a tenth of the round, passes for a tenth of their entries. Not for 3n+1, which starts
    /// on an empty tree.
    ///
    /// # Errors
    /// The peer's, or a wrong result.
    pub(crate) fn warm_up(&mut self) -> Result<()> {
        if self.order.job != Job::Collatz {
            let walk = self.order.walk;
            self.order.walk = (walk / 10).max(1);
            self.outcome.applied = self.repeat(self.order.milliseconds / 10)?;
            self.order.walk = walk;
        }
        Ok(())
    }

    /// Runs the round.
    ///
    /// # Errors
    /// The peer's, or a wrong result.
    pub(crate) fn measure(mut self) -> Result<Outcome> {
        self.outcome.start = clock::now();
        if self.order.job == Job::Collatz {
            let counts = collatz::solve(self.session)?;
            self.outcome.reads = counts.reads;
            self.outcome.updates = counts.updates;
            self.outcome.operations = counts.reads + counts.updates;
        } else {
            self.outcome.operations = self.repeat(self.order.milliseconds)?;
        }
        self.outcome.end = clock::now();
        self.outcome.applied += self.outcome.operations;
        self.check_last_writes()?;
        Ok(self.outcome)
    }

    fn repeat(&mut self, milliseconds: u64) -> Result<u64> {
        let end = clock::now() + Duration::from_millis(milliseconds).as_nanos() as u64;
        let mut operations = 0;
        loop {
            operations += self.batch()?;
            if clock::now() >= end {
                return Ok(operations);
            }
        }
    }

    /// Does one batch; how many operations it was.
    fn batch(&mut self) -> Result<u64> {
        let Order { job, keys, stamp, .. } = self.order;
        match job {
            Job::Get => {
                let sum = self.pick(0, keys, BATCH);
                same(sum, self.session.get_each(Tree::Data, &self.keys)?)
            }
            Job::GetSnapshot => {
                let sum = self.pick(0, keys, BATCH);
                same(sum, self.session.get_snapshot(Tree::Data, &self.keys)?)
            }
            Job::GetSame => {
                let sum = self.pick(keys / 2, 1, BATCH);
                same(sum, self.session.get_each(Tree::Data, &self.keys)?)
            }
            Job::GetLeaf => {
                let sum = self.pick(keys / 2, LEAF_KEYS.min(keys - keys / 2), BATCH);
                same(sum, self.session.get_each(Tree::Data, &self.keys)?)
            }
            Job::Set => {
                self.pick(0, keys, WRITES);
                self.session.set_each(Tree::Data, &self.keys[..WRITES], stamp)?;
                Ok(WRITES as u64)
            }
            Job::Commit => {
                self.pick(0, keys, 1);
                self.session.set_each(Tree::Data, &self.keys[..1], stamp)?;
                Ok(1)
            }
            Job::Next => self.whole(|session, limit| Ok(session.walk(Tree::Data, limit)?.entries)),
            Job::Scan => self.whole(|session, limit| Ok(session.scan(Tree::Data, limit)?.entries)),
            Job::Increment => {
                self.session.increment_each(Tree::Counter, 0, WRITES as u64)?;
                Ok(WRITES as u64)
            }
            Job::Transfer => self.transfers(),
            Job::Lock => {
                self.session.lock_each(0, WRITES as u64)?;
                Ok(WRITES as u64)
            }
            Job::Collatz => Err("3n+1 is one whole, not batches".into()),
        }
    }

    /// Picks random keys from `first` on; the sum of the essences of their values.
    #[inline]
    fn pick(&mut self, first: u64, keys: u64, count: usize) -> u64 {
        let mut sum = 0u64;
        for key in &mut self.keys[..count] {
            *key = first + self.random.below(keys);
            sum = sum.wrapping_add(essence_of(*key));
        }
        sum
    }

    fn transfers(&mut self) -> Result<u64> {
        let accounts = self.order.keys;
        let mut pairs = [[0; 2]; WRITES];
        for pair in &mut pairs {
            let from = self.random.below(accounts);
            *pair = [from, (from + 1 + self.random.below(accounts - 1)) % accounts];
        }
        self.session.transfer_each(&pairs)?;
        Ok(WRITES as u64)
    }

    fn whole(&mut self, pass: impl FnOnce(&mut dyn Session, u64) -> Result<u64>) -> Result<u64> {
        let wanted = self.order.walk.min(self.order.keys);
        let entries = pass(self.session, wanted)?;
        if entries == wanted {
            Ok(entries)
        } else {
            Err(format!("{entries} entries came by, not {wanted}").into())
        }
    }

    /// What was set last reads as it was written: by this worker, or by another in the same round.
    fn check_last_writes(&mut self) -> Result<()> {
        let last = match self.order.job {
            Job::Set => WRITES,
            Job::Commit => 1,
            _ => return Ok(()),
        };
        for number in &self.keys[..last] {
            let found = self.session.get(Tree::Data, *number)?.ok_or_else(|| missing(*number))?;
            let wanted = value(*number, self.order.stamp);
            if found != wanted {
                return Err(format!("{number} reads {found} after {wanted} was set").into());
            }
        }
        Ok(())
    }
}

/// A batch of reads whose sum is right.
fn same(wanted: u64, found: u64) -> Result<u64> {
    if wanted == found {
        Ok(BATCH as u64)
    } else {
        Err("a batch of gets answered wrong values".into())
    }
}
