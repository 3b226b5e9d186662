//! `perilune_sql_rows`: rows that a statement, or a walk over a graph, has answered.
//!
//! Invariant: rows are their own memory: they stay until they are closed, whatever becomes of the session.

use std::ffi::c_int;

use perilune_sql::{Outcome, Rows as Answer, Value as SqlValue};

use crate::edge::{given, thread_call};
use crate::session::answer;
use crate::status::{NOT_FOUND, OK};
use crate::value::{Text, Value, BLOB};

/// `perilune_sql_rows`.
pub struct Rows {
    content: Content,
    outcome: Outcome,
}

/// Where rows come from.
enum Content {
    Statement(Answer),
    Table(Table),
}

/// Rows that are no statement's.
#[derive(Default)]
struct Table {
    columns: &'static [&'static str],
    cells: Vec<Value>,
    /// What the cells refer to, which does not move.
    kept: Vec<(perilune::Value, Text)>,
}

impl Rows {
    /// Rows of a statement, and what else has come of it.
    pub(crate) fn of_statement(answer: Answer, outcome: Outcome) -> Rows {
        Rows { content: Content::Statement(answer), outcome }
    }

    /// Rows of another origin than SQL.
    pub(crate) fn of(columns: &'static [&'static str], rows: Vec<Vec<perilune::Value>>) -> Rows {
        let mut table = Table { columns, ..Table::default() };
        for value in rows.into_iter().flatten() {
            let mut text = Text::new();
            table.cells.push(Value::view(value.as_ref(), &mut text));
            table.kept.push((value, text));
        }
        Rows { content: Content::Table(table), outcome: Outcome::default() }
    }

    fn count(&self) -> usize {
        match &self.content {
            Content::Statement(answer) => answer.len(),
            Content::Table(table) => table.cells.len().checked_div(table.columns.len()).unwrap_or(0),
        }
    }

    fn columns(&self) -> usize {
        match &self.content {
            Content::Statement(answer) => answer.columns().len(),
            Content::Table(table) => table.columns.len(),
        }
    }

    fn column(&self, column: usize) -> Option<&str> {
        match &self.content {
            Content::Statement(answer) => answer.columns().get(column).map(String::as_str),
            Content::Table(table) => table.columns.get(column).copied(),
        }
    }

    fn at(&self, row: usize, column: usize) -> Option<Value> {
        match &self.content {
            Content::Statement(answer) => answer.at(row).and_then(|row| row.get(column)).map(shown),
            Content::Table(table) => {
                let start = row.checked_mul(table.columns.len())?;
                let within = column < table.columns.len();
                table.cells.get(start.checked_add(column)?).copied().filter(|_| within)
            }
        }
    }
}

/// `perilune_sql_close`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_sql_close(rows: *mut Rows) {
    thread_call(|| {
        if !rows.is_null() {
            // SAFETY: made by `Box::into_raw`, and by the header nobody uses it any more.
            drop(unsafe { Box::from_raw(rows) });
        }
        Ok(OK)
    });
}

/// `perilune_sql_count`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_sql_count(rows: *const Rows) -> usize {
    // SAFETY: the caller's pointers are good or NULL, as the header asks.
    unsafe { rows.as_ref() }.map_or(0, Rows::count)
}

/// `perilune_sql_columns`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_sql_columns(rows: *const Rows) -> usize {
    // SAFETY: the caller's pointers are good or NULL, as the header asks.
    unsafe { rows.as_ref() }.map_or(0, Rows::columns)
}

/// `perilune_sql_changes`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_sql_changes(rows: *const Rows) -> u64 {
    // SAFETY: the caller's pointers are good or NULL, as the header asks.
    unsafe { rows.as_ref() }.map_or(0, |rows| rows.outcome.changes)
}

/// `perilune_sql_last_row`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_sql_last_row(rows: *const Rows) -> i64 {
    // SAFETY: the caller's pointers are good or NULL, as the header asks.
    unsafe { rows.as_ref() }.map_or(0, |rows| rows.outcome.last_rowid)
}

/// `perilune_sql_column`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_sql_column(rows: *const Rows, column: usize, name: *mut Value) -> c_int {
    thread_call(|| {
        // SAFETY: the caller's pointers are good or NULL, as the header asks.
        unsafe {
            match given(rows)?.column(column) {
                Some(text) => answer(name, Value::bytes(text.as_bytes())),
                None => Ok(NOT_FOUND),
            }
        }
    })
}

/// `perilune_sql_value`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_sql_value(
    rows: *const Rows,
    row: usize,
    column: usize,
    value: *mut Value,
) -> c_int {
    thread_call(|| {
        // SAFETY: the caller's pointers are good or NULL, as the header asks.
        unsafe {
            match given(rows)?.at(row, column) {
                Some(found) => answer(value, found),
                None => Ok(NOT_FOUND),
            }
        }
    })
}

/// A value that stays where it lies.
pub(crate) fn shown(value: &SqlValue) -> Value {
    match value {
        SqlValue::Null => Value::null(),
        SqlValue::Integer(integer) => Value::int(*integer),
        SqlValue::Real(real) => Value::double(*real),
        SqlValue::Text(text) => Value::bytes(text),
        SqlValue::Blob(blob) => Value { kind: BLOB, ..Value::bytes(blob) },
    }
}
