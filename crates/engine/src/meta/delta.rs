//! Pages on their way into a closed database file: `PATH-delta`, what an incremental backup has gathered.
//!
//! Places are reused, so new pages lie where the old state of the file has its own. They are gathered beside
//! the file; a copy of meta with the flag `DELTA`, which names the delta by its stamp, is the moment from
//! which the file is the new state; then they are put into their places, and meta is written without the flag.
//!
//! Invariants
//! - The flag is on disk only after the whole delta is, and the file has the space for its pages.
//! - Nothing of the old state is overwritten before the flag is on disk.
//! - A file with the flag is used by nobody before the delta has been put in. That can be begun again at any
//!   point: a page is only ever written with the same bytes.
//!
//! What if we are killed? Before the flag: the old state, and a delta that nothing names. After it: whoever
//! opens the file to write, or backs up into it, puts the delta in. After the last copy of meta: the new
//! state, and a delta that nothing names. The next backup writes that file anew.
//!
//! Format: `docs/format/file.md`. Deliberately absent: which pages (`backup`).

use std::path::{Path, PathBuf};

use perilune_disk::{Disk, DiskFile};
use perilune_store::{Error, Result};

use super::{beside, left_over, space_error, Meta, META_BYTES};
use crate::image::io_error;
use crate::limits::PAGE;

/// First word of a delta: "PERIDELT".
const MAGIC: u64 = u64::from_le_bytes(*b"PERIDELT");
/// Bytes of the head, behind which the items begin.
const HEAD: usize = 4096;
/// Bytes of the head that mean something: magic, stamp, items, meta to come, checksum.
const HEAD_USED: usize = 24 + META_BYTES + 4;
/// Bytes before the page in an item: its number, and the checksum of both.
const ITEM_HEAD: usize = 16;
const ITEM: usize = ITEM_HEAD + PAGE;
/// Items written or read in one call.
const CHUNK: usize = (1 << 20) / ITEM;

/// Where the delta of the database at `path` lies.
pub(crate) fn path(database: &Path) -> PathBuf {
    beside(database, "-delta")
}

/// Removes what an interrupted backup has left beside the database at `database`, which nothing names.
pub(crate) fn remove_left_over(disk: &dyn Disk, database: &Path) {
    // It only takes space; and what is not ours stays.
    let _ = left_over::remove(disk, &path(database), Some(MAGIC));
}

/// A delta being gathered.
pub(crate) struct Gathering {
    file: Box<dyn DiskFile>,
    path: PathBuf,
    waiting: Vec<u8>,
    written: u64,
    items: u64,
}

impl Gathering {
    /// Begins the delta of the database at `database`, in place of what was left of one.
    ///
    /// # Errors
    /// `CannotOpen` if something else is in the way; `NoSpace`, `Io`.
    pub(crate) fn create(disk: &dyn Disk, database: &Path) -> Result<Gathering> {
        let path = path(database);
        let file = left_over::create(disk, &path, left_over::access_of(database)?, Some(MAGIC))?;
        Ok(Gathering { file, path, waiting: Vec::new(), written: HEAD as u64, items: 0 })
    }

    /// Adds a page.
    ///
    /// # Errors
    /// `NoSpace`, `Io`.
    pub(crate) fn put(&mut self, number: u64, bytes: &[u8]) -> Result<()> {
        self.waiting.extend_from_slice(&number.to_le_bytes());
        self.waiting.extend_from_slice(&u64::from(sum_of(number, bytes)).to_le_bytes());
        self.waiting.extend_from_slice(bytes);
        self.items += 1;
        if self.waiting.len() >= CHUNK * ITEM {
            self.flush()?;
        }
        Ok(())
    }

    /// Makes the delta durable, for the meta `waiting` of the file at `database`; when it is put in, the file's
    /// meta is to be `next`.
    ///
    /// # Errors
    /// `NoSpace`, `Io`.
    pub(crate) fn seal(mut self, disk: &dyn Disk, database: &Path, waiting: &Meta, next: Meta) -> Result<()> {
        self.flush()?;
        let head = Head { stamp: waiting.stamp, items: self.items, next }.encode();
        self.write(&head, 0)?;
        self.file.sync_data().map_err(|source| space_error("sync", &self.path, source))?;
        let directory = database.parent().unwrap_or(Path::new("/"));
        disk.sync_directory(directory).map_err(|source| io_error("sync", directory, source))
    }

    fn flush(&mut self) -> Result<()> {
        self.write(&self.waiting, self.written)?;
        self.written += self.waiting.len() as u64;
        self.waiting.clear();
        Ok(())
    }

    fn write(&self, bytes: &[u8], offset: u64) -> Result<()> {
        self.file.write_at(bytes, offset).map_err(|source| space_error("write", &self.path, source))
    }
}

/// The head of a delta.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Head {
    /// The stamp of the copy of meta that names the delta.
    stamp: u64,
    items: u64,
    /// The meta to be written when all items are in their places.
    next: Meta,
}

impl Head {
    fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEAD);
        bytes.extend_from_slice(&MAGIC.to_le_bytes());
        bytes.extend_from_slice(&self.stamp.to_le_bytes());
        bytes.extend_from_slice(&self.items.to_le_bytes());
        bytes.extend_from_slice(&self.next.encode());
        bytes.extend_from_slice(&crc32c::crc32c(&bytes).to_le_bytes());
        bytes.resize(HEAD, 0);
        bytes
    }

    fn decode(bytes: &[u8; HEAD_USED]) -> Option<Head> {
        let word = |at: usize| bytes.get(at..at + 8)?.try_into().ok().map(u64::from_le_bytes);
        let next = Meta::decode(bytes[24..24 + META_BYTES].try_into().ok()?).ok()?;
        let sum = crc32c::crc32c(&bytes[..HEAD_USED - 4]);
        let is_good = word(0)? == MAGIC && bytes[HEAD_USED - 4..] == sum.to_le_bytes();
        is_good.then_some(Head { stamp: word(8)?, items: word(16)?, next })
    }
}

fn sum_of(number: u64, bytes: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&number.to_le_bytes()), bytes)
}

/// Makes `waiting` in `slot` the meta of the file at `database`, whether it is already there or not, puts the
/// delta that it names into its place, and answers the slot and the meta of then. The caller sees to it that
/// nobody else uses the file. `progress` is told items done and items in all.
///
/// # Errors
/// `Corrupt` if the delta is missing or damaged; `NoSpace`, `Io`: to be done again.
pub(crate) fn put_in(
    disk: &dyn Disk,
    database: &Path,
    file: &dyn DiskFile,
    slot: usize,
    waiting: &Meta,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<(usize, Meta)> {
    let path = path(database);
    let lost = |why: &str| Error::Corrupt {
        place: format!(
            "{}: an incremental backup into it was interrupted, and {} {why}: make a whole backup",
            database.display(),
            path.display()
        ),
    };
    let failed = |source| io_error("read", &path, source);
    let delta = match disk.open(&path, false) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Err(lost("is missing")),
        opened => opened.map_err(failed)?,
    };
    let size = delta.size().map_err(failed)?;
    let mut head = [0; HEAD_USED];
    if size >= HEAD as u64 {
        delta.read_at(&mut head, 0).map_err(failed)?;
    }
    let head = Head::decode(&head).ok_or_else(|| lost("is damaged"))?;
    let whole = head.items.checked_mul(ITEM as u64).and_then(|bytes| bytes.checked_add(HEAD as u64));
    if head.stamp != waiting.stamp || head.next.uuid != waiting.uuid || whole.is_none_or(|whole| whole > size)
    {
        return Err(lost("is another one, or was cut"));
    }
    // NB: also if it is there: whoever wrote it may have been killed before he knew it to be on disk.
    super::write(file, database, slot, waiting)?;
    let mut bytes = Vec::new();
    let mut done = 0;
    while done < head.items {
        progress(done, head.items);
        let count = (head.items - done).min(CHUNK as u64);
        bytes.resize(count as usize * ITEM, 0);
        delta.read_at(&mut bytes, HEAD as u64 + done * ITEM as u64).map_err(failed)?;
        for item in bytes.chunks_exact(ITEM) {
            let number = number_of(item, head.next.npages).ok_or_else(|| lost("is damaged"))?;
            let written = file.write_at(&item[ITEM_HEAD..], number * PAGE as u64);
            written.map_err(|source| space_error("write", database, source))?;
        }
        done += count;
    }
    file.sync_data().map_err(|source| space_error("sync", database, source))?;
    super::write(file, database, 1 - slot, &head.next)?;
    // Nothing names it any more; what is left of it only takes space.
    let _ = disk.remove(&path);
    Ok((1 - slot, head.next))
}

/// The number of the page in a good item.
fn number_of(item: &[u8], npages: u64) -> Option<u64> {
    let number = u64::from_le_bytes(item.get(..8)?.try_into().ok()?);
    let sum = u64::from_le_bytes(item.get(8..16)?.try_into().ok()?);
    let is_good = sum == u64::from(sum_of(number, &item[ITEM_HEAD..])) && (2..npages).contains(&number);
    is_good.then_some(number)
}
