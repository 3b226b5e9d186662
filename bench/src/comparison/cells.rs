//! The cells of the comparison: what a side does in one round, and which of its results count.
//!
//! Invariants
//! - A round starts on a fresh directory, warms up for a tenth of its time where it is bounded by time,
//!   and counts only if every answer was right.

use crate::comparison::process::{Measured, Play};
use crate::comparison::space::{open, space};
use crate::comparison::traces::{MIXES, OPERATIONS};
use crate::comparison::xml::{self, XML_KINDS, XML_PHASES};
use crate::peers::subjects::{Mapping, Part, Side};
use crate::player::jobs::BALANCE;
use crate::scratch::Scratch;
use crate::subject::{Class, Result};

/// Sequential sets, as published.
const SEQUENCE: u64 = 500_000;
const ACCOUNTS: u64 = 1_000;
/// Sets in a commit of class D2.
const BATCH: u64 = 100;
/// Numbers between those whose steps are checked.
const STRIDE: u64 = 97;

/// What is measured together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Collatz,
    Sequence,
    Operations,
    Xml,
    Bank,
    /// Sets of several players, each durable.
    Writers,
    Mixes,
    Batch,
    Space,
    Open,
    /// Connections of servers; the comparison's players take no part.
    Connections,
}

/// One cell.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cell {
    /// Its name for `--only`.
    pub(crate) name: &'static str,
    /// Its number in the guide.
    pub(crate) number: u8,
    pub(crate) kind: Kind,
    pub(crate) class: Class,
    pub(crate) processes: usize,
    /// A part of the standard set.
    pub(crate) standard: bool,
}

/// How much is done.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Amount {
    pub(crate) seconds: f64,
    /// 3n+1 up to here; less in D1.
    pub(crate) n: u64,
    pub(crate) nodes: u64,
    /// Seconds after which a trace that is replayed whole is given up.
    pub(crate) patience: f64,
}

impl Amount {
    /// Seconds after which a play is killed, whatever it does: two traces, with time to start and to check.
    pub(crate) fn limit(&self) -> f64 {
        self.patience * 3.0
    }
}

/// A side was not through in its time: no wrong answer, but no figure either.
#[derive(Debug)]
pub(crate) struct Slow(pub(crate) String);

impl std::fmt::Display for Slow {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for Slow {}

/// A figure of a round.
pub(crate) struct Figure {
    pub(crate) workload: String,
    pub(crate) keys: u64,
    pub(crate) unit: &'static str,
    pub(crate) value: f64,
    pub(crate) measured: Measured,
}

/// Every cell.
pub(crate) fn all() -> Vec<Cell> {
    let mut cells = Vec::new();
    let mut cell = |name, number, kind, class, processes, standard| {
        cells.push(Cell { name, number, kind, class, processes, standard });
    };
    for class in [Class::D4, Class::D3, Class::D1] {
        let standard = class != Class::D3;
        for processes in [1, 2, 32] {
            cell("collatz", 1, Kind::Collatz, class, processes, standard);
        }
        cell("sequence", 2, Kind::Sequence, class, 1, true);
        cell("xml", 4, Kind::Xml, class, 1, standard);
        for processes in [1, 2, 32] {
            // The standard set has a half hour: where commits wait, one and many processes say enough.
            let standard = class == Class::D4 || processes == 1 || (class == Class::D1 && processes == 32);
            cell("bank", 5, Kind::Bank, class, processes, standard);
        }
    }
    cell("writers", 5, Kind::Writers, Class::D1, 16, true);
    cell("batch", 2, Kind::Batch, Class::D2, 1, true);
    cell("operations", 3, Kind::Operations, Class::D4, 1, false);
    for processes in [1, 2] {
        cell("mixes", 6, Kind::Mixes, Class::D4, processes, false);
    }
    cell("connections", 8, Kind::Connections, Class::D4, 1, false);
    cell("space", 9, Kind::Space, Class::D4, 1, true);
    cell("space", 9, Kind::Space, Class::D1, 1, true);
    cell("open", 10, Kind::Open, Class::D4, 1, false);
    cell("open", 10, Kind::Open, Class::D3, 1, false);
    cells
}

impl Cell {
    /// Does a side take part?
    pub(crate) fn suits(&self, side: &Side) -> bool {
        let part = match self.kind {
            Kind::Collatz => Part::Collatz,
            Kind::Sequence | Kind::Writers => Part::Sequence,
            Kind::Operations => Part::Walk,
            Kind::Xml | Kind::Mixes => Part::Trace,
            Kind::Bank => Part::Bank,
            Kind::Batch => Part::Batch,
            Kind::Space | Kind::Open | Kind::Connections => Part::Space,
        };
        let alone = self.processes == 1 || side.processes;
        let mapped = side.mapping == Mapping::Best || matches!(self.kind, Kind::Sequence | Kind::Xml);
        if self.kind == Kind::Connections && crate::server::side(side.name).is_none() {
            return false;
        }
        side.class == self.class && side.parts.contains(&part) && alone && mapped
    }

    /// Plays one round.
    ///
    /// # Errors
    /// The side's, or a wrong answer.
    pub(crate) fn play(
        &self,
        side: &Side,
        play: Play,
        amount: &Amount,
    ) -> Result<(Vec<Figure>, Option<Scratch>)> {
        let mut play = play;
        let figures = match self.kind {
            Kind::Collatz => collatz(&mut play, self, amount),
            Kind::Sequence => sequence(&mut play, self, amount),
            Kind::Operations => phases(&mut play, "operations", &OPERATIONS, amount),
            Kind::Xml => xml_trace(&mut play, self, side, amount),
            Kind::Bank => bank(&mut play, amount),
            Kind::Writers => writers(&mut play, amount),
            Kind::Mixes => phases(&mut play, "mixes", &MIXES, amount),
            Kind::Batch => batch(&mut play, amount),
            Kind::Space => return space(play, self, amount),
            Kind::Open => return open(side, play, amount),
            Kind::Connections => return connections(side, play, amount),
        }?;
        play.ask("close")?;
        Ok((figures, play.finish()?))
    }
}

fn rate(workload: &str, keys: u64, measured: Measured) -> Result<Figure> {
    if measured.right != measured.operations {
        let (right, all) = (measured.right, measured.operations);
        return Err(format!("{workload}: {right} of {all} answers were right").into());
    }
    let value = measured.operations as f64 / measured.wall_seconds;
    Ok(Figure { workload: workload.to_owned(), keys, unit: "op/s", value, measured })
}

fn whole(workload: &str, keys: u64, operations: u64, measured: Measured) -> Figure {
    let measured = Measured { operations, right: operations, ..measured };
    Figure { workload: workload.to_owned(), keys, unit: "s", value: measured.wall_seconds, measured }
}

/// Drives twice: a tenth of the time to warm up, then what counts. `line` is as in [`Play::drive`], with
/// what has been done in all.
fn warmed(
    play: &mut Play,
    seconds: f64,
    line: impl Fn(usize, u64, u64) -> Option<(String, u64)> + Sync,
) -> Result<Measured> {
    let before = play.drive(seconds / 10.0, &line)?.operations / play.site.processes as u64;
    play.drive(seconds, |index, done, count| line(index, before + done, count))
}

pub(crate) fn same<T: PartialEq + std::fmt::Debug>(what: &str, found: T, wanted: T) -> Result<()> {
    if found == wanted {
        return Ok(());
    }
    Err(format!("{what}: {found:?}, not {wanted:?}").into())
}

/// Steps of a number to 1.
fn steps(mut n: u64) -> u64 {
    let mut steps = 0;
    while n > 1 {
        n = if n % 2 == 1 { 3 * n + 1 } else { n / 2 };
        steps += 1;
    }
    steps
}

fn collatz(play: &mut Play, cell: &Cell, amount: &Amount) -> Result<Vec<Figure>> {
    let n = if cell.class == Class::D1 { amount.n.min(100) } else { amount.n };
    let expected = crate::workload::expected(n).ok_or("3n+1 has no known results for this many numbers")?;
    let (measured, answers) = play.whole(|_| format!("collatz {n}"))?;
    let (mut reads, mut updates) = (0, 0);
    for answer in answers {
        let counts: Vec<u64> = answer.split(' ').map_while(|word| word.parse().ok()).collect();
        let [read, update] = counts[..] else { return Err(format!("3n+1 counted {answer}").into()) };
        reads += read;
        updates += update;
    }
    same("3n+1 found", play.ask("result")?, format!("{} {}", expected.longest, expected.highest))?;
    let sum: u64 = (1..=n).step_by(STRIDE as usize).map(steps).sum();
    same("stored steps add up to", play.number(&format!("steps {n} {STRIDE}"))?, sum)?;
    let exact = cell.processes > 1 || (reads, updates) == (expected.reads, expected.updates);
    if !exact || updates < expected.stored {
        return Err(format!("3n+1 took {reads} reads and {updates} updates, not as {expected:?}").into());
    }
    Ok(vec![whole("collatz", n, reads + updates, measured)])
}

fn sequence(play: &mut Play, cell: &Cell, amount: &Amount) -> Result<Vec<Figure>> {
    let seconds = amount.seconds;
    let next = |word: &'static str, all: u64| {
        move |_: usize, done: u64, count: u64| {
            let count = count.min(all - done.min(all));
            (count > 0).then(|| (format!("{word} {} {count}", done + 1), count))
        }
    };
    let warm = play.drive(seconds / 10.0, next("set", SEQUENCE / 10))?.operations;
    let set = play.drive(seconds, |index, done, count| next("set", SEQUENCE)(index, warm + done, count))?;
    let keys = warm + set.operations;
    let mut figures = vec![rate("set", SEQUENCE, set)?];
    let random = |word: &'static str, salt: u64| {
        move |_: usize, done: u64, count: u64| Some((format!("{word} {count} {} {keys}", salt + done), count))
    };
    if cell.class == Class::D4 {
        play.drive(seconds / 10.0, next("get", keys))?;
        figures.push(rate("get", SEQUENCE, play.drive(seconds, next("get", keys))?)?);
        figures.push(rate("get-random", SEQUENCE, warmed(play, seconds, random("rget", 1))?)?);
    }
    figures.push(rate("set-random", SEQUENCE, warmed(play, seconds, random("rset", 2))?)?);
    let tail = keys.min(100);
    same("of the last sets are there", play.number(&format!("get {} {tail}", keys - tail + 1))?, tail)?;
    Ok(figures)
}

/// The line that replays a trace of `length` operations, over and over if `again`.
fn replayed(length: u64, again: bool) -> impl Fn(usize, u64, u64) -> Option<(String, u64)> + Sync {
    replayed_behind(0, length, again)
}

/// The line that replays a part of the loaded trace: `length` operations behind the first `skipped`.
fn replayed_behind(
    skipped: u64,
    length: u64,
    again: bool,
) -> impl Fn(usize, u64, u64) -> Option<(String, u64)> + Sync {
    move |index, done, count| {
        // Players begin apart from each other.
        let from = if again { (done + index as u64 * length / 3) % length } else { done };
        let count = count.min(length - from.min(length));
        (count > 0).then(|| (format!("replay {} {count}", skipped + from), count))
    }
}

/// A measured replay answers how many were wrong: here that becomes how many were right.
fn right(measured: Measured) -> Measured {
    Measured { right: measured.operations - measured.right.min(measured.operations), ..measured }
}

fn trace(play: &Play, name: &str) -> String {
    let parent = play.site.directory.parent().unwrap_or(&play.site.directory);
    parent.join(format!("{name}.tsv")).display().to_string()
}

fn xml_trace(play: &mut Play, cell: &Cell, side: &Side, amount: &Amount) -> Result<Vec<Figure>> {
    let (file, dump) = (trace(play, "xml"), play.site.directory.join("dump.tsv"));
    let mut figures = Vec::new();
    let mut total = Measured::default();
    for (phase, count) in XML_PHASES {
        same("operations of the trace", play.number(&format!("load {file} {phase}"))?, count)?;
        let bounded = cell.class == Class::D1;
        let seconds = if bounded { amount.seconds } else { amount.patience };
        let measured = right(play.drive(seconds, replayed(count, false))?);
        if !bounded && measured.operations < count {
            let done = measured.operations;
            return Err(Box::new(Slow(format!("{phase}: {done} of {count} operations in {seconds:.0} s"))));
        }
        let figure = rate(&format!("xml-{phase}"), count, measured)?;
        if phase == "delete" {
            continue;
        }
        if bounded {
            // Reading a part says nothing that class D4 does not.
            figures.push(figure);
            return Ok(figures);
        }
        total.operations += measured.operations;
        total.wall_seconds += measured.wall_seconds;
        total.cpu_seconds += measured.cpu_seconds;
        figures.push(whole(&format!("xml-{phase}"), count, measured.operations, measured));
    }
    figures.push(whole("xml", total.operations, total.operations, total));
    if side.mapping == Mapping::Best {
        play.ask(&format!("dump {} exampleDom", dump.display()))?;
        same("the digest of the nodes is", xml::digest(&dump)?.as_str(), xml::XML_DIGEST)?;
    }
    let all = XML_KINDS.iter().map(|(_, count)| count).sum();
    same("calls by kind", play.number(&format!("load {} -", trace(play, "kinds")))?, all)?;
    let mut before = 0;
    for (kind, count) in XML_KINDS {
        // Over and over: once through is too short to be seen with fast sides.
        let measured = right(play.drive(amount.seconds / 5.0, replayed_behind(before, count, true))?);
        figures.push(rate(&format!("xml-{kind}"), count, measured)?);
        before += count;
    }
    Ok(figures)
}

/// The phases of a trace after its phase `fill`, each for its time.
fn phases(play: &mut Play, name: &str, phases: &[&str], amount: &Amount) -> Result<Vec<Figure>> {
    let file = trace(play, name);
    let length = play.number(&format!("load {file} fill"))?;
    rate(
        "fill",
        length,
        right(play.drive(f64::INFINITY, |index, done, count| {
            // One player fills for all.
            if index == 0 {
                replayed(length, false)(0, done, count)
            } else {
                None
            }
        })?),
    )?;
    let mut figures = Vec::new();
    for phase in phases {
        let (_, answers) = play.whole(|_| format!("load {file} {phase}"))?;
        let length: u64 = answers[0].trim().parse()?;
        // Kinds that change what the next pass would find run once.
        let again = !matches!(*phase, "increment" | "merge" | "kill");
        let measured = right(play.drive(amount.seconds, replayed(length, again))?);
        let name = if name == "mixes" { format!("ycsb-{phase}") } else { (*phase).to_owned() };
        figures.push(rate(&name, length, measured)?);
    }
    Ok(figures)
}

fn bank(play: &mut Play, amount: &Amount) -> Result<Vec<Figure>> {
    play.ask(&format!("accounts {ACCOUNTS}"))?;
    let line = |index: usize, done: u64, count: u64| {
        let seed = index as u64 * 1_000_003 + done + 1;
        Some((format!("transfer {count} {seed} {ACCOUNTS}"), count))
    };
    let measured = warmed(play, amount.seconds, line)?;
    let sum = BALANCE as u64 * ACCOUNTS;
    same("the bank holds", play.number(&format!("bank {ACCOUNTS}"))?, sum)?;
    Ok(vec![rate("bank", ACCOUNTS, measured)?])
}

fn writers(play: &mut Play, amount: &Amount) -> Result<Vec<Figure>> {
    const KEYS: u64 = 10_000;
    let line = |index: usize, done: u64, count: u64| {
        let seed = index as u64 * 1_000_003 + done + 1;
        Some((format!("rset {count} {seed} {KEYS}"), count))
    };
    let measured = warmed(play, amount.seconds, line)?;
    Ok(vec![rate("writers", KEYS, measured)?])
}

fn batch(play: &mut Play, amount: &Amount) -> Result<Vec<Figure>> {
    let line = |_: usize, done: u64, count: u64| {
        let count = count.next_multiple_of(BATCH);
        Some((format!("bset {} {count} {BATCH}", done + 1), count))
    };
    let measured = warmed(play, amount.seconds, line)?;
    same("of the first sets are there", play.number(&format!("get 1 {BATCH}"))?, BATCH)?;
    Ok(vec![rate("batch", BATCH, measured)?])
}

/// Requests of 1 to 10,000 connections, all at once, to a server of their own.
fn connections(side: &Side, play: Play, amount: &Amount) -> Result<(Vec<Figure>, Option<Scratch>)> {
    let directory = play.site.directory.clone();
    let scratch = play.finish()?;
    let served = crate::server::side(side.name).ok_or("this side's server is not known")?;
    let mut figures = Vec::new();
    for level in crate::server::levels(served, &directory, amount.seconds)? {
        let workload = format!("connections-{}", level.connections);
        let measured = Measured {
            operations: level.operations,
            right: level.operations,
            wall_seconds: level.wall_seconds,
            cpu_seconds: level.server_cpu_seconds + level.client_cpu_seconds,
        };
        figures.push(rate(&workload, level.connections as u64, measured)?);
    }
    Ok((figures, scratch))
}
