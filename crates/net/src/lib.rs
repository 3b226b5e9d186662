//! What a server needs whatever it serves: sockets and TLS, the mailboxes and timers of its event loops, which of its threads
//! rest, the log, a page of figures. Nothing here knows a protocol, a command or a database.
//!
//! Invariants
//! - No loop waits for another thread: what comes from elsewhere lies in its mailbox.
//! - What reaches the log or a file from strangers is bounded and quoted.
//!
//! Deliberately absent: the loops themselves and their connections, which are the server's.

#![forbid(unsafe_code)]

pub mod awake;
pub mod away;
pub mod clock;
pub mod elsewhere;
pub mod files;
pub mod journal;
pub mod listener;
pub mod mailbox;
pub mod page;
pub mod processor;
pub mod seat;
pub mod stream;
pub mod timers;
pub mod tls;
pub mod weights;
