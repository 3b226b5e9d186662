//! The sides of the comparison, one file a peer: how it is set, started, and made into globals.
//!
//! A new peer is a file here with a constant `SIDES`, and its name in [`all`]; the guide says how
//! (docs/guide/add-a-peer.md). A peer is opened in the player's process, or has a server, or brings a
//! player of its own in another language.

mod bdb;
pub(crate) mod example;
mod gtm;
mod lmdb;
mod lua;
pub(crate) mod perilune;
pub(crate) mod perilune_serve;
pub(crate) mod redb;
mod redis;
mod redis_lua;
mod redis_published;
pub(crate) mod resp;
mod rocksdb;
mod sqlite;
mod tarantool;
mod yottadb;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::globals::Globals;
use crate::subject::{Class, Result};

/// Where and how a side is started.
#[derive(Clone, Debug)]
pub(crate) struct Site {
    /// Fresh, and its own.
    pub(crate) directory: PathBuf,
    pub(crate) class: Class,
    /// Players that will be there.
    pub(crate) processes: usize,
    /// Of a server that somebody else runs, as HOST:PORT.
    pub(crate) address: Option<String>,
}

/// How globals are mapped onto the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mapping {
    /// As well as we know how; wins are claimed against these only.
    Best,
    /// As results were published.
    Published,
}

/// What a side takes part in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// 3n+1.
    Collatz,
    /// Sets and gets of `cm(n)`.
    Sequence,
    /// Traces of global operations.
    Trace,
    /// Operations that the published mappings lack: previous, query, merge.
    Walk,
    /// Transactions on two nodes.
    Bank,
    /// Many sets in a commit.
    Batch,
    /// Bytes for a node.
    Space,
}

/// All that a best mapping can do.
pub(crate) const ALL_PARTS: &[Part] =
    &[Part::Collatz, Part::Sequence, Part::Trace, Part::Walk, Part::Bank, Part::Batch, Part::Space];
/// What a published mapping is measured in.
pub(crate) const PUBLISHED_PARTS: &[Part] = &[Part::Sequence, Part::Trace];

/// One side: a peer with its settings for one class.
#[derive(Clone, Copy)]
pub(crate) struct Side {
    /// The name in rows, tables and charts.
    pub(crate) name: &'static str,
    pub(crate) class: Class,
    pub(crate) mapping: Mapping,
    /// The language of the program that calls the peer.
    pub(crate) client: &'static str,
    pub(crate) settings: &'static str,
    pub(crate) parts: &'static [Part],
    /// Several processes can have the database open.
    pub(crate) processes: bool,
    /// The version in use; an error if it is not installed, which says what to do.
    pub(crate) version: fn() -> Result<String>,
    /// Starts a server before the players.
    pub(crate) serve: Option<fn(&Site) -> Result<Server>>,
    /// Opens the database in a player of ours.
    pub(crate) open: fn(&Site) -> Result<Box<dyn Globals>>,
    /// The player, where it is another program.
    pub(crate) player: Option<fn(&Site) -> Result<Command>>,
}

/// What databases that are opened in a player of ours have in common: volatile, for several processes, called from
/// Rust. Whatever differs is said by each.
pub(crate) const EMBEDDED: Side = Side {
    name: "",
    class: Class::D4,
    mapping: Mapping::Best,
    client: "Rust",
    settings: "",
    parts: ALL_PARTS,
    processes: true,
    version: || Ok(String::new()),
    serve: None,
    open: elsewhere,
    player: None,
};

/// Sides that take part only where they are asked for by name.
pub(crate) const ASKED: [&str; 2] = [perilune::TWIN, example::NAME];

/// Every side of every class.
pub(crate) fn all() -> Vec<Side> {
    let files = [
        perilune::SIDES,
        lua::SIDES,
        perilune_serve::SIDES,
        redis::SIDES,
        redis_lua::SIDES,
        redis_published::SIDES,
        tarantool::SIDES,
        gtm::SIDES,
        yottadb::SIDES,
        lmdb::SIDES,
        bdb::SIDES,
        sqlite::SIDES,
        rocksdb::SIDES,
        redb::SIDES,
        example::SIDES,
    ];
    files.into_iter().flatten().copied().collect()
}

/// For sides whose player is another program.
pub(crate) fn elsewhere(_site: &Site) -> Result<Box<dyn Globals>> {
    Err("this side has a player of its own".into())
}

/// A server of ours; it ends when dropped.
#[derive(Debug)]
pub(crate) struct Server {
    child: Child,
    /// What ends it in good order, if the signal to end does not.
    pub(crate) stop: Option<Command>,
}

impl Server {
    /// Starts `command` and waits until `socket` takes connections.
    ///
    /// # Errors
    /// It ends, or is not there in 30 seconds.
    pub(crate) fn start(mut command: Command, directory: &Path, socket: &Path) -> Result<Server> {
        let log = std::fs::File::create(directory.join("server.log"))?;
        let program = command.get_program().to_string_lossy().into_owned();
        let child = command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log).spawn();
        let mut server =
            Server { child: child.map_err(|error| format!("cannot start {program}: {error}"))?, stop: None };
        let begun = Instant::now();
        while std::os::unix::net::UnixStream::connect(socket).is_err() {
            let ended = server.child.try_wait()?;
            if ended.is_some() || begun.elapsed() > Duration::from_secs(30) {
                let said = std::fs::read_to_string(directory.join("server.log")).unwrap_or_default();
                return Err(format!("{program} does not start: {}", said.trim()).into());
            }
            // Polled: servers have no other way in common to say that they are there.
            std::thread::sleep(Duration::from_millis(2));
        }
        Ok(server)
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Kills it as a crash would.
    ///
    /// # Errors
    /// It cannot be killed.
    pub(crate) fn kill(mut self) -> Result<()> {
        self.stop = None;
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// Ends it and waits until it has.
    ///
    /// # Errors
    /// It does not end.
    pub(crate) fn finish(mut self) -> Result<()> {
        match self.stop.take() {
            Some(mut stop) => drop(stop.stdout(Stdio::null()).stderr(Stdio::null()).status()?),
            None => {
                let pid = rustix::process::Pid::from_child(&self.child);
                rustix::process::kill_process(pid, rustix::process::Signal::TERM)?;
            }
        }
        self.child.wait()?;
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // After `finish` both do nothing.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The first line that a program prints about its version.
///
/// # Errors
/// It is not installed: `package` is to be.
pub(crate) fn version_of(program: &str, arguments: &[&str], package: &str) -> Result<String> {
    let output = Command::new(program).args(arguments).output();
    let output = output.map_err(|error| format!("install {package}: {program}: {error}"))?;
    let text = if output.stdout.is_empty() { output.stderr } else { output.stdout };
    let text = String::from_utf8_lossy(&text).lines().next().unwrap_or("unknown").trim().to_owned();
    Ok(text)
}

/// A file of the directory with players in other languages.
pub(crate) fn script(name: &str) -> PathBuf {
    let shipped = std::env::var_os("PERILUNE_BENCH_PLAYERS").map(PathBuf::from);
    shipped.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("players")).join(name)
}
