//! OBJECT: how a key lies in memory. Here that is always nodes of the tree.

use perilune::{TransactionOptions, ValueRef};
use perilune_resp::{Arguments, Replies};

use crate::context::Context;
use crate::eviction;
use crate::failure::{refuse, refuse_with, Result};
use crate::keyspace::{Keys, Kind};
use crate::numbers::lower;
use crate::refusals::wrong_number;
use crate::server::Server;
use perilune_net::clock::clock;

const NO_LFU: &str =
    "ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that when \
     switching between policies at runtime LRU and LFU data will take some time to adjust.";
const LFU: &str =
    "ERR An LFU maxmemory policy is selected, idle time not tracked. Please note that when switching \
     between policies at runtime LRU and LFU data will take some time to adjust.";
const NO_LRU: &str =
    "ERR when keys were used last is noted only while maxmemory-policy is one of LRU: CONFIG SET \
     maxmemory-policy allkeys-lru";

const HELP: [&str; 11] = [
    "OBJECT <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "ENCODING <key>",
    "    Answers how the value lies in memory: `int` and `raw` for strings, `nodes` for all else.",
    "FREQ <key>",
    "    Answers how often it is used, by clients of this server: while maxmemory-policy is one of LFU.",
    "IDLETIME <key>",
    "    Answers for how many seconds it was not used, by clients of this server: while maxmemory-policy is one of LRU.",
    "REFCOUNT <key>",
    "    Answers 1: values are not shared.",
    "HELP",
    "    Prints this help.",
];

/// OBJECT ENCODING, FREQ, IDLETIME, REFCOUNT, HELP.
pub(crate) fn object(
    context: &mut Context<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies<'_>,
) -> Result<()> {
    let word = lower(&arguments[1]);
    if &*word == b"help" && arguments.len() == 2 {
        super::help(&HELP, replies);
        return Ok(());
    }
    if arguments.len() != 3 || &*word == b"help" {
        return refuse_with(wrong_number(&format!("object|{}", String::from_utf8_lossy(&word))));
    }
    let (server, database, start) = (context.server, context.client.database, replies.position());
    let options = TransactionOptions { read_only: true, ..TransactionOptions::default() };
    context.transaction(&options, |session, _, effects| {
        replies.rewind(start);
        let mut keys = Keys::new(session, effects, database, clock(), false);
        Ok(tell(server, &mut keys, &word, &arguments[2], replies)?)
    })?;
    Ok(())
}

fn tell(
    server: &Server,
    keys: &mut Keys<'_>,
    word: &[u8],
    name: &[u8],
    replies: &mut Replies<'_>,
) -> Result<()> {
    let key = keys.key(name)?;
    let Some(entry) = keys.open(&key)? else {
        replies.null();
        return Ok(());
    };
    let (policy, known) =
        (eviction::policy(server.rules()), || eviction::uses_of(server, keys.database, name));
    match word {
        b"encoding" if entry.kind != Kind::String => replies.bulk(b"nodes"),
        b"encoding" => match keys.string(&key, &entry)? {
            ValueRef::Int(_) => replies.bulk(b"int"),
            _ => replies.bulk(b"raw"),
        },
        b"refcount" => replies.integer(1),
        b"freq" if policy.is_lfu() => replies.integer(i64::from(known().counter)),
        b"freq" => return refuse(NO_LFU),
        _ if policy.is_lru() => replies.integer(i64::from(known().idle)),
        _ if policy.is_lfu() => return refuse(LFU),
        _ => return refuse(NO_LRU),
    }
    Ok(())
}
