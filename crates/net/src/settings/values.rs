//! What holds of each setting at the moment.
//!
//! Invariants
//! - Numbers are read without a lock, since requests ask for some each time.
//! - Each was valid when it came.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{PoisonError, RwLock};

use super::kind::Parsed;
use super::table::{Id, Table};

/// A number and a text for each row of a table.
#[derive(Debug)]
pub struct Values<N: 'static> {
    table: &'static Table<N>,
    numbers: Vec<AtomicI64>,
    texts: RwLock<Vec<String>>,
}

impl<N: Id> Values<N> {
    /// All as by default.
    #[must_use]
    pub fn new(table: &'static Table<N>) -> Values<N> {
        let values = Values {
            table,
            numbers: table.rows.iter().map(|_| AtomicI64::new(0)).collect(),
            texts: RwLock::new(vec![String::new(); table.rows.len()]),
        };
        for row in table.rows {
            // Whoever has a table tests that its defaults are valid.
            let _ = values.store(row.id, row.default);
        }
        values
    }

    /// A setting that is a number, a choice (its place), or yes (1).
    #[inline]
    pub fn number(&self, id: N) -> i64 {
        self.numbers[id.place()].load(Ordering::Relaxed)
    }

    /// Whether a setting is yes.
    #[inline]
    pub fn is_on(&self, id: N) -> bool {
        self.number(id) != 0
    }

    /// A setting's text.
    pub fn text(&self, id: N) -> String {
        self.texts.read().unwrap_or_else(PoisonError::into_inner)[id.place()].clone()
    }

    /// Takes `text`, and answers what it was understood as.
    ///
    /// # Errors
    /// What would be right; nothing has changed.
    pub fn store(&self, id: N, text: &str) -> Result<Parsed, String> {
        let parsed = self.table.row(id).kind.parse(text)?;
        self.numbers[id.place()].store(parsed.number, Ordering::Relaxed);
        self.texts.write().unwrap_or_else(PoisonError::into_inner)[id.place()].clone_from(&parsed.text);
        Ok(parsed)
    }
}

#[cfg(test)]
mod tests {
    use super::super::table::tests::{Name, TABLE};
    use super::*;

    #[test]
    fn what_is_not_valid_changes_nothing() {
        let values = Values::new(&TABLE);
        assert_eq!((values.number(Name::Limit), values.text(Name::Bind)), (3, "here there".to_owned()));
        values.store(Name::Limit, "7").unwrap();
        assert!(values.store(Name::Limit, "10").is_err());
        assert_eq!((values.number(Name::Limit), values.text(Name::Limit)), (7, "7".to_owned()));
        assert!(values.is_on(Name::Limit) && !values.is_on(Name::Bind));
    }
}
