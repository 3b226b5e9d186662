//! `perilune_session`: one thread's way in, with the memory that its answers lie in.
//!
//! Invariants
//! - A call takes the session as a whole and gives it back before it returns; a transaction's body
//!   runs between two calls, so that it may use the session itself.
//! - The session's memory is freed when it is closed and its last cursor is; a cursor of a closed
//!   session finds `inner` empty.
//! - A successful call leaves the message of the last failure as it is.

use std::borrow::Cow;
use std::ffi::{c_char, c_int, CStr};
use std::ptr::NonNull;

use perilune::key::KeyError;
use perilune::NodeRef;
use perilune_sql::Asks;

use crate::database::Database;
use crate::edge::{caught, given, place, store, thread_call, thread_message};
use crate::node::View;
use crate::status::{Answer, Failure, CLOSED, CONFLICT, INVALID, OK, RESTART};
use crate::value::{Given, Text, Value};

/// `perilune_session`.
pub struct Session {
    db: perilune::Database,
    /// `None` once closed.
    pub(crate) inner: Option<perilune::Session>,
    /// Made with the first statement of SQL.
    pub(crate) sql: Option<perilune_sql::Connection>,
    message: Cow<'static, CStr>,
    /// The key of a child being asked for.
    key: Vec<u8>,
    /// The texts and bytes of answers that do not lie in `inner`.
    pub(crate) text: Text,
    /// The values of the last batch, and the texts of its decimals.
    batch: Vec<Option<perilune::Value>>,
    texts: Vec<Text>,
    /// A nested level asked for another run of the outermost, which no body may overrule.
    pub(crate) rerun: bool,
    /// It sees the database as it was when it was opened.
    is_snapshot: bool,
    /// How many transactions have been begun, nested levels aside.
    begun: u64,
    /// A statement runs that may call functions of the program's: `inner` is with it.
    pub(crate) lent: bool,
    /// What the function asks of the statement that runs now; none: none runs.
    pub(crate) asks: Option<NonNull<dyn Asks>>,
    /// How many levels were open when that began; it ends none of these.
    pub(crate) base: usize,
    /// Cursors that still point here.
    pub(crate) cursors: usize,
}

/// What a function works with: the open session and the memory for its answer.
pub(crate) struct Open<'s> {
    pub(crate) db: &'s perilune::Database,
    pub(crate) inner: &'s mut perilune::Session,
    pub(crate) sql: &'s mut Option<perilune_sql::Connection>,
    pub(crate) key: &'s mut Vec<u8>,
    pub(crate) text: &'s mut Text,
    pub(crate) batch: &'s mut Vec<Option<perilune::Value>>,
    pub(crate) texts: &'s mut Vec<Text>,
    pub(crate) is_snapshot: bool,
    pub(crate) begun: &'s mut u64,
    pub(crate) base: usize,
}

impl Session {
    fn new(db: perilune::Database, inner: perilune::Session, is_snapshot: bool) -> Session {
        Session {
            db,
            inner: Some(inner),
            sql: None,
            message: Cow::Borrowed(c""),
            key: Vec::with_capacity(256),
            text: Text::new(),
            batch: Vec::new(),
            texts: Vec::new(),
            rerun: false,
            is_snapshot,
            begun: 0,
            lent: false,
            asks: None,
            base: 0,
            cursors: 0,
        }
    }

    #[inline]
    pub(crate) fn open(&mut self) -> Result<Open<'_>, Failure> {
        let Session { db, inner, sql, key, text, batch, texts, is_snapshot, begun, lent, asks, base, .. } =
            self;
        let (is_snapshot, base) = (*is_snapshot, *base);
        let inner = match (inner, asks) {
            (Some(inner), _) => inner,
            // SAFETY: it is there as long as its function runs, and whoever has lent it uses it afterwards (sql.rs); `self` is
            // borrowed as long as this reference lives, so there is one at a time.
            (None, Some(asks)) => unsafe { asks.as_mut() }.session(),
            (None, None) => return Err(if *lent { SESSION_LENT } else { SESSION_CLOSED }),
        };
        Ok(Open { db, inner, sql, key, text, batch, texts, is_snapshot, begun, base })
    }

    #[cold]
    pub(crate) fn fail(&mut self, failure: Failure) -> c_int {
        // A function of SQL may go on, and its statement runs again all the same.
        self.rerun |= self.asks.is_some() && (failure.status == CONFLICT || failure.status == RESTART);
        self.message = failure.text;
        failure.status
    }
}

const SESSION_LENT: Failure =
    Failure::fixed(INVALID, c"the session runs a statement, and no function of its own: use another session");

const SESSION_CLOSED: Failure = Failure::fixed(CLOSED, c"the session was closed: open another");

/// Calls `function` with the session at `session`, and keeps the text of its failure there.
///
/// # Safety
/// `session` is NULL or an open session that no other thread uses now.
#[inline]
pub(crate) unsafe fn call(session: *mut Session, function: impl FnOnce(Open<'_>) -> Answer) -> c_int {
    // SAFETY: the caller's promise; the reference ends with this function.
    let Some(session) = (unsafe { session.as_mut() }) else { return no_session() };
    match caught(|| session.open().and_then(function)) {
        Ok(answer) => answer,
        Err(failure) => session.fail(failure),
    }
}

#[cold]
pub(crate) fn no_session() -> c_int {
    thread_call(|| Err(Failure::invalid(c"the session is NULL: open one with perilune_session_open")))
}

/// The node of a view, as the Rust API borrows it.
#[inline]
pub(crate) fn node_of<'a>(view: &View<'a>) -> NodeRef<'a> {
    NodeRef::from_encoded(view.key, view.private)
}

/// Makes in `key` the key of a child of `parent`, and gives it as a node.
///
/// # Errors
/// `KEY_TOO_LONG`, `TOO_MANY_SUBSCRIPTS`.
#[inline]
pub(crate) fn child<'k>(
    key: &'k mut Vec<u8>,
    parent: &View<'_>,
    last: Given<'_>,
) -> Result<NodeRef<'k>, Failure> {
    key.clear();
    key.extend_from_slice(parent.key);
    append(key, parent, 1, last)?;
    Ok(NodeRef::from_encoded(key, parent.private))
}

/// Makes in `key` the key of a descendant of `parent`, and gives it as a node.
///
/// # Safety
/// The bytes of the subscripts are good for reading.
///
/// # Errors
/// `INVALID`, `KEY_TOO_LONG`, `TOO_MANY_SUBSCRIPTS`.
pub(crate) unsafe fn descendant<'k>(
    key: &'k mut Vec<u8>,
    parent: &View<'_>,
    subscripts: &[Value],
) -> Result<NodeRef<'k>, Failure> {
    key.clear();
    key.extend_from_slice(parent.key);
    for (index, subscript) in subscripts.iter().enumerate() {
        // SAFETY: the caller's promise.
        append(key, parent, index + 1, unsafe { subscript.as_subscript() }?)?;
    }
    Ok(NodeRef::from_encoded(key, parent.private))
}

/// Appends subscript number `more` below `parent`.
#[inline]
fn append(key: &mut Vec<u8>, parent: &View<'_>, more: usize, subscript: Given<'_>) -> Result<(), Failure> {
    if parent.depth + more > perilune::key::MAX_SUBSCRIPTS {
        return Err(KeyError::TooManySubscripts.into());
    }
    match subscript {
        Given::Int(int) => {
            let mut code = [0; 16];
            let length = perilune::key::encode_int(int, &mut code);
            let start = key.len();
            // A copy of constant size beats one of 1 to 9 bytes.
            key.extend_from_slice(&code);
            key.truncate(start + length);
        }
        Given::Number(number) => {
            let mut code = [0; perilune::key::MAX_NUMBER_CODE];
            let length = perilune::key::encode_number(number, &mut code);
            key.extend_from_slice(&code[..length]);
        }
        Given::Bytes(bytes) => append_bytes(key, bytes)?,
    }
    let limit = parent.limit();
    if key.len() > limit {
        return Err(KeyError::KeyTooLong { limit }.into());
    }
    Ok(())
}

fn append_bytes(key: &mut Vec<u8>, bytes: &[u8]) -> Result<(), Failure> {
    if bytes.len() > perilune::key::MAX_SUBSCRIPT {
        return Err(KeyError::SubscriptTooLong.into());
    }
    let start = key.len();
    // The longest code has a tag, an end, and every byte escaped; that of a short number is longer.
    key.resize(start + (2 * bytes.len() + 2).max(perilune::key::MAX_NUMBER_CODE), 0);
    match perilune::key::encode_bytes(bytes, &mut key[start..]) {
        Some(length) => {
            key.truncate(start + length);
            Ok(())
        }
        None => Err(Failure::fixed(INVALID, c"the subscript could not be encoded")),
    }
}

/// `perilune_session_open`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_session_open(db: *mut Database, session: *mut *mut Session) -> c_int {
    thread_call(|| {
        // SAFETY: the caller's pointers are good or NULL, as the header asks.
        unsafe {
            let session = place(session)?;
            session.write(std::ptr::null_mut());
            let db = given(db)?.inner.clone();
            let inner = db.session()?;
            session.write(Box::into_raw(Box::new(Session::new(db, inner, false))));
        }
        Ok(OK)
    })
}

/// `perilune_snapshot_open`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_snapshot_open(db: *mut Database, session: *mut *mut Session) -> c_int {
    thread_call(|| {
        // SAFETY: the caller's pointers are good or NULL, as the header asks.
        unsafe {
            let session = place(session)?;
            session.write(std::ptr::null_mut());
            let db = given(db)?.inner.clone();
            let inner = db.snapshot()?;
            session.write(Box::into_raw(Box::new(Session::new(db, inner, true))));
        }
        Ok(OK)
    })
}

/// `perilune_session_close`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_session_close(session: *mut Session) {
    thread_call(|| {
        // SAFETY: the caller's pointers are good or NULL, as the header asks.
        unsafe {
            if let Some(open) = session.as_mut().filter(|open| !open.lent) {
                drop(open.sql.take());
                drop(open.inner.take());
                free_if_done(session);
            }
        }
        Ok(OK)
    });
}

/// Frees the memory of a closed session whose cursors are closed.
///
/// # Safety
/// `session` came from `perilune_session_open` and is used no more if this frees it.
pub(crate) unsafe fn free_if_done(session: *mut Session) {
    // SAFETY: the caller's promise; the reference ends before the box is made.
    let done = unsafe { session.as_ref() }
        .is_some_and(|session| session.inner.is_none() && !session.lent && session.cursors == 0);
    if done {
        // SAFETY: made by `Box::into_raw`, and nobody uses it any more.
        drop(unsafe { Box::from_raw(session) });
    }
}

/// `perilune_message`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_message(session: *const Session) -> *const c_char {
    // SAFETY: the caller's pointers are good or NULL, as the header asks.
    match unsafe { session.as_ref() } {
        Some(session) => session.message.as_ptr(),
        None => thread_message(),
    }
}

/// `perilune_version`.
#[no_mangle]
pub extern "C" fn perilune_version() -> *const c_char {
    const VERSION: &CStr =
        match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
            Ok(version) => version,
            Err(_) => c"",
        };
    VERSION.as_ptr()
}

/// `perilune_status_name`.
#[no_mangle]
pub extern "C" fn perilune_status_name(status: c_int) -> *const c_char {
    let found = crate::status::NAMES.iter().find(|(code, _)| *code == status);
    found.map_or(c"PERILUNE_USER", |(_, name)| *name).as_ptr()
}

/// Stores `value` for the caller.
///
/// # Safety
/// `to` is NULL or good for writing.
#[inline]
pub(crate) unsafe fn answer(to: *mut Value, value: Value) -> Answer {
    // SAFETY: the caller's promise.
    unsafe { store(to, value) };
    Ok(OK)
}
