//! The one table of commands: name, arity, flags, where the keys are, and what runs. The rows lie in a
//! file for each group of commands.
//!
//! Invariants
//! - A name stands in one row; all rows are found by their names (the test below looks).
//! - A command that is not here is unknown, and none is here that does nothing. What will come later or
//!   never is named in `absent`, for a clear error.

mod absent;
mod connection;
mod facts;
mod generic;
mod hashes;
mod lists;
mod nodes;
mod pubsub;
mod row;
mod scripting;
mod server;
mod sets;
mod sorted_sets;
mod strings;
mod transactions;

use std::sync::LazyLock;

use perilune_resp::Arguments;

use crate::patience::WHOLE;

pub(crate) use self::absent::reason as absent;
pub(crate) use self::facts::{facts, Argument, Facts};
pub(crate) use self::row::*;

/// Every group's rows.
const GROUPS: [&[Command]; 12] = [
    connection::ROWS,
    generic::ROWS,
    hashes::ROWS,
    lists::ROWS,
    nodes::ROWS,
    pubsub::ROWS,
    scripting::ROWS,
    server::ROWS,
    sets::ROWS,
    sorted_sets::ROWS,
    strings::ROWS,
    transactions::ROWS,
];

/// Places of the index, a power of two: several times the number of commands.
const PLACES: usize = 2_048;

/// All rows in ascending order of their names, and where each is by the hash of its name.
#[derive(Debug)]
struct Index {
    rows: Vec<&'static Command>,
    places: Vec<Option<&'static Command>>,
}

static INDEX: LazyLock<Index> = LazyLock::new(|| {
    let mut all: Vec<Command> = GROUPS.iter().flat_map(|group| group.iter().cloned()).collect();
    all.sort_unstable_by_key(|command| command.name);
    let mut places = vec![None; PLACES];
    let mut rows: Vec<&Command> = Vec::new();
    let mut next_word = PLACES;
    let is_there = |whole: &&str| all.iter().any(|command| command.name == *whole);
    assert!(WHOLE.iter().all(is_there), "what takes whole keys is a command");
    for command in Vec::leak(all) {
        let name = command.name.as_bytes();
        command.ends = ends(name);
        command.takes_whole_keys = WHOLE.contains(&command.name);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::acl::{special_words, CATEGORIES};

    #[test]
    fn every_command_is_found_by_its_name() {
        for pair in commands().windows(2) {
            assert!(pair[0].name < pair[1].name, "{} stands twice", pair[0].name);
        }
        assert!(commands().len() < PLACES / 4, "the index is too small");
        for command in commands() {
            let found = find(command.name.to_ascii_uppercase().as_bytes());
            assert_eq!(found.map(|found| found.name), Some(command.name));
            let reads = matches!(command.run, Run::Keys(_));
            assert!(!reads || command.is(WRITE | READ | PUBSUB), "{} reads or writes", command.name);
            assert!(!command.is(WRITE) || !command.is(READ), "{} does not both", command.name);
            assert!(absent(command.name.as_bytes()).is_none(), "{} is here and absent", command.name);
        }
        assert!(find(b"").is_none() && find(&[b'x'; 100]).is_none());
        // Bit 5 tells only the cases of letters apart.
        assert!(find(b"perilune\x0erun").is_none() && find(b"perilun\x45.run").is_some());
        assert!(find(b"g\x05t").is_none() && find(b"sunionsXore").is_none() && find(b"hset\0").is_none());
        assert!(find(b"georadiusbymem_er").is_none() && find(b"PERILUNE.RUN").is_some());
    }

    /// What rules say by categories is what flags say to the server.
    #[test]
    fn categories_are_what_flags_say() {
        for command in commands() {
            let (name, all) = (command.name, command.categories());
            let is_in = |category: &str| all.contains(&category);
            assert!(all.iter().all(|category| CATEGORIES.contains(category)), "{name}: {all:?}");
            assert_eq!(is_in("write"), command.is(WRITE), "{name}: {all:?}");
            assert!(!(is_in("write") && is_in("read")), "{name} reads and writes: {all:?}");
            assert!(is_in("read") || !command.is(READ) || command.group == "connection", "{name}: {all:?}");
            assert!(is_in("fast") != is_in("slow"), "{name} is fast or slow: {all:?}");
            assert!(is_in("dangerous") || !is_in("admin"), "{name} is for operators, and harmless: {all:?}");
            assert_eq!(is_in("blocking"), command.is(BLOCKING), "{name}: {all:?}");
            assert_eq!(is_in("pubsub"), command.is(PUBSUB), "{name}: {all:?}");
            let runs_lua = command.is(LONG) && !command.is(READ | PUBSUB);
            assert!(is_in("scripting") || !runs_lua, "{name} runs Lua: {all:?}");
            // What changes nodes of any kind is no quick right to do so.
            assert!(command.group != "nodes" || !(is_in("write") && is_in("fast")), "{name}: {all:?}");
            for word in command.words {
                assert!(word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-'), "{name} {word}");
            }
            let (special, words) = special_words(name);
            assert!(special.iter().all(|category| CATEGORIES.contains(category)), "{name}");
            assert!(words.iter().all(|word| command.words.contains(word)), "{name}: {words:?}");
        }
    }

    #[test]
    fn every_command_has_a_number_of_its_own() {
        let mut numbers: Vec<usize> = counted().map(|(_, number)| number).collect();
        numbers.sort_unstable();
        assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]) && numbers.last() < Some(&NUMBERS));
    }
}
