//! The one table of commands: name, arity, flags, where the keys are, and what runs. The rows lie in a
//! file for each group of commands.
//!
//! Invariants
//! - A name stands in one row; all rows are found by their names (the test below looks).
//! - A command that is not here is unknown, and none is here that does nothing. What will come later or
//!   never is named in `absent`, for a clear error.

mod absent;
mod connection;
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

pub(crate) use self::absent::reason as absent;
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
    let mut rows: Vec<&Command> = GROUPS.iter().flat_map(|group| group.iter()).collect();
    rows.sort_unstable_by_key(|command| command.name);
    let mut places = vec![None; PLACES];
    for command in &rows {
        let mut place = hash(command.name.as_bytes());
        while places[place].is_some() {
            place = (place + 1) % PLACES;
        }
        places[place] = Some(*command);
    }
    Index { rows, places }
});

/// A place for `name`, in any case.
fn hash(name: &[u8]) -> usize {
    let mut hash = 0_u32;
    for byte in name {
        // Bit 5 is what tells the cases of a letter apart.
        hash = (hash ^ u32::from(byte | 0x20)).wrapping_mul(0x0100_0193).rotate_left(5);
    }
    (hash ^ hash >> 16) as usize % PLACES
}

/// The command called `name`, in any case.
pub(crate) fn find(name: &[u8]) -> Option<&'static Command> {
    if name.len() > 32 {
        return None;
    }
    let index = &*INDEX;
    let mut place = hash(name);
    while let Some(command) = index.places[place] {
        if command.name.as_bytes().eq_ignore_ascii_case(name) {
            return Some(command);
        }
        place = (place + 1) % PLACES;
    }
    None
}

/// Below which the numbers of commands lie.
pub(crate) const NUMBERS: usize = PLACES;

/// The number of a command, the same as long as the program runs.
pub(crate) fn number(command: &Command) -> usize {
    let mut place = hash(command.name.as_bytes());
    while INDEX.places[place].is_some_and(|other| !std::ptr::eq(other, command) && other.name != command.name)
    {
        place = (place + 1) % PLACES;
    }
    place
}

/// Every command, by name.
pub(crate) fn commands() -> &'static [&'static Command] {
    &INDEX.rows
}

#[cfg(test)]
mod tests {
    use super::*;

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
    }
}
