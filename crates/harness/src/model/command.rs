//! Random commands over few keys, so that they meet each other.
//!
//! Keys share prefixes, hold 0x00 and 0xFF inside, and are now and then as long as keys get; values
//! are mostly small, now and then larger than a page.

use std::fmt;
use std::ops::Range;

use perilune_store::{Decision, Error, Result, UpdateBuffer};
use proptest::collection::vec;
use proptest::prelude::*;

/// Bytes that print short: what is readable as text, and of long ones only the beginning.
#[derive(Clone, PartialEq, Eq)]
pub struct Bytes(pub Vec<u8>);

impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 32;
        write!(f, "\"{}\"", self.0[..self.0.len().min(SHOWN)].escape_ascii())?;
        if self.0.len() > SHOWN {
            let sum = self.0.iter().fold(0_u32, |sum, &b| sum.wrapping_mul(31).wrapping_add(u32::from(b)));
            write!(f, "..[{} bytes, sum {sum:08x}]", self.0.len())?;
        }
        Ok(())
    }
}

/// What the function of an update does, looking at the first 8 bytes of the value only.
#[derive(Clone, Copy, Debug)]
pub enum Edit {
    /// Leaves the value.
    Keep,
    /// Removes it.
    Remove,
    /// Answers [`Error::Refused`].
    Refuse,
    /// Writes `bytes` bytes, made of the old ones and `add`.
    Write {
        /// How many.
        bytes: usize,
        /// What is added to each.
        add: u8,
    },
}

impl Edit {
    /// The function itself.
    pub(super) fn apply(self, value: Option<&[u8]>, buffer: &mut UpdateBuffer) -> Result<Decision> {
        match self {
            Edit::Keep => Ok(Decision::Keep),
            Edit::Remove => Ok(Decision::Remove),
            Edit::Refuse => Err(Error::Refused(String::new())),
            Edit::Write { bytes, add } => {
                let old = value.map_or(&b"absent"[..], |value| &value[..value.len().min(8)]);
                for (index, byte) in buffer[..bytes].iter_mut().enumerate() {
                    *byte = old.get(index).copied().unwrap_or(index as u8).wrapping_add(add);
                }
                Ok(Decision::Write(bytes))
            }
        }
    }
}

/// What a compare-and-set expects.
#[derive(Clone, Debug)]
pub enum Expected {
    /// What is there.
    Current,
    /// Nothing.
    Absent,
    /// These bytes, there or not.
    Value(Bytes),
}

impl Expected {
    pub(super) fn resolve<'a>(&'a self, current: Option<&'a [u8]>) -> Option<&'a [u8]> {
        match self {
            Expected::Current => current,
            Expected::Absent => None,
            Expected::Value(value) => Some(&value.0),
        }
    }
}

/// One operation of a session.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum Command {
    Get(Bytes),
    Presence(Bytes),
    Next { from: Bytes, inclusive: bool, with_value: bool },
    Previous { from: Bytes, with_value: bool },
    Count { low: Bytes, high: Bytes, backwards: bool, most: u64 },
    Set(Bytes, Bytes),
    Remove(Bytes),
    RemovePrefix(Bytes),
    Update(Bytes, Edit),
    CompareAndSet { key: Bytes, expected: Expected, new: Option<Bytes> },
    Begin,
    Commit,
    Rollback,
}

impl Command {
    /// The key whose value matters to the command.
    pub(super) fn key(&self) -> Option<&Bytes> {
        match self {
            Command::CompareAndSet { key, .. } => Some(key),
            _ => None,
        }
    }
}

fn arb_key(longest: usize) -> impl Strategy<Value = Bytes> {
    let name = prop::sample::select(vec![&b"a\0"[..], b"ab\0", b"b\0"]);
    let part = prop::sample::select(vec![&b"\0"[..], b"\xFF", b"\x01", b"x", b"xy", b"\0\xFF", b"\xFF\0"]);
    let long = longest / 4 * 3;
    let tail = prop_oneof![
        6 => vec(part.clone(), 0..4).prop_map(|parts| parts.concat()),
        // Enough different ones for a tree to grow.
        6 => (0_u16..300).prop_map(|number| number.to_be_bytes().to_vec()),
        1 => (prop::sample::select(vec![b'k', 0xFF, 0]), long..long + 20, part)
            .prop_map(|(fill, bytes, end)| [vec![fill; bytes], end.to_vec()].concat()),
    ];
    (name, tail).prop_map(|(name, tail)| Bytes([name, &tail].concat()))
}

fn arb_prefix(longest: usize) -> impl Strategy<Value = Bytes> {
    (arb_key(longest), 2_usize..8).prop_map(|(key, bytes)| Bytes(key.0[..bytes.min(key.0.len())].to_vec()))
}

fn arb_from(longest: usize) -> impl Strategy<Value = Bytes> {
    prop_oneof![
        6 => arb_key(longest),
        3 => arb_key(longest).prop_map(|key| Bytes([&key.0[..], &[0xFF]].concat())),
        1 => Just(Bytes(Vec::new())),
        1 => Just(Bytes(vec![0xFF])),
    ]
}

fn arb_value() -> impl Strategy<Value = Bytes> {
    let bytes = prop_oneof![2 => Just(0_usize), 20 => 1_usize..40, 6 => 40_usize..500, 2 => 500_usize..5_000, 1 => 5_000_usize..20_000];
    (bytes, any::<u8>()).prop_map(|(bytes, first)| {
        // NB: no two pages of a long value are alike.
        Bytes((0..bytes).map(|at| first.wrapping_add((at % 251) as u8)).collect())
    })
}

fn arb_most() -> impl Strategy<Value = u64> {
    prop_oneof![4 => Just(u64::MAX), 3 => 0_u64..5, 3 => 5_u64..150]
}

fn arb_edit() -> impl Strategy<Value = Edit> {
    prop_oneof![
        1 => Just(Edit::Keep),
        1 => Just(Edit::Remove),
        1 => Just(Edit::Refuse),
        6 => (0_usize..=64, any::<u8>()).prop_map(|(bytes, add)| Edit::Write { bytes, add }),
    ]
}

fn arb_command(longest: usize) -> impl Strategy<Value = Command> {
    let expected = prop_oneof![
        4 => Just(Expected::Current),
        1 => Just(Expected::Absent),
        1 => arb_value().prop_map(Expected::Value),
    ];
    prop_oneof![
        6 => arb_key(longest).prop_map(Command::Get),
        4 => prop_oneof![arb_key(longest), arb_prefix(longest)].prop_map(Command::Presence),
        6 => (arb_from(longest), any::<bool>(), any::<bool>())
            .prop_map(|(from, inclusive, with_value)| Command::Next { from, inclusive, with_value }),
        6 => (arb_from(longest), any::<bool>())
            .prop_map(|(from, with_value)| Command::Previous { from, with_value }),
        6 => (arb_from(longest), arb_from(longest), any::<bool>(), arb_most())
            .prop_map(|(low, high, backwards, most)| Command::Count { low, high, backwards, most }),
        24 => (arb_key(longest), arb_value()).prop_map(|(key, value)| Command::Set(key, value)),
        8 => arb_key(longest).prop_map(Command::Remove),
        1 => arb_prefix(longest).prop_map(Command::RemovePrefix),
        6 => (arb_key(longest), arb_edit()).prop_map(|(key, edit)| Command::Update(key, edit)),
        4 => (arb_key(longest), expected, proptest::option::of(arb_value()))
            .prop_map(|(key, expected, new)| Command::CompareAndSet { key, expected, new }),
        3 => Just(Command::Begin),
        2 => Just(Command::Commit),
        1 => Just(Command::Rollback),
    ]
}

/// Lists of commands, their number within `count`; keys have at most `longest` bytes (see
/// [`perilune_store::Limits::key_bytes`]; at least 100).
pub fn arb_commands(count: Range<usize>, longest: usize) -> impl Strategy<Value = Vec<Command>> {
    vec(arb_command(longest), count)
}
