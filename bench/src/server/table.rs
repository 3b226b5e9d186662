//! Rows of the server suite as tables: goals, missed ones first; then for each section the medians of its
//! sides beside each other, with CPU time and latencies.

use crate::report::{quantity, Table};
use crate::statistics::{median, ratio, spread, Ratio};
use crate::verdict::Score;

use super::goals::{outcomes, Outcome};
use super::row::Row;
use super::sides::Side;

/// The tables of a run, goals first, and what came of the goals.
pub(crate) struct Found {
    pub(crate) tables: Vec<Table>,
    pub(crate) score: Score,
}

/// Goals, and a table for each section.
pub(super) fn tables(rows: &[Row]) -> Found {
    let (goals, score) = verdicts(outcomes(rows));
    let mut tables = vec![goals];
    let mut sections: Vec<&str> = Vec::new();
    for row in rows {
        if !sections.contains(&row.section) {
            sections.push(row.section);
        }
    }
    tables.extend(sections.into_iter().map(|section| {
        let of: Vec<&Row> = rows.iter().filter(|row| row.section == section).collect();
        figures(section, &of)
    }));
    Found { tables, score }
}

fn verdicts(outcomes: Vec<Outcome>) -> (Table, Score) {
    let mut score = Score::default();
    let mut lines = vec![["goal", "reached", "verdict", "beside it"].map(str::to_owned).to_vec()];
    let mut outcomes = outcomes;
    outcomes.sort_by_key(Outcome::verdict);
    for outcome in outcomes {
        let verdict = outcome.verdict();
        score.add(verdict);
        let reached = outcome.reached.map_or("-".to_owned(), |Ratio { ratio, low, high }| {
            let digits = if ratio >= 1_000.0 { 0 } else { 2 };
            match low < high {
                true => format!("{ratio:.digits$} [{low:.digits$}, {high:.digits$}]"),
                false => format!("{ratio:.digits$}"),
            }
        });
        lines.push(vec![outcome.words, reached, verdict.word().to_owned(), outcome.note]);
    }
    (Table::new("Goals", lines), score)
}

type Cell<'a> = (&'a str, usize, usize, usize, &'static str);

fn cell(row: &Row) -> Cell<'_> {
    (&row.workload, row.pipeline, row.connections, row.servers, row.unit)
}

const HEADS: [&str; 17] = [
    "what",
    "pipeline",
    "connections",
    "servers",
    "side",
    "unit",
    "median",
    "times Redis",
    "op / server CPU s",
    "times Redis",
    "server cores",
    "client cores",
    "p50 us",
    "p99 us",
    "p99.9 us",
    "most us",
    "rounds",
];

fn figures(section: &str, rows: &[&Row]) -> Table {
    let mut cells: Vec<(Cell<'_>, &str)> = Vec::new();
    for row in rows {
        if !cells.contains(&(cell(row), row.backend)) {
            cells.push((cell(row), row.backend));
        }
    }
    let first = |of: &(Cell<'_>, &str)| rows.iter().position(|row| cell(row) == of.0);
    cells.sort_by_key(|of| (first(of), order(of.1)));
    let mut lines = vec![HEADS.map(str::to_owned).to_vec()];
    lines.extend(cells.into_iter().map(|(cell, backend)| Figures { rows, cell, backend }.line()));
    Table::new(&title(section), lines)
}

/// The rows of one side in one cell, and those that it is compared with.
struct Figures<'a> {
    rows: &'a [&'a Row],
    cell: Cell<'a>,
    backend: &'a str,
}

impl Figures<'_> {
    fn of(&self, backend: &str, value: fn(&Row) -> f64) -> Vec<f64> {
        self.rows
            .iter()
            .filter(|row| cell(row) == self.cell && row.backend == backend)
            .map(|row| value(row))
            .filter(|value| value.is_finite())
            .collect()
    }

    /// The median, rounded to a few digits; `-` where all values are 0.
    fn median(&self, value: fn(&Row) -> f64) -> String {
        let values = self.of(self.backend, value);
        match values.iter().all(|value| *value == 0.0) {
            true => "-".to_owned(),
            false => quantity(median(&values)),
        }
    }

    /// Cores.
    fn part(&self, value: fn(&Row) -> f64) -> String {
        let values = self.of(self.backend, value);
        match values.is_empty() {
            true => "-".to_owned(),
            false => format!("{:.2}", median(&values)),
        }
    }

    fn times_redis(&self, value: fn(&Row) -> f64) -> String {
        let (ours, theirs) = (self.of(self.backend, value), self.of(Side::Redis.name(), value));
        let nothing = |values: &[f64]| values.is_empty() || values.contains(&0.0);
        if self.backend == Side::Redis.name() || nothing(&ours) || nothing(&theirs) {
            return "-".to_owned();
        }
        let ratio = ratio(&ours, &theirs);
        format!("{:.2}x [{:.2}, {:.2}]", ratio.ratio, ratio.low, ratio.high)
    }

    fn line(&self) -> Vec<String> {
        let (workload, pipeline, connections, servers, unit) = self.cell;
        let all = self.of(self.backend, |row| row.value);
        let spread = if all.len() > 2 { format!(" ±{:.0}%", spread(&all) * 100.0) } else { String::new() };
        let value = match unit {
            "s" => format!("{:.3}", median(&all)),
            _ => quantity(median(&all)),
        };
        vec![
            workload.to_owned(),
            pipeline.to_string(),
            connections.to_string(),
            servers.to_string(),
            self.backend.to_owned(),
            unit.to_owned(),
            format!("{value}{spread}"),
            self.times_redis(|row| row.value),
            self.median(Row::per_cpu),
            self.times_redis(Row::per_cpu),
            self.part(|row| row.server_cpu_seconds / row.wall_seconds),
            self.part(|row| row.client_cpu_seconds / row.wall_seconds),
            self.median(|row| row.latency(0)),
            self.median(Row::p99),
            self.median(|row| row.latency(3)),
            self.median(|row| row.latency(4)),
            all.len().to_string(),
        ]
    }
}

/// Redis first, then ours by threads.
fn order(backend: &str) -> (bool, String) {
    (backend != Side::Redis.name(), backend.to_owned())
}

fn title(section: &str) -> String {
    let text = match section {
        "commands" => "Commands of 50 connections",
        "scripts" => "Scripts, and as many round trips, of 50 connections",
        "neighbours" => "Other clients beside a script of a second: 5,000 requests a second",
        "clients" => "3n+1 by Lua clients (redis-lua)",
        "inside" => "3n+1 in the server",
        "computing" => "Scripts that only compute",
        "idle" => "Memory of an idle connection",
        "connections" => "The connection study: 100,000 requests at each number of connections",
        other => other,
    };
    format!("{text} ({section})")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::sides::{ONE, TWO};

    #[test]
    fn sides_stand_beside_each_other_and_missed_goals_come_first() {
        let row = |side, round: usize, value: f64| Row {
            round,
            operations: 1_000,
            wall_seconds: 1_000.0 / value,
            server_cpu_seconds: 0.5,
            latency_us: vec![1.0, 2.0, 3.0, 4.0, 5.0],
            ..Row::figure("commands", "SET", side, "op/s", value)
        };
        let mut rows = Vec::new();
        for round in 0..3 {
            rows.extend([row(TWO, round, 300.0), row(Side::Redis, round, 100.0), row(ONE, round, 90.0)]);
        }
        let Found { tables, score } = tables(&rows);
        // SET: one thread missed, two met; both p99 equal.
        assert_eq!((score.met, score.missed), (3, 1));
        let goals = tables[0].rows();
        assert_eq!(
            (goals[1][0].as_str(), goals[1][2].as_str()),
            ("SET, one thread, times Redis: at least 1", "MISSED")
        );
        let sides: Vec<_> =
            tables[1].rows()[1..].iter().map(|row| (row[4].as_str(), row[7].as_str())).collect();
        let wanted =
            [("redis", "-"), ("perilune-1", "0.90x [0.90, 0.90]"), ("perilune-2", "3.00x [3.00, 3.00]")];
        assert_eq!(sides, wanted);
    }
}
