//! COMMAND: the table, told to clients.

use perilune_resp::{Arguments, Replies};

use crate::acl::{access, READS, WRITES};
use crate::failure::{refuse, refuse_with, Result, SYNTAX};
use crate::gate::{wrong_number, Context};
use crate::numbers::lower;
use crate::pattern;
use crate::table::{self, Command, MOVABLE};

const HELP: &[&str] = &[
    "COMMAND <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "(no subcommand)",
    "    Return details about all commands.",
    "COUNT",
    "    Return the total number of commands.",
    "LIST [FILTERBY (MODULE <name> | ACLCAT <category> | PATTERN <pattern>)]",
    "    Return the names of commands.",
    "INFO [<command-name> ...]",
    "    Return details about multiple commands.",
    "DOCS [<command-name> ...]",
    "    Return documentation details about multiple commands.",
    "GETKEYS <full-command>",
    "    Return the keys from a full command.",
    "GETKEYSANDFLAGS <full-command>",
    "    Return the keys and the access flags from a full command.",
    "HELP",
    "    Print this help.",
];

pub(crate) fn command(
    _: &mut Context<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies<'_>,
) -> Result<()> {
    let Some(word) = arguments.get(1) else {
        return infos(table::commands().iter().copied().map(Some), replies);
    };
    let named = arguments.from(2);
    match &*lower(word) {
        b"count" if named.is_empty() => replies.count(table::commands().len()),
        b"info" if named.is_empty() => return infos(table::commands().iter().copied().map(Some), replies),
        b"info" => return infos(named.iter().map(table::find), replies),
        b"docs" if named.is_empty() => docs(table::commands().iter().copied(), replies),
        b"docs" => docs(named.iter().filter_map(table::find), replies),
        b"list" => return list(named, replies),
        b"getkeys" | b"getkeysandflags" if !named.is_empty() => {
            return keys(named, word.len() > b"getkeys".len(), replies);
        }
        b"help" if named.is_empty() => super::help(HELP, replies),
        word => {
            let word = String::from_utf8_lossy(word);
            return refuse_with(wrong_number(&format!("command|{word}")));
        }
    }
    Ok(())
}

fn infos<'c>(
    commands: impl ExactSizeIterator<Item = Option<&'c Command>>,
    replies: &mut Replies<'_>,
) -> Result<()> {
    replies.array(commands.len());
    for command in commands {
        let Some(command) = command else {
            replies.null_array();
            continue;
        };
        replies.array(10);
        replies.bulk(command.name.as_bytes());
        replies.integer(command.arity);
        let flags: Vec<_> = command.flag_names().collect();
        replies.set(flags.len());
        for flag in flags {
            replies.simple(flag);
        }
        let (first, last, step) = command.keys;
        for place in [first, last, step] {
            replies.integer(place);
        }
        let categories = command.categories();
        replies.set(categories.len());
        for category in categories {
            replies.simple(&format!("@{category}"));
        }
        // Tips, key specifications, subcommands: none are told.
        for _ in 0..3 {
            replies.array(0);
        }
    }
    Ok(())
}

fn docs<'c>(commands: impl Iterator<Item = &'c Command>, replies: &mut Replies<'_>) {
    let commands: Vec<_> = commands.collect();
    replies.map(commands.len());
    for command in commands {
        replies.bulk(command.name.as_bytes());
        replies.map(2);
        for (field, text) in [("summary", command.summary), ("group", command.group)] {
            replies.bulk(field.as_bytes());
            replies.bulk(text.as_bytes());
        }
    }
}

/// COMMAND LIST, of all commands or of those that a filter leaves.
fn list(filter: Arguments<'_>, replies: &mut Replies<'_>) -> Result<()> {
    let word = |index: usize| filter.get(index).map(lower).unwrap_or_default();
    let value = word(2).into_owned();
    let keep: Box<dyn Fn(&Command) -> bool> = match (filter.len(), &*word(0), &*word(1)) {
        (0, ..) => Box::new(|_| true),
        (3, b"filterby", b"module") => Box::new(|_| false),
        (3, b"filterby", b"aclcat") => {
            Box::new(move |command| command.categories().iter().any(|name| name.as_bytes() == value))
        }
        (3, b"filterby", b"pattern") => {
            Box::new(move |command| pattern::matches(&value, command.name.as_bytes()))
        }
        _ => return refuse(SYNTAX),
    };
    let names: Vec<_> = table::commands().iter().filter(|command| keep(command)).collect();
    replies.array(names.len());
    names.iter().for_each(|command| replies.bulk(command.name.as_bytes()));
    Ok(())
}

/// COMMAND GETKEYS; with flags, what the command does with each key.
fn keys(arguments: Arguments<'_>, flags: bool, replies: &mut Replies<'_>) -> Result<()> {
    let Some(command) = table::find(&arguments[0]) else { return refuse("ERR Invalid command specified") };
    if command.keys.0 == 0 && !command.is(MOVABLE) {
        return refuse("ERR The command has no key arguments");
    }
    if !command.takes(arguments.len()) {
        return refuse("ERR Invalid number of arguments specified for command");
    }
    let Some(places) = command.key_places(arguments) else {
        return refuse("ERR Invalid arguments specified for command");
    };
    replies.array(places.len());
    for (index, place) in places.into_iter().enumerate() {
        if !flags {
            replies.bulk(arguments.get(place).unwrap_or_default());
            continue;
        }
        let access = access(command, arguments, index);
        let told: &[&str] = match (access & READS != 0, access & WRITES != 0) {
            (true, true) => &["RW", "access", "update"],
            (true, false) => &["RO", "access"],
            (false, true) => &["OW", "update"],
            (false, false) => &["RO"],
        };
        replies.array(2);
        replies.bulk(arguments.get(place).unwrap_or_default());
        replies.set(told.len());
        told.iter().for_each(|flag| replies.simple(flag));
    }
    Ok(())
}
