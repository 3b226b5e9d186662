//! `perilune_cursor`: going through children or a subtree.
//!
//! Invariants
//! - A cursor counts itself in its session, whose memory therefore stays; the session inside may be
//!   closed, which a cursor finds out at its next step.
//! - The entries that a cursor returned lie in the cursor's own memory, so other calls of the session do not
//!   overwrite them.

pub mod entries;

use std::ffi::{c_int, c_void};
use std::ops::Bound;

use perilune::{Number, Subscript};

use crate::edge::{caught, given, place, store, thread_call};
use crate::node::{depth_of, Block, Head, View};
use crate::session::{call, child, free_if_done, node_of, Session};
use crate::status::{Answer, Failure, INTERNAL, INVALID, NOT_FOUND, OK};
use crate::value::{Given, Text, Value};

use self::entries::Batch;

const REVERSE: u32 = 1;
const VALUES: u32 = 2;
const DATA: u32 = 4;
const NODES: u32 = 8;
const FROM_EXCLUSIVE: u32 = 16;
const TO_EXCLUSIVE: u32 = 32;
const WITHOUT_EMPTY: u32 = 64;
const FLAGS: u32 = 127;

const CHILDREN: i32 = 1;
const SUBTREE: i32 = 2;

/// `perilune_cursor_options`.
#[repr(C)]
pub struct Options {
    /// Bytes of the struct that the caller knows.
    pub size: u32,
    /// `enum perilune_cursor_kind`.
    pub kind: i32,
    /// `PERILUNE_CURSOR_*`.
    pub flags: u32,
    /// Reserved for later versions: 0.
    pub reserved: u32,
    /// Where a walk over children begins.
    pub from: *const Value,
    /// Where it ends.
    pub to: *const Value,
    /// Where a walk through a subtree begins.
    pub from_node: *const Head,
    /// Where it ends.
    pub to_node: *const Head,
}

const _: () = assert!(size_of::<Options>() == 48);

/// `perilune_cursor`.
pub struct Cursor {
    session: *mut Session,
    walk: perilune::Cursor,
    flags: u32,
    /// How many subscripts the children have that it goes over.
    children: Option<u16>,
    /// The text of a decimal, an escaped string or a name that the last step gave.
    subscript: Text,
    value: Text,
    batch: Batch,
}

impl Cursor {
    #[inline]
    fn wants(&self, flag: u32) -> bool {
        self.flags & flag != 0
    }

    #[inline]
    fn step(&mut self, inner: &mut perilune::Session) -> Result<bool, Failure> {
        Ok(if self.wants(REVERSE) { self.walk.previous(inner)? } else { self.walk.next(inner)? })
    }
}

/// Makes the walk that `options` describe.
///
/// # Safety
/// As the header asks of the pointers of `perilune_cursor_open`.
unsafe fn walk_of(key: &mut Vec<u8>, node: View<'_>, options: &Options) -> Result<perilune::Cursor, Failure> {
    if options.size as usize != size_of::<Options>() || options.flags & !FLAGS != 0 {
        return Err(Failure::invalid(
            c"cursor options: begin with PERILUNE_CURSOR_OPTIONS_INIT, and use its flags",
        ));
    }
    let mut walk = match options.kind {
        CHILDREN => perilune::Cursor::children(node_of(&node)),
        SUBTREE => perilune::Cursor::subtree(node_of(&node)),
        _ => return Err(Failure::invalid(c"the kind of a cursor is PERILUNE_CURSOR_CHILDREN or _SUBTREE")),
    };
    if options.flags & WITHOUT_EMPTY != 0 {
        walk = walk.without_empty();
    }
    // SAFETY: the caller's promise.
    walk = unsafe {
        if options.kind == CHILDREN {
            if !options.from_node.is_null() || !options.to_node.is_null() {
                return Err(Failure::invalid(c"children are bounded by subscripts, from and to"));
            }
            let from = bound(subscript(options.from)?, options.flags & FROM_EXCLUSIVE);
            let to = bound(subscript(options.to)?, options.flags & TO_EXCLUSIVE);
            let (low, high) = in_order(from, to, options.flags);
            check_children(key, &node, [&low, &high])?;
            walk.between(low, high)?
        } else {
            if !options.from.is_null() || !options.to.is_null() {
                return Err(Failure::invalid(c"a subtree is bounded by nodes, from_node and to_node"));
            }
            let from = node_bound(options.from_node, &node)?;
            let to = node_bound(options.to_node, &node)?;
            let from = bound(from.as_ref().map(node_of), options.flags & FROM_EXCLUSIVE);
            let to = bound(to.as_ref().map(node_of), options.flags & TO_EXCLUSIVE);
            let (low, high) = in_order(from, to, options.flags);
            walk.bound(low, high);
            walk
        }
    };
    Ok(if options.flags & VALUES == 0 { walk.without_values() } else { walk })
}

/// Checks that the bounds are children, so that their errors are those of children.
fn check_children(
    key: &mut Vec<u8>,
    parent: &View<'_>,
    bounds: [&Bound<Subscript<'_>>; 2],
) -> Result<(), Failure> {
    for bound in bounds {
        match bound {
            Bound::Included(subscript) | Bound::Excluded(subscript) => {
                let given = match subscript {
                    Subscript::Number(number) => Given::Number(*number),
                    Subscript::Bytes(bytes) => Given::Bytes(bytes),
                };
                child(key, parent, given)?;
            }
            Bound::Unbounded => {}
        }
    }
    Ok(())
}

/// # Safety
/// `value` is NULL or good, with its bytes, for `'a`.
unsafe fn subscript<'a>(value: *const Value) -> Result<Option<Subscript<'a>>, Failure> {
    // SAFETY: the caller's promise.
    let Some(value) = (unsafe { value.as_ref() }) else { return Ok(None) };
    // SAFETY: the caller's promise.
    Ok(Some(match unsafe { value.as_subscript() }? {
        Given::Int(int) => Subscript::Number(Number::Int(int)),
        Given::Number(number) => Subscript::Number(number),
        Given::Bytes(bytes) => Subscript::from_bytes(bytes),
    }))
}

/// # Safety
/// `node` is NULL or a node that stays for `'a`.
unsafe fn node_bound<'a>(node: *const Head, top: &View<'_>) -> Result<Option<View<'a>>, Failure> {
    if node.is_null() {
        return Ok(None);
    }
    // SAFETY: the caller's promise.
    let view = unsafe { View::of(node)? };
    if view.private != top.private {
        return Err(Failure::invalid(c"a bound lies in the trees of its cursor: give both with ^, or none"));
    }
    Ok(Some(view))
}

fn bound<T>(end: Option<T>, exclusive: u32) -> Bound<T> {
    match (end, exclusive) {
        (None, _) => Bound::Unbounded,
        (Some(end), 0) => Bound::Included(end),
        (Some(end), _) => Bound::Excluded(end),
    }
}

fn in_order<T>(from: Bound<T>, to: Bound<T>, flags: u32) -> (Bound<T>, Bound<T>) {
    if flags & REVERSE == 0 {
        (from, to)
    } else {
        (to, from)
    }
}

/// `perilune_cursor_open`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_cursor_open(
    session: *mut Session,
    node: *const Head,
    options: *const Options,
    cursor: *mut *mut Cursor,
) -> c_int {
    let plain = Options {
        size: size_of::<Options>() as u32,
        kind: CHILDREN,
        flags: 0,
        reserved: 0,
        from: std::ptr::null(),
        to: std::ptr::null(),
        from_node: std::ptr::null(),
        to_node: std::ptr::null(),
    };
    // SAFETY: the caller's pointers are good or NULL, as the header asks.
    let opened = unsafe {
        call(session, |open| {
            let cursor = place(cursor)?;
            cursor.write(std::ptr::null_mut());
            let options = options.as_ref().unwrap_or(&plain);
            let node = View::of(node)?;
            let walk = walk_of(open.key, node, options)?;
            let made = Cursor {
                session,
                walk,
                flags: options.flags,
                // No node is deeper than 255.
                children: (options.kind == CHILDREN).then_some(node.depth as u16 + 1),
                subscript: Text::new(),
                value: Text::new(),
                batch: Batch::default(),
            };
            cursor.write(Box::into_raw(Box::new(made)));
            Ok(OK)
        })
    };
    if opened == OK {
        // SAFETY: `call` succeeded, so the session is there; no reference to it is alive.
        unsafe { (*session).cursors += 1 };
    }
    opened
}

/// Calls `function` with the cursor and its session.
///
/// # Safety
/// `cursor` is NULL or an open cursor whose session no other thread uses now.
#[inline]
unsafe fn with(
    cursor: *mut Cursor,
    function: impl FnOnce(&mut Cursor, &mut perilune::Session) -> Answer,
) -> c_int {
    // SAFETY: the caller's promise; the reference ends with this function.
    let Some(cursor) = (unsafe { cursor.as_mut() }) else {
        return thread_call(|| {
            Err(Failure::invalid(c"the cursor is NULL: open one with perilune_cursor_open"))
        });
    };
    // SAFETY: the session's memory stays while it has cursors, and lies apart from the cursor's.
    let session = unsafe { &mut *cursor.session };
    let answer = match session.open() {
        Ok(open) => caught(|| function(cursor, open.inner)),
        Err(failure) => Err(failure),
    };
    answer.unwrap_or_else(|failure| session.fail(failure))
}

/// `perilune_cursor_next`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_cursor_next(
    cursor: *mut Cursor,
    subscript: *mut Value,
    value: *mut Value,
    data: *mut i32,
) -> c_int {
    // SAFETY: the caller's pointers are good or NULL, as the header asks.
    unsafe {
        with(cursor, |cursor, inner| {
            if !cursor.step(inner)? {
                store(subscript, Value::absent());
                store(value, Value::absent());
                store(data, 0);
                return Ok(NOT_FOUND);
            }
            // NB: integers go where they belong at once; what goes through a `Result` in memory is waited for.
            if !subscript.is_null() {
                match cursor.walk.integer() {
                    Some(int) => subscript.write(Value::int(int)),
                    None => subscript.write(entries::subscript(&cursor.walk, &mut cursor.subscript)?),
                }
            }
            if !value.is_null() {
                match cursor.walk.integer_value() {
                    Some(int) => value.write(Value::int(int)),
                    None if cursor.flags & VALUES == 0 => value.write(Value::absent()),
                    None => value.write(entries::value(&cursor.walk, &mut cursor.value)?),
                }
            }
            if !data.is_null() {
                let wanted = cursor.wants(DATA);
                data.write(if wanted { i32::from(cursor.walk.data(inner)?.number()) } else { 0 });
            }
            Ok(OK)
        })
    }
}

/// `perilune_cursor_fetch`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_cursor_fetch(
    cursor: *mut Cursor,
    entries: *mut entries::Entry,
    capacity: usize,
    count: *mut usize,
) -> c_int {
    // SAFETY: the caller's pointers are good or NULL, as the header asks.
    unsafe {
        with(cursor, |cursor, inner| {
            let (entries, count) = (place(entries)?, place(count)?);
            count.write(0);
            cursor.batch.clear();
            while cursor.batch.takes_more(capacity) && cursor.step(inner)? {
                let data = if cursor.wants(DATA) { i32::from(cursor.walk.data(inner)?.number()) } else { 0 };
                let (values, nodes) = (cursor.wants(VALUES), cursor.wants(NODES));
                cursor.batch.add(&cursor.walk, cursor.children, values, nodes, data)?;
            }
            count.write(cursor.batch.write(entries));
            Ok(if count.read() == 0 { NOT_FOUND } else { OK })
        })
    }
}

/// `perilune_cursor_skip`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_cursor_skip(cursor: *mut Cursor, node: *const Head) -> c_int {
    // SAFETY: the caller's pointers are good or NULL, as the header asks.
    unsafe {
        with(cursor, |cursor, _| {
            let view = View::of(node)?;
            if cursor.wants(REVERSE) {
                cursor.walk.seek(node_of(&view));
            } else {
                cursor.walk.seek_past(node_of(&view));
            }
            Ok(OK)
        })
    }
}

/// `perilune_cursor_node`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_cursor_node(
    cursor: *const Cursor,
    buffer: *mut c_void,
    capacity: usize,
    size: *mut usize,
) -> c_int {
    thread_call(|| {
        // SAFETY: the caller's pointers are good or NULL, as the header asks.
        unsafe {
            let Ok(node) = given(cursor)?.walk.node_ref() else { return Ok(NOT_FOUND) };
            let key = node.encoded();
            Block { buffer, capacity, size }.write_key(key, depth_of(key)?, node.is_local())
        }
    })
}

/// `perilune_cursor_close`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_cursor_close(cursor: *mut Cursor) {
    if cursor.is_null() {
        return;
    }
    thread_call(|| {
        // SAFETY: made by `Box::into_raw` in perilune_cursor_open, and closed once, as the header asks.
        unsafe {
            let session = Box::from_raw(cursor).session;
            let counted = session.as_mut().ok_or(Failure::fixed(INTERNAL, c"a cursor without a session"))?;
            counted.cursors =
                counted.cursors.checked_sub(1).ok_or(Failure::fixed(INVALID, c"closed twice"))?;
            free_if_done(session);
        }
        Ok(OK)
    });
}
