//! Our own server, by a client in Rust on its Unix socket.

use std::process::Command;

use super::{resp, Mapping, Server, Side, Site, ALL_PARTS};
use crate::subject::{Class, Result};

const D4: Side = Side {
    name: "perilune-serve",
    class: Class::D4,
    mapping: Mapping::Best,
    client: "Rust, RESP",
    settings: "perilune serve --durability none, Unix socket",
    parts: ALL_PARTS,
    processes: true,
    version: || {
        super::version_of(&program()?, &["--version"], "perilune: cargo build --release -p perilune-cli")
    },
    serve: Some(serve),
    open: resp::open,
    player: None,
};

pub(crate) const SIDES: &[Side] = &[
    D4,
    Side { class: Class::D3, settings: "perilune serve --durability periodic, Unix socket", ..D4 },
    Side { class: Class::D2, settings: "as D1, many sets in MULTI", ..D4 },
    Side { class: Class::D1, settings: "perilune serve --durability fsync, Unix socket", ..D4 },
];

/// The `perilune` beside this program, or that of `$PERILUNE`.
pub(crate) fn program() -> Result<String> {
    let beside = std::env::current_exe()?.with_file_name("perilune");
    let chosen = std::env::var_os("PERILUNE").map_or(beside, std::path::PathBuf::from);
    Ok(chosen.to_string_lossy().into_owned())
}

fn serve(site: &Site) -> Result<Server> {
    let socket = site.directory.join("socket");
    let level = match site.class {
        Class::D1 | Class::D2 => "fsync",
        Class::D3 => "periodic",
        Class::D4 => "none",
    };
    let mut command = Command::new(program()?);
    command.arg("serve").arg(site.directory.join("bench.db")).args(["--port", "0", "--bind", "127.0.0.1"]);
    command.args(["--durability", level, "--unixsocket"]).arg(&socket);
    Server::start(command, &site.directory, &socket)
}
