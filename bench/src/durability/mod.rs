//! What durability costs, and what it leaves: commits beside peers at equal durability and beside the disk itself,
//! levels beside each other, recovery, reopening, space, loading.
//!
//! Invariants
//! - Sides alternate within a round, and rows count only after a check, as in the suite of the engine.
//! - Every database is made in a scratch directory that is removed with its measurement.
//!
//! Deliberately absent: what is lost when (the crash simulator of `crates/harness`), data larger than memory
//! (`memory`).

mod commits;
mod goals;
mod load;
pub(crate) mod recovery;
mod redis;
mod reopen;
mod space;
mod table;

use std::path::PathBuf;

use indicatif::{ProgressBar, ProgressStyle};

use crate::row::Row;
use crate::scratch::Scratch;
use crate::subject::{Class, Peer, Result};
use crate::{engine, peers};

pub(crate) use table::tables;

/// What a run is to be.
#[derive(Clone, Debug)]
pub(crate) struct Wish {
    /// Under a minute: enough to see what is broken.
    pub(crate) quick: bool,
    /// Parts of the names of sections; none: all.
    pub(crate) only: Vec<String>,
    pub(crate) rounds: usize,
    /// Where databases are made and removed again.
    pub(crate) directory: PathBuf,
}

type Section = fn(&mut Run<'_>) -> Result<()>;

/// The sections by their names.
const SECTIONS: &[(&str, Section)] = &[
    ("commits", commits::commits),
    ("levels", commits::levels),
    ("recovery", recovery::run),
    ("reopen", reopen::run),
    ("space", space::run),
    ("load", load::run),
];

/// Measures the sections that were asked for.
///
/// # Errors
/// No section has such a name; the directory cannot be used. What goes wrong in a section is a problem in
/// the results.
pub(crate) fn run(wish: &Wish) -> Result<engine::Results> {
    let wanted: Vec<_> = SECTIONS
        .iter()
        .filter(|(name, _)| wish.only.is_empty() || wish.only.iter().any(|part| name.contains(part.as_str())))
        .collect();
    if wanted.is_empty() {
        let names: Vec<&str> = SECTIONS.iter().map(|(name, _)| *name).collect();
        return Err(format!("no section has such a name: {} are there", names.join(", ")).into());
    }
    let scratch = Scratch::new(&wish.directory, &format!("perilune-bench-{}", std::process::id()))?;
    let style = ProgressStyle::with_template("{elapsed_precise} {msg}")?;
    let progress = ProgressBar::new_spinner().with_style(style);
    let mut run = Run { wish, scratch, progress, databases: 0, results: engine::Results::default() };
    for (name, section) in wanted {
        if let Err(error) = section(&mut run) {
            run.results.problems.push(format!("{name}: {error}"));
        }
    }
    run.progress.finish_and_clear();
    Ok(run.results)
}

/// A run under way.
pub(crate) struct Run<'a> {
    wish: &'a Wish,
    scratch: Scratch,
    progress: ProgressBar,
    /// How many were made: their directories are numbered.
    databases: usize,
    results: engine::Results,
}

impl Run<'_> {
    /// A directory for a database.
    fn directory(&mut self, name: &str) -> Result<Scratch> {
        self.databases += 1;
        Scratch::new(self.scratch.path(), &format!("{name}-{}", self.databases))
    }

    fn announce(&self, text: &str) {
        self.progress.set_message(text.to_owned());
        self.progress.tick();
    }

    fn push(&mut self, row: Row) {
        self.results.rows.push(row);
    }

    /// One or another, by whether the run is a quick one.
    fn quick<T>(&self, quick: T, full: T) -> T {
        if self.wish.quick {
            quick
        } else {
            full
        }
    }

    /// The peers of a class that are installed and keep files, ours first.
    fn peers(&self, class: Class) -> Vec<Peer> {
        let all = peers::all(class).into_iter().filter(|peer| !["btreemap", "lmdb-int"].contains(&peer.name));
        all.filter(|peer| (peer.version)().is_ok()).collect()
    }
}
