//! Durability levels of a database, and how a log begins and ends with them.
//!
//! The level (`none`, `periodic`, `fsync`) is a part of the FLAGS word and changes by the handshake of `control`:
//! whoever publishes knows whether there is a log.
//!
//! A database that goes from `none` to another level begins a log. That covers only what is published from then on,
//! so whoever changes the level also takes a checkpoint, for all that was before. Until the checkpoint is complete,
//! meta does not name the log: it is *unnamed*, no recovery would read it, and nothing in it counts as durable.
//!
//! What if we are killed? Level stored, log not begun: the interval of the next batch begins earlier than it
//! should. No log belongs to the database, as meta has it, until the checkpoint; and that is taken by whoever is
//! the first to wait for the disk, or to look after checkpoints.

use std::sync::atomic::Ordering::{AcqRel, Acquire, Release};
use std::sync::Arc;

use perilune_shm::platform;
use perilune_store::{Durability, Result};

use super::batch::Spot;
use super::flush::level;
use super::position::{self, Position};
use super::slots;
use crate::control::freeze;
use crate::duty;
use crate::image::layout::{control, FLAG_FULL, FLAG_LEVEL, FLAG_SPENT, FLAG_UNNAMED};
use crate::image::Image;

/// The bits of a level in the FLAGS word.
pub(crate) fn flag_of(level: Durability) -> u64 {
    (level as u64) << 8
}

/// The level that meta names by a number.
pub(crate) fn level_of_meta(number: u32) -> Durability {
    match number {
        0 => Durability::None,
        1 => Durability::Periodic,
        _ => Durability::Fsync,
    }
}

/// The number of the batch that is written next; 0 at level none, where there is no log. A checkpoint
/// asks before its cut: what is in batches below it is part of the checkpoint.
pub(crate) fn next_batch(image: &Image) -> u64 {
    match level(image) {
        Durability::None => 0,
        _ => position::read(image).batch + 1,
    }
}

/// Sequence number of the segment in which the next batch begins, if that is known to be on disk; else, and
/// at level none, 0. It is kept at least until the checkpoint that asked has been followed by another.
pub(crate) fn segment(image: &Image) -> u64 {
    let sequence = position::read(image).spot.sequence;
    let is_synced = image.control(control::DURABLE_SEQUENCE).load(Acquire) == sequence;
    if is_synced && level(image) != Durability::None {
        sequence
    } else {
        0
    }
}

/// Whether the log is long enough for a checkpoint.
pub(crate) fn is_enough(image: &Image) -> bool {
    slots::size(image) > slots::enough(image)
}

/// Whether the log cannot grow.
pub(crate) fn is_full(image: &Image) -> bool {
    image.control(control::FLAGS).load(Acquire) & FLAG_FULL != 0
}

/// Changes the level; the caller then has a checkpoint taken if there was no log and now is, or the reverse.
///
/// # Errors
/// As `duty::take`.
pub(crate) fn set_level(image: &Arc<Image>, wanted: Durability) -> Result<()> {
    let _sync = duty::take(image, control::SYNC_OWNER)?;
    let _log = duty::take(image, control::LOG_OWNER)?;
    let had = level(image);
    put_level(image, wanted, had == Durability::None);
    if had == Durability::None && wanted != Durability::None {
        let until = image.control(control::FLUSH).fetch_add(1, AcqRel);
        freeze(image);
        // NB: a number is skipped, so that no batch of an earlier log is taken for one of this.
        let position = position::read(image);
        let batch = position.batch + 1;
        position::select(image, &Position { batch, until, ..position });
        image.control(control::DURABLE_BATCH).store(batch, Release);
        image.control(control::DURABLE_FLUSH).store(until, Release);
    } else {
        freeze(image);
    }
    Ok(())
}

fn put_level(image: &Image, level: Durability, begins: bool) {
    let unnamed = |flags: u64| match level {
        Durability::None => 0,
        _ if begins => FLAG_UNNAMED,
        _ => flags & FLAG_UNNAMED,
    };
    let flags = image.control(control::FLAGS);
    // Without a log nobody would lower these flags, which say that the log cannot grow.
    let full = if level == Durability::None { FLAG_FULL | FLAG_SPENT } else { 0 };
    let dropped = FLAG_LEVEL | FLAG_UNNAMED | full;
    let changed = |flags: u64| Some(flags & !dropped | flag_of(level) | unnamed(flags));
    // NB: cannot fail, the closure always answers.
    let _ = flags.fetch_update(AcqRel, Acquire, changed);
}

/// Whether the log has begun and meta does not name it: what is in it is durable only after a checkpoint.
pub(crate) fn is_unnamed(image: &Image) -> bool {
    image.control(control::FLAGS).load(Acquire) & FLAG_UNNAMED != 0
}

/// Notes that meta, on disk, names the log, as it was when `level` was asked for. The caller has the duty
/// `checkpoint`. The level is lowered only with nobody else attached, so it is still that log.
pub(crate) fn note_named(image: &Image, level: u32) {
    if level_of_meta(level) != Durability::None {
        image.control(control::FLAGS).fetch_and(!FLAG_UNNAMED, AcqRel);
    }
}

/// Begins a log in a new `-shm`, with this batch, at this level. Nobody is attached. Nothing may be
/// committed before [`clear`], and that not before the log of before is needed no more.
pub(crate) fn restart(image: &Image, next_batch: u64, level: Durability) {
    // NB: kept in `-shm`, so that all agree on how long files are, whatever becomes of the file system.
    let capacity = platform::space(&image.path).map_or(u64::MAX, |space| space.whole);
    image.control(control::LOG_ENOUGH).store(super::segment::enough(capacity), Release);
    // NB: before the first file is made, which bears it.
    image.control(control::LOG_MARK).store(platform::random_u64().max(1), Release);
    let until = image.control(control::FLUSH).fetch_add(1, AcqRel);
    let batch = next_batch.max(1) - 1;
    position::select(image, &Position { batch, until, ..Position::default() });
    image.control(control::DURABLE_BATCH).store(batch, Release);
    image.control(control::DURABLE_FLUSH).store(until, Release);
    image.control(control::DURABLE_SEQUENCE).store(0, Release);
    // NB: meta names it already, or will before anybody can commit.
    put_level(image, level, false);
}

/// Lets the log go on in another segment after a failed sync, which may have left a hole in this one: what
/// comes behind a hole is never read. All batches before are about to become part of a checkpoint.
///
/// # Errors
/// As `duty::take`.
pub(crate) fn leave_segment(image: &Arc<Image>) -> Result<()> {
    let _sync = duty::take(image, control::SYNC_OWNER)?;
    let _log = duty::take(image, control::LOG_OWNER)?;
    let mut position = position::read(image);
    if position.spot.sequence != 0 {
        position.spot.offset = slots::bytes(image, position.spot.slot);
        position::select(image, &position);
        image.control(control::DURABLE_BATCH).store(position.batch, Release);
        image.control(control::DURABLE_SEQUENCE).store(position.spot.sequence + 1, Release);
    }
    Ok(())
}

/// Lets the log go on without the files that somebody has removed while nobody was attached; true if there are such.
/// The caller is the only one attached, and has a checkpoint taken before anything is committed.
///
/// # Errors
/// `Io`; as `duty::take`.
pub(crate) fn leave_missing(image: &Arc<Image>) -> Result<bool> {
    if slots::are_there(image)? {
        return Ok(false);
    }
    let _sync = duty::take(image, control::SYNC_OWNER)?;
    let _log = duty::take(image, control::LOG_OWNER)?;
    let mut position = position::read(image);
    if position.spot.sequence != 0 {
        position.spot.offset = Spot::FILE_MISSING;
        position::select(image, &position);
        image.control(control::DURABLE_BATCH).store(position.batch, Release);
        image.control(control::DURABLE_SEQUENCE).store(position.spot.sequence + 1, Release);
    }
    slots::forget_missing(image)?;
    Ok(true)
}

/// The mark of the log's files, which meta names.
pub(crate) fn mark(image: &Image) -> u64 {
    slots::mark(image)
}

/// Removes the files of the log of before.
///
/// # Errors
/// `Io`.
pub(crate) fn clear(image: &Image) -> Result<()> {
    slots::clear(image)
}

/// Makes the segments spare that hold only batches below `first`: call it once meta says, on disk, that
/// the log begins there (0: there is none).
///
/// # Errors
/// As `duty::take`.
pub(crate) fn recycle(image: &Arc<Image>, first: u64) -> Result<()> {
    slots::recycle(image, if first == 0 { u64::MAX } else { first })
}

/// Bytes of the segments that the next recovery may have to read.
pub(crate) fn size(image: &Image) -> u64 {
    slots::size(image)
}

const _: () = assert!(Durability::None as u64 == 0 && Durability::Fsync as u64 == 2);
