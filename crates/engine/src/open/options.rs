//! How a database is to be opened.

use std::path::PathBuf;
use std::time::Duration;

use perilune_store::{Durability, Error, Result};

use super::site::INITIAL_PAGES;
use crate::limits::{PAGE, WAIT_LIMIT};

/// How to open a database; the defaults are good for most.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenOptions {
    /// Whether to create the database when it is missing (or an empty file).
    pub create: bool,
    /// Whether to open for reading only, which needs no permission to write and writes nothing.
    pub read_only: bool,
    /// What commits of this process wait for; None: the level of the database, which is `Periodic` for a new one. Whoever
    /// opens it alone sets that level by this; while others are attached it can only be raised. See [`Durability`].
    pub durability: Option<Durability>,
    /// Bytes the file may grow to. Address space, not memory. While others have the database open, never more than the
    /// first of them allowed.
    pub max_size: u64,
    /// How long to wait for a process that creates, opens or closes the database.
    pub timeout: Duration,
    /// How long an operation waits for a page, the log or a step of another process, before it answers
    /// [`perilune_store::Error::Busy`]. In a transaction its own limit counts too.
    pub wait_limit: Duration,
    /// Whether this process lets another go on that a signal has stopped with pages latched that this one needs
    /// (SIGCONT). The other stops itself again at the end of that operation. Else it is waited for, up to `wait_limit`.
    pub wake_stopped: bool,
    /// Permissions of the files created. Whoever may write them may do everything to the data.
    pub file_mode: u32,
    /// The directory of the `-shm` file, if not beside the database. The same for all processes.
    pub shm_dir: Option<PathBuf>,
    /// Whether to open on file systems that copy on write (btrfs, zfs).
    pub allow_any_filesystem: bool,
    /// Whether to open after a crash although the log is damaged or gone, without the commits that it held behind
    /// the damage. They are given up for good: the log is removed. Without damage it changes nothing.
    pub accept_lost_commits: bool,
    /// For `salvage` alone: whether to apply also what lies whole behind damage in the log, although what it relied
    /// on may be missing.
    pub behind_damage: bool,
}

impl Default for OpenOptions {
    fn default() -> Self {
        OpenOptions {
            create: true,
            read_only: false,
            durability: None,
            max_size: 1 << 40,
            timeout: Duration::from_secs(10),
            wait_limit: WAIT_LIMIT,
            wake_stopped: true,
            file_mode: 0o600,
            shm_dir: None,
            allow_any_filesystem: false,
            accept_lost_commits: false,
            behind_damage: false,
        }
    }
}

impl OpenOptions {
    /// Refuses what this version cannot do.
    ///
    /// # Errors
    /// `Invalid`, with what is good.
    pub(crate) fn check(&self) -> Result<()> {
        let least = 2 * INITIAL_PAGES * PAGE as u64;
        if self.max_size < least {
            return Err(Error::Invalid(format!("max_size is at least {least} bytes, not {}", self.max_size)));
        }
        if self.file_mode & !0o777 != 0 || self.file_mode & 0o600 != 0o600 {
            return Err(Error::Invalid(format!(
                "file_mode is 0o600 to 0o777 and lets the owner read and write, not {:#o}",
                self.file_mode
            )));
        }
        Ok(())
    }

    /// Pages the file may grow to; a page's number has 32 bits.
    pub(crate) fn pages_max(&self) -> u64 {
        (self.max_size / PAGE as u64).min(u32::MAX.into())
    }
}
