//! COMMAND: the table, told to clients.

use perilune_resp::{Arguments, Replies};

use crate::failure::{refuse, refuse_with, Result};
use crate::gate::{wrong_number, Context};
use crate::numbers::lower;
use crate::table::{self, Command, MOVABLE};

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
        b"list" if named.is_empty() => {
            replies.array(table::commands().len());
            for command in table::commands() {
                replies.bulk(command.name.as_bytes());
            }
        }
        b"getkeys" if !named.is_empty() => return keys(named, replies),
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

fn keys(arguments: Arguments<'_>, replies: &mut Replies<'_>) -> Result<()> {
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
    for place in places {
        replies.bulk(arguments.get(place).unwrap_or_default());
    }
    Ok(())
}
