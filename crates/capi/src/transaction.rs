//! Transactions: with a body that is run again as often as needed, and by single steps (begin, commit, rollback,
//! retry) for languages whose functions may leave by longjmp or an exception.
//!
//! Invariants
//! - While a body runs, no Rust reference to the session is alive: the body uses it by the pointer that it gets.
//! - A restart always reaches the outermost level, also when a body in between swallows it.
//! - A level that this file opened is closed by it, also when the body has closed or opened levels of its own by
//!   mistake.

use std::ffi::{c_char, c_int, c_void};
use std::time::Duration;

use perilune::{FirstTry, Levels, TransactionOptions};

use crate::edge::{bytes, place};
use crate::options::{durability, limit, read};
use crate::session::{answer, call, no_session, Open, Session};
use crate::status::{Answer, Failure, CONFLICT, OK, RESTART, TRANSACTION_STATE};
use crate::value::Value;

/// `perilune_transaction_options`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Options {
    /// Bytes of the struct that the caller knows.
    pub size: u32,
    /// 1: refuse writes.
    pub read_only: i32,
    /// `enum perilune_durability`.
    pub durability: i32,
    /// 1: exclusive mode from the first try on; -1: never.
    pub exclusive: i32,
    /// Seconds; 0: the default.
    pub timeout: f64,
}

const _: () = assert!(size_of::<Options>() == 24);

/// `perilune_body`.
pub type Body = unsafe extern "C" fn(session: *mut Session, context: *mut c_void) -> c_int;

/// # Safety
/// `options` is NULL or good for reading as many bytes as it says.
unsafe fn options_of(options: *const Options) -> Result<TransactionOptions, Failure> {
    // Ten seconds is the documented limit of a transaction that asks for none.
    const TIMEOUT: Duration = Duration::from_secs(10);
    let defaults = Options {
        size: size_of::<Options>() as u32,
        read_only: 0,
        durability: 0,
        exclusive: 0,
        timeout: 0.0,
    };
    // SAFETY: the caller's promise; any bytes make these options.
    let options = unsafe { read(options, defaults) }?;
    Ok(TransactionOptions {
        read_only: options.read_only != 0,
        timeout: limit(options.timeout, TIMEOUT)?,
        durability: durability(options.durability)?,
        exclusive: options.exclusive > 0,
        never_exclusive: options.exclusive < 0,
        first_try: if options.exclusive > 0 { FirstTry::Whole } else { FirstTry::OneShot },
    })
}

/// `perilune_transaction`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_transaction(
    session: *mut Session,
    options: *const Options,
    body: Option<Body>,
    context: *mut c_void,
) -> c_int {
    if session.is_null() {
        return no_session();
    }
    let Some(body) = body else {
        // SAFETY: the caller's pointers are good or NULL, as the header asks.
        return unsafe { call(session, |_| Err(Failure::invalid(c"a transaction needs a body"))) };
    };
    // SAFETY: the caller's pointers are good or NULL, as the header asks; `session` is not NULL.
    unsafe {
        let outer = perilune_depth(session);
        loop {
            let begun = perilune_begin(session, options);
            if begun != OK {
                return begun;
            }
            if outer == 0 {
                (*session).rerun = false;
            }
            let status = run(session, outer, body, context);
            if status == OK {
                return OK;
            }
            close_levels(session, outer);
            let again = status == CONFLICT || status == RESTART;
            if outer > 0 {
                (*session).rerun |= again;
                return status;
            }
            if !again {
                perilune_give_up(session);
                return status;
            }
            let retry = perilune_retry(session);
            if retry != OK {
                return retry;
            }
        }
    }
}

/// Runs the body in the level just opened, and commits it.
///
/// # Safety
/// `session` is an open session; the body keeps to the header.
unsafe fn run(session: *mut Session, outer: u32, body: Body, context: *mut c_void) -> c_int {
    // SAFETY: the caller's promise. No reference to the session is alive while the body runs.
    unsafe {
        let status = body(session, context);
        match perilune_depth(session).cmp(&(outer + 1)) {
            // Levels that the body opened and left open are no part of what it committed.
            std::cmp::Ordering::Greater => close_levels(session, outer + 1),
            std::cmp::Ordering::Less => return call(session, |_| Err(LEVEL_GONE)),
            std::cmp::Ordering::Equal => {}
        }
        if (*session).rerun {
            return RESTART;
        }
        match status {
            OK => perilune_commit(session),
            CONFLICT | RESTART => status,
            // NB: a failure that rests on two halves of different states must not escape.
            _ if outer == 0 && call(session, |open| Ok(open.inner.validate().map(|()| OK)?)) == CONFLICT => {
                CONFLICT
            }
            _ => status,
        }
    }
}

const LEVEL_GONE: Failure = Failure::fixed(
    TRANSACTION_STATE,
    c"the body ended a level of transaction that it had not begun: return PERILUNE_ROLLBACK instead",
);

/// Rolls back what is open beyond `depth` levels.
///
/// # Safety
/// `session` is an open session.
unsafe fn close_levels(session: *mut Session, depth: u32) {
    // SAFETY: the caller's promise.
    unsafe {
        while perilune_depth(session) > depth {
            let before = perilune_depth(session);
            let _ = call(session, |open| Ok(open.inner.rollback().map(|()| OK)?));
            if perilune_depth(session) >= before {
                // The session cannot close it; its next commit fails.
                return;
            }
        }
    }
}

/// `perilune_begin`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_begin(session: *mut Session, options: *const Options) -> c_int {
    // SAFETY: the caller's pointers are good or NULL, as the header asks.
    unsafe {
        call(session, |open| {
            open.inner.begin(&options_of(options)?)?;
            *open.begun += u64::from(open.inner.depth() == 1);
            Ok(OK)
        })
    }
}

/// `perilune_commit`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_commit(session: *mut Session) -> c_int {
    // SAFETY: the caller's pointers are good or NULL, as the header asks.
    unsafe { call(session, |open| in_transaction(open).and_then(|inner| done(inner.commit()))) }
}

/// `perilune_rollback`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_rollback(session: *mut Session) -> c_int {
    // SAFETY: the caller's pointers are good or NULL, as the header asks.
    unsafe { call(session, |open| in_transaction(open).and_then(|inner| done(inner.rollback()))) }
}

/// `perilune_validate`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_validate(session: *mut Session) -> c_int {
    // SAFETY: the caller's pointers are good or NULL, as the header asks.
    unsafe {
        let validate = |open: Open<'_>| {
            in_transaction(Open { base: 0, ..open }).and_then(|inner| done(inner.validate()))
        };
        call(session, validate)
    }
}

/// The session, in a transaction that whoever calls may end.
fn in_transaction(open: Open<'_>) -> Result<&mut perilune::Session, Failure> {
    let Open { inner, base, .. } = open;
    if inner.depth() > base {
        return Ok(inner);
    }
    let what = match base {
        0 => c"no transaction is open: call perilune_begin first",
        _ => c"a function of SQL does not end its statement's transaction: answer an error instead",
    };
    Err(Failure::fixed(TRANSACTION_STATE, what))
}

fn done(result: perilune::Result<()>) -> Answer {
    result?;
    Ok(OK)
}

/// `perilune_run`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_run(
    session: *mut Session,
    options: *const Options,
    program: *const c_char,
    program_size: usize,
    reply: *mut Value,
) -> c_int {
    // SAFETY: the caller's pointers are good or NULL, as the header asks.
    unsafe {
        call(session, |open| {
            let reply = place(reply)?;
            if open.base > 0 {
                let what = c"a function of SQL runs in its statement's transaction: no program at the server";
                return Err(Failure::fixed(TRANSACTION_STATE, what));
            }
            let program = bytes(program, program_size)?;
            let text = open.inner.run_at_server(&options_of(options)?, program)?;
            answer(reply, Value::string(open.text.keep(text)))
        })
    }
}

/// `perilune_retry`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_retry(session: *mut Session) -> c_int {
    // SAFETY: the caller's pointers are good or NULL, as the header asks.
    unsafe {
        call(session, |open| {
            if open.inner.depth() > 0 {
                return Err(Failure::fixed(
                    TRANSACTION_STATE,
                    c"roll all levels back before the next try: call perilune_rollback until perilune_depth is 0",
                ));
            }
            done(open.inner.retry())
        })
    }
}

/// `perilune_give_up`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_give_up(session: *mut Session) {
    if session.is_null() {
        return;
    }
    // SAFETY: the caller's pointers are good or NULL, as the header asks.
    unsafe {
        call(session, |open| {
            if open.base == 0 {
                open.inner.give_up();
            }
            Ok(OK)
        });
    }
}

/// `perilune_depth`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_depth(session: *const Session) -> u32 {
    // SAFETY: the caller's pointers are good or NULL, as the header asks.
    unsafe { looked_at(session, |inner| u32::try_from(inner.depth()).unwrap_or(u32::MAX)) }
}

/// `perilune_restarts`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_restarts(session: *const Session) -> u32 {
    // SAFETY: the caller's pointers are good or NULL, as the header asks.
    unsafe { looked_at(session, |inner| inner.restarts()) }
}

/// What `look` tells of a session; 0 for one that is closed, or that runs a statement and no function of the program's.
///
/// # Safety
/// `session` is NULL or an open session that no other thread uses now.
unsafe fn looked_at(session: *const Session, look: impl FnOnce(&perilune::Session) -> u32) -> u32 {
    // SAFETY: the caller's promise; sql.rs keeps `asks` as long as it is good, and nobody else uses it meanwhile.
    unsafe {
        match session.as_ref().map(|session| (&session.inner, session.asks)) {
            Some((Some(inner), _)) => look(inner),
            Some((None, Some(mut asks))) => look(asks.as_mut().session()),
            _ => 0,
        }
    }
}
