//! `perilune_sql_*`: statements of SQL in a session, with its nodes in one transaction.
//!
//! Invariants
//! - A session has one connection of SQL, made with its first statement; only the thread that has the session uses it.
//! - A conflict is `PERILUNE_CONFLICT`, as of every other call; what SQL itself refuses is `PERILUNE_SQL`, whose message begins
//!   with a SQLSTATE.

use std::ffi::{c_char, c_int, c_void, CStr};
use std::ptr::NonNull;
use std::rc::Rc;

use perilune::key::Decimal;
use perilune::{Levels, ValueRef};
use perilune_sandbox::sql::{Limits, LuaFunctions};
use perilune_sql::{Asks, Connection, Rows as Answer, SqlState, Value as SqlValue};

use crate::edge::{array, bytes, caught, given, store, thread_call};
use crate::rows::{shown, Rows};
use crate::session::{call, Open, Session};
use crate::status::{Answer as EdgeAnswer, Failure, CONFLICT, OK, RESTART, SQL};
use crate::value::{Value, BLOB};

impl From<perilune_sql::Error> for Failure {
    fn from(error: perilune_sql::Error) -> Failure {
        if error.engine().is_some() {
            return Failure::from(perilune::Error::from(error));
        }
        let place = error.position().map_or(String::new(), |at| format!(" (at byte {at})"));
        Failure::with(SQL, format_args!("{}: {error}{place}", error.state()))
    }
}

/// A decimal as the number of SQL that is exactly it; a double keeps each decimal of 15 digits.
fn number(decimal: Decimal) -> Result<SqlValue, Failure> {
    const DIGITS: u64 = 1_000_000_000_000_000;
    match decimal.to_i64() {
        Some(integer) => Ok(SqlValue::Integer(integer)),
        None if decimal.coefficient().unsigned_abs() < DIGITS => Ok(SqlValue::Real(f64::from(decimal))),
        None => {
            let what = "a decimal with a fraction has 15 digits at most in SQL: give a text or a double";
            Err(Failure::with(SQL, format_args!("22003: {what}")))
        }
    }
}

/// The value as SQL takes it.
///
/// # Safety
/// The bytes of a string, blob or decimal are good for reading.
unsafe fn parameter(value: &Value) -> Result<SqlValue, Failure> {
    if value.kind == BLOB {
        // SAFETY: `kind` says which member is meant, and the caller promises its bytes.
        let bytes = unsafe { bytes(value.content.s.p, value.content.s.n) }?;
        return Ok(SqlValue::Blob(bytes.to_vec()));
    }
    // SAFETY: the caller's promise.
    Ok(match unsafe { value.given() }? {
        None | Some(ValueRef::Null) => SqlValue::Null,
        Some(ValueRef::Int(integer)) => SqlValue::Integer(integer),
        Some(ValueRef::Bool(truth)) => SqlValue::Integer(i64::from(truth)),
        Some(ValueRef::Double(real)) => SqlValue::Real(real),
        Some(ValueRef::Decimal(decimal)) => number(decimal)?,
        Some(ValueRef::String(text)) => SqlValue::Text(text.to_vec()),
        Some(ValueRef::EmptyList | ValueRef::EmptyMap | ValueRef::Record(_)) => {
            return Err(Failure::invalid(c"a parameter of SQL is no list and no map"));
        }
    })
}

/// `perilune_sql_run`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_sql_run(
    session: *mut Session,
    text: *const c_char,
    text_size: usize,
    parameters: *const Value,
    count: usize,
    rows: *mut *mut Rows,
) -> c_int {
    // SAFETY: the caller's pointers are good or NULL, as the header asks.
    unsafe {
        store(rows, std::ptr::null_mut());
        let statement = || {
            let text = std::str::from_utf8(bytes(text, text_size)?)
                .map_err(|_| Failure::with(SQL, "22021: a statement is UTF-8"))?;
            let given = array(parameters, count)?;
            let parameters =
                given.iter().map(|value| parameter(value)).collect::<Result<Vec<SqlValue>, Failure>>()?;
            Ok::<(&str, Vec<SqlValue>), Failure>((text, parameters))
        };
        let run = |connection: &Connection, inner: &mut perilune::Session| {
            let (text, parameters) = statement()?;
            let mut answer = Answer::default();
            let outcome = connection.run(inner, text, &parameters, &mut answer)?;
            if !rows.is_null() {
                store(rows, Box::into_raw(Box::new(Rows::of_statement(answer, outcome))));
            }
            Ok(OK)
        };
        if let Some(asks) = session.as_ref().and_then(|session| session.asks) {
            return run_inside(session, asks, statement, rows);
        }
        if session.as_ref().is_some_and(|session| session.sql.as_ref().is_some_and(Connection::has_functions))
        {
            return run_lent(session, run);
        }
        call(session, |Open { inner, sql, .. }| run(connection_of(sql)?, inner))
    }
}

/// Runs a statement of a function of the program's, in the transaction of the statement that calls it.
///
/// # Safety
/// `session` is an open session that no other thread uses now, and `asks` what its function may ask for.
unsafe fn run_inside<'t>(
    session: *mut Session,
    mut asks: NonNull<dyn Asks>,
    statement: impl FnOnce() -> Result<(&'t str, Vec<SqlValue>), Failure>,
    rows: *mut *mut Rows,
) -> c_int {
    let done = caught(|| {
        let (text, parameters) = statement()?;
        // SAFETY: the caller's promise. NB: no reference to the session lives meanwhile: functions that this calls use it.
        let (answer, outcome) = unsafe { asks.as_mut() }.query(text, &parameters)?;
        if !rows.is_null() {
            // SAFETY: the caller's promise.
            unsafe { store(rows, Box::into_raw(Box::new(Rows::of_statement(answer, outcome)))) };
        }
        Ok(OK)
    });
    // SAFETY: the caller's promise.
    unsafe { call(session, |_| done) }
}

/// The connection of a session, which is made with its first use. What runs the tree's functions makes nothing until one is called.
fn connection_of(sql: &mut Option<Connection>) -> Result<&Connection, Failure> {
    Ok(match sql {
        Some(connection) => connection,
        None => {
            let connection = sql.insert(Connection::open()?);
            connection.set_interpreter(Rc::new(LuaFunctions::new(Limits::default())));
            connection
        }
    })
}

/// Runs `body` with what a session has, while the session itself takes no calls: functions of the program's may try.
///
/// # Safety
/// `session` is an open session that no other thread uses now.
unsafe fn run_lent(
    session: *mut Session,
    body: impl FnOnce(&Connection, &mut perilune::Session) -> EdgeAnswer,
) -> c_int {
    // SAFETY: the caller's promise; the reference ends here, before the body runs, and while it is lent nobody frees it.
    let lent = unsafe { session.as_mut() }.and_then(|session| {
        let lent = session.inner.take().zip(session.sql.take());
        session.lent = lent.is_some();
        lent
    });
    let Some((mut inner, sql)) = lent else {
        // SAFETY: as above.
        return unsafe { call(session, |_| Ok(OK)) };
    };
    let done = caught(|| body(&sql, &mut inner));
    // SAFETY: as above: the body has ended.
    unsafe {
        if let Some(session) = session.as_mut() {
            (session.inner, session.sql, session.lent) = (Some(inner), Some(sql), false);
        }
        call(session, |_| done)
    }
}

/// `perilune_sql_call`: a function of the program's that runs.
pub struct Call {
    result: SqlValue,
    error: Option<String>,
}

/// `perilune_sql_callback`.
pub type Callback = unsafe extern "C" fn(*mut c_void, *const Value, usize, *mut Call) -> c_int;

/// What a function was given; released when nobody calls it any more.
struct Context {
    context: *mut c_void,
    release: Option<unsafe extern "C" fn(*mut c_void)>,
}

impl Drop for Context {
    fn drop(&mut self) {
        if let Some(release) = self.release {
            // SAFETY: the header has the caller give a function that may be called so, once, on this thread.
            unsafe { release(self.context) };
        }
    }
}

/// A function of the program's.
struct Own {
    name: String,
    /// Whose statements may call it.
    session: *mut Session,
    callback: Callback,
    context: Context,
}

/// Calls a function of the program's, which may use its session meanwhile.
///
/// # Errors
/// `FUNCTION`, with what it says; a conflict, if it has met one.
///
/// # Safety
/// The callback may be called with its context, as include/perilune.h asks; the session is lent to the statement that calls.
unsafe fn call_back(
    own: &Own,
    asks: &mut (dyn Asks + '_),
    arguments: &[SqlValue],
) -> perilune_sql::Result<SqlValue> {
    let Own { name, session, callback, context } = own;
    let arguments: Vec<Value> = arguments.iter().map(shown).collect();
    let mut call = Call { result: SqlValue::Null, error: None };
    let base = asks.session().depth();
    let lent = NonNull::from(&mut *asks);
    // SAFETY: it is taken back below, before what it borrows ends.
    let lent = unsafe { std::mem::transmute::<NonNull<dyn Asks + '_>, NonNull<dyn Asks>>(lent) };
    // SAFETY: the caller's promises: the session is open as long as its statement runs, and no reference to it lives now, nor while
    // the function runs; arguments and call outlive the call.
    let (status, is_again) = unsafe {
        let before = {
            let session = &mut **session;
            let asks = session.asks.replace(lent);
            (asks, std::mem::replace(&mut session.base, base), std::mem::take(&mut session.rerun))
        };
        let status = callback(context.context, arguments.as_ptr(), arguments.len(), &mut call);
        let session = &mut **session;
        let is_again = session.rerun || status == CONFLICT || status == RESTART;
        (session.asks, session.base, session.rerun) = before;
        (status, is_again)
    };
    close_levels(asks.session(), base);
    if is_again {
        return Err(perilune::Error::Conflict.into());
    }
    if status >= OK && call.error.is_none() {
        return Ok(call.result);
    }
    let why = call.error.unwrap_or_else(|| format!("it answered {status}"));
    Err(perilune_sql::Error::new(SqlState::FUNCTION, format!("function {name}: {why}")))
}

/// Takes back levels of transaction that a function has left open.
fn close_levels(session: &mut perilune::Session, base: usize) {
    while session.depth() > base {
        let before = session.depth();
        if session.rollback().is_err() || session.depth() >= before {
            // The session cannot close it; the statement's end fails.
            return;
        }
    }
}

/// `perilune_sql_function`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_sql_function(
    session: *mut Session,
    name: *const c_char,
    count: c_int,
    is_deterministic: c_int,
    callback: Option<Callback>,
    context: *mut c_void,
    release: Option<unsafe extern "C" fn(*mut c_void)>,
) -> c_int {
    let context = Context { context, release };
    // SAFETY: the caller's pointers are good or NULL, as the header asks.
    unsafe {
        let is_running = session.as_ref().is_some_and(|session| session.lent);
        call(session, |Open { sql, .. }| {
            if is_running {
                let what = c"a statement runs: functions are given and taken back between statements";
                return Err(Failure::invalid(what));
            }
            if name.is_null() {
                return Err(Failure::invalid(c"the name of a function is NULL"));
            }
            let name = CStr::from_ptr(name).to_str().map_err(|_| Failure::invalid(c"a name is UTF-8"))?;
            let connection = connection_of(sql)?;
            let Some(callback) = callback else {
                connection.remove_function(name)?;
                return Ok(OK);
            };
            let own = Own { name: name.to_owned(), session, callback, context };
            let run = move |asks: &mut dyn Asks, arguments: &[SqlValue]| call_back(&own, asks, arguments);
            connection.set_asking_function(name, usize::try_from(count).ok(), is_deterministic != 0, run)?;
            Ok(OK)
        })
    }
}

/// `perilune_sql_result`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_sql_result(call: *mut Call, value: *const Value) -> c_int {
    thread_call(|| {
        // SAFETY: the caller's pointers are good or NULL, as the header asks.
        unsafe {
            let result = parameter(given(value)?)?;
            let call = call.as_mut().ok_or(Failure::invalid(c"the call is NULL"))?;
            call.result = result;
        }
        Ok(OK)
    })
}

/// `perilune_sql_raise`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_sql_raise(call: *mut Call, text: *const c_char, size: usize) -> c_int {
    thread_call(|| {
        // SAFETY: the caller's pointers are good or NULL, as the header asks.
        unsafe {
            let text = String::from_utf8_lossy(bytes(text, size)?).into_owned();
            let call = call.as_mut().ok_or(Failure::invalid(c"the call is NULL"))?;
            call.error = Some(text);
        }
        Ok(OK)
    })
}
