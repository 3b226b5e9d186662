//! Bounded, ordered messages by name, across processes. They outlive processes, not the machine.
//!
//! One program tells another that there is work, or what has happened, without both being there at the same time. A channel
//! is a queue with bounds: a receiver takes the oldest message away, or follows all of them by their numbers and leaves
//! them there.
//!
//! Example: `post(b"jobs", b"42")` here, `receive(b"jobs", None)` there: one of all who wait gets it.
//!
//! Invariants
//! - Numbers ascend by 1 from 1; who follows is told how many it has missed.
//! - A message posted in a transaction is there when that has committed, and not before.
//!
//! Deliberately absent: durability, and delivery again when a receiver dies. What must not be lost is a node.

use std::time::Duration;

use crate::Result;

/// What a full channel does with one message more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenFull {
    /// [`crate::Error::ChannelFull`] to the sender.
    Refuse,
    /// The oldest message goes.
    DropOldest,
}

/// The bounds of a channel, set at its creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChannelOptions {
    /// Messages at most (1 to 1,000,000).
    pub messages: u64,
    /// Bytes of all messages together at most.
    pub bytes: u64,
    /// What happens beyond.
    pub when_full: WhenFull,
}

impl Default for ChannelOptions {
    fn default() -> Self {
        ChannelOptions { messages: 10_000, bytes: 16 << 20, when_full: WhenFull::Refuse }
    }
}

/// A message received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Its number in the channel, from 1.
    pub number: u64,
    /// How many messages before it were dropped unseen by this receiver.
    pub missed: u64,
    /// Its bytes.
    pub body: Vec<u8>,
}

/// Messages of a session.
pub trait Messages {
    /// Creates the channel `name`, or changes its bounds.
    ///
    /// # Errors
    /// `Invalid` for bounds out of range.
    fn create_channel(&mut self, name: &[u8], options: ChannelOptions) -> Result<()>;

    /// Posts a message and returns its number (0 inside a transaction: it is posted at commit). A
    /// channel that was not created has the default bounds.
    ///
    /// # Errors
    /// `ChannelFull`, `ValueTooLong`.
    fn post(&mut self, name: &[u8], body: &[u8]) -> Result<u64>;

    /// Takes the oldest message away, waiting up to `timeout` (None: for ever) for one.
    ///
    /// # Errors
    /// `TransactionState` when it would have to wait inside a transaction.
    fn receive(&mut self, name: &[u8], timeout: Option<Duration>) -> Result<Option<Message>>;

    /// Reads the first message after number `after` and leaves it for others, waiting up to `timeout` (None: for ever) for one.
    ///
    /// # Errors
    /// As [`Messages::receive`].
    fn follow(&mut self, name: &[u8], after: u64, timeout: Option<Duration>) -> Result<Option<Message>>;

    /// Removes the channel and its messages.
    ///
    /// # Errors
    /// I/O only.
    fn remove_channel(&mut self, name: &[u8]) -> Result<()>;
}
