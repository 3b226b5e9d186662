//! Ctrl-C ends what a host runs, not the program.
//!
//! The problem: in a session, a line that runs too long is to end and the session to go on; SIGINT would end both. The
//! idea is that of `lua` itself: the signal's handler sets a hook, which Lua calls before its next instruction, in
//! compiled loops as well, and which raises an error. Another Ctrl-C, while that has not ended it, ends the program: what
//! waits in C, for a lock say, runs no instruction.
//!
//! Example: `interrupt::listen()?` once, then `interrupt::ending(lua, || run(line))` for each line.
//!
//! Invariants
//! - The handler touches two atomics and calls `lua_sethook`, which may be called from a signal's handler.
//! - It is meant for one host in a process, on the thread that signals come to: threads of the library block them.
//!
//! Deliberately absent: being stopped for good. A line that catches the error goes on.
#![allow(unsafe_code)]

use std::ffi::c_int;
use std::io;
use std::ptr;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Release};
use std::sync::atomic::{AtomicBool, AtomicPtr};

use mlua::{ffi, Lua};
use signal_hook::consts::SIGINT;
use signal_hook::low_level;

/// The state that runs something; NULL: none does.
static RUNNING: AtomicPtr<ffi::lua_State> = AtomicPtr::new(ptr::null_mut());

/// It has been told to end, and has not yet.
static ASKED: AtomicBool = AtomicBool::new(false);

/// From now on SIGINT ends what runs inside [`ending`]; at other times it ends the program as ever.
///
/// # Errors
/// Of the system, when it has no room for a handler.
pub fn listen() -> io::Result<()> {
    // SAFETY: the handler does only what a handler may (the module's first invariant).
    unsafe { low_level::register(SIGINT, on_interrupt) }.map(drop)
}

/// Runs `run`, which calls Lua in `lua`, so that SIGINT ends it by an error.
pub fn ending<R>(lua: &Lua, run: impl FnOnce() -> R) -> R {
    let mut state = ptr::null_mut();
    // SAFETY: the closure leaves the stack as it is. The state lives as long as `lua`, which outlives this call.
    let known = unsafe { lua.exec_raw::<()>((), |given| state = given) };
    ASKED.store(false, Release);
    RUNNING.store(if known.is_ok() { state } else { ptr::null_mut() }, Release);
    let result = run();
    RUNNING.store(ptr::null_mut(), Release);
    if ASKED.swap(false, AcqRel) && known.is_ok() {
        // The run may have ended before its hook was called, which would then end the next one.
        // SAFETY: the state lives as long as `lua`, which outlives this call.
        unsafe { ffi::lua_sethook(state, None, 0, 0) };
    }
    result
}

fn on_interrupt() {
    let state = RUNNING.load(Acquire);
    if state.is_null() || ASKED.swap(true, AcqRel) {
        // It returns only if the signal has no default, which SIGINT has.
        let _ = low_level::emulate_default_handler(SIGINT);
        return;
    }
    let every = ffi::LUA_MASKCALL | ffi::LUA_MASKRET | ffi::LUA_MASKCOUNT;
    // SAFETY: whoever has set the pointer takes it back before the state goes, and this thread is in between.
    unsafe { ffi::lua_sethook(state, Some(raise), every, 1) };
}

/// Raises the error, once.
unsafe extern "C-unwind" fn raise(state: *mut ffi::lua_State, _: *mut ffi::lua_Debug) {
    let text = c"interrupted".as_ptr();
    // SAFETY: Lua calls a hook with a state at work. No Rust value is on this frame, which the error leaves.
    unsafe {
        ffi::lua_sethook(state, None, 0, 0);
        let _never: c_int = ffi::luaL_error(state, text);
    }
}
