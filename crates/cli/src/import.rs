//! `import-rdb`: a dump of Redis becomes keys that `serve` serves.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};
use perilune::Database;
use perilune_server::{import_rdb, ImportError, Streams};

use crate::exchange::Progress;
use crate::failure::{doing, environment, found, Failure, Result};

/// Bytes read from the file at a time.
const READ_BYTES: usize = 1 << 18;

/// What to import.
#[derive(Args, Debug)]
pub(crate) struct ImportOptions {
    /// The dump that Redis has written, as dump.rdb
    #[arg(value_hint = ValueHint::FilePath)]
    file: PathBuf,
    /// The database, instead of --db; made if it is missing
    #[arg(value_hint = ValueHint::FilePath)]
    path: Option<PathBuf>,
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
pub(crate) fn run(options: &ImportOptions, default: Option<&Path>) -> Result<()> {
    let name = options.file.display().to_string();
    let file = File::open(&options.file).map_err(doing(format!("read {name}")))?;
    let metadata = file.metadata().map_err(doing(format!("read {name}")))?;
    if metadata.is_dir() {
        return Err(environment(format!("cannot read {name}: it is a directory")));
    }
    let database = match options.path.as_deref().or(default) {
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
