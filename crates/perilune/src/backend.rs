//! The back end in use: the only file that names it. Everything else sees the storage traits.

use std::path::Path;

use perilune_harness::memory::{MemorySession, MemoryStore};

use crate::{OpenOptions, Result};

/// The store below.
pub(crate) type Backend = MemoryStore;
/// A session of the store below.
pub(crate) type BackendSession = MemorySession;

/// Opens the store at `path`.
pub(crate) fn open(_path: &Path, options: &OpenOptions) -> Result<Backend> {
    options.level()?;
    Ok(MemoryStore::new())
}

/// What is wrong with the store's own structure.
pub(crate) fn verify(_backend: &Backend) -> Result<Vec<String>> {
    Ok(Vec::new())
}
