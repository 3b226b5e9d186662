//! Globals by a server that speaks Redis's protocol: one hash a global, and a sorted set of keys where
//! order is wanted; and our own server, the first of them. Any other is given by its address.
//!
//! Invariants
//! - One round trip an operation, but for what must read before it writes: two, under WATCH.
//! - Without a plan for order, nodes are fields of the hash with the name of their global; nodes of
//!   transactions are strings of their own, so that WATCH sees them alone.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::process::Command;

use super::{Mapping, Server, Side, Site, ALL_PARTS};
use crate::globals::{sub, Globals, Keys, Path, Sub};
use crate::subject::{Class, Pair, Result};

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
    open,
    player: None,
};

/// Our own server.
pub(crate) const PERILUNE: &[Side] = &[
    D4,
    Side { class: Class::D3, settings: "perilune serve --durability periodic, Unix socket", ..D4 },
    Side { class: Class::D2, settings: "as D1, many sets in MULTI", ..D4 },
    Side { class: Class::D1, settings: "perilune serve --durability fsync, Unix socket", ..D4 },
];

/// A server that is running already, of which nobody knows the class: it is taken for the given one.
pub(crate) fn elsewhere(name: &'static str, class: Class) -> Side {
    let settings = "as somebody has started it; the class is a guess";
    Side { name, class, settings, version: || Ok("unknown".to_owned()), serve: None, ..D4 }
}

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

pub(super) fn open(site: &Site) -> Result<Box<dyn Globals>> {
    let client = Client::connect(site)?;
    Ok(Box::new(Resp { client, ordered: false, keys: Keys::default(), key: Vec::new() }))
}

/// What a server answers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Reply {
    Bytes(Option<Vec<u8>>),
    Integer(i64),
    List(Option<Vec<Reply>>),
}

/// A connection.
pub(crate) struct Client {
    input: BufReader<Box<dyn Read>>,
    output: Box<dyn Write>,
    buffer: Vec<u8>,
    line: Vec<u8>,
}

impl Client {
    /// Connects to the socket in the directory, or to the address.
    ///
    /// # Errors
    /// Nobody listens.
    pub(crate) fn connect(site: &Site) -> Result<Client> {
        let (input, output): (Box<dyn Read>, Box<dyn Write>) = match &site.address {
            Some(address) => {
                let stream = TcpStream::connect(address)?;
                stream.set_nodelay(true)?;
                (Box::new(stream.try_clone()?), Box::new(stream))
            }
            None => {
                let stream = UnixStream::connect(site.directory.join("socket"))?;
                (Box::new(stream.try_clone()?), Box::new(stream))
            }
        };
        let mut client = Client {
            input: BufReader::with_capacity(1 << 16, input),
            output,
            buffer: Vec::new(),
            line: Vec::new(),
        };
        // A server that has just been started may take connections before it has read its files.
        while let Err(error) = client.ask(&[b"PING"]) {
            if !error.to_string().contains("-LOADING") {
                return Err(error);
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        Ok(client)
    }

    /// Adds a command to what [`Client::send`] will send.
    pub(crate) fn add(&mut self, words: &[&[u8]]) {
        self.buffer.extend_from_slice(format!("*{}\r\n", words.len()).as_bytes());
        for word in words {
            self.buffer.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
            self.buffer.extend_from_slice(word);
            self.buffer.extend_from_slice(b"\r\n");
        }
    }

    /// Sends what was added.
    ///
    /// # Errors
    /// The connection's.
    pub(crate) fn send(&mut self) -> Result<()> {
        self.output.write_all(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }

    /// Sends one command and waits for its answer.
    ///
    /// # Errors
    /// The connection's, or the server's.
    pub(crate) fn ask(&mut self, words: &[&[u8]]) -> Result<Reply> {
        self.add(words);
        self.send()?;
        self.hear()
    }

    /// The next answer.
    ///
    /// # Errors
    /// The connection's, or the server's.
    pub(crate) fn hear(&mut self) -> Result<Reply> {
        self.line.clear();
        self.input.read_until(b'\n', &mut self.line)?;
        let text = std::str::from_utf8(&self.line)?.trim_end();
        let (kind, rest) = text.split_at_checked(1).ok_or("the server has closed the connection")?;
        match kind {
            "+" => Ok(Reply::Bytes(Some(rest.as_bytes().to_vec()))),
            ":" => Ok(Reply::Integer(rest.parse()?)),
            "$" => {
                let Ok(length) = rest.parse::<usize>() else { return Ok(Reply::Bytes(None)) };
                let mut bytes = vec![0; length + 2];
                self.input.read_exact(&mut bytes)?;
                bytes.truncate(length);
                Ok(Reply::Bytes(Some(bytes)))
            }
            "*" => {
                let Ok(length) = rest.parse::<usize>() else { return Ok(Reply::List(None)) };
                (0..length).map(|_| self.hear()).collect::<Result<_>>().map(|list| Reply::List(Some(list)))
            }
            _ => Err(format!("the server answers {text}").into()),
        }
    }
}

struct Resp {
    client: Client,
    ordered: bool,
    keys: Keys,
    key: Vec<u8>,
}

/// The field of a node in the hash of its global.
fn field(path: &Path) -> String {
    path.subs.iter().map(ToString::to_string).collect::<Vec<_>>().join("\t")
}

impl Resp {
    /// The first key of the range `from` to `to` of the sorted set, backwards if told so.
    fn range(&mut self, command: &str, from: &[u8], to: &[u8]) -> Result<Option<Vec<u8>>> {
        let words = [command.as_bytes(), b"keys", from, to, b"LIMIT", b"0", b"1"];
        match self.client.ask(&words)? {
            Reply::List(Some(list)) => match list.into_iter().next() {
                Some(Reply::Bytes(found)) => Ok(found),
                _ => Ok(None),
            },
            other => Err(format!("{command} answers {other:?}").into()),
        }
    }

    fn encoded(&mut self, path: &Path, before: u8, behind: Option<u8>) -> Result<Vec<u8>> {
        let mut key = vec![before];
        key.extend_from_slice(self.keys.node(path)?.encoded());
        key.extend(behind);
        Ok(key)
    }

    fn sibling(&mut self, path: &Path, back: bool) -> Result<Option<Sub>> {
        let seed = matches!(path.subs.last(), Some(Sub::Text(text)) if text.is_empty());
        let parent = {
            let node = self.keys.node(path)?;
            node.pop();
            node.encoded().to_vec()
        };
        let bound = |behind: &[u8]| [b"(", &parent[..], behind].concat();
        let found = match (back, seed) {
            (false, true) => self.range("ZRANGEBYLEX", &bound(b""), &bound(&[0xFF]))?,
            (false, false) => {
                let from = self.encoded(path, b'(', Some(0xFF))?;
                self.range("ZRANGEBYLEX", &from, &bound(&[0xFF]))?
            }
            (true, true) => self.range("ZREVRANGEBYLEX", &bound(&[0xFF]), &bound(b""))?,
            (true, false) => {
                let from = self.encoded(path, b'(', None)?;
                self.range("ZREVRANGEBYLEX", &from, &bound(b""))?
            }
        };
        found.map(|key| sub(&perilune::key::decode_subscript(&key[parent.len()..])?.0)).transpose()
    }

    /// The keys of a subtree.
    fn subtree(&mut self, path: &Path) -> Result<Vec<Vec<u8>>> {
        let (from, to) = (self.encoded(path, b'[', None)?, self.encoded(path, b'(', Some(0xFF))?);
        match self.client.ask(&[b"ZRANGEBYLEX", b"keys", &from, &to])? {
            Reply::List(Some(list)) => Ok(list
                .into_iter()
                .filter_map(|reply| if let Reply::Bytes(bytes) = reply { bytes } else { None })
                .collect()),
            other => Err(format!("ZRANGEBYLEX answers {other:?}").into()),
        }
    }

    fn integer(reply: Reply) -> Result<Option<i64>> {
        match reply {
            Reply::Integer(number) => Ok(Some(number)),
            Reply::Bytes(Some(text)) => Ok(Some(std::str::from_utf8(&text)?.parse()?)),
            Reply::Bytes(None) => Ok(None),
            other => Err(format!("no integer: {other:?}").into()),
        }
    }

    fn add_set(&mut self, path: &Path, value: &[u8]) -> Result<usize> {
        if !self.ordered {
            self.client.add(&[b"HSET", path.name.as_bytes(), field(path).as_bytes(), value]);
            return Ok(1);
        }
        self.key.clear();
        self.key.extend_from_slice(self.keys.node(path)?.encoded());
        self.client.add(&[b"HSET", b"values", &self.key, value]);
        self.client.add(&[b"ZADD", b"keys", b"0", &self.key]);
        Ok(2)
    }

    fn finish(&mut self, answers: usize) -> Result<()> {
        self.client.send()?;
        (0..answers).try_for_each(|_| self.client.hear().map(|_| ()))
    }
}

impl Globals for Resp {
    fn plan(&mut self, ordered: bool) {
        self.ordered = ordered;
    }

    fn set(&mut self, path: &Path, value: &[u8]) -> Result<()> {
        let answers = self.add_set(path, value)?;
        self.finish(answers)
    }

    fn get(&mut self, path: &Path, value: &mut Vec<u8>) -> Result<bool> {
        value.clear();
        let reply = if self.ordered {
            let node = self.keys.node(path)?;
            self.client.ask(&[b"HGET", b"values", node.encoded()])?
        } else {
            self.client.ask(&[b"HGET", path.name.as_bytes(), field(path).as_bytes()])?
        };
        match reply {
            Reply::Bytes(Some(bytes)) => value.extend_from_slice(&bytes),
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn data(&mut self, path: &Path) -> Result<u8> {
        let (from, to) = (self.encoded(path, b'[', None)?, self.encoded(path, b'(', Some(0xFF))?);
        let own = from.len() - 1;
        self.client.add(&[b"ZRANGEBYLEX", b"keys", &from, &to, b"LIMIT", b"0", b"2"]);
        self.client.send()?;
        let Reply::List(Some(list)) = self.client.hear()? else { return Err("no list".into()) };
        let valued = matches!(list.first(), Some(Reply::Bytes(Some(key))) if key.len() == own);
        let below = list.len() > usize::from(valued);
        Ok(u8::from(valued) + if below { 10 } else { 0 })
    }

    fn next(&mut self, path: &Path) -> Result<Option<Sub>> {
        self.sibling(path, false)
    }

    fn previous(&mut self, path: &Path) -> Result<Option<Sub>> {
        self.sibling(path, true)
    }

    fn query(&mut self, path: &Path, value: &mut Vec<u8>) -> Result<Option<Vec<Sub>>> {
        let end = Path { name: path.name.clone(), subs: Vec::new() };
        let (from, to) = (self.encoded(path, b'(', None)?, self.encoded(&end, b'(', Some(0xFF))?);
        let Some(key) = self.range("ZRANGEBYLEX", &from, &to)? else { return Ok(None) };
        let (mut subs, mut at) = (Vec::new(), path.name.len() + 1);
        while at < key.len() {
            let (found, length) = perilune::key::decode_subscript(&key[at..])?;
            subs.push(sub(&found)?);
            at += length;
        }
        value.clear();
        if let Reply::Bytes(Some(bytes)) = self.client.ask(&[b"HGET", b"values", &key])? {
            value.extend_from_slice(&bytes);
        }
        Ok(Some(subs))
    }

    fn increment(&mut self, path: &Path, by: i64) -> Result<i64> {
        let by = by.to_string();
        if !self.ordered {
            let words: [&[u8]; 4] =
                [b"HINCRBY", path.name.as_bytes(), &field(path).into_bytes(), by.as_bytes()];
            return Ok(Resp::integer(self.client.ask(&words)?)?.unwrap_or(0));
        }
        let key = self.keys.node(path)?.encoded().to_vec();
        self.client.add(&[b"HINCRBY", b"values", &key, by.as_bytes()]);
        self.client.add(&[b"ZADD", b"keys", b"0", &key]);
        self.client.send()?;
        let sum = Resp::integer(self.client.hear()?)?;
        self.client.hear()?;
        Ok(sum.unwrap_or(0))
    }

    fn kill(&mut self, path: &Path) -> Result<()> {
        let keys = self.subtree(path)?;
        if keys.is_empty() {
            return Ok(());
        }
        for key in &keys {
            self.client.add(&[b"HDEL", b"values", key]);
        }
        let (from, to) = (self.encoded(path, b'[', None)?, self.encoded(path, b'(', Some(0xFF))?);
        self.client.add(&[b"ZREMRANGEBYLEX", b"keys", &from, &to]);
        self.finish(keys.len() + 1)
    }

    fn merge(&mut self, from: &Path, to: &Path) -> Result<()> {
        let keys = self.subtree(from)?;
        for key in &keys {
            self.client.add(&[b"HGET", b"values", key]);
        }
        self.client.send()?;
        let values = keys.iter().map(|_| self.client.hear()).collect::<Result<Vec<_>>>()?;
        let (prefix, target) =
            (self.keys.node(from)?.encoded().len(), self.keys.node(to)?.encoded().to_vec());
        for (key, value) in keys.iter().zip(values) {
            let Reply::Bytes(Some(value)) = value else { return Err("a value is gone".into()) };
            let key = [&target, &key[prefix..]].concat();
            self.client.add(&[b"HSET", b"values", &key, &value]);
            self.client.add(&[b"ZADD", b"keys", b"0", &key]);
        }
        self.finish(2 * keys.len())
    }

    fn set_all(&mut self, paths: &[Path], value: &[u8]) -> Result<()> {
        self.client.add(&[b"MULTI"]);
        let mut answers = 2;
        for path in paths {
            answers += self.add_set(path, value)?;
        }
        self.client.add(&[b"EXEC"]);
        self.finish(answers)
    }

    fn get_integer(&mut self, path: &Path) -> Result<Option<i64>> {
        Resp::integer(self.client.ask(&[b"HGET", path.name.as_bytes(), field(path).as_bytes()])?)
    }

    fn set_integer(&mut self, path: &Path, value: i64) -> Result<()> {
        self.set(path, value.to_string().as_bytes())
    }

    fn update_pair(&mut self, paths: &[Path; 2], change: &mut dyn FnMut(Pair) -> Pair) -> Result<()> {
        let names = [0, 1].map(|index| format!("{}\t{}", paths[index].name, field(&paths[index])));
        let names = [names[0].as_bytes(), names[1].as_bytes()];
        loop {
            self.client.add(&[b"WATCH", names[0], names[1]]);
            self.client.add(&[b"MGET", names[0], names[1]]);
            self.client.send()?;
            self.client.hear()?;
            let Reply::List(Some(found)) = self.client.hear()? else {
                return Err("MGET answers no list".into());
            };
            let mut now = [None; 2];
            for (place, reply) in now.iter_mut().zip(found) {
                *place = Resp::integer(reply)?;
            }
            let new = change(now);
            if new == [None, None] {
                return self.client.ask(&[b"UNWATCH"]).map(|_| ());
            }
            self.client.add(&[b"MULTI"]);
            let mut answers = 1;
            for (name, value) in names.into_iter().zip(new) {
                if let Some(value) = value {
                    self.client.add(&[b"SET", name, value.to_string().as_bytes()]);
                    answers += 1;
                }
            }
            self.client.add(&[b"EXEC"]);
            self.finish(answers)?;
            if self.client.hear()? != Reply::List(None) {
                return Ok(());
            }
        }
    }
}
