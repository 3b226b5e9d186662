//! Creates the Lua state and gives it the C module: the only unsafe lines of this crate.
//!
//! Invariants
//! - `luaopen__perilune` is that of `bindings/lua/src/module.c`, compiled by `build.rs` against the
//!   headers of the LuaJIT that the state belongs to.
#![allow(unsafe_code)]

use mlua::{lua_State, Function, Lua};
use std::ffi::c_int;

// The module calls the C contract, which only this names: without it nothing would link the crate.
use perilune_capi as _;

extern "C-unwind" {
    fn luaopen__perilune(state: *mut lua_State) -> c_int;
}

/// A state with all standard libraries, `debug` and `ffi` as well, that loads C modules.
pub(crate) fn new_state() -> Lua {
    // SAFETY: nothing here relies on a script being unable to break memory: it is trusted, as one
    // that `luajit` runs (the crate's second invariant).
    unsafe { Lua::unsafe_new() }
}

/// The function that opens the C module, for `package.preload`.
pub(crate) fn module_opener(lua: &Lua) -> mlua::Result<Function> {
    // SAFETY: it is a lua_CFunction made for this LuaJIT. It leaves by lua_error only through C frames
    // and Lua's own, since no Rust function is between.
    unsafe { lua.create_c_function(luaopen__perilune) }
}
