//! OBJECT: how a key lies in memory. Here that is always nodes of the tree.

use perilune::ValueRef;
use perilune_resp::{Arguments, Replies};

use crate::failure::{refuse, refuse_with, Result};
use crate::gate::wrong_number;
use crate::keyspace::{Keys, Kind};
use crate::numbers::lower;

const HELP: [&str; 11] = [
    "OBJECT <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "ENCODING <key>",
    "    Answers how the value lies in memory: `int` and `raw` for strings, `nodes` for all else.",
    "FREQ <key>",
    "    Refused: how often keys are used is not counted.",
    "IDLETIME <key>",
    "    Refused: when keys were used last is not noted.",
    "REFCOUNT <key>",
    "    Answers 1: values are not shared.",
    "HELP",
    "    Prints this help.",
];

/// OBJECT ENCODING, FREQ, IDLETIME, REFCOUNT, HELP.
pub(crate) fn object(keys: &mut Keys<'_>, arguments: Arguments<'_>, replies: &mut Replies<'_>) -> Result<()> {
    let word = lower(&arguments[1]);
    if &*word == b"help" && arguments.len() == 2 {
        replies.array(HELP.len());
        HELP.iter().for_each(|line| replies.simple(line));
        return Ok(());
    }
    if arguments.len() != 3 || &*word == b"help" {
        return refuse_with(wrong_number(&format!("object|{}", String::from_utf8_lossy(&word))));
    }
    let key = keys.key(&arguments[2])?;
    let Some(entry) = keys.open(&key)? else {
        replies.null();
        return Ok(());
    };
    match &*word {
        b"encoding" if entry.kind != Kind::String => replies.bulk(b"nodes"),
        b"encoding" => match keys.string(&key, &entry)? {
            ValueRef::Int(_) => replies.bulk(b"int"),
            _ => replies.bulk(b"raw"),
        },
        b"refcount" => replies.integer(1),
        b"freq" => return refuse("ERR how often keys are used is not counted: OBJECT FREQ has no answer"),
        _ => return refuse("ERR when keys were used last is not noted: OBJECT IDLETIME has no answer"),
    }
    Ok(())
}
