//! The table of segments in `-shm`: which files there are, which are in use, which are spare.
//!
//! A slot is nothing (no file, or one that is cut), *spare* (a file of zeros or of batches that are needed no more,
//! all of its bytes allocated and on disk), or in use as the segment with a sequence number.
//!
//! A name says nothing: the database may have been removed, and another one have come there. Every file of this log
//! bears, from when it is made, the uuid and the mark of this `-shm`; each time one is opened that is looked at.
//!
//! Invariants
//! - A file is made where there is none; one that is there and does not bear the mark is never written to, cut or
//!   renamed: its slot is passed over.
//! - While a database is open no name of a file is removed, which could be another's by then: what is too much is cut.
//! - Sequence numbers in use follow each other, up to the position's or, if a writer died, a few more.
//! - Only the owner of `log` makes spare slots used and used ones spare; only the owner of `spare`
//!   makes files.
//!
//! What if we are killed? Making a file: no slot says so, the next one finds it by its mark and goes on; if it has
//! none yet it is empty, and its slot is passed over until `-shm` is built anew. The slot given up, the file not cut:
//! as if it were being made. A slot numbered for a batch that was not finished: the batch is written again, and finds
//! it by that number.

use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::Arc;

use perilune_disk::{open_there, Disk, DiskFile, FileId};
use perilune_shm::platform;
use perilune_store::{Durability, Error, Result};

use super::batch::{Segment, Segments, Spot};
use super::flush::level;
use super::frame::{SegmentHead, BLOCK, FORMAT, HEAD_READ};
use super::{position, segment};
use super::{read, LogId};
use crate::duty;
use crate::image::layout::{control, header, LOG_SLOTS_AT, LOG_SLOT_BYTES};
use crate::image::{io_error, space_error, Image};
use crate::limits::{LOG_CHECKPOINT, LOG_SLOTS, LOG_SPARES};

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

/// Bytes of log after which a checkpoint is taken.
pub(super) fn enough(image: &Image) -> u64 {
    image.control(control::LOG_ENOUGH).load(Acquire)
}

/// Bytes of the file of a slot.
pub(super) fn bytes(image: &Image, slot: u32) -> u64 {
    segment::bytes(slot, enough(image))
}

/// The slots in use, with their sequence numbers.
pub(crate) fn used(image: &Image) -> impl Iterator<Item = (u32, u64)> + '_ {
    (0..LOG_SLOTS).filter_map(|slot| {
        let sequence = word(image, slot).load(Acquire) & !EXISTS;
        (sequence != 0).then_some((slot as u32, sequence))
    })
}

/// The largest spare slot.
fn spare(image: &Image) -> Option<u32> {
    (0..LOG_SLOTS as u32)
        .filter(|slot| word(image, *slot as usize).load(Acquire) == EXISTS)
        .max_by_key(|slot| bytes(image, *slot))
}

/// Whether a spare segment will be needed soon and is not there.
pub(super) fn wants_spare(image: &Image) -> bool {
    let spot = position::read(image).spot;
    spot.sequence != 0 && spot.offset > bytes(image, spot.slot) / 2 && spare(image).is_none()
}

/// Room in the segment in which the log goes on.
pub(super) struct Left {
    pub(super) part: u64,
    pub(super) whole: u64,
}

/// What is left of the segment in which the log goes on.
pub(super) fn left(image: &Image) -> Left {
    let spot = position::read(image).spot;
    let whole = bytes(image, spot.slot);
    Left { part: whole - spot.offset.min(whole), whole }
}

/// Bytes left in the segment in which the log goes on; None before the first batch.
#[cfg(feature = "instrument")]
pub(crate) fn room(image: &Image) -> Option<u64> {
    let spot = position::read(image).spot;
    (spot.sequence != 0).then(|| bytes(image, spot.slot).saturating_sub(spot.offset))
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

/// Sees to it that there is a spare segment, or that somebody is making one, for whom it does not wait.
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
    for slot in (0..LOG_SLOTS).filter(|slot| word(image, *slot).load(Acquire) == 0) {
        if make_in(image, slot as u32)? {
            word(image, slot).store(EXISTS, Release);
            return Ok(slot as u32);
        }
    }
    Err(Error::LimitReached {
        what: "segments of log: have a checkpoint taken (close the database, or db:checkpoint())",
        limit: LOG_SLOTS as u64,
    })
}

/// Makes the file of a slot; false if there is one that is not this log's.
fn make_in(image: &Image, slot: u32) -> Result<bool> {
    let path = segment::path(&image.path, slot);
    let failed = |source| space_error("make a segment of the log", &path, source);
    // NB: beside another database nothing is made.
    let access = image.access_beside()?;
    let (file, is_new) = match image.disk.create(&path, access) {
        Ok(file) => (file, true),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            // Whatever it is, a link or a pipe also.
            let Ok(file) = image.disk.open(&path, true) else { return Ok(false) };
            if !is_ours(image, &*file, None).map_err(failed)? {
                return Ok(false);
            }
            (file, false)
        }
        Err(source) => return Err(failed(source)),
    };
    let head = SegmentHead::spare(uuid(image), mark(image));
    let marked = file.write_at(&head, 0);
    if marked.is_err() && is_new {
        // Without its mark it would never be used, and a full disk is tried again and again.
        let is_there = || Ok(FileId::at(&path)? == file.id()?);
        let _ = is_there().and_then(|is: bool| if is { image.disk.remove(&path) } else { Ok(false) });
    }
    marked.and_then(|()| fill(image, slot, &path, &*file)).map(|()| true).map_err(|source| {
        // What is left of it only takes space that is short.
        let _ = file.cut(BLOCK as u64);
        failed(source)
    })
}

fn fill(image: &Image, slot: u32, path: &Path, file: &dyn DiskFile) -> io::Result<()> {
    let (bytes, waits) = (bytes(image, slot), level(image) == Durability::Fsync);
    if !waits || super::level::is_full(image) {
        // NB: a disk that is full still says so at once: this is tried again and again.
        let mapped = open_there(path, true)?;
        if FileId::of(&mapped)? != file.id()? {
            return Err(ErrorKind::NotFound.into());
        }
        image.disk.allocate(bytes, &|bytes| platform::allocate(&mapped, 0, bytes))?;
    }
    if waits {
        // Blocks that have been written once are synced faster than blocks that were only allocated, and each commit waits
        // for a sync. Where no commit waits, all that counts is how soon a full segment has a successor.
        file.write_zeros(BLOCK as u64, bytes - BLOCK as u64)?;
    }
    file.sync_data()?;
    match path.parent() {
        Some(directory) => image.disk.sync_directory(directory),
        None => Ok(()),
    }
}

/// Whether a file bears the mark of this log and, if that is asked for, is the segment `sequence` of it.
fn is_ours(image: &Image, file: &dyn DiskFile, sequence: Option<u64>) -> io::Result<bool> {
    let mut block = [0; HEAD_READ];
    match file.read_at(&mut block, 0) {
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(false),
        read => read?,
    }
    Ok(SegmentHead::of_file(&block).is_some_and(|head| {
        (head.uuid, head.mark) == (uuid(image), mark(image))
            && sequence.is_none_or(|sequence| head.sequence == sequence)
    }))
}

/// Opens the file of a slot to write, which is looked at: the segment `sequence`, or any file of this log.
///
/// # Errors
/// `Replaced` if there is none, or one of another log; `Io`.
pub(super) fn open(image: &Image, slot: u32, sequence: Option<u64>) -> Result<Box<dyn DiskFile>> {
    let path = segment::path(&image.path, slot);
    let file = image.disk.open(&path, true).map_err(|source| image.open_error(&path, source))?;
    match is_ours(image, &*file, sequence) {
        Ok(true) => Ok(file),
        Ok(false) => Err(image.lose()),
        Err(source) => Err(io_error("read", &path, source)),
    }
}

/// Opens the segment `sequence`, which `slot` was seen to hold, by one who does not own the log. None: meanwhile a
/// checkpoint has made the segment superfluous, and its file may be another one.
///
/// # Errors
/// As [`open`].
pub(crate) fn open_if_used(image: &Image, slot: u32, sequence: u64) -> Result<Option<Box<dyn DiskFile>>> {
    let path = segment::path(&image.path, slot);
    let file = image.disk.open(&path, true).map_err(|source| image.open_error(&path, source))?;
    match is_ours(image, &*file, Some(sequence)) {
        Ok(true) => Ok(Some(file)),
        // NB: whoever changes the file has changed the slot before.
        Ok(false) if word(image, slot as usize).load(Acquire) != EXISTS | sequence => Ok(None),
        Ok(false) => Err(image.lose()),
        Err(source) => Err(io_error("read", &path, source)),
    }
}

/// The segments of an image, for the writer of batch `batch`, who owns the log.
pub(super) struct Files<'a> {
    pub(super) image: &'a Arc<Image>,
    pub(super) batch: u64,
}

impl Segments for Files<'_> {
    fn open(&mut self, spot: Spot) -> Result<Segment> {
        // NB: a segment that is new, or was numbered by one who died, may still have the head of before.
        let sequence = (spot.offset > 0).then_some(spot.sequence);
        let file = open(self.image, spot.slot, sequence)?;
        last_batch(self.image, spot.slot as usize).store(self.batch, Release);
        Ok(Segment { file, spot, bytes: bytes(self.image, spot.slot), head: None })
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
        let (uuid, mark, bytes) = (uuid(self.image), mark(self.image), segment.bytes);
        let head = SegmentHead { uuid, sequence, bytes, batch, chunk, mark, format: FORMAT };
        Ok(Segment { head: Some(head.encode()), ..segment })
    }

    fn write_error(&self, segment: &Segment, source: io::Error) -> Error {
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

/// The mark that all files of this log bear.
pub(super) fn mark(image: &Image) -> u64 {
    image.control(control::LOG_MARK).load(Acquire)
}

/// Makes the segments spare all of whose batches are below `first`, and cuts some of many spares.
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
    // Of a small file system four spares would be a large part.
    let kept = if enough(image) < LOG_CHECKPOINT { LOG_SPARES / 2 } else { LOG_SPARES };
    for slot in spares.collect::<Vec<_>>().into_iter().skip(kept) {
        word(image, slot).store(0, Release);
        // One that cannot be cut is written over when its slot is used again.
        if let Ok(file) = open(image, slot as u32, None) {
            let head = SegmentHead::spare(uuid(image), mark(image));
            let _ = file.write_at(&head, 0).and_then(|()| file.cut(BLOCK as u64));
        }
    }
    Ok(())
}

/// Whether the files are there that the slots speak of.
///
/// # Errors
/// `Io`.
pub(super) fn are_there(image: &Image) -> Result<bool> {
    for slot in (0..LOG_SLOTS).filter(|slot| word(image, *slot).load(Acquire) != 0) {
        if !is_there(image, slot as u32)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Forgets the files that are not there. The caller owns the log.
///
/// # Errors
/// `Io`.
pub(super) fn forget_missing(image: &Image) -> Result<()> {
    for slot in (0..LOG_SLOTS).filter(|slot| word(image, *slot).load(Acquire) != 0) {
        if !is_there(image, slot as u32)? {
            word(image, slot).store(0, Release);
        }
    }
    Ok(())
}

fn is_there(image: &Image, slot: u32) -> Result<bool> {
    let path = segment::path(&image.path, slot);
    match image.disk.open(&path, true) {
        Ok(file) => is_ours(image, &*file, None).map_err(|source| io_error("read", &path, source)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(source) => Err(io_error("open", &path, source)),
    }
}

/// Forgets all segments, and removes the files of the one before. The
/// caller builds `-shm`: nobody is attached, and none is needed.
///
/// # Errors
/// `Io`.
pub(super) fn clear(image: &Image) -> Result<()> {
    for slot in 0..LOG_SLOTS {
        word(image, slot).store(0, Release);
    }
    // NB: of whichever mark: they are of this database, and older.
    remove_files(&*image.disk, &image.path, LogId { uuid: uuid(image), mark: 0 })
}

/// Removes the files of the log `id` beside `database`, which nobody has open and which needs none. Those of another
/// database that has had the name stay: it may be in use, and need them.
///
/// # Errors
/// `Io`.
pub(crate) fn remove_files(disk: &dyn Disk, database: &Path, id: LogId) -> Result<()> {
    let mut has_removed = false;
    for (_, path) in segment::files(disk, database)? {
        let Ok(file) = disk.open(&path, false) else { continue };
        let mut block = [0; HEAD_READ];
        // What has no head was being made when its maker was killed, or is a spare file of an older version.
        let is_read = file.read_at(&mut block, 0).is_ok();
        let is_blank = is_read && block == [0; HEAD_READ] || file.size().is_ok_and(|bytes| bytes == 0);
        if is_blank || SegmentHead::of_file(&block).is_some_and(|head| read::is_of(id, &head)) {
            has_removed |= disk.remove(&path).map_err(|source| io_error("remove", &path, source))?;
        }
    }
    match database.parent() {
        // NB: an old segment that came back after a crash could be taken for one of the new log.
        Some(directory) if has_removed => {
            disk.sync_directory(directory).map_err(|source| io_error("sync", directory, source))
        }
        _ => Ok(()),
    }
}

/// Bytes of the segments in use.
pub(super) fn size(image: &Image) -> u64 {
    used(image).map(|(slot, _)| bytes(image, slot)).sum()
}

const _: () = assert!(BLOCK.is_multiple_of(LOG_SLOT_BYTES));
