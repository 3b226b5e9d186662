//! The embedded LuaJIT (Lua 5.2 compatibility) with the Perilune module, for the program and the server.
//!
//! Invariants
//! - `require 'perilune'` finds the module of `bindings/lua` compiled into this program, wherever it is
//!   installed and whatever `LUA_PATH` says.
//! - Scripts are trusted: they have `ffi`, `io`, `os` and C modules, as with `luajit`. What the server
//!   runs for its clients is fenced in by the server.
//! - An error of a script comes back as a [`HostError`] with its traceback, and with its code if it
//!   is one of Perilune's.
//!
//! The only unsafe lines are those of `registration.rs`, which create the state and give it the C module, and
//! those of `sandbox/edge.rs`, which call the sandboxes.

#![deny(unsafe_code)]

mod error;
mod host;
mod registration;
pub mod sandbox;

pub use mlua;

pub use crate::error::{HostError, Result};
pub use crate::host::{is_incomplete, Host};
