//! Channels: bounded, ordered messages by name, across the processes of a database.
//!
//! Messages outlive processes, but not the machine. A message posted inside a transaction is posted
//! when it commits.

use std::time::Duration;

use perilune_store::{ChannelOptions, Message, Messages};

use crate::{limits, Error, Result, Session};

impl Session {
    /// Creates the channel `name`, or changes its bounds.
    ///
    /// # Errors
    /// `Invalid` for bounds out of range or a name that is empty, longer than 255 bytes, or has a
    /// zero byte.
    pub fn create_channel(&mut self, name: impl AsRef<[u8]>, options: ChannelOptions) -> Result<()> {
        Ok(self.trees.database.create_channel(checked(name.as_ref())?, options)?)
    }

    /// Posts a message and returns its number in the channel, from 1 (0 inside a transaction). A
    /// channel that was not created has the default bounds.
    ///
    /// # Errors
    /// `ChannelFull`, `ValueTooLong`, `Invalid` for the name.
    pub fn post(&mut self, name: impl AsRef<[u8]>, body: impl AsRef<[u8]>) -> Result<u64> {
        Ok(self.trees.database.post(checked(name.as_ref())?, body.as_ref())?)
    }

    /// Takes the oldest message away, waiting up to `timeout` (`None`: for ever) for one. Each
    /// message goes to one receiver.
    ///
    /// # Errors
    /// `TransactionState` when it would have to wait inside a transaction.
    pub fn receive(&mut self, name: impl AsRef<[u8]>, timeout: Option<Duration>) -> Result<Option<Message>> {
        Ok(self.trees.database.receive(checked(name.as_ref())?, timeout)?)
    }

    /// Reads the first message after number `after` (0: the oldest there is) and leaves it for
    /// others, waiting as [`Session::receive`]. [`Message::missed`] counts those dropped in between.
    ///
    /// # Errors
    /// As [`Session::receive`].
    pub fn follow(
        &mut self,
        name: impl AsRef<[u8]>,
        after: u64,
        timeout: Option<Duration>,
    ) -> Result<Option<Message>> {
        Ok(self.trees.database.follow(checked(name.as_ref())?, after, timeout)?)
    }

    /// Removes the channel and its messages.
    ///
    /// # Errors
    /// I/O only.
    pub fn remove_channel(&mut self, name: impl AsRef<[u8]>) -> Result<()> {
        Ok(self.trees.database.remove_channel(checked(name.as_ref())?)?)
    }
}

fn checked(name: &[u8]) -> Result<&[u8]> {
    if name.is_empty() || name.len() > limits::CHANNEL_NAME_BYTES || name.contains(&0) {
        let limit = limits::CHANNEL_NAME_BYTES;
        return Err(Error::invalid(format!("a channel's name has 1 to {limit} bytes, none of them zero")));
    }
    Ok(name)
}
