//! The facet `Messages`: posts and receipts are writes and reads of a transaction, so that a rollback undoes them
//! and two receivers of one message conflict.
//!
//! A session without a transaction runs one for each call; while a channel is empty it sleeps until the version
//! changes, and tries again.

use std::time::Duration;

use perilune_store::{
    transact, ChannelOptions, Error, Message, Messages, Result, TransactionOptions, Transactions,
};

use crate::query::Query;
use crate::session::{MemorySession, NO_TRANSACTION};
use crate::state::deadline;

impl MemorySession {
    /// Tries once, as part of the open transaction, to find the first message after `after`.
    fn find(&mut self, name: &[u8], after: u64) -> Result<Option<Message>> {
        let transaction = self.transaction.as_mut().ok_or(NO_TRANSACTION)?;
        let query = Query::Message { channel: name.to_vec(), after };
        let Some((number, body)) = transaction.read(&self.shared.lock(), query)? else {
            return Ok(None);
        };
        let number = number.try_into().map(u64::from_be_bytes);
        let number = number.map_err(|_| Error::Internal("a message's number is 8 bytes".to_string()))?;
        Ok(Some(Message { number, missed: 0, body }))
    }

    /// Tries once, as part of the open transaction, to take the oldest message.
    fn take(&mut self, name: &[u8]) -> Result<Option<Message>> {
        let level = self.transaction.as_mut().ok_or(NO_TRANSACTION)?.writable()?;
        let taken = level.taken.iter().filter(|(channel, _)| channel == name);
        let after = taken.map(|(_, number)| *number).max();
        let Some(message) = self.find(name, after.unwrap_or(0))? else {
            return Ok(None);
        };
        let missed = if after.is_none() { self.shared.lock().channels.dropped(name) } else { 0 };
        let level = self.transaction.as_mut().ok_or(NO_TRANSACTION)?.writable()?;
        level.taken.push((name.to_vec(), message.number));
        Ok(Some(Message { missed, ..message }))
    }

    /// Runs `attempt` in the open transaction, or again and again in one of its own until it finds
    /// something or the time is over.
    fn until_found(
        &mut self,
        timeout: Option<Duration>,
        mut attempt: impl FnMut(&mut Self) -> Result<Option<Message>>,
    ) -> Result<Option<Message>> {
        if self.depth() > 0 {
            let found = attempt(self)?;
            if found.is_none() && timeout != Some(Duration::ZERO) {
                return Err(Error::TransactionState(
                    "a transaction is open: receive before it, or with timeout 0",
                ));
            }
            return Ok(found);
        }
        let until = deadline(timeout);
        let mut in_time = true;
        loop {
            let version = self.shared.lock().version;
            let found = transact(self, &TransactionOptions::default(), &mut attempt)?;
            if found.is_some() || !in_time {
                return Ok(found);
            }
            let mut state = self.shared.lock();
            while in_time && state.version == version {
                (state, in_time) = self.shared.wait(state, until);
            }
        }
    }
}

impl Messages for MemorySession {
    fn create_channel(&mut self, name: &[u8], options: ChannelOptions) -> Result<()> {
        if !(1..=1_000_000).contains(&options.messages) || options.bytes == 0 {
            return Err(Error::Invalid(
                "a channel holds 1 to 1,000,000 messages and at least one byte".to_string(),
            ));
        }
        self.shared.lock().channels.create(name, options);
        Ok(())
    }

    fn post(&mut self, name: &[u8], body: &[u8]) -> Result<u64> {
        self.check_value(body)?;
        if let Some(transaction) = &mut self.transaction {
            transaction.writable()?.posts.push((name.to_vec(), body.to_vec()));
            return Ok(0);
        }
        let mut state = self.shared.lock();
        state.channels.change(&[], &[(name.to_vec(), body.to_vec())])?;
        state.version += 1;
        self.shared.changed.notify_all();
        Ok(state.channels.last(name))
    }

    fn receive(&mut self, name: &[u8], timeout: Option<Duration>) -> Result<Option<Message>> {
        self.until_found(timeout, |session| session.take(name))
    }

    fn follow(&mut self, name: &[u8], after: u64, timeout: Option<Duration>) -> Result<Option<Message>> {
        let found = self.until_found(timeout, |session| session.find(name, after))?;
        Ok(found.map(|message| Message { missed: message.number - after - 1, ..message }))
    }

    fn remove_channel(&mut self, name: &[u8]) -> Result<()> {
        let mut state = self.shared.lock();
        state.channels.remove(name);
        state.version += 1;
        self.shared.changed.notify_all();
        Ok(())
    }
}
