//! What nobody is shown: commands whose arguments are passwords, or may be.
//!
//! Who watches (MONITOR, SLOWLOG) sees neither AUTH nor HELLO, and of commands for operators no arguments, as in Redis. One
//! place says which these are, and a test goes through the table.

use perilune_resp::Arguments;

use crate::acl::special_words;
use crate::command::{Command, ADMIN, ADMITTED};

/// Whether a command is for operators, or lets clients in: MONITOR leaves it out.
pub(crate) fn is_private(command: &Command, arguments: Arguments<'_>) -> bool {
    command.is(ADMIN | ADMITTED) || !command.words.is_empty() && is_for_operators(command, arguments)
}

/// Whether a container is called with a word for operators.
fn is_for_operators(command: &Command, arguments: Arguments<'_>) -> bool {
    let (categories, words) = special_words(command.name);
    let is_called =
        |word: &&str| arguments.get(1).is_some_and(|given| given.eq_ignore_ascii_case(word.as_bytes()));
    categories.contains(&"admin") && words.iter().any(is_called)
}

/// Where its secrets may be: from which argument on SLOWLOG keeps none; none: it keeps all.
pub(crate) fn secret_from(command: &Command, arguments: Arguments<'_>) -> Option<usize> {
    match command.name {
        "auth" | "hello" => Some(1),
        "config" => Some(2),
        "acl" if is_for_operators(command, arguments) => Some(2),
        _ => None,
    }
}
