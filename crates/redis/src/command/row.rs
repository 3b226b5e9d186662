//! A row of the table: what is known of a command.

use perilune_resp::Arguments;

use super::access::{Access, Accesses, READS, WRITES};
use super::Runs;
use crate::limits::{ARGUMENTS_IN_LOOP, ASIDE_BYTES};
use crate::redis::Redis;

/// Changes keys: runs in a transaction that may write.
pub(crate) const WRITE: u32 = 1;
/// Reads keys and changes none.
pub(crate) const READ: u32 = 1 << 1;
/// May need more memory.
pub(crate) const GROWS: u32 = 1 << 2;
/// Takes the same time whatever is stored.
pub(crate) const FAST: u32 = 1 << 3;
/// For whoever operates the server.
pub(crate) const ADMIN: u32 = 1 << 4;
/// Runs before the client has authenticated.
pub(crate) const ADMITTED: u32 = 1 << 5;
/// Runs at once behind MULTI.
pub(crate) const IMMEDIATE: u32 = 1 << 6;
/// Runs what is queued behind MULTI.
pub(crate) const QUEUED: u32 = 1 << 7;
/// May park the client.
pub(crate) const BLOCKING: u32 = 1 << 8;
/// Is about messages.
pub(crate) const PUBSUB: u32 = 1 << 9;
/// Not for scripts.
pub(crate) const NOSCRIPT: u32 = 1 << 10;
/// Where its keys are depends on its arguments: it has a finder.
pub(crate) const MOVABLE: u32 = 1 << 11;
/// Not behind MULTI.
pub(crate) const NO_MULTI: u32 = 1 << 12;
/// Harmful in the wrong hands, though not for operators alone.
pub(crate) const DANGEROUS: u32 = 1 << 13;
/// Works with keys whatever they hold, though its group says something else.
pub(crate) const KEYSPACE: u32 = 1 << 14;
/// Needs no key though it may have some.
pub(crate) const KEYLESS: u32 = 1 << 15;
/// Runs also while a client that speaks RESP2 is subscribed.
pub(crate) const SUBSCRIBED: u32 = 1 << 16;
/// Sends messages, which takes a transaction that may write.
pub(crate) const POSTS: u32 = 1 << 17;

/// Works with lists, sets and sorted sets alike, though its group says something else.
pub(crate) const COLLECTIONS: u32 = 1 << 18;
/// May take long: runs aside, while the event loop goes on.
pub(crate) const LONG: u32 = 1 << 19;
/// Takes all elements of the keys that it names.
pub(crate) const WHOLE: u32 = 1 << 20;
/// Changes settings or users, which all servers of the database share.
pub(crate) const GOVERNS: u32 = 1 << 22;
/// Is about the connection, though its group says something else.
pub(crate) const CONNECTION: u32 = 1 << 23;
/// Works with keys alone, inside a transaction.
const ON_KEYS: u32 = 1 << 21;

/// How COMMAND INFO names the flags; the others are ours, or categories.
const FLAG_NAMES: [(u32, &str); 12] = [
    (WRITE, "write"),
    (READ, "readonly"),
    (GROWS, "denyoom"),
    (ADMIN, "admin"),
    (PUBSUB, "pubsub"),
    (NOSCRIPT, "noscript"),
    (BLOCKING, "blocking"),
    (FAST, "fast"),
    (ADMITTED, "no_auth"),
    (NO_MULTI, "no_multi"),
    (MOVABLE, "movablekeys"),
    (KEYLESS, "no_mandatory_keys"),
];

/// Which of the arguments are keys; none if they are wrong.
pub(crate) type KeyFinder = fn(Arguments<'_>) -> Option<Vec<usize>>;
/// Where the first pattern of keys is that are read and not named.
pub(crate) type PatternFinder = fn(Arguments<'_>) -> Option<usize>;

/// Which of the arguments of a command are channels that its user must be allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Channels {
    /// None is.
    None,
    /// The first one.
    First,
    /// All.
    All,
    /// All, as patterns.
    Patterns,
}

/// Where the first and the last key are (negative: from the end), and their distance; 0: no keys.
pub(crate) type Places = (i64, i64, i64);

/// One command.
#[derive(Clone, Debug)]
pub(crate) struct Command {
    pub(crate) name: &'static str,
    /// Arguments with the name; negative: at least so many.
    pub(crate) arity: i64,
    flags: u32,
    pub(crate) keys: Places,
    finder: Option<KeyFinder>,
    /// The argument that says how many keys follow it; 0: none does.
    pub(crate) count_at: usize,
    pub(crate) group: &'static str,
    pub(crate) summary: &'static str,
    /// What runs, of which whoever reads the table knows nothing.
    pub(crate) runs: <Redis as Runs>::Handlers,
    /// The words that may follow it, if it is a container of commands.
    pub(crate) words: &'static [&'static str],
    /// Those of them that belong to categories the container does not, and to which: for operators, or because they change
    /// what is kept.
    pub(crate) special_words: &'static [&'static str],
    pub(crate) special_categories: &'static [&'static str],
    /// What it does with each of its keys; none: what its flags say.
    accesses: Option<Accesses>,
    /// Which of its arguments are channels that it is about.
    pub(crate) channels: Channels,
    /// From which argument on it may have passwords; 0: it has none.
    secrets: usize,
    /// The place of the first pattern by which it reads keys that it does not name.
    patterns: Option<PatternFinder>,
    /// Which of its requests are none of its own but statements of SQL.
    pub(crate) statement: Option<fn(Arguments<'_>) -> bool>,
    /// Its place in the index: the same as long as the program runs, and below `NUMBERS`; and the number of the first of
    /// its words.
    pub(super) number: usize,
    /// Its first bytes and its last ones, and whether they are all of its name, which has letters only.
    pub(super) ends: (u64, u64),
    pub(super) is_plain: bool,
    pub(super) first_word: usize,
}

impl Command {
    /// Whether it has one of these flags.
    pub(crate) fn is(&self, flags: u32) -> bool {
        self.flags & flags != 0
    }

    /// Whether it may take long with these arguments; what stops others may not wait.
    #[inline]
    pub(crate) fn takes_long(&self, arguments: Arguments<'_>) -> bool {
        let stops = || arguments.get(1).is_some_and(|word| word.eq_ignore_ascii_case(b"kill"));
        self.is(LONG) && (self.words.is_empty() || !stops()) || arguments.extent() >= ASIDE_BYTES
    }

    /// Whether it works with keys alone, inside a transaction.
    #[inline]
    pub(crate) fn is_on_keys(&self) -> bool {
        self.is(ON_KEYS)
    }

    /// Whether it is about so many things that it takes long whatever there is.
    #[inline]
    pub(crate) fn is_about_many(&self, arguments: usize) -> bool {
        arguments > ARGUMENTS_IN_LOOP && self.is_on_keys()
    }

    /// Whether it takes so many arguments.
    pub(crate) fn takes(&self, count: usize) -> bool {
        let count = count as i64;
        count == self.arity || self.arity < 0 && count >= -self.arity
    }

    /// Its flags, as COMMAND INFO names them.
    pub(crate) fn flag_names(&self) -> impl Iterator<Item = &'static str> + '_ {
        FLAG_NAMES.iter().filter(|(flag, _)| self.is(*flag)).map(|(_, name)| *name)
    }

    /// The categories of ACL that it belongs to, without their `@`.
    pub(crate) fn categories(&self) -> Vec<&'static str> {
        let mut all = Vec::new();
        let mut add = |wanted: bool, name| {
            if wanted {
                all.push(name);
            }
        };
        let collections = self.is(COLLECTIONS);
        add(self.group == "generic" && !collections || self.is(KEYSPACE), "keyspace");
        add(self.is(READ) && self.group != "connection", "read");
        add(self.is(WRITE), "write");
        add(self.group == "set" || collections, "set");
        add(self.group == "sorted-set" || collections, "sortedset");
        add(self.group == "list" || collections, "list");
        add(self.group == "hash", "hash");
        add(self.group == "string", "string");
        add(self.group == "bitmap", "bitmap");
        add(self.is(ADMIN), "admin");
        add(self.is(PUBSUB), "pubsub");
        add(self.is(FAST), "fast");
        add(!self.is(FAST), "slow");
        add(self.is(BLOCKING), "blocking");
        add(self.is(ADMIN | DANGEROUS), "dangerous");
        add(self.group == "connection" || self.is(CONNECTION), "connection");
        add(self.group == "transactions", "transaction");
        // A function that a program sends is a script, too.
        add(self.group == "scripting" || self.group == "nodes" && self.is(LONG), "scripting");
        all
    }

    /// Which of the arguments are keys; none if they are not as they have to be.
    pub(crate) fn key_places(&self, arguments: Arguments<'_>) -> Option<Vec<usize>> {
        if let Some(finder) = self.finder {
            return finder(arguments);
        }
        let (first, last, step) = self.keys;
        if first <= 0 {
            return Some(Vec::new());
        }
        let last = if last < 0 { arguments.len() as i64 + last } else { last };
        Some((first..=last).step_by(step.max(1) as usize).map(|place| place as usize).collect())
    }

    /// What it does with the key that is number `index` of its keys.
    pub(crate) fn access(&self, arguments: Arguments<'_>, index: usize) -> Access {
        match self.accesses {
            Some(accesses) => accesses(arguments, index),
            None if self.is(WRITE) => WRITES,
            None if self.is(READ) => READS,
            None => 0,
        }
    }

    /// The place of the first pattern by which it reads keys that it does not name, if it does.
    pub(crate) fn unnamed_keys(&self, arguments: Arguments<'_>) -> Option<usize> {
        self.patterns.and_then(|patterns| patterns(arguments))
    }

    /// Whether it is called with a word for operators, which the container itself is not for.
    pub(crate) fn is_called_for_operators(&self, arguments: Arguments<'_>) -> bool {
        let is_called =
            |word: &&str| arguments.get(1).is_some_and(|given| given.eq_ignore_ascii_case(word.as_bytes()));
        self.special_categories.contains(&"admin") && self.special_words.iter().any(is_called)
    }

    /// Where its secrets may be: from which argument on; none: it has none.
    pub(crate) fn secret_from(&self, arguments: Arguments<'_>) -> Option<usize> {
        let has_any = self.special_words.is_empty() || self.is_called_for_operators(arguments);
        (self.secrets > 0 && has_any).then_some(self.secrets)
    }

    /// Whether all of its arguments may be secrets.
    pub(crate) fn is_all_secret(&self) -> bool {
        self.secrets == 1
    }

    /// What it does with each of its keys, where that is not what its flags say.
    pub(crate) const fn accesses(mut self, accesses: Accesses) -> Command {
        self.accesses = Some(accesses);
        self
    }

    /// Requests of this shape are statements of SQL.
    pub(crate) const fn or_statement(mut self, is_statement: fn(Arguments<'_>) -> bool) -> Command {
        self.statement = Some(is_statement);
        self
    }

    /// Words that are for operators, which the container is not.
    pub(crate) const fn for_operators(mut self, words: &'static [&'static str]) -> Command {
        self.special_words = words;
        self.special_categories = &["admin", "dangerous"];
        self
    }

    /// Words that change what is kept.
    pub(crate) const fn writing(mut self, words: &'static [&'static str]) -> Command {
        self.special_words = words;
        self.special_categories = &["write"];
        self
    }

    /// From this argument on it may have passwords; of a container with words for operators, with these.
    pub(crate) const fn secrets(mut self, from: usize) -> Command {
        self.secrets = from;
        self
    }

    /// Which of its arguments are channels.
    pub(crate) const fn channels(mut self, channels: Channels) -> Command {
        self.channels = channels;
        self
    }

    /// It reads keys by patterns.
    pub(crate) const fn reads_by_patterns(mut self, finder: PatternFinder) -> Command {
        self.patterns = Some(finder);
        self
    }

    /// The words that may follow it.
    pub(crate) const fn with(mut self, words: &'static [&'static str]) -> Command {
        self.words = words;
        self
    }

    /// Where its keys are.
    pub(crate) const fn at(mut self, keys: Places) -> Command {
        self.keys = keys;
        self
    }

    /// The argument at `at` is a number of keys, which follow; the key before it, if there is one, is a target.
    pub(crate) const fn counted(mut self, at: usize) -> Command {
        self.count_at = at;
        let finder: KeyFinder = match (at, self.keys.0) {
            (1, _) => counted_first,
            (_, 0) if self.flags & KEYLESS != 0 => counted_or_none,
            (_, 0) => counted_second,
            _ => target_and_counted,
        };
        self.finder(finder)
    }

    /// What finds its keys.
    pub(crate) const fn finder(mut self, finder: KeyFinder) -> Command {
        self.finder = Some(finder);
        self.flags |= MOVABLE;
        self
    }
}

impl Command {
    /// A row: `arity` counts the name; of `words`, keys that depend on arguments and ways to run it says more what is called
    /// on it.
    pub(crate) const fn new(
        description: Description,
        flags: u32,
        runs: <Redis as Runs>::Handlers,
    ) -> Command {
        let Description { name, arity, keys, group, summary } = description;
        Command {
            name,
            arity,
            flags,
            keys,
            finder: None,
            count_at: 0,
            group,
            summary,
            runs,
            words: &[],
            special_words: &[],
            special_categories: &[],
            accesses: None,
            channels: Channels::None,
            secrets: 0,
            patterns: None,
            statement: None,
            number: 0,
            ends: (0, 0),
            is_plain: false,
            first_word: 0,
        }
    }

    /// It works with keys alone.
    pub(crate) const fn on_keys(mut self) -> Command {
        self.flags |= ON_KEYS;
        self
    }
}

/// What a row says of a command to people, and where its keys are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Description {
    pub(crate) name: &'static str,
    pub(crate) arity: i64,
    pub(crate) keys: Places,
    pub(crate) group: &'static str,
    pub(crate) summary: &'static str,
}

pub(crate) const NONE: Places = (0, 0, 0);
pub(crate) const ONE: Places = (1, 1, 1);
pub(crate) const TWO: Places = (1, 2, 1);
pub(crate) const ALL: Places = (1, -1, 1);
pub(crate) const ALL_BUT_LAST: Places = (1, -2, 1);
pub(crate) const PAIRS: Places = (1, -1, 2);

/// A number of keys at `at`, and the keys behind it.
fn counted(arguments: Arguments<'_>, at: usize) -> Option<Vec<usize>> {
    let count = perilune_resp::parse_integer(arguments.get(at)?)?;
    let count = usize::try_from(count).ok().filter(|count| *count > 0 && *count < arguments.len() - at)?;
    Some((at + 1..=at + count).collect())
}

/// The number of keys is the second argument.
fn counted_second(arguments: Arguments<'_>) -> Option<Vec<usize>> {
    counted(arguments, 2)
}

/// The number of keys is the second argument, and no keys will do.
fn counted_or_none(arguments: Arguments<'_>) -> Option<Vec<usize>> {
    match arguments.get(2) {
        Some(b"0") => Some(Vec::new()),
        _ => counted(arguments, 2),
    }
}

/// The number of keys is the first argument.
fn counted_first(arguments: Arguments<'_>) -> Option<Vec<usize>> {
    counted(arguments, 1)
}

/// A target, and behind it the number of keys.
fn target_and_counted(arguments: Arguments<'_>) -> Option<Vec<usize>> {
    let mut places = vec![1];
    places.extend(counted(arguments, 2)?);
    Some(places)
}

/// What SORT sorts, and where it stores.
pub(crate) fn sort_keys(arguments: Arguments<'_>) -> Option<Vec<usize>> {
    let store = (2..arguments.len()).rev().find(|place| arguments[*place - 1].eq_ignore_ascii_case(b"store"));
    Some(std::iter::once(1).chain(store.filter(|place| *place > 2)).collect())
}
