//! Comparing the pages of the last checkpoint with the sums that its info pages keep.
//!
//! The file is read by system calls, so that a bad sector is a damaged page and not the end of the process.
//! The pages of the last checkpoint do not change as long as it is the last: the caller sees to that.

use std::path::Path;

use perilune_disk::{Disk, DiskFile, RealDisk};
use perilune_store::{Error, Result};

use super::info::{self, Entry, GenerationSum, InfoPage, Place};
use super::Meta;
use crate::image::io_error;
use crate::limits::{DAMAGES_NAMED, PAGE};
use crate::page::{INNER, LEAF};

/// Pages read in one call.
const CHUNK: usize = (1 << 20) / PAGE;

/// What a comparison has found.
#[derive(Debug, Default)]
pub(crate) struct Sums {
    /// Pages compared.
    pub(crate) pages: u64,
    /// Damaged pages, the first [`DAMAGES_NAMED`] of them: number, and what lies, or lay, there.
    pub(crate) damaged: Vec<(u64, &'static str)>,
    /// Damaged pages beyond those.
    pub(crate) more: u64,
}

impl Sums {
    /// An error that names the damaged pages, if there are any.
    ///
    /// # Errors
    /// `Corrupt`.
    pub(crate) fn into_result(self, path: &Path) -> Result<u64> {
        if self.damaged.is_empty() {
            return Ok(self.pages);
        }
        let name =
            |(number, what): &(u64, &str)| format!("page {number} (byte {}): {what}", number * PAGE as u64);
        let mut names: Vec<String> = self.damaged.iter().map(name).collect();
        if self.more > 0 {
            names.push(format!("and {} more pages", self.more));
        }
        Err(Error::Corrupt {
            place: format!(
                "{}: {}: what else it holds can be copied with `perilune salvage`, or restore a backup",
                path.display(),
                names.join("; ")
            ),
        })
    }

    fn add(&mut self, number: u64, what: &'static str) {
        if self.damaged.len() < DAMAGES_NAMED {
            self.damaged.push((number, what));
        } else {
            self.more += 1;
        }
    }

    /// Compares one page with what its info page says.
    pub(crate) fn compare(&mut self, number: u64, entry: &Entry, bytes: &[u8]) {
        self.pages += 1;
        if crc32c::crc32c(bytes) != entry.sum {
            self.add(number, what_lies_there(entry, bytes));
        }
    }
}

/// What a page holds, as far as a damaged one lets that be seen.
pub(crate) fn what_lies_there(entry: &Entry, bytes: &[u8]) -> &'static str {
    match bytes.first() {
        _ if entry.is_run => "part of a long value",
        Some(&LEAF) => "a leaf of the tree",
        Some(&INNER) => "an inner page of the tree",
        _ => "a page of the tree",
    }
}

/// The error for a damaged page.
pub(crate) fn damaged_page(path: &Path, number: u64, what: &str) -> Error {
    let byte = number * PAGE as u64;
    Error::Corrupt { place: format!("{}: page {number} (byte {byte}): {what}", path.display()) }
}

/// Whether the info pages that count are those of the checkpoint: the heads of two slots may be damaged so that another one
/// seems to.
///
/// # Errors
/// `Corrupt` if not.
pub(crate) fn check_infos(path: &Path, meta: &Meta, generations: impl Iterator<Item = u32>) -> Result<()> {
    let mut sum = GenerationSum::default();
    generations.for_each(|generation| sum.add(generation));
    if sum.value() == meta.info_sum {
        return Ok(());
    }
    let place = format!("{}: its info pages are not those of its checkpoint", path.display());
    Err(Error::Corrupt { place })
}

/// The info page that counts for `meta` at `place`.
///
/// # Errors
/// `Corrupt`, `Io`.
pub(crate) fn info_page(file: &dyn DiskFile, path: &Path, meta: &Meta, place: Place) -> Result<InfoPage> {
    if !place.is_in(meta.npages) {
        // What lies there is of a checkpoint that did not end.
        return Ok(InfoPage::empty());
    }
    let Some(slot) = info::counting(info::generations(file, path, place)?, meta.generation) else {
        return Ok(InfoPage::empty());
    };
    InfoPage::read(file, path, place, slot)?.ok_or_else(|| Error::Corrupt {
        place: format!(
            "{}: info page {} of segment {} is bad: restore a backup",
            path.display(),
            place.index,
            place.segment
        ),
    })
}

/// The pages that the last checkpoint of a file rests on. All others may hold anything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckpointPages {
    /// Its generation.
    pub generation: u64,
    /// Bytes of a page.
    pub page_bytes: u64,
    /// Pages of the file, as the checkpoint knows it.
    pub pages: u64,
    /// Pages of the trees and of long values.
    pub data: Vec<u64>,
    /// The page of meta and the info pages that count.
    pub directory: Vec<u64>,
}

/// Finds the pages that the last checkpoint of the file at `path` rests on, for tools and tests. While
/// somebody writes, they may be those of the checkpoint before.
///
/// # Errors
/// `NotADatabase`, `Corrupt`, `Io`.
pub fn checkpoint_pages(path: &Path) -> Result<CheckpointPages> {
    let opened = path.canonicalize().and_then(|path| RealDisk.open(&path, false));
    let file = opened.map_err(|source| io_error("open", path, source))?;
    let (slot, meta) = super::newest(&*file, path)?;
    let mut found = CheckpointPages {
        generation: meta.generation.into(),
        page_bytes: PAGE as u64,
        pages: meta.npages,
        data: Vec::new(),
        directory: vec![slot as u64],
    };
    for place in Place::all(meta.npages) {
        let counting = info::counting(info::generations(&*file, path, place)?, meta.generation);
        found.directory.extend(counting.map(|slot| place.offset(slot) / PAGE as u64));
        let page = info_page(&*file, path, &meta, place)?;
        let used = place.pages(meta.npages).zip(&page.entries).filter(|(_, entry)| entry.born != 0);
        found.data.extend(used.map(|(number, _)| number));
    }
    Ok(found)
}

/// Compares all pages of the checkpoint `meta`.
///
/// # Errors
/// `Corrupt` if an info page is bad; `Io` if one cannot be read.
pub(crate) fn compare(file: &dyn DiskFile, path: &Path, meta: &Meta) -> Result<Sums> {
    let mut sums = Sums::default();
    let mut bytes = vec![0; CHUNK * PAGE];
    let mut generations = Vec::new();
    for place in Place::all(meta.npages) {
        let page = info_page(file, path, meta, place)?;
        generations.push(page.generation);
        let used: Vec<(u64, &Entry)> =
            place.pages(meta.npages).zip(&page.entries).filter(|(_, entry)| entry.born != 0).collect();
        for run in used.chunk_by(|(before, _), (number, _)| before + 1 == *number) {
            for chunk in run.chunks(CHUNK) {
                let bytes = &mut bytes[..chunk.len() * PAGE];
                if file.read_at(bytes, chunk[0].0 * PAGE as u64).is_ok() {
                    let pages = chunk.iter().zip(bytes.chunks_exact(PAGE));
                    pages.for_each(|((number, entry), bytes)| sums.compare(*number, entry, bytes));
                } else {
                    one_by_one(file, path, chunk, &mut sums)?;
                }
            }
        }
    }
    if sums.damaged.is_empty() {
        check_infos(path, meta, generations.into_iter())?;
    }
    Ok(sums)
}

/// Finds out which of some pages cannot be read.
fn one_by_one(file: &dyn DiskFile, path: &Path, pages: &[(u64, &Entry)], sums: &mut Sums) -> Result<()> {
    let mut bytes = vec![0; PAGE];
    let mut failure = None;
    for (number, entry) in pages {
        match file.read_at(&mut bytes, number * PAGE as u64) {
            Ok(()) => sums.compare(*number, entry, &bytes),
            Err(source) => {
                sums.add(*number, "it cannot be read");
                failure = Some(source);
            }
        }
    }
    match failure {
        // Nothing could be read: that is no damage of single pages.
        Some(source) if sums.pages == 0 => Err(io_error("read", path, source)),
        _ => Ok(()),
    }
}
