//! Results as tables: medians with targets, our ratios to each peer, CPU time. The same tables go to
//! the terminal and, as Markdown, to the directory of a run.

use perilune_chart::escaped;

use crate::markup;
use crate::peers::OURS;
use crate::plan::{Cell, Group, Unit};
use crate::row::Row;
use crate::statistics::{median, ratio, spread, Ratio};
use crate::targets::judge;
use crate::verdict::{Score, Verdict};

/// A table with its heading.
pub(crate) struct Table {
    title: String,
    /// The first row holds the names of columns.
    rows: Vec<Vec<String>>,
}

/// The rows of one cell, by backend.
struct Measured<'a> {
    cell: &'a Cell,
    rows: Vec<&'a Row>,
}

impl Measured<'_> {
    fn values(&self, backend: &str) -> Vec<f64> {
        self.rows.iter().filter(|row| row.backend == backend).map(|row| row.value).collect()
    }

    /// How many times as fast as the peer we are.
    fn ratio(&self, peer: &str) -> Option<Ratio> {
        let (ours, theirs) = (self.values(OURS), self.values(peer));
        if ours.is_empty() || theirs.is_empty() {
            return None;
        }
        Some(match self.cell.unit() {
            Unit::Rate => ratio(&ours, &theirs),
            Unit::Nanoseconds | Unit::CpuNanoseconds => ratio(&theirs, &ours),
        })
    }

    /// The target in words, and what came of it.
    fn verdict(&self) -> Option<(String, Verdict)> {
        let ours = self.values(OURS);
        if ours.is_empty() {
            return None;
        }
        // The interval of a median is that of its ratio to one.
        judge(self.cell, ratio(&ours, &[1.0]), |peer| self.ratio(peer))
    }

    /// The columns that say which cell this is.
    fn head(&self) -> Vec<String> {
        let Cell { workload, keys, processes, threads, .. } = self.cell;
        let workers = match (processes, threads) {
            (_, 1) => format!("{processes}"),
            (_, threads) => format!("{threads} threads"),
        };
        vec![(*workload).to_owned(), round_number(*keys), workers, self.cell.unit().name().to_owned()]
    }
}

/// The tables of a run: medians with targets, ratios, CPU time; and the score of targets.
pub(crate) fn tables(groups: &[Group], rows: &[Row], backends: &[&str]) -> (Vec<Table>, Score) {
    let of = |cell: &Row, wanted: &Cell| {
        (cell.workload, cell.keys, cell.procs, cell.threads)
            == (wanted.workload, wanted.keys, wanted.processes, wanted.threads)
    };
    let measured: Vec<Measured<'_>> = groups
        .iter()
        .flat_map(|group| &group.cells)
        .map(|cell| Measured { cell, rows: rows.iter().filter(|row| of(row, cell)).collect() })
        .collect();
    let mut score = Score::default();
    let medians = medians(&measured, backends, &mut score);
    (vec![medians, ratios(&measured, backends), cpu(&measured, backends)], score)
}

fn names(backends: &[&str], more: &[&str]) -> Vec<String> {
    ["workload", "keys", "workers", "unit"]
        .iter()
        .chain(backends)
        .chain(more)
        .map(|n| (*n).to_owned())
        .collect()
}

fn medians(measured: &[Measured<'_>], backends: &[&str], score: &mut Score) -> Table {
    let mut rows = vec![names(backends, &["target", "verdict"])];
    for cell in measured {
        let mut row = cell.head();
        for backend in backends {
            let values = cell.values(backend);
            row.push(if values.is_empty() {
                "-".to_owned()
            } else {
                format!("{} ±{:.0}%", quantity(median(&values)), spread(&values) * 100.0)
            });
        }
        let (goal, word) = match cell.verdict() {
            None => (String::new(), ""),
            Some((goal, verdict)) => {
                score.add(verdict);
                (goal, verdict.word())
            }
        };
        row.extend([goal, word.to_owned()]);
        rows.push(row);
    }
    Table { title: "Medians, with half the distance of the quartiles".to_owned(), rows }
}

fn ratios(measured: &[Measured<'_>], backends: &[&str]) -> Table {
    let peers: Vec<&str> = backends.iter().copied().filter(|backend| *backend != OURS).collect();
    let mut rows = vec![names(&peers, &[])];
    for cell in measured {
        let ratio = |peer: &&str| match cell.ratio(peer) {
            Some(Ratio { ratio, low, high }) => format!("{ratio:.2}x [{low:.2}, {high:.2}]"),
            None => "-".to_owned(),
        };
        let mut row = cell.head();
        row.extend(peers.iter().map(ratio));
        rows.push(row);
    }
    let title = "Perilune is so many times as fast, with the 95 % interval (below 1: slower)".to_owned();
    Table { title, rows }
}

fn cpu(measured: &[Measured<'_>], backends: &[&str]) -> Table {
    let mut rows = vec![names(backends, &[])];
    for cell in measured {
        let mut row = cell.head();
        row[3] = "cpu-ns/op (cpu s / wall s)".to_owned();
        for backend in backends {
            let of = |value: fn(&Row) -> f64| -> Vec<f64> {
                cell.rows.iter().filter(|row| row.backend == *backend).map(|row| value(row)).collect()
            };
            let each = of(|row| row.cpu_seconds / row.operations as f64 * 1e9);
            let parts = of(|row| row.cpu_seconds / row.wall_seconds);
            row.push(if each.is_empty() {
                "-".to_owned()
            } else {
                format!("{} ({:.2})", quantity(median(&each)), median(&parts))
            });
        }
        rows.push(row);
    }
    Table { title: "CPU time of all workers, in the kernel too".to_owned(), rows }
}

/// A median in few figures: `31.4`, `1240`, `4.52M`.
pub(crate) fn quantity(value: f64) -> String {
    match value {
        value if value >= 1e6 => format!("{:.2}M", value / 1e6),
        value if value >= 1e5 => format!("{:.0}k", value / 1e3),
        value if value >= 100.0 => format!("{value:.0}"),
        value => format!("{value:.1}"),
    }
}

/// A size as it is given on the command line: `10k`, `1M`.
pub(crate) fn round_number(value: u64) -> String {
    match value {
        value if value >= 1_000_000 && value % 1_000_000 == 0 => format!("{}M", value / 1_000_000),
        value if value >= 1_000 && value % 1_000 == 0 => format!("{}k", value / 1_000),
        value => value.to_string(),
    }
}

impl Table {
    /// The table for a page of HTML; rows with a goal that was missed have a class of their own.
    pub(crate) fn html(&self) -> String {
        let mut text = String::from("<div class=\"scroll\"><table>\n");
        for (index, row) in self.rows().iter().enumerate() {
            let cell = if index == 0 { "th" } else { "td" };
            let missed = row.iter().any(|text| text == "MISSED");
            text.push_str(if missed { "<tr class=\"missed\">" } else { "<tr>" });
            for value in row {
                let shown = if index == 0 { escaped(value) } else { markup::cell(value) };
                text.push_str(&format!("<{cell}>{shown}</{cell}>"));
            }
            text.push_str("</tr>\n");
        }
        text.push_str("</table></div>\n");
        text
    }

    /// A table whose first row holds the names of columns.
    pub(crate) fn new(title: &str, rows: Vec<Vec<String>>) -> Table {
        Table { title: title.to_owned(), rows }
    }

    /// Its heading.
    pub(crate) fn title(&self) -> &str {
        &self.title
    }

    /// Its rows, the names of columns first.
    pub(crate) fn rows(&self) -> &[Vec<String>] {
        &self.rows
    }

    /// Aligned by spaces.
    pub(crate) fn text(&self) -> String {
        let columns = self.rows.first().map_or(0, Vec::len);
        let width =
            |column: usize| self.rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let mut text = format!("{}\n", self.title);
        for row in &self.rows {
            let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
            text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
            text.push('\n');
        }
        text
    }

    /// As a section of Markdown.
    pub(crate) fn markdown(&self) -> String {
        let mut text = format!("## {}\n\n", self.title);
        for (index, row) in self.rows.iter().enumerate() {
            text.push_str(&format!("| {} |\n", row.join(" | ")));
            if index == 0 {
                text.push_str(&format!("|{}\n", " --- |".repeat(row.len())));
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{groups, Wish};
    use crate::subject::Class;

    #[test]
    fn a_slow_side_is_seen_as_slow_and_a_target_as_missed() {
        let wish = Wish { quick: true, class: Class::D4, keys: vec![1_000_000], only: vec!["get".into()] };
        let groups = groups(&wish);
        let row = |backend, round: usize, value| Row {
            suite: "engine",
            workload: "get",
            backend,
            class: "D4",
            keys: 1_000_000,
            procs: 1,
            threads: 1,
            round,
            unit: "ns/op",
            value,
            wall_seconds: 1.0,
            cpu_seconds: 0.5,
            operations: 1_000_000,
        };
        let rows: Vec<Row> = (0..5)
            .flat_map(|round| {
                [row(OURS, round, 400.0 + round as f64), row("lmdb", round, 700.0 + round as f64)]
            })
            .collect();
        let (tables, score) = tables(&groups, &rows, &[OURS, "lmdb"]);
        let text: String = tables.iter().map(Table::text).collect();
        assert_eq!(score, Score { missed: 1, ..Score::default() });
        for part in ["402 ±0%", "MISSED", "1.75x [1.7", "500 (0.50)", ">= 2x lmdb"] {
            assert!(text.contains(part), "{part} is not in\n{text}");
        }
        assert!(tables[0]
            .markdown()
            .contains("| get | 1M | 1 | ns/op | 402 ±0% | 702 ±0% | >= 2x lmdb | MISSED |"));
    }

    #[test]
    fn figures_are_few() {
        let texts = [31.44, 1_240.2, 523_400.0, 4_521_000.0].map(quantity);
        assert_eq!(texts, ["31.4", "1240", "523k", "4.52M"]);
        assert_eq!([10_000, 1_000_000, 1_500].map(round_number), ["10k", "1M", "1500"]);
    }
}
