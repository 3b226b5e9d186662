//! LuaJIT in sandboxes: for functions of SQL, in whatever program, and for scripts of a server's clients.
//!
//! [`Sandbox`] is a state with limits, whose libraries its host chooses; [`sql::LuaFunctions`] runs functions of SQL in such; [`nodes`]
//! and [`graphs`] are libraries of the database's, for both.
//!
//! Invariants
//! - No symbol of C that this crate brings along has a name that others have: `build.rs` sees to it.
//! - Nothing is made before it is used: neither a Lua state, nor a thread, nor a signal's handler.
//!
//! Unsafe lines are in three files only: `sandbox/edge.rs` and `sandbox/calling.rs` call C, `sandbox/offer.rs` names its constants.

#![deny(unsafe_code)]

pub mod graphs;
pub mod nodes;
mod sandbox;
pub mod sql;

pub use crate::sandbox::{
    ticks, Answers, Called, Code, Form, Format, HostFunction, Library, Offer, Outcome, Part, Parts, Pool,
    Question, Run, Sandbox, Stopper, Text, Texts, Value, Values, SCRIPT_STACK,
};
