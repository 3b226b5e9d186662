//! Channels: bounded queues of numbered messages, changed only by commits.
//!
//! A commit hands over what its transaction took and posted, in one call. Example: a channel of 2 messages holds 4
//! and 5; a post becomes 6, and either 4 is dropped (and counted) or the commit is refused, as the channel's
//! options say.
//!
//! Invariants
//! - Numbers ascend from 1 and are never used twice while the channel lives.
//! - A change is made on a copy that replaces the original, so that it is refused as a whole or made as a whole.

use std::collections::{BTreeMap, VecDeque};

use perilune_store::{ChannelOptions, Error, Result, WhenFull};

/// One channel and its messages, oldest first.
#[derive(Clone, Debug, Default)]
struct Channel {
    options: ChannelOptions,
    last: u64,
    messages: VecDeque<(u64, Vec<u8>)>,
    /// Messages dropped since one was last taken.
    dropped: u64,
}

impl Channel {
    fn fits(&self) -> bool {
        let bytes: usize = self.messages.iter().map(|(_, body)| body.len()).sum();
        self.messages.len() as u64 <= self.options.messages && bytes as u64 <= self.options.bytes
    }

    fn post(&mut self, body: &[u8]) -> Result<()> {
        self.last += 1;
        self.messages.push_back((self.last, body.to_vec()));
        while !self.fits() {
            // NB: a message larger than the channel would push out everything, itself last.
            if self.options.when_full == WhenFull::Refuse || self.messages.len() == 1 {
                return Err(Error::ChannelFull);
            }
            self.messages.pop_front();
            self.dropped += 1;
        }
        Ok(())
    }
}

/// All channels of a store, by name.
#[derive(Debug, Default)]
pub(crate) struct Channels {
    channels: BTreeMap<Vec<u8>, Channel>,
}

impl Channels {
    pub(crate) fn create(&mut self, name: &[u8], options: ChannelOptions) {
        self.channels.entry(name.to_vec()).or_default().options = options;
    }

    pub(crate) fn remove(&mut self, name: &[u8]) {
        self.channels.remove(name);
    }

    /// The first message with a number greater than `after`.
    pub(crate) fn first_after(&self, name: &[u8], after: u64) -> Option<&(u64, Vec<u8>)> {
        self.channels.get(name)?.messages.iter().find(|(number, _)| *number > after)
    }

    /// How many messages were dropped since one was last taken.
    pub(crate) fn dropped(&self, name: &[u8]) -> u64 {
        self.channels.get(name).map_or(0, |channel| channel.dropped)
    }

    /// The number of the newest message posted so far.
    pub(crate) fn last(&self, name: &[u8]) -> u64 {
        self.channels.get(name).map_or(0, |channel| channel.last)
    }

    /// Takes messages away and posts others, or does nothing and says why.
    pub(crate) fn change(&mut self, taken: &[(Vec<u8>, u64)], posts: &[(Vec<u8>, Vec<u8>)]) -> Result<()> {
        if taken.is_empty() && posts.is_empty() {
            return Ok(());
        }
        let mut changed = self.channels.clone();
        for (name, number) in taken {
            if let Some(channel) = changed.get_mut(name) {
                channel.messages.retain(|(other, _)| other != number);
                channel.dropped = 0;
            }
        }
        for (name, body) in posts {
            changed.entry(name.clone()).or_default().post(body)?;
        }
        self.channels = changed;
        Ok(())
    }
}
