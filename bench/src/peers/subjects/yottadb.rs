//! YottaDB by lua-yottadb, where both are installed; Debian has neither.

use std::process::Command;

use super::{elsewhere, script, Mapping, Part, Side};
use crate::subject::Class;

/// Without `query` and `merge`, which lua-yottadb has not as calls.
const PARTS: &[Part] = &[Part::Collatz, Part::Sequence, Part::Trace, Part::Bank, Part::Batch];

pub(crate) const SIDES: &[Side] = &[Side {
    name: "lua-yottadb",
    class: Class::D4,
    mapping: Mapping::Best,
    client: "Lua 5.4",
    settings: "the database that $ydb_gbldir names, as it is set: it should be without journal",
    parts: PARTS,
    processes: true,
    version: || {
        if std::env::var_os("ydb_gbldir").is_none() {
            return Err("install YottaDB and lua-yottadb, and make a database that $ydb_gbldir names".into());
        }
        super::version_of("lua5.4", &["-e", "print((require 'yottadb')._VERSION)"], "lua5.4")
    },
    serve: None,
    open: elsewhere,
    player: Some(|site| {
        let mut command = Command::new("lua5.4");
        command.arg(script("yottadb_player.lua")).arg(&site.directory);
        command.env("PERILUNE_BENCH_PLAYERS", script(""));
        Ok(command)
    }),
}];
