//! Keys that have changed, as loops and servers tell each other of them: CLIENT TRACKING with BCAST.

use perilune_resp::{parse_integer, Arguments};

/// A key that has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    /// The client that changed it, and knows; 0: none does.
    pub(crate) by: i64,
    pub(crate) key: Vec<u8>,
}

/// What has changed; none: anything.
pub(crate) type Changes = Option<Vec<Change>>;

impl Change {
    /// What it takes in memory and in a message, roughly.
    pub(crate) fn bytes(&self) -> usize {
        self.key.len() + 48
    }
}

/// Changes as a server tells another of them: nothing but the head if anything may have changed.
pub(crate) fn words(changes: &Changes) -> Vec<Vec<u8>> {
    let mut words = vec![b"changed".to_vec()];
    for Change { by, key } in changes.iter().flatten() {
        words.push(by.to_string().into_bytes());
        words.push(key.clone());
    }
    words
}

/// Changes that another server has told, its first word being what kind of message it is.
pub(crate) fn parse(words: Arguments<'_>) -> Changes {
    let (mut changes, mut words) = (Vec::new(), words.iter().skip(1));
    while let (Some(by), Some(key)) = (words.next(), words.next()) {
        changes.push(Change { by: parse_integer(by)?, key: key.to_vec() });
    }
    (!changes.is_empty()).then_some(changes)
}

#[cfg(test)]
mod tests {
    use perilune_resp::ArgumentsBuf;

    use super::*;

    #[test]
    fn changes_are_heard_as_they_were_told() {
        let change = |by, key: &[u8]| Change { by, key: key.to_vec() };
        for changes in [None, Some(vec![change(0, b"")]), Some(vec![change(7, b"a\r\n"), change(-1, b"b")])] {
            let told: ArgumentsBuf = words(&changes).iter().collect();
            assert_eq!(parse(told.as_arguments()), changes);
        }
    }
}
