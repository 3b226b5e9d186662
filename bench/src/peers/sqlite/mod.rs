//! SQLite: one table with an integer primary key, statements prepared once, a transaction each.

pub(crate) mod library;

use std::path::{Path, PathBuf};

use crate::data::essence;
use crate::subject::{missing, Abilities, Class, Database, Pair, Passage, Peer, Result, Session, Tree};
use library::{Connection, Statement};

const ABILITIES: Abilities = Abilities { processes: true, threads: true, locks: false };

pub(crate) const PEERS: &[Peer] = &[
    Peer {
        name: "sqlite",
        class: Class::D4,
        settings: "journal_mode=WAL, synchronous=OFF, mmap 1 GiB, cache 256 MiB; outlives its processes",
        abilities: ABILITIES,
        version: library::version,
        open: |directory, _processes| open(directory.join("bench.sqlite"), "OFF"),
        compact,
    },
    Peer {
        name: "sqlite",
        class: Class::D1,
        settings: "journal_mode=WAL, synchronous=FULL, mmap 1 GiB, cache 256 MiB",
        abilities: ABILITIES,
        version: library::version,
        open: |directory, _processes| open(directory.join("bench.sqlite"), "FULL"),
        compact,
    },
];

fn open(path: PathBuf, synchronous: &'static str) -> Result<Box<dyn Database>> {
    let opened = Opened { path, synchronous };
    let create = "CREATE TABLE IF NOT EXISTS bench (k INTEGER PRIMARY KEY, v INTEGER NOT NULL)";
    opened.connect()?.execute(create)?;
    Ok(Box::new(opened))
}

fn compact(directory: &Path) -> Result<()> {
    let connection = Connection::open(&directory.join("bench.sqlite"))?;
    connection.execute("VACUUM")?;
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
}

struct Opened {
    path: PathBuf,
    synchronous: &'static str,
}

impl Opened {
    fn connect(&self) -> Result<Connection> {
        let connection = Connection::open(&self.path)?;
        connection.execute("PRAGMA journal_mode=WAL")?;
        connection.execute(&format!("PRAGMA synchronous={}", self.synchronous))?;
        connection.execute("PRAGMA mmap_size=1073741824")?;
        connection.execute("PRAGMA cache_size=-262144")?;
        Ok(connection)
    }
}

impl Database for Opened {
    fn session(&self) -> Result<Box<dyn Session + '_>> {
        let connection = self.connect()?;
        let prepare = |sql| connection.prepare(sql);
        Ok(Box::new(Open {
            get: prepare("SELECT v FROM bench WHERE k = ?1")?,
            set: prepare("INSERT INTO bench VALUES (?1, ?2) ON CONFLICT (k) DO UPDATE SET v = ?2")?,
            add: prepare(
                "INSERT INTO bench VALUES (?1, ?2) ON CONFLICT (k) DO UPDATE SET v = v + ?2 RETURNING v",
            )?,
            next: prepare("SELECT k FROM bench WHERE k >= ?1 AND k < ?2 ORDER BY k LIMIT 1")?,
            scan: prepare("SELECT k, v FROM bench WHERE k >= ?1 AND k < ?2 ORDER BY k LIMIT ?3")?,
            read: prepare("BEGIN")?,
            write: prepare("BEGIN IMMEDIATE")?,
            commit: prepare("COMMIT")?,
            rollback: prepare("ROLLBACK")?,
            _connection: connection,
        }))
    }
}

/// The connection is dropped last.
struct Open {
    get: Statement,
    set: Statement,
    add: Statement,
    next: Statement,
    scan: Statement,
    read: Statement,
    write: Statement,
    commit: Statement,
    rollback: Statement,
    _connection: Connection,
}

impl Open {
    /// Runs `body` in the transaction that has begun.
    fn within<R>(&mut self, body: impl FnOnce(&mut Self) -> Result<R>) -> Result<R> {
        match body(self) {
            Ok(result) => {
                self.commit.run(&[])?;
                Ok(result)
            }
            Err(error) => {
                self.rollback.run(&[])?;
                Err(error)
            }
        }
    }
}

fn key(tree: Tree, number: u64) -> i64 {
    tree.key(number) as i64
}

impl Session for Open {
    fn get(&mut self, tree: Tree, number: u64) -> Result<Option<i64>> {
        self.get.value(&[key(tree, number)])
    }

    fn set(&mut self, tree: Tree, number: u64, value: i64) -> Result<()> {
        self.set.run(&[key(tree, number), value])
    }

    fn increment(&mut self, tree: Tree, number: u64, by: i64) -> Result<i64> {
        self.add.value(&[key(tree, number), by])?.ok_or_else(|| missing(number))
    }

    fn update_pair(
        &mut self,
        tree: Tree,
        numbers: [u64; 2],
        change: &mut dyn FnMut(Pair) -> Pair,
    ) -> Result<()> {
        self.write.run(&[])?;
        self.within(|open| {
            let new = change([open.get(tree, numbers[0])?, open.get(tree, numbers[1])?]);
            for (number, value) in numbers.into_iter().zip(new) {
                if let Some(value) = value {
                    open.set(tree, number, value)?;
                }
            }
            Ok(())
        })
    }

    fn get_snapshot(&mut self, tree: Tree, numbers: &[u64]) -> Result<u64> {
        self.read.run(&[])?;
        self.within(|open| open.get_each(tree, numbers))
    }

    fn walk(&mut self, tree: Tree, limit: u64) -> Result<Passage> {
        let mut passage = Passage::default();
        let (from, end) = tree.bounds();
        let mut from = from as i64;
        while passage.entries < limit {
            let Some(key) = self.next.value(&[from, end as i64])? else { break };
            passage.entries += 1;
            from = key + 1;
        }
        Ok(passage)
    }

    fn scan(&mut self, tree: Tree, limit: u64) -> Result<Passage> {
        let mut passage = Passage::default();
        let (from, end) = tree.bounds();
        self.scan.rows(&[from as i64, end as i64, limit.min(i64::MAX as u64) as i64], |[key, value]| {
            passage.entries += 1;
            passage.numbers = passage.numbers.wrapping_add(Tree::number(key as u64));
            passage.values = passage.values.wrapping_add(essence(value));
            Ok(())
        })?;
        Ok(passage)
    }

    fn fill(&mut self, tree: Tree, pairs: &mut dyn Iterator<Item = (u64, i64)>) -> Result<()> {
        self.write.run(&[])?;
        self.within(|open| {
            for (number, value) in pairs {
                open.set(tree, number, value)?;
            }
            Ok(())
        })
    }
}
