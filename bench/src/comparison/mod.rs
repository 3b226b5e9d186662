//! The comparison: all peers in one run, each in its natural way, sides alternating.
//!
//! Invariants
//! - In each round of a cell every side plays once, on a fresh directory, and the order turns from round
//!   to round: what disturbs the machine disturbs all.
//! - A side plays only after it has passed the correctness suite in its class; its rows count only where
//!   every answer was right. What it fails in is named.
//! - Classes of durability never share a table or a chart.

pub(crate) mod arguments;
mod causes;
mod cells;
pub(crate) mod goals;
pub(crate) mod page;
pub(crate) mod process;
pub(crate) mod publish;
pub(crate) mod result;
mod scaling;
mod space;
pub(crate) mod traces;
mod watch;
mod xml;

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use indicatif::{ProgressBar, ProgressStyle};

use crate::comparison::cells::{Amount, Cell, Figure, Slow};
use crate::comparison::process::Play;
use crate::comparison::result::{About, Line, Notes, Run};
use crate::peers::subjects::{self, Mapping, Part, Side};
use crate::scratch::Scratch;
use crate::subject::{Class, Result};

/// Rounds of a side whose rounds are longer than [`LONG_SECONDS`], and in class D1.
const ROUNDS_LONG: usize = 3;
const LONG_SECONDS: f64 = 5.0;

/// Processes of a cell of a quick run.
const QUICK_PROCESSES: usize = 16;

/// What is to be compared.
#[derive(Clone, Debug)]
pub(crate) struct Wish {
    /// All cells, not the standard set alone.
    pub(crate) full: bool,
    /// No cells of very many processes, unless these are asked for: most of their time is that of starting them.
    pub(crate) quick: bool,
    /// Parts of the names of cells, or their numbers; none: all.
    pub(crate) only: Vec<String>,
    pub(crate) classes: Vec<Class>,
    /// Names of sides; none: all.
    pub(crate) peers: Vec<String>,
    /// Numbers of processes; none: all.
    pub(crate) processes: Vec<usize>,
    pub(crate) rounds: usize,
    pub(crate) seconds: f64,
    pub(crate) n: u64,
    pub(crate) nodes: u64,
    /// Servers that somebody else runs: name, address, and the class that they are said to be in.
    pub(crate) servers: Vec<(String, String, Class)>,
    pub(crate) directory: PathBuf,
    /// Where rows are written after each cell.
    pub(crate) record: Option<PathBuf>,
}

/// A side that takes part.
struct Entrant {
    side: Side,
    address: Option<String>,
    /// What a server that somebody else runs says that it is.
    said: Option<String>,
}

/// Cells that a wish asks for.
fn chosen(wish: &Wish) -> Vec<Cell> {
    let mut cells = cells::all();
    // Much of a quick run would wait for the disk: what is durable is shown by the writers.
    let waits = |cell: &Cell| cell.class == Class::D1 && ["collatz", "bank"].contains(&cell.name);
    cells.retain(|cell| {
        let named = |part: &String| cell.name.contains(part.as_str()) || cell.number.to_string() == *part;
        (wish.full || cell.standard || !wish.only.is_empty())
            && (wish.only.is_empty() || wish.only.iter().any(named))
            && match &wish.classes[..] {
                [] => !wish.quick || !waits(cell),
                asked => asked.contains(&cell.class),
            }
            && match &wish.processes[..] {
                [] => !wish.quick || cell.processes <= QUICK_PROCESSES,
                asked => asked.contains(&cell.processes),
            }
    });
    cells
}

/// The names of cells and sides, as `perilune-bench list` prints them.
pub(crate) fn list() -> String {
    let mut text = "workloads (number, class, processes; * in the standard set)\n".to_owned();
    for cell in cells::all() {
        let star = if cell.standard { "*" } else { " " };
        text.push_str(&format!(
            "  {star} {:<2} {:<11} {} {:>2}\n",
            cell.number,
            cell.name,
            cell.class.name(),
            cell.processes
        ));
    }
    text.push_str("sides (class, client, version, settings)\n");
    for side in subjects::all() {
        let version = (side.version)().unwrap_or_else(|error| format!("MISSING: {error}"));
        text.push_str(&format!(
            "  {:<20} {} {:<12} {version}; {}\n",
            side.name,
            side.class.name(),
            side.client,
            side.settings
        ));
    }
    text
}

/// Plays all that is wished for.
///
/// # Errors
/// The wish cannot be met; the directory cannot be used. What goes wrong with one side is a problem in the
/// result.
pub(crate) fn run(wish: &Wish) -> Result<Run> {
    let cells = chosen(wish);
    if cells.is_empty() {
        return Err(
            "no workload has such a name, class and number of processes: see `perilune-bench list`".into()
        );
    }
    let scratch = Scratch::new(&wish.directory, &format!("perilune-bench-{}", std::process::id()))?;
    let mut notes = Notes {
        command: std::env::args().skip(1).collect::<Vec<_>>().join(" "),
        facts: crate::machine::facts(&wish.directory),
        ..Notes::default()
    };
    notes.facts.push((
        "rounds".to_owned(),
        format!(
            "{} of {} s after a tenth of that to warm up; {ROUNDS_LONG} in class D1 and where one takes over {LONG_SECONDS} s; \
             3n+1 and XML run whole and start cold",
            wish.rounds, wish.seconds
        ),
    ));
    let entrants = entrants(wish, &cells, &mut notes)?;
    write_traces(scratch.path(), &cells, wish)?;
    let steps: usize = cells
        .iter()
        .map(|cell| entrants.iter().filter(|entrant| cell.suits(&entrant.side)).count() * rounds(cell, wish))
        .sum();
    let style = ProgressStyle::with_template("{elapsed_precise} [{wide_bar}] {pos}/{len} {msg:36}")?;
    let progress = ProgressBar::new((steps + entrants.len()) as u64).with_style(style);
    let amount = Amount {
        seconds: wish.seconds,
        n: wish.n,
        nodes: wish.nodes,
        patience: (wish.seconds * 60.0).max(60.0),
    };
    let mut running =
        Running { wish, amount, scratch, progress, plays: 0, run: Run { notes, lines: Vec::new() } };
    let entrants = running.pass(entrants);
    for cell in &cells {
        let begun = std::time::Instant::now();
        running.cell(cell, &entrants);
        let took = format!(
            "{} {} x{}: {:.0}",
            cell.name,
            cell.class.name(),
            cell.processes,
            begun.elapsed().as_secs_f64()
        );
        running.run.notes.took.push(took);
        // What has been measured is not lost if the run is ended.
        if let Some(directory) = &wish.record {
            running.run.write(directory)?;
        }
    }
    for (_, address, _) in &wish.servers {
        subjects::resp::empty(address)?;
    }
    running.progress.finish_and_clear();
    Ok(running.run)
}

/// Rounds of a cell at most.
fn rounds(cell: &Cell, wish: &Wish) -> usize {
    match (cell.class, cell.kind) {
        (Class::D1 | Class::D2, _) | (_, cells::Kind::Space | cells::Kind::Open) => {
            wish.rounds.min(ROUNDS_LONG)
        }
        _ => wish.rounds,
    }
}

/// The sides that take part in any of the cells; all of them go to the notes.
fn entrants(wish: &Wish, cells: &[Cell], notes: &mut Notes) -> Result<Vec<Entrant>> {
    let mut all: Vec<Entrant> =
        subjects::all().into_iter().map(|side| Entrant { side, address: None, said: None }).collect();
    for (name, address, class) in &wish.servers {
        // A few names for the whole of the run.
        let name: &'static str = Box::leak(name.clone().into_boxed_str());
        let side = subjects::resp::elsewhere(name, *class);
        let said = Some(subjects::resp::look(address)?);
        all.push(Entrant { side, address: Some(address.clone()), said });
    }
    if let Some(unknown) =
        wish.peers.iter().find(|name| all.iter().all(|entrant| entrant.side.name != **name))
    {
        return Err(format!("there is no side `{unknown}`: see `perilune-bench list`").into());
    }
    all.retain(|entrant| {
        let name = entrant.side.name;
        let asked = wish.peers.iter().any(|wanted| wanted == name);
        (asked || wish.peers.is_empty() && !subjects::ASKED.contains(&name))
            && cells.iter().any(|cell| cell.suits(&entrant.side))
    });
    all.retain(|entrant| {
        let side = &entrant.side;
        let version = entrant.said.clone().map_or_else(side.version, Ok);
        notes.sides.push(About {
            name: side.name.to_owned(),
            class: side.class.name().to_owned(),
            published: side.mapping == Mapping::Published,
            client: side.client.to_owned(),
            settings: side.settings.to_owned(),
            version: version.as_ref().map_or_else(|_| String::new(), Clone::clone),
            missing: version.as_ref().err().map(ToString::to_string),
        });
        version.is_ok()
    });
    Ok(all)
}

/// Writes the traces that the cells and the correctness suite replay.
fn write_traces(directory: &Path, cells: &[Cell], wish: &Wish) -> Result<()> {
    let write = |name: &str, text: String| std::fs::write(directory.join(name), text);
    xml::write_xml(directory)?;
    write("check.tsv", traces::correctness(2_000)?)?;
    let wanted = |kind| cells.iter().any(|cell| cell.kind == kind);
    if wanted(cells::Kind::Operations) {
        write("operations.tsv", traces::operations(wish.nodes.clamp(1_000, 20_000) / 100)?)?;
    }
    if wanted(cells::Kind::Mixes) {
        write("mixes.tsv", traces::mixes(10_000, 10_000)?)?;
    }
    Ok(())
}

struct Running<'a> {
    wish: &'a Wish,
    amount: Amount,
    scratch: Scratch,
    progress: ProgressBar,
    plays: usize,
    run: Run,
}

impl Running<'_> {
    fn start(&mut self, entrant: &Entrant, processes: usize) -> Result<Play> {
        self.plays += 1;
        let address = entrant.address.as_deref();
        if let Some(address) = address {
            subjects::resp::empty(address)?;
        }
        let limit = self.amount.limit();
        Play::start(&entrant.side, address, processes, self.scratch.path(), self.plays, limit)
    }

    /// Starts a side and lets it play; one that the watch had to kill was slow.
    fn played<T>(
        &mut self,
        entrant: &Entrant,
        processes: usize,
        play: impl FnOnce(Play, &Amount) -> Result<T>,
    ) -> Result<T> {
        let started = self.start(entrant, processes)?;
        let fired = started.watch();
        play(started, &self.amount).map_err(|error| match fired.load(Ordering::SeqCst) {
            true => Box::new(Slow(format!("killed after {:.0} s", self.amount.limit()))),
            false => error,
        })
    }

    fn problem(&mut self, side: &Side, what: &str, error: &(dyn std::error::Error + Send + Sync + 'static)) {
        let problem = format!("{} in class {}, {what}: {error}", side.name, side.class.name());
        self.progress.suspend(|| eprintln!("{problem}"));
        match error.is::<Slow>() {
            true => self.run.notes.cut.push(problem),
            false => self.run.notes.problems.push(problem),
        }
    }

    /// The entrants that pass the correctness suite.
    fn pass(&mut self, entrants: Vec<Entrant>) -> Vec<Entrant> {
        let mut passed = Vec::new();
        for entrant in entrants {
            self.progress.set_message(format!("check {} {}", entrant.side.name, entrant.side.class.name()));
            self.progress.inc(1);
            match self.played(&entrant, 1, |play, _| check(&entrant.side, play)) {
                Ok(()) => passed.push(entrant),
                Err(error) => self.problem(&entrant.side, "correctness suite", &*error),
            }
        }
        passed
    }

    /// All rounds of a cell.
    fn cell(&mut self, cell: &Cell, entrants: &[Entrant]) {
        let mut playing: Vec<&Entrant> =
            entrants.iter().filter(|entrant| cell.suits(&entrant.side)).collect();
        let mut lines: Vec<Line> = Vec::new();
        for round in 0..rounds(cell, self.wish) {
            let count = playing.len().max(1);
            playing.rotate_left(usize::from(round > 0) % count);
            playing.retain(|entrant| {
                let side = &entrant.side;
                let class = side.class.name();
                self.progress.set_message(format!("{} x{} {class} {}", cell.name, cell.processes, side.name));
                self.progress.inc(1);
                let mine = |line: &&Line| line.backend == side.name;
                let long =
                    lines.iter().filter(mine).any(|line| line.unit == "s" && line.value > LONG_SECONDS);
                if long && round >= ROUNDS_LONG {
                    return true;
                }
                let played =
                    self.played(entrant, cell.processes, |play, amount| cell.play(side, play, amount));
                match played {
                    Ok((figures, _directory)) => {
                        lines.extend(figures.into_iter().map(|figure| line(cell, side, round, figure)));
                        true
                    }
                    Err(error) => {
                        lines.retain(|line| line.backend != side.name);
                        self.problem(side, &format!("{} x{}", cell.name, cell.processes), &*error);
                        false
                    }
                }
            });
        }
        self.run.lines.append(&mut lines);
    }
}

fn line(cell: &Cell, side: &Side, round: usize, figure: Figure) -> Line {
    Line {
        suite: "run".to_owned(),
        workload: figure.workload,
        backend: side.name.to_owned(),
        class: side.class.name().to_owned(),
        keys: figure.keys,
        procs: cell.processes,
        threads: 1,
        round,
        unit: figure.unit.to_owned(),
        value: figure.value,
        wall_seconds: figure.measured.wall_seconds,
        cpu_seconds: figure.measured.cpu_seconds,
        operations: figure.measured.operations,
    }
}

/// The correctness suite: what every side must answer right before it is measured.
fn check(side: &Side, mut play: Play) -> Result<()> {
    let parent = play.site.directory.parent().unwrap_or(&play.site.directory).to_owned();
    let has = |part| side.parts.contains(&part);
    let same = |what: &str, found: u64, wanted: u64| match found == wanted {
        true => Ok(()),
        false => Err(format!("{what}: {found}, not {wanted}")),
    };
    let durable = matches!(side.class, Class::D1 | Class::D2);
    if has(Part::Sequence) {
        same("sets", play.number("set 1 50")?, 50)?;
        same("gets", play.number("get 1 60")?, 50)?;
        same("random sets", play.number("rset 20 7 50")?, 20)?;
        same("random gets", play.number("rget 100 7 50")?, 100)?;
    }
    if has(Part::Batch) {
        same("sets in batches", play.number("bset 51 120 50")?, 120)?;
        same("gets of them", play.number("get 51 120")?, 120)?;
    }
    if has(Part::Bank) {
        same("accounts", play.number("accounts 10")?, 10)?;
        same("transfers", play.number("transfer 30 5 10")?, 30)?;
        same("the bank", play.number("bank 10")?, 10_000)?;
    }
    if has(Part::Collatz) {
        let n = if durable { 10 } else { 1_000 };
        let expected = crate::workload::expected(n).ok_or("no known results")?;
        let counts = play.ask(&format!("collatz {n}"))?;
        let wanted = format!("{} {}", expected.reads, expected.updates);
        if counts != wanted {
            return Err(format!("3n+1 counted {counts}, not {wanted}").into());
        }
    }
    let (file, count) = match (has(Part::Walk), durable) {
        (true, true) => ("check.tsv", 150),
        (true, false) => ("check.tsv", 2_000),
        (false, true) => ("xml.tsv", 300),
        (false, false) => ("xml.tsv", 3_000),
    };
    if has(Part::Trace) {
        play.number(&format!("load {} -", parent.join(file).display()))?;
        same("wrong answers to the trace", play.number(&format!("replay 0 {count}"))?, 0)?;
    }
    play.ask("close")?;
    play.finish()?;
    Ok(())
}

#[cfg(test)]
mod tests;
