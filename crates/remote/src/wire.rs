//! What both ends of the wire must agree on: version, names, the marks of a commit's parts, how steps of walks follow each
//! other, and the words of errors. docs/format/wire.md says the same for people.
//!
//! Example: a commit that rests on `^a` being 1 and writes `^b` has the parts `=` key value, `s` key value.
//!
//! Invariant: nothing here changes its meaning within one [`VERSION`].

use std::time::Duration;

/// The version of the wire; a server answers clients of this one.
pub const VERSION: i64 = 3;

/// What every command of the family begins with.
pub const FAMILY: &str = "PERILUNE.";

/// The longest wait of one request.
pub const SLICE: Duration = Duration::from_secs(1);

/// The value at a key is this.
pub const IS: &[u8] = b"=";
/// There is no value at a key.
pub const IS_ABSENT: &[u8] = b"!";
/// There is a value at a key, whatever it is.
pub const HAS: &[u8] = b"+";
/// A value has so many bytes, and these between two places.
pub const HAS_PIECE: &[u8] = b"~";
/// The first key in a range is this.
pub const FIRST: &[u8] = b">";
/// The last key in a range is this.
pub const LAST: &[u8] = b"<";
/// The first key in a range begins so.
pub const FIRST_UNDER: &[u8] = b"}";
/// The last key in a range begins so.
pub const LAST_UNDER: &[u8] = b"{";
/// Removes all keys that begin so.
pub const KILL: &[u8] = b"k";
/// Writes a value.
pub const SET: &[u8] = b"s";
/// Removes a value.
pub const REMOVE: &[u8] = b"d";
/// Posts a message.
pub const POST: &[u8] = b"p";

/// Takes the message with this number, which is the oldest.
pub const TAKE: &[u8] = b"r";
/// There is no message left.
pub const EMPTY: &[u8] = b"e";

/// The words of errors: each is the name of a kind of error of the public interface, or of arithmetic. A word that is none of
/// these comes from the server's gate.
pub const WORDS: [&str; 36] = [
    "INVALID",
    "INVALID_KEY",
    "KEY_TOO_LONG",
    "VALUE_TOO_LONG",
    "NUMBER",
    "WRONG_TYPE",
    "OVERLAP",
    "LOCAL_NODE",
    "LIMIT_REACHED",
    "CONFLICT",
    "RESTART",
    "ROLLBACK",
    "TRANSACTION_TIMEOUT",
    "TRANSACTION_STATE",
    "FORKED",
    "DEADLOCK",
    "COMMIT_UNKNOWN",
    "CHANNEL_FULL",
    "READ_ONLY",
    "NOT_A_DATABASE",
    "CANNOT_OPEN",
    "NO_SPACE",
    "IO",
    "WRITES_STOPPED",
    "CORRUPT",
    "REFUSED",
    "INTERNAL",
    "OTHER",
    "NOT_DURABLE",
    "BUSY",
    "UNAVAILABLE",
    "NUMBER_OVERFLOW",
    "NUMBER_UNDERFLOW",
    "NUMBER_INEXACT",
    "NOT_A_NUMBER",
    "NUMBER_MALFORMED",
];

/// The child that `key` lies in of the node whose key are its first `parent` bytes.
#[must_use]
pub fn child_of(key: &[u8], parent: usize) -> Option<&[u8]> {
    let length = perilune_key::code_len(key.get(parent..)?).ok()?;
    key.get(..parent + length)
}

/// Where the step of a walk begins that follows the one that has found `key`: these bytes, and perhaps one more.
#[must_use]
pub fn step_behind(key: &[u8], forward: bool, parent: Option<usize>) -> (&[u8], Option<u8>) {
    match (parent.and_then(|parent| child_of(key, parent)), forward) {
        (Some(child), true) => (child, Some(0xFF)),
        (None, true) => (key, Some(0)),
        (child, false) => (child.unwrap_or(key), None),
    }
}
