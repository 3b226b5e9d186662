//! Single commands, alone and in pipelines of 16; and scripts beside as many round trips.

use crate::subject::Result;

use super::client_processes::ClientProcesses;
use super::requests::{Job, COMMANDS};
use super::row::Row;
use super::sides::{Serving, Side, ALL};
use super::{turned, Run};

/// The names of the sections.
pub(super) const COMMAND: &str = "commands";
pub(super) const SCRIPT: &str = "scripts";

/// The command that asks for nothing: no goal, but a bound of what requests can reach.
pub(super) const NOTHING: &str = "PING";

/// Connections of these sections, as redis-benchmark has them.
pub(super) const CONNECTIONS: usize = 50;
/// Client processes: with two, clients do not wait for each other where the server has two threads.
pub(super) const CLIENTS: usize = 2;
/// Requests that are sent at once, where there are pipelines.
pub(super) const PIPELINE: usize = 16;
/// Calls in a script.
pub(super) const CALLS: [usize; 5] = [1, 2, 5, 10, 100];

/// A side with its clients.
struct Pair {
    clients: ClientProcesses,
    serving: Serving,
}

fn pairs(run: &Run<'_>, sides: &[Side]) -> Result<Vec<Pair>> {
    let pair = |serving: Serving| {
        let mut clients = ClientProcesses::start(CLIENTS, serving.port)?;
        clients.connect(CONNECTIONS)?;
        clients.load(Job::Fill, 1)?;
        // Each process fills all: which keys are whose turn it has is its own matter.
        clients.work(Job::Fill.whole() * CLIENTS as u64)?;
        Ok(Pair { clients, serving })
    };
    run.start_all(sides)?.into_iter().map(pair).collect()
}

/// What is measured once for each side and round.
struct Cell {
    section: &'static str,
    name: String,
    job: Job,
    pipeline: usize,
    /// Operations in a round.
    operations: u64,
}

/// One round of a side, after a tenth of it to warm up.
fn play(cell: &Cell, pair: &mut Pair, round: usize) -> Result<Row> {
    let pipeline = cell.pipeline as u64;
    // A whole number for each process, so that pops find what was pushed.
    let batches = |operations: u64| (operations / pipeline / CLIENTS as u64).max(1) * CLIENTS as u64;
    pair.clients.load(cell.job, cell.pipeline)?;
    pair.clients.work(batches(cell.operations / 10))?;
    let cpu = pair.serving.cpu();
    let done = pair.clients.work(batches(cell.operations))?;
    let cpu = pair.serving.cpu() - cpu;
    let operations = if cell.pipeline > 1 { done.requests } else { done.operations };
    let row = Row::rate(cell.section, &cell.name, pair.serving.side, operations, &done, cpu);
    Ok(Row { connections: CONNECTIONS, pipeline: cell.pipeline, round, ..row })
}

fn play_all(run: &mut Run<'_>, cells: &[Cell], rounds: usize) -> Result<()> {
    let mut pairs = pairs(run, &ALL)?;
    let steps = cells.len() * rounds;
    // Pops come behind the pushes of the same round, so rounds go over all cells.
    for round in 0..rounds {
        for (index, cell) in cells.iter().enumerate() {
            run.announce(round * cells.len() + index, steps, format!("{} P{}", cell.name, cell.pipeline));
            let mut broken = Vec::new();
            for pair in turned(&mut pairs, round + index) {
                match play(cell, pair, round) {
                    Ok(row) => run.push(row),
                    Err(error) => {
                        let side = pair.serving.side;
                        run.take_back(cell.section, &cell.name, side);
                        run.problem(format!("{}, {} by {}: {error}", side.name(), cell.name, cell.pipeline));
                        broken.push(side);
                    }
                }
            }
            pairs.retain(|pair| !broken.contains(&pair.serving.side));
        }
    }
    Ok(())
}

/// Every command, without pipelines and with them.
pub(super) fn commands(run: &mut Run<'_>) -> Result<()> {
    let alone = run.wish.quick(2_000, 50_000);
    let nothing =
        Cell { section: COMMAND, name: NOTHING.to_owned(), job: Job::Ping, pipeline: 1, operations: alone };
    let mut cells = vec![nothing];
    for (pipeline, operations) in [(1, alone), (PIPELINE, run.wish.quick(3_200, 192_000))] {
        for (name, job) in COMMANDS {
            // Ten keys are more work than one.
            let operations = if job == Job::Mset { operations / 4 } else { operations };
            let name = name.to_owned();
            cells.push(Cell { section: COMMAND, name, job, pipeline, operations });
        }
    }
    play_all(run, &cells, run.wish.rounds)
}

/// The names of a script of so many calls, and of the round trips in its place.
pub(super) fn script_names(calls: usize) -> (String, String) {
    (format!("EVAL of {calls}"), format!("{calls} trips"))
}

/// Scripts of some calls, and the same calls one by one.
pub(super) fn scripts(run: &mut Run<'_>) -> Result<()> {
    let mut cells = Vec::new();
    for calls in CALLS {
        let operations = run.wish.quick(1_000, 40_000) as u64;
        let (script, trips) = script_names(calls);
        let mut cell = |name, job, operations| {
            cells.push(Cell { section: SCRIPT, name, job, pipeline: 1, operations });
        };
        cell(script, Job::Eval(calls), operations / (calls as u64 / 10).max(1));
        cell(trips, Job::Trips(calls), operations / calls as u64);
    }
    play_all(run, &cells, run.wish.rounds)
}
