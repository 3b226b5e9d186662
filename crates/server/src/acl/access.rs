//! What commands do with each of their keys, as ACL rules tell reading from writing, and categories.
//!
//! The table says whether a command writes and where its keys are; here is what that leaves open, as Redis 7 has
//! it: INCR answers what it writes, so it reads as well; EXISTS tells nothing of a value.

use perilune_resp::Arguments;

use crate::command::{Command, READ, WRITE};
use crate::numbers::lower;

/// Bits.
pub(crate) type Access = u8;
/// Something of the value is answered or copied.
pub(crate) const READS: Access = 1;
/// The value is changed.
pub(crate) const WRITES: Access = 2;

/// Every category of ACL CAT but `all`.
pub(crate) const CATEGORIES: [&str; 21] = [
    "keyspace",
    "read",
    "write",
    "set",
    "sortedset",
    "list",
    "hash",
    "string",
    "bitmap",
    "hyperloglog",
    "geo",
    "stream",
    "pubsub",
    "admin",
    "fast",
    "slow",
    "blocking",
    "dangerous",
    "connection",
    "transaction",
    "scripting",
];

/// The words of a container that belong to categories the container does not, and which: for operators, or because
/// they change what is kept.
pub(crate) fn special_words(container: &str) -> (&'static [&'static str], &'static [&'static str]) {
    const OPERATORS: &[&str] = &["admin", "dangerous"];
    match container {
        "acl" => {
            (OPERATORS, &["deluser", "dryrun", "getuser", "list", "load", "log", "save", "setuser", "users"])
        }
        "client" => (OPERATORS, &["kill", "list", "no-evict", "pause", "unblock", "unpause"]),
        "function" => (&["write"], &["delete", "flush", "load", "restore"]),
        _ => (&[], &[]),
    }
}

/// What `command` does with the key that is number `index` of its keys.
pub(crate) fn access(command: &Command, arguments: Arguments<'_>, index: usize) -> Access {
    let has = |option: &[u8], from| arguments.from(from).iter().any(|word| word.eq_ignore_ascii_case(option));
    match (command.name, index) {
        ("exists" | "type" | "touch" | "strlen" | "llen" | "scard" | "zcard" | "hlen" | "hexists", _)
        | ("hstrlen" | "sismember" | "object" | "memory" | "watch", _) => 0,
        ("eval_ro" | "evalsha_ro" | "fcall_ro", _) => READS,
        ("eval" | "evalsha" | "fcall", _) => READS | WRITES,
        ("copy" | "sort", 0) => READS,
        ("copy" | "sort", _) => WRITES,
        ("set", _) if has(b"get", 3) => READS | WRITES,
        ("bitfield", _) if !has(b"set", 2) && !has(b"incrby", 2) => READS,
        ("rename" | "renamenx" | "rpoplpush" | "brpoplpush" | "lmove" | "blmove" | "smove", 0) => {
            READS | WRITES
        }
        ("sinterstore" | "sunionstore" | "sdiffstore" | "zinterstore" | "zunionstore", 1..)
        | ("zdiffstore" | "zrangestore" | "bitop", 1..) => READS,
        (
            "incr" | "incrby" | "incrbyfloat" | "decr" | "decrby" | "getset" | "getdel" | "getex" | "setbit",
            _,
        )
        | ("bitfield" | "hincrby" | "hincrbyfloat" | "zincrby" | "spop" | "lpop" | "rpop" | "lmpop", _)
        | ("zpopmin" | "zpopmax" | "zmpop" | "blpop" | "brpop" | "blmpop" | "bzpopmin" | "bzpopmax", _)
        | ("bzmpop" | "move", _) => READS | WRITES,
        _ if command.is(WRITE) => WRITES,
        _ if command.is(READ) => READS,
        _ => 0,
    }
}

/// The place of the first pattern by which SORT reads keys that it does not name, if it does.
pub(crate) fn unnamed_keys(command: &Command, arguments: Arguments<'_>) -> Option<usize> {
    if !matches!(command.name, "sort" | "sort_ro") {
        return None;
    }
    let mut place = 2;
    while let Some(word) = arguments.get(place) {
        let pattern = arguments.get(place + 1).unwrap_or_default();
        let step = match &*lower(word) {
            b"by" if pattern.contains(&b'*') => return Some(place + 1),
            b"get" if pattern != b"#" => return Some(place + 1),
            b"by" | b"get" | b"store" => 2,
            b"limit" => 3,
            _ => 1,
        };
        place += step;
    }
    None
}
