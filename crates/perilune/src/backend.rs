//! The back end in use: the only file that names it. Everything else sees the storage traits.

use std::path::Path;

use perilune_store::Error as StoreError;

use crate::{OpenOptions, Result};

/// The store below.
pub(crate) type Backend = perilune_engine::Database;
/// A session of the store below.
pub(crate) type BackendSession = perilune_engine::Session;

pub(crate) use perilune_engine::{install_sigbus, LostRange};
pub use perilune_engine::{BackupKind, BackupReport, CompactReport, LostPage, RecoveryReport};

/// Opens the store at `path`.
pub(crate) fn open(path: &Path, options: &OpenOptions) -> Result<Backend> {
    Ok(Backend::open(path, &self::options(options)?)?)
}

/// The store's own options.
pub(crate) fn options(options: &OpenOptions) -> Result<perilune_engine::OpenOptions> {
    Ok(perilune_engine::OpenOptions {
        create: options.create,
        read_only: options.read_only,
        durability: options.level()?,
        max_size: options.bytes_max()?,
        timeout: options.timeout,
        file_mode: options.file_mode,
        shm_dir: options.shm_dir.clone(),
        allow_any_filesystem: options.allow_any_filesystem,
    })
}

/// What is wrong with the store's own structure.
pub(crate) fn verify(backend: &Backend) -> Result<Vec<String>> {
    match backend.verify() {
        Ok(_) => Ok(Vec::new()),
        Err(StoreError::Corrupt { place }) => Ok(vec![place]),
        Err(error) => Err(error.into()),
    }
}
