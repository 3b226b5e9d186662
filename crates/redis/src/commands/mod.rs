//! What the commands do, a file for each group of them. The table names them all.
//!
//! A command that works with keys is a function of the keys, its arguments and its reply. It knows nothing of transactions: it may
//! be run again, and what it has done then has not happened.
//!
//! Example: `example.rs` is the one of docs/guide/add-a-command.md, whole.
//!
//! Deliberately absent: who may run it, and where, which the rows of the table say.

pub(crate) mod acl;
pub(crate) mod bitfields;
pub(crate) mod bits;
pub(crate) mod blocking;
pub(crate) mod clients;
pub(crate) mod combine;
pub(crate) mod config;
pub(crate) mod connection;
pub(crate) mod counters;
pub(crate) mod debug;
pub(crate) mod diagnosis;
mod docs;
pub(crate) mod dump;
pub(crate) mod elements;
pub(crate) mod elements_together;
#[cfg(test)]
mod example;
pub(crate) mod expiry;
pub(crate) mod functions;
pub(crate) mod hashes;
pub(crate) mod info;
pub(crate) mod keys;
pub(crate) mod lcs;
pub(crate) mod listing;
pub(crate) mod lists;
pub(crate) mod nodes;
pub(crate) mod object;
pub(crate) mod pubsub;
pub(crate) mod scan;
pub(crate) mod scripts;
pub(crate) mod server;
pub(crate) mod sets;
pub(crate) mod shipped;
pub(crate) mod sort;
pub(crate) mod sql;
pub(crate) mod strings;
pub(crate) mod tracking;
pub(crate) mod transactions;
pub(crate) mod zranges;
pub(crate) mod zsets;

use std::collections::HashSet;

use perilune_resp::Arguments;

use crate::failure::{refuse, Result, SYNTAX};
use crate::keyspace::Keys;
use crate::numbers::{lower, positive};

/// The keys behind a number of keys at `index`, and what follows them.
fn numbered(arguments: Arguments<'_>, index: usize) -> Result<(Arguments<'_>, Arguments<'_>)> {
    let count = match positive(&arguments[index], "ERR numkeys should be greater than 0")? {
        0 => return refuse("ERR numkeys should be greater than 0"),
        count => count,
    };
    let rest = arguments.from(index + 1);
    if count > rest.len() {
        return refuse(SYNTAX);
    }
    Ok((rest.first(count), rest.from(count)))
}

/// `COUNT n`, or nothing, which is 1.
fn count_option(arguments: Arguments<'_>) -> Result<usize> {
    match (arguments.get(0), arguments.get(1), arguments.len()) {
        (None, ..) => Ok(1),
        (Some(word), Some(count), 2) if lower(word) == &b"count"[..] => {
            match positive(count, "ERR count should be greater than 0")? {
                0 => refuse("ERR count should be greater than 0"),
                count => Ok(count),
            }
        }
        _ => refuse(SYNTAX),
    }
}

/// The lines of a HELP.
fn help(lines: &[&str], replies: &mut perilune_resp::Replies<'_>) {
    replies.array(lines.len());
    for line in lines {
        replies.simple(line);
    }
}

/// Searches of a pick, in steps of a walk.
const PICK: u64 = 64;

/// Names drawn by picks where that is less than a walk through all: `count` different ones, or with a negative count so
/// many of any. None if it is not, or picks find the same ones again and again.
fn pick_some(
    keys: &mut Keys<'_>,
    (count, total): (i64, i64),
    mut pick: impl FnMut(&mut Keys<'_>) -> Result<Option<Vec<u8>>>,
) -> Result<Option<Vec<Vec<u8>>>> {
    let wanted = count.unsigned_abs();
    if wanted.saturating_mul(PICK) > total.unsigned_abs() {
        return Ok(None);
    }
    let (mut found, mut known) = (Vec::new(), HashSet::new());
    for _ in 0..4 * wanted {
        if found.len() as u64 == wanted {
            break;
        }
        let Some(name) = pick(keys)? else { return Ok(None) };
        if count < 0 || known.insert(name.clone()) {
            found.push(name);
        }
    }
    Ok((found.len() as u64 == wanted).then_some(found))
}
