//! Verification: is all that the database holds what it should be?
//!
//! The back end checks its own structure: pages, sums, the tree. Here what lies in it is checked: every key and
//! value is decoded, and keys must ascend. Writers are not stopped, so what they change meanwhile is seen as it was
//! before or as it is after.

use perilune_key::{KeyError, ValueRef};
use perilune_store::{Bulk, Entries, Error as StoreError, Origin, Scan};

use crate::backend;
use crate::{limits, Database, Error, NodeRef, Result};

/// How many nodes are read at once, if they lie together.
const READ_AT_ONCE: usize = 1024;
/// Behind every key, also a malformed one: a page holds none as long.
const BEHIND_ALL: [u8; 4096] = [0xFF; 4096];

/// What [`Database::verify`] found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VerifyReport {
    /// Nodes with a value that were read.
    pub nodes: u64,
    /// What is wrong, each with its place; empty if all is well. At most
    /// [`limits::FAULTS_REPORTED`] are kept.
    pub faults: Vec<String>,
    /// Faults that were found beyond those.
    pub more_faults: u64,
    /// Damage by which nothing was lost: what was damaged has been written anew from its other copy, or will be.
    pub mended: Vec<String>,
}

impl VerifyReport {
    /// Whether nothing is wrong.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.faults.is_empty()
    }

    fn add(&mut self, fault: String) {
        if self.faults.len() < limits::FAULTS_REPORTED {
            self.faults.push(fault);
        } else {
            self.more_faults += 1;
        }
    }
}

impl Database {
    /// Checks the database's structure, every key and every value. It reads all of it.
    ///
    /// # Errors
    /// What keeps it from going on: I/O, or damage that cannot be read past.
    pub fn verify(&self) -> Result<VerifyReport> {
        let mut report = VerifyReport::default();
        let (faults, mended) = backend::verify(&self.backend)?;
        faults.into_iter().for_each(|fault| report.add(fault));
        report.mended = mended;
        let mut session = self.session()?;
        read_all(&mut session.trees.database, &mut report)?;
        Ok(report)
    }
}

/// Reads and checks all nodes, those that lie together at once.
fn read_all(tree: &mut impl Bulk, report: &mut VerifyReport) -> Result<()> {
    let (mut at, mut entries, mut inclusive) = (Vec::new(), Entries::default(), true);
    let scan = Scan {
        from: &[],
        inclusive,
        bound: &BEHIND_ALL,
        backwards: false,
        values: true,
        most: READ_AT_ONCE,
        after: Origin::default(),
    };
    loop {
        let after = *entries.origin();
        match tree.entries(&Scan { from: &at, inclusive, after, ..scan }, &mut entries) {
            Ok(true) => {}
            Ok(false) => return Ok(()),
            // What lies behind is looked at, too.
            Err(StoreError::Lost { place, keys }) => {
                let beyond = [&keys.1[..], &[0]].concat();
                let goes_on = !keys.1.is_empty() && beyond > at;
                report.add(Error::Store(StoreError::Lost { place, keys }).to_string());
                if !goes_on {
                    return Ok(());
                }
                entries.clear();
                (at, inclusive) = (beyond, true);
                continue;
            }
            Err(error @ StoreError::Corrupt { .. }) => {
                report.add(error.to_string());
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        }
        loop {
            let key = entries.key();
            if key < &at[..] || (key == &at[..] && report.nodes > 0) {
                report.add(format!("{}: out of order", NodeRef::from_encoded(key, false)));
                // Going on from here could go round for ever.
                return Ok(());
            }
            report.nodes += 1;
            check(key, entries.value(), report);
            at.clear();
            at.extend_from_slice(key);
            if !entries.advance() {
                break;
            }
        }
        inclusive = false;
    }
}

fn check(key: &[u8], value: &[u8], report: &mut VerifyReport) {
    let node = NodeRef::from_encoded(key, false);
    match perilune_key::validate(key) {
        Ok(_) if key.len() > limits::KEY_BYTES => {
            report.add(format!("{node}: {}", KeyError::KeyTooLong { limit: limits::KEY_BYTES }));
        }
        Ok(_) => {}
        Err(error) => report.add(format!("key {}: {error}", key.escape_ascii())),
    }
    if let Err(error) = ValueRef::decode(value) {
        report.add(format!("{node}: {error}"));
    }
}

#[cfg(test)]
mod tests {
    use perilune_store::Session as StoreSession;

    use super::*;
    use crate::node;

    #[test]
    fn damage_is_reported_by_place() -> Result<()> {
        let directory = std::env::temp_dir().join(format!("perilune-verify-{}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("a directory for the test");
        let database = Database::open(directory.join("t.db"))?;
        let mut session = database.session()?;
        session.set(&node!("^a", 1)?, 1)?;
        assert_eq!(database.verify()?, VerifyReport { nodes: 1, ..VerifyReport::default() });
        // Some leaves, and long values between them.
        for number in 0..3_000 {
            let bytes = if number % 700 == 3 { 20_000 } else { number % 40 };
            session.set(&node!("^m", number as i64)?, "x".repeat(bytes))?;
        }
        assert_eq!(database.verify()?, VerifyReport { nodes: 3_001, ..VerifyReport::default() });
        session.trees.database.set(b"b\0\xf0x", b"\x00")?;
        session.trees.database.set(node!("^c")?.encoded(), b"\xffdamaged")?;
        let report = database.verify()?;
        let _ = std::fs::remove_dir_all(&directory);
        assert_eq!((report.nodes, report.faults.len(), report.is_sound()), (3_003, 2, false));
        assert!(report.faults[0].contains("malformed key"), "{report:?}");
        assert!(report.faults[1].contains("^c"), "{report:?}");
        Ok(())
    }
}
