//! A directory for one benchmark, removed at its end, however this process ends.
//!
//! Invariant: the directory is removed by a shell that waits for the end of its input, which comes when this process
//! ends, killed or not. It has a process group of its own, so that Ctrl-C at the terminal does not end it. So no
//! signal is handled.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::{env, fs, process};

use crate::failure::{doing, Result};

/// A new directory, which goes away with this value.
pub(crate) struct Scratch {
    path: PathBuf,
    /// None where there is no shell: then only this value's end removes the directory.
    remover: Option<Child>,
}

impl Scratch {
    /// Makes it where temporary files go (`$TMPDIR`), for the benchmark `name`.
    pub(crate) fn new(name: &str) -> Result<Scratch> {
        let path = env::temp_dir().join(format!("perilune-{name}-{}", process::id()));
        fs::create_dir_all(&path).map_err(doing(format!("make {}", path.display())))?;
        let remover = Command::new("/bin/sh")
            .args(["-c", "cat; rm -rf -- \"$1\"", "sh"])
            .arg(&path)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .current_dir("/")
            .process_group(0)
            .spawn()
            .ok();
        Ok(Scratch { path, remover })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a file there.
    pub(crate) fn write(&self, name: &str, text: &str) -> Result<()> {
        let file = self.path.join(name);
        fs::write(&file, text).map_err(doing(format!("write {}", file.display())))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Some(remover) = &mut self.remover {
            // `wait` closes its input first.
            let _ = remover.wait();
        }
        // Nobody is there to be told: what stays is in the directory for temporary files.
        let _ = fs::remove_dir_all(&self.path);
    }
}
