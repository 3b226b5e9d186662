//! What Redis 7.0 says of its commands beyond what a row does: `facts.txt`, a line for each command and each word of a
//! container.
//!
//! A line is the name, since when, how many arguments (as arity), then `until=VERSION` if it is deprecated, `doc=FLAG`
//! and `tip=TIP` for each flag of its documentation and tip, and the arguments. An argument is
//! `FLAGS name:TYPE[key specification][=token][@since][~deprecated since]`, and of one that has parts `( part part )` behind.
//! FLAGS are `?` optional, `*` multiple, `+` the token each time. TYPE is a letter of [`TYPES`]. The token of a `t` without
//! one is its name in capitals; `""` is the empty one.
//!
//! The facts were asked of redis-server 7.0.15 (COMMAND DOCS, COMMAND INFO); tests/table.rs asks it again.

use std::collections::BTreeMap;
use std::sync::LazyLock;

/// Types of arguments, by their letters.
const TYPES: [(char, &str); 9] = [
    ('t', "pure-token"),
    ('k', "key"),
    ('s', "string"),
    ('i', "integer"),
    ('d', "double"),
    ('p', "pattern"),
    ('u', "unix-time"),
    ('o', "oneof"),
    ('b', "block"),
];
/// Flags of arguments, by their signs.
const FLAGS: [(char, &str); 3] = [('?', "optional"), ('*', "multiple"), ('+', "multiple_token")];

static LINES: LazyLock<BTreeMap<&str, &str>> = LazyLock::new(|| {
    let lines = include_str!("facts.txt").lines();
    lines.filter_map(|line| line.split_once(' ')).collect()
});

/// What is known of a command or word.
#[derive(Clone, Debug)]
pub(crate) struct Facts {
    pub(crate) since: &'static str,
    pub(crate) arity: i64,
    /// Since when it is deprecated.
    pub(crate) until: Option<&'static str>,
    /// Flags of its documentation.
    pub(crate) flags: Vec<&'static str>,
    pub(crate) tips: Vec<&'static str>,
    pub(crate) arguments: Vec<Argument>,
}

/// An argument.
#[derive(Clone, Debug, Default)]
pub(crate) struct Argument {
    pub(crate) name: &'static str,
    pub(crate) kind: &'static str,
    /// Which key specification finds it.
    pub(crate) specification: Option<i64>,
    pub(crate) token: Option<String>,
    pub(crate) since: Option<&'static str>,
    pub(crate) until: Option<&'static str>,
    pub(crate) flags: Vec<&'static str>,
    pub(crate) parts: Vec<Argument>,
}

/// What Redis says of the command or `container|word` called so, in lower case; nothing of those that are ours.
pub(crate) fn facts(name: &str) -> Option<Facts> {
    let mut words = LINES.get(name)?.split(' ').peekable();
    let since = words.next()?;
    let arity = words.next()?.parse().ok()?;
    let until = words.next_if(|word| word.starts_with("until=")).map(|word| &word[6..]);
    let mut labelled = |label: &str| {
        let mut all = Vec::new();
        while let Some(word) = words.next_if(|word| word.starts_with(label)) {
            all.push(&word[label.len()..]);
        }
        all
    };
    let (flags, tips) = (labelled("doc="), labelled("tip="));
    Some(Facts { since, arity, until, flags, tips, arguments: arguments(&mut words) })
}

/// The arguments up to a `)` or the end.
fn arguments(words: &mut impl Iterator<Item = &'static str>) -> Vec<Argument> {
    let mut all = Vec::new();
    while let Some(word) = words.next().filter(|word| *word != ")") {
        let mut argument = argument(word.trim_end_matches('('));
        if word.ends_with('(') {
            argument.parts = arguments(words);
        }
        all.push(argument);
    }
    all
}

fn argument(word: &'static str) -> Argument {
    let named = word.trim_start_matches(['?', '*', '+']);
    let signs = &word[..word.len() - named.len()];
    let flags = FLAGS.iter().filter(|(sign, _)| signs.contains(*sign)).map(|(_, name)| *name).collect();
    let (rest, until) = split(named, '~');
    let (rest, since) = split(rest, '@');
    let (rest, token) = split(rest, '=');
    let (name, kind) = rest.rsplit_once(':').unwrap_or((rest, ""));
    let letter = kind.chars().next();
    let kind_name = TYPES.iter().find(|(known, _)| Some(*known) == letter).map_or("", |(_, name)| *name);
    let token = match token {
        Some("\"\"") => Some(String::new()),
        Some(token) => Some(token.to_owned()),
        None if kind == "t" => Some(name.to_ascii_uppercase()),
        None => None,
    };
    let specification = kind.get(1..).and_then(|digits| digits.parse().ok());
    Argument { name, kind: kind_name, specification, token, since, until, flags, parts: Vec::new() }
}

fn split(text: &'static str, sign: char) -> (&'static str, Option<&'static str>) {
    text.split_once(sign).map_or((text, None), |(text, rest)| (text, Some(rest)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_of_a_command_and_is_understood() {
        fn check(name: &str, argument: &Argument) {
            assert!(!argument.name.is_empty() && !argument.kind.is_empty(), "{name}: {argument:?}");
            assert_eq!(argument.parts.is_empty(), !matches!(argument.kind, "oneof" | "block"), "{name}");
            argument.parts.iter().for_each(|part| check(name, part));
        }
        for name in LINES.keys() {
            let (command, word) = name.split_once('|').unwrap_or((name, ""));
            let command = super::super::find(command.as_bytes()).unwrap_or_else(|| panic!("no {name}"));
            assert!(word.is_empty() || command.words.contains(&word), "no {name}");
            let facts = facts(name).unwrap_or_else(|| panic!("{name} is not understood"));
            facts.arguments.iter().for_each(|argument| check(name, argument));
            assert!(!word.is_empty() || facts.arity == command.arity, "{name} has another arity");
        }
    }
}
