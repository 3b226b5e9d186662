//! Transactions behind a server: levels, tries, the hook, and the commit, which is one request.
//!
//! What a body reads comes from the server, of one state; what it writes stays here. The commit sends conditions and
//! writes. The server checks and applies them as one transaction of its own, or answers that there is a conflict; then the
//! runner begins anew.
//!
//! Example: a body that reads `a` and `b` and writes both is two questions and one commit.
//!
//! Invariants
//! - A commit is sent once. If its answer does not come, its outcome is unknown, and is told so.
//! - One that has written nothing sends nothing: all that it was told was one state.
//!
//! Deliberately absent: running alone. Nothing is held open at the server, so nobody there could keep others out.

use std::time::{Duration, Instant};

use perilune_store::{
    Durability, Error, Result, Session, TransactionOptions, Transactions, Write, Writes,
    TRIES_BEFORE_EXCLUSIVE,
};

use crate::link::Effect;
use crate::running::{Running, Series, Telling, Told};
use crate::session::{flag, RemoteSession, NO_TRANSACTION};
use crate::wire;

pub(crate) const NO_EXCLUSIVE: &str =
    "the option `exclusive` is for a database in a file: behind a server no transaction runs alone; \
                            leave it out, and run again what ends in a conflict";

impl RemoteSession {
    /// The open transaction, if it can still grow.
    pub(crate) fn growing(&mut self) -> Result<&mut Running> {
        let Some(running) = &mut self.running else { return Err(NO_TRANSACTION) };
        if self.link.is_forked() {
            return Err(Error::Forked);
        }
        if let Some(series) = self.series.as_ref().filter(|series| Instant::now() >= series.deadline) {
            return Err(Error::TransactionTimeout { limit: series.limit, holder: None });
        }
        running.check()?;
        Ok(running)
    }

    /// Sends what was read and written; true if it is one state still, and so it was written.
    fn send_commit(&mut self) -> Result<bool> {
        let left = self.series.as_ref().map_or(self.shared.options.timeout, |series| {
            series.deadline.saturating_duration_since(Instant::now())
        });
        let Some(running) = &self.running else { return Err(NO_TRANSACTION) };
        if left.is_zero() {
            let limit = self.series.as_ref().map_or(left, |series| series.limit);
            return Err(Error::TransactionTimeout { limit, holder: None });
        }
        if running.is_doomed {
            return Ok(false);
        }
        // All that it was told was one state when it was told the last of it.
        if !running.writes() {
            return Ok(true);
        }
        let milliseconds = left.as_millis().max(1).to_string();
        let fsync = running.options.durability == Some(Durability::Fsync)
            || running.options.durability.is_none() && self.shared.options.fsync;
        let mut arguments: Vec<&[u8]> = vec![b"1", flag(fsync), milliseconds.as_bytes()];
        arguments.extend(running.reads.conditions().as_arguments().iter());
        let (prefixes, entries) = running.overlay.parts();
        prefixes.iter().for_each(|prefix| arguments.extend([wire::KILL, prefix]));
        for (key, value) in entries {
            match value {
                Some(value) => arguments.extend([wire::SET, key, value]),
                None => arguments.extend([wire::REMOVE, key]),
            }
        }
        for Told { channel, what, .. } in &running.messages {
            match what {
                Telling::Posted(body) => arguments.extend([wire::POST, channel, body]),
                Telling::Taken(number) => arguments.extend([wire::TAKE, channel, number.as_bytes()]),
                Telling::Empty => arguments.extend([wire::EMPTY, channel]),
            }
        }
        match self.link.call("COMMIT", &arguments, Effect::Change, left) {
            Ok(_) => Ok(true),
            Err(Error::Conflict) => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn run_hook(&mut self) -> Result<()> {
        let Some(mut hook) = self.hook.take() else { return Ok(()) };
        let writes = self.running.as_ref().is_some_and(|running| running.overlay.len() > 0);
        let outcome = if writes { hook(&mut HookWrites(self)) } else { Ok(()) };
        self.hook = Some(hook);
        outcome
    }

    /// The rest of the time of the open transaction, and when it ends.
    pub(crate) fn time_left(&self) -> Option<(Duration, Instant)> {
        let series = self.series.as_ref().filter(|_| self.running.is_some())?;
        Some((series.deadline.saturating_duration_since(Instant::now()), series.deadline))
    }

    /// Ends the tries, which have taken too long.
    pub(crate) fn out_of_time(&mut self) -> Error {
        let limit = self.series.take().map_or(Duration::ZERO, |series| series.limit);
        Error::TransactionTimeout { limit, holder: None }
    }
}

impl Transactions for RemoteSession {
    fn begin(&mut self, options: &TransactionOptions) -> Result<()> {
        let limit = self.shared.limits.transaction_depth;
        if self.depth() >= limit {
            return Err(Error::LimitReached { what: "levels of transactions", limit: limit as u64 });
        }
        if self.running.is_some() && self.link.is_forked() {
            return Err(Error::Forked);
        }
        if self.running.is_none() {
            options.check()?;
            if options.exclusive && !options.read_only {
                return Err(Error::Invalid(NO_EXCLUSIVE.to_owned()));
            }
            let series = self.series.get_or_insert_with(|| Series::new(options.timeout));
            series.gives_up = options.never_exclusive;
            self.running = Some(Running { options: options.clone(), ..Running::default() });
            self.ahead.clear();
        }
        if let Some(running) = &mut self.running {
            running.overlay.begin();
        }
        Ok(())
    }

    fn commit(&mut self) -> Result<()> {
        let forked = self.link.is_forked();
        let Some(running) = &mut self.running else { return Err(NO_TRANSACTION) };
        if running.overlay.depth() > 1 {
            running.merge();
            return Ok(());
        }
        if forked {
            self.running = None;
            return Err(Error::Forked);
        }
        let sent = self.run_hook().and_then(|()| self.send_commit());
        self.ahead.clear();
        match sent {
            Ok(true) => {
                self.running = None;
                self.series = None;
                Ok(())
            }
            Ok(false) => {
                self.rollback()?;
                Err(Error::Conflict)
            }
            Err(error) => {
                self.rollback()?;
                Err(error)
            }
        }
    }

    fn rollback(&mut self) -> Result<()> {
        let forked = self.link.is_forked();
        let Some(running) = &mut self.running else { return Err(NO_TRANSACTION) };
        let depth = running.overlay.depth();
        let taken = running.rollback();
        if depth == 1 {
            self.running = None;
            self.ahead.clear();
        }
        if !forked {
            self.release(taken.iter().map(|(_, owner, name)| (*owner, name.as_slice())));
        }
        Ok(())
    }

    fn depth(&self) -> usize {
        self.running.as_ref().map_or(0, |running| running.overlay.depth())
    }

    fn validate(&mut self) -> Result<()> {
        if self.growing()?.has_asked {
            self.see(&[])?;
        }
        Ok(())
    }

    fn retry(&mut self) -> Result<()> {
        let Some(series) = &mut self.series else { return Ok(()) };
        if Instant::now() >= series.deadline {
            return Err(self.out_of_time());
        }
        series.tries += 1;
        if series.gives_up && series.tries >= TRIES_BEFORE_EXCLUSIVE {
            self.series = None;
            return Err(Error::Conflict);
        }
        series.back_off();
        Ok(())
    }

    fn give_up(&mut self) {
        self.series = None;
    }

    fn restarts(&self) -> u32 {
        self.series.as_ref().map_or(0, |series| series.tries)
    }
}

/// The writes of a transaction as a commit hook sees them.
struct HookWrites<'s>(&'s mut RemoteSession);

impl Writes for HookWrites<'_> {
    fn for_each(&self, visit: &mut dyn FnMut(Write<'_>)) {
        let Some(running) = &self.0.running else { return };
        let (prefixes, entries) = running.overlay.parts();
        prefixes.iter().for_each(|prefix| visit(Write::RemovePrefix(prefix)));
        for (key, value) in entries {
            visit(value.as_ref().map_or(Write::Remove(key), |value| Write::Set(key, value)));
        }
    }

    fn set(&mut self, key: &[u8], value: &[u8]) {
        if let Some(running) = &mut self.0.running {
            running.overlay.set(key, Some(value));
        }
    }

    fn remove(&mut self, key: &[u8]) {
        if let Some(running) = &mut self.0.running {
            running.overlay.set(key, None);
        }
    }

    fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        Session::get(self.0, key, value)
    }
}
