//! `backup`, `compact` and `salvage`: copies of a database in use, without the free space of one that nobody uses,
//! and of what is readable in a damaged one.

use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};
use perilune::{BackupKind, Database, ErrorCode, SalvageReport};
use serde_json::json;

use crate::exchange::Progress;
use crate::failure::{found, wrong_use, Failure, Result};
use crate::{inspect, which_database};

/// What a backup is to be made of, and where.
#[derive(Args, Debug)]
pub(crate) struct BackupOptions {
    /// The database, instead of --db; others may be using it. Then the copy: a database that is there, and that
    /// nobody has open, is replaced
    #[arg(value_names = ["DB", "DEST"], num_args = 1..=2, required = true, value_hint = ValueHint::FilePath)]
    words: Vec<PathBuf>,
    /// Brings an older copy at DEST up to date: copies only what is new since then. If there is none, makes one
    #[arg(long)]
    incremental: bool,
    /// Prints one JSON object
    #[arg(long)]
    json: bool,
}

/// What is to be compacted.
#[derive(Args, Debug)]
pub(crate) struct CompactOptions {
    /// The database, which nobody has open; instead of --db
    #[arg(value_hint = ValueHint::FilePath)]
    path: Option<PathBuf>,
    /// Prints one JSON object
    #[arg(long)]
    json: bool,
}

/// What is to be salvaged, and where to.
#[derive(Args, Debug)]
pub(crate) struct SalvageOptions {
    /// The damaged database, instead of --db, which nobody has open; it is only read. Then the new one
    #[arg(value_names = ["DB", "NEW"], num_args = 1..=2, required = true, value_hint = ValueHint::FilePath)]
    words: Vec<PathBuf>,
    /// Applies also what lies whole behind damage in the log, although what it relied on may be missing
    #[arg(long)]
    log: bool,
    /// Prints one JSON object
    #[arg(long)]
    json: bool,
}

/// Copies a database that others may be using.
pub(crate) fn backup(options: &BackupOptions, flag: Option<&Path>) -> Result<()> {
    let (source, dest) = two(&options.words, flag, "the copy")?;
    let database = inspect::open_to_read(&source)?;
    let bar = Progress::of_pages("backup");
    let kind = if options.incremental { BackupKind::Incremental } else { BackupKind::Whole };
    let report = database.backup(dest, kind, |done, all| bar.of(done, all));
    bar.end();
    let report = report.map_err(|error| {
        let is_reading = error.code() == ErrorCode::ReadOnly;
        let mut failure = Failure::from(error);
        if is_reading {
            failure.message.push_str(
                "; a backup holds a moment still, for which it has to write: when nobody has the database open, \
                 `perilune salvage DB DEST` copies it by reading only",
            );
        }
        failure
    })?;
    let dest = dest.display().to_string();
    if options.json {
        println!(
            "{}",
            json!({"path": dest, "generation": report.generation, "pages": report.pages,
                   "compared": report.pages_compared, "kept": report.pages_kept, "bytes": report.bytes})
        );
    } else {
        let kept = match report.pages_kept {
            0 => String::new(),
            kept => format!(", {kept} pages were there already"),
        };
        println!(
            "{dest}: {} pages copied, {} of them compared with their sums{kept}, {} bytes",
            report.pages, report.pages_compared, report.bytes
        );
    }
    Ok(())
}

/// Gives what a database does not use back to the file system.
pub(crate) fn compact(options: &CompactOptions, flag: Option<&Path>) -> Result<()> {
    let path = which_database::existing(which_database::only(options.path.as_deref(), flag)?)?;
    let bar = Progress::of_pages("compact");
    let report = Database::options().create(false).compact(&path, |done, all| bar.of(done, all));
    bar.end();
    let report = report?;
    let path = path.display().to_string();
    if options.json {
        println!(
            "{}",
            json!({"path": path, "nodes": report.nodes, "bytes_before": report.bytes_before,
                   "bytes_after": report.bytes_after})
        );
    } else {
        println!(
            "{path}: {} bytes before, {} now, {} nodes",
            report.bytes_before, report.bytes_after, report.nodes
        );
    }
    Ok(())
}

/// Copies what can be read of a damaged database; what is lost makes it fail.
pub(crate) fn salvage(options: &SalvageOptions, flag: Option<&Path>) -> Result<()> {
    let (damaged, new) = two(&options.words, flag, "the new database")?;
    let bar = Progress::of_pages("salvage");
    let open = Database::options().behind_damage(options.log);
    let report = open.salvage(&damaged, new, |done, all| bar.of(done, all));
    bar.end();
    let report = report?;
    let new = new.display().to_string();
    if options.json {
        println!("{}", as_json(&new, &report));
    } else {
        tell(&new, &report);
    }
    if report.is_complete() {
        return Ok(());
    }
    Err(found(format!(
        "{}: not all of it could be read: keep it, and restore what is missing from a backup",
        damaged.display()
    )))
}

fn tell(new: &str, report: &SalvageReport) {
    let more = |count: u64, what: &str| {
        if count > 0 {
            println!("and {count} more {what}");
        }
    };
    for lost in &report.pages {
        println!("page {} (byte {}): {}", lost.page, lost.byte, lost.why);
    }
    more(report.more_pages, "pages");
    for range in &report.ranges {
        match (&range.after, &range.before) {
            (Some(after), Some(before)) => println!("lost: nodes between {after} and {before}"),
            (Some(after), None) => println!("lost: nodes behind {after}"),
            (None, Some(before)) => println!("lost: nodes before {before}"),
            (None, None) => println!("lost: all nodes"),
        }
    }
    more(report.more_ranges, "ranges");
    report.values.iter().for_each(|node| println!("lost: the value of {node}"));
    more(report.more_values, "values");
    if report.unsummed_pages > 0 {
        println!(
            "{} pages were copied whose checksums are lost: look at what they hold",
            report.unsummed_pages
        );
    }
    match report.log_records {
        Some(records) => println!("it was not closed: {records} records of its log were applied"),
        None if report.was_open => {
            println!("it was not closed: what was written after its last checkpoint is not in the copy");
        }
        None => {}
    }
    if report.log_records_behind > 0 {
        println!(
            "{} of them lay behind damage: look at what they belong to, since others are missing",
            report.log_records_behind
        );
    }
    if let Some(damage) = &report.log_damage {
        println!("lost: what follows in the log: {damage}");
    }
    println!("{new}: {} nodes copied, {} bytes", report.nodes, report.bytes);
}

fn as_json(new: &str, report: &SalvageReport) -> serde_json::Value {
    let pages: Vec<_> = report
        .pages
        .iter()
        .map(|lost| json!({"page": lost.page, "byte": lost.byte, "why": lost.why}))
        .collect();
    let ranges: Vec<_> =
        report.ranges.iter().map(|range| json!({"after": range.after, "before": range.before})).collect();
    json!({"path": new, "complete": report.is_complete(), "nodes": report.nodes, "bytes": report.bytes,
           "generation": report.generation, "was_open": report.was_open,
           "log_records": report.log_records, "log_records_behind": report.log_records_behind,
           "log_damage": report.log_damage,
           "unsummed_pages": report.unsummed_pages, "pages": pages, "more_pages": report.more_pages,
           "ranges": ranges, "more_ranges": report.more_ranges, "values": report.values,
           "more_values": report.more_values})
}

/// The database, which has to be there, and the second word.
fn two<'w>(words: &'w [PathBuf], flag: Option<&'w Path>, second: &str) -> Result<(PathBuf, &'w Path)> {
    let (database, rest) = which_database::first(words, flag, 1)?;
    match rest {
        [only] => Ok((which_database::existing(database)?, only)),
        _ => {
            Err(wrong_use(format!("name the database, by --db or as the first argument, and then {second}")))
        }
    }
}
