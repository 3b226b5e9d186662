//! What a commit hook sees and may add.

use perilune_store::{Result, Write, Writes};

use crate::access::Access;
use crate::tree::Which;
use crate::txn::Transaction;

/// A transaction about to commit, as a hook sees it.
pub(super) struct HookWrites<'a> {
    pub(super) access: &'a Access,
    pub(super) txn: &'a mut Transaction,
}

impl Writes for HookWrites<'_> {
    fn for_each(&self, visit: &mut dyn FnMut(Write<'_>)) {
        for prefix in self.txn.overlay.removals(Which::Main) {
            visit(Write::RemovePrefix(prefix));
        }
        for (key, value) in self.txn.overlay.values(Which::Main) {
            visit(match value {
                Some(value) => Write::Set(key, value),
                None => Write::Remove(key),
            });
        }
    }

    fn set(&mut self, key: &[u8], value: &[u8]) {
        self.txn.set(Which::Main, key, value);
    }

    fn remove(&mut self, key: &[u8]) {
        self.txn.remove(Which::Main, key);
    }

    fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        self.access.txn_get(self.txn, Which::Main, key, value)
    }
}
