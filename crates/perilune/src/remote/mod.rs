//! A database behind a server: the storage traits over a connection, and what answers at the other end.
//!
//! The client's half is a back end like the engine: keys and values travel as they are stored, one request
//! for an operation, so that all above it works unchanged. The server's half ([`mod@serve`]) stands beside it,
//! so that both ends of the wire are in one place; docs/format/wire.md describes the bytes.
//!
//! Invariants
//! - A write is sent once. When the connection is lost before its answer, the caller is told that its
//!   outcome is unknown; nothing is repeated silently.
//! - A transaction keeps its writes here, and what it has read; its commit is one request, which the
//!   server checks and applies as one transaction. Nothing is held open at the server meanwhile.
//! - Walks are read ahead, in pages; what is known so is less than a moment old, or a condition of the commit.
//! - Locks and watches belong to the connection, and are gone when it is.
//! - Whatever a client sends is checked before the engine sees it.
//!
//! Deliberately absent: a pool of connections (a session has its own), caches that outlive a transaction.

mod address;
mod ahead;
mod codes;
mod commit;
mod database;
mod facilities;
mod fence;
mod link;
mod overlay;
mod pages;
mod reads;
mod running;
mod search;
mod serve;
mod services;
mod session;
#[cfg(feature = "tls")]
mod tls;

pub(crate) use self::address::is_address;
pub(crate) use self::database::RemoteDatabase;
pub(crate) use self::search::Glance;
pub(crate) use self::session::RemoteSession;

pub use self::codes::line_of;
pub use self::fence::Fence;
pub use self::serve::{run_options, serve, Peer, Served, Waiting};

/// The version of the wire; a server answers clients of this one.
pub(crate) const VERSION: i64 = 2;

/// What every command of the family begins with.
pub(crate) const FAMILY: &str = "PERILUNE.";

/// The longest wait of one request.
pub(crate) const SLICE: std::time::Duration = std::time::Duration::from_secs(1);
