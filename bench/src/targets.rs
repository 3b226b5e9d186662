//! The project's goals for the engine suite, as medians or as ratios to a peer, and whether they are met.

use crate::plan::Cell;
use crate::statistics::Ratio;
use crate::verdict::{Bound, Verdict};

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

impl Target {
    /// Is the target about this cell?
    pub(crate) fn is_for(&self, cell: &Cell) -> bool {
        let same = (self.workload, self.keys, self.processes) == (cell.workload, cell.keys, cell.processes);
        same && cell.threads == 1
    }
}

/// The target of a cell in words and what came of it, if there is one: by the interval of our median `ours`, or of how
/// many times as fast as a peer we are, which `ratio` says.
pub(crate) fn judge(
    cell: &Cell,
    ours: Ratio,
    ratio: impl Fn(&str) -> Option<Ratio>,
) -> Option<(String, Verdict)> {
    let target = TARGETS.iter().find(|target| target.is_for(cell))?;
    Some(match target.goal {
        Goal::AtMost(most) => (format!("<= {most} ns"), Bound::AtMost(most).judge(Some(ours))),
        Goal::AtLeast(least) => (format!(">= {} M/s", least / 1e6), Bound::AtLeast(least).judge(Some(ours))),
        Goal::Times(times, peer) => (format!(">= {times}x {peer}"), Bound::AtLeast(times).judge(ratio(peer))),
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
        let exact = |ratio: f64| Ratio { ratio, low: ratio, high: ratio };
        let verdict = |cell: &Cell, ours: f64, ratio: Option<f64>| {
            judge(cell, exact(ours), |_| ratio.map(exact)).map(|(_, verdict)| verdict)
        };
        let get = cell("get", 1_000_000, 1);
        assert_eq!(verdict(&get, 9.0, Some(2.1)), Some(Verdict::Met));
        assert_eq!(verdict(&get, 9.0, Some(1.9)), Some(Verdict::Missed));
        assert_eq!(verdict(&get, 9.0, None), Some(Verdict::NotMeasured));
        assert_eq!(verdict(&cell("get", 10_000, 1), 9.0, None), None);
        assert_eq!(verdict(&cell("lock", 1, 1), 2_501.0, None), Some(Verdict::Missed));
        assert_eq!(verdict(&cell("counter", 1, 32), 4.1e6, None), Some(Verdict::Met));
        assert_eq!(verdict(&cell("counter", 1, 8), 4.1e6, None), None);
        let wide = Ratio { ratio: 2.1, low: 1.9, high: 2.3 };
        assert_eq!(
            judge(&get, exact(9.0), |_| Some(wide)).map(|(_, verdict)| verdict),
            Some(Verdict::Undecided)
        );
    }
}
