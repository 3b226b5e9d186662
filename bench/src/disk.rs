//! The disk itself, as the bound of all databases that wait for it: how often it can make 4 KiB durable in a second.
//!
//! `disk-append` writes behind the end of a growing file, so that its size is made durable too;
//! `disk-again` writes what has been written before, as logs do whose files are made beforehand.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::clock;
use crate::plan::Cell;
use crate::row::Row;
use crate::subject::Result;

const BLOCK: usize = 4096;
/// Blocks that are written again and again.
const BLOCKS: u64 = 1024;

/// Measures the disk of `directory` for a part of the time of a round; rows of `cell`.
///
/// # Errors
/// The disk's own.
pub(crate) fn rows(directory: &Path, cell: &Cell, round: usize, milliseconds: u64) -> Result<Vec<Row>> {
    let path = directory.join("disk");
    let mut rows = Vec::new();
    for (backend, again) in [("disk-append", false), ("disk-again", true)] {
        let file = File::create(&path)?;
        if again {
            file.write_all_at(&vec![1; BLOCK * BLOCKS as usize], 0)?;
            file.sync_all()?;
        }
        let (begun, mut count) = (clock::now(), 0);
        let cpu = clock::cpu();
        while clock::now() - begun < milliseconds * 1_000_000 / 2 {
            let block = if again { count % BLOCKS } else { count };
            file.write_all_at(&[2; BLOCK], block * BLOCK as u64)?;
            file.sync_data()?;
            count += 1;
        }
        let wall = (clock::now() - begun) as f64 / 1e9;
        rows.push(Row {
            workload: cell.workload,
            backend,
            class: "D1",
            procs: cell.processes,
            threads: cell.threads,
            wall_seconds: wall,
            cpu_seconds: (clock::cpu() - cpu) as f64 / 1e9,
            operations: count,
            ..Row::bare(cell.keys, round, "op/s", count as f64 / wall)
        });
    }
    std::fs::remove_file(&path)?;
    Ok(rows)
}
