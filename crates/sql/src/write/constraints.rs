//! What a row must be: values of defaults and generated columns, NOT NULL, CHECK, types; and what is done where a constraint fails.
//!
//! Expressions are SQLite's to compute, over a helper table of one row: the one that is being written.
//!
//! Invariant: nothing is written here.

use std::collections::HashSet;

use perilune::Session;
use perilune_sqlite::Conflict;

use super::Writer;
use crate::computed::evaluate;
use crate::error::{Error, Result, SqlState};
use crate::exact::with_exact;
use crate::over;
use crate::row::Row;
use crate::schema::{Index, Resolution, Table};
use crate::token::tokens;
use crate::value::Value;
use crate::wide;

impl Writer<'_> {
    /// What a column has that an INSERT does not name.
    pub(super) fn default(&self, session: &mut Session, column: usize) -> Result<Value> {
        let column = &self.table.columns[column];
        let Some(default) = &column.default else { return Ok(Value::Null) };
        if let Some(constant) = crate::definition::constant(default) {
            return Ok(column.store(constant));
        }
        let mut sql = format!("SELECT ({default})");
        if column.decimal.is_some() {
            // `0.1 + 0.2` names no decimals, and is to be one.
            sql = with_exact(&sql, &tokens(&sql)?, HashSet::new())?.sql;
        }
        let rows = self.stage.host()?.run(session, &sql, &[])?;
        let value = rows.into_iter().flatten().next().unwrap_or(Value::Null);
        Ok(column.store(value))
    }

    /// The values of expressions over a row.
    pub(super) fn evaluate(&self, session: &mut Session, row: &Row, expressions: &[&str]) -> Result<Row> {
        evaluate(self.stage, self.table, session, row, expressions)
    }

    /// Computes generated columns.
    pub(super) fn generate(&self, session: &mut Session, row: &mut Row) -> Result<()> {
        for (at, column) in self.table.columns.iter().enumerate() {
            if let Some(expression) = &column.generated {
                let value = self.evaluate(session, row, &[expression])?.pop().unwrap_or(Value::Null);
                row[at] = column.store(value);
            }
        }
        if self.table.has_documents() {
            over::derive(self.table, row)?;
        }
        Ok(())
    }

    /// Checks what a row can break by itself.
    pub(super) fn check(&self, session: &mut Session, row: &mut Row) -> Result<()> {
        for (at, column) in self.table.columns.iter().enumerate() {
            if let (Some(resolution), true) = (column.not_null, row[at].is_null()) {
                if self.resolution(resolution) == Conflict::Replace && column.default.is_some() {
                    row[at] = self.default(session, at)?;
                }
                if row[at].is_null() {
                    let what = format!("NOT NULL constraint failed: {}.{}", self.table.name, column.name);
                    return Err(Error::new(SqlState::NOT_NULL, what));
                }
            }
            if let Some(digits) = column.decimal {
                digits.check(&row[at], &format!("{}.{}", self.table.name, column.name))?;
            }
            if column.is_wide() {
                wide::check(&row[at], &format!("{}.{}", self.table.name, column.name))?;
            }
            if self.table.strict && !column.is_hidden() {
                self.check_type(&row[at], &column.declared, &column.name)?;
            }
        }
        if self.table.checks.is_empty() {
            return Ok(());
        }
        let expressions: Vec<&str> = self.table.checks.iter().map(|check| &check.expression[..]).collect();
        let values = self.evaluate(session, row, &expressions)?;
        for (value, check) in values.iter().zip(&self.table.checks) {
            let holds = match value {
                Value::Null => true,
                Value::Integer(integer) => *integer != 0,
                Value::Real(real) => *real != 0.0,
                Value::Text(_) | Value::Blob(_) => {
                    matches!(crate::value::Affinity::Numeric.apply(value.clone()), Value::Integer(i) if i != 0)
                }
            };
            if !holds {
                let what = format!("CHECK constraint failed: {}", check.name);
                return Err(Error::new(SqlState::CHECK, what));
            }
        }
        Ok(())
    }

    pub(super) fn check_type(&self, value: &Value, declared: &str, column: &str) -> Result<()> {
        let kind = match value {
            Value::Null => return Ok(()),
            Value::Integer(_) => "INTEGER",
            Value::Real(_) => "REAL",
            Value::Text(_) => "TEXT",
            Value::Blob(_) => "BLOB",
        };
        let declared = declared.to_ascii_uppercase();
        if declared == "ANY" || declared == kind || declared == "INT" && kind == "INTEGER" {
            return Ok(());
        }
        let what = format!("cannot store {kind} value in {declared} column {}.{column}", self.table.name);
        Err(Error::new(SqlState::TYPE, what))
    }

    /// What is done about a constraint, by the statement or else by the constraint.
    pub(super) fn resolution(&self, own: Resolution) -> Conflict {
        match (self.conflict, own) {
            (Conflict::Abort, Resolution::Replace) => Conflict::Replace,
            (Conflict::Abort, Resolution::Ignore) => Conflict::Ignore,
            (conflict, _) => conflict,
        }
    }

    /// Answers whether a row that is in the way may be removed.
    pub(super) fn resolve(&self, own: Resolution, columns: &str) -> Result<()> {
        if self.resolution(own) == Conflict::Replace {
            return Ok(());
        }
        Err(Error::new(SqlState::UNIQUE, format!("UNIQUE constraint failed: {columns}")))
    }

    /// What a second row of an index broke: its columns, or the index itself, if it is on an expression.
    pub(super) fn names_of(&self, index: &Index) -> String {
        names_of(self.table, index)
    }

    pub(super) fn key_name(&self) -> String {
        let columns = self.table.key_columns();
        if columns.is_empty() {
            return format!("{}.rowid", self.table.name);
        }
        self.names(columns.iter().copied())
    }

    pub(super) fn names(&self, columns: impl Iterator<Item = usize>) -> String {
        let name = |column: usize| format!("{}.{}", self.table.name, self.table.columns[column].name);
        columns.map(name).collect::<Vec<_>>().join(", ")
    }
}

/// What a second row of an index breaks, as SQLite names it.
pub(crate) fn names_of(table: &Table, index: &Index) -> String {
    let columns = || index.columns.iter().map(|(column, _)| &table.columns[*column]);
    if columns().any(|column| column.computed.is_some()) {
        return format!("index '{}'", index.name);
    }
    columns().map(|column| format!("{}.{}", table.name, column.name)).collect::<Vec<_>>().join(", ")
}
