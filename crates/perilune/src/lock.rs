//! Locks: advisory, by node, hierarchical, counted, shared by all processes, gone with their owner.
//!
//! A lock's name in the store is the encoded key of its node; that of a local node is preceded by
//! 01, which no name begins with, so that `L` and `^L` are different locks. Both kinds are shared by
//! all processes of the database: a name says nothing about where data lies.

use std::time::Duration;

use perilune_key::KeyError;
use perilune_store::{LockMode, LockOwner, LockRequest, Locks};

use crate::{limits, Error, NodeRef, Result, Session};

const LOCAL: u8 = 0x01;

/// A lock's name as the store knows it, and where its ancestors end.
struct LockName {
    bytes: Vec<u8>,
    ancestors: Vec<u16>,
}

impl Session {
    /// Takes the lock on `node` for this session, waiting up to `timeout` (`None`: for ever; zero:
    /// one attempt); false when it was not to be had in time.
    ///
    /// A lock excludes those of other owners on the node, its ancestors and its descendants, unless
    /// both are shared. Taken again, it is counted up. Taken inside a transaction, it is released
    /// when that level is rolled back or run again; it survives the commit.
    ///
    /// # Errors
    /// `Deadlock`: release what you hold and try again; `LimitReached`; `KeyTooLong`.
    pub fn lock<'n>(
        &mut self,
        node: impl Into<NodeRef<'n>>,
        mode: LockMode,
        timeout: Option<Duration>,
    ) -> Result<bool> {
        self.lock_all(self.owner, [(node.into(), mode)], timeout)
    }

    /// Counts this session's lock on `node` down and releases it at zero; false when it is not held.
    ///
    /// # Errors
    /// I/O only.
    pub fn unlock<'n>(&mut self, node: impl Into<NodeRef<'n>>) -> Result<bool> {
        self.unlock_as(self.owner, node)
    }
}

/// Locks of owners: of a session, or of something else in the process that has locks of its own.
pub trait LockOwners {
    /// The owner of the locks that [`Session::lock`] takes; they are released when the session goes.
    #[must_use]
    fn lock_owner(&self) -> LockOwner;

    /// A new owner in this process, for locks that belong to something else than a session: any
    /// session of the process can take and release them. They last until released, or to the end of
    /// the process.
    fn new_lock_owner(&mut self) -> LockOwner;

    /// Takes several locks for `owner`, all or none, otherwise as [`Session::lock`].
    ///
    /// # Errors
    /// As [`Session::lock`]; `LimitReached` for more than [`limits::LOCKS_PER_CALL`].
    fn lock_all<'n, N: Into<NodeRef<'n>>>(
        &mut self,
        owner: LockOwner,
        locks: impl IntoIterator<Item = (N, LockMode)>,
        timeout: Option<Duration>,
    ) -> Result<bool>;

    /// As [`Session::unlock`], for a lock of `owner`.
    ///
    /// # Errors
    /// As [`Session::unlock`].
    fn unlock_as<'n>(&mut self, owner: LockOwner, node: impl Into<NodeRef<'n>>) -> Result<bool>;

    /// Releases every lock of `owner`; [`LockOwners::lock_owner`] is this session's own.
    ///
    /// # Errors
    /// I/O only.
    fn unlock_all(&mut self, owner: LockOwner) -> Result<()>;

    /// How often `owner` holds the lock on `node`; 0 if it does not.
    ///
    /// # Errors
    /// I/O only.
    fn lock_count<'n>(&mut self, owner: LockOwner, node: impl Into<NodeRef<'n>>) -> Result<u32>;
}

impl LockOwners for Session {
    fn lock_owner(&self) -> LockOwner {
        self.owner
    }

    fn new_lock_owner(&mut self) -> LockOwner {
        self.trees.database.new_lock_owner()
    }

    fn lock_all<'n, N: Into<NodeRef<'n>>>(
        &mut self,
        owner: LockOwner,
        locks: impl IntoIterator<Item = (N, LockMode)>,
        timeout: Option<Duration>,
    ) -> Result<bool> {
        let mut names = Vec::new();
        for (node, mode) in locks {
            names.push((LockName::new(node.into())?, mode));
        }
        if names.len() > limits::LOCKS_PER_CALL {
            let limit = limits::LOCKS_PER_CALL as u64;
            return Err(Error::Store(perilune_store::Error::LimitReached {
                what: "locks in one call",
                limit,
            }));
        }
        let requests: Vec<LockRequest<'_>> = names
            .iter()
            .map(|(name, mode)| LockRequest { name: &name.bytes, ancestors: &name.ancestors, mode: *mode })
            .collect();
        Ok(self.trees.database.lock(owner, &requests, timeout)?)
    }

    fn unlock_as<'n>(&mut self, owner: LockOwner, node: impl Into<NodeRef<'n>>) -> Result<bool> {
        let name = LockName::new(node.into())?;
        Ok(self.trees.database.unlock(owner, &name.bytes)?)
    }

    fn unlock_all(&mut self, owner: LockOwner) -> Result<()> {
        Ok(self.trees.database.unlock_all(owner)?)
    }

    fn lock_count<'n>(&mut self, owner: LockOwner, node: impl Into<NodeRef<'n>>) -> Result<u32> {
        let name = LockName::new(node.into())?;
        Ok(self.trees.database.lock_count(owner, &name.bytes)?)
    }
}

impl<'a> NodeRef<'a> {
    /// The node that the lock with this name in the store is on.
    #[must_use]
    pub fn of_lock(name: &'a [u8]) -> NodeRef<'a> {
        match name {
            [LOCAL, key @ ..] => NodeRef::from_encoded(key, true),
            key => NodeRef::from_encoded(key, false),
        }
    }
}

impl LockName {
    fn new(node: NodeRef<'_>) -> Result<LockName> {
        let mut bytes = Vec::with_capacity(node.encoded().len() + 1);
        if node.is_local() {
            bytes.push(LOCAL);
        }
        let shift = bytes.len();
        bytes.extend_from_slice(node.encoded());
        if bytes.len() > limits::KEY_BYTES {
            return Err(KeyError::KeyTooLong { limit: limits::KEY_BYTES }.into());
        }
        let mut ancestors = Vec::new();
        for end in perilune_key::prefix_ends(node.encoded())? {
            // Ends fit: the whole name is shorter than the limit checked above.
            ancestors.push(u16::try_from(end? + shift).unwrap_or(u16::MAX));
        }
        ancestors.pop();
        Ok(LockName { bytes, ancestors })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node;

    #[test]
    fn names_tell_both_kinds_and_their_ancestors() -> Result<()> {
        for name in ["^L", "L"] {
            let node = node!(name, 1, "x")?;
            let lock = LockName::new((&node).into())?;
            assert_eq!(NodeRef::of_lock(&lock.bytes), (&node).into());
            let ancestors: Vec<_> = lock
                .ancestors
                .iter()
                .map(|end| NodeRef::of_lock(&lock.bytes[..usize::from(*end)]).to_node())
                .collect::<Result<_>>()?;
            assert_eq!(ancestors, [node!(name)?, node!(name, 1)?]);
        }
        Ok(())
    }
}
