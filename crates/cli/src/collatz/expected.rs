//! The values that 3n+1 must find: longest, highest and stored whatever the processes do; reads and
//! updates exactly for one process, and at least those for several, which may walk the same stretch.

use crate::collatz::row::Row;

const TABLE: &str = include_str!("expected.tsv");

/// What a run of one process finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Expected {
    longest: u64,
    highest: u64,
    stored: u64,
    reads: u64,
    updates: u64,
}

/// The values for `n`, if the table has them.
pub(crate) fn of(n: u64) -> Option<Expected> {
    rows().find(|row| row[0] == n).map(|row| Expected {
        longest: row[1],
        highest: row[3],
        stored: row[5],
        reads: row[6],
        updates: row[7],
    })
}

/// Every N of the table, for a message.
pub(crate) fn list() -> String {
    rows().map(|row| row[0].to_string()).collect::<Vec<_>>().join(", ")
}

fn rows() -> impl Iterator<Item = Vec<u64>> {
    TABLE
        .lines()
        .map(|line| line.split('\t').filter_map(|field| field.parse().ok()).collect::<Vec<u64>>())
        .filter(|row| row.len() == 8)
}

impl Expected {
    /// What `row` has otherwise, in words.
    pub(crate) fn differences(&self, row: &Row) -> Vec<String> {
        let mut faults = Vec::new();
        let mut exactly = |name: &str, found: u64, expected: u64| {
            if found != expected {
                faults.push(format!("{} processes: {name} {found}, expected {expected}", row.procs));
            }
        };
        exactly("longest", row.longest.unwrap_or(0), self.longest);
        exactly("highest", row.highest.unwrap_or(0), self.highest);
        exactly("stored", row.stored, self.stored);
        if row.procs == 1 {
            exactly("reads", row.reads, self.reads);
            exactly("updates", row.updates, self.updates);
        } else {
            exactly("updates, at least,", row.updates.min(self.stored), self.stored);
            exactly("reads, at least,", row.reads.min(self.stored + row.n), self.stored + row.n);
        }
        faults
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(procs: u32, reads: u64) -> Row {
        Row {
            lua: String::new(),
            durability: "none".into(),
            procs,
            round: 1,
            n: 10,
            longest: Some(19),
            highest: Some(52),
            stored: 21,
            reads,
            updates: 29,
            seconds: 1.0,
            cpu_seconds: 1.0,
        }
    }

    #[test]
    fn one_process_is_exact_and_several_are_at_least() {
        let expected = of(10).expect("10 is in the table");
        assert_eq!(expected.differences(&row(1, 45)), Vec::<String>::new());
        assert_eq!(expected.differences(&row(1, 46)), ["1 processes: reads 46, expected 45"]);
        assert_eq!(expected.differences(&row(2, 60)), Vec::<String>::new());
        assert_eq!(expected.differences(&row(2, 5)).len(), 1);
        let wrong = Row { stored: 20, ..row(2, 60) };
        assert_eq!(expected.differences(&wrong).len(), 1);
    }

    #[test]
    fn every_line_of_the_table_is_read() {
        assert_eq!(rows().count(), TABLE.lines().count() - 2);
        assert_eq!(of(100_000).map(|row| row.stored), Some(217_211));
    }
}
