//! A new database file, written from nodes in ascending order, page after page by system calls.
//!
//! Pages are filled to fifteen sixteenths and lie in the order in which they were filled: leaves, the values
//! that are too long for them, and inner pages as they become full. Nobody maps the file before it is whole.
//!
//! Invariants
//! - Meta is written last, when all else is on disk: a file that was not finished is no database.
//! - What was written is a closed database of one checkpoint, with a uuid of its own and no log.
//!
//! What if we are killed? The file has another name than the one it gets when it is finished; the next to
//! write it begins anew.
//!
//! Deliberately absent: where nodes come from and what the file replaces (`salvage`, `compact`).

use std::path::{Path, PathBuf};

use perilune_disk::{open_there, Disk, DiskFile, FileId};
use perilune_shm::{platform, words};
use perilune_store::{Error, Result};

use crate::image::layout::Run;
use crate::image::{io_error, Image};
use crate::limits::{INLINE_MAX, PAGE, SEGMENT_PAGES, SEGMENT_RESERVED};
use crate::meta::info::{Entry, GenerationSum, InfoPage, Place};
use crate::meta::{self, left_over, space_error, Meta, FIRST_GENERATION};
use crate::open::{moved, INITIAL_PAGES};
use crate::page::{self, Page, RECORD_BIG};
use crate::session::extent::List;

/// Bytes of a page that are filled, so that the first writes do not split it.
const FILLED: usize = PAGE / 16 * 15;
/// Pages left free at the end, so that opening the file does not make it grow.
const SPARE: u64 = 64;
/// Bytes written in one call.
const CHUNK: usize = 1 << 20;

/// A record that waits for its leaf.
struct Record {
    key: Vec<u8>,
    flags: u16,
    value: Vec<u8>,
}

/// Children that wait for their inner page, each with its upper fence.
#[derive(Default)]
struct Level {
    lo: Vec<u8>,
    children: Vec<(Vec<u8>, u32)>,
}

/// A database being written.
pub(crate) struct Bulk {
    file: Box<dyn DiskFile>,
    path: PathBuf,
    /// The next page to be taken.
    next: u64,
    /// What is to be written from page `chunk_at` on.
    chunk: Vec<u8>,
    chunk_at: u64,
    /// What the info pages will say, by page.
    entries: Vec<Entry>,
    lo: Vec<u8>,
    records: Vec<Record>,
    levels: Vec<Level>,
    nodes: u64,
}

impl Bulk {
    /// Begins the file `path`, which is made in place of what was left of such a file; it gets mode and owner of the
    /// file at `like`, and its owner may write it: `like` may be a file that was only to be read.
    ///
    /// # Errors
    /// `CannotOpen` if something else is in the way; `NoSpace`, `Io`.
    pub(crate) fn create(disk: &dyn Disk, path: &Path, like: &Path) -> Result<Bulk> {
        let mut access = left_over::access_of(like)?;
        access.mode |= 0o600;
        let file = left_over::create(disk, path, access, None)?;
        Ok(Bulk {
            file,
            path: path.into(),
            next: SEGMENT_RESERVED,
            chunk: Vec::with_capacity(CHUNK + PAGE),
            chunk_at: 0,
            entries: Vec::new(),
            lo: Vec::new(),
            records: Vec::new(),
            levels: vec![Level::default()],
            nodes: 0,
        })
    }

    /// Nodes pushed.
    pub(crate) fn nodes(&self) -> u64 {
        self.nodes
    }

    /// Adds a node. Its key is above all before.
    ///
    /// # Errors
    /// `NoSpace`, `Io`.
    pub(crate) fn push(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        if self.records.last().is_some_and(|last| last.key.as_slice() >= key) {
            return Err(Error::Internal("nodes of a new file do not ascend".to_owned()));
        }
        let (flags, value) =
            if value.len() > INLINE_MAX { (RECORD_BIG, self.put_long(value)?) } else { (0, value.to_vec()) };
        let sizes = self.records.iter().map(|record| (record.key.len(), record.value.len()));
        let bytes = page::leaf_bytes(&self.lo, key, sizes.chain([(key.len(), value.len())]));
        if let (true, Some(last)) = (bytes > FILLED, self.records.last()) {
            let hi = page::separator_between(&last.key, key);
            self.seal_leaf(&hi)?;
        }
        self.records.push(Record { key: key.to_vec(), flags, value });
        self.nodes += 1;
        Ok(())
    }

    /// Writes what is left, info pages and meta, and makes all of it durable; answers the bytes of the file.
    ///
    /// # Errors
    /// `NoSpace`, `Io`.
    pub(crate) fn finish(mut self, disk: &dyn Disk, durability: u32) -> Result<u64> {
        self.seal_leaf(&[])?;
        let mut level = 0;
        let root = loop {
            match &self.levels[level].children[..] {
                [(_, only)] if level + 1 == self.levels.len() => break *only,
                _ => self.seal_inner(level)?,
            }
            level += 1;
        };
        self.flush()?;
        let npages = (self.next + SPARE).max(INITIAL_PAGES);
        allocate(disk, &*self.file, &self.path, npages)?;
        let mut info_sum = GenerationSum::default();
        for place in Place::all(npages) {
            let mut info = InfoPage { generation: FIRST_GENERATION, ..InfoPage::empty() };
            for (number, entry) in place.pages(npages).zip(&mut info.entries) {
                *entry = self.entries.get(number as usize).copied().unwrap_or_default();
            }
            self.write(&info.encode(place), place.offset(0))?;
            info_sum.add(FIRST_GENERATION);
        }
        self.file.sync_data().map_err(|source| space_error("sync", &self.path, source))?;
        let (height, level, info_sum) = (level as u32 + 1, durability, info_sum.value());
        let meta = Meta { root, height, npages, level, info_sum, ..Meta::of_new_file() };
        meta::write(&*self.file, &self.path, 0, &meta)?;
        Ok(npages * PAGE as u64)
    }

    /// Writes the waiting records as a leaf that ends with `hi`; as more than one if the fence takes too much
    /// away.
    fn seal_leaf(&mut self, hi: &[u8]) -> Result<()> {
        let records = std::mem::take(&mut self.records);
        let (mut rest, mut count) = (&records[..], records.len());
        loop {
            let hi = match rest.get(count) {
                Some(next) => page::separator_between(&rest[count - 1].key, &next.key),
                None => hi.to_vec(),
            };
            let parts = rest[..count].iter().map(|record| (&record.key[..], record.flags, &record.value[..]));
            let Some(leaf) = page::leaf_of(&self.lo, &hi, parts) else {
                count = fewer(count)?;
                continue;
            };
            let number = self.put_page(&leaf)?;
            self.lo.clone_from(&hi);
            self.push_child(0, hi, number)?;
            rest = &rest[count..];
            count = rest.len();
            if rest.is_empty() {
                return Ok(());
            }
        }
    }

    fn push_child(&mut self, level: usize, hi: Vec<u8>, child: u32) -> Result<()> {
        if level == self.levels.len() {
            self.levels.push(Level::default());
        }
        let Level { lo, children } = &self.levels[level];
        // NB: what has no upper fence is the last, and shares no prefix.
        let sizes = children.iter().map(|(separator, _)| separator.len()).chain([hi.len()]);
        if page::inner_bytes(lo, &hi, sizes) > FILLED && children.len() > 1 {
            self.seal_inner(level)?;
        }
        self.levels[level].children.push((hi, child));
        Ok(())
    }

    /// Writes the waiting children of a level as an inner page, or more than one.
    fn seal_inner(&mut self, level: usize) -> Result<()> {
        let children = std::mem::take(&mut self.levels[level].children);
        let (mut rest, mut count) = (&children[..], children.len());
        while !rest.is_empty() {
            let lo = &self.levels[level].lo;
            let Some(inner) = page::inner_of(level as u8 + 1, lo, &rest[..count]) else {
                count = fewer(count)?;
                continue;
            };
            let number = self.put_page(&inner)?;
            let hi = rest[count - 1].0.clone();
            self.levels[level].lo.clone_from(&hi);
            self.push_child(level + 1, hi, number)?;
            rest = &rest[count..];
            count = rest.len();
        }
        Ok(())
    }

    /// Writes a long value and answers its list of runs.
    fn put_long(&mut self, value: &[u8]) -> Result<Vec<u8>> {
        let (mut runs, mut left) = (Vec::new(), value);
        while !left.is_empty() {
            let first = self.next_page()?;
            let room = SEGMENT_PAGES - u64::from(first) % SEGMENT_PAGES;
            let pages = (left.len().div_ceil(PAGE) as u64).min(room);
            let (now, rest) = left.split_at(left.len().min(pages as usize * PAGE));
            for (number, bytes) in (u64::from(first)..).zip(now.chunks(PAGE)) {
                let mut page = bytes.to_vec();
                page.resize(PAGE, 0);
                self.put(number, &page, true)?;
            }
            runs.push(Run { first, pages: pages as u32 });
            left = rest;
        }
        Ok(List::new(value.len(), runs).as_bytes().to_vec())
    }

    fn put_page(&mut self, page: &Page) -> Result<u32> {
        let number = self.next_page()?;
        page::put_identity(page, number, FIRST_GENERATION);
        let mut bytes = Vec::with_capacity(PAGE);
        words::append(page, 0, PAGE, &mut bytes);
        self.put(number.into(), &bytes, false)?;
        Ok(number)
    }

    /// The next page that holds data.
    fn next_page(&mut self) -> Result<u32> {
        while !Image::is_data_page(self.next) {
            self.next += 1;
        }
        let limit = u64::from(u32::MAX);
        u32::try_from(self.next).map_err(|_| Error::LimitReached { what: "pages of a file", limit })
    }

    /// Notes the next page's bytes to be written.
    fn put(&mut self, number: u64, bytes: &[u8], is_run: bool) -> Result<()> {
        let chunk_end = self.chunk_at + (self.chunk.len() / PAGE) as u64;
        if number != chunk_end || self.chunk.len() >= CHUNK {
            self.flush()?;
            self.chunk_at = number;
        }
        self.chunk.extend_from_slice(bytes);
        self.entries.resize(number as usize, Entry::default());
        self.entries.push(Entry { born: FIRST_GENERATION, is_run, sum: crc32c::crc32c(bytes) });
        self.next = number + 1;
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        self.write(&self.chunk, self.chunk_at * PAGE as u64)?;
        self.chunk.clear();
        Ok(())
    }

    fn write(&self, bytes: &[u8], offset: u64) -> Result<()> {
        self.file.write_at(bytes, offset).map_err(|source| space_error("write", &self.path, source))
    }
}

/// Half as many entries for a page that they do not fit into.
fn fewer(count: usize) -> Result<usize> {
    if count < 2 {
        return Err(Error::Internal("a page does not hold one entry".to_owned()));
    }
    Ok(count / 2)
}

/// Gives the file `file` at `path` all the space that its pages need, so that writing through a mapping never
/// meets a full disk.
///
/// # Errors
/// `CannotOpen` if `path` leads elsewhere; `NoSpace`, `Io`.
pub(crate) fn allocate(disk: &dyn Disk, file: &dyn DiskFile, path: &Path, npages: u64) -> Result<()> {
    let failed = |source| io_error("open", path, source);
    let opened = open_there(path, true).map_err(failed)?;
    if FileId::of(&opened).map_err(failed)? != file.id().map_err(failed)? {
        return Err(moved(path));
    }
    let bytes = npages * PAGE as u64;
    let allocated = disk.allocate(bytes, &|bytes| platform::allocate(&opened, 0, bytes));
    allocated.map_err(|source| space_error("allocate", path, source))
}

#[cfg(test)]
mod tests;
