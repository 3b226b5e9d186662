//! Creates the Lua state of a [`crate::Host`] and gives it the C modules, which only unsafe code can do.
//!
//! Invariants
//! - The functions `luaopen_*` are those of `bindings/lua/src`, compiled by `build.rs` against the headers of the
//!   LuaJIT that the state belongs to, which is that of the sandboxes.
#![allow(unsafe_code)]

use mlua::{lua_State, Function, Lua};
use std::ffi::c_int;

// The module calls the C contract, and mlua the LuaJIT, which only this names: without it nothing would link the crates.
use perilune_capi as _;
use perilune_sandbox as _;

extern "C-unwind" {
    fn luaopen__perilune(state: *mut lua_State) -> c_int;
    fn luaopen__perilune_yottadb(state: *mut lua_State) -> c_int;
}

/// A state with all standard libraries, `debug` and `ffi` as well, that loads C modules.
pub(crate) fn new_state() -> Lua {
    // SAFETY: nothing here relies on a script being unable to break memory: it is trusted, as one
    // that `luajit` runs (the crate's second invariant).
    unsafe { Lua::unsafe_new() }
}

/// The functions that open the C modules, for `package.preload`, by the modules' names.
pub(crate) fn module_openers(lua: &Lua) -> mlua::Result<[(&'static str, Function); 2]> {
    // SAFETY: both are lua_CFunctions made for this LuaJIT. They leave by lua_error only through C frames
    // and Lua's own, since no Rust function is between.
    unsafe {
        Ok([
            ("_perilune", lua.create_c_function(luaopen__perilune)?),
            ("_perilune.yottadb", lua.create_c_function(luaopen__perilune_yottadb)?),
        ])
    }
}
