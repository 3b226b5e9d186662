//! The bounds of the server, in one place; those of the wire format are in `perilune_resp::limits`.

use std::time::Duration;

/// Bytes that a name of a key may take in its subscript, escapes counted, before it is cut.
pub(crate) const KEY_BYTES: usize = 500;

/// Bytes that a field or member may take in its subscript, escapes counted, before it is cut.
pub(crate) const MEMBER_BYTES: usize = 1_000;

/// Bytes of a string value, and of any other value.
pub(crate) const VALUE_BYTES: usize = 512 << 20;

/// Databases to SELECT, unless `databases` says something else, and at most.
pub(crate) const DATABASES: i64 = 16;
pub(crate) const DATABASES_MOST: i64 = 16_384;

/// Bytes of a request from which it is not tried in a way that does not take long values.
pub(crate) const LONG_BYTES: usize = 64 << 10;

/// Bytes of a value, and of a request, from which on a command runs aside: copies of more would take others' time.
pub(crate) const ASIDE_BYTES: usize = 1 << 20;

/// Bytes of a string that are read at once where all of it is looked at, and of one that is taken for short.
pub(crate) const PIECE_BYTES: usize = 64 << 10;
pub(crate) const SHORT_BYTES: usize = 2_000;

/// Times that a command is tried as a one-shot transaction while others are at the same nodes.
pub(crate) const ATTEMPTS: usize = 8;
/// Arguments of a command that is tried as a one-shot transaction: more write more nodes than that may.
pub(crate) const ATTEMPTED_ARGUMENTS: usize = 2_100;
/// Elements that a command walks over in an event loop at most, and its arguments: with more it runs aside.
pub(crate) const ELEMENTS_IN_LOOP: i64 = 4_096;
pub(crate) const ARGUMENTS_IN_LOOP: usize = 4_096;

/// Patterns that a user may have for keys, for channels, and rules for commands, in one selector: each is tried for each
/// command.
pub(crate) const ACL_RULES: usize = 4_096;

/// Commands of an EXEC that are tried as a one-shot transaction: more write more than it may.
pub(crate) const ATTEMPTED_COMMANDS: usize = 16;

/// How long a loop waits for a page that another process holds, before the command is put off and others get their turn.
pub(crate) const LOOP_WAIT: std::time::Duration = std::time::Duration::from_millis(1);
/// How long it is put off: so much of the time that it has waited, and at least and at most so long.
pub(crate) const HELD_SHARE: u32 = 4;
/// See [`HELD_SHARE`].
pub(crate) const HELD_LEAST: std::time::Duration = std::time::Duration::from_millis(1);
/// See [`HELD_SHARE`].
pub(crate) const HELD_MOST: std::time::Duration = std::time::Duration::from_millis(50);

/// Commands of an EXEC, or bytes of them, from which it runs aside.
pub(crate) const LONG_COMMANDS: usize = 256;
pub(crate) const LONG_QUEUE_BYTES: usize = 4 << 20;

/// Bytes of commands queued behind MULTI.
pub(crate) const QUEUE_BYTES: usize = 1 << 30;

/// Bytes of the names that one connection may be subscribed to.
pub(crate) const SUBSCRIBED_BYTES: usize = 64 << 20;

/// Names that a client enters or leaves before the loop serves others.
pub(crate) const SUBSCRIBED_AT_ONCE: usize = 64;

/// Bytes that one server tells another at once, a published message for example.
pub(crate) const TOLD_BYTES: usize = 16 << 20;

/// Bytes told to a server that it has not read yet; more push the oldest out.
pub(crate) const TOLD_PENDING_BYTES: u64 = 64 << 20;

/// How often is looked for servers that have died.
pub(crate) const PEERS_SWEPT: Duration = Duration::from_secs(1);

/// Requests of a client that are one operation at most, and bytes of them.
pub(crate) const TOGETHER: usize = 16;
pub(crate) const TOGETHER_BYTES: usize = 64 << 10;

/// Numbers of clients that a server takes from the tree at a time.
pub(crate) const CLIENT_NUMBERS: i64 = 256;

/// Keys that one connection may watch.
pub(crate) const WATCHED_KEYS: usize = 65_536;

/// Watched keys from which on what was read of them is kept, so that they are compared together.
pub(crate) const WATCHED_TOGETHER: usize = 64;

/// Keys that the clients of one event loop may keep and be told of, and how many are compared in one round of it.
pub(crate) const TRACKED_KEYS: usize = 10_000;
pub(crate) const TRACKED_AT_ONCE: usize = 64;

/// Bytes of the names in one notice to a client of another server; with more it is told to forget all.
pub(crate) const NOTICE_BYTES: usize = 16 << 20;

/// Bytes of changed keys that those who are told of all are told by name, at once; with more they are told to forget all.
pub(crate) const CHANGED_BYTES: usize = 1 << 20;

/// Expired keys that are removed in one transaction.
pub(crate) const SWEPT_AT_ONCE: usize = 64;

/// Bytes of the places of scans that a server remembers at least: of those that clients are to come back to (some 40,000), and
/// of those that they have come back to. It keeps twice as many at most.
pub(crate) const CURSORS_WAITING_BYTES: usize = 4 << 20;
pub(crate) const CURSORS_USED_BYTES: usize = 512 << 10;

/// Clients with locks, watches or messages to wait for; each takes a thread. With more they ask again and
/// again instead.
pub(crate) const WAITERS: usize = 1_024;

/// Arguments of a function's command that FUNCTION STATS shows, and bytes of each.
pub(crate) const SHOWN_ARGUMENTS: usize = 128;
pub(crate) const SHOWN_BYTES: usize = 1_024;
