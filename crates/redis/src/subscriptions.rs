//! The subscriptions of one event loop: which of its connections get what, and what each client has.
//!
//! Invariant: nothing here moves all names at once, however many there are: trees grow and shrink by the name.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use crate::topic::Topic;

/// A name that a client is subscribed to from now on, or is no longer.
pub(crate) type Change = (Topic, Vec<u8>, bool);

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

    pub(crate) fn has(&self, topic: Topic, name: &[u8]) -> bool {
        self.names[topic as usize].contains(name)
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

    /// How many, all together.
    pub(crate) fn total(&self) -> usize {
        self.names.iter().map(BTreeSet::len).sum()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.names.iter().all(BTreeSet::is_empty)
    }

    /// The first `most` names behind `last`, by topic and name.
    pub(crate) fn behind(&self, last: Option<&(Topic, Vec<u8>)>, most: usize) -> Vec<(Topic, Vec<u8>)> {
        let left = Topic::ALL.into_iter().filter(|topic| last.is_none_or(|(begun, _)| *topic >= *begun));
        let names = left.flat_map(|topic| {
            let from = match last {
                Some((begun, name)) if *begun == topic => Bound::Excluded(&name[..]),
                _ => Bound::Unbounded,
            };
            let names = self.names[topic as usize].range::<[u8], _>((from, Bound::Unbounded));
            names.map(move |name| (topic, name.clone()))
        });
        names.take(most).collect()
    }
}

/// Connections in the order of their tokens; few have many.
type Tokens = Vec<usize>;

/// Connections of a loop, by what they are subscribed to.
#[derive(Debug, Default)]
pub(crate) struct Subscriptions {
    /// By topic. Of patterns all are tried, in order.
    names: [BTreeMap<Vec<u8>, Tokens>; 3],
}

impl Subscriptions {
    /// Puts a connection in or out, and answers how many have the name then.
    pub(crate) fn change(&mut self, topic: Topic, name: &[u8], token: usize, is_in: bool) -> usize {
        let names = &mut self.names[topic as usize];
        let Some(tokens) = names.get_mut(name) else {
            if is_in {
                names.insert(name.to_vec(), vec![token]);
            }
            return usize::from(is_in);
        };
        match (tokens.binary_search(&token), is_in) {
            (Err(place), true) => tokens.insert(place, token),
            (Ok(place), false) => drop(tokens.remove(place)),
            _ => {}
        }
        let left = tokens.len();
        if left == 0 {
            names.remove(name);
        }
        left
    }

    /// Connections that have the channel by its name.
    pub(crate) fn of_channel(&self, topic: Topic, channel: &[u8]) -> Tokens {
        self.names[topic as usize].get(channel).cloned().unwrap_or_default()
    }

    /// Patterns that match the channel, with their connections.
    pub(crate) fn of_patterns(&self, channel: &[u8]) -> Vec<(Vec<u8>, Tokens)> {
        self.names[Topic::Pattern as usize]
            .iter()
            .filter(|(pattern, _)| crate::pattern::matches(pattern, channel))
            .map(|(pattern, tokens)| (pattern.clone(), tokens.clone()))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_walked_in_slices() {
        let mut topics = Topics::default();
        for number in 0..10_u8 {
            let topic = Topic::ALL[usize::from(number) % 3];
            assert!(
                topics.add(topic, &[number]) && !topics.add(topic, &[number]) && topics.has(topic, &[number])
            );
        }
        for most in [1, 3, 100] {
            let (mut last, mut walked) = (None, Vec::new());
            loop {
                let slice = topics.behind(last.as_ref(), most);
                let Some(end) = slice.last() else { break };
                assert!(slice.len() <= most);
                last = Some(end.clone());
                walked.extend(slice);
            }
            let all: Vec<_> = Topic::ALL
                .into_iter()
                .flat_map(|topic| topics.names(topic).map(move |name| (topic, name.clone())))
                .collect();
            assert_eq!(walked, all);
            assert_eq!(walked.len(), topics.total());
        }
    }

    #[test]
    fn a_name_goes_with_its_last_connection() {
        let mut table = Subscriptions::default();
        for (token, is_in, count) in [(5, true, 1), (5, true, 1), (2, true, 2), (9, false, 2), (5, false, 1)]
        {
            assert_eq!(table.change(Topic::Channel, b"c", token, is_in), count);
        }
        assert_eq!(table.of_channel(Topic::Channel, b"c"), [2]);
        assert_eq!(table.change(Topic::Channel, b"c", 2, false), 0);
        assert_eq!(table.change(Topic::Channel, b"c", 2, false), 0);
        assert!(table.names.iter().all(BTreeMap::is_empty));
    }
}
