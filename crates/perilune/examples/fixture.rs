//! Makes the databases that `tests/formats.rs` opens, in the present format: `cargo run -p perilune --example fixture --
//! crates/perilune/tests/formats/N`. For a new format, once; the files of a released one are never made again.

#[path = "../tests/formats/content.rs"]
#[allow(dead_code)] // What is there in the end is for the test.
mod content;

use std::error::Error;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use perilune::{Database, Durability};

fn main() -> Result<(), Box<dyn Error>> {
    let target = PathBuf::from(std::env::args().nth(1).ok_or("give the directory for the files")?);
    fs::create_dir_all(&target)?;
    let scratch = std::env::temp_dir().join(format!("perilune-fixture-{}", std::process::id()));
    fs::create_dir_all(&scratch)?;
    let database = Database::options().durability(Durability::Fsync).open(scratch.join("closed.db"))?;
    let mut session = database.session()?;
    for (node, value) in content::first()? {
        session.set(&node, value)?;
    }
    database.checkpoint()?;
    content::then(&mut session)?;
    // What a crash of the machine leaves: database and log, without the shared memory.
    pack(&scratch.join("closed.db"), &target.join("open.db"))?;
    for slot in 0.. {
        let segment = scratch.join(format!("closed.db-wal.{slot}"));
        if !segment.exists() {
            break;
        }
        pack(&segment, &target.join(format!("open.db-wal.{slot}")))?;
    }
    drop((session, database));
    fs::remove_dir_all(&scratch)?;
    fs::create_dir_all(&scratch)?;
    let database = Database::open(scratch.join("closed.db"))?;
    let mut session = database.session()?;
    for (node, value) in content::first()? {
        session.set(&node, value)?;
    }
    drop((session, database));
    pack(&scratch.join("closed.db"), &target.join("closed.db"))?;
    fs::remove_dir_all(&scratch)?;
    Ok(())
}

/// Writes a file as base64 of gzip.
fn pack(from: &Path, to: &Path) -> Result<(), Box<dyn Error>> {
    let output = File::create(format!("{}.gz.txt", to.display()))?;
    let pack = ["-o", "pipefail", "-c", "gzip -9nc | base64"];
    let status =
        Command::new("bash").args(pack).stdin(Stdio::from(File::open(from)?)).stdout(output).status()?;
    if !status.success() {
        return Err(format!("{} was not packed", from.display()).into());
    }
    Ok(())
}
