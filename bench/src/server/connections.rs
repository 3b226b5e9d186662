//! The connection study of the author of AlchemyDB: equally many requests at each number of connections, of which
//! each has one request under way; then few busy connections among many idle ones.
//!
//! Connections are added from level to level and stay. One server process serves up to 19,000; a process may not
//! have more files open than that, so that beyond it several of ours share the port.

use std::path::Path;

use crate::clock;
use crate::subject::Result;

use super::client_process::Work;
use super::client_processes::ClientProcesses;
use super::requests::Job;
use super::row::Row;
use super::sides::{Serving, Side, ALL, ONE};
use super::{turned, Run};

/// The name of the section, and its workloads.
pub(super) const SECTION: &str = "connections";
pub(super) const STUDY: &str = "GET";
pub(super) const IDLE: &str = "GET by 50, the others idle";
pub(super) const HALF: &str = "GET by 10,000, the others idle";
pub(super) const CONNECT: &str = "connecting";

/// Levels of one server process, and of several.
const LEVELS: [usize; 15] = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 15_000, 19_000];
const QUICK: [usize; 4] = [1, 10, 100, 400];
/// Levels up to here have so many rounds at most; a level above has one round, since its neighbours show the noise.
const SHORT: usize = 1_000;
const ROUNDS: usize = 3;
const BEYOND: [usize; 2] = [32_000, 64_000];
/// Server processes beyond a process' files, and client processes of each server.
const SERVERS: usize = 4;
const CLIENTS: usize = 4;

/// The percentiles of a curve: whole ones, then finer.
fn percentiles() -> Vec<f64> {
    let whole = (0..=99).map(f64::from);
    let fine = (1..100).map(|part| 99.0 + f64::from(part) / 100.0);
    whole.chain(fine).chain([100.0]).collect()
}

/// The whole study.
pub(super) fn run(run: &mut Run<'_>) -> Result<()> {
    let levels: &[usize] = if run.wish.quick { &QUICK } else { &LEVELS };
    let mut pairs = Vec::new();
    for side in ALL {
        let serving = run.start(side)?;
        let clients = filled(&serving)?;
        pairs.push((serving, clients));
    }
    let steps = levels.len() + BEYOND.len();
    for (index, level) in levels.iter().enumerate() {
        run.announce(index, steps, format!("{level} connections"));
        for (serving, clients) in turned(&mut pairs, index) {
            let rows = measure(run, serving, clients, *level, 1)?;
            rows.into_iter().for_each(|row| run.push(row));
        }
        let rounds = if *level <= SHORT { run.wish.rounds.min(ROUNDS) } else { 1 };
        for round in 1..rounds {
            for (serving, clients) in turned(&mut pairs, round) {
                let row = requests(run, serving, clients, *level)?;
                run.push(Row { round, ..row });
            }
        }
    }
    let most = levels.last().copied().unwrap_or(0);
    for (serving, clients) in turned(&mut pairs, 1) {
        let row = partly(run, serving, clients, most, if most > 10_000 { 10_000 } else { most / 2 }, HALF)?;
        run.push(row);
    }
    drop(pairs);
    // Some more than one process may have, in a quick run as well.
    let beyond: &[usize] = if run.wish.quick { &[2_000] } else { &BEYOND };
    let serving = Serving::start(ONE, SERVERS, &[], run.scratch.path())?;
    let mut clients = filled(&serving)?;
    for (index, level) in beyond.iter().enumerate() {
        run.announce(levels.len() + index, steps, format!("{level} connections, {SERVERS} processes"));
        let rows = measure(run, &serving, &mut clients, *level, SERVERS)?;
        rows.into_iter().for_each(|row| run.push(row));
        let row = partly(run, &serving, &mut clients, *level, 50, IDLE)?;
        run.push(Row { servers: SERVERS, ..row });
    }
    Ok(())
}

/// The levels of the comparison of all peers.
pub(super) fn levels(side: Side, directory: &Path, seconds: f64) -> Result<Vec<Row>> {
    let most = if seconds < 0.1 { 100 } else { 10_000 };
    let serving = Serving::start(side, 1, &[], directory)?;
    let mut clients = filled(&serving)?;
    let mut rows = Vec::new();
    for level in [1, 10, 100, 1_000, 10_000].into_iter().filter(|level| *level <= most) {
        clients.connect(level)?;
        clients.work(level as u64)?;
        let (operations, nanoseconds) = (u64::MAX, (seconds * 1e9) as u64);
        let cpu = serving.cpu();
        let done = clients.part(Work { operations, nanoseconds, busy: level, interval: 0 })?;
        let cpu = serving.cpu() - cpu;
        let row = Row::rate(SECTION, STUDY, side, done.operations, &done, cpu);
        rows.push(Row { connections: level, ..row });
    }
    Ok(rows)
}

fn filled(serving: &Serving) -> Result<ClientProcesses> {
    let mut clients = ClientProcesses::start(CLIENTS, serving.port)?;
    clients.connect(CLIENTS)?;
    clients.load(Job::Fill, 1)?;
    clients.work(Job::Fill.whole() * CLIENTS as u64)?;
    clients.load(Job::Get, 1)?;
    Ok(clients)
}

/// Connects up to a level and measures it.
fn measure(
    run: &Run<'_>,
    serving: &Serving,
    clients: &mut ClientProcesses,
    level: usize,
    servers: usize,
) -> Result<Vec<Row>> {
    let side: Side = serving.side;
    let named = |error| format!("{} with {level} connections: {error}", side.name());
    let (begun, cpu) = (clock::now(), serving.cpu());
    clients.connect(level).map_err(named)?;
    let (wall, connecting) = ((clock::now() - begun) as f64 / 1e9, serving.cpu() - cpu);
    let row = Row { servers, ..requests(run, serving, clients, level).map_err(named)? };
    let connect = Row {
        connections: level,
        servers,
        wall_seconds: wall,
        server_cpu_seconds: connecting,
        ..Row::figure(SECTION, CONNECT, side, "s", wall)
    };
    Ok(vec![connect, row])
}

/// One round of the requests of a level.
fn requests(run: &Run<'_>, serving: &Serving, clients: &mut ClientProcesses, level: usize) -> Result<Row> {
    let requests = run.wish.quick(4_000, 100_000);
    // Each connection once, so that none is new.
    clients.work((level as u64).max(requests / 10))?;
    let cpu = serving.cpu();
    let done = clients.work(requests)?;
    let cpu = serving.cpu() - cpu;
    let curve = percentiles().into_iter().map(|percent| (percent, done.latencies.percentile(percent)));
    let row = Row::rate(SECTION, STUDY, serving.side, done.operations, &done, cpu);
    Ok(Row { connections: level, curve: curve.collect(), ..row })
}

/// A part of the connections works, the others are idle.
fn partly(
    run: &Run<'_>,
    serving: &Serving,
    clients: &mut ClientProcesses,
    level: usize,
    busy: usize,
    name: &str,
) -> Result<Row> {
    let operations = run.wish.quick(2_000, 100_000);
    let cpu = serving.cpu();
    let done = clients.part(Work { operations, nanoseconds: 0, busy, interval: 0 })?;
    let cpu = serving.cpu() - cpu;
    let row = Row::rate(SECTION, name, serving.side, done.operations, &done, cpu);
    Ok(Row { connections: level, ..row })
}
