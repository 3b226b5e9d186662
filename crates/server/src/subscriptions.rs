//! The subscriptions of one event loop: which of its connections get what, and what each client has.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use crate::subscribers::Topic;

/// What one client is subscribed to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Topics {
    names: [BTreeSet<Vec<u8>>; 3],
    /// Of all names.
    pub(crate) bytes: usize,
}

impl Topics {
    /// False if it is subscribed already.
    pub(crate) fn add(&mut self, topic: Topic, name: &[u8]) -> bool {
        let added = self.names[topic as usize].insert(name.to_vec());
        self.bytes += if added { name.len() } else { 0 };
        added
    }

    /// False if it is not subscribed.
    pub(crate) fn remove(&mut self, topic: Topic, name: &[u8]) -> bool {
        let removed = self.names[topic as usize].remove(name);
        self.bytes -= if removed { name.len() } else { 0 };
        removed
    }

    pub(crate) fn names(&self, topic: Topic) -> impl ExactSizeIterator<Item = &Vec<u8>> {
        self.names[topic as usize].iter()
    }

    /// How many, as SUBSCRIBE and its kin say it: channels and patterns together.
    pub(crate) fn count(&self, topic: Topic) -> usize {
        let count = |topic: Topic| self.names[topic as usize].len();
        match topic {
            Topic::Shard => count(Topic::Shard),
            Topic::Channel | Topic::Pattern => count(Topic::Channel) + count(Topic::Pattern),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.names.iter().all(BTreeSet::is_empty)
    }
}

/// Connections of a loop, by what they are subscribed to.
#[derive(Debug, Default)]
pub(crate) struct Subscriptions {
    channels: HashMap<Vec<u8>, HashSet<usize>>,
    shards: HashMap<Vec<u8>, HashSet<usize>>,
    /// In order, as all of them are tried.
    patterns: BTreeMap<Vec<u8>, HashSet<usize>>,
}

impl Subscriptions {
    /// Puts a connection in or out, and answers how many have the name then.
    pub(crate) fn change(&mut self, topic: Topic, name: &[u8], token: usize, is_in: bool) -> usize {
        if is_in {
            let tokens = match topic {
                Topic::Channel => self.channels.entry(name.to_vec()).or_default(),
                Topic::Shard => self.shards.entry(name.to_vec()).or_default(),
                Topic::Pattern => self.patterns.entry(name.to_vec()).or_default(),
            };
            tokens.insert(token);
            return tokens.len();
        }
        let tokens = match topic {
            Topic::Channel => self.channels.get_mut(name),
            Topic::Shard => self.shards.get_mut(name),
            Topic::Pattern => self.patterns.get_mut(name),
        };
        let left = tokens.map_or(0, |tokens| {
            tokens.remove(&token);
            tokens.len()
        });
        if left == 0 {
            match topic {
                Topic::Channel => self.channels.remove(name),
                Topic::Shard => self.shards.remove(name),
                Topic::Pattern => self.patterns.remove(name),
            };
        }
        left
    }

    /// Connections that have the channel by its name.
    pub(crate) fn of_channel(&self, topic: Topic, channel: &[u8]) -> Vec<usize> {
        let table = if topic == Topic::Shard { &self.shards } else { &self.channels };
        table.get(channel).map(|tokens| tokens.iter().copied().collect()).unwrap_or_default()
    }

    /// Patterns that match the channel, with their connections.
    pub(crate) fn of_patterns(&self, channel: &[u8]) -> Vec<(Vec<u8>, Vec<usize>)> {
        self.patterns
            .iter()
            .filter(|(pattern, _)| crate::pattern::matches(pattern, channel))
            .map(|(pattern, tokens)| (pattern.clone(), tokens.iter().copied().collect()))
            .collect()
    }
}
