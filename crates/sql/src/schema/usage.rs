//! Hidden columns that say how a row is used: when it was last, `LRU`, and how often it was, `LFU`.
//!
//! ```text
//! CREATE LRUINDEX ON hot      the column LRU, whose index is lru_hot
//! ^hot.%lru(7) = 1795861230   when row 7 was used last; a row without such a node was used when the index came
//! ^hot.%lfu(7) = 20           how often row 7 was used; a row without such a node was used once
//! ```
//!
//! Invariant: what a row keeps is no part of its record, so that whoever reads a row and stamps it changes no row.

use super::{Column, Computed, Index, Table};
use crate::value::{Affinity, Value};

/// What a hidden column says of the use of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UsageKind {
    /// When it was last.
    Last,
    /// How often it was.
    Often,
}

impl UsageKind {
    /// The name of its column.
    pub(crate) fn column(self) -> &'static str {
        match self {
            UsageKind::Last => "LRU",
            UsageKind::Often => "LFU",
        }
    }

    /// By the name of its column.
    pub(crate) fn of(column: &str) -> Option<UsageKind> {
        [UsageKind::Last, UsageKind::Often]
            .into_iter()
            .find(|kind| kind.column().eq_ignore_ascii_case(column))
    }
}

/// A hidden column that says how rows are used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Usage {
    pub(crate) kind: UsageKind,
    pub(crate) column: usize,
    /// The name of the global, without `^`, that has a node for each row.
    pub(crate) root: String,
    /// When the column came, in seconds.
    pub(crate) since: i64,
}

impl Usage {
    /// What the column says of a row whose node has this value.
    pub(crate) fn value(&self, kept: Option<i64>) -> Value {
        Value::Integer(match self.kind {
            UsageKind::Last => kept.unwrap_or(self.since),
            UsageKind::Often => bucket(kept.unwrap_or(1)),
        })
    }
}

/// What LFU is for a row that was used so often: 1, 2 for 2 and 3, 3 for 4 to 7, and so on.
pub(crate) fn bucket(count: i64) -> i64 {
    i64::from(count.max(1).ilog2()) + 1
}

impl Table {
    /// Adds the column of an index on the use of rows.
    pub(crate) fn add_usage(&mut self, kind: UsageKind, root: String, since: i64) {
        let column = self.columns.len();
        let name = kind.column().to_owned();
        self.columns.push(Column::computed(name, "INTEGER", Affinity::Integer, Computed::Usage));
        self.usage.push(Usage { kind, column, root, since });
    }

    /// Whether an index is on the use of rows.
    pub(crate) fn is_on_usage(&self, index: &Index) -> bool {
        index.columns.iter().any(|(column, _)| self.columns[*column].is_usage())
    }
}

#[cfg(test)]
mod tests {
    use super::bucket;

    #[test]
    fn a_bucket_is_for_twice_as_often() {
        let buckets: Vec<i64> = [0, 1, 2, 3, 4, 7, 8, 10, 20, i64::MAX].map(bucket).to_vec();
        assert_eq!(buckets, [1, 1, 2, 2, 3, 3, 4, 4, 5, 63]);
    }
}
