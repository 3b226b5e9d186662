//! The servers that are compared: redis-server, and `perilune serve` with one thread and with two, in one
//! process or in several on one port. All in class D4: nothing waits for a disk.

use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::process::Command;

use crate::machine::cpu_of;
use crate::machine::Facts;
use crate::peers::subjects::{perilune_serve, version_of, Server};
use crate::scratch::Scratch;
use crate::subject::Result;

/// Connections that each server process may have: what a machine with 20,000 files a process can.
const MOST_CLIENTS: &str = "19900";
const BACKLOG: &str = "4096";

/// A server with its settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Redis,
    Perilune { threads: usize },
}

/// All, Redis first.
pub(crate) const ALL: [Side; 3] = [Side::Redis, ONE, TWO];
/// Ours with as many threads as Redis has.
pub(crate) const ONE: Side = Side::Perilune { threads: 1 };
/// Ours with a thread for each of two cores.
pub(crate) const TWO: Side = Side::Perilune { threads: 2 };

impl Side {
    /// The name in rows and tables.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Side::Redis => "redis",
            Side::Perilune { threads: 1 } => "perilune-1",
            Side::Perilune { .. } => "perilune-2",
        }
    }

    /// Threads that serve clients.
    pub(crate) fn threads(self) -> usize {
        match self {
            Side::Redis => 1,
            Side::Perilune { threads } => threads,
        }
    }

    fn command(self, directory: &Path, port: u16, socket: &Path) -> Result<Command> {
        let port = port.to_string();
        let mut command = match self {
            Side::Redis => {
                let mut command = Command::new("redis-server");
                command.args(["--save", "", "--appendonly", "no", "--dir"]).arg(directory);
                command
            }
            Side::Perilune { threads } => {
                let mut command = Command::new(perilune_serve::program()?);
                command.arg("serve").arg(directory.join("bench.db")).args(["--durability", "none"]);
                command.args(["--threads", &threads.to_string()]);
                command
            }
        };
        command.args(["--bind", "127.0.0.1", "--port", &port, "--maxclients", MOST_CLIENTS]);
        // To Redis clients from 127.0.0.2 are those of another machine.
        command.args(["--protected-mode", "no", "--tcp-backlog", BACKLOG, "--unixsocket"]).arg(socket);
        Ok(command)
    }
}

/// Versions and settings.
pub(crate) fn facts() -> Facts {
    let version = |program: Result<String>| {
        let found = program.and_then(|program| version_of(&program, &["--version"], "it"));
        found.unwrap_or_else(|error| format!("MISSING: {error}"))
    };
    let both = format!("bind 127.0.0.1, maxclients {MOST_CLIENTS}, tcp-backlog {BACKLOG}");
    let redis = format!("{}; save \"\", appendonly no, {both}", version(Ok("redis-server".to_owned())));
    let ours = format!("{}; durability none, threads 1 or 2, {both}", version(perilune_serve::program()));
    vec![("redis".to_owned(), redis), ("perilune".to_owned(), ours), ("class".to_owned(), "D4".to_owned())]
}

/// A side that serves. Fields are dropped in their order.
pub(crate) struct Serving {
    pub(crate) side: Side,
    pub(crate) port: u16,
    servers: Vec<Server>,
    _scratch: Scratch,
}

impl Serving {
    /// Starts so many processes on one port and one database, on a fresh directory below `parent`.
    ///
    /// # Errors
    /// One does not start.
    pub(crate) fn start(side: Side, processes: usize, more: &[String], parent: &Path) -> Result<Serving> {
        let port = free_port()?;
        let scratch = Scratch::new(parent, &format!("{}-{port}", side.name()))?;
        let mut serving = Serving { side, port, servers: Vec::new(), _scratch: scratch };
        for number in 0..processes {
            let directory = serving._scratch.path();
            let socket = directory.join(format!("{number}.sock"));
            let mut command = side.command(directory, port, &socket)?;
            command.args(more);
            serving.servers.push(Server::start(command, directory, &socket)?);
        }
        Ok(serving)
    }

    /// The first process.
    pub(crate) fn process(&self) -> u32 {
        self.servers.first().map_or(0, Server::id)
    }

    /// CPU seconds of all its processes so far.
    pub(crate) fn cpu(&self) -> f64 {
        self.servers.iter().map(|server| cpu_of(server.id())).sum::<u64>() as f64 / 1e9
    }

    /// KiB of memory of all its processes, by the fields of `/proc/PID/status`.
    ///
    /// # Errors
    /// The kernel does not tell.
    pub(crate) fn memory(&self, fields: &[&str]) -> Result<u64> {
        let mut sum = 0;
        for server in &self.servers {
            let text = std::fs::read_to_string(format!("/proc/{}/status", server.id()))?;
            for field in fields {
                let line = text.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
                let words = line.ok_or("a field is missing in /proc")?;
                sum += words.trim().trim_end_matches("kB").trim().parse::<u64>()?;
            }
        }
        Ok(sum)
    }
}

/// A port that nobody has now.
pub(crate) fn free_port() -> Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}
