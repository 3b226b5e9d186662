//! `check`, `stat` and `version`: what a database holds, and whether it is sound.

use std::fs;
use std::path::{Path, PathBuf};

use perilune::{Database, Session};
use perilune_luahost::{mlua, Host};
use serde_json::json;

use crate::failure::{environment, found, Result};

/// Checks a database; faults make it fail.
pub(crate) fn check(path: Option<&Path>, as_json: bool) -> Result<()> {
    let database = open(path)?;
    let report = database.verify()?;
    let faults = report.faults.len() as u64 + report.more_faults;
    if as_json {
        println!(
            "{}",
            json!({"path": database.path().display().to_string(), "sound": report.is_sound(),
                   "nodes": report.nodes, "faults": faults, "texts": report.faults})
        );
    } else {
        for fault in &report.faults {
            println!("{fault}");
        }
        if report.is_sound() {
            println!("{}: sound, {} nodes with a value", database.path().display(), report.nodes);
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

/// What one name holds.
struct Name {
    name: String,
    children: u64,
    values: u64,
}

/// Shows size and names of a database. It reads all of it.
pub(crate) fn stat(path: Option<&Path>, as_json: bool) -> Result<()> {
    let database = open(path)?;
    let names = names(&mut database.session()?)?;
    let path = database.path().display().to_string();
    let bytes = size(database.path());
    if as_json {
        let rows: Vec<_> = names
            .iter()
            .map(|row| json!({"name": row.name, "children": row.children, "values": row.values}))
            .collect();
        println!("{}", json!({"path": path, "bytes": bytes, "names": rows}));
        return Ok(());
    }
    println!("{path}: {bytes} bytes, {} names", names.len());
    if names.is_empty() {
        return Ok(());
    }
    let width = names.iter().map(|row| row.name.chars().count()).max().unwrap_or(0).max(4);
    println!("{:width$}  {:>12}  {:>12}", "name", "children", "values");
    for row in &names {
        println!("{:width$}  {:>12}  {:>12}", row.name, row.children, row.values);
    }
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

/// An existing database: looking at one never makes it.
fn open(path: Option<&Path>) -> Result<Database> {
    let path = match path {
        Some(path) => path.to_owned(),
        None => Database::default_path()?,
    };
    if !path.exists() {
        return Err(environment(format!(
            "{}: no such database; name one with --db PATH or as the argument",
            path.display()
        )));
    }
    Ok(Database::options().create(false).open(path)?)
}

fn names(session: &mut Session) -> Result<Vec<Name>> {
    let mut rows = Vec::new();
    let mut at = session.first_name(false)?;
    while let Some(node) = at {
        let (children, values) = (session.count_children(&node)?, session.count_valued(&node)?);
        rows.push(Name { name: node.to_string(), children, values });
        at = session.next(&node)?;
    }
    Ok(rows)
}

/// Bytes of the file and of its log segments.
fn size(path: &Path) -> u64 {
    let mut bytes = fs::metadata(path).map_or(0, |metadata| metadata.len());
    let stem = format!("{}-wal.", path.file_name().unwrap_or_default().to_string_lossy());
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let directory = directory.map_or_else(|| PathBuf::from("."), Path::to_owned);
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(&stem) {
            bytes += entry.metadata().map_or(0, |metadata| metadata.len());
        }
    }
    bytes
}
