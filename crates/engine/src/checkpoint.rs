//! Checkpoints: a whole state of the database on disk, taken while others write. And meta's word for whether the
//! file may have changed since.
//!
//! Problem: the kernel writes mapped pages to disk when it likes, so after a power loss the file holds pages of
//! many moments. Idea: a page of the last checkpoint is never changed; who wants to change it copies it first. So
//! it is enough to end a generation, to sync its pages, and to name its root in meta.
//!
//! Example: generation 7 is the durable one and 8 the present one. A checkpoint takes the duty `checkpoint`. Then it
//! 1. makes a cut: writers go on in generation 9, and a pin keeps the pages of 8 as they are;
//! 2. writes the sums of pages that have changed since 7 into info pages, in slots that do not count for 7;
//! 3. calls `fdatasync`, which also flushes the mapped pages; writes meta, which names 8 and its root; `fdatasync` again;
//! 4. stores 8 in `DURABLE_GEN` and lets the pin go: what only 7 needed may be used again.
//!
//! [`close`] does the same for the last process to leave, and meta then says "closed". [`mark_open`] writes meta
//! when the first process comes, before any change.
//!
//! Invariants
//! - Nothing that meta names is written after meta, until the next checkpoint is durable.
//! - The file's meta, not `-shm`, says which generation is durable; `DURABLE_GEN` never exceeds it.
//! - Before a slot or a page of the generation before may be written, meta is known to be on disk.
//! - A slot of an info page is left over from a checkpoint that did not end if its generation is above the durable
//!   one, or if it is for pages that the durable one did not have. The next checkpoint writes it, so that it can
//!   never be taken for a good one.
//!
//! Killed anywhere: see the table in docs/design/0015-checkpoints-and-recovery.md.
//!
//! Deliberately absent: who calls [`tend`] (`maintenance`); how the log is written.

use std::io;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::Arc;
use std::time::Duration;

use perilune_disk::{Disk, DiskFile};
use perilune_shm::platform;
use perilune_store::{Durability, Error, Result};

use crate::image::layout::{control, FLAG_FAILED};
use crate::image::Image;
use crate::limits::{CHECKPOINT_PERIOD, PAGE};
use crate::meta::info::{self, GenerationSum, Place};
use crate::meta::survey::Survey;
use crate::meta::{self, space_error, sums, Meta};
use crate::pin::{self, Purpose};
use crate::planted::{is_planted, Bug};
use crate::{control as handshake, duty, log, notice, page};

/// Header word: stamp of the newest copy of meta that this `-shm` goes with.
pub(crate) const STAMP: usize = 88;
/// Header word: stamp of the copy of meta that is being written, or was last.
pub(crate) const NEXT_STAMP: usize = 96;
/// Header word: 1 when a sync has failed; the kernel may then take pages for written that are not.
pub(crate) const REWRITE: usize = 104;

/// Writes into meta that the file may change from now on, and answers the level that it names, on disk. For the
/// first process to attach, before it changes anything.
///
/// # Errors
/// `NoSpace`, `Io`; what `meta::newest` answers.
pub(crate) fn mark_open(image: &Arc<Image>, disk: &dyn Disk) -> Result<Durability> {
    image.control(control::CLOSED).store(0, Release);
    let file = image.database(disk, true)?;
    let (slot, meta) = settled(image, &*file)?;
    if meta.is_open {
        return Ok(log::level_of_meta(meta.level));
    }
    let log = log_state(image)?;
    let meta = log.put_into(Meta { is_open: true, ..meta });
    let level = log::level_of_meta(meta.level);
    write_meta(image, &*file, 1 - slot, meta)?;
    Ok(level)
}

/// Has meta name the segment of the log that is in use, if it names none: after a crash a log that somebody
/// has removed is then missed. Nothing to do most of the time; called now and then.
///
/// # Errors
/// As [`take`].
pub(crate) fn name_segment(image: &Arc<Image>, disk: &dyn Disk) -> Result<()> {
    let is_failed = image.flags() & FLAG_FAILED != 0;
    if is_failed || image.control(control::NAMED_SEQUENCE).load(Acquire) != 0 || log::segment(image) == 0 {
        return Ok(());
    }
    match duty::try_take(image, control::CHECKPOINT_OWNER) {
        Some(_duty) => stopping(image, name_segment_owned(image, disk)),
        None => Ok(()),
    }
}

fn name_segment_owned(image: &Arc<Image>, disk: &dyn Disk) -> Result<()> {
    let file = image.database(disk, true)?;
    let (slot, meta) = settled(image, &*file)?;
    let log_segment = log::segment(image);
    // NB: what the last checkpoint needs of the log is kept until the next, whose owner has this duty.
    if meta.is_open && meta.wal_batch != 0 && meta.log_segment == 0 && log_segment != 0 {
        write_meta(image, &*file, 1 - slot, Meta { log_segment, ..meta })?;
    }
    Ok(())
}

/// Asks whoever looks after checkpoints to take one soon.
pub(crate) fn want(image: &Image) {
    image.control(control::CHECKPOINT_WANTED).store(1, Relaxed);
}

/// Takes a checkpoint if one is due or wanted and nobody is at it. Called now and then.
///
/// # Errors
/// As [`take`].
pub(crate) fn tend(image: &Arc<Image>, disk: &dyn Disk) -> Result<()> {
    let at = image.control(control::CHECKPOINT_AT);
    // The first period begins with the first look.
    let _ = at.compare_exchange(0, now_ms(), AcqRel, Acquire);
    let is_due = now_ms().saturating_sub(at.load(Relaxed)) >= CHECKPOINT_PERIOD.as_millis() as u64;
    if !is_due && image.control(control::CHECKPOINT_WANTED).load(Relaxed) == 0 {
        return Ok(());
    }
    match duty::try_take(image, control::CHECKPOINT_OWNER) {
        Some(_duty) => run(image, disk, 0, true).map(drop),
        None => Ok(()),
    }
}

/// Takes a checkpoint: everything committed before the call survives a crash of the machine. False if
/// nothing has changed since the last one. `but` is a session that is not waited for (0: none).
///
/// # Errors
/// `WritesStopped` after a failed sync; `NoSpace`, `Io`: the checkpoint before still counts;
/// `LimitReached` when the generations are used up.
pub(crate) fn take(image: &Arc<Image>, disk: &dyn Disk, but: u16) -> Result<bool> {
    let _duty = duty::take(image, control::CHECKPOINT_OWNER)?;
    run(image, disk, but, true)
}

/// Sees to it that a checkpoint contains generation `generation`, which others may see to, too: one does for
/// all who wait. So a commit is made durable without a log.
///
/// # Errors
/// As [`take`].
pub(crate) fn cover(image: &Arc<Image>, disk: &dyn Disk, generation: u32) -> Result<()> {
    let is_durable = || image.control(control::DURABLE_GEN).load(Acquire) >= generation.into();
    if is_durable() && !log::is_unnamed(image) {
        return Ok(());
    }
    let _duty = duty::take(image, control::CHECKPOINT_OWNER)?;
    if is_durable() && !log::is_unnamed(image) {
        return Ok(());
    }
    run(image, disk, 0, true).map(drop)
}

/// Takes a checkpoint and writes into meta that the file is closed. The caller is the only process
/// attached, holds the `open` lock, and has no session.
///
/// # Errors
/// As [`take`]; whoever opens it next finds everything in `-shm`.
pub(crate) fn close(image: &Arc<Image>, disk: &dyn Disk) -> Result<()> {
    let _duty = duty::take(image, control::CHECKPOINT_OWNER)?;
    run(image, disk, 0, false)?;
    image.control(control::CLOSED).store(1, Release);
    Ok(())
}

/// After a failed sync and with nobody else attached: writes everything again and, if that succeeds, lets
/// writing go on.
pub(crate) fn heal(image: &Arc<Image>, disk: &dyn Disk) {
    let flags = image.control(control::FLAGS);
    if flags.load(Acquire) & FLAG_FAILED == 0 {
        return;
    }
    image.shm.word(REWRITE).store(1, Release);
    // What stands in the way now is told by the next write: `WritesStopped`. Reading goes on.
    let healed = duty::take(image, control::CHECKPOINT_OWNER)
        .and_then(|_duty| log::leave_segment(image).and_then(|()| checkpoint(image, disk, 0, true)));
    if healed.is_ok() {
        flags.fetch_and(!FLAG_FAILED, AcqRel);
    }
}

fn run(image: &Arc<Image>, disk: &dyn Disk, but: u16, stays_open: bool) -> Result<bool> {
    if stays_open && image.flags() & FLAG_FAILED != 0 {
        return Err(image.stopped());
    }
    let taken = checkpoint(image, disk, but, stays_open);
    if stays_open {
        stopping(image, taken)
    } else {
        taken
    }
}

/// Stops writing if what has failed is a sync, which is never repeated.
fn stopping<T>(image: &Arc<Image>, done: Result<T>) -> Result<T> {
    done.inspect_err(|error| {
        if image.shm.word(REWRITE).load(Acquire) != 0 {
            match error {
                // Only this process has lost its file, and writes no more; others may go on.
                Error::Replaced { .. } => {}
                Error::Io { source, .. } => handshake::stop_writes(image, None, source),
                _ => handshake::stop_writes(image, None, &io::Error::from_raw_os_error(28)),
            }
        }
    })
}

/// The checkpoint itself; the caller has the duty.
fn checkpoint(image: &Arc<Image>, disk: &dyn Disk, but: u16, stays_open: bool) -> Result<bool> {
    image.control(control::CHECKPOINT_WANTED).store(0, Relaxed);
    // NB: who leaves last brings what there is into the file that he had, whatever its name.
    let file = if stays_open { image.database(disk, true) } else { image.own_database(disk, true) }?;
    let (slot, meta) = settled(image, &*file)?;
    let durable = meta.generation;
    // NB: before the cut: what lies in batches below this is part of the checkpoint.
    let log = log_state(image)?;
    if !is_changed(image, durable) {
        // NB: a recovery that found nothing to replay begins its log behind what it dropped.
        let named = (meta.level, meta.wal_batch, meta.log_mark, log.segment == 0 && meta.log_segment != 0);
        if !stays_open || named != (log.level, log.first_batch, log.mark, false) {
            let next = log.put_into(Meta { is_open: stays_open, ..meta });
            write_meta(image, &*file, 1 - slot, next)?;
        }
        log::note_named(image, log.level);
        // Nothing but meta could have been lost by a failed sync, and that is on disk.
        image.shm.word(REWRITE).store(0, Release);
        note_time(image);
        return Ok(false);
    }
    if image.generation() >= info::BORN_MAX {
        return Err(Error::LimitReached {
            what: "generations: dump and load it",
            limit: info::BORN_MAX.into(),
        });
    }
    let pin = pin::cut(image, but, Purpose::Checkpoint)?;
    let (generation, root, npages) = (pin.generation(), pin.root(), image.npages());
    let rewrite = image.shm.word(REWRITE).load(Acquire) != 0;
    let surveys = Place::all(npages).map(|place| Survey::of(image, &*file, place, npages, &meta));
    let surveys: Vec<Survey> = surveys.collect::<Result<_>>()?;
    // NB: before a slot is written: a damaged one may seem not to count.
    let known = Place::all(npages).zip(&surveys).filter(|(place, _)| place.is_in(meta.npages));
    sums::check_infos(&image.path, &meta, known.map(|(_, survey)| survey.generation_before()))?;
    let mut info_sum = GenerationSum::default();
    for survey in surveys {
        info_sum.add(survey.write(image, &*file, generation, rewrite)?);
    }
    sync(image, &*file)?;
    let height = u32::from(page::level(image.page(root))) + 1;
    let info_sum = info_sum.value();
    let next = log.put_into(Meta { generation, root, height, npages, is_open: stays_open, info_sum, ..meta });
    // NB: if we are killed from here on, this keeps the pages that meta may name until the next checkpoint.
    image.control(control::PENDING_GEN).store(generation.into(), Release);
    write_meta(image, &*file, 1 - slot, next)?;
    // NB: before the pin goes: whoever finds that gone sees this.
    image.control(control::DURABLE_GEN).store(generation.into(), Release);
    drop(pin);
    image.control(control::CHECKPOINTS).fetch_add(1, Relaxed);
    log::note_named(image, log.level);
    log::recycle(image, log.first_batch)?;
    image.shm.word(REWRITE).store(0, Release);
    note_time(image);
    Ok(true)
}

/// What meta says of the log.
#[derive(Clone, Copy)]
struct LogState {
    /// The first batch that does not belong to a checkpoint to come; 0: there is no log.
    first_batch: u64,
    segment: u64,
    mark: u64,
    level: u32,
}

impl LogState {
    fn put_into(self, meta: Meta) -> Meta {
        let log_segment = if meta.is_open { self.segment } else { 0 };
        let (wal_batch, log_mark, level) = (self.first_batch, self.mark, self.level);
        Meta { wal_batch, log_segment, log_mark, level, ..meta }
    }
}

/// The state of the log.
///
/// # Errors
/// As `duty::take`.
fn log_state(image: &Arc<Image>) -> Result<LogState> {
    // NB: whoever changes the level has this duty until the log has begun: else level and number could be of
    // different logs, and a recovery would miss a batch that never was.
    let _log = duty::take(image, control::LOG_OWNER)?;
    let (first_batch, segment) = (log::next_batch(image), log::segment(image));
    Ok(LogState { first_batch, segment, mark: log::mark(image), level: log::level(image) as u32 })
}

/// The copy of meta that counts, once it is known to be on disk.
///
/// One that is not known to be is written again in its place, which may tear it. The other copy counts then:
/// it was known to be on disk before this one was begun, and nothing that it names has been written since,
/// as `DURABLE_GEN` and `PENDING_GEN` keep the pages of both.
fn settled(image: &Image, file: &dyn DiskFile) -> Result<(usize, Meta)> {
    let (slot, meta) = meta::newest(file, &image.path)?;
    let (stamp, next) = (image.shm.word(STAMP).load(Acquire), image.shm.word(NEXT_STAMP).load(Acquire));
    if !goes_with(stamp, next, &meta) && !is_planted(Bug::AnyHome) {
        // It is our file, but another one has been copied into it.
        return Err(image.lose());
    }
    if stamp != meta.stamp {
        // Whoever wrote it was killed, or failed, before he knew it to be on disk. After a failed sync the
        // kernel takes it for written: hence the same bytes once more.
        meta::put(file, &image.path, slot, &meta)?;
        sync(image, file)?;
        image.shm.word(STAMP).store(meta.stamp, Release);
    }
    image.control(control::DURABLE_GEN).store(meta.generation.into(), Release);
    Ok((slot, meta))
}

/// Whether any page was born or died after generation `durable`.
fn is_changed(image: &Image, durable: u32) -> bool {
    Place::all(image.npages()).any(|place| Survey::is_changed(image, place, image.npages(), durable))
}

/// Makes everything written to the file durable.
fn sync(image: &Image, file: &dyn DiskFile) -> Result<()> {
    image.control(control::FILE_SYNCS).fetch_add(1, Relaxed);
    file.sync_data().map_err(|source| {
        image.shm.word(REWRITE).store(1, Release);
        space_error("sync data", &image.path, source)
    })
}

/// Writes the next copy of meta, and notes in `-shm` that it goes with it.
fn write_meta(image: &Image, file: &dyn DiskFile, slot: usize, meta: Meta) -> Result<()> {
    let serial = meta::next_serial(meta.serial, slot);
    let meta = Meta { serial, stamp: platform::random_u64(), ..meta };
    image.shm.word(NEXT_STAMP).store(meta.stamp, Release);
    meta::put(file, &image.path, slot, &meta)?;
    sync(image, file)?;
    image.shm.word(STAMP).store(meta.stamp, Release);
    image.control(control::NAMED_SEQUENCE).store(meta.log_segment, Release);
    // Should one copy be damaged, the other says the same. It does not matter when that copy gets to the disk, or
    // whether it is torn: the copy that counts is on disk already, and `meta::newest` tells which that is.
    let _ = meta::put(file, &image.path, 1 - slot, &meta);
    Ok(())
}

/// Notes for whoever verifies that a copy of meta was found damaged, and says so.
pub(crate) fn note_damaged_copies(image: &Image, damaged: [bool; 2]) {
    for (slot, _) in damaged.iter().enumerate().filter(|(_, is_damaged)| **is_damaged) {
        image.control(control::META_DAMAGED).fetch_or(1 << slot, Relaxed);
        notice::error(|| format!("{}: {}", image.path.display(), damaged_copy(slot)));
    }
}

/// Says that a copy of meta was damaged.
pub(crate) fn damaged_copy(slot: usize) -> String {
    let page = slot * PAGE;
    format!(
        "copy {} of meta (page {slot}, byte {page}) was damaged, perhaps by a crash while it was being written; the other \
         one is good and counts: nothing is lost, and it is written anew",
        ["A", "B"][slot & 1]
    )
}

fn now_ms() -> u64 {
    platform::monotonic_nanos() / 1_000_000
}

/// How long ago the last checkpoint was, or the first look for one since this `-shm` was made; None before.
pub(crate) fn age(image: &Image) -> Option<Duration> {
    let at = image.control(control::CHECKPOINT_AT).load(Relaxed);
    (at != 0).then(|| Duration::from_millis(now_ms().saturating_sub(at)))
}

fn note_time(image: &Image) {
    image.control(control::CHECKPOINT_AT).store(now_ms().max(1), Relaxed);
}

/// Whether this `-shm` goes with a copy of meta.
pub(crate) fn goes_with(stamp: u64, next_stamp: u64, meta: &Meta) -> bool {
    meta.stamp == stamp || meta.stamp == next_stamp
}

/// Notes in a new `-shm` which copy of meta it is made from, and makes that durable: it may have been written
/// by one who was killed before he could sync it, and what is free in it belong to the checkpoint before.
///
/// # Errors
/// `NoSpace`, `Io`.
pub(crate) fn note_origin(image: &Image, file: &dyn DiskFile, meta: &Meta) -> Result<()> {
    image.shm.word(STAMP).store(0, Relaxed);
    image.shm.word(NEXT_STAMP).store(meta.stamp, Relaxed);
    // NB: without writing it again, as `settled` does: after a crash it is the only copy that is any good.
    sync(image, file)?;
    image.shm.word(STAMP).store(meta.stamp, Release);
    Ok(())
}
