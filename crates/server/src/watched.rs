//! WATCH: keys that must not have changed before EXEC.
//!
//! A watched key is remembered as a digest of its nodes, so that changes made by node, in any process, count
//! like those made by commands, and writers pay nothing. EXEC compares it inside its transaction; and so
//! does each command before EXEC inside its own, since a key may be changed and changed back: a command
//! that met it changed has told the client something that is not so any more. Requests about nodes do the same, and
//! what scripts do that are no transaction.
//!
//! Invariant: where EXEC goes through, each reply since WATCH saw every watched key as EXEC finds it.
//!
//! Deliberately absent: who wrote. A key changed and changed back, with no command of this client between,
//! counts as unchanged.

use std::ops::Bound;

use perilune::{NodeRef, Session};
use sha2::{Digest, Sha256};

use crate::effects::Effects;
use crate::failure::{refuse_with, Result};
use crate::keyspace::Keys;
use crate::limits::WATCHED_KEYS;

/// What a client watches.
#[derive(Debug, Default)]
pub(crate) struct Watched {
    keys: Vec<WatchedKey>,
    /// A command has met one of them changed.
    pub(crate) broken: bool,
}

#[derive(Debug)]
struct WatchedKey {
    database: i64,
    key: Vec<u8>,
    digest: [u8; 32],
}

impl Watched {
    pub(crate) fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Watches a key from now on, unless it is watched already. Called inside a transaction.
    ///
    /// # Errors
    /// There are as many as a client may watch; `Conflict`, and what reading says.
    pub(crate) fn add(&mut self, session: &mut Session, database: i64, key: &[u8], now: i64) -> Result<()> {
        if self.keys.iter().any(|known| known.database == database && known.key == key) {
            return Ok(());
        }
        if self.keys.len() >= WATCHED_KEYS {
            return refuse_with(format!("ERR a client watches at most {WATCHED_KEYS} keys"));
        }
        let digest = digest(session, database, key, now)?;
        self.keys.push(WatchedKey { database, key: key.to_vec(), digest });
        Ok(())
    }

    /// Bytes that they take.
    pub(crate) fn bytes(&self) -> usize {
        self.keys.iter().map(|known| std::mem::size_of::<WatchedKey>() + known.key.capacity()).sum()
    }

    /// Compares with what a key has held before.
    pub(crate) fn expect(&mut self, database: i64, key: &[u8], digest: [u8; 32]) {
        self.keys.push(WatchedKey { database, key: key.to_vec(), digest });
    }

    /// The keys, with their databases.
    pub(crate) fn names(&self) -> impl Iterator<Item = (i64, &[u8])> {
        self.keys.iter().map(|known| (known.database, &known.key[..]))
    }

    /// How many there are.
    pub(crate) fn mark(&self) -> usize {
        self.keys.len()
    }

    /// Watches no more than there were then: the run that has added others is run again.
    pub(crate) fn rewind(&mut self, mark: usize) {
        self.keys.truncate(mark);
    }

    /// Whether all are as they were. Called inside a transaction.
    ///
    /// # Errors
    /// `Conflict`, and what reading says.
    pub(crate) fn holds(&self, session: &mut Session, now: i64) -> Result<bool> {
        for key in &self.keys {
            if digest(session, key.database, &key.key, now)? != key.digest {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Watches nothing any more.
    pub(crate) fn clear(&mut self) {
        *self = Watched::default();
    }
}

/// What a key holds, in 32 bytes: all its nodes, with their lengths between them.
pub(crate) fn digest(session: &mut Session, database: i64, name: &[u8], now: i64) -> Result<[u8; 32]> {
    let mut effects = Effects::default();
    let mut keys = Keys::new(session, &mut effects, database, now, false);
    let key = keys.key(name)?;
    let mut digest = Sha256::new();
    if keys.open(&key)?.is_none() {
        return Ok(digest.finalize().into());
    }
    let (mut last, mut encoded) = (Vec::new(), Vec::new());
    loop {
        let from = if last.is_empty() {
            Bound::Unbounded
        } else {
            Bound::Excluded(NodeRef::from_encoded(&last, false))
        };
        let Some((node, value)) = keys.session.first_entry(&key.node, from)? else { break };
        encoded.clear();
        value.encode_into(&mut encoded);
        for part in [node.encoded(), &encoded[..]] {
            digest.update((part.len() as u64).to_le_bytes());
            digest.update(part);
        }
        let next = node.encoded().to_vec();
        last = next;
    }
    Ok(digest.finalize().into())
}
