//! Commits in a second by several writers, each waiting for the disk; and 3n+1 at the level `periodic`
//! beside `none`.

use crate::engine::{self, Measure};
use crate::peers;
use crate::plan::{Cell, Group};
use crate::row::Row;
use crate::subject::{Class, Result};
use crate::workload::Job;

use super::Run;

/// Keys of the tree in which commits set random ones.
const KEYS: u64 = 100_000;

/// The workload of [`commits`].
pub(super) const COMMIT: &str = "commit";
/// 3n+1 by CPU time, and by wall time.
pub(super) const COLLATZ: &str = "collatz";
pub(super) const COLLATZ_WALL: &str = "collatz-wall";

/// Threads and processes that set random keys, a commit each, on disk before it returns.
pub(super) fn commits(run: &mut Run<'_>) -> Result<()> {
    let cell =
        |processes, threads| Cell { workload: COMMIT, job: Job::Commit, keys: KEYS, processes, threads };
    let threads = [1, 4, 16].map(|threads| cell(1, threads)).to_vec();
    let groups = [
        Group { keys: KEYS, processes: 1, cells: threads, fresh: false },
        Group { keys: KEYS, processes: 16, cells: vec![cell(16, 1)], fresh: false },
    ];
    let peers = run.peers(Class::D1);
    let measure = Measure { disk: true, ..measure(run, run.quick(100, 2_000)) };
    append(run, engine::run(&groups, &peers, &measure)?);
    Ok(())
}

/// 3n+1 at `none` and at `periodic`, by 1, 2 and 32 processes.
pub(super) fn levels(run: &mut Run<'_>) -> Result<()> {
    let keys = run.quick(10_000, 1_000_000);
    let workers: &[usize] = run.quick(&[1], &[1, 2, 32]);
    let group = |processes: &usize| Group {
        keys: 0,
        processes: *processes,
        cells: vec![Cell { workload: COLLATZ, job: Job::Collatz, keys, processes: *processes, threads: 1 }],
        fresh: true,
    };
    let groups: Vec<Group> = workers.iter().map(group).collect();
    let peers = [Class::D4, Class::D3].map(peers::ours);
    let mut found = engine::run(&groups, &peers, &measure(run, 0))?;
    let by_wall = |row: &Row| Row {
        workload: COLLATZ_WALL,
        unit: "ns/op",
        value: row.wall_seconds * 1e9 / row.operations as f64,
        ..row.clone()
    };
    let walls: Vec<Row> = found.rows.iter().map(by_wall).collect();
    found.rows.extend(walls);
    append(run, found);
    Ok(())
}

fn measure(run: &Run<'_>, milliseconds: u64) -> Measure {
    Measure {
        rounds: run.wish.rounds,
        milliseconds,
        walk: 0,
        disk: false,
        directory: run.scratch.path().to_owned(),
    }
}

fn append(run: &mut Run<'_>, found: engine::Results) {
    let rows = found.rows.into_iter().map(|row| Row { suite: super::table::SUITE, ..row });
    run.results.rows.extend(rows);
    run.results.problems.extend(found.problems);
}
