//! What a user may do: which commands, with which keys, on which channels.
//!
//! Invariant: the rules of commands are kept in their order, and what they come to for each command beside
//! them; both always say the same.

use std::collections::HashMap;

use perilune_resp::Arguments;

use super::categories::CATEGORIES;
use crate::command::access::{Access, READS, WRITES};
use crate::command::Channels;
use crate::command::{commands, find, Command, PUBSUB};
use crate::limits::ACL_RULES;
use crate::pattern;

/// Why something is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Denied {
    /// The command.
    Command,
    /// A key, the argument at this place.
    Key(usize),
    /// A channel, the argument at this place.
    Channel(usize),
    /// A pattern of SORT for keys that it does not name, the argument at this place.
    Pattern(usize),
}

/// What the rules come to for one command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Verdict {
    allowed: bool,
    /// First arguments for which something else holds.
    words: Vec<(String, bool)>,
}

/// One set of rules; something is allowed if one of a user's selectors allows all of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Selector {
    /// `+@all` came last of those about all commands.
    all_commands: bool,
    /// What came behind it, in order.
    rules: Vec<String>,
    verdicts: HashMap<&'static str, Verdict>,
    all_keys: bool,
    keys: Vec<(Access, String)>,
    all_channels: bool,
    channels: Vec<String>,
}

impl Selector {
    /// Everything is allowed.
    pub(crate) fn is_unlimited(&self) -> bool {
        self.all_commands && self.rules.is_empty() && self.all_keys && self.all_channels
    }

    pub(crate) fn allows_all_keys(&self) -> bool {
        self.all_keys
    }

    pub(crate) fn allows_all_channels(&self) -> bool {
        self.all_channels
    }

    pub(crate) fn allows_all_commands(&self) -> bool {
        self.all_commands && self.rules.is_empty()
    }

    /// Whether a command is allowed with whatever word follows it.
    pub(crate) fn allows_all_of(&self, command: &str) -> bool {
        match self.verdicts.get(command) {
            Some(verdict) => verdict.allowed && verdict.words.iter().all(|(_, allowed)| *allowed),
            None => self.all_commands,
        }
    }

    /// Takes one rule; false if it is none about commands, keys or channels.
    pub(crate) fn apply(&mut self, rule: &str) -> Result<bool, &'static str> {
        match rule.to_ascii_lowercase().as_str() {
            "allkeys" => return self.apply("~*"),
            "allchannels" => return self.apply("&*"),
            "allcommands" => return self.apply("+@all"),
            "nocommands" => return self.apply("-@all"),
            "resetkeys" => {
                (self.all_keys, self.keys) = (false, Vec::new());
                return Ok(true);
            }
            "resetchannels" => {
                (self.all_channels, self.channels) = (false, Vec::new());
                return Ok(true);
            }
            _ => {}
        }
        match rule.as_bytes().first() {
            Some(b'~') => self.add_key(READS | WRITES, &rule[1..])?,
            Some(b'%') => {
                let (flags, key) = rule[1..].split_once('~').ok_or("Syntax error")?;
                let mut access = 0;
                for flag in flags.bytes() {
                    access |= match flag.to_ascii_lowercase() {
                        b'r' if access & READS == 0 => READS,
                        b'w' if access & WRITES == 0 => WRITES,
                        _ => return Err("Syntax error"),
                    };
                }
                if access == 0 {
                    return Err("Syntax error");
                }
                self.add_key(access, key)?;
            }
            Some(b'&') => self.add_channel(&rule[1..])?,
            Some(b'+' | b'-') => self.add_command(rule)?,
            _ => return Ok(false),
        }
        if self.keys.len().max(self.channels.len()).max(self.rules.len()) > ACL_RULES {
            return Err("Too many rules: there may be 4096 for keys, for channels, and for commands");
        }
        Ok(true)
    }

    fn add_key(&mut self, access: Access, key: &str) -> Result<(), &'static str> {
        if self.all_keys && !(key == "*" && access == READS | WRITES) {
            return Err(
                "Adding a pattern after the * pattern (or the 'allkeys' flag) is not valid and does not \
                        have any effect. Try 'resetkeys' to start with an empty list of patterns",
            );
        }
        if key.contains([' ', '\0']) {
            return Err("Syntax error");
        }
        if key == "*" && access == READS | WRITES {
            (self.all_keys, self.keys) = (true, Vec::new());
        } else {
            match self.keys.iter_mut().find(|known| known.1 == key) {
                Some(known) => known.0 |= access,
                None => self.keys.push((access, key.to_owned())),
            }
        }
        Ok(())
    }

    fn add_channel(&mut self, channel: &str) -> Result<(), &'static str> {
        if self.all_channels && channel != "*" {
            return Err(
                "Adding a pattern after the * pattern (or the 'allchannels' flag) is not valid and does \
                        not have any effect. Try 'resetchannels' to start with an empty list of channels",
            );
        }
        if channel.contains([' ', '\0']) {
            return Err("Syntax error");
        }
        if channel == "*" {
            (self.all_channels, self.channels) = (true, Vec::new());
        } else if !self.channels.iter().any(|known| known == channel) {
            self.channels.push(channel.to_owned());
        }
        Ok(())
    }

    fn add_command(&mut self, rule: &str) -> Result<(), &'static str> {
        const UNKNOWN: &str = "Unknown command or category name in ACL";
        const FIRST_ARGUMENT: &str = "Allowing first-arg of a subcommand is not supported";
        let rule = rule.to_ascii_lowercase();
        let (sign, name) = (rule.starts_with('+'), &rule[1..]);
        if name == "@all" {
            (self.all_commands, self.rules, self.verdicts) = (sign, Vec::new(), HashMap::new());
            return Ok(());
        }
        if let Some(category) = name.strip_prefix('@') {
            if !CATEGORIES.contains(&category) {
                return Err(UNKNOWN);
            }
            self.decide_category(category, sign);
        } else {
            let (command, word) = match name.split_once('|') {
                Some((command, word)) => (command, Some(word)),
                None => (name, None),
            };
            let command = find(command.as_bytes()).ok_or(UNKNOWN)?;
            match word {
                None => {}
                Some("") => return Err("Syntax error"),
                Some(word) => {
                    let (first, more) =
                        word.split_once('|').map_or((word, false), |(first, _)| (first, true));
                    let is_container = !command.words.is_empty();
                    match command.words.contains(&first) {
                        true if more => return Err(FIRST_ARGUMENT),
                        false if is_container || more => return Err(UNKNOWN),
                        false if !sign => return Err(FIRST_ARGUMENT),
                        _ => {}
                    }
                }
            }
            if self.says(command, word) == Some(sign) {
                // It would only make the rules longer.
                return Ok(());
            }
            match word {
                None => self.decide(command, sign),
                Some(word) => self.decide_word(command, word, sign),
            }
        }
        // What said something of the same, or of a part of it, counts no more.
        let part = format!("{name}|");
        self.rules.retain(|old| old[1..] != *name && !old[1..].starts_with(&part));
        self.rules.push(rule);
        Ok(())
    }

    /// What the rules say of a command, all of it, or of it with a word; none if they say several things.
    fn says(&self, command: &Command, word: Option<&str>) -> Option<bool> {
        let Some(verdict) = self.verdicts.get(command.name) else { return Some(self.all_commands) };
        match word {
            None => verdict.words.is_empty().then_some(verdict.allowed),
            Some(word) => {
                let known = verdict.words.iter().find(|(known, _)| known == word);
                Some(known.map_or(verdict.allowed, |(_, allowed)| *allowed))
            }
        }
    }

    fn verdict(&mut self, command: &'static Command) -> &mut Verdict {
        let allowed = self.all_commands;
        self.verdicts.entry(command.name).or_insert_with(|| Verdict { allowed, words: Vec::new() })
    }

    fn decide(&mut self, command: &'static Command, allowed: bool) {
        *self.verdict(command) = Verdict { allowed, words: Vec::new() };
    }

    fn decide_word(&mut self, command: &'static Command, word: &str, allowed: bool) {
        let words = &mut self.verdict(command).words;
        words.retain(|(known, _)| known != word);
        words.push((word.to_owned(), allowed));
    }

    fn decide_category(&mut self, category: &str, allowed: bool) {
        for command in commands() {
            if command.categories().contains(&category) {
                self.decide(command, allowed);
                continue;
            }
            let (special, words) = (command.special_categories, command.special_words);
            if special.contains(&category) {
                words.iter().for_each(|word| self.decide_word(command, word, allowed));
            }
        }
    }

    /// Whether the rules of commands allow this one.
    fn allows_command(&self, command: &Command, arguments: Arguments<'_>) -> bool {
        let Some(verdict) = self.verdicts.get(command.name) else { return self.all_commands };
        let word = arguments.get(1).unwrap_or_default();
        let known = verdict.words.iter().find(|(known, _)| word.eq_ignore_ascii_case(known.as_bytes()));
        known.map_or(verdict.allowed, |(_, allowed)| *allowed)
    }

    /// Whether a key may be used so.
    pub(crate) fn allows_key(&self, key: &[u8], wanted: Access) -> bool {
        self.all_keys
            || self
                .keys
                .iter()
                .any(|(access, known)| access & wanted == wanted && pattern::matches(known.as_bytes(), key))
    }

    /// Whether a channel may be used; a pattern of channels must be one of those that are allowed.
    pub(crate) fn allows_channel(&self, channel: &[u8], is_pattern: bool) -> bool {
        self.all_channels
            || self.channels.iter().any(|known| match is_pattern {
                true => known.as_bytes() == channel,
                false => pattern::matches(known.as_bytes(), channel),
            })
    }

    /// Whether all of a command is allowed.
    pub(crate) fn check(&self, command: &Command, arguments: Arguments<'_>) -> Result<(), Denied> {
        if !self.allows_command(command, arguments) {
            return Err(Denied::Command);
        }
        // Nodes are all keys and channels at once, and what the server knows besides.
        if command.group == "nodes" && !(self.all_keys && self.all_channels) {
            return Err(Denied::Command);
        }
        // Channels of shards are no keys, though they stand where those do.
        if !self.all_keys && !command.is(PUBSUB) {
            // A command whose keys cannot be told fails for its own reason.
            for (index, place) in command.key_places(arguments).unwrap_or_default().into_iter().enumerate() {
                let key = arguments.get(place).unwrap_or_default();
                if !self.allows_key(key, command.access(arguments, index)) {
                    return Err(Denied::Key(place));
                }
            }
            let reads_all = || self.keys.iter().any(|(access, key)| access & READS != 0 && key == "*");
            if let Some(place) = command.unnamed_keys(arguments).filter(|_| !reads_all()) {
                return Err(Denied::Pattern(place));
            }
        }
        if !self.all_channels && command.is(PUBSUB) {
            let (channels, is_pattern) = match command.channels {
                Channels::First => (1..2.min(arguments.len()), false),
                Channels::All => (1..arguments.len(), false),
                Channels::Patterns => (1..arguments.len(), true),
                Channels::None => (0..0, false),
            };
            for place in channels {
                if !self.allows_channel(arguments.get(place).unwrap_or_default(), is_pattern) {
                    return Err(Denied::Channel(place));
                }
            }
        }
        Ok(())
    }

    /// The rules of commands, as ACL GETUSER tells them.
    pub(crate) fn command_rules(&self) -> String {
        let mut text = String::from(if self.all_commands { "+@all" } else { "-@all" });
        for rule in &self.rules {
            text.push(' ');
            text.push_str(rule);
        }
        text
    }

    pub(crate) fn key_rules(&self) -> String {
        if self.all_keys {
            return "~*".to_owned();
        }
        let told = self.keys.iter().map(|(access, key)| match *access {
            READS => format!("%R~{key}"),
            WRITES => format!("%W~{key}"),
            _ => format!("~{key}"),
        });
        told.collect::<Vec<_>>().join(" ")
    }

    pub(crate) fn channel_rules(&self) -> String {
        if self.all_channels {
            return "&*".to_owned();
        }
        self.channels.iter().map(|channel| format!("&{channel}")).collect::<Vec<_>>().join(" ")
    }

    /// All rules, so that applied to a new selector they make this one.
    pub(crate) fn rules(&self) -> String {
        let mut words = vec![self.key_rules()];
        if !self.all_channels {
            words.push("resetchannels".to_owned());
        }
        words.extend([self.channel_rules(), self.command_rules()]);
        words.retain(|word| !word.is_empty());
        words.join(" ")
    }
}
