//! Channels: creating and removing them, posting, receiving, following.
//!
//! Invariant: the body of a message that is given to C lies in memory of the session until the session's next call.

use std::ffi::{c_char, c_int, c_void};

use perilune::{ChannelOptions, Message, WhenFull};

use crate::edge::{bytes, place, store};
use crate::options::{read, timeout};
use crate::session::{call, Session};
use crate::status::{Answer, Failure, OK, TIMED_OUT};
use crate::value::Text;

/// `perilune_channel_options`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Options {
    /// Bytes of the struct that the caller knows.
    pub size: u32,
    /// `enum perilune_when_full`.
    pub when_full: i32,
    /// Messages at most; 0: the default.
    pub messages: u64,
    /// Bytes at most; 0: the default.
    pub bytes: u64,
}

/// `perilune_received`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Received {
    /// Its number in the channel.
    pub number: u64,
    /// Messages before it that were dropped unseen.
    pub missed: u64,
    /// Its bytes.
    pub body: *const c_char,
    /// How many.
    pub body_size: usize,
}

/// # Safety
/// `options` is NULL or good for reading as many bytes as it says.
unsafe fn options_of(options: *const Options) -> Result<ChannelOptions, Failure> {
    let none = Options { size: size_of::<Options>() as u32, when_full: 0, messages: 0, bytes: 0 };
    // SAFETY: the caller's promise; any bytes make these options.
    let options = unsafe { read(options, none) }?;
    let mut channel = ChannelOptions::default();
    if options.messages != 0 {
        channel.messages = options.messages;
    }
    if options.bytes != 0 {
        channel.bytes = options.bytes;
    }
    channel.when_full = match options.when_full {
        0 => WhenFull::Refuse,
        1 => WhenFull::DropOldest,
        _ => return Err(Failure::invalid(c"when_full is PERILUNE_FULL_REFUSE or _DROP_OLDEST")),
    };
    Ok(channel)
}

/// Stores a message whose body goes to `text`.
///
/// # Safety
/// `to` is good for writing.
unsafe fn received(message: Option<Message>, text: &mut Text, to: *mut Received) -> Answer {
    let Some(message) = message else { return Ok(TIMED_OUT) };
    let body = text.keep(message.body);
    let received =
        Received { number: message.number, missed: message.missed, body: body.p, body_size: body.n };
    // SAFETY: the caller's promise.
    unsafe { store(to, received) };
    Ok(OK)
}

/// `perilune_channel_create`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_channel_create(
    session: *mut Session,
    name: *const c_char,
    name_size: usize,
    options: *const Options,
) -> c_int {
    // SAFETY: the caller's pointers are good or NULL, as the header asks.
    unsafe {
        call(session, |open| {
            open.inner.channel(bytes(name, name_size)?).create(options_of(options)?)?;
            Ok(OK)
        })
    }
}

/// `perilune_channel_remove`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_channel_remove(
    session: *mut Session,
    name: *const c_char,
    name_size: usize,
) -> c_int {
    // SAFETY: the caller's pointers are good or NULL, as the header asks.
    unsafe {
        call(session, |open| {
            open.inner.channel(bytes(name, name_size)?).remove()?;
            Ok(OK)
        })
    }
}

/// `perilune_post`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_post(
    session: *mut Session,
    name: *const c_char,
    name_size: usize,
    body: *const c_void,
    body_size: usize,
    number: *mut u64,
) -> c_int {
    // SAFETY: the caller's pointers are good or NULL, as the header asks.
    unsafe {
        call(session, |open| {
            let posted = open.inner.channel(bytes(name, name_size)?).post(bytes(body.cast(), body_size)?)?;
            store(number, posted);
            Ok(OK)
        })
    }
}

/// `perilune_receive`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_receive(
    session: *mut Session,
    name: *const c_char,
    name_size: usize,
    seconds: f64,
    message: *mut Received,
) -> c_int {
    // SAFETY: the caller's pointers are good or NULL, as the header asks.
    unsafe {
        call(session, |open| {
            let message = place(message)?;
            let taken = open.inner.channel(bytes(name, name_size)?).receive(timeout(seconds)?)?;
            received(taken, open.text, message)
        })
    }
}

/// `perilune_follow`.
///
/// # Safety
/// The pointers are as include/perilune.h asks.
#[no_mangle]
pub unsafe extern "C" fn perilune_follow(
    session: *mut Session,
    name: *const c_char,
    name_size: usize,
    after: u64,
    seconds: f64,
    message: *mut Received,
) -> c_int {
    // SAFETY: the caller's pointers are good or NULL, as the header asks.
    unsafe {
        call(session, |open| {
            let message = place(message)?;
            let read = open.inner.channel(bytes(name, name_size)?).follow(after, timeout(seconds)?)?;
            received(read, open.text, message)
        })
    }
}
