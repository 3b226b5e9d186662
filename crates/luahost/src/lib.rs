//! The embedded LuaJIT (Lua 5.2 compatibility) with the Perilune module, for the program.
//!
//! Invariants
//! - `require 'perilune'` finds the module of `bindings/lua` compiled into this program, wherever it is
//!   installed and whatever `LUA_PATH` says.
//! - Scripts of a [`Host`] are trusted: they have `ffi`, `io`, `os` and C modules, as with `luajit`. What a server
//!   runs for its clients runs in a sandbox of `perilune-sandbox`.
//! - An error of a script comes back as a [`HostError`] with its traceback, and with its code if it
//!   is one of Perilune's.
//!
//! Unsafe lines are in two files only: `registration.rs` creates the state and gives it the C modules, `interrupt.rs`
//! listens to Ctrl-C.

#![deny(unsafe_code)]

mod error;
mod host;
pub mod interrupt;
mod registration;

pub use mlua;

pub use crate::error::{HostError, Result};
pub use crate::host::{is_incomplete, Host};
