//! The bounds of event loops and their connections, in one place; how much may wait unread or not run is for the protocol to
//! say (`protocol::Bounds`).
//!
//! ```
//! use perilune_net::limits::{PENDING_BYTES, READ_BYTES};
//!
//! assert!(READ_BYTES < PENDING_BYTES, "one read does not stop a connection");
//! ```

use std::time::Duration;

/// Replies of a connection that may wait to be sent before it is read no further.
pub const PENDING_BYTES: usize = 1 << 20;

/// Connections whose replies wait for each other, so that they leave together.
pub const SAID: usize = 64;
/// Bytes of each that may wait so.
pub const SAID_BYTES: usize = 64 << 10;

/// Bytes read from a connection at a time, and kept as its buffer while it is idle at most.
pub const READ_BYTES: usize = 64 << 10;

/// Bytes read at a time of a request that is known to be long.
pub const ROOM_BYTES: usize = 256 << 10;

/// How long the requests of one connection may take before others get their turn, and how long those take at a time to whom
/// others have given something to send.
pub const TURN: Duration = Duration::from_millis(2);

/// Times that one connection is read from before others get their turn.
pub const TURNS: usize = 8;

/// Events that a thread takes from the kernel at a time.
pub const EVENTS: usize = 1_024;

/// Passwords that a user may have.
pub const PASSWORDS: usize = 1_000;

/// Wrong passwords of a connection that are answered at once; the next one is after so long, and each further one after
/// twice as long, up to so much. Behind so many it ends.
pub const ENTRIES_AT_ONCE: u32 = 3;
/// See [`ENTRIES_AT_ONCE`].
pub const ENTRY_DELAY: Duration = Duration::from_millis(250);
/// See [`ENTRIES_AT_ONCE`].
pub const ENTRY_DELAY_MOST: Duration = Duration::from_secs(2);
/// See [`ENTRIES_AT_ONCE`].
pub const ENTRIES: u32 = 10;
