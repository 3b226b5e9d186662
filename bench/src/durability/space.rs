//! Bytes on disk and in memory for each small node: an integer as key, an integer of about seven bytes as
//! value.
//!
//! On disk: blocks of all files after a clean close, without what only lives as long as the machine runs
//! (`-shm`), before and after the peer's own compaction. In memory: what a process that opens the compacted
//! database and reads all of it has more than one with an empty database.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::peers::perilune::{options, FILE};
use crate::row::Row;
use crate::subject::{Class, Passage, Peer, Result, Tree};
use crate::worker_processes::Workers;

use super::{redis, Run};

/// The workloads of these rows.
pub(super) const ASCENDING: [&str; 3] = ["disk-ascending", "disk-ascending-compact", "memory-ascending"];
pub(super) const SCATTERED: [&str; 3] = ["disk-scattered", "disk-scattered-compact", "memory-scattered"];
/// What our keys and values have without any structure.
pub(super) const RAW: &str = "raw";

const UNIT: &str = "B/node";

/// Measures each peer, loaded in order and without order.
pub(super) fn run(run: &mut Run<'_>) -> Result<()> {
    let keys = run.quick(10_000, 1_000_000);
    for peer in run.peers(Class::D1) {
        let directory = run.directory("empty")?;
        let empty = memory(&peer, directory.path())?.0;
        for (scattered, names) in [(false, ASCENDING), (true, SCATTERED)] {
            run.announce(&format!("space {} {}", peer.name, names[0]));
            let directory = run.directory(peer.name)?;
            let mut workers = Workers::start(&peer, directory.path(), 1)?;
            if scattered {
                workers.scatter(Tree::Data, keys)?;
            } else {
                workers.fill(Tree::Data, keys)?;
            }
            workers.finish()?;
            let loaded = disk_bytes(directory.path())?;
            (peer.compact)(directory.path())?;
            let compact = disk_bytes(directory.path())?;
            let (full, found) = memory(&peer, directory.path())?;
            if found.entries != keys {
                return Err(format!("{} holds {} nodes, not {keys}", peer.name, found.entries).into());
            }
            if peer.name == crate::peers::OURS && !scattered {
                let raw = raw_bytes(directory.path())?;
                run.push(Row::figure(RAW, &peer, keys, 0, UNIT, raw as f64 / keys as f64));
            }
            for (name, bytes) in names.into_iter().zip([loaded, compact, full.saturating_sub(empty)]) {
                run.push(Row::figure(name, &peer, keys, 0, UNIT, bytes as f64 / keys as f64));
            }
        }
    }
    redis::run(run, keys)
}

/// Bytes of a process that has read all of the database, and what it came by.
fn memory(peer: &Peer, directory: &Path) -> Result<(u64, Passage)> {
    let mut workers = Workers::start(peer, directory, 1)?;
    let found = workers.scan(Tree::Data)?;
    let bytes = workers.memory()?;
    workers.finish()?;
    Ok((bytes, found))
}

/// Bytes of the blocks of the files in a directory.
pub(super) fn disk_bytes(directory: &Path) -> Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if !entry.file_name().to_string_lossy().ends_with("-shm") {
            bytes += entry.metadata()?.blocks() * 512;
        }
    }
    Ok(bytes)
}

/// Encoded keys and values.
fn raw_bytes(directory: &Path) -> Result<u64> {
    let database = options().open(directory.join(FILE))?;
    let size = database.session()?.tree_size(&perilune::Node::new("^data")?)?;
    Ok(size.key_bytes + size.value_bytes)
}
