//! Records of scalars: one child a field. What the patterns (sets, records, columns, relations, graphs) are made of.
//!
//! Invariants
//! - A field is a scalar with a kind; null is no field. Numbers are stored as `Document` stores them.
//! - A record without a field has the value "" itself, so that it is there.

use perilune::{Cursor, Node, Session, Subscript, SubscriptBuf, Value};
use serde_json::Map;

use crate::leaf::{name, shown, stored, text};
use crate::{Error, Json, Result, Shape};

/// Fields by name.
pub type Fields = Map<String, Json>;

/// The children of a node, without an empty one.
pub(crate) fn children(session: &mut Session, node: &Node) -> Result<Vec<SubscriptBuf>> {
    let mut cursor = Cursor::children(node).without_empty().without_values();
    let mut found = Vec::new();
    while cursor.next(session)? {
        found.push(cursor.subscript()?.into_owned());
    }
    Ok(found)
}

/// The children of a node, as JSON.
pub(crate) fn names(session: &mut Session, node: &Node) -> Result<Vec<Json>> {
    children(session, node)?.iter().map(|subscript| shown_subscript(node, subscript)).collect()
}

/// A subscript in JSON: an integer, or a text.
pub(crate) fn shown_subscript(node: &Node, subscript: &SubscriptBuf) -> Result<Json> {
    match subscript.as_i64() {
        Some(integer) => Ok(Json::from(integer)),
        None => Ok(Json::from(name(node, subscript)?)),
    }
}

/// Whether there is anything at or below a node.
pub(crate) fn exists(session: &mut Session, node: &Node) -> Result<bool> {
    let data = session.data(node)?;
    Ok(data.has_value() || data.has_descendants())
}

/// The value of a scalar that is not null.
pub(crate) fn scalar(name: &str, json: &Json) -> Result<Value> {
    let is_scalar = !matches!(json, Json::Null | Json::Array(_) | Json::Object(_));
    match stored(json, Shape::default()) {
        Some(value) if is_scalar => Ok(value),
        _ => Err(Error::Call(format!(
            "{name:?} must be a text, a number or a truth value: documents hold more"
        ))),
    }
}

/// The text of a scalar as a subscript of an index: that which M sees.
pub(crate) fn key(name: &str, json: &Json) -> Result<Vec<u8>> {
    Ok(text(scalar(name, json)?.as_ref()))
}

/// The text of a subscript that names a record: never empty.
pub(crate) fn identity(name: &str, json: &Json) -> Result<Vec<u8>> {
    match key(name, json)? {
        text if text.is_empty() => Err(Error::Call(format!("{name:?} is empty, which no subscript may be"))),
        text => Ok(text),
    }
}

/// Changes fields of the record at `node`, null deleting one, and has it there even without any.
pub(crate) fn merge(session: &mut Session, node: &Node, fields: &Fields) -> Result<()> {
    for (name, json) in fields {
        let field = node.child(name)?;
        match json {
            Json::Null => session.delete_tree(&field)?,
            json => session.set(&field, &scalar(name, json)?)?,
        }
    }
    if !exists(session, node)? {
        session.set(node, "")?;
    }
    Ok(())
}

/// The fields of the record at `node`; `None` if there is no record.
pub(crate) fn fields(session: &mut Session, node: &Node) -> Result<Option<Fields>> {
    let entries = session.get_tree(node)?;
    if entries.is_empty() {
        return Ok(None);
    }
    let mut fields = Fields::new();
    for (field, value) in entries {
        if let (true, Some(subscript)) = (field.depth() == node.depth() + 1, field.last()?) {
            fields.insert(name(&field, &subscript)?, shown(&field, &value, Shape::default())?);
        }
    }
    Ok(Some(fields))
}

/// The value of one field in JSON.
pub(crate) fn field(session: &mut Session, node: &Node) -> Result<Option<Json>> {
    match session.get(node)? {
        None => Ok(None),
        Some(value) => shown(node, &value, Shape::default()).map(Some),
    }
}

/// The next number of a counter whose number names nothing yet.
pub(crate) fn fresh(session: &mut Session, counter: &Node, records: &Node) -> Result<i64> {
    loop {
        let number = session.increment(counter, 1)?;
        let number =
            number.as_i64().ok_or_else(|| Error::Damaged(format!("{counter} is no whole number")))?;
        if !exists(session, &records.child(number)?)? {
            return Ok(number);
        }
    }
}

/// Raises a counter to the number that a caller has given, if it is one.
pub(crate) fn raise(session: &mut Session, counter: &Node, given: &[u8]) -> Result<()> {
    let Some(number) = Subscript::from_bytes(given).as_i64() else { return Ok(()) };
    let before = session.get_ref(counter)?.and_then(crate::leaf::integer).unwrap_or(0);
    if number > before {
        session.set(counter, number)?;
    }
    Ok(())
}
