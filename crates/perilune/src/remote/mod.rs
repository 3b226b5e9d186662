//! What answers programs that open a database by its server's address: the server's half of the wire.
//!
//! The client's half is the crate `perilune_remote`, a store like the engine; docs/format/wire.md describes the bytes between
//! the two. A request names one operation of the storage traits; it is checked and run on a session of the server's, and
//! answered by one reply.
//!
//! Invariants
//! - Whatever a client sends is checked before the engine sees it.
//! - Locks and watches belong to the connection, and are gone when it is.
//!
//! Deliberately absent: sockets, who may run what (the server's gate), the functions that RUN is given (the server's
//! scripts).

mod codes;
mod commit;
mod fence;
mod messages;
mod pages;
mod see;
mod serve;
mod services;

pub use self::codes::line_of;
pub use self::fence::Fence;
pub use self::serve::{run_options, serve, Peer, Served, Waiting};
