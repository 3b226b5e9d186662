//! A fresh directory that is removed with all in it when its owner is dropped.

use std::fs;
use std::path::{Path, PathBuf};

use crate::subject::Result;

/// A fresh directory, removed with all in it when dropped.
#[derive(Debug)]
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    /// Makes the directory `name` under `parent`.
    ///
    /// # Errors
    /// It exists, or cannot be made.
    pub(crate) fn new(parent: &Path, name: &str) -> Result<Scratch> {
        let path = parent.join(name);
        fs::create_dir_all(parent)
            .and_then(|()| fs::create_dir(&path))
            .map_err(|error| format!("cannot make {}: {error}; give another with --dir", path.display()))?;
        Ok(Scratch(path))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be removed stays where the user said; there is nobody to tell.
        let _ = fs::remove_dir_all(&self.0);
    }
}
