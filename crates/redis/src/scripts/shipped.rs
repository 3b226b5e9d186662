//! Nodes and levels of transactions inside functions that programs send: what `shipped.lua` asks for.
//!
//! Invariants
//! - An answer is what the program's own Lua would see; where that cannot be said here - integers that no double
//!   is - the error `LEAVE` gives the run back to the program.
//! - Other errors begin with the name of their kind.

use perilune::{Error, IntoValue, Levels, Node, Session, Subscript, TransactionOptions, ValueRef};
use perilune_sandbox::nodes::{
    child_beside, graft, increase, json, named, operation, push, set, set_number, without_content, Terms,
};
use perilune_sandbox::{Texts, Value as Given, Values};

use crate::failure::{refuse, text_of, Failure, Result};

const PRIVATE: &str = "LEAVE a name without ^ is private to the program";

/// Integers up to here are doubles.
const EXACT: u64 = 1 << 53;

/// What a function asks about: an operation, how many arguments name the node, those, and others.
struct Asked<'a> {
    operation: &'a [u8],
    node: Node,
    value: Given<'a>,
    texts: Texts<'a>,
    /// Where `value` is in `texts`.
    at: usize,
}

impl<'a> Asked<'a> {
    /// The argument so many behind the value.
    fn more(&self, index: usize) -> Given<'a> {
        Given::of(self.texts.get(self.at + index).unwrap_or_default())
    }
}

fn asked<'a>(texts: &Texts<'a>) -> Result<Asked<'a>> {
    let operation = operation(texts);
    let Given::Integer(count) = Given::of(texts.get(1).unwrap_or_default()) else {
        return refuse("INVALID a count is missing");
    };
    let count = usize::try_from(count).unwrap_or(0).min(texts.len());
    let (node, at) = (named(texts, 2, count, PRIVATE)?, 2 + count);
    Ok(Asked { operation, node, value: Given::of(texts.get(at).unwrap_or_default()), texts: *texts, at })
}

/// Answers a question of shipped.lua in the wire format, an error too.
///
/// # Errors
/// Those that end the run: a conflict, and what asks for another run.
pub(crate) fn answer(
    session: &mut Session,
    texts: Texts<'_>,
    terms: &Terms<'_>,
    answer: &mut Vec<u8>,
) -> perilune::Result<()> {
    let start = answer.len();
    let text = match run(session, &texts, terms, &mut Values::new(answer)) {
        Ok(()) => return Ok(()),
        Err(Failure::Database(error)) if error.is_retry() => return Err(error),
        Err(Failure::Database(error)) => perilune::remote::line_of(&error),
        Err(Failure::Reply(text)) => text.into_owned(),
        Err(failure @ Failure::TakesLong) => text_of(&failure.into()).into_owned(),
    };
    answer.truncate(start);
    Values::new(answer).error(text.as_bytes());
    Ok(())
}

fn run(session: &mut Session, texts: &Texts<'_>, terms: &Terms<'_>, values: &mut Values<'_>) -> Result<()> {
    let asked = asked(texts)?;
    terms.check(asked.operation, &asked.node)?;
    match asked.operation {
        b"step" => return step(session, &asked, terms, values),
        b"copy" | b"merge" => {
            let from = named(texts, asked.at, texts.len().saturating_sub(asked.at), PRIVATE)?;
            terms.check(asked.operation, &from)?;
            graft(session, asked.operation, &from, &asked.node)?;
            values.nothing();
            return Ok(());
        }
        b"cas" => {
            let (expected, new) = (value_of(asked.more(0)), value_of(asked.more(1)));
            values.integer(session.compare_and_set(&asked.node, expected, new)?.into());
            return Ok(());
        }
        _ => {}
    }
    let Asked { operation, node, value, .. } = asked;
    match operation {
        b"get" => tell(session.get_ref(&node)?, terms, values)?,
        b"data" => values.integer(i64::from(session.data(&node)?.number())),
        b"text" => values.text(node.to_string().as_bytes()),
        b"subscript" => subscript(&node, values)?,
        b"delete" => values.integer(session.delete_value(&node)?.into()),
        b"after" | b"before" => neighbour(session, node, &value, operation == b"after", terms, values)?,
        b"restarts" => values.integer(session.restarts().into()),
        b"count" => count(session, &node, &value, values)?,
        b"null" | b"empty_list" | b"empty_map" => {
            session.set(&node, without_content(operation))?;
            values.nothing();
        }
        b"kill" => {
            session.delete_tree(&node)?;
            values.nothing();
        }
        b"set" => match set(session, &node, &value)? {
            Some(()) => values.nothing(),
            None => return refuse("INVALID there is no value to set"),
        },
        b"incr" => match increase(session, &node, &value)? {
            Some(sum) => tell(Some(ValueRef::from(sum)), terms, values)?,
            None => return refuse("INVALID a node is increased by a number"),
        },
        b"json" => json::child(session, node, &value, terms, values, subscript)?,
        b"json_own" => json::own(session, &node, terms, values)?,
        b"number" | b"is_number" => set_number(session, &node, &value, operation == b"number", values)?,
        b"begin" => {
            session.begin(&TransactionOptions::default())?;
            values.nothing();
        }
        // NB: the outermost level belongs to the run.
        b"commit" if session.depth() > 1 => {
            session.commit()?;
            values.nothing();
        }
        b"rollback" if session.depth() > 1 => {
            session.rollback()?;
            values.nothing();
        }
        b"restart" => return Err(Error::Restart.into()),
        _ => return refuse("LEAVE a node has no such operation at the server"),
    }
    Ok(())
}

/// How many children there are, or nodes with a value.
fn count(session: &mut Session, node: &Node, value: &Given<'_>, values: &mut Values<'_>) -> Result<()> {
    let count = match value {
        Given::Truth(true) => session.count_valued(node)?,
        _ => session.count_children(node)?,
    };
    values.integer(i64::try_from(count).unwrap_or(i64::MAX));
    Ok(())
}

/// The last subscript, as the database has it.
fn subscript(node: &Node, values: &mut Values<'_>) -> Result<()> {
    match node.last()? {
        None => values.nothing(),
        Some(Subscript::Bytes(bytes)) => values.text(&bytes),
        Some(Subscript::Number(number)) => tell_value(Some(ValueRef::from(number)), values)?,
    }
    Ok(())
}

/// The subscript and the value of the child behind or before one, or of the first or the last.
fn neighbour(
    session: &mut Session,
    node: Node,
    from: &Given<'_>,
    forward: bool,
    terms: &Terms<'_>,
    values: &mut Values<'_>,
) -> Result<()> {
    let Some(found) = child_beside(session, node, from, forward, terms)? else {
        values.nothing();
        return Ok(());
    };
    values.list(2);
    subscript(&found, values)?;
    tell(session.get_ref(&found)?, terms, values)
}

/// A step of a walk over children, from the value on: forward, at which subscript, whether that one counts, up
/// to which, whether that one counts. The subscript, the value and what lies there.
fn step(session: &mut Session, asked: &Asked<'_>, terms: &Terms<'_>, values: &mut Values<'_>) -> Result<()> {
    let forward = matches!(asked.value, Given::Truth(true));
    let (from, end) = (asked.more(1), asked.more(3));
    let mut found = None;
    if matches!(asked.more(2), Given::Truth(true)) && !matches!(from, Given::Nothing) {
        let first = push(asked.node.clone(), &from)?;
        let is_closed = terms.fence.is_some_and(|fence| fence.closes(&first));
        found = (!is_closed && session.data(&first)?.number() > 0).then_some(first);
    }
    if found.is_none() {
        found = child_beside(session, asked.node.clone(), &from, forward, terms)?;
    }
    if let (Some(at), false) = (&found, matches!(end, Given::Nothing)) {
        let end = push(asked.node.clone(), &end)?;
        let counts = matches!(asked.more(4), Given::Truth(true));
        let order = at.cmp(&end);
        let beyond = if forward { order.is_gt() } else { order.is_lt() };
        found = found.filter(|_| !beyond && (counts || order.is_ne()));
    }
    let Some(found) = found else {
        values.nothing();
        return Ok(());
    };
    let data = session.data(&found)?.number();
    values.list(3);
    subscript(&found, values)?;
    tell(session.get_ref(&found)?, terms, values)?;
    values.integer(i64::from(data));
    Ok(())
}

/// An argument as a value; none: there is none.
struct Sent<'a>(Given<'a>);

impl IntoValue for Sent<'_> {
    fn encode_to(self, out: &mut Vec<u8>) -> perilune::Result<()> {
        match self.0 {
            Given::Text(bytes) => bytes.encode_to(out),
            Given::Integer(number) => number.encode_to(out),
            Given::Double(number) => number.encode_to(out),
            Given::Truth(truth) => truth.encode_to(out),
            Given::Nothing => Ok(()),
        }
    }
}

fn value_of(given: Given<'_>) -> Option<Sent<'_>> {
    (!matches!(given, Given::Nothing)).then_some(Sent(given))
}

/// A value as the program's Lua would see it. What JSON has beside is a number of surroundings.lua.
fn tell(value: Option<ValueRef<'_>>, terms: &Terms<'_>, values: &mut Values<'_>) -> Result<()> {
    if let Some(ValueRef::String(bytes)) = value {
        terms.check_room(bytes.len())?;
    }
    tell_value(value, values)
}

fn tell_value(value: Option<ValueRef<'_>>, values: &mut Values<'_>) -> Result<()> {
    match value {
        None => values.nothing(),
        Some(ValueRef::Bool(truth)) => values.truth(truth),
        Some(ValueRef::Int(number)) if number.unsigned_abs() <= EXACT => values.integer(number),
        Some(ValueRef::Int(_)) => return refuse("LEAVE an integer beyond 2^53 was read"),
        Some(ValueRef::Double(number)) => values.double(number),
        Some(ValueRef::String(bytes)) => values.text(bytes),
        Some(decimal @ ValueRef::Decimal(number)) => {
            let (mut text, mut nearest) = (Vec::new(), Vec::new());
            let double = f64::from(number);
            decimal.write_text(&mut text);
            ValueRef::Double(double).write_text(&mut nearest);
            if text == nearest {
                values.double(double);
            } else {
                values.text(&text);
            }
        }
        Some(ValueRef::Null) => mark(b"0", values),
        Some(ValueRef::EmptyList) => mark(b"1", values),
        Some(ValueRef::EmptyMap) => mark(b"2", values),
        Some(record @ ValueRef::Record(_)) => values.text(record.to_string().as_bytes()),
    }
    Ok(())
}

/// What JSON has beside Lua's values: surroundings.lua has a value for each number.
fn mark(number: &[u8], values: &mut Values<'_>) {
    values.table(1);
    values.text(b"mark");
    values.text(number);
}
