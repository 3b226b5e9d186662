//! `bench collatz`: the 3n+1 problem of `examples/collatz.lua`, run by real processes, checked and drawn.
//!
//! Invariants
//! - What is measured is the example itself: it is compiled into the program, so that an installed one
//!   measures the same.
//! - Time runs from the release of the lock Trigger to the moment when the last process has released
//!   its Finished; both sides sleep in the kernel meanwhile.
//! - A result that differs from `expected.tsv` is a failure, even if it is fast.

mod crew;
mod expected;
mod progress;
mod row;
mod tree;

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

use perilune_chart::{bars, Axis, Bar, Scale, Whose};
use perilune_luahost::Host;
use perilune_redis::files::replace;

use crate::arguments::CollatzOptions;
use crate::chart;
use crate::collatz::crew::Plan;
use crate::collatz::row::Row;
use crate::failure::{doing, found, wrong_use, Result};
use crate::scratch::Scratch;

const EXAMPLE: &str = include_str!("../../../../examples/collatz.lua");
const DRIVER: &str = include_str!("driver.lua");

/// Sequences that `--tree` draws.
const TREE_SEQUENCES: u64 = 20_000;

/// Runs all that the options name, in the database `given` or a new one for each run, and prints the table.
/// A database that only the environment names is the user's own, not one for a benchmark to empty.
pub(crate) fn run(options: &CollatzOptions, given: Option<&Path>) -> Result<()> {
    for file in options.chart.iter().chain(&options.tree) {
        if file.extension().is_none_or(|extension| extension != "svg") {
            return Err(wrong_use(format!("{}: drawings are FILE.svg", file.display())));
        }
    }
    let block = options.block.unwrap_or((options.n / 100).clamp(1, 10_000));
    let scratch = Scratch::new("collatz")?;
    let mut rows = Vec::new();
    println!("3n+1 for 1 to {}, blocks of {block}, durability {}", options.n, options.durability);
    println!("{}", row::HEAD);
    for (round, &procs) in
        (1..=options.rounds).flat_map(|round| options.procs.iter().map(move |n| (round, n)))
    {
        let db =
            given.map_or_else(|| scratch.path().join(format!("collatz-{procs}-{round}.db")), Path::to_owned);
        let plan = Plan {
            db,
            durability: options.durability.clone(),
            n: options.n,
            block,
            procs,
            round,
            lua: options.lua.clone(),
            scratch: scratch.path().to_owned(),
        };
        let row = crew::run(&plan)?;
        println!("{row}");
        rows.push(row);
    }
    let medians = medians(&rows);
    if options.rounds > 1 {
        for row in &medians {
            println!("median: {} processes {:.3} s, cpu {:.3} s", row.procs, row.seconds, row.cpu_seconds);
        }
    }
    if let Some(file) = &options.json {
        append(file, &rows)?;
    }
    if let Some(file) = &options.chart {
        draw_chart(file, options.n, &medians)?;
    }
    if let Some(file) = &options.tree {
        let sequences = options.n.min(TREE_SEQUENCES);
        write(file, tree::draw(sequences).as_bytes())?;
        println!("how {sequences} sequences meet: {}", file.display());
    }
    verdict(options.n, &rows)
}

/// What a process of a run does.
pub(crate) fn work(db: &Path, durability: &str, id: u32) -> Result<()> {
    let host = host()?;
    let arguments = [db.as_os_str().to_owned(), durability.into(), id.to_string().into()];
    host.run_code(crew::WORKER, "=worker", &arguments)?;
    Ok(())
}

/// A Lua state with the example and its driver.
fn host() -> Result<Host> {
    let host = Host::new()?;
    host.preload("collatz", EXAMPLE)?;
    host.preload("driver", DRIVER)?;
    Ok(host)
}

fn verdict(n: u64, rows: &[Row]) -> Result<()> {
    let Some(expected) = expected::of(n) else {
        println!("not checked: no expected values for {n}; there are for {}", expected::list());
        return Ok(());
    };
    let faults: Vec<String> = rows.iter().flat_map(|row| expected.differences(row)).collect();
    if faults.is_empty() {
        println!("as expected: longest, highest and stored; with one process reads and updates, too");
        return Ok(());
    }
    Err(found(format!("wrong results: {}", faults.join("; "))))
}

/// For each number of processes a row with the medians of seconds and CPU time; the rest of it is of its first run.
fn medians(rows: &[Row]) -> Vec<Row> {
    let mut medians: Vec<Row> = Vec::new();
    for row in rows {
        if medians.iter().any(|median| median.procs == row.procs) {
            continue;
        }
        let of = |value: fn(&Row) -> f64| {
            let mut values: Vec<f64> =
                rows.iter().filter(|other| other.procs == row.procs).map(value).collect();
            values.sort_by(f64::total_cmp);
            (values[(values.len() - 1) / 2] + values[values.len() / 2]) / 2.0
        };
        let (seconds, cpu_seconds) = (of(|row| row.seconds), of(|row| row.cpu_seconds));
        medians.push(Row { seconds, cpu_seconds, ..row.clone() });
    }
    medians
}

fn append(file: &Path, rows: &[Row]) -> Result<()> {
    let named = || format!("write {}", file.display());
    let mut out = OpenOptions::new().create(true).append(true).open(file).map_err(doing(named()))?;
    for row in rows {
        writeln!(out, "{}", row.json()).map_err(doing(named()))?;
    }
    Ok(())
}

fn draw_chart(file: &Path, n: u64, rows: &[Row]) -> Result<()> {
    let all: Vec<Bar> = rows
        .iter()
        .map(|row| Bar {
            label: if row.procs == 1 { "1 process".to_owned() } else { format!("{} processes", row.procs) },
            value: row.seconds,
            text: format!("{:.3} s", row.seconds),
            whose: Whose::Ours,
        })
        .collect();
    let lua = rows.first().map_or("", |row| row.lua.as_str());
    let title = format!("3n+1 for 1 to {n}, {lua}: seconds by processes");
    let axis = Axis { name: "seconds", scale: Scale::Linear };
    chart::write(file, &bars(&title, "shorter is better", axis, &all))
}

fn write(file: &Path, bytes: &[u8]) -> Result<()> {
    replace(file, 0o666, bytes).map_err(doing(format!("write {}", file.display())))
}
