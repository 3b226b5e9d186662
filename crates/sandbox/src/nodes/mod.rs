//! Nodes inside sandboxes: what `perilune.node` asks for ([`Library::nodes`](crate::sandbox::Library::nodes)), in the transaction
//! that is open.
//!
//! Example: a host answers a question of that library by `answer(session, question.arguments, &terms, bytes)`.
//!
//! Invariants
//! - Names are those of the database alone, not the session's local ones.
//! - What is behind the fence is refused where it is named, and passed over by walks.
//!
//! Deliberately absent: who may ask; that is the host's to know, before it answers.

mod failure;
pub mod json;

use std::time::Duration;

use self::failure::{refuse, refuse_with};
pub use self::failure::{Failure, Result};
use crate::sandbox::{Texts, Value as Given, Values};
use perilune::remote::Fence;
use perilune::{LockMode, LockOwners, Node, Number, Session, Steps, Subscript, Value, ValueRef};

/// The operation that a question is about.
#[inline]
pub fn operation<'a>(texts: &Texts<'a>) -> &'a [u8] {
    match Given::of(texts.get(0).unwrap_or_default()) {
        Given::Text(operation) => operation,
        _ => b"",
    }
}

/// The node with one more subscript.
pub fn push(node: Node, subscript: &Given<'_>) -> Result<Node> {
    match subscript {
        Given::Text(bytes) => Ok(node.with(*bytes)?),
        Given::Integer(number) => Ok(node.with(*number)?),
        Given::Double(number) => Ok(node.with(*number)?),
        Given::Nothing | Given::Truth(_) => refuse("ERR a subscript is a string or a number"),
    }
}

const PRIVATE: &str = "ERR scripts reach the names of the database only, which begin with ^";

/// What holds for a run's operations.
pub struct Terms<'f> {
    /// It may change nodes.
    pub writes: bool,
    /// What it does not reach.
    pub fence: Option<&'f Fence>,
    /// Bytes that an answer may take.
    pub room: usize,
    /// It is a function of a program, whose errors begin with the names of their kinds.
    pub shipped: bool,
}

impl Terms<'_> {
    /// Refuses an operation of a node that is closed.
    pub fn check(&self, operation: &[u8], node: &Node) -> Result<()> {
        let Some(fence) = self.fence.filter(|fence| fence.closes(node)) else { return Ok(()) };
        let walks =
            node.depth() == 0 && matches!(operation, b"next" | b"previous" | b"after" | b"before" | b"step");
        match operation {
            b"text" | b"subscript" => Ok(()),
            _ if walks => Ok(()),
            _ => refuse_with(format!("{} {}", if self.shipped { "REFUSED" } else { "NOPERM" }, fence.why())),
        }
    }

    /// Refuses a value of so many bytes if its answer has no room.
    pub fn check_room(&self, bytes: usize) -> Result<()> {
        if bytes > self.room {
            // A program's function may have more room where it comes from.
            let word = if self.shipped { "LEAVE" } else { "ERR" };
            return refuse_with(format!("{word} not enough memory for the script: see script-memory-limit"));
        }
        Ok(())
    }
}

/// What read-only scripts may not ask for.
const WRITES: [&[u8]; 12] = [
    b"set",
    b"incr",
    b"delete",
    b"kill",
    b"copy",
    b"merge",
    b"number",
    b"null",
    b"empty_list",
    b"empty_map",
    b"grab",
    b"release",
];

/// The node whose name and subscripts are `count` texts from `start` on; `private`: the refusal of other names than
/// the database's.
pub fn named(texts: &Texts<'_>, start: usize, count: usize, private: &'static str) -> Result<Node> {
    let Given::Text(name) = Given::of(texts.get(start).unwrap_or_default()) else {
        return refuse("INVALID a name is a string");
    };
    let Some(name) = std::str::from_utf8(name).ok().filter(|name| name.starts_with('^')) else {
        return refuse(private);
    };
    let mut node = Node::new(name)?;
    for index in start + 1..start + count {
        node = push(node, &Given::of(texts.get(index).unwrap_or_default()))?;
    }
    Ok(node)
}

/// Copies the tree of a node to another, or lays it over that.
pub fn graft(session: &mut Session, operation: &[u8], from: &Node, to: &Node) -> Result<()> {
    if operation == b"copy" {
        session.copy(from, to)?;
    } else {
        session.merge(from, to)?;
    }
    Ok(())
}

/// The value that an operation is named after.
pub fn without_content(operation: &[u8]) -> Value {
    match operation {
        b"null" => Value::Null,
        b"empty_list" => Value::EmptyList,
        _ => Value::EmptyMap,
    }
}

/// Whether a text of JSON is a number; sets a node to it, if it is meant to.
pub fn set_number(
    session: &mut Session,
    node: &Node,
    text: &Given<'_>,
    sets: bool,
    values: &mut Values<'_>,
) -> Result<()> {
    let Given::Text(text) = text else { return refuse("INVALID a number is text") };
    let number = json::read_number(text);
    values.integer(number.is_some().into());
    if let Some(number) = number.filter(|_| sets) {
        session.set(node, number)?;
    }
    Ok(())
}

/// Locks belong to the session that runs the script's command, which releases them at its end (`aside`). A wait is
/// short: nodes.lua asks again, so that the script can be stopped meanwhile.
fn lock(
    session: &mut Session,
    operation: &[u8],
    node: &Node,
    value: &Given<'_>,
    values: &mut Values<'_>,
) -> Result<()> {
    const LONGEST: u64 = 20;
    let owner = session.lock_owner();
    match operation {
        b"grab" => {
            let Given::Integer(milliseconds) = *value else { return refuse("ERR a timeout is a number") };
            let wait = Duration::from_millis(u64::try_from(milliseconds).unwrap_or(0).min(LONGEST));
            values.integer(session.lock(node, LockMode::Exclusive, Some(wait))?.into());
        }
        b"release" => values.integer(session.unlock(node)?.into()),
        b"release_all" => {
            session.unlock_all(owner)?;
            values.nothing();
        }
        _ => values.integer(session.lock_count(owner, node)?.into()),
    }
    Ok(())
}

/// Answers a question of nodes.lua: the operation, how many arguments name the node, those, and a value.
pub fn answer(
    session: &mut Session,
    texts: Texts<'_>,
    terms: &Terms<'_>,
    answer: &mut Vec<u8>,
) -> Result<()> {
    let values = &mut Values::new(answer);
    let operation = operation(&texts);
    let Given::Integer(count) = Given::of(texts.get(1).unwrap_or_default()) else {
        return refuse("ERR a count is missing");
    };
    let (count, private) = (usize::try_from(count).unwrap_or(0).min(texts.len()), PRIVATE);
    let (node, at) = (named(&texts, 2, count, private)?, 2 + count);
    let value = Given::of(texts.get(at).unwrap_or_default());
    if !terms.writes && WRITES.contains(&operation) {
        return refuse("ERR Write commands are not allowed from read-only scripts.");
    }
    terms.check(operation, &node)?;
    match operation {
        b"copy" | b"merge" => {
            let to = named(&texts, at, texts.len().saturating_sub(at), private)?;
            terms.check(operation, &to)?;
            graft(session, operation, &node, &to)?;
            values.nothing();
            Ok(())
        }
        b"grab" | b"release" | b"release_all" | b"lock_count" => {
            lock(session, operation, &node, &value, values)
        }
        b"json" => json::child(session, node, &value, terms, values, subscript),
        b"json_own" => json::own(session, &node, terms, values),
        b"get" | b"value" | b"data" | b"text" | b"next" | b"previous" | b"is_number" => {
            read(session, operation, node, &value, terms, values)
        }
        _ => write(session, operation, &node, &value, values),
    }
}

fn read(
    session: &mut Session,
    operation: &[u8],
    node: Node,
    value: &Given<'_>,
    terms: &Terms<'_>,
    values: &mut Values<'_>,
) -> Result<()> {
    match operation {
        b"value" => match session.get_ref(&node)? {
            Some(ValueRef::EmptyMap | ValueRef::EmptyList) => values.list(0),
            value => tell(value, terms, values)?,
        },
        b"data" => values.integer(i64::from(session.data(&node)?.number())),
        b"text" => values.text(node.to_string().as_bytes()),
        b"is_number" => set_number(session, &node, value, false, values)?,
        b"next" | b"previous" => match child_beside(session, node, value, operation == b"next", terms)? {
            None => values.nothing(),
            Some(found) => subscript(&found, values)?,
        },
        _ => tell(session.get_ref(&node)?, terms, values)?,
    }
    Ok(())
}

fn write(
    session: &mut Session,
    operation: &[u8],
    node: &Node,
    value: &Given<'_>,
    values: &mut Values<'_>,
) -> Result<()> {
    match operation {
        b"number" => set_number(session, node, value, true, values)?,
        b"null" | b"empty_list" | b"empty_map" => {
            session.set(node, without_content(operation))?;
            values.nothing();
        }
        b"delete" => values.integer(session.delete_value(node)?.into()),
        b"kill" => {
            session.delete_tree(node)?;
            values.nothing();
        }
        b"set" => match set(session, node, value)? {
            Some(()) => values.nothing(),
            None => return refuse("ERR there is no value to set"),
        },
        b"incr" => match increase(session, node, value)? {
            Some(sum) => number(sum, values),
            None => return refuse("ERR a node is increased by a number"),
        },
        _ => return refuse("ERR a node has no such operation"),
    }
    Ok(())
}

/// Sets a node; None if there is no value.
pub fn set(session: &mut Session, node: &Node, value: &Given<'_>) -> Result<Option<()>> {
    match *value {
        Given::Text(bytes) => session.set(node, bytes)?,
        Given::Integer(number) => session.set(node, number)?,
        Given::Double(number) => session.set(node, number)?,
        Given::Truth(truth) => session.set(node, truth)?,
        Given::Nothing => return Ok(None),
    }
    Ok(Some(()))
}

/// Increases a node; None if `by` is no number.
pub fn increase(session: &mut Session, node: &Node, by: &Given<'_>) -> Result<Option<Number>> {
    Ok(match *by {
        Given::Integer(by) => Some(session.increment(node, by)?),
        Given::Double(by) => Some(session.increment(node, by)?),
        _ => None,
    })
}

/// The child behind or before one, or the first or the last, of those that are not closed.
pub fn child_beside(
    session: &mut Session,
    node: Node,
    from: &Given<'_>,
    forward: bool,
    terms: &Terms<'_>,
) -> Result<Option<Node>> {
    let mut found = match (from, forward) {
        (Given::Nothing, true) => session.first_child(&node)?,
        (Given::Nothing, false) => session.last_child(&node)?,
        (_, true) => session.sibling_after(&push(node, from)?)?,
        (_, false) => session.sibling_before(&push(node, from)?)?,
    };
    let Some(fence) = terms.fence else { return Ok(found) };
    while let Some(closed) = found.take_if(|child| fence.closes(&*child)) {
        found = if forward { session.sibling_after(&closed)? } else { session.sibling_before(&closed)? };
    }
    Ok(found)
}

fn subscript(node: &Node, values: &mut Values<'_>) -> Result<()> {
    match node.last()? {
        None => values.nothing(),
        Some(Subscript::Bytes(bytes)) => values.text(&bytes),
        Some(Subscript::Number(found)) => number(found, values),
    }
    Ok(())
}

fn number(number: Number, values: &mut Values<'_>) {
    tell_value(Some(ValueRef::from(number)), values);
}

/// A value, if there is room for it.
fn tell(value: Option<ValueRef<'_>>, terms: &Terms<'_>, values: &mut Values<'_>) -> Result<()> {
    if let Some(ValueRef::String(bytes)) = value {
        terms.check_room(bytes.len())?;
    }
    tell_value(value, values);
    Ok(())
}

/// A value, as Lua is to see it: numbers beyond doubles as text.
fn tell_value(value: Option<ValueRef<'_>>, values: &mut Values<'_>) {
    const EXACT: u64 = 1 << 53;
    match value {
        None | Some(ValueRef::Null) => values.nothing(),
        Some(ValueRef::Bool(truth)) => values.truth(truth),
        Some(ValueRef::Int(number)) if number.unsigned_abs() <= EXACT => values.integer(number),
        Some(ValueRef::Double(number)) => values.double(number),
        Some(ValueRef::String(bytes)) => values.text(bytes),
        Some(other) => {
            let mut text = Vec::new();
            other.write_text(&mut text);
            values.text(&text);
        }
    }
}
