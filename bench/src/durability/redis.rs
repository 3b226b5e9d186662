//! The space that Redis takes for the same nodes, as one hash (without order) and as a sorted set of keys
//! beside a hash (with all that the others can do).
//!
//! Only that is here: Redis as a peer in other measurements needs clients of its own.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::data::value;
use crate::machine;
use crate::row::Row;
use crate::subject::Result;

use super::space::{disk_bytes, ASCENDING};
use super::Run;

/// Commands sent before their answers are read.
const PIPELINE: u64 = 1_000;

/// Measures both layouts; leaves Redis out where it is not installed.
pub(super) fn run(run: &mut Run<'_>, keys: u64) -> Result<()> {
    for (backend, ordered) in [("redis-hash", false), ("redis-ordered", true)] {
        run.announce(&format!("space {backend}"));
        let directory = run.directory("redis")?;
        let Some(server) = Server::start(directory.path())? else { return Ok(()) };
        let empty = machine::memory_of(server.0.id())?;
        let mut client = Client::connect(&directory.path().join("socket"))?;
        client.load(keys, ordered)?;
        let memory = machine::memory_of(server.0.id())?.saturating_sub(empty);
        client.send(&["SAVE"])?;
        client.answer()?;
        let disk = disk_bytes(directory.path())?;
        let row = |workload, bytes: u64| Row {
            backend,
            class: "D4",
            workload,
            ..Row::bare(keys, 0, "B/node", bytes as f64 / keys as f64)
        };
        run.push(row(ASCENDING[1], disk));
        run.push(row(ASCENDING[2], memory));
    }
    Ok(())
}

/// A server of ours; ends when dropped.
struct Server(Child);

impl Server {
    /// Starts a server that saves when it is told to; None where there is none.
    fn start(directory: &Path) -> Result<Option<Server>> {
        let child = Command::new("redis-server")
            .args(["--port", "0", "--save", "", "--appendonly", "no", "--unixsocket", "socket", "--dir"])
            .arg(directory)
            .current_dir(directory)
            .stdout(Stdio::piped())
            .spawn();
        let mut server = match child {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            child => Server(child?),
        };
        let output = BufReader::new(server.0.stdout.take().ok_or("redis-server has no output")?);
        for line in output.lines() {
            if line?.contains("eady to accept connections") {
                return Ok(Some(server));
            }
        }
        Err("redis-server does not start: try it by hand".into())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

struct Client(BufReader<UnixStream>);

impl Client {
    fn connect(socket: &Path) -> Result<Client> {
        Ok(Client(BufReader::with_capacity(1 << 16, UnixStream::connect(socket)?)))
    }

    fn load(&mut self, keys: u64, ordered: bool) -> Result<()> {
        let mut sent = 0;
        for number in 0..keys {
            // Sorts as its number does.
            let key = format!("data({number:010})");
            self.send(&["HSET", "values", &key, &value(number, 1).to_string()])?;
            sent += 1;
            if ordered {
                self.send(&["ZADD", "keys", "0", &key])?;
                sent += 1;
            }
            if sent >= PIPELINE || number + 1 == keys {
                for _ in 0..sent {
                    self.answer()?;
                }
                sent = 0;
            }
        }
        self.send(&["HLEN", "values"])?;
        match self.answer()? {
            text if text == format!(":{keys}") => Ok(()),
            text => Err(format!("redis holds {text} nodes, not {keys}").into()),
        }
    }

    fn send(&mut self, words: &[&str]) -> Result<()> {
        let mut text = format!("*{}\r\n", words.len());
        for word in words {
            text.push_str(&format!("${}\r\n{word}\r\n", word.len()));
        }
        Ok(self.0.get_mut().write_all(text.as_bytes())?)
    }

    /// The line that answers a command; an error if that is what it says.
    fn answer(&mut self) -> Result<String> {
        let mut line = String::new();
        self.0.read_line(&mut line)?;
        match line.trim_end() {
            text if text.starts_with([':', '+']) => Ok(text.to_owned()),
            text => Err(format!("redis: {text}").into()),
        }
    }
}
