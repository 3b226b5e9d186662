//! Nodes inside scripts: what `perilune.node` asks for, in the script's transaction.
//!
//! Invariants
//! - Only who may use the commands PERILUNE.* reaches nodes; the names of the database alone, not the
//!   session's local ones.

use perilune::{Node, Number, Session, Subscript, Value, ValueRef};
use perilune_luahost::sandbox::Texts;
use perilune_resp::{Protocol, Replies};

use crate::failure::{refuse, Result};

/// An argument, with its type.
pub(super) enum Given<'a> {
    Nothing,
    Truth(bool),
    Int(i64),
    Double(f64),
    Bytes(&'a [u8]),
}

pub(super) fn given(text: &[u8]) -> Result<Given<'_>> {
    let number = || std::str::from_utf8(&text[1..]).ok();
    match text.first() {
        Some(b's') => Ok(Given::Bytes(&text[1..])),
        Some(b'i') => match number().and_then(|text| text.parse().ok()) {
            Some(number) => Ok(Given::Int(number)),
            None => refuse("ERR a number is none"),
        },
        Some(b'd') => match number().and_then(|text| text.parse().ok()) {
            Some(number) => Ok(Given::Double(number)),
            None => refuse("ERR a number is none"),
        },
        Some(b't') => Ok(Given::Truth(true)),
        Some(b'f') => Ok(Given::Truth(false)),
        _ => Ok(Given::Nothing),
    }
}

pub(super) fn push(node: Node, subscript: &Given<'_>) -> Result<Node> {
    match subscript {
        Given::Bytes(bytes) => Ok(node.with(*bytes)?),
        Given::Int(number) => Ok(node.with(*number)?),
        Given::Double(number) => Ok(node.with(*number)?),
        Given::Nothing | Given::Truth(_) => refuse("ERR a subscript is a string or a number"),
    }
}

/// Answers a question of nodes.lua: the operation, how many arguments name the node, those, and a value.
pub(crate) fn answer(
    session: &mut Session,
    texts: Texts<'_>,
    writes: bool,
    answer: &mut Vec<u8>,
) -> Result<()> {
    let replies = &mut Replies::new(answer, Protocol::Resp3);
    let operation = texts.get(0).and_then(|text| text.get(1..)).unwrap_or_default();
    let Given::Int(count) = given(texts.get(1).unwrap_or_default())? else {
        return refuse("ERR a count is missing");
    };
    let count = usize::try_from(count).unwrap_or(0);
    let Given::Bytes(name) = given(texts.get(2).unwrap_or_default())? else {
        return refuse("ERR a name is a string");
    };
    let Some(name) = std::str::from_utf8(name).ok().filter(|name| name.starts_with('^')) else {
        return refuse("ERR scripts reach the names of the database only, which begin with ^");
    };
    let mut node = Node::new(name)?;
    for index in 3..2 + count {
        node = push(node, &given(texts.get(index).unwrap_or_default())?)?;
    }
    let value = given(texts.get(2 + count).unwrap_or(b"n"))?;
    if !writes && matches!(operation, b"set" | b"empty" | b"incr" | b"delete" | b"kill") {
        return refuse("ERR Write commands are not allowed from read-only scripts.");
    }
    match operation {
        b"get" => tell(session.get_ref(&node)?, replies),
        b"value" => match session.get_ref(&node)? {
            Some(ValueRef::EmptyMap | ValueRef::EmptyList) => replies.array(0),
            value => tell(value, replies),
        },
        b"empty" => {
            session.set(&node, Value::EmptyMap)?;
            replies.null();
        }
        b"data" => replies.integer(i64::from(session.data(&node)?.number())),
        b"text" => replies.bulk(node.to_string().as_bytes()),
        b"delete" => replies.truth(session.delete_value(&node)?),
        b"kill" => {
            session.delete_tree(&node)?;
            replies.null();
        }
        b"set" => match set(session, &node, &value)? {
            Some(()) => replies.null(),
            None => return refuse("ERR there is no value to set"),
        },
        b"incr" => match increase(session, &node, &value)? {
            Some(sum) => number(sum, replies),
            None => return refuse("ERR a node is increased by a number"),
        },
        b"next" | b"previous" => neighbour(session, node, &value, operation == b"next", replies)?,
        _ => return refuse("ERR a node has no such operation"),
    }
    Ok(())
}

/// Sets a node; None if there is no value.
pub(super) fn set(session: &mut Session, node: &Node, value: &Given<'_>) -> Result<Option<()>> {
    match *value {
        Given::Bytes(bytes) => session.set(node, bytes)?,
        Given::Int(number) => session.set(node, number)?,
        Given::Double(number) => session.set(node, number)?,
        Given::Truth(truth) => session.set(node, truth)?,
        Given::Nothing => return Ok(None),
    }
    Ok(Some(()))
}

/// Increases a node; None if `by` is no number.
pub(super) fn increase(session: &mut Session, node: &Node, by: &Given<'_>) -> Result<Option<Number>> {
    Ok(match *by {
        Given::Int(by) => Some(session.increment(node, by)?),
        Given::Double(by) => Some(session.increment(node, by)?),
        _ => None,
    })
}

/// The child behind or before one, or the first or the last.
pub(super) fn child_beside(
    session: &mut Session,
    node: Node,
    from: &Given<'_>,
    forward: bool,
) -> Result<Option<Node>> {
    Ok(match (from, forward) {
        (Given::Nothing, true) => session.first_child(&node)?,
        (Given::Nothing, false) => session.last_child(&node)?,
        (_, true) => session.sibling_after(&push(node, from)?)?,
        (_, false) => session.sibling_before(&push(node, from)?)?,
    })
}

/// The subscript of the child behind or before one, or of the first or the last.
fn neighbour(
    session: &mut Session,
    node: Node,
    from: &Given<'_>,
    forward: bool,
    replies: &mut Replies<'_>,
) -> Result<()> {
    let found = child_beside(session, node, from, forward)?;
    match found.as_ref().map(Node::last).transpose()?.flatten() {
        None => replies.null(),
        Some(Subscript::Bytes(bytes)) => replies.bulk(&bytes),
        Some(Subscript::Number(found)) => number(found, replies),
    }
    Ok(())
}

fn number(number: Number, replies: &mut Replies<'_>) {
    tell(Some(ValueRef::from(number)), replies);
}

/// A value, as Lua is to see it: numbers beyond doubles as text.
fn tell(value: Option<ValueRef<'_>>, replies: &mut Replies<'_>) {
    const EXACT: u64 = 1 << 53;
    match value {
        None | Some(ValueRef::Null) => replies.null(),
        Some(ValueRef::Bool(truth)) => replies.raw(if truth { b"#t\r\n" } else { b"#f\r\n" }),
        Some(ValueRef::Int(number)) if number.unsigned_abs() <= EXACT => replies.integer(number),
        Some(ValueRef::Double(number)) => replies.double(number),
        Some(ValueRef::String(bytes)) => replies.bulk(bytes),
        Some(other) => {
            let mut text = Vec::new();
            other.write_text(&mut text);
            replies.bulk(&text);
        }
    }
}
