//! Our server beside redis-server: commands, scripts, 3n+1 by clients and in the server, other clients
//! beside a long script, and the connection study of the author of AlchemyDB.
//!
//! Invariants
//! - Sides alternate: in each round of a cell every side works once, in an order that turns. All servers of
//!   a section run from its beginning to its end; those whose turn it is not have no requests.
//! - The clients are processes of our own (`process`): redis-benchmark has one thread and no answers to
//!   compare. Every answer is compared, and a row with a wrong one does not count.
//! - Servers' CPU time is that of the kernel's books, clients' own beside it: who is the limit can be seen.
//!
//! Deliberately absent: what servers lose in a crash (`durability`), peers that do not speak Redis's
//! protocol (`comparison`).

pub(crate) mod client_process;
mod client_processes;
mod clients;
mod commands;
mod computing;
mod connections;
mod conversation;
mod goals;
mod histogram;
mod idle;
mod neighbours;
mod page;
mod pictures;
mod requests;
mod row;
mod sides;
mod table;

use std::path::{Path, PathBuf};

use indicatif::{ProgressBar, ProgressStyle};
use rustix::process::{Resource, Rlimit};

use crate::machine::Facts;
use crate::scratch::Scratch;
use crate::subject::Result;

pub(crate) use row::Row;
use sides::Serving;
pub(crate) use sides::Side;
use table::Found;

/// What a run is to be.
#[derive(Clone, Debug)]
pub(crate) struct Wish {
    /// Seconds: enough to see what is broken, not for claims.
    pub(crate) quick: bool,
    /// Parts of the names of sections; none: all.
    pub(crate) only: Vec<String>,
    pub(crate) rounds: usize,
    /// Where databases are made and removed again.
    pub(crate) directory: PathBuf,
}

impl Wish {
    /// One or another, by whether the run is a quick one.
    fn quick<T>(&self, quick: T, full: T) -> T {
        if self.quick {
            quick
        } else {
            full
        }
    }
}

/// What was found.
#[derive(Clone, Debug, Default)]
pub(crate) struct Results {
    pub(crate) rows: Vec<Row>,
    pub(crate) problems: Vec<String>,
}

type Part = fn(&mut Run<'_>) -> Result<()>;

/// The sections by their names.
const SECTIONS: &[(&str, Part)] = &[
    ("commands", commands::commands),
    ("scripts", commands::scripts),
    ("neighbours", neighbours::run),
    ("clients", clients::by_clients),
    ("inside", clients::inside),
    ("computing", computing::run),
    ("idle", idle::run),
    ("connections", connections::run),
];

/// The sections' names.
pub(crate) fn names() -> Vec<&'static str> {
    SECTIONS.iter().map(|(name, _)| *name).collect()
}

/// The side that the comparison of all peers knows by this name.
pub(crate) fn side(name: &str) -> Option<Side> {
    match name {
        "redis" => Some(Side::Redis),
        "perilune-serve" => Some(sides::TWO),
        _ => None,
    }
}

/// Rows of rising numbers of connections, all of which have a request under way: for the comparison of all
/// peers. A level takes about so many seconds; below a tenth of one there are only some hundred connections.
///
/// # Errors
/// A server does not start, a connection ends, or an answer is wrong.
pub(crate) fn levels(side: Side, directory: &Path, seconds: f64) -> Result<Vec<Row>> {
    connections::levels(side, directory, seconds)
}

/// Versions and settings of the sides.
pub(crate) fn facts() -> Facts {
    sides::facts()
}

/// Measures the sections that were asked for.
///
/// # Errors
/// No section has such a name; the directory cannot be used. What goes wrong in a section is a problem in
/// the results.
pub(crate) fn run(wish: &Wish) -> Result<Results> {
    let wanted: Vec<_> = SECTIONS
        .iter()
        .filter(|(name, _)| wish.only.is_empty() || wish.only.iter().any(|part| name.contains(part.as_str())))
        .collect();
    if wanted.is_empty() {
        return Err(format!("no section has such a name: {} are there", names().join(", ")).into());
    }
    // Servers inherit it, and have as many clients as they may.
    let most = rustix::process::getrlimit(Resource::Nofile).maximum;
    rustix::process::setrlimit(Resource::Nofile, Rlimit { current: most, maximum: most })?;
    let scratch = Scratch::new(&wish.directory, &format!("perilune-bench-{}", std::process::id()))?;
    let style = ProgressStyle::with_template("{elapsed_precise} [{wide_bar}] {pos}/{len} {msg:40}")?;
    let progress = ProgressBar::new(wanted.len() as u64 * STEPS).with_style(style);
    let mut run = Run { wish, scratch, progress, results: Results::default() };
    for (index, (name, part)) in wanted.iter().enumerate() {
        run.progress.set_position(index as u64 * STEPS);
        if let Err(error) = part(&mut run) {
            run.problem(format!("{name}: {error}"));
        }
    }
    run.progress.finish_and_clear();
    Ok(run.results)
}

/// Steps of the progress bar for each section.
const STEPS: u64 = 100;

/// The tables of a run and the score of its goals, the missed ones first.
pub(crate) fn tables(rows: &[Row]) -> Found {
    table::tables(rows)
}

/// Writes the charts of a run to the directory of its tables, and makes a page of all, `index.html`.
///
/// # Errors
/// They cannot be written.
pub(crate) fn draw(
    results: &Results,
    command: &str,
    facts: &Facts,
    found: &Found,
    directory: &Path,
) -> Result<()> {
    let drawings = pictures::drawings(&results.rows);
    pictures::write(&drawings, directory)?;
    let page = page::html(results, command, facts, found, &drawings)?;
    Ok(std::fs::write(directory.join("index.html"), page)?)
}

/// Writes tables, charts and the page of a run again, from its rows and the words of its README, which stays; false if
/// the directory holds a run of something else.
///
/// # Errors
/// There is no run, or a file cannot be written.
pub(crate) fn redraw(directory: &Path) -> Result<bool> {
    let path = directory.join("raw.jsonl");
    let named = |error| format!("{} holds no run: {}: {error}", directory.display(), path.display());
    let raw = std::fs::read_to_string(&path).map_err(named)?;
    if !raw.starts_with("{\"suite\":\"server\"") {
        return Ok(false);
    }
    let said = crate::run_directory::read_words(directory)?;
    let rows = raw.lines().map(serde_json::from_str).collect::<std::result::Result<_, _>>()?;
    let results = Results { rows, problems: said.problems };
    let found = tables(&results.rows);
    crate::run_directory::write_summary(directory, &found.tables, &results.problems)?;
    draw(&results, &said.command, &said.facts, &found, directory)?;
    Ok(true)
}

/// A run under way.
pub(crate) struct Run<'a> {
    wish: &'a Wish,
    scratch: Scratch,
    progress: ProgressBar,
    results: Results,
}

impl Run<'_> {
    /// Starts a server of one process.
    fn start(&self, side: Side) -> Result<Serving> {
        Serving::start(side, 1, &[], self.scratch.path())
    }

    /// Starts all sides.
    fn start_all(&self, sides: &[Side]) -> Result<Vec<Serving>> {
        sides.iter().map(|side| self.start(*side)).collect()
    }

    /// Says that `done` of `all` steps of the section are behind us, and what comes next.
    fn announce(&self, done: usize, all: usize, text: String) {
        let begun = self.progress.position() / STEPS * STEPS;
        self.progress.set_position(begun + (done * (STEPS as usize - 1) / all.max(1)) as u64);
        self.progress.set_message(text);
    }

    fn push(&mut self, row: Row) {
        self.results.rows.push(row);
    }

    /// What a side has in a workload does not count.
    fn take_back(&mut self, section: &str, workload: &str, side: Side) {
        let is_of =
            |row: &Row| (row.section, &*row.workload, row.backend) == (section, workload, side.name());
        self.results.rows.retain(|row| !is_of(row));
    }

    fn problem(&mut self, problem: String) {
        self.progress.suspend(|| eprintln!("NOT COUNTED: {problem}"));
        self.results.problems.push(problem);
    }
}

/// The sides of a round, beginning with another one each time.
fn turned<T>(sides: &mut [T], round: usize) -> impl Iterator<Item = &mut T> {
    let count = sides.len().max(1);
    sides.rotate_left(usize::from(round > 0) % count);
    sides.iter_mut()
}
