//! WATCH: keys that must not have changed before EXEC.
//!
//! A watched key is remembered as a digest of its nodes, so that changes made by node, in any process, count
//! like those made by commands, and writers pay nothing. EXEC compares it inside its transaction; and so
//! does each command before EXEC inside its own, since a key may be changed and changed back: a command
//! that met it changed has told the client something that is not so any more. Requests about nodes do the same, and
//! what scripts do that are no transaction.
//!
//! Many keys are not all read again for each command, which would take a millisecond for each thousand of them: what the
//! transaction of their WATCH has read is kept, and those that follow rest on it ([`perilune::Serving::rest_on`]). So what a client
//! watches costs those of its commands before which somebody has written near it, and not each of them.
//!
//! Invariant: where EXEC goes through, each reply since WATCH saw every watched key as EXEC finds it.
//!
//! Deliberately absent: who wrote. A key changed and changed back, with no command of this client between,
//! counts as unchanged.

pub(crate) mod own;

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::ops::Bound;

use perilune::{KeptReads, NodeRef, RangeEnds, Serving, Session};
use sha2::{Digest as _, Sha256};

use crate::effects::Effects;
use crate::failure::{refuse_with, Result};
use crate::keyspace::Keys;
use crate::limits::{WATCHED_KEYS, WATCHED_TOGETHER};

/// What a key holds, in 32 bytes.
pub(crate) type Digest = [u8; 32];

/// What a client watches.
#[derive(Debug, Default)]
pub(crate) struct Watched {
    keys: Vec<WatchedKey>,
    /// Where keys stand in the list, by their hashes; of two with one hash the first.
    places: HashMap<u64, usize>,
    hasher: RandomState,
    /// What was read of the first keys, some at a time: each as far as the key whose place is beside it.
    kept: Vec<KeptReads>,
    ends: Vec<usize>,
    /// When the first of those expires, in milliseconds since 1970: what was read then does not say so.
    expires: Option<i64>,
    /// A command has met one of them changed.
    pub(crate) broken: bool,
}

#[derive(Debug)]
struct WatchedKey {
    database: i64,
    key: Vec<u8>,
    digest: Digest,
}

impl Watched {
    pub(crate) fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Whether comparing them takes little: then EXEC may be a one-shot transaction.
    pub(crate) fn is_short(&self) -> bool {
        self.kept.is_empty()
    }

    /// Watches a key from now on, unless it is watched already. Called inside a transaction.
    ///
    /// # Errors
    /// There are as many as a client may watch; `Conflict`, and what reading says.
    pub(crate) fn add(&mut self, session: &mut Session, database: i64, key: &[u8], now: i64) -> Result<()> {
        let hash = self.hasher.hash_one((database, key));
        let known = self.places.get(&hash).and_then(|place| self.keys.get(*place));
        if known.is_some_and(|known| known.database == database && known.key == key) {
            return Ok(());
        }
        if self.keys.len() >= WATCHED_KEYS {
            return refuse_with(format!("ERR a client watches at most {WATCHED_KEYS} keys"));
        }
        let digest = digest(session, database, key, now)?;
        self.places.entry(hash).or_insert(self.keys.len());
        self.keys.push(WatchedKey { database, key: key.to_vec(), digest });
        Ok(())
    }

    /// Keeps what was read of the last keys, if they are many; of those among them that are watched for longer it is read again.
    /// Called at the end of the transaction that has added the last, of which only `new` and those behind it are.
    ///
    /// # Errors
    /// `Conflict`, and what reading says.
    pub(crate) fn gather(&mut self, session: &mut Session, new: usize, now: i64) -> Result<()> {
        let first = self.ends.last().copied().unwrap_or(0);
        if self.keys.len() - first < WATCHED_TOGETHER {
            return Ok(());
        }
        for key in &self.keys[first.min(new)..new] {
            self.broken |= digest(session, key.database, &key.key, now)? != key.digest;
        }
        for key in &self.keys[first..] {
            let expires = expires(session, key.database, &key.key, now)?;
            self.expires = self.expires.into_iter().chain(expires).min();
        }
        if let Some(kept) = session.keep_reads() {
            self.kept.push(kept);
            self.ends.push(self.keys.len());
        }
        Ok(())
    }

    /// Bytes that they take.
    pub(crate) fn bytes(&self) -> usize {
        const EACH: usize = size_of::<WatchedKey>() + size_of::<(u64, usize)>();
        self.keys.iter().map(|known| EACH + known.key.capacity()).sum::<usize>()
            + self.kept.iter().map(KeptReads::bytes).sum::<usize>()
    }

    /// Compares with what a key has held before.
    pub(crate) fn expect(&mut self, database: i64, key: &[u8], digest: Digest) {
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
        if self.keys.len() > mark {
            self.keys.truncate(mark);
            self.places.retain(|_, place| *place < mark);
            while self.ends.last().is_some_and(|end| *end > mark) {
                self.ends.pop();
                self.kept.pop();
            }
        }
    }

    /// Whether all are as they were. Called inside a transaction.
    ///
    /// # Errors
    /// `Conflict`, and what reading says.
    pub(crate) fn holds(&self, session: &mut Session, now: i64) -> Result<bool> {
        let mut first = 0;
        if !self.kept.is_empty() && self.expires.is_none_or(|expires| now < expires) {
            if !session.rest_on(&self.kept)? {
                return Ok(false);
            }
            first = self.ends.last().copied().unwrap_or(0);
        }
        for key in &self.keys[first..] {
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

/// When a key expires, if it is there and does.
fn expires(session: &mut Session, database: i64, name: &[u8], now: i64) -> Result<Option<i64>> {
    let mut effects = Effects::default();
    let mut keys = Keys::new(session, &mut effects, database, now, false);
    let key = keys.key(name)?;
    Ok(keys.open(&key)?.and_then(|entry| entry.expires))
}

/// What a key holds, in 32 bytes: all its nodes, with their lengths between them.
pub(crate) fn digest(session: &mut Session, database: i64, name: &[u8], now: i64) -> Result<Digest> {
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
