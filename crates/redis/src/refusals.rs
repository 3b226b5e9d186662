//! What is said to commands that are not run, in the words of Redis.
//!
//! Clients compare these texts, and people look for them: `ERR wrong number of arguments for 'get' command`.
//!
//! Invariant: a refusal is one line.

use std::fmt::Write as _;

use perilune_resp::Arguments;

use crate::command::{self, Command};

/// The name of a command, with the word behind it if it is a container.
pub(crate) fn full_name(command: &Command, arguments: Arguments<'_>) -> String {
    match arguments.get(1) {
        Some(word) if !command.words.is_empty() => {
            format!("{}|{}", command.name, String::from_utf8_lossy(word).to_ascii_lowercase())
        }
        _ => command.name.to_owned(),
    }
}

/// The refusal of a pattern of SORT.
pub(crate) fn pattern_denied(arguments: Arguments<'_>, place: usize) -> String {
    let option = String::from_utf8_lossy(arguments.get(place - 1).unwrap_or_default()).to_ascii_uppercase();
    format!("ERR {option} option of SORT denied due to insufficient ACL permissions.")
}

/// The refusal of a wrong number of arguments.
pub(crate) fn wrong_number(name: &str) -> String {
    format!("ERR wrong number of arguments for '{name}' command")
}

/// The refusal of what a subscriber without pushes cannot have.
pub(crate) fn only_subscribed(name: &str) -> String {
    format!(
        "ERR Can't execute '{name}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in \
         this context"
    )
}

/// A part of an argument as a message shows it: up to a zero byte, as C does.
fn shown(bytes: &[u8], most: usize) -> String {
    let bytes = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(&bytes[..bytes.len().min(most)]).into_owned()
}

/// The refusal of a word that a container of commands does not know.
pub(crate) fn unknown_word(container: &str, word: &[u8]) -> String {
    format!("ERR unknown subcommand '{}'. Try {} HELP.", shown(word, 128), container.to_ascii_uppercase())
}

/// The refusal of a command that a script calls and nobody knows: Redis's words, and which one it was.
pub(crate) fn unknown_to_script(arguments: Arguments<'_>, words: usize) -> String {
    let name: Vec<String> = arguments.iter().take(words).map(|word| shown(word, 128)).collect();
    format!("ERR Unknown Redis command called from script: '{}'", name.join(" "))
}

/// The refusal of a name that no command has, with the words of Redis; of what is absent on purpose, why.
pub(crate) fn unknown(arguments: Arguments<'_>) -> String {
    if let Some(reason) = command::absent(&arguments[0]) {
        return reason.to_owned();
    }
    let mut text = format!("ERR unknown command '{}', with args beginning with: ", shown(&arguments[0], 128));
    let mut room = 128;
    for argument in arguments.from(1).iter() {
        if room == 0 {
            break;
        }
        let _ = write!(text, "'{}' ", shown(argument, room));
        room = room.saturating_sub(argument.len() + 3);
    }
    text
}
