//! Care of whole files. A backup copies a database while others use it; compaction writes one anew that nobody has
//! open, without the space that nothing uses; a salvage copies what can be read of a damaged one.

use std::path::Path;

use crate::backend;
use crate::{Database, NodeRef, OpenOptions, Result};

pub use crate::backend::{BackupKind, BackupReport, CompactReport, LostPage};

/// Nodes that a salvage could not copy, by their neighbours.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LostRange {
    /// The last node copied before them; None: they begin with the database.
    pub after: Option<String>,
    /// The first node copied behind them; None: they end with the database.
    pub before: Option<String>,
}

/// What [`OpenOptions::salvage`] has copied, and what it could not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SalvageReport {
    /// Generation of the checkpoint that was copied; 0: the file no longer says which it is, and the newest
    /// that was found was taken.
    pub generation: u64,
    /// Whether the database was not closed: what was written after its last checkpoint and is not in its log is
    /// not in the copy.
    pub was_open: bool,
    /// Records of the log that were applied to the copy; None: there was no log to be read.
    pub log_records: Option<u64>,
    /// Of them those that lie behind damage: see [`OpenOptions::behind_damage`].
    pub log_records_behind: u64,
    /// Why the log was not read to its end, with the place: what followed is not in the copy, or not all.
    pub log_damage: Option<String>,
    /// Nodes of the new database.
    pub nodes: u64,
    /// Bytes of the new file.
    pub bytes: u64,
    /// Pages copied from whose checksums are lost.
    pub unsummed_pages: u64,
    /// Damaged pages, the first 10,000 of them.
    pub pages: Vec<LostPage>,
    /// Damaged pages beyond those.
    pub more_pages: u64,
    /// Ranges of nodes that are lost, the first 10,000.
    pub ranges: Vec<LostRange>,
    /// Ranges beyond those.
    pub more_ranges: u64,
    /// Nodes that are lost because their long value is damaged, the first 10,000.
    pub values: Vec<String>,
    /// Such nodes beyond those.
    pub more_values: u64,
}

impl SalvageReport {
    /// Whether every node of the last checkpoint was copied, and the log read to its end.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        let is_tree_whole = self.pages.is_empty() && self.ranges.is_empty() && self.values.is_empty();
        self.generation != 0 && is_tree_whole && self.log_damage.is_none()
    }
}

impl Database {
    /// Copies the database as it is now to `dest` while others read and write. The pages copied are compared
    /// with their checksums. `dest` may be a database that nobody has open: it is replaced by a whole copy, or,
    /// if it is an older copy and `kind` is [`BackupKind::Incremental`], brought up to date by the pages that
    /// are new. Ended at any moment, `dest` opens as what it was or as the new copy. `progress` is told pages
    /// done and pages in all.
    ///
    /// # Errors
    /// `ReadOnly`; `LimitReached` at 255 snapshots; `CannotOpen` if `dest` is in use, is the database itself,
    /// or is to be brought up to date and is no older copy of it; `NotADatabase` if it is another file;
    /// `Corrupt` with the damaged page; `NoSpace`, I/O.
    pub fn backup(
        &self,
        dest: impl AsRef<Path>,
        kind: BackupKind,
        mut progress: impl FnMut(u64, u64),
    ) -> Result<BackupReport> {
        let options = backend::mapped_options(&OpenOptions::default())?;
        Ok(self.backend.backup(dest.as_ref(), kind, &options, &mut progress)?)
    }
}

impl OpenOptions {
    /// Writes the database at `path` anew, without the space that nothing uses. Nobody else may have it open;
    /// ended at any moment, the file is the old or the new one. `progress` is told pages done and pages in
    /// all.
    ///
    /// # Errors
    /// As [`OpenOptions::open`]; `CannotOpen` if somebody has it open; `Corrupt` with the first damaged page;
    /// `NoSpace`, I/O.
    pub fn compact(
        &self,
        path: impl AsRef<Path>,
        mut progress: impl FnMut(u64, u64),
    ) -> Result<CompactReport> {
        Ok(backend::compact(path.as_ref(), &backend::mapped_options(self)?, &mut progress)?)
    }

    /// Copies every node that can be read of the last checkpoint of a damaged database, which nobody has open,
    /// into a new database at `new`, and applies what its log holds beyond that. `progress` is told pages done and pages in all.
    ///
    /// # Errors
    /// `CannotOpen` if somebody has it open, or if `new` exists; `NotADatabase`, `NoSpace`, I/O. Damage is no
    /// error: the report names it.
    pub fn salvage(
        &self,
        path: impl AsRef<Path>,
        new: impl AsRef<Path>,
        mut progress: impl FnMut(u64, u64),
    ) -> Result<SalvageReport> {
        let options = backend::mapped_options(self)?;
        let found = backend::salvage(path.as_ref(), new.as_ref(), &options, &mut progress)?;
        let range = |range: &backend::LostRange| LostRange {
            after: range.after.as_deref().map(name_of),
            before: range.before.as_deref().map(name_of),
        };
        Ok(SalvageReport {
            generation: found.generation,
            was_open: found.was_open,
            log_records: found.log_records,
            log_records_behind: found.log_records_behind,
            log_damage: found.log_damage,
            nodes: found.nodes,
            bytes: found.bytes,
            unsummed_pages: found.unsummed_pages,
            ranges: found.ranges.iter().map(range).collect(),
            more_ranges: found.more_ranges,
            values: found.values.iter().map(|key| name_of(key)).collect(),
            more_values: found.more_values,
            pages: found.pages,
            more_pages: found.more_pages,
        })
    }
}

/// A node's text, or its key's bytes if it is none.
fn name_of(key: &[u8]) -> String {
    match perilune_key::validate(key) {
        Ok(_) => NodeRef::from_encoded(key, false).to_string(),
        Err(_) => format!("key {}", key.escape_ascii()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node;

    #[test]
    fn what_is_copied_opens_and_what_is_lost_has_names() -> Result<()> {
        let directory = std::env::temp_dir().join(format!("perilune-maintenance-{}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("a directory for the test");
        let path = |name: &str| directory.join(name);
        let database = Database::open(path("t.db"))?;
        let mut session = database.session()?;
        for number in 0..2000 {
            session.set(&node!("^a", number)?, "some text for the node")?;
        }
        let whole = database.backup(path("copy.db"), BackupKind::Whole, |_, _| {})?;
        assert!(whole.pages > 3 && whole.pages_kept == 0, "{whole:?}");
        session.set(&node!("^a", 1000)?, "another text")?;
        let next = database.backup(path("copy.db"), BackupKind::Incremental, |_, _| {})?;
        assert!(next.pages < whole.pages && next.pages_kept > 0, "{next:?}");
        drop(session);
        drop(database);
        let report = OpenOptions::default().compact(path("t.db"), |_, _| {})?;
        assert!(report.nodes == 2000 && report.bytes_after <= report.bytes_before);
        // All but the first leaf, which the new file begins with.
        let mut bytes = std::fs::read(path("t.db")).expect("the database");
        let second = bytes.windows(4).rposition(|window| window == b"some").expect("a value");
        bytes[second] ^= 1;
        std::fs::write(path("t.db"), &bytes).expect("damage");
        let report = OpenOptions::default().salvage(path("t.db"), path("new.db"), |_, _| {})?;
        assert!(!report.is_complete() && report.nodes > 100 && report.nodes < 2000, "{report:?}");
        let lost = report.ranges.first().expect("a range");
        assert!(lost.after.iter().chain(&lost.before).all(|node| node.starts_with("^a(")), "{lost:?}");
        let copy = Database::open(path("copy.db"))?;
        assert_eq!(copy.session()?.get_str(&node!("^a", 1999)?)?, Some("some text for the node"));
        assert_eq!(copy.session()?.get_str(&node!("^a", 1000)?)?, Some("another text"));
        assert_eq!(Database::open(path("new.db"))?.verify()?.nodes, report.nodes);
        drop(copy);
        let _ = std::fs::remove_dir_all(&directory);
        Ok(())
    }
}
