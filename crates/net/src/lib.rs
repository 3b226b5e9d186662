//! What a server needs whatever it serves: event loops and their connections, sockets and TLS, mailboxes and timers, which of
//! its threads rest, limits, the log, a page of figures. Nothing here knows a command or a database; what the bytes of a
//! connection mean, a [`protocol`] says.
//!
//! Invariants
//! - No loop waits for another thread: what comes from elsewhere lies in its mailbox.
//! - What reaches the log or a file from strangers is bounded and quoted.
//!
//! Deliberately absent: every protocol.

#![forbid(unsafe_code)]

pub mod aside;
pub mod awake;
pub mod away;
pub mod buffers;
pub mod clock;
pub mod connection;
pub mod crew;
pub mod elsewhere;
pub mod event_loop;
pub mod figures;
pub mod files;
pub mod journal;
pub mod limits;
pub mod listener;
pub mod mailbox;
pub mod page;
pub mod passwords;
pub mod processor;
pub mod protocol;
pub mod seat;
pub mod settings;
pub mod stream;
pub mod timers;
pub mod tls;
pub mod weights;
