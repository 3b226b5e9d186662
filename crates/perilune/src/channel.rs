//! Channels: bounded, ordered messages by name, across the processes of a database.
//!
//! Messages outlive processes, but not the machine. A message posted inside a transaction is posted
//! when it commits.

use std::time::Duration;

use perilune_store::{ChannelOptions, Message, Messages};

use crate::{limits, Error, Result, Session};

/// A channel, as a session sees it: [`Session::channel`] makes it, and costs nothing.
///
/// Every method answers `Invalid` for a name that is empty, longer than 255 bytes, or has a zero byte.
pub struct Channel<'s, 'n> {
    session: &'s mut Session,
    name: &'n [u8],
}

impl Session {
    /// The channel `name`, of any bytes, to be worked with.
    ///
    /// ```
    /// # let directory = std::env::temp_dir().join(format!("perilune-doc-channel-{}", std::process::id()));
    /// # std::fs::create_dir_all(&directory).unwrap();
    /// # let mut session = perilune::Database::open(directory.join("t.db"))?.session()?;
    /// session.channel("jobs").post("resize 17")?;
    /// let job = session.channel("jobs").receive(None)?.map(|message| message.body);
    /// assert_eq!(job.as_deref(), Some(&b"resize 17"[..]));
    /// # let _ = std::fs::remove_dir_all(&directory);
    /// # Ok::<(), perilune::Error>(())
    /// ```
    pub fn channel<'n>(&mut self, name: &'n (impl AsRef<[u8]> + ?Sized)) -> Channel<'_, 'n> {
        Channel { session: self, name: name.as_ref() }
    }
}

impl Channel<'_, '_> {
    /// Creates the channel, or changes its bounds.
    ///
    /// # Errors
    /// `Invalid` for bounds out of range or the name.
    pub fn create(&mut self, options: ChannelOptions) -> Result<()> {
        let name = checked(self.name)?;
        Ok(self.session.trees.database.create_channel(name, options)?)
    }

    /// Posts a message and returns its number in the channel, from 1 (0 inside a transaction). A
    /// channel that was not created has the default bounds.
    ///
    /// # Errors
    /// `ChannelFull`, `ValueTooLong`, `Invalid` for the name.
    pub fn post(&mut self, body: impl AsRef<[u8]>) -> Result<u64> {
        let name = checked(self.name)?;
        Ok(self.session.trees.database.post(name, body.as_ref())?)
    }

    /// Takes the oldest message away, waiting up to `timeout` (`None`: for ever) for one. Each
    /// message goes to one receiver.
    ///
    /// # Errors
    /// `TransactionState` when it would have to wait inside a transaction.
    pub fn receive(&mut self, timeout: Option<Duration>) -> Result<Option<Message>> {
        let name = checked(self.name)?;
        Ok(self.session.trees.database.receive(name, timeout)?)
    }

    /// Reads the first message after number `after` (0: the oldest there is) and leaves it for
    /// others, waiting as [`Channel::receive`]. [`Message::missed`] counts those dropped in between.
    ///
    /// # Errors
    /// As [`Channel::receive`].
    pub fn follow(&mut self, after: u64, timeout: Option<Duration>) -> Result<Option<Message>> {
        let name = checked(self.name)?;
        Ok(self.session.trees.database.follow(name, after, timeout)?)
    }

    /// Removes the channel and its messages.
    ///
    /// # Errors
    /// I/O only.
    pub fn remove(&mut self) -> Result<()> {
        let name = checked(self.name)?;
        Ok(self.session.trees.database.remove_channel(name)?)
    }
}

impl std::fmt::Debug for Channel<'_, '_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Channel").field("name", &self.name).finish_non_exhaustive()
    }
}

fn checked(name: &[u8]) -> Result<&[u8]> {
    if name.is_empty() || name.len() > limits::CHANNEL_NAME_BYTES || name.contains(&0) {
        let limit = limits::CHANNEL_NAME_BYTES;
        return Err(Error::invalid(format!("a channel's name has 1 to {limit} bytes, none of them zero")));
    }
    Ok(name)
}
