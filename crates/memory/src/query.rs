//! Reads as data, so that they can be run again to see whether they still hold.

use std::ops::Bound;

use crate::state::State;

/// One question to the committed state.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Query {
    /// The value at a key.
    Value(Vec<u8>),
    /// Whether a longer key begins with this one.
    Descendants(Vec<u8>),
    /// The first key after `from`.
    Next { from: Vec<u8>, inclusive: bool, with_value: bool },
    /// The last key before `from`.
    Previous { from: Vec<u8>, with_value: bool },
    /// The first message of a channel after a number.
    Message { channel: Vec<u8>, after: u64 },
}

/// What was found: a key (or a message's number, big endian) and its value, or nothing.
pub(crate) type Answer = Option<(Vec<u8>, Vec<u8>)>;

impl Query {
    pub(crate) fn run(&self, state: &State) -> Answer {
        let found = |entry: Option<(&Vec<u8>, &Vec<u8>)>, with_value: bool| {
            entry.map(|(key, value)| (key.clone(), if with_value { value.clone() } else { Vec::new() }))
        };
        match self {
            Query::Value(key) => found(state.map.get_key_value(key), true),
            Query::Descendants(key) => {
                let mut longer =
                    state.map.range::<[u8], _>((Bound::Excluded(key.as_slice()), Bound::Unbounded));
                let first = longer.next().filter(|(next, _)| next.starts_with(key));
                first.map(|_| (Vec::new(), Vec::new()))
            }
            Query::Next { from, inclusive, with_value } => {
                let lower = if *inclusive {
                    Bound::Included(from.as_slice())
                } else {
                    Bound::Excluded(from.as_slice())
                };
                found(state.map.range::<[u8], _>((lower, Bound::Unbounded)).next(), *with_value)
            }
            Query::Previous { from, with_value } => {
                let before = (Bound::Unbounded, Bound::Excluded(from.as_slice()));
                found(state.map.range::<[u8], _>(before).next_back(), *with_value)
            }
            Query::Message { channel, after } => {
                let (number, body) = state.channels.first_after(channel, *after)?;
                Some((number.to_be_bytes().to_vec(), body.clone()))
            }
        }
    }
}
