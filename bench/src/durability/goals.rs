//! The project's goals for durability: each is a bound on a median, or on the ratio of two.

use super::{commits, load, reopen, space};
use crate::row::Row;
use crate::statistics::{ratio, Ratio};
use crate::verdict::{Bound, Verdict};

/// Which rows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Of {
    workload: &'static str,
    backend: &'static str,
    class: &'static str,
    procs: usize,
    threads: usize,
}

/// A bound on the median of rows, or on its ratio to that of others.
#[derive(Clone, Copy, Debug)]
pub(super) struct Goal {
    pub(super) words: &'static str,
    of: Of,
    over: Option<Of>,
    bound: Bound,
}

const fn ours(workload: &'static str, class: &'static str, procs: usize, threads: usize) -> Of {
    Of { workload, backend: crate::peers::OURS, class, procs, threads }
}

const fn of(workload: &'static str, backend: &'static str) -> Of {
    Of { workload, backend, class: "D1", procs: 1, threads: 1 }
}

/// Every goal.
pub(super) const GOALS: &[Goal] = &[
    Goal {
        words: "commits by 16 threads, times LMDB's: at least 5",
        of: ours(commits::COMMIT, "D1", 1, 16),
        over: Some(Of { threads: 16, ..of(commits::COMMIT, "lmdb") }),
        bound: Bound::AtLeast(5.0),
    },
    Goal {
        words: "3n+1 by one process, CPU time at periodic over none: at most 1.15",
        of: ours(commits::COLLATZ, "D3", 1, 1),
        over: Some(ours(commits::COLLATZ, "D4", 1, 1)),
        bound: Bound::AtMost(1.15),
    },
    Goal {
        words: "3n+1 by one process, wall time at periodic over none: at most 1.15",
        of: ours(commits::COLLATZ_WALL, "D3", 1, 1),
        over: Some(ours(commits::COLLATZ_WALL, "D4", 1, 1)),
        bound: Bound::AtMost(1.15),
    },
    Goal {
        words: "milliseconds to open after 16 processes were killed: at most 10",
        of: ours(reopen::REOPEN, "D3", 16, 1),
        over: None,
        bound: Bound::AtMost(10.0),
    },
    Goal {
        words: "bytes on disk after compaction over raw keys and values: at most 1.5",
        of: ours(space::ASCENDING[1], "D1", 1, 1),
        over: Some(ours(space::RAW, "D1", 1, 1)),
        bound: Bound::AtMost(1.5),
    },
    Goal {
        words: "bytes in memory after compaction over raw keys and values: at most 1.5",
        of: ours(space::ASCENDING[2], "D1", 1, 1),
        over: Some(ours(space::RAW, "D1", 1, 1)),
        bound: Bound::AtMost(1.5),
    },
    Goal {
        words: "bytes on disk over LMDB's, both compacted: at most 1",
        of: ours(space::ASCENDING[1], "D1", 1, 1),
        over: Some(of(space::ASCENDING[1], "lmdb")),
        bound: Bound::AtMost(1.0),
    },
    Goal {
        words: "single sets over loading sorted batches, time, at periodic: at least 5",
        of: ours(load::SINGLE, "D3", 1, 1),
        over: Some(ours(load::BATCH, "D3", 1, 1)),
        bound: Bound::AtLeast(5.0),
    },
];

impl Of {
    fn values(&self, rows: &[Row]) -> Vec<f64> {
        let is_of = |row: &&Row| {
            (row.workload, row.backend, row.class, row.procs, row.threads)
                == (self.workload, self.backend, self.class, self.procs, self.threads)
        };
        rows.iter().filter(is_of).map(|row| row.value).collect()
    }
}

impl Goal {
    /// What was reached, None where it was not measured, and what comes of it.
    pub(super) fn judge(&self, rows: &[Row]) -> (Option<Ratio>, Verdict) {
        let (mine, over) = (self.of.values(rows), self.over.map_or(vec![1.0], |over| over.values(rows)));
        let reached = (!mine.is_empty() && !over.is_empty()).then(|| ratio(&mine, &over));
        (reached, self.bound.judge(reached))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_goal_is_met_missed_or_not_measured() {
        let row = |workload, backend, class, value| Row {
            workload,
            backend,
            class,
            threads: 16,
            ..Row::bare(1, 0, "op/s", value)
        };
        let rows = |ours, theirs| {
            [row(commits::COMMIT, "perilune", "D1", ours), row(commits::COMMIT, "lmdb", "D1", theirs)]
        };
        let judged = |goal: &Goal, rows: &[Row]| {
            let (reached, verdict) = goal.judge(rows);
            (reached.map(|reached| reached.ratio), verdict)
        };
        let goal = GOALS[0];
        assert_eq!(judged(&goal, &rows(50.0, 10.0)), (Some(5.0), Verdict::Met));
        assert_eq!(judged(&goal, &rows(49.0, 10.0)), (Some(4.9), Verdict::Missed));
        assert_eq!(judged(&goal, &rows(49.0, 10.0)[..1]), (None, Verdict::NotMeasured));
        let apart: Vec<Row> = [rows(30.0, 10.0), rows(60.0, 10.0), rows(90.0, 10.0)].concat();
        assert_eq!(judged(&goal, &apart), (Some(6.0), Verdict::Undecided));
        let late = [Row { procs: 16, threads: 1, ..row(reopen::REOPEN, "perilune", "D3", 11.0) }];
        let goal = GOALS.iter().find(|goal| goal.over.is_none()).expect("one without a peer");
        assert_eq!(judged(goal, &late), (Some(11.0), Verdict::Missed));
    }
}
