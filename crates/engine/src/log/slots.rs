//! The table of segments in `-shm`: which files there are, which are in use, which are spare.
//!
//! A slot is nothing (no file), *spare* (a file of zeros or of batches that are needed no more, all of
//! its bytes allocated and on disk), or in use as the segment with a sequence number.
//!
//! Invariants
//! - Sequence numbers in use follow each other, up to the position's or, if a writer died, a few more.
//! - Only the owner of `log` makes spare slots used and used ones spare; only the owner of `spare`
//!   makes files.
//!
//! What if we are killed? Making a file: no slot says so, the next one makes it again. A slot numbered
//! for a batch that was not finished: the batch is written again, and finds it by that number.

use std::path::Path;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::Arc;

use perilune_disk::Disk;
use perilune_shm::platform;
use perilune_store::{Durability, Error, Result};

use super::batch::{Segment, Segments, Spot};
use super::flush::level;
use super::frame::{SegmentHead, BLOCK};
use super::{position, segment};
use crate::duty;
use crate::image::layout::{control, header, LOG_SLOTS_AT, LOG_SLOT_BYTES};
use crate::image::{io_error, space_error, Image};
use crate::limits::{LOG_SLOTS, LOG_SPARES};

/// Bit of a slot's first word: there is a file. The rest is the sequence number; 0: spare.
const EXISTS: u64 = 1 << 63;

/// The word of a slot: [`EXISTS`] and sequence number.
fn word(image: &Image, slot: usize) -> &AtomicU64 {
    image.shm.word(LOG_SLOTS_AT + slot * LOG_SLOT_BYTES)
}

/// The last batch of which there may be something in a slot's segment.
fn last_batch(image: &Image, slot: usize) -> &AtomicU64 {
    image.shm.word(LOG_SLOTS_AT + slot * LOG_SLOT_BYTES + 8)
}

/// The slots in use, with their sequence numbers.
pub(super) fn used(image: &Image) -> impl Iterator<Item = (u32, u64)> + '_ {
    (0..LOG_SLOTS).filter_map(|slot| {
        let sequence = word(image, slot).load(Acquire) & !EXISTS;
        (sequence != 0).then_some((slot as u32, sequence))
    })
}

/// The largest spare slot.
fn spare(image: &Image) -> Option<u32> {
    (0..LOG_SLOTS as u32)
        .filter(|slot| word(image, *slot as usize).load(Acquire) == EXISTS)
        .max_by_key(|slot| segment::bytes(*slot))
}

/// Whether a spare segment will be needed soon and is not there.
pub(super) fn wants_spare(image: &Image) -> bool {
    let spot = position::read(image).spot;
    spot.sequence != 0 && spot.offset > segment::bytes(spot.slot) / 2 && spare(image).is_none()
}

/// Room in the segment in which the log goes on.
pub(super) struct Left {
    pub(super) part: u64,
    pub(super) whole: u64,
}

/// What is left of the segment in which the log goes on.
pub(super) fn left(image: &Image) -> Left {
    let spot = position::read(image).spot;
    let whole = segment::bytes(spot.slot);
    Left { part: whole - spot.offset.min(whole), whole }
}

/// Bytes left in the segment in which the log goes on; None before the first batch.
#[cfg(feature = "instrument")]
pub(crate) fn room(image: &Image) -> Option<u64> {
    let spot = position::read(image).spot;
    (spot.sequence != 0).then(|| segment::bytes(spot.slot) - spot.offset)
}

/// Sees to it that there is a spare segment.
///
/// # Errors
/// `NoSpace`; `LimitReached` when the log has too many segments; `Io`.
pub(super) fn provide(image: &Arc<Image>) -> Result<u32> {
    if let Some(slot) = spare(image) {
        return Ok(slot);
    }
    let _duty = duty::take(image, control::SPARE_OWNER)?;
    match spare(image) {
        Some(slot) => Ok(slot),
        None => make(image),
    }
}

/// The same, but does not wait for somebody who is making one.
///
/// # Errors
/// As [`provide`].
pub(super) fn provide_if_nobody_does(image: &Arc<Image>) -> Result<()> {
    if spare(image).is_some() {
        return Ok(());
    }
    match duty::try_take(image, control::SPARE_OWNER) {
        Some(_duty) if spare(image).is_none() => make(image).map(drop),
        _ => Ok(()),
    }
}

/// Makes a spare segment. The caller has the duty `spare`.
fn make(image: &Arc<Image>) -> Result<u32> {
    let nothing = (0..LOG_SLOTS).find(|slot| word(image, *slot).load(Acquire) == 0);
    let slot = nothing.ok_or(Error::LimitReached {
        what: "segments of log: have a checkpoint taken (close the database, or db:checkpoint())",
        limit: LOG_SLOTS as u64,
    })?;
    let path = segment::path(&image.path, slot as u32);
    let made = fill(image, slot as u32);
    if let Err(source) = made {
        // What is left of it only takes space that is short.
        let _ = image.disk.remove(&path);
        return Err(space_error("make a segment of the log", &path, source));
    }
    word(image, slot).store(EXISTS, Release);
    Ok(slot as u32)
}

fn fill(image: &Image, slot: u32) -> std::io::Result<()> {
    let path = segment::path(&image.path, slot);
    let file = image.disk.create(&path, &image.path)?;
    let (bytes, waits) = (segment::bytes(slot), level(image) == Durability::Fsync);
    if !waits || super::level::is_full(image) {
        // NB: a disk that is full still says so at once: this is tried again and again.
        let mapped = std::fs::File::options().write(true).open(&path)?;
        image.disk.allocate(bytes, &|bytes| platform::allocate(&mapped, 0, bytes))?;
    }
    if waits {
        // What was written before is synced sooner than what was only allocated: each commit waits for that. Where
        // none does, all that counts is how soon a full segment has a successor.
        file.write_zeros(0, bytes)?;
    }
    file.sync_data()?;
    match path.parent() {
        Some(directory) => image.disk.sync_directory(directory),
        None => Ok(()),
    }
}

/// The segments of an image, for the writer of batch `batch`, who owns the log.
pub(super) struct Files<'a> {
    pub(super) image: &'a Arc<Image>,
    pub(super) batch: u64,
}

impl Segments for Files<'_> {
    fn open(&mut self, spot: Spot) -> Result<Segment> {
        let path = segment::path(&self.image.path, spot.slot);
        let file = self.image.disk.open(&path, true).map_err(|source| io_error("open", &path, source))?;
        last_batch(self.image, spot.slot as usize).store(self.batch, Release);
        Ok(Segment { file, spot, bytes: segment::bytes(spot.slot), head: None })
    }

    fn next(&mut self, spot: Spot, batch: u64, chunk: u32) -> Result<Segment> {
        let sequence = spot.sequence + 1;
        // One that a writer who died has numbered, or a spare one.
        let numbered = used(self.image).find(|(_, found)| *found == sequence).map(|(slot, _)| slot);
        let slot = match numbered {
            Some(slot) => slot,
            None => provide(self.image)?,
        };
        word(self.image, slot as usize).store(EXISTS | sequence, Release);
        let segment = self.open(Spot { slot, sequence, offset: 0 })?;
        let head = SegmentHead { uuid: uuid(self.image), sequence, bytes: segment.bytes, batch, chunk };
        Ok(Segment { head: Some(head.encode()), ..segment })
    }

    fn write_error(&self, segment: &Segment, source: std::io::Error) -> Error {
        space_error("write the log", &segment::path(&self.image.path, segment.spot.slot), source)
    }
}

/// The database's id.
pub(super) fn uuid(image: &Image) -> [u8; 16] {
    let mut uuid = [0; 16];
    uuid[..8].copy_from_slice(&image.shm.word(header::UUID).load(Acquire).to_le_bytes());
    uuid[8..].copy_from_slice(&image.shm.word(header::UUID + 8).load(Acquire).to_le_bytes());
    uuid
}

/// Makes the segments spare all of whose batches are below `first`, and removes some of many spares.
///
/// # Errors
/// As `duty::take`.
pub(super) fn recycle(image: &Arc<Image>, first: u64) -> Result<()> {
    let _duty = duty::take(image, control::LOG_OWNER)?;
    let present = position::read(image).spot.sequence;
    for (slot, sequence) in used(image) {
        if sequence < present && last_batch(image, slot as usize).load(Acquire) < first {
            word(image, slot as usize).store(EXISTS, Release);
        }
    }
    let Some(_making) = duty::try_take(image, control::SPARE_OWNER) else { return Ok(()) };
    let spares = (0..LOG_SLOTS).filter(|slot| word(image, *slot).load(Acquire) == EXISTS);
    for slot in spares.collect::<Vec<_>>().into_iter().skip(LOG_SPARES) {
        word(image, slot).store(0, Release);
        // One that cannot be removed is overwritten when its slot is used again.
        let _ = image.disk.remove(&segment::path(&image.path, slot as u32));
    }
    Ok(())
}

/// Forgets all segments, and removes their files. Nobody else is attached, and none is needed.
///
/// # Errors
/// `Io`.
pub(super) fn clear(image: &Image) -> Result<()> {
    for slot in 0..LOG_SLOTS {
        word(image, slot).store(0, Release);
    }
    remove_files(&*image.disk, &image.path)
}

/// Removes the files of the log of the database at `database`, which nobody has open and which needs none.
///
/// # Errors
/// `Io`.
pub(crate) fn remove_files(disk: &dyn Disk, database: &Path) -> Result<()> {
    let files = segment::files(disk, database)?;
    for (_, path) in &files {
        disk.remove(path).map_err(|source| io_error("remove", path, source))?;
    }
    match database.parent() {
        // NB: an old segment that came back after a crash could be taken for one of the new log.
        Some(directory) if !files.is_empty() => {
            disk.sync_directory(directory).map_err(|source| io_error("sync", directory, source))
        }
        _ => Ok(()),
    }
}

/// Bytes of the segments in use.
pub(super) fn size(image: &Image) -> u64 {
    used(image).map(|(slot, _)| segment::bytes(slot)).sum()
}

const _: () = assert!(BLOCK.is_multiple_of(LOG_SLOT_BYTES));
