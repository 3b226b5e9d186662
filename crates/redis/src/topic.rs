//! What is subscribed to and published: kinds of names, and a message as its subscribers are told it.
//!
//! Example: PUBLISH of `news` reaches who is subscribed to the channel `news`, and whose pattern is `n*`; SPUBLISH only who
//! is subscribed to the shard channel.
//!
//! Invariant: a message is built once for each protocol, however many hear it.

use perilune_resp::{Protocol, Replies};

/// What a name that is subscribed to stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Topic {
    Channel,
    Pattern,
    Shard,
}

impl Topic {
    pub(crate) const ALL: [Topic; 3] = [Topic::Channel, Topic::Pattern, Topic::Shard];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Topic::Channel => "channel",
            Topic::Pattern => "pattern",
            Topic::Shard => "shard",
        }
    }

    pub(crate) fn of(name: &[u8]) -> Option<Topic> {
        Topic::ALL.into_iter().find(|topic| topic.name().as_bytes() == name)
    }
}

/// What was published.
#[derive(Debug)]
pub(crate) struct Message {
    pub(crate) topic: Topic,
    pub(crate) channel: Vec<u8>,
    pub(crate) payload: Vec<u8>,
}

impl Message {
    /// As a client is told that is subscribed to `pattern`, or to the channel.
    pub(crate) fn frame(&self, protocol: Protocol, pattern: Option<&[u8]>) -> Vec<u8> {
        let mut frame = Vec::with_capacity(64 + self.channel.len() + self.payload.len());
        let mut replies = Replies::new(&mut frame, protocol);
        let word = match (pattern, self.topic) {
            (Some(_), _) => "pmessage",
            (None, Topic::Shard) => "smessage",
            (None, _) => "message",
        };
        replies.push(3 + usize::from(pattern.is_some()));
        replies.bulk(word.as_bytes());
        if let Some(pattern) = pattern {
            replies.bulk(pattern);
        }
        replies.bulk(&self.channel);
        replies.bulk(&self.payload);
        frame
    }
}
