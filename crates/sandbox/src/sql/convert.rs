//! Values of SQL as those of Lua, and back.
//!
//! Invariants
//! - A number of Lua that is whole, and not beyond 2^53, is an INTEGER of SQL; another one is a REAL.
//! - A table becomes JSON: a list if it has the keys 1, 2, ... n and no others, else an object.

use perilune_sql::{real_text, Change, Outcome, Rows, Value, ValueRef};

use crate::sandbox::{Part, Parts, Question, Value as Given, Values};

/// Integers up to here are numbers of Lua.
const EXACT: u64 = 1 << 53;

/// How deep tables may stand in a result.
const DEPTH: usize = 100;

/// An argument; what has to be a string of digits stands in `digits`, which [`digits`] has filled for the same arguments.
#[inline]
pub(super) fn argument<'a>(value: &ValueRef<'a>, digits: &mut impl Iterator<Item = &'a String>) -> Given<'a> {
    match value {
        ValueRef::Null => Given::Nothing,
        ValueRef::Integer(integer) if integer.unsigned_abs() <= EXACT => Given::Integer(*integer),
        ValueRef::Integer(_) => digits.next().map_or(Given::Nothing, |text| Given::Text(text.as_bytes())),
        // No function is given -0, which Lua would show with its sign.
        ValueRef::Real(real) => Given::Double(real + 0.0),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => Given::Text(bytes),
    }
}

/// The digits of those integers among arguments that no number of Lua holds.
#[inline]
pub(super) fn digits(arguments: &[ValueRef<'_>]) -> Vec<String> {
    let mut digits = Vec::new();
    for argument in arguments {
        if let ValueRef::Integer(integer) = argument {
            if integer.unsigned_abs() > EXACT {
                digits.push(integer.to_string());
            }
        }
    }
    digits
}

/// The statement and its parameters that a question has.
pub(super) fn parameters(question: &Question<'_>) -> Option<(String, Vec<Value>)> {
    let given = |at: usize| Given::of(question.arguments.get(at).unwrap_or_default());
    let Given::Text(text) = given(0) else { return None };
    let text = String::from_utf8(text.to_vec()).ok()?;
    Some((text, values(question, 1)))
}

/// The values that a question has from one on.
pub(super) fn values(question: &Question<'_>, from: usize) -> Vec<Value> {
    let given = |at: usize| Given::of(question.arguments.get(at).unwrap_or_default());
    (from..question.arguments.len()).map(|at| Value::of(of(given(at)))).collect()
}

/// Tells a function a value.
pub(super) fn tell(value: &Value, values: &mut Values<'_>) {
    match value {
        Value::Null => values.nothing(),
        Value::Integer(integer) if integer.unsigned_abs() <= EXACT => values.integer(*integer),
        Value::Integer(integer) => values.text(integer.to_string().as_bytes()),
        Value::Real(real) => values.double(*real),
        Value::Text(bytes) | Value::Blob(bytes) => values.text(bytes),
    }
}

/// What a value of Lua is to SQL.
#[inline]
pub(super) fn of(given: Given<'_>) -> ValueRef<'_> {
    match given {
        Given::Nothing => ValueRef::Null,
        Given::Truth(truth) => ValueRef::Integer(truth.into()),
        Given::Integer(integer) => ValueRef::Integer(integer),
        Given::Double(double) => ValueRef::Real(double),
        Given::Text(bytes) if std::str::from_utf8(bytes).is_ok() => ValueRef::Text(bytes),
        Given::Text(bytes) => ValueRef::Blob(bytes),
    }
}

/// Tells a trigger the rows of a change; NULL is no field.
pub(super) fn tell_change(change: &Change<'_>, values: &mut Values<'_>) {
    let rows = [(&b"new"[..], change.new), (b"old", change.old)];
    let there = rows.iter().filter_map(|(name, row)| row.map(|row| (name, row)));
    values.table(there.clone().count() + 1);
    values.text(b"may_change");
    values.truth(change.may_change);
    for (name, row) in there {
        values.text(name);
        let fields = || change.columns.iter().zip(row).filter(|(_, value)| !value.is_null());
        values.table(fields().count());
        for (column, value) in fields() {
            values.text(column.as_bytes());
            tell(value, values);
        }
    }
}

/// What a trigger has made of a row: the columns that have changed; none, if the row is to be left out.
///
/// # Errors
/// What it has raised, or what is no row of the table.
pub(super) fn changes(
    part: Part<'_>,
    mut parts: Parts<'_>,
    change: &Change<'_>,
) -> Result<Option<Vec<(usize, Value)>>, String> {
    let mut row = vec![Value::Null; change.columns.len()];
    match part {
        Part::Error(text) => return Err(String::from_utf8_lossy(text).into_owned()),
        Part::Value(Given::Truth(false)) => return Ok(None),
        Part::Table(count) => {
            for _ in 0..count {
                let key = match next(&mut parts)? {
                    Part::Value(Given::Text(key)) => key,
                    _ => return Err("a row has names of columns as its keys".to_owned()),
                };
                let found = change.columns.iter().position(|name| name.as_bytes() == key);
                let Some(at) = found else {
                    return Err(format!("there is no column {}", String::from_utf8_lossy(key)));
                };
                row[at] = match next(&mut parts)? {
                    Part::Value(value) => Value::of(of(value)),
                    table => json_of(table, &mut parts)?,
                };
            }
        }
        Part::List(0) => {}
        Part::List(_) => return Err("a row has names of columns as its keys".to_owned()),
        Part::Value(_) => return Ok(Some(Vec::new())),
    }
    let is_changed =
        |(at, value): &(usize, Value)| change.new.is_none_or(|before| !is_same(&before[*at], value));
    Ok(Some(row.into_iter().enumerate().filter(is_changed).collect()))
}

/// Whether a value came back as it was told.
fn is_same(before: &Value, now: &Value) -> bool {
    match (before, now) {
        (Value::Integer(before), Value::Text(now)) => {
            before.unsigned_abs() > EXACT && before.to_string().as_bytes() == &now[..]
        }
        (Value::Real(before), Value::Integer(now)) => *before == *now as f64,
        (Value::Text(before) | Value::Blob(before), Value::Text(now) | Value::Blob(now)) => before == now,
        _ => before == now,
    }
}

/// Tells a function the rows of a statement as a list of tables; of one without columns, how many rows it has changed.
pub(super) fn tell_rows(rows: &Rows, outcome: Outcome, values: &mut Values<'_>) {
    if rows.columns().is_empty() {
        return values.integer(i64::try_from(outcome.changes).unwrap_or(i64::MAX));
    }
    values.list(rows.len());
    for row in rows {
        // NULL is nil, and no field.
        let fields = || rows.columns().iter().zip(row).filter(|(_, value)| !matches!(value, Value::Null));
        values.table(fields().count());
        for (column, value) in fields() {
            values.text(column.as_bytes());
            tell(value, values);
        }
    }
}

/// What `read` makes of the value that a function has returned: its first part, and those behind that.
///
/// # Errors
/// What it has raised.
#[inline]
pub(super) fn result<R>(
    part: Part<'_>,
    mut parts: Parts<'_>,
    read: impl FnOnce(ValueRef<'_>) -> R,
) -> Result<R, String> {
    match part {
        Part::Value(value) => Ok(read(of(value))),
        Part::Error(text) => Err(String::from_utf8_lossy(text).into_owned()),
        table => json_of(table, &mut parts).map(|json| read(json.as_ref())),
    }
}

/// A table as the text of its JSON.
fn json_of(table: Part<'_>, parts: &mut Parts<'_>) -> Result<Value, String> {
    let mut json = Vec::new();
    write_json(table, parts, 0, &mut json)?;
    Ok(Value::Text(json))
}

fn next<'a>(parts: &mut Parts<'a>) -> Result<Part<'a>, String> {
    parts.next().ok_or_else(|| "a result has no end; this is a bug".to_owned())
}

/// Writes a part, and those that belong to it, as JSON.
fn write_json(part: Part<'_>, parts: &mut Parts<'_>, depth: usize, out: &mut Vec<u8>) -> Result<(), String> {
    if depth > DEPTH {
        return Err(format!("tables stand at most {DEPTH} deep in a result"));
    }
    match part {
        Part::Value(Given::Nothing) => out.extend_from_slice(b"null"),
        Part::Value(Given::Truth(truth)) => out.extend_from_slice(if truth { b"true" } else { b"false" }),
        Part::Value(Given::Integer(integer)) => out.extend_from_slice(integer.to_string().as_bytes()),
        Part::Value(Given::Double(double)) if !double.is_finite() => {
            return Err("a number in a table is not finite, which JSON cannot say".to_owned());
        }
        Part::Value(Given::Double(double)) => out.extend_from_slice(real_text(double).as_bytes()),
        Part::Value(Given::Text(bytes)) => write_string(bytes, out)?,
        Part::Error(text) => return Err(String::from_utf8_lossy(text).into_owned()),
        Part::List(count) => {
            out.push(b'[');
            for at in 0..count {
                if at > 0 {
                    out.push(b',');
                }
                let part = next(parts)?;
                write_json(part, parts, depth + 1, out)?;
            }
            out.push(b']');
        }
        Part::Table(count) => {
            out.push(b'{');
            for at in 0..count {
                if at > 0 {
                    out.push(b',');
                }
                match next(parts)? {
                    Part::Value(Given::Text(key)) => write_string(key, out)?,
                    Part::Value(Given::Integer(key)) => write_string(key.to_string().as_bytes(), out)?,
                    Part::Value(Given::Double(key)) => write_string(real_text(key).as_bytes(), out)?,
                    _ => return Err("a key of a table is neither a string nor a number".to_owned()),
                }
                out.push(b':');
                let part = next(parts)?;
                write_json(part, parts, depth + 1, out)?;
            }
            out.push(b'}');
        }
    }
    Ok(())
}

fn write_string(bytes: &[u8], out: &mut Vec<u8>) -> Result<(), String> {
    let text = std::str::from_utf8(bytes).map_err(|_| "a string in a table is no UTF-8, which JSON wants")?;
    out.push(b'"');
    for letter in text.chars() {
        match letter {
            '"' | '\\' => out.extend_from_slice(&[b'\\', letter as u8]),
            '\0'..='\x1f' => out.extend_from_slice(format!("\\u{:04x}", letter as u32).as_bytes()),
            _ => out.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    out.push(b'"');
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value_of(bytes: &[u8]) -> Result<Value, String> {
        let mut parts = Parts::new(bytes);
        let part = parts.next().expect("a part");
        result(part, parts, Value::of)
    }

    #[test]
    fn what_a_function_returns_becomes_a_value() {
        let mut bytes = Vec::new();
        let mut values = Values::new(&mut bytes);
        values.table(2);
        values.text(b"a\"");
        values.list(2);
        values.integer(1);
        values.double(0.5);
        values.text(b"b");
        values.truth(true);
        assert_eq!(value_of(&bytes), Ok(Value::Text(br#"{"a\"":[1,0.5],"b":true}"#.to_vec())));
        let mut bytes = Vec::new();
        Values::new(&mut bytes).error(b"f:1: no");
        assert_eq!(value_of(&bytes), Err("f:1: no".to_owned()));
        assert_eq!(value_of(b"n"), Ok(Value::Null));
    }

    #[test]
    fn arguments_are_numbers_where_they_are_exact() {
        let all = [1 << 53, i64::MAX, (1 << 53) + 1].map(ValueRef::Integer);
        let digits = digits(&all);
        let mut digits = digits.iter();
        let given = all.map(|value| argument(&value, &mut digits));
        assert_eq!(given[0], Given::Integer(1 << 53));
        assert_eq!(given[1], Given::Text(b"9223372036854775807"));
        assert_eq!(given[2], Given::Text(b"9007199254740993"));
        let mut none = [].iter();
        assert_eq!(argument(&ValueRef::Real(0.1), &mut none), Given::Double(0.1));
        assert!(
            matches!(argument(&ValueRef::Real(-0.0), &mut none), Given::Double(zero) if zero.is_sign_positive())
        );
        assert_eq!(argument(&ValueRef::Null, &mut none), Given::Nothing);
    }
}
