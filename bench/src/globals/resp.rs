//! Globals by a server that speaks Redis's protocol: one hash a global, and a sorted set of keys where order is
//! wanted.
//!
//! Invariants
//! - One round trip an operation, but for what must read before it writes: two, under WATCH.
//! - If a workload wants no order ([`Globals::plan`]), nodes are fields of the hash with the name of their global;
//!   nodes of transactions are then strings of their own, so that WATCH sees each alone.

use crate::globals::wire::{Client, Reply};
use crate::globals::{sub, Globals, Keys, Path, Sub};
use crate::subject::{Pair, Result};

/// Globals by a connection.
pub(crate) struct Resp {
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
    pub(crate) fn new(client: Client) -> Resp {
        Resp { client, ordered: false, keys: Keys::default(), key: Vec::new() }
    }

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
