//! The cells of the engine suite: which workloads, at which sizes, with how many workers.
//!
//! Cells that can share a loaded database form a group; 3n+1 starts every round on an empty one.

use crate::subject::{Abilities, Class};
use crate::workload::Job;

/// Accounts that transfers choose from.
pub(crate) const ACCOUNTS: u64 = 10_000;

/// One line of the result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cell {
    pub(crate) workload: &'static str,
    pub(crate) job: Job,
    /// Keys in the tree worked on; the numbers to solve for 3n+1.
    pub(crate) keys: u64,
    pub(crate) processes: usize,
    pub(crate) threads: usize,
}

impl Cell {
    /// Can a peer take part?
    pub(crate) fn suits(&self, abilities: Abilities) -> bool {
        (self.processes == 1 || abilities.processes)
            && (self.threads == 1 || abilities.threads)
            && (self.job != Job::Lock || abilities.locks)
    }

    /// What its values are measured in: time for one worker, CPU time for 3n+1, else rate.
    pub(crate) fn unit(&self) -> Unit {
        match self.job {
            Job::Collatz => Unit::CpuNanoseconds,
            Job::Commit => Unit::Rate,
            _ if self.processes * self.threads == 1 => Unit::Nanoseconds,
            _ => Unit::Rate,
        }
    }
}

/// What a value is measured in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Wall time for one operation.
    Nanoseconds,
    /// CPU time of all workers for one operation.
    CpuNanoseconds,
    /// Operations of all workers in a second.
    Rate,
}

impl Unit {
    /// The name in rows and tables.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Unit::Nanoseconds => "ns/op",
            Unit::CpuNanoseconds => "cpu-ns/op",
            Unit::Rate => "op/s",
        }
    }
}

/// Cells on one database.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    /// Keys loaded first.
    pub(crate) keys: u64,
    pub(crate) processes: usize,
    pub(crate) cells: Vec<Cell>,
    /// Each round has a fresh database.
    pub(crate) fresh: bool,
}

/// What a run is to be.
#[derive(Clone, Debug)]
pub(crate) struct Wish {
    pub(crate) quick: bool,
    pub(crate) class: Class,
    /// Sizes of the tree of random access; none: the standard ones.
    pub(crate) keys: Vec<u64>,
    /// Parts of the names of workloads; none: all.
    pub(crate) only: Vec<String>,
}

/// The groups of a run, those without cells left out.
pub(crate) fn groups(wish: &Wish) -> Vec<Group> {
    let standard: &[u64] = if wish.quick { &[10_000, 1_000_000] } else { &[10_000, 1_000_000, 10_000_000] };
    let sizes = if wish.keys.is_empty() { standard } else { &wish.keys };
    let mut groups = Vec::new();
    for keys in sizes {
        groups.push(access(*keys, 1));
        groups.push(access(*keys, 2));
    }
    groups.extend([single(), pair(), threads(wish.quick)]);
    let workers: &[usize] = if wish.quick { &[32] } else { &[2, 8, 32] };
    groups.extend(workers.iter().map(|processes| counter(*processes)));
    // In D1 every update waits for the disk: the whole program would take most of an hour.
    let n = match (wish.quick, wish.class) {
        (_, Class::D1) => 1_000,
        (true, _) => 10_000,
        (false, _) => 100_000,
    };
    groups.extend([1, 2, 32].map(|processes| collatz(n, processes)));
    for group in &mut groups {
        let wanted = |cell: &Cell| {
            wish.only.is_empty() || wish.only.iter().any(|part| cell.workload.contains(part.as_str()))
        };
        group.cells.retain(wanted);
        if wish.quick {
            // One size with two processes shows what a second one costs.
            group.cells.retain(|cell| cell.processes < 2 || cell.keys != 10_000 || cell.job != Job::Get);
        }
    }
    groups.retain(|group| !group.cells.is_empty());
    groups
}

fn cell(workload: &'static str, job: Job, keys: u64, processes: usize, threads: usize) -> Cell {
    Cell { workload, job, keys, processes, threads }
}

fn access(keys: u64, processes: usize) -> Group {
    let mut cells = vec![cell("get", Job::Get, keys, processes, 1)];
    if processes == 1 {
        cells.extend([
            cell("get-snapshot", Job::GetSnapshot, keys, 1, 1),
            cell("get-same", Job::GetSame, keys, 1, 1),
            cell("get-leaf", Job::GetLeaf, keys, 1, 1),
            cell("next", Job::Next, keys, 1, 1),
            cell("scan", Job::Scan, keys, 1, 1),
        ]);
    }
    // Last, so that reads find the tree as it was loaded.
    cells.push(cell("set", Job::Set, keys, processes, 1));
    Group { keys, processes, cells, fresh: false }
}

fn single() -> Group {
    let cells = vec![
        cell("increment", Job::Increment, 1, 1, 1),
        cell("transfer", Job::Transfer, ACCOUNTS, 1, 1),
        cell("lock", Job::Lock, 1, 1, 1),
    ];
    Group { keys: 0, processes: 1, cells, fresh: false }
}

fn pair() -> Group {
    let cells = vec![cell("transfer", Job::Transfer, ACCOUNTS, 2, 1)];
    Group { keys: 0, processes: 2, cells, fresh: false }
}

fn threads(quick: bool) -> Group {
    let counts: &[usize] = if quick { &[8] } else { &[2, 8, 32] };
    let cells = counts.iter().map(|threads| cell("counter", Job::Increment, 1, 1, *threads)).collect();
    Group { keys: 0, processes: 1, cells, fresh: false }
}

fn counter(processes: usize) -> Group {
    let cells = vec![cell("counter", Job::Increment, 1, processes, 1)];
    Group { keys: 0, processes, cells, fresh: false }
}

fn collatz(n: u64, processes: usize) -> Group {
    let cells = vec![cell("collatz", Job::Collatz, n, processes, 1)];
    Group { keys: 0, processes, cells, fresh: true }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wish(quick: bool, only: &[&str]) -> Wish {
        let only = only.iter().map(|part| (*part).to_owned()).collect();
        Wish { quick, class: Class::D4, keys: Vec::new(), only }
    }

    #[test]
    fn cells_have_the_processes_of_their_group() {
        let groups = groups(&wish(false, &[]));
        for group in &groups {
            assert!(group.cells.iter().all(|cell| cell.processes == group.processes));
        }
    }

    #[test]
    fn only_what_is_wanted_is_planned() {
        let groups = groups(&wish(true, &["collatz", "lock"]));
        let names: Vec<_> = groups.iter().flat_map(|group| &group.cells).map(|cell| cell.workload).collect();
        assert_eq!(names, ["lock", "collatz", "collatz", "collatz"]);
    }
}
