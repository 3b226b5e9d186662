//! The back end in use: the only file that names it. Everything else sees the storage traits.

use std::path::Path;

use perilune_harness::memory::{MemorySession, MemoryStore};
use perilune_store::Result;

use crate::OpenOptions;

/// The store below.
pub(crate) type Backend = MemoryStore;
/// A session of the store below.
pub(crate) type BackendSession = MemorySession;

/// Opens the store at `path`.
pub(crate) fn open(_path: &Path, _options: &OpenOptions) -> Result<Backend> {
    Ok(MemoryStore::new())
}
