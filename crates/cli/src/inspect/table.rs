//! Tables on the terminal, and how times are written in them. A heading that ends in `<` aligns its column left.
//! column left.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::time::Duration;

use crate::failure::{doing, Result};

/// Rows of words under a heading.
pub(super) struct Table {
    /// Heading of each column; one that ends in `<` stands to the left.
    columns: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(super) fn new(columns: &[&'static str]) -> Table {
        Table { columns: columns.to_vec(), rows: Vec::new() }
    }

    pub(super) fn row(&mut self, row: Vec<String>) {
        self.rows.push(row);
    }

    /// The table, each line with its end.
    pub(super) fn text(&self) -> String {
        let heading: Vec<String> =
            self.columns.iter().map(|column| column.trim_end_matches('<').to_owned()).collect();
        let mut text = String::new();
        for row in std::iter::once(&heading).chain(&self.rows) {
            let mut line = String::new();
            for (index, word) in row.iter().enumerate() {
                let width = std::iter::once(&heading).chain(&self.rows).filter_map(|row| row.get(index));
                let width = width.map(|word| word.chars().count()).max().unwrap_or(0);
                let gap = if index == 0 { "" } else { "  " };
                let is_left = self.columns.get(index).is_some_and(|column| column.ends_with('<'));
                // Writing to a string cannot fail.
                let _ = if is_left {
                    write!(line, "{gap}{word:width$}")
                } else {
                    write!(line, "{gap}{word:>width$}")
                };
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}

/// Writes to the standard output. False: nobody reads on, which is no error.
pub(super) fn show(text: &str) -> Result<bool> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(doing("write to the standard output")(error)),
    }
}

/// A time as people say it: `350 ms`, `4.2 s`, `3 min`, `5 h`, `12 days`.
pub(super) fn spoken(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    match time.as_secs() {
        0 => format!("{} ms", time.as_millis()),
        1..=59 => format!("{seconds:.1} s"),
        60..=7_199 => format!("{:.0} min", seconds / 60.0),
        7_200..=172_799 => format!("{:.0} h", seconds / 3_600.0),
        _ => format!("{:.0} days", seconds / 86_400.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_words() {
        let mut table = Table::new(&["name<", "values", "note<"]);
        table.row(vec!["^ä".into(), "1234567".into(), String::new()]);
        table.row(vec!["^person".into(), "1".into(), "x".into()]);
        assert_eq!(table.text(), "name      values  note\n^ä       1234567\n^person        1  x\n");
    }

    #[test]
    fn times_have_a_unit_that_fits() {
        let spoken = |ms| spoken(Duration::from_millis(ms));
        assert_eq!([5, 59_900, 60_000, 7_199_999].map(spoken), ["5 ms", "59.9 s", "1 min", "120 min"]);
        assert_eq!([7_200_000, 172_800_000].map(spoken), ["2 h", "2 days"]);
    }
}
