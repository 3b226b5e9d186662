//! `keep`: stays attached, so that a database is flushed and checkpointed while nobody else has it open.
//!
//! Invariants
//! - SIGTERM, SIGINT and SIGHUP end it in good order: the database is closed.
//! - It has no session and sets no node; what is flushed are commits of others.

use std::io::{self, Write};
use std::path::Path;

use perilune::Database;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::failure::{doing, Result};
use crate::which_database;

/// Keeps the database until it is told to end.
pub(crate) fn keep(path: Option<&Path>) -> Result<()> {
    // NB: before it opens, so that no signal ends it with the database open.
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP]).map_err(doing("wait for signals"))?;
    let database = Database::options().create(false).open(which_database::existing(path)?)?;
    let told = writeln!(io::stdout(), "keeping {}: SIGTERM or SIGINT ends it", database.path().display());
    // NB: who waits for the line reads a pipe; if nobody does, the database is kept all the same.
    let _ = told.and_then(|()| io::stdout().flush());
    signals.forever().next();
    database.close()?;
    Ok(())
}
