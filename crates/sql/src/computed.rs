//! What indexes hold that is computed of a row: expressions, and whether an index holds the row at all.
//!
//! SQLite computes it over the helper table of one row, as CHECKs and generated columns, and where a statement asks for an
//! expression that no entry has at hand.
//!
//! Invariant: what is computed depends on the row alone: a function that asks the database is refused meanwhile.

use std::rc::Rc;

use perilune::Session;

use crate::error::Result;
use crate::row::Row;
use crate::schema::{Computed, Table};
use crate::stage::Stage;
use crate::token::quote;
use crate::value::Value;

/// Where the helper tables of expressions begin.
pub(crate) const ROW_PREFIX: &str = "%row ";

/// Computes what the indexes of a table hold of a row.
pub(crate) fn compute(stage: &Stage, session: &mut Session, table: &Table, row: &mut Row) -> Result<()> {
    if !table.has_computed() {
        return Ok(());
    }
    let computations = table.computations();
    let texts: Vec<&str> = computations.iter().map(|(_, text)| &text[..]).collect();
    let values = stage.computing(|| evaluate(stage, table, session, row, &texts))?;
    for ((column, _), value) in computations.iter().zip(values) {
        row[*column] = value;
    }
    Ok(())
}

/// Computes one such column for a statement that wants it.
pub(crate) fn compute_one(
    stage: &Stage,
    session: &mut Session,
    table: &Table,
    row: &Row,
    column: usize,
) -> Result<Value> {
    match &table.columns[column].computed {
        Some(Computed::Expression(text)) => {
            let values = stage.computing(|| evaluate(stage, table, session, row, &[text]))?;
            Ok(values.into_iter().next().unwrap_or(Value::Null))
        }
        // Whoever names a condition knows that it is true.
        _ => Ok(Value::Integer(1)),
    }
}

/// The values of expressions over a row of a table.
pub(crate) fn evaluate(
    stage: &Stage,
    table: &Table,
    session: &mut Session,
    row: &Row,
    expressions: &[&str],
) -> Result<Row> {
    let list = expressions.iter().map(|text| format!("({text})")).collect::<Vec<_>>().join(", ");
    let name = quote(&table.name);
    let helper = quote(&format!("{ROW_PREFIX}{}", table.name));
    let before = stage.row.replace(Rc::new(row.clone()));
    let rows = stage.host()?.run(session, &format!("SELECT {list} FROM {helper} AS {name}"), &[]);
    stage.row.replace(before);
    Ok(rows?.into_iter().next().unwrap_or_default())
}
