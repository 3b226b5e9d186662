//! Indexes that code keeps, as tables know them.
//!
//! Invariant: the columns of the table of entries have the names that are made here.

/// An index whose entries code in another language keeps: rows of a table that has the index's name, each a value and the key of
/// a row. A row may have several values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CodeIndex {
    pub(crate) name: String,
    /// What stands for a value in a WHERE, `relindx()`.
    pub(crate) function: String,
    /// Called with the names of the table and the index when it is made.
    pub(crate) constructor: String,
    /// Called so before it is dropped.
    pub(crate) destructor: Option<String>,
}

impl CodeIndex {
    /// What the column of values is called in the table of entries.
    pub(crate) const VALUE: &'static str = "value";

    /// What the columns of a key of so many are called there.
    pub(crate) fn key_names(count: usize) -> Vec<String> {
        match count {
            1 => vec!["key".to_owned()],
            _ => (1..=count).map(|at| format!("key{at}")).collect(),
        }
    }
}
