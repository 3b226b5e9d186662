//! Levels of a session's transaction: begun, committed, rolled back, run again.

use std::time::Instant;

use perilune_store::{Error, Result, TransactionOptions, Transactions};

use crate::session::{MemorySession, Series, NO_TRANSACTION};
use crate::state::Lease;
use crate::transaction::Transaction;

impl Transactions for MemorySession {
    fn begin(&mut self, options: &TransactionOptions) -> Result<()> {
        if let Some(transaction) = &mut self.transaction {
            let limit = self.shared.limits.transaction_depth;
            if transaction.levels.len() >= limit {
                let what = "nested levels of a transaction";
                return Err(Error::LimitReached { what, limit: limit as u64 });
            }
            transaction.begin_level();
            return Ok(());
        }
        options.check()?;
        if !std::mem::take(&mut self.series.continues) {
            self.series = Series::new();
        }
        self.series.limit = options.timeout;
        self.series.options = options.clone();
        let mut state = self.shared.lock();
        if self.exclusive() {
            state = self.shared.wait_for_lease(state, self.id);
            state.lease = Some(Lease { session: self.id, since: Instant::now() });
        }
        self.transaction = Some(Transaction::new(options.clone(), state.version));
        Ok(())
    }

    fn commit(&mut self) -> Result<()> {
        match self.depth() {
            0 => return Err(NO_TRANSACTION),
            1 => {}
            _ => {
                self.transaction.as_mut().ok_or(NO_TRANSACTION)?.commit_level();
                return Ok(());
            }
        }
        let result = self.run_hook().and_then(|()| self.publish());
        match result {
            Ok(()) => {
                // The locks survive; everything else of the level has been applied.
                self.transaction = None;
                self.release_lease();
                self.series = Series::new();
                Ok(())
            }
            Err(error) => {
                self.drop_level()?;
                Err(error)
            }
        }
    }

    fn rollback(&mut self) -> Result<()> {
        self.drop_level()
    }

    fn depth(&self) -> usize {
        self.transaction.as_ref().map_or(0, |transaction| transaction.levels.len())
    }

    fn validate(&mut self) -> Result<()> {
        let transaction = self.transaction.as_mut().ok_or(NO_TRANSACTION)?;
        transaction.check(&self.shared.lock())
    }

    fn retry(&mut self) -> Result<()> {
        if self.transaction.is_some() {
            return Err(Error::TransactionState("a transaction is still open: roll all levels back first"));
        }
        let limit = self.series.limit;
        if self.series.started.elapsed() >= limit {
            self.series = Series::new();
            return Err(Error::TransactionTimeout { limit, holder: None });
        }
        self.series.failures += 1;
        if self.series.options.gives_up_after(self.series.failures) {
            self.series = Series::new();
            return Err(Error::Conflict);
        }
        self.series.continues = true;
        std::thread::yield_now();
        Ok(())
    }

    fn give_up(&mut self) {
        self.series = Series::new();
    }

    fn restarts(&self) -> u32 {
        if self.transaction.is_some() {
            self.series.failures
        } else {
            0
        }
    }
}
