//! What a commit hook sees and may add to: the writes of the transaction that is about to be committed.
//!
//! The hook is foreign code: no mutex is held while it runs, and each read of it takes the state's for itself.

use perilune_store::{Result, Write, Writes};

use crate::state::Shared;
use crate::transaction::Transaction;

/// The writes of a transaction while its hook runs.
pub(crate) struct HookView<'a> {
    pub(crate) transaction: &'a mut Transaction,
    pub(crate) shared: &'a Shared,
}

impl Writes for HookView<'_> {
    fn for_each(&self, visit: &mut dyn FnMut(Write<'_>)) {
        if let Some(level) = self.transaction.levels.last() {
            level.overlay.for_each(visit);
        }
    }

    fn set(&mut self, key: &[u8], value: &[u8]) {
        self.transaction.level().overlay.write(key, Some(value));
    }

    fn remove(&mut self, key: &[u8]) {
        self.transaction.level().overlay.write(key, None);
    }

    fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        let found = self.transaction.get(&self.shared.lock(), key)?;
        Ok(found.map(|found| *value = found).is_some())
    }
}
