//! Slow commands, of all servers of the database: `^redis("slowlog",number)`, the newest have the highest.
//!
//! Invariant: entries are bounded in number and size; the secrets of AUTH, HELLO, ACL and CONFIG are not kept.

use std::time::Duration;

use perilune::{node, Cursor, Durability, Session, TransactionOptions};
use perilune_resp::{Arguments, Protocol, Replies};

use crate::client::Client;
use crate::command::Command;
use perilune_net::clock::clock;

/// Arguments of a command that are kept, and bytes of each.
const ARGUMENTS: usize = 32;
const ARGUMENT_BYTES: usize = 128;
/// Entries that are kept at most, whatever slowlog-max-len says.
const ENTRIES: i64 = 100_000;

/// Keeps a slow command. The database may refuse: then it is not kept.
pub(crate) fn keep(
    session: &mut Session,
    client: &Client,
    command: &Command,
    arguments: Arguments<'_>,
    took: Duration,
    most: i64,
) -> perilune::Result<()> {
    if command.is_all_secret() || most == 0 {
        return Ok(());
    }
    // A loop must not wait for the disk because of it.
    let options = TransactionOptions { durability: Some(Durability::None), ..TransactionOptions::default() };
    let place = node!("^redis", "slowlog")?;
    session.transaction_with(&options, |session| {
        let number = session.increment(&place, 1)?.as_i64().unwrap_or(0);
        session.set(&place.child(number)?, entry(client, command, arguments, took, number))?;
        let mut cursor = Cursor::children(&place);
        let first = if cursor.next(session)? { cursor.integer() } else { None };
        for old in first.unwrap_or(number)..=number - most.min(ENTRIES) {
            session.delete_value(&place.child(old)?)?;
        }
        Ok(())
    })
}

/// An entry as SLOWLOG GET answers it.
fn entry(
    client: &Client,
    command: &Command,
    arguments: Arguments<'_>,
    took: Duration,
    number: i64,
) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut replies = Replies::new(&mut bytes, Protocol::Resp2);
    replies.array(6);
    replies.integer(number);
    replies.integer(clock() / 1_000);
    replies.integer(i64::try_from(took.as_micros()).unwrap_or(i64::MAX));
    let shown = arguments.len().min(ARGUMENTS);
    replies.array(shown);
    let secret = command.secret_from(arguments);
    for (index, argument) in arguments.iter().take(shown).enumerate() {
        if index == ARGUMENTS - 1 && arguments.len() > ARGUMENTS {
            let rest = arguments.len() - ARGUMENTS + 1;
            replies.bulk(format!("... ({rest} more arguments)").as_bytes());
        } else if secret.is_some_and(|first| index >= first) {
            replies.bulk(b"(redacted)");
        } else if argument.len() > ARGUMENT_BYTES {
            let mut text = argument[..ARGUMENT_BYTES].to_vec();
            text.extend(format!("... ({} more bytes)", argument.len() - ARGUMENT_BYTES).bytes());
            replies.bulk(&text);
        } else {
            replies.bulk(argument);
        }
    }
    replies.bulk(client.address.as_bytes());
    replies.bulk(&client.name);
    bytes
}

/// The newest entries, as replies; how many there are.
pub(crate) fn newest(session: &mut Session, count: usize) -> perilune::Result<Vec<Vec<u8>>> {
    let mut entries = Vec::new();
    for (node, value) in session.get_tree(&node!("^redis", "slowlog")?)?.into_iter().rev() {
        if node.depth() == 2 && entries.len() < count {
            let mut bytes = Vec::new();
            value.as_ref().write_text(&mut bytes);
            entries.push(bytes);
        }
    }
    Ok(entries)
}

pub(crate) fn length(session: &mut Session) -> perilune::Result<u64> {
    session.count_children(&node!("^redis", "slowlog")?)
}

/// Removes all entries; numbers go on.
pub(crate) fn clear(session: &mut Session) -> perilune::Result<()> {
    let place = node!("^redis", "slowlog")?;
    session.transaction(|session| {
        let number = session.get(&place)?;
        session.delete_tree(&place)?;
        match number {
            Some(number) => session.set(&place, number),
            None => Ok(()),
        }
    })
}
