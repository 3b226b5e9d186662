//! Tarantool: memtx, the work done by Lua in the server; players hand it their lines.

use std::process::Command;

use super::{elsewhere, script, version_of, Mapping, Server, Side, Site, ALL_PARTS};
use crate::subject::{Class, Result};

const D4: Side = Side {
    name: "tarantool",
    class: Class::D4,
    mapping: Mapping::Best,
    client: "Lua in the server",
    settings: "memtx, wal_mode=none; one call hands over a whole workload",
    parts: ALL_PARTS,
    processes: true,
    version: || version_of("tarantool", &["--version"], "tarantool"),
    serve: Some(serve),
    open: elsewhere,
    player: Some(|site| Ok(command(site, "play"))),
};

pub(crate) const SIDES: &[Side] = &[D4, Side { class: Class::D1, settings: "memtx, wal_mode=fsync", ..D4 }];

fn command(site: &Site, role: &str) -> Command {
    let mut command = Command::new("tarantool");
    command.arg(script("tarantool_player.lua")).arg(role).arg(&site.directory).arg(site.class.name());
    command.env("PERILUNE_BENCH_PLAYERS", script(""));
    command
}

fn serve(site: &Site) -> Result<Server> {
    Server::start(command(site, "serve"), &site.directory, &site.directory.join("socket"))
}
