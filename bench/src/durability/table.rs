//! Rows of durability as tables: medians of each figure, and the goals.

use super::goals::GOALS;
use crate::report::{quantity, round_number, Table};
use crate::row::Row;
use crate::statistics::{median, spread};
use crate::verdict::Score;

/// The suite of these rows.
pub(super) const SUITE: &str = "durability";

type Cell = (&'static str, u64, usize, usize, &'static str, &'static str, &'static str);

fn cell(row: &Row) -> Cell {
    (row.workload, row.keys, row.procs, row.threads, row.unit, row.backend, row.class)
}

/// Medians of all figures and the verdicts on the goals, with their score.
pub(crate) fn tables(rows: &[Row]) -> (Vec<Table>, Score) {
    let mut cells: Vec<Cell> = Vec::new();
    for row in rows {
        if !cells.contains(&cell(row)) {
            cells.push(cell(row));
        }
    }
    // Sides of a figure beside each other, though they took turns.
    let first = |of: &Cell| {
        rows.iter()
            .position(|row| (row.workload, row.procs, row.threads, row.unit) == (of.0, of.2, of.3, of.4))
    };
    cells.sort_by_key(first);
    let heads = ["what", "keys", "processes", "threads", "side", "class", "unit", "median", "rounds"];
    let mut lines = vec![heads.map(str::to_owned).to_vec()];
    for of in &cells {
        let values: Vec<f64> = rows.iter().filter(|row| cell(row) == *of).map(|row| row.value).collect();
        let spread =
            if values.len() > 2 { format!(" ±{:.0}%", spread(&values) * 100.0) } else { String::new() };
        let (workload, keys, procs, threads, unit, backend, class) = *of;
        lines.push(vec![
            workload.to_owned(),
            round_number(keys),
            procs.to_string(),
            threads.to_string(),
            backend.to_owned(),
            class.to_owned(),
            unit.to_owned(),
            format!("{}{spread}", quantity(median(&values))),
            values.len().to_string(),
        ]);
    }
    let figures = Table::new("Medians, with half the distance of the quartiles", lines);
    let (goals, score) = verdicts(rows);
    (vec![figures, goals], score)
}

fn verdicts(rows: &[Row]) -> (Table, Score) {
    let mut score = Score::default();
    let mut lines = vec![["goal", "reached", "verdict"].map(str::to_owned).to_vec()];
    for goal in GOALS {
        let (reached, verdict) = goal.judge(rows);
        score.add(verdict);
        let reached = reached.map_or("-".to_owned(), |reached| format!("{:.2}", reached.ratio));
        lines.push(vec![goal.words.to_owned(), reached, verdict.word().to_owned()]);
    }
    (Table::new("Goals", lines), score)
}
