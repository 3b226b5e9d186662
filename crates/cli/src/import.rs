//! `import-rdb`: reads a dump of Redis (dump.rdb) into a database, whose keys `serve` then serves.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};
use perilune::Database;
use perilune_redis::{import_rdb, ImportError, Streams};

use crate::exchange::Progress;
use crate::failure::{doing, environment, found, Failure, Result};
use crate::which_database;

/// Bytes read from the file at a time.
const READ_BYTES: usize = 1 << 18;

/// What to import.
#[derive(Args, Debug)]
pub(crate) struct ImportOptions {
    /// The database, instead of --db, made if it is missing; then the dump that Redis has written, as dump.rdb
    #[arg(value_names = ["DB", "FILE"], num_args = 1..=2, required = true, value_hint = ValueHint::FilePath)]
    words: Vec<PathBuf>,
    /// Leave streams out and count them, instead of ending at the first
    #[arg(long)]
    without_streams: bool,
}

impl From<ImportError> for Failure {
    fn from(error: ImportError) -> Failure {
        match error {
            ImportError::Database(error) => error.into(),
            ImportError::Io(_) => environment(error.to_string()),
            other => found(other.to_string()),
        }
    }
}

/// Imports the file.
pub(crate) fn run(options: &ImportOptions, flag: Option<&Path>) -> Result<()> {
    let (path, dump) = match which_database::first(&options.words, flag, 1)? {
        (path, [dump]) => (path, dump.as_path()),
        // A word alone is the dump, for the default database.
        (path, _) => (flag, path.unwrap_or(Path::new(""))),
    };
    let name = dump.display().to_string();
    let file = File::open(dump).map_err(doing(format!("read {name}")))?;
    let metadata = file.metadata().map_err(doing(format!("read {name}")))?;
    if metadata.is_dir() {
        return Err(environment(format!("cannot read {name}: it is a directory")));
    }
    let database = match path {
        Some(path) => Database::open(path)?,
        None => Database::open_default()?,
    };
    let bar = Progress::of_bytes(&name, metadata.is_file().then_some(metadata.len()));
    let reader = BufReader::with_capacity(READ_BYTES, file);
    let streams = if options.without_streams { Streams::LeftOut } else { Streams::Refused };
    let outcome = import_rdb(&database, reader, streams, |done| bar.at(done.bytes));
    bar.end();
    let done = outcome?;
    eprintln!("{name}: {} keys imported, {} had expired", done.keys, done.expired);
    if done.streams > 0 {
        eprintln!("{name}: {} streams left out", done.streams);
    }
    if done.functions > 0 {
        eprintln!("{name}: {} libraries of functions left out: load them with FUNCTION LOAD", done.functions);
    }
    Ok(())
}
