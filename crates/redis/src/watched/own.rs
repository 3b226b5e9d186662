//! What a client changes of the keys that it keeps, and is not to be told of: CLIENT TRACKING with NOLOOP.
//!
//! Invariant: a change is a client's own only if its command found the key as the client knows it, and what the key holds
//! since is what the command left, both in the transaction of the command. All else is told.

use perilune::Session;

use super::{digest, Digest};
use crate::failure::Result;

/// Keys that a command is about to change.
#[derive(Debug, Default)]
pub(crate) struct Own {
    keys: Vec<OwnKey>,
    has_run: bool,
}

#[derive(Debug)]
struct OwnKey {
    database: i64,
    key: Vec<u8>,
    /// As the client knows it.
    known: Digest,
    /// As the command has left it, if it found it so.
    left: Option<Digest>,
}

impl Own {
    pub(crate) fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        *self = Own::default();
    }

    /// The command may change this key, which its client knows like that.
    pub(crate) fn add(&mut self, database: i64, key: &[u8], known: Digest) {
        if !self.keys.iter().any(|other| other.database == database && other.key == key) {
            self.keys.push(OwnKey { database, key: key.to_vec(), known, left: None });
        }
    }

    /// The command's transaction begins.
    ///
    /// # Errors
    /// `Conflict`, and what reading says.
    pub(crate) fn begin(&mut self, session: &mut Session, now: i64) -> Result<()> {
        self.has_run = false;
        for each in &mut self.keys {
            let found = digest(session, each.database, &each.key, now)?;
            each.left = (found == each.known).then_some(found);
        }
        Ok(())
    }

    /// It is about to commit.
    ///
    /// # Errors
    /// As [`Own::begin`].
    pub(crate) fn end(&mut self, session: &mut Session, now: i64) -> Result<()> {
        for each in self.keys.iter_mut().filter(|each| each.left.is_some()) {
            each.left = Some(digest(session, each.database, &each.key, now)?);
        }
        self.has_run = true;
        Ok(())
    }

    /// What the client knows now of its own doing: database, key, digest.
    pub(crate) fn left(&self) -> impl Iterator<Item = (i64, &[u8], Digest)> {
        let keys = self.keys.iter().filter(|_| self.has_run);
        keys.filter_map(|each| Some((each.database, &each.key[..], each.left?)))
    }
}
