//! Past this machine's cores: what the measured costs with one and two processes would allow with more. An
//! analysis, labelled so in the report, and no measurement.
//!
//! Amdahl's law, turned round: if two processes are S times as fast as one, the share of the work that goes on by
//! one at a time is 2 / S - 1; with n cores one can be 1 / (share + (1 - share) / n) times as fast, and never more
//! than 1 / share. What it leaves out makes things worse (memory shared by more cores, more waiting), so the
//! figures are upper bounds.

use crate::comparison::goals::more_is_better;
use crate::comparison::result::Run;
use crate::report::Table;
use crate::statistics::median;

/// What a reader must know before the table.
pub(crate) const ABOUT: &str = "An analysis, not a measurement: from what one and two processes cost here, the share of the work \
     that went on by one at a time (2 / speedup - 1), and the most that Amdahl's law allows with more cores. A server and its \
     clients share this machine's cores already with one client, so its share is taken too high if it has threads, and its \
     bound too high if it has one thread, which no core more makes faster.\n\n";

/// Workloads whose work is divided among processes, and does not wait for the disk.
const DIVIDED: [(&str, &str); 2] = [("collatz", "D4"), ("bank", "D4")];
/// Numbers of cores that bounds are given for.
const CORES: [f64; 2] = [8.0, 32.0];

/// The bounds of each side; None where nothing was measured with both numbers of processes.
pub(crate) fn table(run: &Run) -> Option<Table> {
    let titles = [
        "workload",
        "side",
        "CPU us / operation, 1 process",
        "2 processes",
        "speedup by the second",
        "share by one at a time",
        "at most with 8 cores",
        "at most with 32",
    ];
    let mut rows = vec![titles.map(str::to_owned).to_vec()];
    for (workload, class) in DIVIDED {
        let mine = run.lines.iter().filter(|line| line.workload == workload && line.class == class);
        let mut sides: Vec<&str> = mine.clone().map(|line| line.backend.as_str()).collect();
        sides.sort_unstable();
        sides.dedup();
        let more = mine.clone().any(|line| more_is_better(&line.unit));
        for side in sides {
            let each = |procs: usize| {
                let costs = mine.clone().filter(|line| line.procs == procs && line.backend == side);
                median(&costs.map(|line| line.cpu_seconds / line.operations as f64 * 1e6).collect::<Vec<_>>())
            };
            let value = |procs| median(&run.values(workload, procs, class, side));
            let speedup = if more { value(2) / value(1) } else { value(1) / value(2) };
            if speedup.is_nan() {
                continue;
            }
            let share = serial_share(speedup);
            let mut row = vec![workload.to_owned(), side.to_owned()];
            row.extend([format!("{:.2}", each(1)), format!("{:.2}", each(2)), format!("{speedup:.2}x")]);
            row.push(format!("{:.0} %", share * 100.0));
            row.extend(CORES.map(|cores| format!("{:.1}x", bound(share, cores))));
            rows.push(row);
        }
    }
    (rows.len() > 1).then(|| Table::new("More cores than here: an analysis from measured costs", rows))
}

/// The share of the work by one at a time, from the speedup by a second: 0 to 1.
fn serial_share(speedup: f64) -> f64 {
    (2.0 / speedup - 1.0).clamp(0.0, 1.0)
}

/// How many times as fast as with one core at most.
fn bound(share: f64, cores: f64) -> f64 {
    1.0 / (share + (1.0 - share) / cores)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_bounds_what_cores_can_do() {
        assert_eq!((serial_share(2.0), bound(0.0, 8.0)), (0.0, 8.0));
        assert_eq!((serial_share(1.0), bound(1.0, 32.0)), (1.0, 1.0));
        assert_eq!((serial_share(0.5), serial_share(2.5)), (1.0, 0.0));
        // A third at a time: 1.5 times by the second, 2.4 at most with 8.
        assert!((serial_share(1.5) - 1.0 / 3.0).abs() < 1e-12);
        assert!((bound(1.0 / 3.0, 8.0) - 2.4).abs() < 1e-12);
        assert!(table(&Run::default()).is_none());
    }
}
