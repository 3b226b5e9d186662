//! Writes of every kind over keys that all workers share, with values that show by themselves whether
//! they are whole.
//!
//! A value is a seed and bytes that follow from it. A *field* is many keys that are only ever written
//! together, wide enough that a commit takes exclusive mode for its apply; whoever reads it in one
//! transaction finds one seed in all of it, or nothing.

use perilune_engine::Session;
use perilune_harness::bank::Random;
use perilune_store::{transact, Error, Result, Session as _, TransactionOptions};

const PREFIX: &[u8] = b"values\0";
/// Keys under each of the prefixes that are removed as one.
const KEYS: u64 = 400;
const GROUPS: u64 = 8;
/// Keys of the field, and bytes of each value: at least 70 leaves.
const FIELD_KEYS: u64 = 350;
const FIELD_BYTES: usize = 1_500;
const FIELD: &[u8] = b"field\0";

fn key(random: &mut Random) -> Vec<u8> {
    let (group, number) = (random.below(GROUPS) as u8, random.below(KEYS));
    [PREFIX, &[group, 0], &number.to_be_bytes()[6..], b"\0"].concat()
}

fn value(seed: u64, bytes: usize) -> Vec<u8> {
    let mut value = seed.to_le_bytes().to_vec();
    let mut word = seed;
    while value.len() < bytes {
        word = word.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        value.extend_from_slice(&word.to_le_bytes());
    }
    value.truncate(bytes.max(8));
    value
}

/// The seed of a value, if the value is whole.
fn seed_of(bytes: &[u8]) -> Result<u64> {
    let seed = bytes.first_chunk().map(|seed| u64::from_le_bytes(*seed));
    match seed {
        Some(seed) if value(seed, bytes.len()) == bytes => Ok(seed),
        _ => Err(Error::Internal(format!("a value of {} bytes is not one that was written", bytes.len()))),
    }
}

/// Writes a short value, or now and then one that lies in pages of its own.
pub(crate) fn set(session: &mut Session, random: &mut Random) -> Result<()> {
    let bytes = match random.below(40) {
        0 => 3_000 + random.below(200_000),
        1..=8 => random.below(2_048),
        _ => random.below(64),
    };
    let key = key(random);
    session.set(&key, &value(random.below(1 << 30), bytes as usize))
}

/// Removes a value.
pub(crate) fn remove(session: &mut Session, random: &mut Random) -> Result<()> {
    session.remove(&key(random)).map(drop)
}

/// Removes a group, or what begins like a key.
pub(crate) fn remove_prefix(session: &mut Session, random: &mut Random) -> Result<()> {
    let key = key(random);
    let end = if random.below(4) == 0 { PREFIX.len() + 2 } else { key.len() - 2 };
    session.remove_prefix(&key[..end])
}

/// Reads a value.
pub(crate) fn get(session: &mut Session, random: &mut Random) -> Result<()> {
    let mut found = Vec::new();
    if session.get(&key(random), &mut found)? {
        seed_of(&found)?;
    }
    Ok(())
}

/// Walks a few steps, forwards or backwards.
pub(crate) fn walk(session: &mut Session, random: &mut Random) -> Result<()> {
    let (mut from, mut to, mut found) = (key(random), Vec::new(), Vec::new());
    let forwards = random.below(2) == 0;
    for _ in 0..random.below(50) {
        let moved = if forwards {
            session.next(&from, false, &mut to, Some(&mut found))?
        } else {
            session.previous(&from, &mut to, Some(&mut found))?
        };
        if !moved || !to.starts_with(PREFIX) {
            return Ok(());
        }
        if (to > from) != forwards {
            return Err(Error::Internal(format!("{to:?} is on the wrong side of {from:?}")));
        }
        seed_of(&found)?;
        std::mem::swap(&mut from, &mut to);
    }
    Ok(())
}

fn field_key(number: u64) -> Vec<u8> {
    [FIELD, &number.to_be_bytes()].concat()
}

/// Writes the whole field anew, or removes it.
pub(crate) fn write_field(session: &mut Session, random: &mut Random) -> Result<()> {
    if random.below(4) == 0 {
        return session.remove_prefix(FIELD);
    }
    let whole = value(random.below(1 << 30), FIELD_BYTES);
    transact(session, &TransactionOptions::default(), |session| {
        (0..FIELD_KEYS).try_for_each(|number| session.set(&field_key(number), &whole))
    })
}

/// Reads the whole field and checks that it is one writer's.
pub(crate) fn read_field(session: &mut Session) -> Result<()> {
    let options = TransactionOptions { read_only: true, ..TransactionOptions::default() };
    let seeds = transact(session, &options, |session| {
        let mut found = Vec::new();
        (0..FIELD_KEYS)
            .map(|number| match session.get(&field_key(number), &mut found)? {
                true => seed_of(&found).map(Some),
                false => Ok(None),
            })
            .collect::<Result<Vec<_>>>()
    })?;
    match seeds.windows(2).position(|pair| pair[0] != pair[1]) {
        None => Ok(()),
        Some(at) => Err(Error::Internal(format!("the field is of two writers from key {at} on"))),
    }
}
