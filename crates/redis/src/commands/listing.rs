//! COMMAND: the table, told to clients.

use perilune_resp::{Arguments, ArgumentsBuf, Replies};

use crate::command::access::{Access, READS, WRITES};
use crate::command::{self, Command, Facts, MOVABLE};
use crate::context::Context;
use crate::failure::{refuse, refuse_with, Result, SYNTAX};
use crate::numbers::lower;
use crate::pattern;
use crate::refusals::wrong_number;

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

/// Every command.
fn all() -> impl ExactSizeIterator<Item = Entry> {
    command::commands().iter().map(|command| Entry::of(command))
}

pub(crate) fn command(
    _: &mut Context<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies<'_>,
) -> Result<()> {
    let Some(word) = arguments.get(1) else {
        infos(all().map(Some), replies);
        return Ok(());
    };
    let named = arguments.from(2);
    match &*lower(word) {
        b"count" if named.is_empty() => replies.count(command::commands().len()),
        b"info" if named.is_empty() => infos(all().map(Some), replies),
        b"info" => infos(named.iter().map(Entry::find), replies),
        b"docs" if named.is_empty() => docs(&all().collect::<Vec<_>>(), replies),
        b"docs" => docs(&named.iter().filter_map(Entry::find).collect::<Vec<_>>(), replies),
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

/// What COMMAND tells of: a command, or one of the words that may follow it.
#[derive(Clone, Copy)]
struct Entry {
    command: &'static Command,
    word: Option<&'static str>,
}

impl Entry {
    /// The entry called `name`: a command, or `container|word`, in any case.
    fn find(name: &[u8]) -> Option<Entry> {
        let mut parts = name.splitn(2, |byte| *byte == b'|');
        let command = command::find(parts.next()?)?;
        let word = match parts.next() {
            None => None,
            Some(word) => {
                Some(*command.words.iter().find(|known| word.eq_ignore_ascii_case(known.as_bytes()))?)
            }
        };
        Some(Entry { command, word })
    }

    fn of(command: &'static Command) -> Entry {
        Entry { command, word: None }
    }

    /// The words of a container, each an entry.
    fn words(self) -> impl ExactSizeIterator<Item = Entry> {
        let words = if self.word.is_some() { &[] } else { self.command.words };
        words.iter().map(move |word| Entry { command: self.command, word: Some(word) })
    }

    fn name(self) -> String {
        match self.word {
            None => self.command.name.to_owned(),
            Some(word) => format!("{}|{word}", self.command.name),
        }
    }

    /// The categories that its container does not belong to.
    fn own_categories(self) -> &'static [&'static str] {
        let (special, words) = (self.command.special_categories, self.command.special_words);
        if self.word.is_some_and(|word| words.contains(&word)) {
            special
        } else {
            &[]
        }
    }

    fn categories(self) -> Vec<&'static str> {
        let mut categories = self.command.categories();
        categories.extend(self.own_categories());
        categories
    }

    /// What Redis says of it.
    fn facts(self) -> Option<Facts> {
        command::facts(&self.name())
    }

    fn write(self, replies: &mut Replies<'_>) {
        let (command, facts) = (self.command, self.facts());
        replies.array(10);
        replies.bulk(self.name().as_bytes());
        replies.integer(match (self.word, &facts) {
            (None, _) => command.arity,
            (Some(_), Some(facts)) => facts.arity,
            // Of a word of our own there is no saying how many arguments it takes, but that it stands second.
            (Some(_), None) => -2,
        });
        let own = self.own_categories().iter().copied().filter(|name| *name != "dangerous");
        let flags: Vec<_> = command.flag_names().chain(own).collect();
        replies.set(flags.len());
        flags.iter().for_each(|flag| replies.simple(flag));
        let (first, last, step) = command.keys;
        [first, last, step].iter().for_each(|place| replies.integer(*place));
        let categories = self.categories();
        replies.set(categories.len());
        categories.iter().for_each(|category| replies.simple(&format!("@{category}")));
        let tips = facts.map(|facts| facts.tips).unwrap_or_default();
        replies.array(tips.len());
        tips.iter().for_each(|tip| replies.bulk(tip.as_bytes()));
        write_keys(command, replies);
        let words = self.words();
        replies.array(words.len());
        words.for_each(|word| word.write(replies));
    }
}

fn infos(entries: impl ExactSizeIterator<Item = Option<Entry>>, replies: &mut Replies<'_>) {
    replies.array(entries.len());
    for entry in entries {
        match entry {
            Some(entry) => entry.write(replies),
            None => replies.null_array(),
        }
    }
}

/// The key specifications of a command: a range of its arguments, as several where it does not do the same with all of
/// them, and a number of keys that says itself how many.
fn write_keys(command: &Command, replies: &mut Replies<'_>) {
    let plain = ArgumentsBuf::from_iter([command.name.as_bytes()]);
    let uses = |index| command.access(plain.as_arguments(), index);
    let (first, last, step) = command.keys;
    // The last key of a range is told from its first on, unless it is told from the end.
    let relative = |from: i64| if last < 0 { last } else { last - from };
    let mut ranges = Vec::new();
    if first > 0 && (first == last || uses(0) == uses(1)) {
        ranges.push((first, relative(first), uses(0)));
    } else if first > 0 {
        ranges.extend([(first, 0, uses(0)), (first + step, relative(first + step), uses(1))]);
    }
    let counted = command.count_at > 0;
    replies.array(ranges.len() + usize::from(counted));
    for (first, last, access) in &ranges {
        let numbers = [("lastkey", *last), ("keystep", step), ("limit", 0)];
        write_specification(*access, *first, "range", numbers, replies);
    }
    if counted {
        let numbers = [("keynumidx", 0), ("firstkey", 1), ("keystep", 1)];
        let access = uses(usize::from(!ranges.is_empty()));
        write_specification(access, command.count_at as i64, "keynum", numbers, replies);
    }
}

fn write_specification(
    access: Access,
    first: i64,
    kind: &str,
    numbers: [(&str, i64); 3],
    replies: &mut Replies<'_>,
) {
    let told = told(access);
    replies.map(3);
    replies.bulk(b"flags");
    replies.set(told.len());
    told.iter().for_each(|flag| replies.simple(flag));
    for (part, kind, numbers) in
        [("begin_search", "index", &[("index", first)][..]), ("find_keys", kind, &numbers[..])]
    {
        replies.bulk(part.as_bytes());
        replies.map(2);
        replies.bulk(b"type");
        replies.bulk(kind.as_bytes());
        replies.bulk(b"spec");
        replies.map(numbers.len());
        for (name, number) in numbers {
            replies.bulk(name.as_bytes());
            replies.integer(*number);
        }
    }
}

/// How a use of a key is told.
fn told(access: Access) -> &'static [&'static str] {
    match (access & READS != 0, access & WRITES != 0) {
        (true, true) => &["RW", "access", "update"],
        (true, false) => &["RO", "access"],
        (false, true) => &["OW", "update"],
        _ => &["RO"],
    }
}

fn docs(entries: &[Entry], replies: &mut Replies<'_>) {
    replies.map(entries.len());
    for entry in entries {
        replies.bulk(entry.name().as_bytes());
        let (facts, words) = (entry.facts(), entry.words().collect::<Vec<_>>());
        let (since, until, flags, all) = match &facts {
            Some(facts) => (Some(facts.since), facts.until, &facts.flags[..], &facts.arguments[..]),
            None => (None, None, &[][..], &[][..]),
        };
        let texts = [
            ("summary", Some(entry.command.summary)),
            ("since", since),
            ("group", Some(entry.command.group)),
            ("deprecated_since", until),
        ];
        let texts = texts.into_iter().filter_map(|(field, text)| Some((field, text?)));
        let more = [!flags.is_empty(), !all.is_empty(), !words.is_empty()];
        replies.map(texts.clone().count() + more.iter().filter(|is_there| **is_there).count());
        for (field, text) in texts {
            replies.bulk(field.as_bytes());
            replies.bulk(text.as_bytes());
        }
        if !flags.is_empty() {
            replies.bulk(b"doc_flags");
            replies.set(flags.len());
            flags.iter().for_each(|flag| replies.simple(flag));
        }
        if !all.is_empty() {
            replies.bulk(b"arguments");
            super::docs::arguments(all, replies);
        }
        if !words.is_empty() {
            replies.bulk(b"subcommands");
            docs(&words, replies);
        }
    }
}

/// COMMAND LIST, of all commands or of those that a filter leaves.
fn list(filter: Arguments<'_>, replies: &mut Replies<'_>) -> Result<()> {
    let word = |index: usize| filter.get(index).map(lower).unwrap_or_default();
    let value = word(2).into_owned();
    let keep: Box<dyn Fn(Entry) -> bool> = match (filter.len(), &*word(0), &*word(1)) {
        (0, ..) => Box::new(|_| true),
        (3, b"filterby", b"module") => Box::new(|_| false),
        (3, b"filterby", b"aclcat") => {
            Box::new(move |entry| entry.categories().iter().any(|name| name.as_bytes() == value))
        }
        (3, b"filterby", b"pattern") => {
            Box::new(move |entry| pattern::matches(&value, entry.name().as_bytes()))
        }
        _ => return refuse(SYNTAX),
    };
    let entries = all().flat_map(|entry| std::iter::once(entry).chain(entry.words()));
    let names: Vec<_> = entries.filter(|entry| keep(*entry)).map(Entry::name).collect();
    replies.array(names.len());
    names.iter().for_each(|name| replies.bulk(name.as_bytes()));
    Ok(())
}

/// COMMAND GETKEYS; with flags, what the command does with each key.
fn keys(arguments: Arguments<'_>, flags: bool, replies: &mut Replies<'_>) -> Result<()> {
    let Some(command) = command::find(&arguments[0]) else { return refuse("ERR Invalid command specified") };
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
        let told = told(command.access(arguments, index));
        replies.array(2);
        replies.bulk(arguments.get(place).unwrap_or_default());
        replies.set(told.len());
        told.iter().for_each(|flag| replies.simple(flag));
    }
    Ok(())
}
