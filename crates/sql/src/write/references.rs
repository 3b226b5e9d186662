//! REFERENCES: the rows that a row refers to are there, and what happens to those that refer to one that goes or changes.
//!
//! Invariant: each is checked at once, in the statement's transaction.

use perilune::Session;

use super::Writer;
use crate::error::{Error, Result, SqlState};
use crate::row::Row;
use crate::schema::{Referential, Table};
use crate::token::{fold, quote};
use crate::value::Value;

impl Writer<'_> {
    /// Checks that rows are there that the row refers to; those that did before need no look.
    pub(super) fn check_parents(&self, session: &mut Session, row: &Row, old: Option<&Row>) -> Result<()> {
        for key in &self.table.foreign_keys {
            let is_same =
                old.is_some_and(|old| key.columns.iter().all(|column| old[*column] == row[*column]));
            let values: Vec<Value> = key.columns.iter().map(|column| row[*column].clone()).collect();
            if is_same || values.iter().any(Value::is_null) {
                continue;
            }
            let host = self.stage.host()?;
            let columns = if key.parent_columns.is_empty() {
                let parent = host.table(session, &key.parent)?;
                let parent = parent.ok_or_else(|| {
                    Error::new(SqlState::NO_TABLE, format!("no such table: {}", key.parent))
                })?;
                primary_columns(&parent)
            } else {
                key.parent_columns.clone()
            };
            if columns.len() != values.len() {
                let what = format!("foreign key mismatch: {} refers to {}", self.table.name, key.parent);
                return Err(Error::new(SqlState::DEFINITION, what));
            }
            let sql = format!("SELECT 1 FROM {} WHERE {} LIMIT 1", quote(&key.parent), equal(&columns));
            let found = match host.run(session, &sql, &values) {
                // What was evicted is there, elsewhere.
                Err(error) if error.state() == SqlState::MISS => continue,
                found => found?,
            };
            if found.is_empty() {
                return Err(foreign_key(&format!(
                    "{} refers to a row of {} that is not there",
                    self.names(key.columns.iter().copied()),
                    key.parent
                )));
            }
        }
        Ok(())
    }

    /// Does to rows that refer to this one what their foreign keys say; `new` is what the row has become.
    pub(super) fn tell_children(&self, session: &mut Session, old: &Row, new: Option<&Row>) -> Result<()> {
        let name = fold(&self.table.name);
        for child in &self.table.children {
            let host = self.stage.host()?;
            let Some(child) = host.table(session, child)? else { continue };
            for key in child.foreign_keys.iter().filter(|key| fold(&key.parent) == name) {
                let columns = if key.parent_columns.is_empty() {
                    primary_columns(self.table)
                } else {
                    key.parent_columns.clone()
                };
                let places: Vec<usize> =
                    columns.iter().filter_map(|column| self.table.column(column)).collect();
                let values: Vec<Value> = places.iter().map(|place| old[*place].clone()).collect();
                let is_kept = new.is_some_and(|new| places.iter().all(|place| new[*place] == old[*place]));
                if is_kept || values.len() != key.columns.len() || values.iter().any(Value::is_null) {
                    continue;
                }
                let action = if new.is_some() { key.on_update } else { key.on_delete };
                let names: Vec<String> =
                    key.columns.iter().map(|column| child.columns[*column].name.clone()).collect();
                let became = new.map(|new| places.iter().map(|place| new[*place].clone()).collect());
                follow(&*host, session, &child, &names, action, Moved { values, became })?;
            }
        }
        Ok(())
    }
}

fn foreign_key(what: &str) -> Error {
    Error::new(SqlState::FOREIGN_KEY, format!("FOREIGN KEY constraint failed: {what}"))
}

/// The columns that a REFERENCES means that names none.
fn primary_columns(table: &Table) -> Vec<String> {
    table.primary_key().iter().map(|column| table.columns[*column].name.clone()).collect()
}

fn equal(columns: &[String]) -> String {
    let one = |(at, column): (usize, &String)| format!("{} = ?{}", quote(column), at + 1);
    columns.iter().enumerate().map(one).collect::<Vec<_>>().join(" AND ")
}

/// Values that others refer to, and what they have become; none if they are gone.
struct Moved {
    values: Vec<Value>,
    became: Option<Vec<Value>>,
}

/// Does to the rows of `child` that refer to the values what `action` says.
fn follow(
    host: &dyn crate::stage::Host,
    session: &mut Session,
    child: &Table,
    columns: &[String],
    action: Referential,
    moved: Moved,
) -> Result<()> {
    let Moved { mut values, became } = moved;
    let table = quote(&child.name);
    let set = |to: &dyn Fn(usize) -> String| {
        let one = |(at, column): (usize, &String)| format!("{} = {}", quote(column), to(at));
        columns.iter().enumerate().map(one).collect::<Vec<_>>().join(", ")
    };
    let count = columns.len();
    let sql = match action {
        Referential::NoAction | Referential::Restrict => {
            let sql = format!("SELECT 1 FROM {table} WHERE {} LIMIT 1", equal(columns));
            if !host.run(session, &sql, &values)?.is_empty() {
                return Err(foreign_key(&format!("rows of {} refer to it", child.name)));
            }
            return Ok(());
        }
        Referential::Cascade => match became {
            None => format!("DELETE FROM {table} WHERE {}", equal(columns)),
            Some(became) => {
                values.extend(became);
                let to = |at: usize| format!("?{}", count + at + 1);
                format!("UPDATE {table} SET {} WHERE {}", set(&to), equal(columns))
            }
        },
        Referential::SetNull => {
            format!("UPDATE {table} SET {} WHERE {}", set(&|_| "NULL".to_owned()), equal(columns))
        }
        Referential::SetDefault => {
            let default = |at: usize| {
                let column =
                    child.column(&columns[at]).and_then(|column| child.columns[column].default.clone());
                format!("({})", column.unwrap_or_else(|| "NULL".to_owned()))
            };
            format!("UPDATE {table} SET {} WHERE {}", set(&default), equal(columns))
        }
    };
    host.run(session, &sql, &values)?;
    Ok(())
}
