//! Redis, by a client in Rust on its Unix socket.

use std::process::Command;

use super::{resp, Mapping, Server, Side, Site, ALL_PARTS};
use crate::subject::{Class, Result};

const D4: Side = Side {
    name: "redis",
    class: Class::D4,
    mapping: Mapping::Best,
    client: "Rust, RESP",
    settings: "save \"\", appendonly no; Unix socket; a hash, with a sorted set where order is wanted",
    parts: ALL_PARTS,
    processes: true,
    version: || super::version_of("redis-server", &["--version"], "redis-server"),
    serve: Some(serve),
    open: resp::open,
    player: None,
};
const D1: Side = Side { class: Class::D1, settings: "appendonly yes, appendfsync always; Unix socket", ..D4 };

pub(crate) const SIDES: &[Side] = &[
    D4,
    Side { class: Class::D3, settings: "appendonly yes, appendfsync everysec; Unix socket", ..D4 },
    Side { class: Class::D2, settings: "as D1, many sets in MULTI", ..D1 },
    D1,
];

/// Starts a server on a socket in the directory.
///
/// # Errors
/// It does not start.
pub(super) fn serve(site: &Site) -> Result<Server> {
    let socket = site.directory.join("socket");
    let mut command = Command::new("redis-server");
    command
        .args(["--port", "0", "--save", "", "--unixsocket"])
        .arg(&socket)
        .arg("--dir")
        .arg(&site.directory);
    command.args(match site.class {
        Class::D1 | Class::D2 => ["--appendonly", "yes", "--appendfsync", "always"],
        Class::D3 => ["--appendonly", "yes", "--appendfsync", "everysec"],
        Class::D4 => ["--appendonly", "no", "--appendfsync", "no"],
    });
    Server::start(command, &site.directory, &socket)
}
