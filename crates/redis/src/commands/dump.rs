//! DUMP and RESTORE: what a key holds, as bytes of our own format.
//!
//! Version (1 byte), kind (1 byte: `s`, `h`, `l`, `S`, `z`), elements, and the first 8 bytes of the
//! SHA-256 of all before. A byte string is its length (8 bytes, least significant first) and its bytes; a
//! string is one, a hash pairs of them, a list and a set many; of a sorted set each is followed by 8 bytes of
//! its score (a double). The elements of all but a string are preceded by their number (8 bytes).
//!
//! Invariant: bytes that were not made by DUMP are refused, or hold what DUMP could have made: nothing
//! twice, nothing empty. No promise in them costs memory before it is kept.

use perilune::TransactionOptions;
use perilune_resp::{Arguments, Replies};
use sha2::{Digest, Sha256};

use crate::context::Context;
use crate::eviction::{self, Before};
use crate::failure::{refuse, Result, SYNTAX};
use crate::keyspace::{Contents, Keys, Scored};
use crate::limits::VALUE_BYTES;
use crate::notify;
use crate::numbers::{integer, lower};
use perilune_net::clock::clock;

const VERSION: u8 = 1;
const CHECKSUM: usize = 8;

fn put_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    put_count(bytes.len(), out);
    out.extend_from_slice(bytes);
}

fn put_count(count: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(&(count as u64).to_le_bytes());
}

/// The bytes that DUMP answers.
pub(super) fn encode(contents: &Contents) -> Vec<u8> {
    let mut out = vec![VERSION];
    let list = |kind, elements: &[Vec<u8>], out: &mut Vec<u8>| {
        out.push(kind);
        put_count(elements.len(), out);
        elements.iter().for_each(|element| put_bytes(element, out));
    };
    match contents {
        Contents::String(bytes) => {
            out.push(b's');
            put_bytes(bytes, &mut out);
        }
        Contents::List(elements) => list(b'l', elements, &mut out),
        Contents::Set(members) => list(b'S', members, &mut out),
        Contents::Hash(fields) => {
            out.push(b'h');
            put_count(fields.len(), &mut out);
            for (field, value) in fields {
                put_bytes(field, &mut out);
                put_bytes(value, &mut out);
            }
        }
        Contents::Zset(members) => {
            out.push(b'z');
            put_count(members.len(), &mut out);
            for Scored { member, score } in members {
                put_bytes(member, &mut out);
                out.extend_from_slice(&score.to_le_bytes());
            }
        }
    }
    let checksum = Sha256::digest(&out);
    out.extend_from_slice(&checksum[..CHECKSUM]);
    out
}

/// Takes bytes off the front, while there are enough.
struct Reader<'b>(&'b [u8]);

impl<'b> Reader<'b> {
    fn take(&mut self, count: usize) -> Option<&'b [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn eight(&mut self) -> Option<[u8; 8]> {
        self.take(8)?.try_into().ok()
    }

    fn count(&mut self) -> Option<usize> {
        usize::try_from(u64::from_le_bytes(self.eight()?)).ok()
    }

    fn bytes(&mut self) -> Option<Vec<u8>> {
        let count = self.count()?;
        self.take(count).map(<[u8]>::to_vec)
    }

    fn many<T>(&mut self, mut one: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let count = self.count()?;
        // Each takes 8 bytes at least: no more room than there are bytes for.
        let mut all = Vec::with_capacity(count.min(self.0.len() / 8));
        for _ in 0..count {
            all.push(one(self)?);
        }
        Some(all)
    }
}

/// What the bytes of DUMP hold, their checksum apart.
fn decode(body: &[u8]) -> Option<Contents> {
    let (kind, rest) = body.split_first()?;
    let mut reader = Reader(rest);
    let contents = match kind {
        b's' => Contents::String(reader.bytes()?),
        b'l' => Contents::List(reader.many(Reader::bytes)?),
        b'S' => Contents::Set(reader.many(Reader::bytes)?),
        b'h' => Contents::Hash(reader.many(|reader| Some((reader.bytes()?, reader.bytes()?)))?),
        b'z' => Contents::Zset(reader.many(|reader| {
            Some(Scored { member: reader.bytes()?, score: f64::from_le_bytes(reader.eight()?) })
        })?),
        _ => return None,
    };
    (reader.0.is_empty() && contents.is_sound()).then_some(contents)
}

fn checked(payload: &[u8]) -> Result<Contents> {
    let body = payload.split_last_chunk::<CHECKSUM>().filter(|(body, checksum)| {
        body.first() == Some(&VERSION) && Sha256::digest(body)[..CHECKSUM] == checksum[..]
    });
    let Some((body, _)) = body else { return refuse("ERR DUMP payload version or checksum are wrong") };
    match decode(&body[1..]) {
        Some(contents) => Ok(contents),
        None => refuse("ERR Bad data format"),
    }
}

pub(crate) fn dump(keys: &mut Keys<'_>, arguments: Arguments<'_>, replies: &mut Replies<'_>) -> Result<()> {
    let key = keys.key(&arguments[1])?;
    let Some(entry) = keys.open(&key)? else {
        replies.null();
        return Ok(());
    };
    let payload = encode(&Contents::read(keys, &key, &entry)?);
    if payload.len() > VALUE_BYTES {
        return refuse("ERR the key holds more than a reply can carry: use `perilune dump`");
    }
    replies.bulk(&payload);
    Ok(())
}

/// The options of RESTORE.
#[derive(Default)]
struct Options {
    replace: bool,
    absolute: bool,
    /// How the key was used; only one can be given.
    used: Option<Before>,
}

impl Options {
    fn parse(arguments: Arguments<'_>) -> Result<Options> {
        let mut options = Options::default();
        let mut words = arguments.iter();
        while let Some(word) = words.next() {
            match (&*lower(word), words.len()) {
                (b"replace", _) => options.replace = true,
                (b"absttl", _) => options.absolute = true,
                (b"idletime", 1..) if options.used.is_none() => {
                    let seconds = integer(words.next().unwrap_or_default())?;
                    if seconds < 0 {
                        return refuse("ERR Invalid IDLETIME value, must be >= 0");
                    }
                    options.used = Some(Before::Idle(u32::try_from(seconds).unwrap_or(u32::MAX)));
                }
                (b"freq", 1..) if options.used.is_none() => {
                    let Ok(counter) = u8::try_from(integer(words.next().unwrap_or_default())?) else {
                        return refuse("ERR Invalid FREQ value, must be >= 0 and <= 255");
                    };
                    options.used = Some(Before::Counter(counter));
                }
                _ => return refuse(SYNTAX),
            }
        }
        Ok(options)
    }
}

/// RESTORE, which works with the table of uses, too.
pub(crate) fn restore(
    context: &mut Context<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies<'_>,
) -> Result<()> {
    let options = Options::parse(arguments.from(4))?;
    let (database, start) = (context.client.database, replies.position());
    context.transaction(&TransactionOptions::default(), |session, _, effects| {
        replies.rewind(start);
        let mut keys = Keys::new(session, effects, database, clock(), true);
        Ok(put(&mut keys, arguments, &options, replies)?)
    })?;
    eviction::restored(context.server, database, &arguments[1], options.used);
    Ok(())
}

fn put(
    keys: &mut Keys<'_>,
    arguments: Arguments<'_>,
    options: &Options,
    replies: &mut Replies<'_>,
) -> Result<()> {
    let key = keys.key(&arguments[1])?;
    let old = keys.open(&key)?;
    if old.is_some() && !options.replace {
        return refuse("BUSYKEY Target key name already exists.");
    }
    let expires = match integer(&arguments[2])? {
        0 => None,
        ttl @ 1.. if options.absolute => Some(ttl),
        ttl @ 1.. => Some(ttl.saturating_add(keys.now)),
        _ => return refuse("ERR Invalid TTL value, must be >= 0"),
    };
    let contents = checked(&arguments[3])?;
    match (expires, old) {
        (Some(expires), Some(old)) if expires <= keys.now => keys.empty(&key, &old)?,
        (Some(expires), None) if expires <= keys.now => {}
        _ => {
            contents.write(keys, &arguments[1], expires)?;
            keys.notify(notify::GENERIC, "restore", key.name);
        }
    }
    replies.simple("OK");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_dumped_comes_back_and_nothing_else() {
        let bytes = |text: &str| text.as_bytes().to_vec();
        let all = [
            Contents::String(bytes("")),
            Contents::List(vec![bytes("a"), bytes("a"), Vec::new()]),
            Contents::Set(vec![bytes("b"), bytes("a")]),
            Contents::Hash(vec![(bytes("f"), bytes("v"))]),
            Contents::Zset(vec![Scored { member: bytes("m"), score: f64::NEG_INFINITY }]),
        ];
        for contents in &all {
            let payload = encode(contents);
            assert_eq!(checked(&payload).ok().as_ref(), Some(contents));
            for at in 0..payload.len() {
                let mut damaged = payload.clone();
                damaged[at] ^= 0x40;
                assert!(checked(&damaged).is_err() && checked(&payload[..at]).is_err(), "byte {at}");
                // Damage behind a good checksum.
                let body = &damaged[..payload.len() - CHECKSUM];
                assert!(decode(&body[1..]).is_none_or(|contents| contents.is_sound()));
            }
        }
        for unsound in [
            Contents::List(Vec::new()),
            Contents::Set(vec![bytes("a"), bytes("a")]),
            Contents::Zset(vec![Scored { member: bytes("m"), score: f64::NAN }]),
        ] {
            assert!(checked(&encode(&unsound)).is_err());
        }
        let mut promise = vec![VERSION, b'l'];
        put_count(usize::MAX, &mut promise);
        assert!(decode(&promise[1..]).is_none());
    }
}
