//! Berkeley DB: one B-tree, with transactions where processes share it or where they are durable.

use super::{Mapping, Side, Site, EMBEDDED, PUBLISHED_PARTS};
use crate::globals::mapped::{Entry, Mapped, Store};
use crate::globals::published::Published;
use crate::peers::bdb::{version, Table};
use crate::subject::{Class, Result};

const CACHE: u32 = 512 << 20;

const D4: Side = Side {
    name: "bdb",
    settings: "cache 512 MiB; one process: no environment; several: transactions with the log in memory",
    version,
    open: |site| {
        let table = Table::open(&site.directory, site.processes > 1, false, CACHE)?;
        Ok(Box::new(Mapped::new(Bdb(table))))
    },
    ..EMBEDDED
};

pub(crate) const SIDES: &[Side] = &[
    D4,
    Side {
        class: Class::D1,
        settings: "transactions, DB_AUTO_COMMIT, log flushed at each commit, cache 512 MiB",
        open: |site| Ok(Box::new(Mapped::new(Bdb(Table::open(&site.directory, true, true, CACHE)?)))),
        ..D4
    },
    Side {
        name: "bdb-published",
        mapping: Mapping::Published,
        settings: "mg-dbx-bdb's keys and calls; no environment, default cache, as published",
        parts: PUBLISHED_PARTS,
        open: |site: &Site| Ok(Box::new(Published::new(Bdb(Table::open(&site.directory, false, false, 0)?)))),
        ..D4
    },
];

struct Bdb(Table);

impl Store for Bdb {
    fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        self.0.get(key, value)
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.0.put(key, value)
    }

    fn remove(&mut self, key: &[u8]) -> Result<()> {
        self.0.remove(key)
    }

    fn search(&mut self, at: &[u8], before: bool, found: &mut Entry) -> Result<bool> {
        self.0.search(at, found, before)
    }

    fn begin(&mut self) -> Result<()> {
        self.0.begin()
    }

    fn commit(&mut self) -> Result<()> {
        self.0.end(true)
    }

    fn abort(&mut self) -> Result<()> {
        self.0.end(false)
    }

    fn close(&mut self) -> Result<()> {
        self.0.sync()
    }
}
