//! Channels: bounded, ordered messages by name, in the volatile tree. The format is
//! `docs/format/volatile.md`.
//!
//! A channel is its state, under number 0, and its messages, under their numbers, which follow each
//! other without a gap: they are taken and dropped at the front and posted at the end. Each change is
//! part of a transaction that reads and writes the state; whoever waits watches the state's key.
//!
//! Example: `jobs` has the messages 7 and 8, so its state says first 7, last 8. A post writes message 9 and the state 7, 9;
//! a receive then removes message 7 and writes 8, 9.
//!
//! Invariants
//! - Numbers ascend from 1 and are never used twice while the channel lives.
//! - Messages `first` to `last` of the state exist, and no others; `bytes` is their length together.
//! - A change is refused as a whole before any of it is made.
//!
//! What if we are killed? Before the commit nothing has happened; after it the change is whole. As a
//! receiver that sleeps: nothing is left but watch bits, see [`crate::watch`].

use std::time::{Duration, Instant};

use perilune_store::{ChannelOptions, Error, Message, Result, WhenFull};

use crate::access::{check_key, Access};
use crate::limits::{KEY_MAX, USER_KEY_MAX};
use crate::lock::damaged;
use crate::tree::Which;
use crate::txn::Transaction;
use crate::watch::SessionWatches;

/// First byte of the keys of channels; see [`crate::lock::tag`] for the others.
const CHANNEL: u8 = 4;
/// Bytes of a message at most.
pub(crate) const MESSAGE_MAX: usize = 1 << 20;
/// Messages that a channel may be created for at most.
const MESSAGES_MAX: u64 = 1_000_000;
/// How long a change may need to get through.
const CHANGE_TIME: Duration = Duration::from_secs(60);

const HEAD: usize = 3;
const NUMBER: usize = 8;
const _: () = assert!(HEAD + USER_KEY_MAX + NUMBER <= KEY_MAX && USER_KEY_MAX / 255 < 255);

fn deadline() -> Instant {
    Instant::now() + CHANGE_TIME
}

/// The beginning of all keys of a channel. The length before the name keeps it from being that of
/// another channel; its two bytes are never 0, so that a first component is more than them.
fn range(name: &[u8]) -> Vec<u8> {
    let mut key = Vec::with_capacity(HEAD + name.len() + NUMBER);
    key.extend_from_slice(&[CHANNEL, 1 + (name.len() / 255) as u8, 1 + (name.len() % 255) as u8]);
    key.extend_from_slice(name);
    key
}

/// The key of a message, or with 0 of the state.
fn key(name: &[u8], number: u64) -> Vec<u8> {
    let mut key = range(name);
    key.extend_from_slice(&number.to_be_bytes());
    key
}

/// A channel but for its messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct State {
    options: ChannelOptions,
    /// Number of the oldest message; `last + 1` if there is none.
    first: u64,
    /// Number of the newest message posted so far.
    last: u64,
    /// Bytes of all messages.
    bytes: u64,
    /// Messages dropped since one was last taken.
    dropped: u64,
}

const STATE: usize = 49;

impl State {
    fn new(options: ChannelOptions) -> State {
        State { options, first: 1, last: 0, bytes: 0, dropped: 0 }
    }

    fn count(&self) -> u64 {
        self.last + 1 - self.first
    }

    fn to_bytes(self) -> [u8; STATE] {
        let mut bytes = [0; STATE];
        let ChannelOptions { messages, bytes: limit, when_full } = self.options;
        let words = [messages, limit, self.first, self.last, self.bytes, self.dropped];
        for (place, word) in bytes.chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        bytes[STATE - 1] = u8::from(when_full == WhenFull::DropOldest);
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Option<State> {
        let bytes: &[u8; STATE] = bytes.try_into().ok()?;
        let mut words = bytes.chunks_exact(8).map(|word| word.try_into().map_or(0, u64::from_le_bytes));
        let [messages, limit, first, last, bytes_now, dropped] =
            std::array::from_fn(|_| words.next().unwrap_or_default());
        let when_full = if bytes[STATE - 1] == 0 { WhenFull::Refuse } else { WhenFull::DropOldest };
        let options = ChannelOptions { messages, bytes: limit, when_full };
        let is_sound = first >= 1 && last < u64::MAX && first <= last + 1;
        is_sound.then_some(State { options, first, last, bytes: bytes_now, dropped })
    }
}

/// The state of a channel as a transaction sees it; None if there is none.
fn state(access: &Access, txn: &mut Transaction, name: &[u8]) -> Result<Option<State>> {
    let mut value = Vec::new();
    if !access.txn_get(txn, Which::Volatile, &key(name, 0), &mut value)? {
        return Ok(None);
    }
    State::from_bytes(&value).map(Some).ok_or_else(|| damaged("channel"))
}

fn put(txn: &mut Transaction, name: &[u8], state: &State) {
    txn.set(Which::Volatile, &key(name, 0), &state.to_bytes());
}

fn body(access: &Access, txn: &mut Transaction, name: &[u8], number: u64) -> Result<Vec<u8>> {
    let mut body = Vec::new();
    if access.txn_get(txn, Which::Volatile, &key(name, number), &mut body)? {
        return Ok(body);
    }
    Err(damaged("message"))
}

/// Takes the oldest message off a state that has one.
fn pop(access: &Access, txn: &mut Transaction, name: &[u8], state: &mut State) -> Result<Vec<u8>> {
    let body = body(access, txn, name, state.first)?;
    txn.remove(Which::Volatile, &key(name, state.first));
    state.first += 1;
    state.bytes = state.bytes.saturating_sub(body.len() as u64);
    Ok(body)
}

/// Creates a channel, or changes its bounds.
///
/// # Errors
/// `Invalid` for bounds out of range; `KeyTooLong`; what writing can answer.
pub(crate) fn create_channel(access: &Access, name: &[u8], options: ChannelOptions) -> Result<()> {
    check_key(name)?;
    if !(1..=MESSAGES_MAX).contains(&options.messages) || options.bytes == 0 {
        return Err(Error::Invalid("a channel holds 1 to 1,000,000 messages and at least one byte".into()));
    }
    access.atomically(deadline(), |access, txn| {
        let old = state(access, txn, name)?.unwrap_or(State::new(options));
        put(txn, name, &State { options, ..old });
        Ok(())
    })
}

/// Checks what is about to be posted, without looking at the channel.
///
/// # Errors
/// `KeyTooLong`, `ValueTooLong`, `Invalid`.
pub(crate) fn check_post(name: &[u8], body: &[u8]) -> Result<()> {
    check_key(name)?;
    if body.len() > MESSAGE_MAX {
        return Err(Error::ValueTooLong { bytes: body.len(), limit: MESSAGE_MAX });
    }
    Ok(())
}

/// Posts a message as part of a transaction; it answers the number that the message has if the
/// transaction commits. Two transactions that post to one channel are in conflict: post late.
///
/// # Errors
/// `ChannelFull` (nothing was written); `Conflict`; as [`check_post`].
pub(crate) fn post_in(access: &Access, txn: &mut Transaction, name: &[u8], body: &[u8]) -> Result<u64> {
    check_post(name, body)?;
    let mut state = state(access, txn, name)?.unwrap_or(State::new(ChannelOptions::default()));
    let ChannelOptions { messages, bytes, when_full } = state.options;
    let len = body.len() as u64;
    let fits = |state: &State| state.count() < messages && state.bytes.saturating_add(len) <= bytes;
    // A message larger than the channel would push out everything in vain.
    if len > bytes || when_full == WhenFull::Refuse && !fits(&state) {
        return Err(Error::ChannelFull);
    }
    while !fits(&state) {
        pop(access, txn, name, &mut state)?;
        state.dropped += 1;
    }
    state.last += 1;
    state.bytes += len;
    txn.set(Which::Volatile, &key(name, state.last), body);
    put(txn, name, &state);
    Ok(state.last)
}

/// Posts a message and answers its number.
///
/// # Errors
/// `ChannelFull`; as [`check_post`]; what writing can answer.
pub(crate) fn post(access: &Access, name: &[u8], body: &[u8]) -> Result<u64> {
    check_post(name, body)?;
    access.atomically(deadline(), |access, txn| post_in(access, txn, name, body))
}

/// Takes the oldest message as part of a transaction; None when there is none.
///
/// # Errors
/// `Conflict`; `KeyTooLong`, `Invalid`.
pub(crate) fn receive_in(access: &Access, txn: &mut Transaction, name: &[u8]) -> Result<Option<Message>> {
    check_key(name)?;
    let Some(mut state) = state(access, txn, name)? else { return Ok(None) };
    if state.count() == 0 {
        return Ok(None);
    }
    let (number, missed) = (state.first, state.dropped);
    let body = pop(access, txn, name, &mut state)?;
    state.dropped = 0;
    put(txn, name, &state);
    Ok(Some(Message { number, missed, body }))
}

/// Reads the first message after number `after` as part of a transaction, and leaves it.
///
/// # Errors
/// As [`receive_in`].
pub(crate) fn follow_in(
    access: &Access,
    txn: &mut Transaction,
    name: &[u8],
    after: u64,
) -> Result<Option<Message>> {
    check_key(name)?;
    let Some(state) = state(access, txn, name)? else { return Ok(None) };
    let number = after.saturating_add(1).max(state.first);
    if number > state.last {
        return Ok(None);
    }
    let body = body(access, txn, name, number)?;
    Ok(Some(Message { number, missed: number - after - 1, body }))
}

/// Takes the oldest message, waiting up to `timeout` (None: for ever) for one.
///
/// # Errors
/// As [`receive_in`] without `Conflict`; what writing and watching can answer.
pub(crate) fn receive(
    access: &Access,
    watches: &mut SessionWatches,
    name: &[u8],
    timeout: Option<Duration>,
) -> Result<Option<Message>> {
    until_found(access, watches, name, timeout, |txn| receive_in(access, txn, name))
}

/// Reads the first message after number `after`, waiting as [`receive`].
///
/// # Errors
/// As [`receive`].
pub(crate) fn follow(
    access: &Access,
    watches: &mut SessionWatches,
    name: &[u8],
    after: u64,
    timeout: Option<Duration>,
) -> Result<Option<Message>> {
    until_found(access, watches, name, timeout, |txn| follow_in(access, txn, name, after))
}

fn until_found(
    access: &Access,
    watches: &mut SessionWatches,
    name: &[u8],
    timeout: Option<Duration>,
    attempt: impl FnMut(&mut Transaction) -> Result<Option<Message>>,
) -> Result<Option<Message>> {
    check_key(name)?;
    access.within(timeout, || until_found_within(access, watches, name, timeout, attempt))
}

fn until_found_within(
    access: &Access,
    watches: &mut SessionWatches,
    name: &[u8],
    timeout: Option<Duration>,
    mut attempt: impl FnMut(&mut Transaction) -> Result<Option<Message>>,
) -> Result<Option<Message>> {
    let mut look = || access.atomically(deadline(), |_, txn| attempt(txn));
    let found = look()?;
    if found.is_some() || timeout == Some(Duration::ZERO) {
        return Ok(found);
    }
    let until = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
    let watch = watches.channel(access, &key(name, 0))?;
    loop {
        // After the watch has begun, and again after each touch.
        if let Some(found) = look()? {
            return Ok(Some(found));
        }
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        if !watches.wait_channel(watch, left)? {
            return Ok(None);
        }
    }
}

/// Removes a channel and its messages.
///
/// # Errors
/// `KeyTooLong`, `Invalid`; what writing can answer.
pub(crate) fn remove_channel(access: &Access, name: &[u8]) -> Result<()> {
    check_key(name)?;
    access.atomically(deadline(), |_, txn| {
        txn.remove_prefix(Which::Volatile, &range(name));
        Ok(())
    })
}

#[cfg(test)]
mod tests;
