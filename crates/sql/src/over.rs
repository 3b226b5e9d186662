//! Tables over nodes that programs have made, whose columns are nodes below the row's; and documents, which lie so below any row.
//!
//! ```text
//! CREATE TABLE person OVER ^person(id) (id INTEGER PRIMARY KEY, name TEXT, born INT AT ("birth", "year"))
//! ^person(7,"name") = "Ada"    ^person(7,"birth","year") = 1815    the row (7, 'Ada', 1815)
//! ```
//!
//! A row is there if its node has a value or anything below it. A node that is not there is NULL, and NULL removes it.
//!
//! Invariants
//! - What SQL does not name stays: an UPDATE touches the nodes of the columns that it changes, and a row that moves takes along all
//!   that lies below it. DELETE removes all of that.
//! - A subscript that a column's type cannot be (a text for an INTEGER) is no row.
//! - A row without anything is the value null at its node, so that it is there.

use perilune::key::{code_len, decode_subscript, KeyBuf};
use perilune::limits::KEY_BYTES;
use perilune::{Cursor, Data, NodeRef, Session, Subscript, ValueRef as NodeValue};

use crate::document::{self, Json};
use crate::error::Result;
use crate::row::{self, Row};
use crate::schema::{Key, Over, Place, Table};
use crate::value::{Affinity, Value};

/// The key of the node whose children, or descendants, are a table's rows.
pub(crate) fn table_key(table: &Table) -> Result<KeyBuf> {
    let mut key = row::root_key(&table.root)?;
    if let Some(over) = &table.over {
        row::push_suffix(&mut key, &over.prefix)?;
    }
    Ok(key)
}

fn node(key: &[u8]) -> NodeRef<'_> {
    NodeRef::from_encoded(key, false)
}

/// Whether there is a row at this key.
pub(crate) fn is_row(session: &mut Session, key: &[u8]) -> Result<bool> {
    Ok(session.data(node(key))? != Data::Nothing)
}

/// The value of a column, but for one of the key, of the row at `key`.
pub(crate) fn read(
    session: &mut Session,
    table: &Table,
    over: &Over,
    key: &[u8],
    column: usize,
) -> Result<Value> {
    let Some(Place::Below(codes)) = over.places.get(column) else { return Ok(Value::Null) };
    let place = [key, codes].concat();
    let affinity = table.columns[column].affinity;
    Ok(match session.get_ref(node(&place))? {
        None => Value::Null,
        Some(value) => affinity.apply(value_of(value, affinity)),
    })
}

/// A node's value as SQL sees it.
fn value_of(value: NodeValue<'_>, affinity: Affinity) -> Value {
    match value {
        NodeValue::Null => Value::Null,
        NodeValue::Int(integer) => Value::Integer(integer),
        NodeValue::Double(real) => Value::Real(real),
        NodeValue::Decimal(decimal) => Value::Real(f64::from(decimal)),
        NodeValue::Bool(truth) => Value::Integer(i64::from(truth)),
        NodeValue::String(bytes) => match (affinity, std::str::from_utf8(bytes)) {
            (Affinity::Blob, Err(_)) => Value::Blob(bytes.to_vec()),
            _ => Value::Text(bytes.to_vec()),
        },
        NodeValue::EmptyList => Value::from("[]"),
        NodeValue::EmptyMap => Value::from("{}"),
        record @ NodeValue::Record(_) => Value::from(record.to_string()),
    }
}

/// Reads the row at `key` of a table of either kind, whose bytes from `root` on name it; false: there is none.
pub(crate) fn read_row(
    session: &mut Session,
    table: &Table,
    key: &[u8],
    root: usize,
    row: &mut Row,
) -> Result<bool> {
    let Some(over) = &table.over else {
        let is_there = row::read_stored(session, table, key, root, row)?;
        if is_there && table.has_documents() {
            read_documents(session, table, key, row)?;
        }
        return Ok(is_there);
    };
    row.clear();
    if !is_row(session, key)? {
        return Ok(false);
    }
    for column in 0..table.columns.len() {
        row.push(read(session, table, over, key, column)?);
    }
    row::read_key(table, &key[root..], row)?;
    Ok(true)
}

/// The key of the node at which a document lies, or an element of it.
pub(crate) fn document_key(table: &Table, key: &[u8], column: usize) -> Result<KeyBuf> {
    let (document, path) = match &table.columns[column].element {
        Some(element) => (element.document, &element.path[..]),
        None => (column, &[][..]),
    };
    let depth = NodeRef::from_encoded(key, false).to_node()?.depth();
    let mut place = KeyBuf::from_parts(key, depth, KEY_BYTES).map_err(perilune::Error::from)?;
    for part in std::iter::once(&table.columns[document].name).chain(path) {
        place.push_bytes(part.as_bytes()).map_err(perilune::Error::from)?;
    }
    Ok(place)
}

/// The value of a document, or of an element of one, of the row at `key`.
pub(crate) fn read_document(
    session: &mut Session,
    table: &Table,
    key: &[u8],
    column: usize,
) -> Result<Value> {
    let place = document_key(table, key, column)?;
    let json = document::load(session, place.as_bytes())?;
    Ok(match (json, table.columns[column].is_document) {
        (None, _) => Value::Null,
        (Some(json), true) => Value::Text(json.to_text()),
        (Some(json), false) => json.to_value(),
    })
}

fn read_documents(session: &mut Session, table: &Table, key: &[u8], row: &mut Row) -> Result<()> {
    for column in (0..table.columns.len()).filter(|column| table.columns[*column].is_document) {
        row[column] = read_document(session, table, key, column)?;
    }
    derive(table, row)
}

/// Makes documents their own texts, and computes the elements of them that indexes hold.
pub(crate) fn derive(table: &Table, row: &mut Row) -> Result<()> {
    for column in 0..table.columns.len() {
        let it = &table.columns[column];
        if it.is_document {
            row[column] = Json::of(&row[column])?.map_or(Value::Null, |json| Value::Text(json.to_text()));
        }
        if let Some(element) = &it.element {
            let json = Json::of(&row[element.document])?;
            let found = json.as_ref().and_then(|json| json.element(&element.path));
            row[column] = found.map_or(Value::Null, Json::to_value);
        }
    }
    Ok(())
}

/// Writes the documents of the row at `key`, whose texts were `old` there, or nothing.
pub(crate) fn write_documents(
    session: &mut Session,
    table: &Table,
    old: Option<&Row>,
    row: &Row,
    key: &[u8],
) -> Result<()> {
    for column in (0..table.columns.len()).filter(|column| table.columns[*column].is_document) {
        let before = old.map_or(Ok(None), |old| Json::of(&old[column]))?;
        let after = Json::of(&row[column])?;
        let mut place = document_key(table, key, column)?;
        document::store(session, &mut place, before.as_ref(), after.as_ref())?;
    }
    Ok(())
}

/// Writes the row at `key`: what differs from the one that was `old`, there or at another key.
pub(crate) fn write(
    session: &mut Session,
    over: &Over,
    old: Option<(&Row, &[u8])>,
    row: &Row,
    key: &[u8],
) -> Result<()> {
    if let Some((_, from)) = old.filter(|(_, from)| *from != key) {
        session.merge(node(from), node(key))?;
    }
    for (column, place) in over.places.iter().enumerate() {
        let Place::Below(codes) = place else { continue };
        if old.is_some_and(|(old, _)| old[column] == row[column]) {
            continue;
        }
        let place = [key, codes].concat();
        match &row[column] {
            Value::Null => {
                session.delete_value(node(&place))?;
            }
            Value::Integer(integer) => session.set(node(&place), *integer)?,
            Value::Real(real) => session.set(node(&place), *real)?,
            Value::Text(bytes) | Value::Blob(bytes) => session.set(node(&place), NodeValue::String(bytes))?,
        }
    }
    if !is_row(session, key)? {
        session.set(node(key), NodeValue::Null)?;
    }
    Ok(())
}

/// The largest number of a row.
pub(crate) fn last_rowid(session: &mut Session, key: &KeyBuf) -> Result<Option<i64>> {
    let mut cursor = Cursor::children(node(key.as_bytes())).without_values();
    let first = std::ops::Bound::Included(i64::MIN);
    cursor = cursor.between(first, std::ops::Bound::Included(i64::MAX))?;
    while cursor.previous(session)? {
        if let Some(number) = cursor.integer() {
            return Ok(Some(number));
        }
    }
    Ok(None)
}

/// The bytes of a row's key among those of a node at or below it, from the table's own key on; none: it is no row's.
pub(crate) fn suffix_of<'k>(table: &Table, codes: &'k [u8]) -> Result<Option<&'k [u8]>> {
    let Key::Columns(columns) = &table.key else { return Ok(None) };
    let mut end = 0;
    for _ in columns {
        if end >= codes.len() {
            return Ok(None);
        }
        end += code_len(&codes[end..]).map_err(perilune::Error::from)?;
    }
    Ok(Some(&codes[..end]))
}

/// Whether the subscripts are what the columns of the key can be.
pub(crate) fn is_key(table: &Table, suffix: &[u8]) -> Result<bool> {
    let Key::Columns(columns) = &table.key else { return Ok(true) };
    let mut rest = suffix;
    for column in columns {
        let (subscript, length) = decode_subscript(rest).map_err(perilune::Error::from)?;
        let fits = match subscript {
            Subscript::Number(number) => {
                table.columns[*column].affinity == Affinity::Text || number.as_i64().is_some()
            }
            Subscript::Bytes(_) => table.columns[*column].affinity == Affinity::Text,
        };
        if !fits {
            return Ok(false);
        }
        rest = &rest[length..];
    }
    Ok(true)
}
