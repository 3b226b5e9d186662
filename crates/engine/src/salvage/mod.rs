//! Copying every readable node of a damaged database into a new one.
//!
//! What counts is the last checkpoint that the file names. Leaves tile the keys: where one is missing, a range of keys
//! is lost, and named by its neighbours. How they are found, also where what names them is lost: [`mod@leaves`]. What
//! the log holds beyond the checkpoint is then applied
//! to the copy ([`mod@log`]).
//!
//! Invariants
//! - The damaged file is only read, by system calls, and nobody may have it open.
//! - A node of a leaf that has its sum is copied, and none that was neither in the checkpoint nor in the log; only below
//!   lost info pages there may be some of a state before.
//! - The new database appears under its name when it is whole.
//!
//! What if we are killed? `NEW.partial` and its `-shm` are left, which the next salvage writes anew.
//!
//! Deliberately absent: what was written after the checkpoint and is in no log.

mod leaves;
mod log;

use std::path::Path;
use std::sync::Arc;

use perilune_disk::Disk;
use perilune_store::{Durability, Error, Result};

use crate::bulk::Bulk;
use crate::image::io_error;
use crate::limits::SALVAGE_NAMED;
use crate::meta::{self, Meta};
use crate::offline::{Flaw, OfflineFile};
use crate::open::{Gate, OpenOptions, Reserved, Site};
use crate::page::{self, RECORD_BIG};
use leaves::{leaves, Leaf};

/// A page that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostPage {
    /// Its number; its first byte lies at this times the bytes of a page.
    pub page: u64,
    /// Offset of its first byte in the file.
    pub byte: u64,
    /// What is wrong with it.
    pub why: String,
}

/// Keys that are lost: whatever lay between two nodes that were copied.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LostRange {
    /// The last key copied before; None: the range begins with the database.
    pub after: Option<Vec<u8>>,
    /// The first key copied behind; None: the range ends with the database.
    pub before: Option<Vec<u8>>,
}

/// What was copied, and what could not be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SalvageReport {
    /// Generation of the checkpoint that was copied; 0: both copies of meta are lost, and the newest info
    /// pages were taken.
    pub generation: u64,
    /// Whether the database was not closed: what was written after the checkpoint and is not in the log is not
    /// in the copy.
    pub was_open: bool,
    /// Records of the log that were applied to the copy; None: there was no log to be read.
    pub log_records: Option<u64>,
    /// Of them those that lie behind damage, applied because that was asked for.
    pub log_records_behind: u64,
    /// Why the log was not read to its end: what followed is not in the copy, or not all.
    pub log_damage: Option<String>,
    /// Nodes of the new database.
    pub nodes: u64,
    /// Bytes of the new file.
    pub bytes: u64,
    /// Pages copied from without a sum to compare them with, because their info page is lost.
    pub unsummed_pages: u64,
    /// Damaged pages, the first of them.
    pub pages: Vec<LostPage>,
    /// Damaged pages beyond those.
    pub more_pages: u64,
    /// Ranges of keys that are lost, the first of them.
    pub ranges: Vec<LostRange>,
    /// Ranges beyond those.
    pub more_ranges: u64,
    /// Keys of nodes that are lost because their long value is damaged, the first of them.
    pub values: Vec<Vec<u8>>,
    /// Such nodes beyond those.
    pub more_values: u64,
}

impl SalvageReport {
    /// Whether every node of the checkpoint was copied, and the log read to its end.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        let is_tree_whole = self.pages.is_empty() && self.ranges.is_empty() && self.values.is_empty();
        self.generation != 0 && is_tree_whole && self.log_damage.is_none()
    }

    fn lose_page(&mut self, flaw: Flaw) {
        let lost = LostPage { page: flaw.page, byte: flaw.page * crate::limits::PAGE as u64, why: flaw.why };
        keep(&mut self.pages, lost, &mut self.more_pages);
    }
}

fn keep<T>(list: &mut Vec<T>, item: T, more: &mut u64) {
    if list.len() < SALVAGE_NAMED {
        list.push(item);
    } else {
        *more += 1;
    }
}

/// Copies what can be read of the database at `path` into a new one at `new`. `progress` is told pages done
/// and pages in all.
///
/// # Errors
/// `CannotOpen` if somebody has it open, or if `new` exists; `NotADatabase`; `NoSpace`, `Io`. Damage is none.
pub(crate) fn salvage(
    path: &Path,
    new: &Path,
    options: &OpenOptions,
    disk: &Arc<dyn Disk>,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<SalvageReport> {
    let site = Site::find(path, options)?;
    let target = Site::find(new, options)?;
    let Some(_reserved) = Reserved::take(&target.path)? else {
        let why = "exists: give the name of a new file".to_owned();
        return Err(Error::CannotOpen { place: target.path.into(), why });
    };
    let gate = keep_out_others(&site.path, options)?;
    let mut report = SalvageReport::default();
    let offline = open(&gate, &site.path, &**disk, &mut report)?;
    let partial = meta::beside(&target.path, ".partial");
    let bulk = Bulk::create(&**disk, &partial, &site.path)?;
    let mut written = copy(&offline, &**disk, bulk, &mut report, progress);
    if written.is_ok() {
        written = log::apply(disk, options, &site.path, &offline, &partial, &mut report);
    }
    drop(gate);
    let renamed = written.and_then(|()| {
        // NB: what has come there meanwhile is not replaced.
        disk.rename_new(&partial, &target.path).map_err(|source| io_error("rename", &partial, source))?;
        let directory = target.path.parent().unwrap_or(Path::new("/"));
        disk.sync_directory(directory).map_err(|source| io_error("sync", directory, source))
    });
    if renamed.is_err() {
        let _ = disk.remove(&partial);
    }
    renamed.map(|()| report)
}

/// Keeps others from opening the file, which nobody has open.
fn keep_out_others(path: &Path, options: &OpenOptions) -> Result<Gate> {
    let gate = Gate::enter(path, true, options.timeout)?;
    let attached = gate.attached(path)?.len();
    if attached > 0 {
        let why = format!("is in use by {attached} process(es): end them first");
        return Err(Error::CannotOpen { place: path.into(), why });
    }
    Ok(gate)
}

fn open(gate: &Gate, path: &Path, disk: &dyn Disk, report: &mut SalvageReport) -> Result<OfflineFile> {
    let file = gate.open_on(disk, path, false)?;
    let (meta, refusal) = match meta::newest(&*file, path) {
        Ok((_, meta)) => (meta, None),
        // Both copies are bad. The newest info pages, and the pages themselves, are all there is to go by.
        Err(error @ (Error::Corrupt { .. } | Error::NotADatabase { .. })) => {
            if matches!(error, Error::NotADatabase { .. }) && !meta::is_overwritten(&*file, path)? {
                return Err(error);
            }
            let bytes = file.size().map_err(|source| io_error("find out the size", path, source))?;
            let level = Durability::default() as u32;
            (Meta { level, ..Meta::lost(bytes / crate::limits::PAGE as u64) }, Some(error))
        }
        Err(error) => return Err(error),
    };
    if meta.uuid != [0; 16] {
        report.generation = meta.generation.into();
    }
    if meta.has_delta && meta::delta::path(path).exists() {
        let why =
            "is being brought up to date by a backup that was interrupted: open it once, or run the backup \
                   again"
                .to_owned();
        return Err(Error::CannotOpen { place: path.into(), why });
    }
    report.was_open = meta.is_open;
    let offline = OfflineFile::open(file, path, meta)?;
    match refusal {
        // Not a page of it is one of ours.
        Some(error @ Error::NotADatabase { .. }) if !offline.has_tree_page() => return Err(error),
        Some(_) => {
            let why = "both copies of meta are lost, here and in page 1".to_owned();
            report.lose_page(Flaw { page: 0, why });
        }
        None => {}
    }
    if offline.npages() < offline.meta.npages {
        let why = format!("the file was cut, {} pages are missing", offline.meta.npages - offline.npages());
        report.lose_page(Flaw { page: offline.npages(), why });
    }
    for page in offline.lost_infos() {
        report.lose_page(Flaw { page, why: "it is an info page of which no slot can be trusted".to_owned() });
    }
    Ok(offline)
}

/// Copies what can be read into a new database, and adds to `report` what was found.
///
/// # Errors
/// `NoSpace`, `Io`.
pub(crate) fn copy(
    offline: &OfflineFile,
    disk: &dyn Disk,
    mut bulk: Bulk,
    report: &mut SalvageReport,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<()> {
    let leaves = leaves(offline, report, progress);
    let mut copier = Copier { offline, report, last: None, is_gap: false };
    let mut end = Some(Vec::new());
    let count = leaves.len() as u64;
    for (done, leaf) in leaves.iter().enumerate() {
        if done % 64 == 0 {
            progress(offline.npages() + done as u64, offline.npages() + count);
        }
        if end.as_ref() != Some(&leaf.lo) {
            copier.is_gap = true;
        }
        if !copier.leaf(leaf, &mut bulk)? {
            copier.is_gap = true;
        }
        end = if leaf.hi.is_empty() { None } else { Some(leaf.hi.clone()) };
    }
    if copier.is_gap || end.is_some() {
        copier.lose_range(None);
    }
    report.nodes = bulk.nodes();
    report.bytes = bulk.finish(disk, offline.meta.level)?;
    Ok(())
}

/// Copies leaves in the order of their keys.
struct Copier<'a> {
    offline: &'a OfflineFile,
    report: &'a mut SalvageReport,
    last: Option<Vec<u8>>,
    /// Keys behind `last` are lost.
    is_gap: bool,
}

impl Copier<'_> {
    /// Copies a leaf; false if it can no longer be read.
    fn leaf(&mut self, leaf: &Leaf, bulk: &mut Bulk) -> Result<bool> {
        let page = match self.offline.tree_page(leaf.number) {
            Ok((page, _)) => page,
            Err(flaw) => {
                self.report.lose_page(flaw);
                return Ok(false);
            }
        };
        let (mut key, mut value) = (Vec::new(), Vec::new());
        for index in 0..page::leaf_count(&page) {
            page::leaf_key(&page, index, &mut key);
            if self.last.as_ref().is_some_and(|last| *last >= key) {
                // Leaves that overlap are of a file that was made to.
                continue;
            }
            value.clear();
            if page::append_value(&page, index, &mut value) & RECORD_BIG != 0 {
                match self.offline.long_value(leaf.number, &value) {
                    Ok((long, unsummed)) => {
                        value = long;
                        self.report.unsummed_pages += unsummed;
                    }
                    Err(flaw) => {
                        self.report.lose_page(flaw);
                        keep(&mut self.report.values, key.clone(), &mut self.report.more_values);
                        continue;
                    }
                }
            }
            if self.is_gap {
                self.lose_range(Some(key.clone()));
            }
            bulk.push(&key, &value)?;
            self.last = Some(key.clone());
        }
        Ok(true)
    }

    fn lose_range(&mut self, before: Option<Vec<u8>>) {
        let range = LostRange { after: self.last.clone(), before };
        keep(&mut self.report.ranges, range, &mut self.report.more_ranges);
        self.is_gap = false;
    }
}

#[cfg(test)]
pub(crate) mod tests;
