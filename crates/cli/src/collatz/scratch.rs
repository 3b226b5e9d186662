//! A directory for one benchmark, removed at its end.

use std::path::{Path, PathBuf};
use std::{env, fs, process};

use crate::failure::{doing, Result};

/// A new directory, which goes away with this value.
pub(crate) struct Scratch {
    path: PathBuf,
}

impl Scratch {
    /// Makes it where temporary files go (`$TMPDIR`).
    pub(crate) fn new() -> Result<Scratch> {
        let path = env::temp_dir().join(format!("perilune-collatz-{}", process::id()));
        fs::create_dir_all(&path).map_err(doing(format!("make {}", path.display())))?;
        Ok(Scratch { path })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Nobody is there to be told: what stays is in the directory for temporary files.
        let _ = fs::remove_dir_all(&self.path);
    }
}
