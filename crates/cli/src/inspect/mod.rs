//! `check`, `checkpoint`, `stat`, `locks`, `processes` and `version`: what a database holds, whether it is sound, who uses it.

mod holders;
mod stat;
mod table;
mod tables;

use std::path::Path;

use perilune::{Database, ErrorCode};
use perilune_luahost::{mlua, Host};
use serde_json::json;

use crate::failure::{found, Result};
use crate::which_database::existing;

pub(crate) use holders::{locks, processes};
pub(crate) use stat::{stat, StatOptions};

/// Checks a database; faults make it fail.
pub(crate) fn check(path: Option<&Path>, as_json: bool) -> Result<()> {
    let database = look_at(path)?;
    let mut report = database.verify()?;
    let tables = tables::check(&database, report.is_sound(), &mut report.faults);
    let faults = report.faults.len() as u64 + report.more_faults;
    if as_json {
        println!(
            "{}",
            json!({"path": database.path().display().to_string(), "sound": report.is_sound(),
                   "nodes": report.nodes, "tables": tables.tables, "rows": tables.rows, "faults": faults,
                   "texts": report.faults, "skipped": tables.skipped, "mended": report.mended})
        );
    } else {
        for text in report.faults.iter().chain(&tables.skipped).chain(&report.mended) {
            println!("{text}");
        }
        if report.is_sound() {
            let rows = match tables.tables {
                0 => String::new(),
                count => format!(", {} rows of {count} tables", tables.rows),
            };
            println!("{}: sound, {} nodes with a value{rows}", database.path().display(), report.nodes);
        }
    }
    if report.is_sound() {
        return Ok(());
    }
    Err(found(format!(
        "{}: {faults} faults; keep a copy of the file before anything writes to it",
        database.path().display()
    )))
}

/// Takes a checkpoint of a database that others may be using.
pub(crate) fn checkpoint(path: Option<&Path>, accepts_lost: bool) -> Result<()> {
    let options = Database::options().create(false).accept_lost_commits(accepts_lost);
    let database = options.open(existing(path)?)?;
    if let Some(dropped) = database.recovery().and_then(|recovery| recovery.dropped.as_ref()) {
        println!("{}: dropped {dropped}", database.path().display());
    }
    let state = if database.checkpoint()? { "checkpoint taken" } else { "nothing has changed" };
    println!("{}: {state}", database.path().display());
    Ok(())
}

/// Shows the versions.
pub(crate) fn version() -> Result<()> {
    let host = Host::new()?;
    let jit: mlua::Table = host.lua().globals().get("jit").map_err(perilune_luahost::HostError::from)?;
    let lua: String = jit.get("version").map_err(perilune_luahost::HostError::from)?;
    println!("perilune {} ({lua}, Lua 5.2 compatibility)", env!("CARGO_PKG_VERSION"));
    Ok(())
}

/// An existing database to look at: that never makes it, and needs no permission to write it.
fn look_at(path: Option<&Path>) -> Result<Database> {
    let path = existing(path)?;
    Ok(open_to_read(&path)?)
}

/// An existing database to look at; who may write it takes part in repairs, else it is only read.
///
/// # Errors
/// Of opening it for writing.
pub(crate) fn open_to_read(path: &Path) -> perilune::Result<Database> {
    let options = Database::options().create(false);
    options.open(path).or_else(|error| match error.code() {
        ErrorCode::CannotOpen => options.clone().read_only(true).open(path).map_err(|_| error),
        _ => Err(error),
    })
}
