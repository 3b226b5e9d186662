//! Events of keys, as messages to `__keyspace@db__:key` and `__keyevent@db__:event`.
//!
//! What is wanted is one word of bits, the setting `notify-keyspace-events`: with none, an event costs a test.

/// The bits are Redis's own. To channels by the key's name.
pub(crate) const KEYSPACE: u32 = 1;
/// To channels by the event's name.
pub(crate) const KEYEVENT: u32 = 1 << 1;
/// Commands on keys of any kind.
pub(crate) const GENERIC: u32 = 1 << 2;
pub(crate) const STRING: u32 = 1 << 3;
pub(crate) const LIST: u32 = 1 << 4;
pub(crate) const SET: u32 = 1 << 5;
pub(crate) const HASH: u32 = 1 << 6;
pub(crate) const ZSET: u32 = 1 << 7;
/// A key has expired.
pub(crate) const EXPIRED: u32 = 1 << 8;
/// A key was evicted for want of memory.
pub(crate) const EVICTED: u32 = 1 << 9;
/// A key was looked for and is not there.
pub(crate) const MISSED: u32 = 1 << 11;
/// A key is there that was not.
pub(crate) const NEW: u32 = 1 << 14;

/// Whether anybody is to be told anything of these classes.
pub(crate) fn wants(bits: u32, classes: u32) -> bool {
    bits & classes != 0 && bits & (KEYSPACE | KEYEVENT) != 0
}

/// One event, to be told when its transaction commits.
#[derive(Debug)]
pub(crate) struct Event {
    pub(crate) name: &'static str,
    pub(crate) database: i64,
    pub(crate) key: Vec<u8>,
}
