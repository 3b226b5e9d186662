//! All processes of a database are killed at once, in the middle of their writes: how long until the next has
//! opened it and read a value?

use std::time::Duration;

use crate::row::Row;
use crate::subject::{Class, Passage, Peer, Result, Tree};
use crate::worker_processes::Workers;
use crate::workload::{Job, Order};

use super::Run;

/// The workload of these rows.
pub(super) const REOPEN: &str = "reopen";

const PROCESSES: usize = 16;

/// Kills and opens again, round after round, sides alternating.
pub(super) fn run(run: &mut Run<'_>) -> Result<()> {
    let keys = run.quick(10_000, 1_000_000);
    let mut peers = run.peers(Class::D3);
    peers.extend(run.peers(Class::D1));
    let mut sides = Vec::new();
    for peer in peers {
        let directory = run.directory(peer.name)?;
        let mut workers = Workers::start(&peer, directory.path(), 1)?;
        workers.fill(Tree::Data, keys)?;
        workers.finish()?;
        sides.push((peer, directory));
    }
    for round in 0..run.wish.rounds {
        for (peer, directory) in &sides {
            run.announce(&format!("reopen {} {}", peer.name, peer.class.name()));
            let workers = Workers::start(peer, directory.path(), PROCESSES)?;
            workers.kill(order(keys, round), Duration::from_millis(100))?;
            let mut workers = Workers::start(peer, directory.path(), 1)?;
            let seconds = workers.opened() as f64 / 1e9;
            check(peer, keys, workers.scan(Tree::Data)?)?;
            workers.finish()?;
            let row = Row::figure(REOPEN, peer, keys, round, "ms", seconds * 1e3);
            run.push(Row { procs: PROCESSES, wall_seconds: seconds, ..row });
        }
    }
    Ok(())
}

fn order(keys: u64, round: usize) -> Order {
    Order {
        job: Job::Commit,
        keys,
        threads: 1,
        walk: 0,
        // NB: longer than anybody waits; a tenth of it is for warming up.
        milliseconds: 1_000,
        seed: round as u64 + 1,
        stamp: round as u64 + 2,
    }
}

/// Sets only replace values: every key is there, with a value of its own.
fn check(peer: &Peer, keys: u64, found: Passage) -> Result<()> {
    let sum = |of: fn(u64) -> u64| (0..keys).map(of).fold(0, u64::wrapping_add);
    let values = sum(crate::data::essence_of);
    if found == (Passage { entries: keys, numbers: sum(|number| number), values }) {
        Ok(())
    } else {
        Err(format!("{} holds {found:?} after it was killed", peer.name).into())
    }
}
