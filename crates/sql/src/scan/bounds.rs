//! What values bound: components of keys and indexes, and numbers of rows.
//!
//! Invariant: a bound leaves out no row that SQLite would find; where it may let one more in, SQLite checks again.

use perilune::key::{code_len, KeyBuf};

use crate::error::Result;
use crate::plan;
use crate::row::{push_component, push_key_part};
use crate::schema::{Collation, Index, Key, Table};
use crate::value::{Affinity, Value, ValueRef};

/// The affinity for comparing, and the collation, of a component of an index, or of the key of a table of columns.
pub(super) fn component_of(table: &Table, index: Option<&Index>, at: usize) -> (Affinity, Collation) {
    let own = |at: usize| match &table.key {
        Key::Columns(columns) if at < columns.len() => (table.columns[columns[at]].affinity, Collation::Node),
        _ => (Affinity::Integer, Collation::Binary),
    };
    match index {
        Some(index) if at < index.columns.len() => {
            let (column, collation) = index.columns[at];
            // NB: SQLite compares numbers exactly, also a large integer with a column of doubles: none is made a double first.
            let affinity = match table.columns[column].affinity {
                Affinity::Real => Affinity::Numeric,
                other => other,
            };
            (affinity, collation)
        }
        Some(index) => own(at - index.columns.len()),
        None => own(at),
    }
}

/// Appends the value of a component.
pub(super) fn push_value(
    table: &Table,
    index: Option<&Index>,
    at: usize,
    value: ValueRef<'_>,
    key: &mut KeyBuf,
) -> Result<()> {
    let (affinity, collation) = component_of(table, index, at);
    let value = if affinity == Affinity::Blob { Value::of(value) } else { affinity.apply(Value::of(value)) };
    let behind_index = index.map_or(Some(at), |index| at.checked_sub(index.columns.len()));
    match (&table.key, behind_index) {
        (Key::Columns(columns), Some(part)) => {
            push_key_part(key, &table.columns[columns[part]], value.as_ref())
        }
        _ => push_component(key, value.as_ref(), collation),
    }
}

/// How many subscripts the bytes are.
pub(super) fn parts(mut codes: &[u8]) -> Option<usize> {
    let mut count = 0;
    while !codes.is_empty() {
        codes = codes.get(code_len(codes).ok()?..)?;
        count += 1;
    }
    Some(count)
}

/// The number that a value is equal to.
pub(super) fn number_of(value: ValueRef<'_>) -> Option<i64> {
    match Affinity::Integer.apply(Value::of(value)) {
        Value::Integer(integer) => Some(integer),
        _ => None,
    }
}

/// The numbers that a comparison leaves, from and to; none: none at all.
pub(super) fn bound_of(value: ValueRef<'_>, sign: char) -> Option<(i64, i64)> {
    let is_low = matches!(sign, plan::GREATER | plan::GREATER_EQUAL);
    let all = (i64::MIN, i64::MAX);
    match (Affinity::Integer.apply(Value::of(value)), is_low) {
        (Value::Null, _) => None,
        // Texts and blobs are greater than all numbers.
        (Value::Text(_) | Value::Blob(_), is_low) => (!is_low).then_some(all),
        (Value::Integer(integer), true) => {
            let from = if sign == plan::GREATER { integer.checked_add(1)? } else { integer };
            Some((from, i64::MAX))
        }
        (Value::Integer(integer), false) => {
            let to = if sign == plan::LESS { integer.checked_sub(1)? } else { integer };
            Some((i64::MIN, to))
        }
        // No integer, or one beyond: the next one, by a cast that ends at the ends.
        (Value::Real(real), true) if real >= i64::MAX as f64 => None,
        (Value::Real(real), true) => Some((real.ceil() as i64, i64::MAX)),
        (Value::Real(real), false) if real < i64::MIN as f64 => None,
        (Value::Real(real), false) => Some((i64::MIN, real.floor() as i64)),
    }
}

/// A bound that subscripts can have: a double beyond them becomes the last one, or zero, with a sign that says as much.
pub(super) fn within(value: Value, sign: char) -> (Value, char) {
    const LARGEST: f64 = 9.99e46;
    const SMALLEST: f64 = 1e-43;
    let Value::Real(real) = value else { return (value, sign) };
    let is_low = matches!(sign, plan::GREATER | plan::GREATER_EQUAL);
    let (edge, is_above) = if real.abs() > LARGEST {
        (LARGEST.copysign(real), real > 0.0)
    } else if real != 0.0 && real.abs() < SMALLEST {
        (0.0, real > 0.0)
    } else {
        return (value, sign);
    };
    // What is above the edge begins behind it; what is below includes it.
    let sign = match (is_low, is_above) {
        (true, true) => plan::GREATER,
        (true, false) => plan::GREATER_EQUAL,
        (false, true) => plan::LESS_EQUAL,
        (false, false) => plan::LESS,
    };
    (Value::Real(edge), sign)
}
