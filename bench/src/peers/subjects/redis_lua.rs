//! Redis by its client for Lua (lua-redis), as in the article "Lua API and benchmark design using 3n+1 sequences":
//! it takes part in 3n+1 only.

use std::process::Command;

use super::{elsewhere, redis, script, Mapping, Part, Side};
use crate::subject::{Class, Result};

pub(crate) const SIDES: &[Side] = &[Side {
    name: "redis-lua",
    class: Class::D4,
    mapping: Mapping::Best,
    client: "Lua 5.1, lua-redis",
    settings: "as redis; each command a round trip on the Unix socket, records under WATCH",
    parts: &[Part::Collatz],
    processes: true,
    version,
    serve: Some(redis::serve),
    open: elsewhere,
    player: Some(|site| {
        let mut command = Command::new("lua5.1");
        command.arg(script("redis_player.lua")).arg(&site.directory);
        command.env("PERILUNE_BENCH_PLAYERS", script(""));
        Ok(command)
    }),
}];

fn version() -> Result<String> {
    let output = Command::new("lua5.1").args(["-e", "print(require('redis')._VERSION)"]).output();
    match output.map_err(|error| format!("install lua5.1: {error}"))? {
        output if output.status.success() => Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned()),
        _ => Err("install lua-redis".into()),
    }
}
