//! Rows of scripts and functions.

use super::row::*;
use crate::commands::scripts;

/// The number of keys is the second argument.
fn keys(arguments: perilune_resp::Arguments<'_>) -> Option<Vec<usize>> {
    match arguments.get(2) {
        Some(b"0") => Some(Vec::new()),
        _ => counted(arguments, 2),
    }
}

#[rustfmt::skip]
pub(super) const ROWS: &[Command] = &[
    on_connection("eval", -3, NOSCRIPT | KEYLESS, "scripting", scripts::eval, "Runs a script").finder(keys),
    on_connection("eval_ro", -3, NOSCRIPT | KEYLESS, "scripting", scripts::eval, "Runs a script that writes nothing").finder(keys),
    on_connection("evalsha", -3, NOSCRIPT | KEYLESS, "scripting", scripts::eval, "Runs a script that is kept, by its SHA1").finder(keys),
    on_connection("evalsha_ro", -3, NOSCRIPT | KEYLESS, "scripting", scripts::eval, "Runs a kept script that writes nothing").finder(keys),
    on_connection("script", -2, NOSCRIPT, "scripting", scripts::script, "Keeps, drops and stops scripts")
        .with(&["debug", "exists", "flush", "help", "kill", "load"]),
];
