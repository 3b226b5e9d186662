//! Redis as ewd-redis-globals 0.5.0 uses it: its keys and its commands, each a round trip of its own; by the
//! Unix socket, where they had TCP.
//!
//! | key | is |
//! |---|---|
//! | `node:NAME` 01 `SUBS` | a hash: `data` 1 or 10, `value` |
//! | `leaves:NAME` | a sorted set of the subscripts of all nodes with values |
//! | `children:NAME` 01 `SUBS` | a sorted set of the subscripts below, integers padded to 10 digits |

use super::{redis, Mapping, Side, PUBLISHED_PARTS};
use crate::globals::wire::{Client, Reply};
use crate::globals::{Globals, Path, Sub};
use crate::subject::{Class, Result};

pub(crate) const SIDES: &[Side] = &[Side {
    name: "redis-published",
    class: Class::D4,
    mapping: Mapping::Published,
    client: "Rust, RESP",
    settings: "the keys and commands of ewd-redis-globals, a round trip each",
    parts: PUBLISHED_PARTS,
    processes: true,
    version: || super::version_of("redis-server", &["--version"], "redis-server"),
    serve: Some(redis::serve),
    open: |site| Ok(Box::new(Published { client: Client::connect(&site.directory, None)? })),
    player: None,
}];

struct Published {
    client: Client,
}

/// The text of a subscript in a sorted set of children.
fn padded(sub: &Sub) -> String {
    match sub {
        Sub::Integer(number) if *number >= 0 => format!("\u{1}{number:010}"),
        other => other.to_string(),
    }
}

/// `kind:name`, and the subscripts behind it.
fn key(kind: &str, name: &str, subs: &[Sub]) -> String {
    let mut key = format!("{kind}:{name}");
    for sub in subs {
        key.push('\u{1}');
        key.push_str(&sub.to_string());
    }
    key
}

impl Published {
    fn ask(&mut self, words: &[&str]) -> Result<Reply> {
        let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
        self.client.ask(&words)
    }

    fn exists(&mut self, key: &str) -> Result<bool> {
        Ok(self.ask(&["EXISTS", key])? == Reply::Integer(1))
    }
}

impl Globals for Published {
    fn set(&mut self, path: &Path, value: &[u8]) -> Result<()> {
        let (name, subs) = (&*path.name, path.subs.as_slice());
        let node = key("node", name, subs);
        self.client.ask(&[b"HMSET", node.as_bytes(), b"data", b"1", b"value", value])?;
        if subs.is_empty() {
            return Ok(());
        }
        let flat: Vec<String> = subs.iter().map(ToString::to_string).collect();
        self.ask(&["ZADD", &key("leaves", name, &[]), "0", &flat.join("\u{1}")])?;
        for depth in (0..subs.len()).rev() {
            self.ask(&["ZADD", &key("children", name, &subs[..depth]), "0", &padded(&subs[depth])])?;
            let parent = key("node", name, &subs[..depth]);
            if self.exists(&parent)? {
                break;
            }
            self.ask(&["HSET", &parent, "data", "10"])?;
        }
        Ok(())
    }

    fn get(&mut self, path: &Path, value: &mut Vec<u8>) -> Result<bool> {
        value.clear();
        let Reply::List(Some(fields)) = self.ask(&["HGETALL", &key("node", &path.name, &path.subs)])? else {
            return Err("HGETALL answers no list".into());
        };
        for pair in fields.chunks_exact(2) {
            if let (Reply::Bytes(Some(field)), Reply::Bytes(Some(found))) = (&pair[0], &pair[1]) {
                if field == b"value" {
                    value.extend_from_slice(found);
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    fn data(&mut self, path: &Path) -> Result<u8> {
        match self.ask(&["HGET", &key("node", &path.name, &path.subs), "data"])? {
            Reply::Bytes(Some(text)) => Ok(std::str::from_utf8(&text)?.parse()?),
            _ => Ok(0),
        }
    }

    fn next(&mut self, path: &Path) -> Result<Option<Sub>> {
        if !self.exists(&key("leaves", &path.name, &[]))? {
            return Ok(None);
        }
        let Some((seed, parent)) = path.subs.split_last() else {
            return Err("siblings are below something".into());
        };
        let (children, seed) = (key("children", &path.name, parent), padded(seed));
        let mut from = 0;
        if !seed.is_empty() {
            from = match self.ask(&["ZRANK", &children, &seed])? {
                Reply::Integer(rank) => rank + 1,
                _ => return Err("the seed is not there: the XML trace has no such call".into()),
            };
        }
        let from = from.to_string();
        match self.ask(&["ZRANGE", &children, &from, &from])? {
            Reply::List(Some(found)) => match found.first() {
                Some(Reply::Bytes(Some(text))) => {
                    let text = String::from_utf8(text.clone())?;
                    let number = text.strip_prefix('\u{1}').and_then(|digits| digits.parse().ok());
                    Ok(Some(number.map_or(Sub::Text(text.into()), Sub::Integer)))
                }
                _ => Ok(None),
            },
            other => Err(format!("ZRANGE answers {other:?}").into()),
        }
    }

    fn increment(&mut self, path: &Path, by: i64) -> Result<i64> {
        let mut value = Vec::new();
        self.get(path, &mut value)?;
        let sum = std::str::from_utf8(&value)?.parse().unwrap_or(0) + by;
        self.set(path, sum.to_string().as_bytes())?;
        Ok(sum)
    }

    fn kill(&mut self, path: &Path) -> Result<()> {
        match self.exists(&key("leaves", &path.name, &[]))? {
            true => Err("the XML trace kills nothing that is there".into()),
            false => Ok(()),
        }
    }
}
