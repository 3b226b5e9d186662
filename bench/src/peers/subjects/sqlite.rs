//! SQLite: one table of byte strings without row numbers, its statements prepared once.

use super::{Side, Site, EMBEDDED};
use crate::globals::mapped::{Entry, Mapped, Store};
use crate::globals::Globals;
use crate::peers::sqlite::library::{version, Connection, Statement};
use crate::subject::{Class, Result};

const D4: Side = Side {
    name: "sqlite",
    settings: "WITHOUT ROWID, journal_mode=WAL, synchronous=OFF, mmap 1 GiB, cache 256 MiB",
    version,
    open,
    ..EMBEDDED
};
const D1: Side = Side { class: Class::D1, settings: "as D4, synchronous=FULL", ..D4 };

pub(crate) const SIDES: &[Side] = &[
    D4,
    Side { class: Class::D3, settings: "as D4, synchronous=NORMAL and a checkpoint each second", ..D4 },
    Side { class: Class::D2, settings: "as D1, many sets in a transaction", ..D1 },
    D1,
];

fn open(site: &Site) -> Result<Box<dyn Globals>> {
    let connection = Connection::open(&site.directory.join("bench.sqlite"))?;
    let synchronous = match site.class {
        Class::D1 | Class::D2 => "PRAGMA synchronous=FULL",
        Class::D3 => "PRAGMA synchronous=NORMAL",
        Class::D4 => "PRAGMA synchronous=OFF",
    };
    let table = "CREATE TABLE IF NOT EXISTS g (k BLOB PRIMARY KEY, v BLOB NOT NULL) WITHOUT ROWID";
    for sql in [
        "PRAGMA journal_mode=WAL",
        synchronous,
        "PRAGMA mmap_size=1073741824",
        "PRAGMA cache_size=-262144",
        table,
    ] {
        connection.execute(sql)?;
    }
    Ok(Box::new(Mapped::new(Sqlite {
        get: connection.prepare("SELECT v FROM g WHERE k = ?1")?,
        put: connection.prepare("INSERT INTO g VALUES (?1, ?2) ON CONFLICT (k) DO UPDATE SET v = ?2")?,
        remove: connection.prepare("DELETE FROM g WHERE k = ?1")?,
        seek: connection.prepare("SELECT k, v FROM g WHERE k >= ?1 ORDER BY k LIMIT 1")?,
        before: connection.prepare("SELECT k, v FROM g WHERE k < ?1 ORDER BY k DESC LIMIT 1")?,
        begin: connection.prepare("BEGIN IMMEDIATE")?,
        commit: connection.prepare("COMMIT")?,
        rollback: connection.prepare("ROLLBACK")?,
        within: false,
        flush: (site.class == Class::D3).then(std::time::Instant::now),
        connection,
    })))
}

/// The connection is dropped last.
struct Sqlite {
    get: Statement,
    put: Statement,
    remove: Statement,
    seek: Statement,
    before: Statement,
    begin: Statement,
    commit: Statement,
    rollback: Statement,
    within: bool,
    /// When the log is to be flushed next: D3.
    flush: Option<std::time::Instant>,
    connection: Connection,
}

impl Sqlite {
    fn flush(&mut self) -> Result<()> {
        if !self.within && self.flush.is_some_and(|last| last.elapsed().as_secs() >= 1) {
            self.connection.execute("PRAGMA wal_checkpoint(PASSIVE)")?;
            self.flush = Some(std::time::Instant::now());
        }
        Ok(())
    }
}

impl Store for Sqlite {
    fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        self.get.first(&[key], &mut [value])
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.put.first(&[key, value], &mut [])?;
        self.flush()
    }

    fn remove(&mut self, key: &[u8]) -> Result<()> {
        self.remove.first(&[key], &mut []).map(|_| ())
    }

    fn search(&mut self, at: &[u8], before: bool, found: &mut Entry) -> Result<bool> {
        let statement = if before { &mut self.before } else { &mut self.seek };
        statement.first(&[at], &mut [&mut found.key, &mut found.value])
    }

    fn begin(&mut self) -> Result<()> {
        self.begin.run(&[])?;
        self.within = true;
        Ok(())
    }

    fn commit(&mut self) -> Result<()> {
        self.commit.run(&[])?;
        self.within = false;
        self.flush()
    }

    fn abort(&mut self) -> Result<()> {
        match std::mem::take(&mut self.within) {
            true => self.rollback.run(&[]),
            false => Ok(()),
        }
    }

    fn close(&mut self) -> Result<()> {
        self.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    }
}
