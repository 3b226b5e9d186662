//! Any server that speaks Redis's protocol, which somebody else has started: `--resp NAME=HOST:PORT`.
//!
//! Invariants
//! - A run begins only if the server's database is empty, empties it before each play, and leaves it empty.
//! - Nobody but its owner knows what it makes durable: the class is the one that the command line says.
//!
//! Deliberately absent: the server's CPU time, memory and files, which cannot be seen from here.

use super::{Mapping, Part, Side, Site};
use crate::globals::resp::Resp;
use crate::globals::wire::{Client, Reply};
use crate::globals::Globals;
use crate::subject::{Class, Result};

/// All but the bytes for a node.
const PARTS: &[Part] = &[Part::Collatz, Part::Sequence, Part::Trace, Part::Walk, Part::Bank, Part::Batch];

/// The side of a server by the name that the command line gives it.
pub(crate) fn elsewhere(name: &'static str, class: Class) -> Side {
    Side {
        name,
        class,
        mapping: Mapping::Best,
        client: "Rust, RESP",
        settings: "as somebody has started it, by TCP; CPU time is that of the clients alone",
        parts: PARTS,
        processes: true,
        version: || Ok("unknown".to_owned()),
        serve: None,
        open,
        player: None,
    }
}

pub(super) fn open(site: &Site) -> Result<Box<dyn Globals>> {
    Ok(Box::new(Resp::new(Client::connect(&site.directory, site.address.as_deref())?)))
}

fn client(address: &str) -> Result<Client> {
    Client::connect(std::path::Path::new(""), Some(address))
}

/// Looks at the server before anything is written: what it says that it is.
///
/// # Errors
/// It is not there, or somebody's data are in it.
pub(crate) fn look(address: &str) -> Result<String> {
    let mut client = client(address)?;
    match client.ask(&[b"DBSIZE"])? {
        Reply::Integer(0) => {}
        Reply::Integer(keys) => {
            return Err(format!(
                "the database of {address} has {keys} keys, and the suite would delete them: start a server \
                 without data, or send FLUSHDB if nobody needs them"
            )
            .into())
        }
        other => return Err(format!("{address} answers {other:?} to DBSIZE").into()),
    }
    // Not every server has it.
    let Ok(Reply::Bytes(Some(text))) = client.ask(&[b"INFO", b"server"]) else {
        return Ok("of an unknown version".to_owned());
    };
    let text = String::from_utf8_lossy(&text).into_owned();
    let mut versions: Vec<&str> = text
        .lines()
        .filter(|line| line.split(':').next().is_some_and(|name| name.ends_with("version")))
        .collect();
    versions.truncate(4);
    Ok(versions.join(", ").replace('_', " "))
}

/// Empties the server's database.
///
/// # Errors
/// The server's.
pub(crate) fn empty(address: &str) -> Result<()> {
    client(address)?.ask(&[b"FLUSHDB"]).map(|_| ())
}
