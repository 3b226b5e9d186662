//! Rows of scripts and functions.

use crate::command::access;
use crate::command::*;
use crate::commands::scripts::in_place;
use crate::commands::{functions, scripts};
use crate::handler::on_connection;

#[rustfmt::skip]
pub(super) const ROWS: &[Command] = &[
    on_connection("eval", -3, NOSCRIPT | KEYLESS | LONG, "scripting", scripts::eval, "Runs a script")
        .counted(2).in_place(in_place::attempt)
        .accesses(access::both),
    on_connection("eval_ro", -3, NOSCRIPT | KEYLESS | LONG, "scripting", scripts::eval, "Runs a script that writes nothing")
        .counted(2).in_place(in_place::attempt)
        .accesses(access::reads),
    on_connection("evalsha", -3, NOSCRIPT | KEYLESS | LONG, "scripting", scripts::eval, "Runs a script that is kept, by its SHA1")
        .counted(2).in_place(in_place::attempt)
        .accesses(access::both),
    on_connection("evalsha_ro", -3, NOSCRIPT | KEYLESS | LONG, "scripting", scripts::eval, "Runs a kept script that writes nothing")
        .counted(2).in_place(in_place::attempt)
        .accesses(access::reads),
    on_connection("fcall", -3, NOSCRIPT | KEYLESS | LONG, "scripting", functions::fcall, "Runs a function").counted(2)
        .accesses(access::both),
    on_connection("fcall_ro", -3, NOSCRIPT | KEYLESS | LONG, "scripting", functions::fcall, "Runs a function that writes nothing")
        .counted(2)
        .accesses(access::reads),
    on_connection("function", -2, NOSCRIPT | LONG, "scripting", functions::function, "Keeps and drops libraries of functions")
        .with(&["delete", "dump", "flush", "help", "kill", "list", "load", "restore", "stats"])
        .writing(&["delete", "flush", "load", "restore"]),
    on_connection("lua", -2, NOSCRIPT | DANGEROUS | LONG, "scripting", functions::lua, "Runs Lua that may set globals"),
    on_connection("luafunc", -2, NOSCRIPT | DANGEROUS | LONG, "scripting", functions::luafunc, "Runs a function, by arguments"),
    on_connection("script", -2, NOSCRIPT, "scripting", scripts::script, "Keeps, drops and stops scripts")
        .with(&["debug", "exists", "flush", "help", "kill", "load"]),
];
