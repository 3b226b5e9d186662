//! Levels of a session's transaction.

use std::time::Duration;

use perilune_store::{CommitHook, Error, Result, TransactionOptions};

use super::hook::HookWrites;
use super::{Running, Session};
use crate::access::Access;
use crate::limits::TRANSACTION_DEPTH;
use crate::message;
use crate::session::Limit;
use crate::txn::{Series, Transaction};

/// A time limit beyond this is none.
const LONGEST: Duration = Duration::from_secs(100 * 365 * 86_400);
/// Operations between two looks at the clock.
const CLOCK_EVERY: u32 = 32;

impl Running {
    /// Looks at the clock now and then.
    ///
    /// # Errors
    /// `TransactionTimeout`; then every later call of this try is one, so that nobody gets on by trying again.
    #[inline]
    pub(super) fn tick(&mut self) -> Result<()> {
        let operations = self.operations.wrapping_add(1);
        if operations.is_multiple_of(CLOCK_EVERY) {
            self.series.in_time()?;
        }
        self.operations = operations;
        Ok(())
    }
}

impl Session {
    /// Opens a level.
    pub(super) fn begin_level(&mut self, options: &TransactionOptions) -> Result<()> {
        self.moment += 1;
        self.here()?;
        self.take_over()?;
        if let Some(running) = &mut self.running {
            if running.txn.overlay.depth() >= TRANSACTION_DEPTH {
                return Err(Error::LimitReached {
                    what: "nested levels of a transaction",
                    limit: TRANSACTION_DEPTH as u64,
                });
            }
            running.txn.overlay.push();
            return Ok(());
        }
        options.check()?;
        let begun = || Series::new(options.timeout.min(LONGEST)).with(options);
        let series = self.series.take().unwrap_or_else(begun);
        let lease = series.lease(&self.access)?;
        let is_light = lease.is_none() && self.begins_light(options, series.tries());
        self.access.seat.set_limit(series.limit_of(Limit::of(self.wait_limit)));
        self.running = Some(match self.spare.take() {
            Some(mut spare) => {
                spare.txn.reset(lease);
                spare.options.clone_from(options);
                spare.series = series;
                spare.operations = 0;
                spare
            }
            None => Box::new(Running {
                txn: Transaction::with_lease(lease),
                options: options.clone(),
                series,
                operations: 0,
            }),
        });
        if is_light {
            self.one_shot.begin_steady();
        }
        Ok(())
    }

    /// Ends the innermost level for good.
    pub(super) fn commit_level(&mut self) -> Result<()> {
        self.moment += 1;
        self.here()?;
        if self.is_light() && self.commit_light()? {
            return Ok(());
        }
        let Some(running) = &mut self.running else {
            return Err(Error::TransactionState("there is no transaction to commit: begin one first"));
        };
        let depth = running.txn.overlay.depth();
        if depth > 1 {
            running.txn.overlay.merge_level();
            self.merge_waiting_of(depth);
            return Ok(());
        }
        let posts = running.series.in_time().and_then(|()| {
            self.posted.drain(..).try_for_each(|posted| {
                message::post_in(&self.access, &mut running.txn, &posted.name, &posted.body).map(|_| ())
            })
        });
        let result =
            posts.and_then(|()| call_hook(&mut self.hook, &self.access, &mut running.txn)).and_then(|()| {
                let deadline = running.series.deadline();
                self.access.commit(&mut running.txn, Some(deadline))
            });
        match result {
            Ok(written) => {
                running.txn.drop_lease();
                self.access.seat.set_limit(Limit::of(self.wait_limit));
                let asked = running.options.durability;
                self.locks_taken.clear();
                self.spare = self.running.take();
                if written.is_some() {
                    self.acknowledge(asked)?;
                }
                Ok(())
            }
            Err(error) => {
                self.end_try(error.is_retry());
                Err(error)
            }
        }
    }

    /// Drops the innermost level.
    pub(super) fn rollback_level(&mut self) -> Result<()> {
        self.moment += 1;
        if !self.mark.is_same_process() {
            self.disown();
        }
        if self.forked_levels > 0 {
            self.forked_levels -= 1;
            return Ok(());
        }
        let Some(running) = &mut self.running else {
            return Err(Error::TransactionState("there is no transaction to roll back"));
        };
        let depth = running.txn.overlay.depth();
        if depth > 1 {
            running.txn.drop_level();
            self.posted.retain(|posted| posted.level < depth);
            self.release_locks_of(depth);
        } else {
            self.end_try(true);
        }
        Ok(())
    }

    /// Ends this try; `again`: its series may go on.
    pub(super) fn end_try(&mut self, again: bool) {
        self.end_shot();
        if let Some(mut running) = self.running.take() {
            self.lost_lease = running.txn.has_lost_lease();
            running.txn.drop_lease();
            self.access.seat.set_limit(Limit::of(self.wait_limit));
            self.series = again.then_some(running.series);
            self.spare = Some(running);
        }
        self.posted.clear();
        self.release_locks_of(0);
    }
}

/// Shows the hook, if there is one, what is about to be written.
pub(super) fn call_hook(hook: &mut Option<CommitHook>, access: &Access, txn: &mut Transaction) -> Result<()> {
    if let Some(hook) = hook {
        txn.overlay.flatten();
        access.txn_settle_patches(txn)?;
        if !txn.overlay.is_empty() {
            hook(&mut HookWrites { access, txn })?;
        }
    }
    Ok(())
}
