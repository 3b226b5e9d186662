//! The peers of the engine suite, one file each: settings, and operations on integer keys. (The sides of the
//! comparison, which have globals, are in [`subjects`].)
//!
//! A new peer is a file here with its `PEERS` and a line in [`all`]. C libraries are those of the system, loaded at
//! run time: a peer whose library is missing is left out and named. Calls into them are the only unsafe code of the
//! suite.

#[allow(unsafe_code)]
mod bdb;
mod btree;
#[allow(unsafe_code)]
mod library;
#[allow(unsafe_code)]
mod lmdb;
pub(crate) mod perilune;
mod redb;
#[allow(unsafe_code)]
mod sqlite;
#[allow(unsafe_code)]
pub(crate) mod subjects;

use crate::subject::{Class, Peer};

/// Our own name in rows and ratios.
pub(crate) const OURS: &str = "perilune";

/// Every peer of a class, ours first.
pub(crate) fn all(class: Class) -> Vec<Peer> {
    let files = [perilune::PEERS, lmdb::PEERS, redb::PEERS, sqlite::PEERS, btree::PEERS];
    files.into_iter().flatten().filter(|peer| peer.class == class).copied().collect()
}

/// Perilune with the settings of a class.
pub(crate) fn ours(class: Class) -> Peer {
    let found = perilune::PEERS.iter().find(|peer| peer.class == class);
    // Every class has its level; without one the first stands in, whose class the rows show.
    *found.unwrap_or(&perilune::PEERS[0])
}

/// The version of a crate as Cargo.lock has it.
fn locked_version(name: &str) -> String {
    let mut lines = include_str!("../../../Cargo.lock").lines();
    lines
        .by_ref()
        .find(|line| *line == format!("name = \"{name}\""))
        .and_then(|_| lines.next())
        .and_then(|line| line.split('"').nth(1))
        .unwrap_or("of an unknown version")
        .to_owned()
}

#[cfg(test)]
mod tests;
