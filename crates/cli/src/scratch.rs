//! A directory for one benchmark, removed at its end, however this process ends.
//!
//! Invariant: the directory is removed by a shell that waits for the end of its input, which comes when this process
//! ends, killed or not. It has a process group of its own, so that Ctrl-C at the terminal does not end it. So no
//! signal is handled.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::{env, fs, io, process};

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
        let path = make(&env::temp_dir().join(format!("perilune-{name}-{}", process::id())))?;
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

/// Makes a directory of this name, or with a number behind it: one that nobody else has made, and nobody else looks into.
fn make(wanted: &Path) -> Result<PathBuf> {
    let mut path = wanted.to_owned();
    for number in 0.. {
        match DirBuilder::new().mode(0o700).create(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < 1_000 => {
                path = PathBuf::from(format!("{}-{number}", wanted.display()));
            }
            made => return made.map(|()| path.clone()).map_err(doing(format!("make {}", path.display()))),
        }
    }
    Ok(path)
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
