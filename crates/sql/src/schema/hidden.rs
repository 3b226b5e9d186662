//! Hidden columns that are computed of a row: what indexes hold that is no column, and which rows they hold.
//!
//! Invariant: a column of an expression is called by its tokens behind `%`, so that the same expression in several indexes, and in
//! a statement, is the same column.

use super::{Collation, Column, Index, Table};
use crate::error::Result;
use crate::token::{normal, tokens, Token};
use crate::value::{Affinity, Value};

/// What a hidden column is computed by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Computed {
    /// What an index holds that is no column.
    Expression(String),
    /// Whether an index holds the row. A statement names it only where it is true for every row that it wants.
    Condition(String),
    /// How a row is used, which is kept beside it.
    Usage,
}

impl Column {
    /// A column that no record keeps.
    pub(super) fn computed(name: String, declared: &str, affinity: Affinity, computed: Computed) -> Column {
        Column {
            name,
            declared: declared.to_owned(),
            affinity,
            collation: Collation::Binary,
            not_null: None,
            default: None,
            generated: None,
            absent: Value::Null,
            field: None,
            span: (0, 0),
            is_document: false,
            decimal: None,
            element: None,
            computed: Some(computed),
        }
    }
}

impl Table {
    /// The column of an expression of an index, or of the condition of the index of this name; it comes into being.
    pub(crate) fn add_computed(&mut self, index: &str, computed: Computed) -> Result<usize> {
        let (name, affinity) = match &computed {
            Computed::Expression(text) => {
                let tokens = tokens(text)?;
                (format!("%{}", normal(&tokens, &[]).join(" ")), affinity_of(&tokens))
            }
            Computed::Condition(_) | Computed::Usage => (format!("%where {index}"), Affinity::Integer),
        };
        if let Some(known) = self.columns.iter().position(|column| column.name == name) {
            return Ok(known);
        }
        self.columns.push(Column::computed(name, "", affinity, computed));
        Ok(self.columns.len() - 1)
    }

    /// Whether indexes hold what is computed of rows.
    pub(crate) fn has_computed(&self) -> bool {
        self.columns.iter().any(|column| column.computed.is_some() && !column.is_usage())
    }

    /// What is computed of a row for its indexes, by column. An expression is not for a row that no index holds which has it: it
    /// might be an error there.
    pub(crate) fn computations(&self) -> Vec<(usize, String)> {
        let of = |(at, column): (usize, &Column)| {
            let text = match column.computed.as_ref()? {
                Computed::Usage => return None,
                Computed::Condition(text) => format!("({text}) IS TRUE"),
                Computed::Expression(text) => match self.guard(at) {
                    Some(guard) => format!("CASE WHEN {guard} THEN ({text}) END"),
                    None => text.clone(),
                },
            };
            Some((at, text))
        };
        self.columns.iter().enumerate().filter_map(of).collect()
    }

    /// When an index has the expression that a column is; none: always.
    fn guard(&self, column: usize) -> Option<String> {
        let has_it = |index: &&Index| index.columns.iter().any(|(other, _)| *other == column);
        let condition = |index: &Index| match &self.columns[index.condition?].computed {
            Some(Computed::Condition(text)) => Some(format!("({text})")),
            _ => None,
        };
        let conditions: Option<Vec<String>> = self.indexes.iter().filter(has_it).map(condition).collect();
        conditions.map(|conditions| conditions.join(" OR ")).filter(|guard| !guard.is_empty())
    }
}

/// How SQLite compares what an expression answers: as what a CAST says that it is, otherwise as it comes.
fn affinity_of(tokens: &[Token<'_>]) -> Affinity {
    let is_cast = tokens.first().is_some_and(|token| token.is("cast"));
    let behind = tokens.iter().rposition(|token| token.is("as"));
    match behind.filter(|_| is_cast) {
        Some(at) => {
            let words: Vec<&str> = tokens[at + 1..tokens.len() - 1].iter().map(|token| token.text).collect();
            Affinity::of(&words.join(" "))
        }
        None => Affinity::Blob,
    }
}
