//! The goals of the engine, as its issue states them, and whether medians meet them.

use crate::plan::Cell;

/// What a cell must reach.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target {
    workload: &'static str,
    keys: u64,
    processes: usize,
    goal: Goal,
}

#[derive(Clone, Copy, Debug)]
enum Goal {
    /// Nanoseconds, wall or CPU by the cell's unit.
    AtMost(f64),
    /// Operations in a second.
    AtLeast(f64),
    /// Times as fast as a peer.
    Times(f64, &'static str),
}

/// Every target.
pub(crate) const TARGETS: &[Target] = &[
    Target { workload: "get", keys: 1_000_000, processes: 1, goal: Goal::Times(2.0, "lmdb") },
    Target { workload: "set", keys: 1_000_000, processes: 1, goal: Goal::Times(3.5, "lmdb") },
    Target { workload: "next", keys: 1_000_000, processes: 1, goal: Goal::AtMost(70.0) },
    Target { workload: "scan", keys: 1_000_000, processes: 1, goal: Goal::AtMost(70.0) },
    Target { workload: "get-same", keys: 1_000_000, processes: 1, goal: Goal::AtMost(50.0) },
    Target { workload: "get-leaf", keys: 1_000_000, processes: 1, goal: Goal::AtMost(50.0) },
    Target { workload: "counter", keys: 1, processes: 32, goal: Goal::AtLeast(4e6) },
    Target { workload: "transfer", keys: 10_000, processes: 1, goal: Goal::AtMost(1_300.0) },
    Target { workload: "lock", keys: 1, processes: 1, goal: Goal::AtMost(2_500.0) },
    Target { workload: "collatz", keys: 100_000, processes: 1, goal: Goal::AtMost(230.0) },
];

/// Whether a target is met.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Verdict {
    /// The target in words.
    pub(crate) goal: String,
    /// `None` if what it is compared with was not measured.
    pub(crate) met: Option<bool>,
}

impl Target {
    /// Is the target about this cell?
    pub(crate) fn is_for(&self, cell: &Cell) -> bool {
        let same = (self.workload, self.keys, self.processes) == (cell.workload, cell.keys, cell.processes);
        same && cell.threads == 1
    }
}

/// The verdict on our median `ours` in a cell, if there is a target for it; `ratio` says how many times
/// as fast as a peer we are.
pub(crate) fn judge(cell: &Cell, ours: f64, ratio: impl Fn(&str) -> Option<f64>) -> Option<Verdict> {
    let target = TARGETS.iter().find(|target| target.is_for(cell))?;
    Some(match target.goal {
        Goal::AtMost(most) => Verdict { goal: format!("<= {most} ns"), met: Some(ours <= most) },
        Goal::AtLeast(least) => Verdict { goal: format!(">= {} M/s", least / 1e6), met: Some(ours >= least) },
        Goal::Times(times, peer) => {
            Verdict { goal: format!(">= {times}x {peer}"), met: ratio(peer).map(|ratio| ratio >= times) }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{groups, Wish};
    use crate::subject::Class;
    use crate::workload::Job;

    #[test]
    fn every_target_has_its_cell() {
        let all = groups(&Wish { quick: false, class: Class::D4, keys: Vec::new(), only: Vec::new() });
        let cells: Vec<_> = all.iter().flat_map(|group| &group.cells).collect();
        for target in TARGETS {
            assert!(cells.iter().any(|cell| target.is_for(cell)), "{target:?} has no cell");
        }
    }

    #[test]
    fn a_target_is_met_or_missed() {
        let cell = |workload, keys, processes| Cell { workload, job: Job::Get, keys, processes, threads: 1 };
        let met = |cell: &Cell, ours, ratio: Option<f64>| judge(cell, ours, |_| ratio).map(|v| v.met);
        let get = cell("get", 1_000_000, 1);
        assert_eq!(met(&get, 9.0, Some(2.1)), Some(Some(true)));
        assert_eq!(met(&get, 9.0, Some(1.9)), Some(Some(false)));
        assert_eq!(met(&get, 9.0, None), Some(None));
        assert_eq!(met(&cell("get", 10_000, 1), 9.0, None), None);
        assert_eq!(met(&cell("lock", 1, 1), 2_501.0, None), Some(Some(false)));
        assert_eq!(met(&cell("counter", 1, 32), 4.1e6, None), Some(Some(true)));
        assert_eq!(met(&cell("counter", 1, 8), 4.1e6, None), None);
    }
}
