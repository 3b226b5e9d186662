//! Recovery from a long log. Writers at the level `periodic` fill the log and are killed; `-shm` is removed, since
//! a crash of the machine loses it; the kernel's cache of the files is dropped; then the time to open the database
//! is taken.
//!
//! A checkpoint is taken when the log has grown to 512 MiB, and commits stay in the log until the checkpoint is on
//! disk. So the log can become a little longer than that, but not as long as one likes: rows say how long it was.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use perilune::{Database, Durability, Node};

use crate::clock;
use crate::data::{scattered, value};
use crate::peers::perilune::{options, FILE};
use crate::row::Row;
use crate::subject::{Class, Result};

use super::Run;

/// The workloads of these rows, with small values and with those of a thousand bytes.
pub(super) const SMALL: &str = "recovery-small";
pub(super) const LARGE: &str = "recovery-1000";

/// Bytes of a large value.
const VALUE: usize = 1_000;
/// Keys that are written, again and again in an order without order.
const KEYS: u64 = 1_000_000;
/// Bytes of a record in the log beside its value, about.
const RECORD: u64 = 64;
/// Checkpoints that are tried to outrun; then the log is as long as it becomes before one.
const CHECKPOINTS: u64 = 1;

/// Measures recovery with both kinds of values.
pub(super) fn run(run: &mut Run<'_>) -> Result<()> {
    let bytes = run.quick(32 << 20, 1 << 30);
    let rounds = run.quick(1, run.wish.rounds.min(3));
    for round in 0..rounds {
        for (workload, large) in [(SMALL, false), (LARGE, true)] {
            run.announce(&format!("{workload}, round {round}"));
            recover(run, workload, large, bytes, round)?;
        }
    }
    Ok(())
}

fn recover(run: &mut Run<'_>, workload: &'static str, large: bool, bytes: u64, round: usize) -> Result<()> {
    let directory = run.directory("recovery")?;
    let written = write_and_kill(directory.path(), large, bytes)?;
    fs::remove_file(directory.path().join(format!("{FILE}-shm")))?;
    forget(directory.path())?;
    let chunks = chunks(directory.path())?;
    let (begun, cpu) = (clock::now(), clock::cpu());
    let database = options().timeout(Duration::from_secs(600)).open(directory.path().join(FILE))?;
    let seconds = (clock::now() - begun) as f64 / 1e9;
    let cpu = (clock::cpu() - cpu) as f64 / 1e9;
    let report = database.recovery().cloned().ok_or("nothing was recovered")?;
    run.progress.println(format!("{workload}: {written} sets before the kill; {report}"));
    check(&database, written)?;
    drop(database);
    let last = chunks.iter().map(|(batch, _)| *batch).max().unwrap_or(0);
    let replayed = chunks.iter().filter(|(batch, _)| *batch + report.batches > last);
    let logged: u64 = replayed.map(|(_, bytes)| bytes).sum();
    let peer = crate::peers::ours(Class::D3);
    let row = |unit, value| Row {
        wall_seconds: seconds,
        cpu_seconds: cpu,
        operations: report.records,
        ..Row::figure(workload, &peer, KEYS, round, unit, value)
    };
    let mib = logged as f64 / (1 << 20) as f64;
    run.push(row("MiB of log", mib));
    run.push(row("s", seconds));
    run.push(row("MiB/s", mib / seconds));
    run.push(row("records/s", report.records as f64 / seconds));
    Ok(())
}

/// Starts a process that writes, and kills it when the log is long enough; how many sets it had done.
fn write_and_kill(directory: &Path, large: bool, bytes: u64) -> Result<u64> {
    let mut child = Command::new(std::env::current_exe()?)
        .args(["grow-log", "--bytes", &bytes.to_string(), "--dir"])
        .arg(directory)
        .args(large.then_some("--large"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut line = String::new();
    let heard = child.stdout.take().map(|output| BufReader::new(output).read_line(&mut line));
    child.kill()?;
    child.wait()?;
    heard.ok_or("the writer has no output")??;
    Ok(line.trim().parse().map_err(|_| "the writer ended before its log was long enough")?)
}

/// The writer: sets until its log has about so many bytes, says how many sets that were, and goes on until it
/// is killed.
///
/// # Errors
/// The database's own.
pub(crate) fn grow(directory: &Path, bytes: u64, large: bool) -> Result<()> {
    let database = options().durability(Durability::Periodic).open(directory.join(FILE))?;
    // Whoever is to kill us may be gone himself.
    std::thread::spawn(|| {
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        std::process::exit(1);
    });
    let done = AtomicU64::new(0);
    let size = RECORD + if large { VALUE as u64 } else { 8 };
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| write(&database, large, &done));
        let (mut generation, mut durable) = (figure(&database, "generation")?, 0);
        let (mut at_cut, mut since) = (0, 0);
        let mut checkpoints = 0;
        let mut is_told = false;
        while !writer.is_finished() {
            std::thread::sleep(Duration::from_millis(2));
            let now = done.load(Relaxed) * size;
            let found = figure(&database, "generation")?;
            if found != generation {
                (generation, at_cut) = (found, now);
            }
            let found = figure(&database, "durable_generation")?;
            if found != durable {
                (durable, since) = (found, at_cut);
                checkpoints += 1;
            }
            // NB: a checkpoint begins when segments of 512 MiB are in use; beyond that it is a matter of luck.
            let enough = if checkpoints > CHECKPOINTS { bytes.min(400 << 20) } else { bytes };
            if !is_told && now - since >= enough {
                is_told = true;
                println!("{}", now / size);
            }
        }
        writer.join().map_err(|_| "the writer panicked")?
    })
}

fn write(database: &Database, large: bool, done: &AtomicU64) -> Result<()> {
    let mut session = database.session()?;
    let mut node = Node::new("^data")?;
    let mark = node.mark();
    let mut text = vec![b'x'; VALUE];
    loop {
        for number in scattered(KEYS) {
            node.truncate(mark);
            node.push(number as i64)?;
            let count = done.load(Relaxed) + 1;
            if large {
                text[..8].copy_from_slice(&count.to_le_bytes());
                session.set(&node, &text[..])?;
            } else {
                session.set(&node, value(count, 1))?;
            }
            done.store(count, Relaxed);
        }
    }
}

fn figure(database: &Database, name: &str) -> Result<u64> {
    let figures = database.stat()?;
    let found = figures.iter().find(|figure| figure.name == name);
    Ok(found.ok_or("a figure is missing")?.value)
}

/// Has the kernel write the files and keep nothing of them in memory.
fn forget(directory: &Path) -> Result<()> {
    for entry in fs::read_dir(directory)? {
        let file = File::open(entry?.path())?;
        file.sync_all()?;
        rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed)?;
    }
    Ok(())
}

/// What is there is what the first `n` sets left, and `n` is about as many as had been done.
fn check(database: &Database, written: u64) -> Result<()> {
    if !database.verify()?.is_sound() {
        return Err("what was recovered is damaged".into());
    }
    let mut session = database.session()?;
    let nodes = session.count_children(&Node::new("^data")?)?;
    // NB: less than a tenth of a second's sets are lost, and the log is longer than that.
    if nodes >= written.min(KEYS) / 10 * 9 {
        Ok(())
    } else {
        Err(format!("{nodes} nodes were recovered after {written} sets").into())
    }
}

/// Batch and bytes of each chunk in the files of the log (docs/format/log.md).
fn chunks(directory: &Path) -> Result<Vec<(u64, u64)>> {
    let mut chunks = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if !entry.file_name().to_string_lossy().contains("-wal.") {
            continue;
        }
        let file = File::open(entry.path())?;
        let (mut at, end) = (4096, file.metadata()?.len());
        let mut head = [0; 64];
        while at < end && file.read_at(&mut head, at)? == head.len() && head.starts_with(b"PLOG") {
            let batch = u64::from_le_bytes(head[8..16].try_into()?);
            let bytes = u64::from(u32::from_le_bytes(head[20..24].try_into()?));
            let bytes = (64 + bytes).next_multiple_of(4096);
            chunks.push((batch, bytes));
            at += bytes;
        }
    }
    Ok(chunks)
}
