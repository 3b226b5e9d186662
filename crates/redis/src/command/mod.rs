//! Commands, as everybody sees them who does not run them: name, arity, flags, where the keys are; and how one is found by
//! its name. What runs is for higher storeys to say (the traits [`Runs`] and [`Rows`]): so rules of users, statistics and
//! the log of slow commands stand below the commands that they are about.
//!
//! Invariants
//! - A name stands in one row; all rows are found by their names (a test of `table` looks).
//! - A command that is not here is unknown, and none is here that does nothing. What will come later or
//!   never is named in `absent`, for a clear error.

mod absent;
pub(crate) mod access;
mod facts;
mod row;
pub(crate) mod statements;

use std::fmt;
use std::sync::LazyLock;

use perilune_resp::Arguments;

pub(crate) use self::absent::reason as absent;
pub(crate) use self::facts::{facts, Argument, Facts};
pub(crate) use self::row::*;
use crate::redis::Redis;

/// What runs when a command is called.
pub(crate) trait Runs {
    type Handlers: Clone + fmt::Debug + Send + Sync;
}

/// The rows of all commands.
pub(crate) trait Rows {
    const GROUPS: &'static [&'static [Command]];
}

/// Places of the index, a power of two: several times the number of commands.
pub(crate) const PLACES: usize = 2_048;

/// All rows in ascending order of their names, and where each is by the hash of its name.
#[derive(Debug)]
struct Index {
    rows: Vec<&'static Command>,
    places: Vec<Option<&'static Command>>,
}

static INDEX: LazyLock<Index> = LazyLock::new(|| {
    let mut all: Vec<Command> =
        <Redis as Rows>::GROUPS.iter().flat_map(|group| group.iter().cloned()).collect();
    all.sort_unstable_by_key(|command| command.name);
    let mut places = vec![None; PLACES];
    let mut rows: Vec<&Command> = Vec::new();
    let mut next_word = PLACES;
    for command in Vec::leak(all) {
        let name = command.name.as_bytes();
        command.ends = ends(name);
        command.is_plain = name.len() <= 16 && name.iter().all(u8::is_ascii_lowercase);
        let mut place = hash(command.ends, name.len());
        while places[place].is_some() {
            place = (place + 1) % PLACES;
        }
        command.number = place;
        command.first_word = next_word;
        next_word += command.words.len();
        let command = &*command;
        places[place] = Some(command);
        rows.push(command);
    }
    assert!(next_word <= NUMBERS, "there are more words of containers than numbers");
    Index { rows, places }
});

/// The first bytes of `name` and its last ones, which overlap where it is short; in any case, which bit 5 of a letter tells.
#[inline]
fn ends(name: &[u8]) -> (u64, u64) {
    let (first, last) = match (name.first_chunk(), name.last_chunk()) {
        (Some(first), Some(last)) => (u64::from_le_bytes(*first), u64::from_le_bytes(*last)),
        _ => match (name.first_chunk(), name.last_chunk()) {
            (Some(first), Some(last)) => {
                (u64::from(u32::from_le_bytes(*first)), u64::from(u32::from_le_bytes(*last)))
            }
            _ => (0, name.iter().fold(0, |word, byte| word << 8 | u64::from(*byte))),
        },
    };
    let cases = 0x2020_2020_2020_2020;
    (first | cases, last | cases)
}

/// A place for a name of this length with these ends.
#[inline]
fn hash((first, last): (u64, u64), length: usize) -> usize {
    let word = first.rotate_left(28) ^ last ^ length as u64;
    (word.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48) as usize % PLACES
}

/// The command called `name`, in any case.
#[inline]
pub(crate) fn find(name: &[u8]) -> Option<&'static Command> {
    let index = &*INDEX;
    let ends = ends(name);
    let mut place = hash(ends, name.len());
    while let Some(command) = index.places[place] {
        let alike = command.ends == ends && command.name.len() == name.len();
        if alike && (command.is_plain || is_named(command, name)) {
            return Some(command);
        }
        place = (place + 1) % PLACES;
    }
    None
}

/// Compares all bytes: those that are no letters are not told by the ends.
#[cold]
fn is_named(command: &Command, name: &[u8]) -> bool {
    let known = command.name.as_bytes();
    known.iter().zip(name).all(|(known, byte)| known == byte || *known == byte.to_ascii_lowercase())
}

/// Below which the numbers of commands lie.
pub(crate) const NUMBERS: usize = PLACES + 256;

/// The number by which a call is counted, the same as long as the program runs: of a container's word, if it is one.
#[inline]
pub(crate) fn number(command: &Command, arguments: Arguments<'_>) -> usize {
    let is_called =
        |known: &&str| arguments.get(1).is_some_and(|word| word.eq_ignore_ascii_case(known.as_bytes()));
    match command.words.iter().position(is_called) {
        Some(place) => command.first_word + place,
        None => command.number,
    }
}

/// What is counted, `get` or `client|list`, and its number.
pub(crate) fn counted() -> impl Iterator<Item = (String, usize)> {
    commands().iter().flat_map(|command| {
        let words = command.words.iter().zip(command.first_word..);
        let words = words.map(|(word, number)| (format!("{}|{word}", command.name), number));
        std::iter::once((command.name.to_owned(), command.number)).chain(words)
    })
}

/// Every command, by name.
pub(crate) fn commands() -> &'static [&'static Command] {
    &INDEX.rows
}
