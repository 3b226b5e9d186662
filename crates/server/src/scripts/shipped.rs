//! Nodes and levels of transactions inside functions that programs send: what `shipped.lua` asks for.
//!
//! Invariants
//! - An answer is what the program's own Lua would see; where that cannot be said here - JSON's null, integers
//!   that no double is - the error `LEAVE` gives the run back to the program.
//! - Other errors begin with the name of their kind.

use perilune::{Error, Node, Session, Subscript, TransactionOptions, ValueRef};
use perilune_luahost::sandbox::Texts;
use perilune_resp::{Protocol, Replies};

use super::nodes::{child_beside, given, increase, push, set, Given};
use crate::failure::{refuse, Failure, Result};

/// Integers up to here are doubles.
const EXACT: u64 = 1 << 53;

/// What a function asks about: an operation, how many arguments name the node, those, and a value.
struct Asked<'a> {
    operation: &'a [u8],
    node: Node,
    value: Given<'a>,
}

fn asked<'a>(texts: &Texts<'a>) -> Result<Asked<'a>> {
    let operation = texts.get(0).and_then(|text| text.get(1..)).unwrap_or_default();
    let Given::Int(count) = given(texts.get(1).unwrap_or_default())? else {
        return refuse("INVALID a count is missing");
    };
    let count = usize::try_from(count).unwrap_or(0).min(texts.len());
    let Given::Bytes(name) = given(texts.get(2).unwrap_or_default())? else {
        return refuse("INVALID a name is a string");
    };
    let Some(name) = std::str::from_utf8(name).ok().filter(|name| name.starts_with('^')) else {
        return refuse("LEAVE a name without ^ is private to the program");
    };
    let mut node = Node::new(name)?;
    for index in 3..2 + count {
        node = push(node, &given(texts.get(index).unwrap_or_default())?)?;
    }
    Ok(Asked { operation, node, value: given(texts.get(2 + count).unwrap_or(b"n"))? })
}

/// Answers a question of shipped.lua in the wire format, an error too.
///
/// # Errors
/// Those that end the run: a conflict, and what asks for another run.
pub(crate) fn answer(session: &mut Session, texts: Texts<'_>, answer: &mut Vec<u8>) -> perilune::Result<()> {
    let start = answer.len();
    let text = match run(session, &texts, &mut Replies::new(answer, Protocol::Resp3)) {
        Ok(()) => return Ok(()),
        Err(Failure::Database(error)) if error.is_retry() => return Err(error),
        Err(Failure::Database(error)) => perilune::remote::line_of(&error),
        Err(Failure::Reply(text)) => text.into_owned(),
    };
    answer.truncate(start);
    Replies::new(answer, Protocol::Resp3).error(&text);
    Ok(())
}

fn run(session: &mut Session, texts: &Texts<'_>, replies: &mut Replies<'_>) -> Result<()> {
    let Asked { operation, node, value } = asked(texts)?;
    match operation {
        b"get" => tell(session.get_ref(&node)?, replies)?,
        b"data" => replies.integer(i64::from(session.data(&node)?.number())),
        b"text" => replies.bulk(node.to_string().as_bytes()),
        b"subscript" => subscript(&node, replies)?,
        b"delete" => replies.truth(session.delete_value(&node)?),
        b"after" | b"before" => neighbour(session, node, &value, operation == b"after", replies)?,
        b"restarts" => replies.integer(session.restarts().into()),
        b"kill" => {
            session.delete_tree(&node)?;
            replies.null();
        }
        b"set" => match set(session, &node, &value)? {
            Some(()) => replies.null(),
            None => return refuse("INVALID there is no value to set"),
        },
        b"incr" => match increase(session, &node, &value)? {
            Some(sum) => tell(Some(ValueRef::from(sum)), replies)?,
            None => return refuse("INVALID a node is increased by a number"),
        },
        b"begin" => {
            session.begin(&TransactionOptions::default())?;
            replies.null();
        }
        // NB: the outermost level belongs to the run.
        b"commit" if session.depth() > 1 => {
            session.commit()?;
            replies.null();
        }
        b"rollback" if session.depth() > 1 => {
            session.rollback()?;
            replies.null();
        }
        b"restart" => return Err(Error::Restart.into()),
        _ => return refuse("LEAVE a node has no such operation at the server"),
    }
    Ok(())
}

/// The last subscript, as the database has it.
fn subscript(node: &Node, replies: &mut Replies<'_>) -> Result<()> {
    match node.last()? {
        None => replies.null(),
        Some(Subscript::Bytes(bytes)) => replies.bulk(&bytes),
        Some(Subscript::Number(number)) => tell(Some(ValueRef::from(number)), replies)?,
    }
    Ok(())
}

/// The subscript and the value of the child behind or before one, or of the first or the last.
fn neighbour(
    session: &mut Session,
    node: Node,
    from: &Given<'_>,
    forward: bool,
    replies: &mut Replies<'_>,
) -> Result<()> {
    let Some(found) = child_beside(session, node, from, forward)? else {
        replies.null();
        return Ok(());
    };
    replies.array(2);
    subscript(&found, replies)?;
    tell(session.get_ref(&found)?, replies)
}

/// A value as the program's Lua would see it.
fn tell(value: Option<ValueRef<'_>>, replies: &mut Replies<'_>) -> Result<()> {
    match value {
        None => replies.null(),
        Some(ValueRef::Bool(truth)) => replies.raw(if truth { b"#t\r\n" } else { b"#f\r\n" }),
        Some(ValueRef::Int(number)) if number.unsigned_abs() <= EXACT => replies.integer(number),
        Some(ValueRef::Int(_)) => return refuse("LEAVE an integer beyond 2^53 was read"),
        Some(ValueRef::Double(number)) => replies.double(number),
        Some(ValueRef::String(bytes)) => replies.bulk(bytes),
        Some(decimal @ ValueRef::Decimal(number)) => {
            let (mut text, mut nearest) = (Vec::new(), Vec::new());
            let double = f64::from(number);
            decimal.write_text(&mut text);
            ValueRef::Double(double).write_text(&mut nearest);
            if text == nearest {
                replies.double(double);
            } else {
                replies.bulk(&text);
            }
        }
        Some(ValueRef::Null | ValueRef::EmptyList | ValueRef::EmptyMap) => {
            return refuse("LEAVE a value of JSON was read: null, an empty list or map")
        }
    }
    Ok(())
}
