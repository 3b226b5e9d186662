//! The one table of commands: a row for each, in a file for each group. A row says what there is to know of its command and
//! what runs; ACL, COMMAND, INFO and the gate read it.
//!
//! Invariant: a name stands in one row (the test below looks).

mod connection;
mod generic;
mod hashes;
mod lists;
mod nodes;
mod pubsub;
mod scripting;
mod server;
mod sets;
mod sorted_sets;
mod sql;
mod strings;
mod transactions;

use crate::command::{Command, Rows};
use crate::redis::Redis;

impl Rows for Redis {
    const GROUPS: &'static [&'static [Command]] = &[
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
        sql::ROWS,
        strings::ROWS,
        transactions::ROWS,
    ];
}

#[cfg(test)]
mod tests {
    use crate::acl::CATEGORIES;
    use crate::command::*;

    #[test]
    fn every_command_is_found_by_its_name() {
        for pair in commands().windows(2) {
            assert!(pair[0].name < pair[1].name, "{} stands twice", pair[0].name);
        }
        assert!(commands().len() < PLACES / 4, "the index is too small");
        for command in commands() {
            let found = find(command.name.to_ascii_uppercase().as_bytes());
            assert_eq!(found.map(|found| found.name), Some(command.name));
            let reads = command.is_on_keys();
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
            let runs_lua = command.is(LONG) && !command.is(READ | PUBSUB) && command.group != "sql";
            assert!(is_in("scripting") || !runs_lua, "{name} runs Lua: {all:?}");
            // What changes nodes of any kind is no quick right to do so.
            assert!(command.group != "nodes" || !(is_in("write") && is_in("fast")), "{name}: {all:?}");
            for word in command.words {
                assert!(word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-'), "{name} {word}");
            }
            let (special, words) = (command.special_categories, command.special_words);
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
