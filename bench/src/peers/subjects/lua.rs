//! Perilune by its Lua module: in the embedded LuaJIT, and in the system's Lua 5.4.

use std::path::PathBuf;
use std::process::Command;

use super::perilune::level;
use super::{elsewhere, perilune_serve, script, Mapping, Part, Side, Site, ALL_PARTS};
use crate::subject::{Class, Result};

const JIT: Side = Side {
    name: "perilune-luajit",
    class: Class::D4,
    mapping: Mapping::Best,
    client: "LuaJIT",
    settings: "durability none; the LuaJIT of the program perilune",
    parts: ALL_PARTS,
    processes: true,
    version: || {
        super::version_of(
            &perilune_serve::program()?,
            &["--version"],
            "perilune: cargo build --release -p perilune-cli",
        )
    },
    serve: None,
    open: elsewhere,
    player: Some(|site| {
        let mut command = Command::new(perilune_serve::program()?);
        command.arg("run");
        play(command, site)
    }),
};
const LUA: Side = Side {
    name: "perilune-lua5.4",
    client: "Lua 5.4",
    settings: "durability none",
    parts: &[Part::Collatz, Part::Sequence, Part::Trace, Part::Walk, Part::Bank, Part::Batch],
    version: || {
        if !built().join("_perilune.so").exists() {
            return Err("the module is not built: make -C bindings/lua LUA=5.4".into());
        }
        super::version_of("lua5.4", &["-v"], "lua5.4")
    },
    player: Some(|site| play(Command::new("lua5.4"), site)),
    ..JIT
};

pub(crate) const SIDES: &[Side] = &[
    JIT,
    Side { class: Class::D3, settings: "durability periodic", ..JIT },
    Side { class: Class::D2, settings: "durability fsync, many sets in a transaction", ..JIT },
    Side { class: Class::D1, settings: "durability fsync", ..JIT },
    LUA,
    Side { class: Class::D1, settings: "durability fsync", ..LUA },
];

/// Where `make` puts the module for Lua 5.4.
fn built() -> PathBuf {
    let chosen = std::env::var_os("PERILUNE_LUA54").map(PathBuf::from);
    chosen.unwrap_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../build/lua/5.4"))
}

/// The player's script and what it needs to find its modules.
fn play(mut command: Command, site: &Site) -> Result<Command> {
    command.arg(script("perilune_player.lua")).arg(&site.directory);
    command.arg(format!("{:?}", level(site.class)).to_lowercase());
    command.env("PERILUNE_BENCH_PLAYERS", script(""));
    command.env("LUA_PATH", format!("{}/?.lua;;", built().display()));
    command.env("LUA_CPATH", format!("{}/?.so;;", built().display()));
    Ok(command)
}
