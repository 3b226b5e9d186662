//! For whoever operates a database: figures, locks, processes, and how large a tree is.
//!
//! Looking is cheap and stops nobody, except [`Session::tree_size`], which reads the whole tree, one
//! node after the other. Nothing here is of one moment, so that a busy database can be looked at, too.

use std::time::Duration;

use perilune_store::{Entries, Figure, Granularity, LockMode, LockOwner, Origin, ProcessReport, Scan};

use crate::{Database, Node, NodeRef, Result, Session};

/// A lock that is held, or waited for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockReport {
    /// The node it is on.
    pub node: Node,
    /// Exclusive or shared.
    pub mode: LockMode,
    /// How often it is held; 0: it is waited for, in the order of the list.
    pub count: u32,
    /// The process, as it sees itself.
    pub pid: u32,
    /// Which of the process's sessions and lock handles.
    pub owner: LockOwner,
    /// For how long it has been held, or waited for.
    pub since: Duration,
}

/// How much a node and all below it take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TreeSize {
    /// Children of the node.
    pub children: u64,
    /// Nodes with a value, itself included.
    pub values: u64,
    /// Bytes of their keys, encoded.
    pub key_bytes: u64,
    /// Bytes of the values, encoded.
    pub value_bytes: u64,
}

impl TreeSize {
    /// Bytes of key and value of a node with a value, on average; 0 if there is none.
    #[must_use]
    pub fn bytes_per_node(&self) -> f64 {
        match self.values {
            0 => 0.0,
            values => (self.key_bytes + self.value_bytes) as f64 / values as f64,
        }
    }
}

impl Database {
    /// Figures about the database and what all its processes did since it was opened first in this boot of
    /// the machine, in the order in which they are shown. Their names never change their meaning; there
    /// may be new ones with each version.
    ///
    /// ```
    /// # let directory = std::env::temp_dir().join(format!("perilune-doc-stat-{}", std::process::id()));
    /// # std::fs::create_dir_all(&directory).unwrap();
    /// # let path = directory.join("t.db");
    /// let database = perilune::Database::open(&path)?;
    /// database.session()?.set(&perilune::node!("^a")?, 1)?;
    /// let writes = database.stat()?.iter().find(|figure| figure.name == "writes").map(|figure| figure.value);
    /// assert_eq!(writes, Some(1));
    /// # let _ = std::fs::remove_dir_all(&directory);
    /// # Ok::<(), perilune::Error>(())
    /// ```
    ///
    /// # Errors
    /// I/O only.
    pub fn stat(&self) -> Result<Vec<Figure>> {
        Ok(self.backend.reports()?.figures()?)
    }

    /// Locks that are held, and those waited for, by nodes in order; of one node first those who hold it.
    ///
    /// # Errors
    /// `LimitReached` when all sessions are taken; I/O; `Malformed` if a lock's name is damaged.
    pub fn locks(&self) -> Result<Vec<LockReport>> {
        let found = self.backend.reports()?.locks()?;
        let report = found.into_iter().map(|lock| {
            Ok(LockReport {
                node: NodeRef::of_lock(&lock.name).to_node()?,
                mode: if lock.exclusive { LockMode::Exclusive } else { LockMode::Shared },
                count: lock.count,
                pid: lock.pid,
                owner: lock.owner,
                since: lock.since,
            })
        });
        report.collect()
    }

    /// Processes that have the database open for writing.
    ///
    /// # Errors
    /// I/O only.
    pub fn processes(&self) -> Result<Vec<ProcessReport>> {
        Ok(self.backend.reports()?.processes()?)
    }
}

/// Entries that are measured at once, if they lie together.
const MEASURED: usize = 1024;

impl Session {
    /// How much `node` and all below it take. Reads all of it, without a transaction: what others change
    /// meanwhile is counted before or after.
    ///
    /// # Errors
    /// I/O; `Malformed` for a damaged key.
    pub fn tree_size<'n>(&mut self, node: impl Into<NodeRef<'n>>) -> Result<TreeSize> {
        let node = node.into();
        let root = node.encoded();
        let depth = perilune_key::prefix_ends(root)?.count();
        let mut size = TreeSize::default();
        let (mut at, mut end, mut entries) = (root.to_vec(), Vec::new(), Entries::default());
        perilune_key::range::subtree_end(root, &mut end);
        let (most, after) = (MEASURED, Origin::default());
        let scan =
            Scan { from: &[], inclusive: true, bound: &end, backwards: false, values: true, most, after };
        // The first bytes of all keys in the child's subtree; none yet.
        let mut child = Vec::new();
        let mut inclusive = true;
        let local = node.is_local();
        while self.trees.entries_at(
            local,
            &Scan { from: &at, inclusive, ..scan },
            Granularity::Whole,
            &mut entries,
        )? {
            loop {
                let key = entries.key();
                size.values += 1;
                size.key_bytes += key.len() as u64;
                size.value_bytes += entries.value().len() as u64;
                if child.is_empty() || !key.starts_with(&child) {
                    let child_end = perilune_key::prefix_ends(key)?.nth(depth).transpose()?.unwrap_or(0);
                    size.children += u64::from(child_end > 0);
                    child.clear();
                    child.extend_from_slice(&key[..child_end]);
                }
                if !entries.advance() {
                    break;
                }
            }
            at.clear();
            at.extend_from_slice(entries.key());
            inclusive = false;
        }
        Ok(size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node;

    #[test]
    fn an_operator_sees_figures_locks_processes_and_sizes() -> Result<()> {
        let directory = std::env::temp_dir().join(format!("perilune-report-{}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("a directory for the test");
        let database = Database::open(directory.join("t.db"))?;
        let (mut first, mut second) = (database.session()?, database.session()?);
        first.set(&node!("^a", 1)?, "x")?;
        first.set(&node!("^a", 1, "y")?, "z")?;
        first.set(&node!("^a", 2)?, "z")?;
        first.set(&node!("^ab")?, "other")?;
        let size = first.tree_size(&node!("^a")?)?;
        assert_eq!((size.children, size.values), (2, 3));
        assert_eq!(size.value_bytes, 3 * 2);
        let keys =
            ["1", "1,\"y\"", "2"].map(|rest| Node::parse(&format!("^a({rest})")).map(|n| n.encoded().len()));
        assert_eq!(size.key_bytes, keys.into_iter().sum::<Result<usize>>()? as u64);
        assert_eq!(first.tree_size(&node!("^a", 1)?)?.values, 2);
        assert_eq!(first.tree_size(&node!("^none")?)?, TreeSize::default());
        first.set(&node!("local", 5)?, 1)?;
        assert_eq!(first.tree_size(&node!("local")?)?.children, 1);

        for _ in 0..2 {
            assert!(first.lock(&node!("^b", 1)?, LockMode::Exclusive, Some(Duration::ZERO))?);
        }
        assert!(second.lock(&node!("a")?, LockMode::Shared, Some(Duration::ZERO))?);
        let seen: Vec<_> =
            database.locks()?.into_iter().map(|l| (l.node.to_string(), l.mode, l.count, l.pid)).collect();
        let me = std::process::id();
        let expected = [("a", LockMode::Shared, 1, me), ("^b(1)", LockMode::Exclusive, 2, me)];
        assert_eq!(seen, expected.map(|(node, mode, count, pid)| (node.to_owned(), mode, count, pid)));

        let processes = database.processes()?;
        assert_eq!(processes.len(), 1);
        let this = &processes[0];
        assert_eq!((this.pid, this.alive, this.is_this, this.sessions), (me, true, true, 2));
        assert_eq!(this.version, env!("CARGO_PKG_VERSION"));

        let figures = database.stat()?;
        let value = |name: &str| figures.iter().find(|figure| figure.name == name).map(|figure| figure.value);
        assert_eq!((value("writes"), value("locks")), (Some(4), Some(3)));
        assert!(value("free_bytes") < value("file_bytes"));
        // NB: its threads make files.
        drop((first, second, database));
        let _ = std::fs::remove_dir_all(&directory);
        Ok(())
    }

    #[test]
    fn a_tree_of_many_leaves_is_measured_as_node_by_node() -> Result<()> {
        let directory = std::env::temp_dir().join(format!("perilune-measure-{}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("a directory for the test");
        let mut session = Database::open(directory.join("t.db"))?.session()?;
        let mut expected = TreeSize { children: 71, ..TreeSize::default() };
        for name in ["^t", "t"] {
            let root = node!(name)?;
            for number in 0..2_000 {
                let value = "x".repeat(if number % 90 == 3 { 5_000 } else { number % 40 });
                session.set(&root.child(number as i64 % 70)?.child(number as i64)?, value)?;
            }
            session.set(&root, 1)?;
            session.set(&root.child("last")?, "")?;
            let mut buffer = Vec::new();
            (expected.values, expected.key_bytes, expected.value_bytes) = (0, 0, 0);
            for (node, value) in session.get_tree(&root)? {
                buffer.clear();
                value.encode_into(&mut buffer);
                expected.values += 1;
                expected.key_bytes += node.encoded().len() as u64;
                expected.value_bytes += buffer.len() as u64;
            }
            assert_eq!(session.tree_size(&root)?, expected);
            assert_eq!(session.tree_size(&root.child("none")?)?, TreeSize::default());
        }
        drop(session);
        let _ = std::fs::remove_dir_all(&directory);
        Ok(())
    }
}
