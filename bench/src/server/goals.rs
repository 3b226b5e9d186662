//! The project's goals for the server: bounds on medians, or on ratios of medians.
//!
//! A rate is judged by operations in a second of the clock. But where server and clients together keep the
//! machine's cores busy (90 % or more), the clock says as much about the clients; then the rate in a second of the
//! server's CPU time is judged.

use crate::statistics::{median, ratio, Ratio};
use crate::verdict::{Bound, Verdict};

use super::commands::{script_names, COMMAND, NOTHING, PIPELINE, SCRIPT};
use super::requests::COMMANDS;
use super::row::Row;
use super::sides::{Side, ONE, TWO};
use super::{clients, connections, idle, neighbours};

/// Part of the machine's cores from which they count as filled.
const FILLED: f64 = 0.9;

/// A goal and what became of it.
pub(crate) struct Outcome {
    pub(crate) words: String,
    bound: Bound,
    /// By what was decided, and that; None where it was not measured.
    pub(crate) reached: Option<Ratio>,
    /// What else is to be known: the other figure.
    pub(crate) note: String,
}

impl Outcome {
    pub(crate) fn verdict(&self) -> Verdict {
        self.bound.judge(self.reached)
    }
}

/// Rows of one figure.
#[derive(Clone, Copy)]
struct Of<'a> {
    rows: &'a [Row],
    section: &'a str,
    workload: &'a str,
    pipeline: usize,
}

impl Of<'_> {
    fn values(&self, side: Side, value: fn(&Row) -> f64) -> Vec<f64> {
        let is_of = |row: &&Row| {
            (row.section, row.workload.as_str(), row.backend, row.pipeline)
                == (self.section, self.workload, side.name(), self.pipeline)
        };
        self.rows.iter().filter(is_of).map(value).collect()
    }

    fn median(&self, side: Side, value: fn(&Row) -> f64) -> Option<f64> {
        let values = self.values(side, value);
        (!values.is_empty()).then(|| median(&values)).filter(|value| value.is_finite())
    }

    /// Our median by Redis's.
    fn ratio(&self, side: Side, value: fn(&Row) -> f64) -> Option<Ratio> {
        quotient(&self.values(side, value), &self.values(Side::Redis, value))
    }

    /// A goal of throughput.
    fn rate(&self, what: &str, side: Side, bound: Bound) -> Outcome {
        let by_clock = self.ratio(side, |row| row.value);
        let by_cpu = self.ratio(side, Row::per_cpu);
        let cores = std::thread::available_parallelism().map_or(1.0, |count| count.get() as f64);
        let filled = self.median(side, Row::cores).is_some_and(|used| used >= FILLED * cores);
        let (decides, other, note) = match filled {
            true => (by_cpu, by_clock, "by server CPU, cores filled; by the clock"),
            false => (by_clock, by_cpu, "by the clock; by server CPU"),
        };
        let note = other.map_or(String::new(), |other| format!("{note} {:.2}", other.ratio));
        outcome(format!("{what}, times Redis"), decides, bound, note)
    }
}

/// A median by another, if both were measured. Of one round there is no interval.
fn quotient(above: &[f64], below: &[f64]) -> Option<Ratio> {
    let found = ratio(above, below);
    let few = above.len().min(below.len()) < 2;
    let unsure = Ratio { low: f64::NAN, high: f64::NAN, ..found };
    Some(if few { unsure } else { found }).filter(|found| found.ratio.is_finite())
}

/// What was counted rather than timed.
fn exact(value: f64) -> Ratio {
    Ratio { ratio: value, low: value, high: value }
}

fn outcome(what: String, reached: Option<Ratio>, bound: Bound, note: String) -> Outcome {
    Outcome { words: format!("{what}: {}", bound.words()), bound, reached, note }
}

/// Every goal, in the order.
pub(crate) fn outcomes(rows: &[Row]) -> Vec<Outcome> {
    let mut all = commands(rows);
    all.extend(scripts(rows));
    all.extend(idle_and_many(rows));
    all
}

/// Our sides, and how they are called.
const THREADS: [(Side, &str); 2] = [(ONE, "one thread"), (TWO, "two threads")];

fn commands(rows: &[Row]) -> Vec<Outcome> {
    let of = |section, workload, pipeline| Of { rows, section, workload, pipeline };
    let mut all = Vec::new();
    for (name, _) in COMMANDS {
        let alone = of(COMMAND, name, 1);
        all.push(alone.rate(&format!("{name}, one thread"), ONE, Bound::AtLeast(1.0)));
        all.push(alone.rate(&format!("{name}, two threads"), TWO, Bound::AtLeast(1.5)));
        for (side, threads) in THREADS {
            let note = alone.median(Side::Redis, Row::p99);
            let note = note.map_or(String::new(), |p99| format!("Redis's is {p99:.0} us"));
            let what = format!("{name}, {threads}, p99 by Redis's");
            all.push(outcome(what, alone.ratio(side, Row::p99), Bound::AtMost(1.0), note));
        }
        let many = of(COMMAND, name, PIPELINE);
        all.push(many.rate(&format!("{name} by {PIPELINE}, two threads"), TWO, Bound::AtLeast(2.0)));
    }
    all
}

fn scripts(rows: &[Row]) -> Vec<Outcome> {
    let of = |section, workload| Of { rows, section, workload, pipeline: 1 };
    let mut all = Vec::new();
    let (script, _) = script_names(2);
    for (side, threads) in THREADS {
        let what = format!("EVAL of one GET and one SET, {threads}");
        let mut outcome = of(SCRIPT, &script).rate(&what, side, Bound::AtLeast(1.5));
        let nothing = of(COMMAND, NOTHING).median(side, Row::per_cpu);
        if let Some((ours, theirs)) = nothing.zip(of(SCRIPT, &script).median(Side::Redis, Row::per_cpu)) {
            outcome.note += &format!("; {NOTHING} of ours by it {:.2}", ours / theirs);
        }
        all.push(outcome);
    }
    for (side, threads) in THREADS {
        let p99 = |workload, side| of(neighbours::SECTION, workload).values(side, Row::p99);
        let by_idle = |side| quotient(&p99(neighbours::BESIDE, side), &p99(neighbours::IDLE, side));
        let ratio = by_idle(side);
        let note = by_idle(Side::Redis).map_or(String::new(), |theirs| format!("Redis: {:.0}", theirs.ratio));
        let what = format!("p99 of others beside a script of a second by that of the idle server, {threads}");
        all.push(outcome(what, ratio, Bound::AtMost(2.0), note));
    }
    let by_clients = of(clients::BY_CLIENTS, "3n+1");
    let clock = by_clients.ratio(TWO, |row| row.value);
    let what = format!("3n+1 by {} Lua clients", clients::WORKERS);
    all.push(outcome(
        format!("{what}, by the clock, times Redis"),
        clock,
        Bound::AtLeast(1.2),
        String::new(),
    ));
    let cpu = by_clients.ratio(TWO, |row| 1.0 / row.per_cpu());
    all.push(outcome(
        format!("{what}, server CPU of an operation by Redis's"),
        cpu,
        Bound::AtMost(0.5),
        String::new(),
    ));
    let inside = of(clients::INSIDE, "3n+1").ratio(TWO, |row| 1.0 / row.value);
    let what = "3n+1 as a script that is not atomic on two threads, times Redis's EVAL".to_owned();
    all.push(outcome(what, inside, Bound::AtLeast(5.0), String::new()));
    all
}

fn idle_and_many(rows: &[Row]) -> Vec<Outcome> {
    let mut all = Vec::new();
    for (workload, most) in [(idle::PLAIN, 4.0), (idle::TLS, 24.0)] {
        let of = Of { rows, section: idle::SECTION, workload, pipeline: 1 };
        let theirs = of.median(Side::Redis, |row| row.value);
        let note = theirs.map_or(String::new(), |value| format!("Redis: {value:.1}"));
        let ours = of.median(ONE, |row| row.value).map(exact);
        all.push(outcome(format!("{workload}, KiB"), ours, Bound::AtMost(most), note));
    }
    for (what, workload, servers, least) in [
        ("connections of several server processes, all served", connections::STUDY, 2.., 64_000.0),
        ("connections of one server process, 10,000 of them busy", connections::HALF, 1.., 19_000.0),
    ] {
        let held = |row: &&Row| {
            row.section == connections::SECTION
                && row.workload == workload
                && row.backend != Side::Redis.name()
                && servers.contains(&row.servers)
        };
        let most = rows.iter().filter(held).map(|row| row.connections as f64).reduce(f64::max);
        all.push(outcome(what.to_owned(), most.map(exact), Bound::AtLeast(least), String::new()));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(side: Side, value: f64, server: f64, client: f64) -> Row {
        Row {
            operations: value as u64,
            wall_seconds: 1.0,
            server_cpu_seconds: server,
            client_cpu_seconds: client,
            latency_us: vec![10.0, 20.0, 1e6 / value, 40.0, 50.0],
            ..Row::figure(COMMAND, "SET", side, "op/s", value)
        }
    }

    fn reached(rows: &[Row], words: &str) -> (Option<f64>, Verdict) {
        let all = outcomes(rows);
        let one = all.iter().find(|one| one.words.starts_with(words)).expect("a goal");
        (one.reached.map(|reached| reached.ratio), one.verdict())
    }

    #[test]
    fn the_clock_decides_until_the_cores_are_full() {
        let cores = std::thread::available_parallelism().unwrap().get() as f64;
        let twice = |rows: [Row; 2]| [rows.clone(), rows].concat();
        let idle = twice([row(Side::Redis, 100.0, 0.1, 0.1), row(ONE, 150.0, 0.3, 0.1)]);
        assert_eq!(reached(&idle, "SET, one thread, times"), (Some(1.5), Verdict::Met));
        assert_eq!(reached(&idle, "SET, one thread, p99"), (Some(1e6 / 150.0 / 1e4), Verdict::Met));
        let full = twice([row(Side::Redis, 100.0, 1.0, 1.0), row(ONE, 150.0, 2.0, cores)]);
        assert_eq!(reached(&full, "SET, one thread, times"), (Some(0.75), Verdict::Missed));
    }

    #[test]
    fn one_round_and_rounds_that_differ_decide_nothing() {
        let one = [row(Side::Redis, 100.0, 0.1, 0.1), row(ONE, 150.0, 0.3, 0.1)];
        assert_eq!(reached(&one, "SET, one thread, times"), (Some(1.5), Verdict::Undecided));
        let mut apart = Vec::new();
        for (theirs, ours) in [(100.0, 150.0), (140.0, 60.0), (70.0, 130.0)] {
            apart.extend([row(Side::Redis, theirs, 0.1, 0.1), row(ONE, ours, 0.3, 0.1)]);
        }
        assert_eq!(reached(&apart, "SET, one thread, times").1, Verdict::Undecided);
    }

    #[test]
    fn a_request_that_asks_for_nothing_tells_what_scripts_can_reach() {
        let of = |section, workload: &str, side, value| Row {
            section,
            workload: workload.to_owned(),
            ..row(side, value, 1.0, 0.5)
        };
        let script = script_names(2).0;
        let rows = [
            of(COMMAND, NOTHING, ONE, 140.0),
            of(SCRIPT, &script, Side::Redis, 100.0),
            of(SCRIPT, &script, ONE, 120.0),
        ];
        let all = outcomes(&rows);
        let one = all.iter().find(|one| one.words.starts_with("EVAL of one GET and one SET, one")).unwrap();
        assert!(one.note.ends_with("PING of ours by it 1.40"), "{}", one.note);
    }

    #[test]
    fn what_was_not_measured_is_not_met() {
        assert!(outcomes(&[]).iter().all(|one| one.verdict() == Verdict::NotMeasured));
    }

    #[test]
    fn memory_and_connections_have_bounds() {
        let rows = [
            Row::figure(idle::SECTION, idle::PLAIN, ONE, "KiB", 4.1),
            Row {
                connections: 64_000,
                servers: 4,
                ..Row::figure(connections::SECTION, connections::STUDY, ONE, "op/s", 1.0)
            },
        ];
        assert_eq!(reached(&rows, idle::PLAIN), (Some(4.1), Verdict::Missed));
        assert_eq!(reached(&rows, "connections of several"), (Some(64_000.0), Verdict::Met));
        assert_eq!(reached(&rows, "connections of one"), (None, Verdict::NotMeasured));
    }
}
