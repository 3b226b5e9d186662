//! What a database file says about its last checkpoint: two copies of meta, and info pages.
//!
//! Page 0 and 1 hold the two copies of [`Meta`]; the valid one with the higher serial counts, and only
//! the other is ever written. Once a new one is on disk, the other is made the same: so one that is damaged later
//! costs nothing. Nobody waits until that repetition is on disk, so of two equal copies the one that was synced counts:
//! the one in page `serial % 2`. Info pages (see [`info`]) name the pages of the checkpoint.
//!
//! Invariants
//! - A copy of meta is written only after everything it names is on disk.
//! - The copy that counts is on disk before the other one is written.
//! - Two copies of one serial are written by [`next_serial`]'s rule: first the one in page `serial % 2`, then, after a
//!   sync, its repetition.
//! - Every copy has a random stamp of its own, by which `-shm` knows the file it belongs to.
//!
//! What if we are killed? Before the sync: `-shm` lacks the new stamp, so the next one writes and syncs the copy once more,
//! in its place. Between the sync and the repetition: the other copy is older, or torn, and is the next to be written.
//!
//! Format: `docs/format/file.md`. Deliberately absent: when checkpoints are taken (`checkpoint`), what
//! becomes of them (`recover`).

pub(crate) mod delta;
pub(crate) mod info;
pub(crate) mod left_over;
pub(crate) mod sums;
pub(crate) mod survey;

use std::path::{Path, PathBuf};

use perilune_disk::DiskFile;
use perilune_shm::platform;
use perilune_store::Error;

use crate::image::io_error;
pub(crate) use crate::image::space_error;
use crate::limits::PAGE;

/// What tells the segments of a log from those that another database of the name has left, or is writing to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LogId {
    pub(crate) uuid: [u8; 16],
    /// The mark of its files; 0: any, as of a version that had none.
    pub(crate) mark: u64,
}

/// First word of a database file: "PERILUNE".
const MAGIC: u64 = u64::from_le_bytes(*b"PERILUNE");
/// The format of files this version writes, and the highest it reads.
const FORMAT: u32 = 3;
/// The oldest one that is read. In format 1 no leaf had a stem, in format 2 lists of runs were short; else they were the same.
const FORMAT_MIN: u32 = 1;
/// The generation of a new file's checkpoint.
pub(crate) const FIRST_GENERATION: u32 = 1;
/// Bytes of a copy of meta.
pub(crate) const META_BYTES: usize = 128;
/// Flag: somebody may have changed the file after the checkpoint.
const OPEN: u32 = 1;
/// Flag: what `PATH-delta` holds belongs into the file before it is used; see [`delta`].
const DELTA: u32 = 2;

/// The state of a database file at its last checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Meta {
    pub(crate) uuid: [u8; 16],
    /// Rises with each copy written; see [`next_serial`].
    pub(crate) serial: u64,
    /// Random, of this copy alone.
    pub(crate) stamp: u64,
    pub(crate) generation: u32,
    pub(crate) root: u32,
    /// Levels of the tree: 1 for a single leaf.
    pub(crate) height: u32,
    /// Whether the file may have been changed since.
    pub(crate) is_open: bool,
    /// Whether pages that belong into the file wait in `PATH-delta`.
    pub(crate) has_delta: bool,
    pub(crate) npages: u64,
    /// First batch of the log that belongs to it; 0: no log does.
    pub(crate) wal_batch: u64,
    /// Sequence number of a segment of the log that was in use and on disk when this was written, and is kept
    /// as long as this counts: without it the log is gone; 0: none was.
    pub(crate) log_segment: u64,
    /// The mark that the files of its log bear; 0: they were made by a version that had none.
    pub(crate) log_mark: u64,
    /// Durability level of the database.
    pub(crate) level: u32,
    /// CRC-32C over the generations of the info pages in use.
    pub(crate) info_sum: u32,
}

/// Why a copy of meta is not good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flaw {
    Foreign,
    Format(u32),
    PageSize(u32),
    Sum,
}

impl Meta {
    /// The copy's bytes.
    pub(crate) fn encode(&self) -> [u8; META_BYTES] {
        let mut bytes = [0; META_BYTES];
        let mut put = |at: usize, field: &[u8]| bytes[at..at + field.len()].copy_from_slice(field);
        put(0, &MAGIC.to_le_bytes());
        put(8, &FORMAT.to_le_bytes());
        put(12, &(PAGE as u32).to_le_bytes());
        put(16, &self.uuid);
        put(32, &self.serial.to_le_bytes());
        put(40, &self.stamp.to_le_bytes());
        put(48, &self.generation.to_le_bytes());
        put(52, &self.root.to_le_bytes());
        put(56, &self.height.to_le_bytes());
        let flag = |is_set: bool, flag: u32| if is_set { flag } else { 0 };
        put(60, &(flag(self.is_open, OPEN) | flag(self.has_delta, DELTA)).to_le_bytes());
        put(64, &self.npages.to_le_bytes());
        put(72, &self.wal_batch.to_le_bytes());
        put(80, &self.level.to_le_bytes());
        put(84, &self.info_sum.to_le_bytes());
        put(88, &self.log_segment.to_le_bytes());
        put(96, &self.log_mark.to_le_bytes());
        let sum = crc32c::crc32c(&bytes[..META_BYTES - 4]);
        bytes[META_BYTES - 4..].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// Meta of a file just made, closed and without a log, with an id of its own. Which tree it names is still
    /// to be said: `root`, `height`, `npages`, `info_sum`; and `level`, if not none.
    pub(crate) fn of_new_file() -> Meta {
        let mut uuid = [0; 16];
        uuid[..8].copy_from_slice(&platform::random_u64().to_le_bytes());
        uuid[8..].copy_from_slice(&platform::random_u64().to_le_bytes());
        Meta {
            uuid,
            serial: 1,
            stamp: platform::random_u64(),
            generation: FIRST_GENERATION,
            is_open: false,
            ..Meta::lost(0)
        }
    }

    /// What stands for meta when both copies are lost, in a file of `npages` pages: whatever the newest info
    /// pages name. Never written.
    pub(crate) fn lost(npages: u64) -> Meta {
        Meta {
            uuid: [0; 16],
            serial: 0,
            stamp: 0,
            generation: info::BORN_MAX,
            root: 0,
            height: 0,
            is_open: true,
            has_delta: false,
            npages,
            wal_batch: 0,
            log_segment: 0,
            log_mark: 0,
            level: 0,
            info_sum: 0,
        }
    }

    /// What tells the segments of its log.
    pub(crate) fn log_id(&self) -> LogId {
        LogId { uuid: self.uuid, mark: self.log_mark }
    }

    /// Whether it only stands for one that is lost.
    pub(crate) fn is_lost(&self) -> bool {
        self.uuid == [0; 16]
    }

    fn decode(bytes: &[u8; META_BYTES]) -> Result<Meta, Flaw> {
        let u64_at = |at: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&bytes[at..at + 8]);
            u64::from_le_bytes(word)
        };
        let u32_at = |at: usize| (u64_at(at & !7) >> (8 * (at & 7))) as u32;
        if u64_at(0) != MAGIC {
            return Err(Flaw::Foreign);
        }
        // NB: before the sum, which another format may keep elsewhere.
        if !(FORMAT_MIN..=FORMAT).contains(&u32_at(8)) {
            return Err(Flaw::Format(u32_at(8)));
        }
        if crc32c::crc32c(&bytes[..META_BYTES - 4]) != u32_at(META_BYTES - 4) {
            return Err(Flaw::Sum);
        }
        if u32_at(12) != PAGE as u32 {
            return Err(Flaw::PageSize(u32_at(12)));
        }
        let mut uuid = [0; 16];
        uuid.copy_from_slice(&bytes[16..32]);
        Ok(Meta {
            uuid,
            serial: u64_at(32),
            stamp: u64_at(40),
            generation: u32_at(48),
            root: u32_at(52),
            height: u32_at(56),
            is_open: u32_at(60) & OPEN != 0,
            has_delta: u32_at(60) & DELTA != 0,
            npages: u64_at(64),
            wal_batch: u64_at(72),
            log_segment: u64_at(88),
            log_mark: u64_at(96),
            level: u32_at(80),
            info_sum: u32_at(84),
        })
    }
}

/// Reads both copies of meta and answers the one that counts, and which it is.
///
/// # Errors
/// `NotADatabase` with what the file is instead; `Corrupt` when both copies are damaged; `Io`.
pub(crate) fn newest(file: &dyn DiskFile, path: &Path) -> Result<(usize, Meta), Error> {
    let copies = copies(file, path)?.map(|bytes| Meta::decode(&bytes));
    let best = copies.iter().enumerate().filter_map(|(slot, copy)| Some((slot, copy.as_ref().ok()?)));
    // NB: of two of one serial the repetition may not be on disk yet.
    if let Some((slot, meta)) = best.max_by_key(|(slot, meta)| (meta.serial, slot_of(meta.serial) == *slot)) {
        return Ok((slot, meta.clone()));
    }
    let flaws: Vec<Flaw> = copies.into_iter().filter_map(Result::err).collect();
    Err(refusal(path, &flaws))
}

/// The slot in which the copy with this serial was synced, if both copies have it.
fn slot_of(serial: u64) -> usize {
    (serial % 2) as usize
}

/// The serial of a copy that is written into `slot` after the one of serial `before`, and repeated in the other slot
/// once it is on disk: the next one whose place is `slot`.
pub(crate) fn next_serial(before: u64, slot: usize) -> u64 {
    before + 1 + u64::from(slot_of(before + 1) != slot)
}

/// Which copies of meta are damaged: neither good nor, as one in a new file is, never written.
///
/// # Errors
/// `Io`.
pub(crate) fn damaged_copies(file: &dyn DiskFile, path: &Path) -> Result<[bool; 2], Error> {
    Ok(copies(file, path)?.map(|bytes| bytes != [0; META_BYTES] && Meta::decode(&bytes).is_err()))
}

/// Whether nothing in a file's place of meta is of us: it is foreign, or its meta was overwritten.
///
/// # Errors
/// `Io`.
pub(crate) fn is_overwritten(file: &dyn DiskFile, path: &Path) -> Result<bool, Error> {
    Ok(copies(file, path)?.iter().all(|bytes| matches!(Meta::decode(bytes), Err(Flaw::Foreign))))
}

/// The bytes of both copies of meta; zeros behind the end of the file.
fn copies(file: &dyn DiskFile, path: &Path) -> Result<[[u8; META_BYTES]; 2], Error> {
    let size = file.size().map_err(|source| io_error("find out the size", path, source))?;
    let mut copies = [[0; META_BYTES]; 2];
    for (slot, bytes) in copies.iter_mut().enumerate() {
        let offset = (slot * PAGE) as u64;
        if offset + META_BYTES as u64 <= size {
            file.read_at(bytes, offset).map_err(|source| io_error("read meta", path, source))?;
        }
    }
    Ok(copies)
}

/// Says what a file without a good copy of meta is.
fn refusal(path: &Path, flaws: &[Flaw]) -> Error {
    let mut why = None;
    for flaw in flaws.iter().rev() {
        why = match flaw {
            Flaw::Foreign => why,
            Flaw::Sum => {
                return Error::Corrupt {
                    place: format!(
                        "{}: both copies of meta (pages 0 and 1) are bad: restore a backup",
                        path.display()
                    ),
                }
            }
            Flaw::Format(format) if *format > FORMAT => Some(format!(
                "has format {format}, this version reads formats up to {FORMAT}: use a newer version of Perilune"
            )),
            Flaw::Format(format) => Some(format!("has format {format}, which no version of Perilune writes")),
            Flaw::PageSize(bytes) => Some(format!(
                "has pages of {bytes} bytes, this build reads pages of {PAGE}: use a build made for them"
            )),
        };
    }
    let why = why.unwrap_or_else(|| {
        "is not a Perilune database: give another path, or move the file away to create one here".to_owned()
    });
    Error::NotADatabase { place: path.into(), why }
}

/// Writes a copy of meta into `slot`; the caller syncs the file.
///
/// # Errors
/// `NoSpace`, `Io`.
pub(crate) fn put(file: &dyn DiskFile, path: &Path, slot: usize, meta: &Meta) -> Result<(), Error> {
    let written = file.write_at(&meta.encode(), (slot * PAGE) as u64);
    written.map_err(|source| space_error("write meta", path, source))
}

/// Writes a copy of meta into `slot` and makes it durable.
///
/// # Errors
/// `NoSpace`, `Io`.
pub(crate) fn write(file: &dyn DiskFile, path: &Path, slot: usize, meta: &Meta) -> Result<(), Error> {
    put(file, path, slot, meta)?;
    file.sync_data().map_err(|source| space_error("sync meta", path, source))
}

/// The path with something behind its name.
pub(crate) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Meta {
        Meta {
            uuid: [7; 16],
            serial: 9,
            stamp: 1 << 63 | 5,
            generation: 11,
            root: 200,
            height: 2,
            is_open: true,
            has_delta: false,
            npages: 1 << 33,
            wal_batch: 0,
            log_segment: 1 << 40,
            log_mark: 1 << 63 | 3,
            level: 0,
            info_sum: 0xdead_beef,
        }
    }

    #[test]
    fn a_serial_names_its_slot_and_rises() {
        for (before, slot) in [(1, 0), (1, 1), (2, 0), (2, 1)] {
            let next = next_serial(before, slot);
            assert_eq!((slot_of(next), next > before && next <= before + 2), (slot, true), "{before} {slot}");
        }
    }

    #[test]
    fn meta_is_read_back_or_refused() {
        let bytes = sample().encode();
        assert_eq!(Meta::decode(&bytes), Ok(sample()));
        let waiting = Meta { is_open: false, has_delta: true, ..sample() };
        assert_eq!(Meta::decode(&waiting.encode()), Ok(waiting));
        let mut of_before = bytes;
        of_before[8] = FORMAT_MIN as u8;
        let sum = crc32c::crc32c(&of_before[..META_BYTES - 4]);
        of_before[META_BYTES - 4..].copy_from_slice(&sum.to_le_bytes());
        assert_eq!(Meta::decode(&of_before), Ok(sample()));
        for at in 0..META_BYTES {
            let mut damaged = bytes;
            damaged[at] ^= 0x10;
            let flaw = Meta::decode(&damaged).unwrap_err();
            let expected = match at {
                0..8 => Flaw::Foreign,
                8 => Flaw::Format(FORMAT ^ 0x10),
                9..12 => Flaw::Format(FORMAT ^ 0x10 << (8 * (at - 8))),
                _ => Flaw::Sum,
            };
            assert_eq!(flaw, expected, "byte {at}");
        }
    }
}
