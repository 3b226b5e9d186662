//! Rows and index entries as nodes.
//!
//! A row is one node, `^users(7)` or `^line("NO",7)`, whose value is a record of the columns that are not its key. An entry of an
//! index is a node without content, `^users.city("'Oslo",7)`: the indexed values, then the key of the row.
//!
//! Values in indexes are ordered as SQL has it: NULL (the empty subscript), numbers, texts (behind `'`), blobs (behind `~`).
//!
//! Invariants
//! - A key's bytes behind the root name the row for good: they are `%key`, and the end of each entry of an index.
//! - A component decodes to the value that was encoded, but for texts that a collation folds and for a double that is integral.

use std::borrow::Cow;

use perilune::key::{code_len, decode_int, decode_subscript, KeyBuf};
use perilune::{Field, NodeRef, Number, Record, Session, Subscript, ValueRef as NodeValue};

use crate::error::{Error, Result, SqlState};
use crate::limits::COMPONENT_BYTES;
use crate::schema::{Collation, Column, Index, Key, Table};
use crate::value::{Affinity, Value, ValueRef};
use crate::wide;

/// The values of a row, by column.
pub(crate) type Row = Vec<Value>;

/// The key of the global that is called `root`.
pub(crate) fn root_key(root: &str) -> Result<KeyBuf> {
    KeyBuf::global(root).map_err(|error| perilune::Error::from(error).into())
}

fn pushed(result: std::result::Result<(), perilune::KeyError>) -> Result<()> {
    result.map_err(|_| {
        Error::new(SqlState::LIMIT, "the values of a key or index take too many bytes together: shorten them")
    })
}

/// Appends a value of an index.
///
/// # Errors
/// `LIMIT` for long texts, `RANGE` for doubles that no subscript holds.
pub(crate) fn push_component(key: &mut KeyBuf, value: ValueRef<'_>, collation: Collation) -> Result<()> {
    match value {
        ValueRef::Null => pushed(key.push_bytes(b"")),
        ValueRef::Integer(integer) => pushed(key.push_int(integer)),
        ValueRef::Real(real) => match Number::from_f64(real) {
            Ok(number) => pushed(key.push_number(number)),
            Err(_) => Err(Error::new(
                SqlState::RANGE,
                format!("{real:e} cannot be in an index: numbers there are from 1E-43 to 1E47"),
            )),
        },
        ValueRef::Text(text) => push_marked(key, b'\'', &folded(text, collation)),
        ValueRef::Blob(blob) => push_marked(key, b'~', blob),
    }
}

fn push_marked(key: &mut KeyBuf, mark: u8, bytes: &[u8]) -> Result<()> {
    if bytes.len() > COMPONENT_BYTES {
        let what = format!("a value of an index has {COMPONENT_BYTES} bytes at most, not {}", bytes.len());
        return Err(Error::new(SqlState::LIMIT, what));
    }
    let mut marked = Vec::with_capacity(bytes.len() + 1);
    marked.push(mark);
    marked.extend_from_slice(bytes);
    pushed(key.push_bytes(&marked))
}

/// The text by which a collation compares.
fn folded(text: &[u8], collation: Collation) -> Cow<'_, [u8]> {
    match collation {
        Collation::Binary | Collation::Node => Cow::Borrowed(text),
        Collation::Wide => wide::sorted(text),
        Collation::NoCase => Cow::Owned(text.to_ascii_lowercase()),
        Collation::RTrim => {
            let end = text.iter().rposition(|byte| *byte != b' ').map_or(0, |last| last + 1);
            Cow::Borrowed(&text[..end])
        }
    }
}

/// The value that a component of an index, or of a key, stands for.
pub(crate) fn component(subscript: Subscript<'_>, affinity: Affinity) -> Value {
    match subscript {
        Subscript::Number(number) => match number.as_i64() {
            Some(integer) if affinity == Affinity::Real => Value::Real(integer as f64),
            Some(integer) => Value::Integer(integer),
            None => Value::Real(number.to_f64()),
        },
        Subscript::Bytes(bytes) => match bytes.first() {
            None => Value::Null,
            Some(b'~') => Value::Blob(bytes[1..].to_vec()),
            Some(_) => Value::Text(bytes[1..].to_vec()),
        },
    }
}

/// Appends a value of the key of a table without rowid.
pub(crate) fn push_key_part(key: &mut KeyBuf, column: &Column, value: ValueRef<'_>) -> Result<()> {
    match (column.affinity, value) {
        (Affinity::Text, ValueRef::Text(text)) if text.len() <= COMPONENT_BYTES => {
            pushed(key.push_bytes(text))
        }
        (Affinity::Text, ValueRef::Text(text)) => {
            let what =
                format!("a text in a PRIMARY KEY has {COMPONENT_BYTES} bytes at most, not {}", text.len());
            Err(Error::new(SqlState::LIMIT, what))
        }
        (Affinity::Text, _) => {
            let what = format!("{} is TEXT and names the row: it cannot be a blob", column.name);
            Err(Error::new(SqlState::TYPE, what))
        }
        (_, value) => push_component(key, value, Collation::Binary),
    }
}

/// The value of a column of the key that a subscript is.
pub(crate) fn key_part(column: &Column, subscript: Subscript<'_>) -> Value {
    match column.affinity {
        Affinity::Text => Value::Text(subscript.to_text().into_owned()),
        affinity => component(subscript, affinity),
    }
}

/// Appends the subscripts that the bytes of `suffix` are.
pub(crate) fn push_suffix(key: &mut KeyBuf, mut suffix: &[u8]) -> Result<()> {
    while !suffix.is_empty() {
        let length = code_len(suffix).map_err(perilune::Error::from)?;
        pushed(key.push_code(&suffix[..length]))?;
        suffix = &suffix[length..];
    }
    Ok(())
}

/// Makes `key` that of the row with these values; `rowid` counts if the table has one.
pub(crate) fn row_key(table: &Table, rowid: i64, row: &[Value], key: &mut KeyBuf) -> Result<()> {
    match &table.key {
        Key::Rowid { .. } => pushed(key.push_int(rowid)),
        Key::Columns(columns) => columns
            .iter()
            .try_for_each(|column| push_key_part(key, &table.columns[*column], row[*column].as_ref())),
    }
}

/// Puts what a row's key says into its columns.
pub(crate) fn read_key(table: &Table, suffix: &[u8], row: &mut [Value]) -> Result<()> {
    match &table.key {
        Key::Rowid { column: None, .. } => {}
        Key::Rowid { column: Some(column), .. } => {
            row[*column] = decode_int(suffix).map_or(Value::Null, Value::Integer);
        }
        Key::Columns(columns) => {
            let mut rest = suffix;
            for column in columns {
                let (subscript, length) = decode_subscript(rest).map_err(perilune::Error::from)?;
                row[*column] = key_part(&table.columns[*column], subscript);
                rest = &rest[length..];
            }
        }
    }
    Ok(())
}

/// Whether the bytes behind the table's root are as many subscripts as its key has.
pub(crate) fn names_row(table: &Table, mut suffix: &[u8]) -> bool {
    let Key::Columns(columns) = &table.key else {
        return code_len(suffix).is_ok_and(|length| length == suffix.len()) && decode_int(suffix).is_some();
    };
    for _ in columns {
        let Ok(length) = code_len(suffix) else { return false };
        suffix = &suffix[length..];
    }
    suffix.is_empty()
}

/// The values of the row whose record these fields are, but for those of its key.
pub(crate) fn read_record(table: &Table, fields: &[u8], row: &mut [Value]) -> Result<()> {
    let mut record = Record::new(fields);
    for column in &table.fields {
        let field = record.next_field().map_err(perilune::Error::from)?;
        if let Some(column) = column {
            row[*column] = Value::of(of_field(field, &table.columns[*column]));
        }
    }
    Ok(())
}

/// A field as SQL sees it.
#[inline]
pub(crate) fn of_field<'a>(field: Field<'a>, column: &'a Column) -> ValueRef<'a> {
    match field {
        Field::Absent => column.absent.as_ref(),
        Field::Null => ValueRef::Null,
        Field::Bool(truth) => ValueRef::Integer(i64::from(truth)),
        Field::Int(integer) => ValueRef::Integer(integer),
        Field::Double(real) => ValueRef::Real(real),
        Field::Decimal(decimal) => ValueRef::Real(f64::from(decimal)),
        Field::Text(text) => ValueRef::Text(text),
        Field::Blob(blob) => ValueRef::Blob(blob),
    }
}

/// Encodes the record of a row.
pub(crate) fn write_record(table: &Table, row: &[Value], out: &mut Vec<u8>) {
    out.clear();
    for column in &table.fields {
        let field = match column.map(|column| &row[column]) {
            None => Field::Absent,
            // It lies as nodes below the row.
            Some(_) if column.is_some_and(|column| table.columns[column].is_document) => Field::Absent,
            Some(Value::Null) => Field::Null,
            Some(Value::Integer(integer)) => Field::Int(*integer),
            Some(Value::Real(real)) => Field::Double(*real),
            Some(Value::Text(text)) => Field::Text(text),
            Some(Value::Blob(blob)) => Field::Blob(blob),
        };
        field.encode_into(out);
    }
}

/// Reads the row whose record lies at `key`, whose bytes from `root` on name it; false: there is none.
pub(crate) fn read_stored(
    session: &mut Session,
    table: &Table,
    key: &[u8],
    root: usize,
    row: &mut Row,
) -> Result<bool> {
    row.clear();
    row.resize(table.columns.len(), Value::Null);
    let fields = match session.get_ref(NodeRef::from_encoded(key, false))? {
        Some(NodeValue::Record(fields)) => fields,
        _ => return Ok(false),
    };
    read_record(table, fields, row)?;
    read_key(table, &key[root..], row)?;
    Ok(true)
}

/// Makes `key` that of a row's entry in an index, without the row's own key at its end for one that is unique and has no NULL;
/// answers whether it has none.
pub(crate) fn index_key(index: &Index, row: &[Value], suffix: &[u8], key: &mut KeyBuf) -> Result<bool> {
    let mut has_null = false;
    for (column, collation) in &index.columns {
        let value = &row[*column];
        has_null |= value.is_null();
        push_component(key, value.as_ref(), *collation)?;
    }
    let alone = index.unique && !has_null;
    if !alone {
        push_suffix(key, suffix)?;
    }
    Ok(alone)
}
