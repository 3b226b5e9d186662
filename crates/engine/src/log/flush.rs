//! Writing the log, and making it durable.
//!
//! Two duties. `log`: one batch from all rings into the log's files, which frees room in the rings; no
//! system call here waits for the disk. `sync`: a batch, then `fdatasync`, for all who wait (group commit).
//! So a writer whose ring is full waits for no disk, and one sync covers what many have written.
//!
//! Invariants
//! - A commit is reported durable only after the batch that holds it has been selected and synced.
//! - A failed sync is never repeated: it stops all writing of data until the database is opened anew.

use std::sync::atomic::Ordering::{AcqRel, Acquire, Release};
use std::sync::Arc;
use std::time::{Duration, Instant};

use perilune_shm::{futex, platform};
use perilune_store::{Durability, Error, Result};

use super::batch::{BatchWriter, Segment};
use super::frame::{salt, ChunkHead, FORMAT};
use super::level::{is_full, is_unnamed};
use super::position::{self, Position};
use super::slots::{self, Files};
use super::{gather, segment};
use crate::control::freeze;
use crate::duty::{self, Duty};
use crate::idle;
use crate::image::layout::{control, FLAG_FAILED, FLAG_FULL, FLAG_SPENT};
use crate::image::{io_error, space_error, wakeup, Image};
use crate::limits::{FLUSH_AGE, FLUSH_PAUSE_LEAST, FULL_LOOK, LOG_RESERVE, RING, WAIT_SLICE};
use crate::meta::LogId;
use crate::repair::Patience;
use crate::session::{Limit, Seat};

/// Writes what the rings hold into the log; not durable yet. Answers a flush number: all records with it or
/// a lower one are written.
///
/// # Errors
/// `WritesStopped`; `NoSpace`, `Io`, `LimitReached`: nothing counts as written, try again.
pub(super) fn write(image: &Arc<Image>) -> Result<u64> {
    Ok(write_batch(image)?.0)
}

/// As [`write()`]; answers the segment, too, in which the batch ends, if there was anything to be written.
fn write_batch(image: &Arc<Image>) -> Result<(u64, Option<Segment>)> {
    let duty = duty::take(image, control::LOG_OWNER)?;
    write_owned(image, &duty)
}

fn write_owned(image: &Arc<Image>, _owner: &Duty) -> Result<(u64, Option<Segment>)> {
    if image.flags() & FLAG_FAILED != 0 {
        return Err(image.stopped());
    }
    // NB: the level changes only under this duty. At none the tails are the sessions' own.
    if level(image) == Durability::None {
        return Err(Error::Invalid("the database has been set to durability none meanwhile".into()));
    }
    let position = position::read(image);
    let until = image.control(control::FLUSH).fetch_add(1, AcqRel);
    let frozen = freeze(image);
    let batch = position.batch + 1;
    let head = ChunkHead {
        salt: salt(LogId { uuid: slots::uuid(image), mark: slots::mark(image) }, FORMAT),
        batch,
        after: position.until,
        until,
        // NB: as long as meta does not name this log, a recovery reads the one before: nothing that is in this one
        // is missing from that.
        durable: if is_unnamed(image) { 0 } else { image.control(control::DURABLE_BATCH).load(Acquire) },
        ..ChunkHead::default()
    };
    let buffer = std::mem::take(&mut *image.log_buffer());
    let mut files = Files { image, batch };
    let mut writer = BatchWriter::new(&mut files, position.spot, head, buffer);
    let mut tails = Vec::with_capacity(frozen.len());
    for (seat, head, _) in &frozen {
        tails.push(gather::session(seat, *head, position.until, until, &mut writer)?);
    }
    let (written, buffer) = writer.finish()?;
    *image.log_buffer() = buffer;
    let segment = written.map(|(segment, bytes)| {
        position::select(image, &Position { batch, until, spot: segment.spot });
        image.control(control::LOG_BYTES).fetch_add(bytes, AcqRel);
        keep_reserve(image);
        segment
    });
    for ((seat, ..), tail) in frozen.iter().zip(tails) {
        seat.set_tail(tail);
    }
    Ok((until, segment))
}

/// Makes everything durable that was committed before the call.
///
/// # Errors
/// As [`wait`].
pub(crate) fn sync(image: &Arc<Image>) -> Result<()> {
    let now = image.control(control::FLUSH).fetch_add(0, AcqRel);
    wait(image, now)
}

/// Waits until the records with flush number `flush` are durable; the first who waits sees to it for all.
///
/// # Errors
/// `NotDurable`, with the reason: the commit has happened, but is not on disk.
pub(crate) fn wait(image: &Arc<Image>, flush: u64) -> Result<()> {
    let durable = image.control(control::DURABLE_FLUSH);
    let bell = image.shm.word32(control::DURABLE_FUTEX);
    let (limit, mut begun) = (Limit::of(image.wait_limit), None);
    loop {
        let rung = bell.load(Acquire);
        if durable.load(Acquire) >= flush {
            return Ok(());
        }
        match duty::try_take(image, control::SYNC_OWNER) {
            Some(duty) => {
                let led = match durable.load(Acquire) >= flush {
                    true => Ok(()),
                    false => lead_for_all(image, duty),
                };
                led.map_err(|cause| Error::not_durable(&cause))?;
            }
            None => {
                let begun = *begun.get_or_insert_with(Instant::now);
                futex::wait(bell, rung, Some(WAIT_SLICE));
                let whom = duty::worker(image, control::SYNC_OWNER);
                if limit.is_over(image, whom, begun) {
                    let why = limit.error(image, whom, begun).to_string();
                    return Err(Error::NotDurable { why });
                }
            }
        }
    }
}

/// Writes and syncs, and wakes who waits for that.
fn lead_for_all(image: &Arc<Image>, duty: Duty) -> Result<()> {
    let led = lead(image);
    drop(duty);
    let bell = image.shm.word32(control::DURABLE_FUTEX);
    bell.fetch_add(1, AcqRel);
    futex::wake(bell, u32::MAX);
    led
}

/// Writes and syncs. The caller has the duty `sync`.
fn lead(image: &Arc<Image>) -> Result<()> {
    let begun = platform::monotonic_nanos();
    let (flush, written) = write_batch(image).inspect_err(|error| note_stall(image, error))?;
    let position = position::read(image);
    let synced = image.control(control::DURABLE_BATCH);
    if synced.load(Acquire) < position.batch {
        let done = sync_files(image, &position, written.as_ref());
        done.inspect_err(|error| note_stall(image, error))?;
        image.control(control::LOG_SYNCS).fetch_add(1, AcqRel);
        synced.store(position.batch, Release);
    }
    image.control(control::DURABLE_FLUSH).store(flush, Release);
    let now = platform::monotonic_nanos();
    image.control(control::FLUSH_TOOK).store(now - begun, Release);
    image.control(control::FLUSHED_AT).store(now, Release);
    Ok(())
}

/// Syncs the files written to since the last time, one of which may still be open as `written`.
fn sync_files(image: &Arc<Image>, position: &Position, written: Option<&Segment>) -> Result<()> {
    let first = image.control(control::DURABLE_SEQUENCE);
    let from = first.load(Acquire);
    for (slot, sequence) in slots::used(image) {
        if !(from..=position.spot.sequence).contains(&sequence) {
            continue;
        }
        let failed = |source| {
            crate::control::stop_writes(image, Some(slot), &source);
            space_error("sync the log", &segment::path(&image.path, slot), source)
        };
        match written.filter(|written| written.spot.sequence == sequence) {
            Some(written) => written.file.sync_data().map_err(failed)?,
            // NB: without a descriptor nothing has been tried that could have lost anything. What a checkpoint has made
            // superfluous since the slot was looked at is durable by the checkpoint.
            None => {
                if let Some(file) = slots::open_if_used(image, slot, sequence)? {
                    file.sync_data().map_err(failed)?;
                }
            }
        }
    }
    first.store(position.spot.sequence, Release);
    Ok(())
}

/// Waits until the ring of `seat` has room for `need` bytes more. Nothing of the session is under way.
///
/// # Errors
/// `WritesStopped`, `NoSpace`, `Io`: the log takes nothing now.
#[cold]
pub(crate) fn make_room(seat: &Seat, need: usize) -> Result<()> {
    debug_assert!(need <= RING && seat.applied() == seat.head());
    let image = &seat.image;
    let mut patience = Patience::new();
    loop {
        if level(image) == Durability::None {
            // NB: all of it was published before the level was read, and is thus in no batch to come.
            seat.set_tail(seat.head());
        }
        if seat.find_room(need) {
            return Ok(());
        }
        match duty::try_take(image, control::LOG_OWNER) {
            Some(duty) if level(image) != Durability::None && !seat.find_room(need) => {
                write_owned(image, &duty).inspect_err(|error| note_stall(image, error))?;
            }
            Some(_) => {}
            None => {
                patience.wait(image, &seat.limit(), || duty::worker(image, control::LOG_OWNER))?;
            }
        }
    }
}

/// Writes the log until nothing of `seat` is left in its ring.
///
/// # Errors
/// As [`make_room`].
pub(crate) fn drain(seat: &Seat) -> Result<()> {
    while seat.tail() < seat.head() {
        if level(&seat.image) == Durability::None {
            seat.set_tail(seat.head());
            break;
        }
        write(&seat.image).inspect_err(|error| note_stall(&seat.image, error))?;
    }
    Ok(())
}

/// The database's durability level.
pub(crate) fn level(image: &Image) -> Durability {
    crate::session::level_of(image.control(control::FLAGS).load(Acquire))
}

/// A log that cannot be written, on a full disk or a bad one: no writer publishes any more until it can.
///
/// Nothing is lost by that: the rings hold what was published, and a batch that was not finished is written again.
fn note_stall(image: &Arc<Image>, error: &Error) {
    note(image, error, FLAG_FULL | FLAG_SPENT);
}

fn note(image: &Arc<Image>, error: &Error, flags: u64) {
    let is_failed = image.control(control::FLAGS).load(Acquire) & FLAG_FAILED != 0;
    if !is_failed && matches!(error, Error::NoSpace { .. } | Error::LimitReached { .. } | Error::Io { .. }) {
        // NB: before the flag, for whoever sees that tells this.
        image.note_stall(error);
        crate::control::raise_flag(image, flags);
    }
}

/// Keeps the last part of a segment for operations that free space, if there is no other segment to go on in. At
/// `periodic` the thread that flushes has looked when half of it was used.
fn keep_reserve(image: &Arc<Image>) {
    let left = slots::left(image);
    if left.part * LOG_RESERVE >= left.whole || level(image) != Durability::Fsync {
        return;
    }
    if let Err(error) = slots::provide_if_nobody_does(image) {
        let is_spent = left.part * LOG_RESERVE * 8 < left.whole;
        note(image, &error, if is_spent { FLAG_FULL | FLAG_SPENT } else { FLAG_FULL });
    }
}

/// Empties the rings into the log if a writer has asked for that and nobody is at it.
pub(crate) fn help(image: &Arc<Image>) {
    if !image.is_log_wanted() || level(image) == Durability::None {
        return;
    }
    if let Some(duty) = duty::try_take(image, control::LOG_OWNER) {
        // What fails now is told to the writer, who finds his ring full.
        let _ = write_owned(image, &duty).inspect_err(|error| note_stall(image, error));
    }
}

/// One round of looking after the log: flushes if it is time, sees to spare segments, and lets writers go
/// on once there is space again. Answers how long the next round may wait; None: until something is written.
///
/// # Errors
/// What flushing answers; the next round tries again.
pub(crate) fn tend(image: &Arc<Image>) -> Result<Option<Duration>> {
    let flags = image.flags();
    let is_quiet = wakeup::is_quiet(image);
    if !is_quiet {
        // Whoever else was rung may have died before he could.
        idle::end(image);
    }
    if level(image) == Durability::None || flags & FLAG_FAILED != 0 {
        return Ok(if is_quiet { None } else { Some(FLUSH_AGE) });
    }
    let is_stalled = flags & FLAG_FULL != 0;
    if is_stalled || slots::wants_spare(image) {
        let provided = slots::provide(image);
        // NB: what frees space is written all the same, as long as there is room for it.
        let is_written = is_stalled && try_again(image)?;
        match provided {
            Ok(_) if is_written => crate::control::lower_flag(image, FLAG_FULL | FLAG_SPENT),
            Ok(_) => {}
            // What else is wrong shows when there is no room in this segment any more.
            Err(Error::Io { .. }) if !is_stalled => {}
            Err(error) => note(image, &error, FLAG_FULL),
        }
        if is_full(image) {
            // NB: while the flag FULL stands, writers fail before they would ring a bell: so this thread may not rest.
            return Ok(Some(FULL_LOOK));
        }
    }
    let took = Duration::from_nanos(image.control(control::FLUSH_TOOK).load(Acquire));
    let pause = (FLUSH_AGE * 9 / 10).saturating_sub(took * 2).clamp(FLUSH_PAUSE_LEAST, FLUSH_AGE / 2);
    let since = platform::monotonic_nanos().saturating_sub(image.control(control::FLUSHED_AT).load(Acquire));
    let since = Duration::from_nanos(since);
    if since < pause {
        return Ok(Some(pause - since));
    }
    // NB: one looks for all: with thousands of sessions and hundreds of processes that is what takes time.
    let Some(duty) = duty::try_take(image, control::SYNC_OWNER) else { return Ok(Some(FLUSH_PAUSE_LEAST)) };
    let looked = platform::monotonic_nanos();
    if has_work(image) {
        wakeup::note_activity(image);
        idle::end(image);
        lead_for_all(image, duty)?;
        return Ok(Some(pause));
    }
    image.control(control::FLUSHED_AT).store(looked, Release);
    Ok(if is_quiet { None } else { Some(pause) })
}

/// Writes and syncs what waits for a log that could not be written: only a write shows whether the disk takes data
/// again, even if there is a file to go on in. False: another thread is trying.
fn try_again(image: &Arc<Image>) -> Result<bool> {
    match duty::try_take(image, control::SYNC_OWNER) {
        Some(duty) => lead_for_all(image, duty).map(|()| true),
        None => Ok(false),
    }
}

/// Whether flushing would do nothing, at whatever level.
pub(crate) fn is_settled(image: &Arc<Image>) -> bool {
    let flags = image.flags();
    level(image) == Durability::None || flags & FLAG_FAILED != 0 || !has_work(image)
}

/// Whether anything is not yet written, or not yet durable.
fn has_work(image: &Arc<Image>) -> bool {
    let synced = image.control(control::DURABLE_BATCH).load(Acquire);
    position::read(image).batch > synced
        || (1..=crate::repair::sessions_high(image)).any(|id| {
            let seat = Seat::new(image.clone(), id);
            seat.tail() < seat.head()
        })
}
