//! Perilune's C ABI: what include/perilune.h declares, as thin functions over the Rust API.
//!
//! Invariants
//! - Every function that the header declares is here, and nothing else is exported
//!   (tests/symbols.rs).
//! - No panic and no error leaves as anything but a code; texts are kept for `perilune_message`.
//! - Getting, setting and counting up a node or a child of it allocate nothing here.
//! - A C struct has one Rust twin, whose size is asserted beside it (tests/symbols.rs compares them
//!   with the C compiler's).
//!
//! The header says what each function does, whether it waits, its errors and who frees; it is not
//! repeated here. Commit hooks are left to Rust: a hook runs in the middle of a commit, where a
//! foreign language's longjmp or exception would leave the database locked.

pub(crate) mod status;

pub(crate) mod edge;
pub(crate) mod options;
pub(crate) mod value;

pub mod number;

pub mod node;

pub mod database;
pub mod session;

pub mod channel;
pub mod cursor;
pub mod data;
pub mod dom;
pub mod graph;
pub mod health;
pub mod lock;
pub mod models;
pub mod rows;
pub mod sql;
pub mod transaction;
pub mod walk;
pub mod watch;
