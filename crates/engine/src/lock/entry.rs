//! How locks and waiters lie in the volatile tree. The format is `docs/format/volatile.md`.
//!
//! Example: handle 7 of the process in slot 3, in life 1 of that slot, holds `^bank("Ada")`. The key of that
//! entry is the tag 01, the name `bank` 00 F0 `Ada` 00, a zero byte, and the holder: 3 in 2 bytes, 1 in 4, 7 in 8.
//!
//! Invariants
//! - A key is a tag, a name, a zero byte and a tail of fixed length, so the tail is found from the end, and all
//!   entries of a name and its descendants lie in one range.
//! - A dead process's entries are never anybody else's: its slot's next life has another number.

use perilune_store::{Error, LockMode, LockOwner, LockRequest, Result};

use crate::image::layout::Owner;
use crate::limits::{KEY_MAX, USER_KEY_MAX};

/// First bytes of the keys of the volatile tree; none begins a user's key.
pub(crate) mod tag {
    /// A lock that is held.
    pub(crate) const LOCK: u8 = 1;
    /// A waiter's place in the queue of a name.
    pub(crate) const QUEUE: u8 = 2;
    /// What a waiter waits for.
    pub(crate) const WAITER: u8 = 3;
}

/// Bytes of a lock's name at most: a key, and a byte that keeps local names apart.
pub(crate) const NAME_MAX: usize = USER_KEY_MAX + 1;

/// Bytes of a [`Holder`].
pub(crate) const HOLDER: usize = 14;
const TICKET: usize = 8;

const _: () = assert!(1 + NAME_MAX + 1 + TICKET + HOLDER <= KEY_MAX);

/// Who holds or wants a lock, everywhere: process slot, its life, handle; big-endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Holder([u8; HOLDER]);

impl Holder {
    pub(crate) fn new(process: Owner, handle: LockOwner) -> Holder {
        let mut bytes = [0; HOLDER];
        bytes[..2].copy_from_slice(&process.slot.to_be_bytes());
        bytes[2..6].copy_from_slice(&process.incarnation.to_be_bytes());
        bytes[6..].copy_from_slice(&handle.0.to_be_bytes());
        Holder(bytes)
    }

    pub(crate) fn process(self) -> Owner {
        let [s0, s1, i0, i1, i2, i3, ..] = self.0;
        Owner { slot: u16::from_be_bytes([s0, s1]), incarnation: u32::from_be_bytes([i0, i1, i2, i3]) }
    }

    pub(crate) fn owner(self) -> LockOwner {
        let [.., h0, h1, h2, h3, h4, h5, h6, h7] = self.0;
        LockOwner(u64::from_be_bytes([h0, h1, h2, h3, h4, h5, h6, h7]))
    }

    /// From the end of `bytes`.
    fn at_end(bytes: &[u8]) -> Option<Holder> {
        bytes.last_chunk().map(|bytes| Holder(*bytes))
    }
}

/// A lock asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Want {
    pub(crate) name: Vec<u8>,
    pub(crate) ancestors: Vec<u16>,
    pub(crate) exclusive: bool,
}

impl Want {
    /// From what a caller asks for.
    ///
    /// # Errors
    /// `KeyTooLong`; `Invalid` for an empty name, or ancestors that do not ascend inside it.
    pub(crate) fn new(request: &LockRequest<'_>) -> Result<Want> {
        let name = request.name;
        if name.is_empty() {
            return Err(Error::Invalid("a lock's name has at least one byte".into()));
        }
        if name.len() > NAME_MAX {
            return Err(Error::KeyTooLong { bytes: name.len(), limit: NAME_MAX });
        }
        let ends = request.ancestors;
        if !ends.is_sorted() || ends.last().is_some_and(|end| usize::from(*end) >= name.len()) {
            return Err(Error::Invalid(
                "the names of a lock's ancestors end inside its own, in order".into(),
            ));
        }
        let exclusive = request.mode == LockMode::Exclusive;
        Ok(Want { name: name.to_vec(), ancestors: ends.to_vec(), exclusive })
    }

    pub(crate) fn ancestors(&self) -> impl Iterator<Item = &[u8]> {
        self.ancestors.iter().map(|end| &self.name[..usize::from(*end)])
    }
}

/// Replaces `key` by the beginning of all keys of `name` and its descendants.
pub(crate) fn begin_range(key: &mut Vec<u8>, tag: u8, name: &[u8]) {
    key.clear();
    key.reserve(1 + name.len() + 1 + TICKET + HOLDER);
    key.push(tag);
    key.extend_from_slice(name);
}

/// The key of a held lock.
pub(crate) fn lock_key(name: &[u8], holder: Holder) -> Vec<u8> {
    let mut key = Vec::new();
    begin_range(&mut key, tag::LOCK, name);
    key.push(0);
    key.extend_from_slice(&holder.0);
    key
}

/// The key of a waiter's place in a queue.
pub(crate) fn queue_key(name: &[u8], ticket: u64, holder: Holder) -> Vec<u8> {
    let mut key = Vec::new();
    begin_range(&mut key, tag::QUEUE, name);
    key.push(0);
    key.extend_from_slice(&ticket.to_be_bytes());
    key.extend_from_slice(&holder.0);
    key
}

/// The key of what a waiter waits for.
pub(crate) fn waiter_key(holder: Holder, ticket: u64) -> Vec<u8> {
    let mut key = waiter_range(holder);
    key.extend_from_slice(&ticket.to_be_bytes());
    key
}

/// The beginning of the keys of all that a holder waits for.
pub(crate) fn waiter_range(holder: Holder) -> Vec<u8> {
    let mut key = Vec::with_capacity(1 + HOLDER + TICKET);
    key.push(tag::WAITER);
    key.extend_from_slice(&holder.0);
    key
}

/// The ticket at the end of a waiter's key.
pub(crate) fn ticket_of(waiter_key: &[u8]) -> Option<u64> {
    waiter_key.get(1 + HOLDER..)?.try_into().ok().map(u64::from_be_bytes)
}

/// A key of a lock or of a place in a queue, taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Parts<'a> {
    pub(crate) name: &'a [u8],
    /// 0 for a held lock.
    pub(crate) ticket: u64,
    pub(crate) holder: Holder,
}

/// Takes a key with tag LOCK or QUEUE apart; None for any other.
pub(crate) fn parts(key: &[u8]) -> Option<Parts<'_>> {
    let (tag, rest) = key.split_first()?;
    let holder = Holder::at_end(rest)?;
    let rest = &rest[..rest.len() - HOLDER];
    let (rest, ticket) = match *tag {
        tag::LOCK => (rest, 0),
        tag::QUEUE => {
            let (rest, ticket) = rest.split_last_chunk()?;
            (rest, u64::from_be_bytes(*ticket))
        }
        _ => return None,
    };
    let (zero, name) = rest.split_last()?;
    (*zero == 0).then_some(Parts { name, ticket, holder })
}

/// The process that an entry with any of the three tags belongs to.
pub(crate) fn process_of(key: &[u8]) -> Option<Owner> {
    if key.first() == Some(&tag::WAITER) {
        let holder: &[u8; HOLDER] = key.get(1..)?.first_chunk()?;
        return Some(Holder(*holder).process());
    }
    parts(key).map(|parts| parts.holder.process())
}

/// Bytes of a held lock's value.
pub(crate) const HELD_BYTES: usize = 13;

/// A held lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) exclusive: bool,
    pub(crate) count: u32,
    /// When it was taken first, on the monotonic clock in ns; only to be shown.
    pub(crate) since: u64,
}

/// The value of a held lock.
pub(crate) fn held_value(held: Held) -> [u8; HELD_BYTES] {
    let mut value = [u8::from(held.exclusive); HELD_BYTES];
    value[1..5].copy_from_slice(&held.count.to_le_bytes());
    value[5..].copy_from_slice(&held.since.to_le_bytes());
    value
}

/// A held lock from its value; None for other bytes.
pub(crate) fn held(value: &[u8]) -> Option<Held> {
    let (count, since) = value.get(1..)?.split_first_chunk()?;
    Some(Held {
        exclusive: *value.first()? != 0,
        count: u32::from_le_bytes(*count),
        since: u64::from_le_bytes(since.try_into().ok()?),
    })
}

/// Sets to zero since when the lock or the place in a queue at `key` is had.
#[cfg(feature = "instrument")]
pub(crate) fn forget_time(key: &[u8], value: &mut [u8]) {
    match key.first() {
        Some(&tag::LOCK) if value.len() == 13 => value[5..].fill(0),
        Some(&tag::QUEUE) if value.len() == 9 => value[1..].fill(0),
        _ => {}
    }
}

/// The value of a place in a queue: the mode wanted, and since when.
pub(crate) fn queue_value(exclusive: bool, since: u64) -> [u8; 9] {
    let mut value = [u8::from(exclusive); 9];
    value[1..].copy_from_slice(&since.to_le_bytes());
    value
}

/// Mode and time of a place in a queue; None for other bytes.
pub(crate) fn queued(value: &[u8]) -> Option<(bool, u64)> {
    let (mode, since) = value.split_first()?;
    Some((*mode != 0, u64::from_le_bytes(since.try_into().ok()?)))
}

/// The value of a waiter: all that it wants.
pub(crate) fn wants_value(wants: &[Want]) -> Vec<u8> {
    let mut value = Vec::new();
    for want in wants {
        value.push(u8::from(want.exclusive));
        value.extend_from_slice(&(want.name.len() as u16).to_le_bytes());
        value.extend_from_slice(&(want.ancestors.len() as u16).to_le_bytes());
        value.extend_from_slice(&want.name);
        want.ancestors.iter().for_each(|end| value.extend_from_slice(&end.to_le_bytes()));
    }
    value
}

/// What a waiter wants; None for bytes that are no waiter's value.
pub(crate) fn wants(mut value: &[u8]) -> Option<Vec<Want>> {
    let mut wants = Vec::new();
    while let Some((head, rest)) = value.split_first_chunk::<5>() {
        let name_len = usize::from(u16::from_le_bytes([head[1], head[2]]));
        let ends_len = 2 * usize::from(u16::from_le_bytes([head[3], head[4]]));
        let (name, rest) = rest.split_at_checked(name_len)?;
        let (ends, rest) = rest.split_at_checked(ends_len)?;
        let ancestors: Vec<u16> =
            ends.chunks_exact(2).map(|end| u16::from_le_bytes([end[0], end[1]])).collect();
        if ancestors.iter().any(|end| usize::from(*end) > name.len()) {
            return None;
        }
        wants.push(Want { name: name.to_vec(), ancestors, exclusive: head[0] != 0 });
        value = rest;
    }
    value.is_empty().then_some(wants)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holder(handle: u64) -> Holder {
        Holder::new(Owner { slot: 1023, incarnation: u32::MAX }, LockOwner(handle))
    }

    #[test]
    fn keys_are_taken_apart_as_they_were_made() {
        let process = Owner { slot: 1023, incarnation: u32::MAX };
        for name in [&b"a\0"[..], b"a\0\0\0", &[7; NAME_MAX]] {
            let key = lock_key(name, holder(3));
            assert_eq!(parts(&key), Some(Parts { name, ticket: 0, holder: holder(3) }));
            assert_eq!(process_of(&key), Some(process));
            let key = queue_key(name, 9, holder(u64::MAX));
            assert_eq!(parts(&key), Some(Parts { name, ticket: 9, holder: holder(u64::MAX) }));
            assert!(key.len() <= KEY_MAX);
        }
        let key = waiter_key(holder(3), 77);
        assert_eq!((ticket_of(&key), process_of(&key)), (Some(77), Some(process)));
        assert_eq!(parts(&key), None);
        assert_eq!(parts(&[tag::LOCK, b'a']), None, "too short");
    }

    #[test]
    fn values_are_read_as_they_were_written_and_others_refused() {
        let lock = Held { exclusive: true, count: 511, since: u64::MAX - 1 };
        assert_eq!(held(&held_value(lock)), Some(lock));
        assert_eq!((held(b""), held(&held_value(lock)[..12])), (None, None));
        assert_eq!(queued(&queue_value(false, 7)), Some((false, 7)));
        assert_eq!((queued(b""), queued(&queue_value(true, 7)[..8])), (None, None));
        let list = vec![
            Want { name: b"a\0b".to_vec(), ancestors: vec![2], exclusive: true },
            Want { name: vec![9; NAME_MAX], ancestors: (1..256).collect(), exclusive: false },
        ];
        let value = wants_value(&list);
        assert_eq!(wants(&value), Some(list));
        for cut in [1, 5, 7, value.len() - 1] {
            assert_eq!(wants(&value[..cut]), None, "cut at {cut}");
        }
    }

    #[test]
    fn wrong_requests_are_refused() {
        let request = |name, ancestors| LockRequest { name, ancestors, mode: LockMode::Shared };
        assert!(matches!(Want::new(&request(b"", &[])), Err(Error::Invalid(_))));
        assert!(matches!(Want::new(&request(b"ab", &[2])), Err(Error::Invalid(_))));
        assert!(matches!(Want::new(&request(b"abc", &[2, 1])), Err(Error::Invalid(_))));
        assert!(matches!(Want::new(&request(&[1; NAME_MAX + 1], &[])), Err(Error::KeyTooLong { .. })));
        assert!(Want::new(&request(b"abc", &[1, 2])).is_ok());
    }
}
