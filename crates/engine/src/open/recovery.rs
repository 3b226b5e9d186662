//! Recovering a database that was open when the machine crashed (or whose `-shm` was removed).
//!
//! The caller holds the `open` lock exclusively, and no byte of any process is held. The new `-shm` has
//! been filled from the last checkpoint; here that checkpoint's pages are compared with their sums, the
//! log is replayed, and what came of it is made a checkpoint before anybody can commit anything. A log that lacks
//! what had been on disk is refused before that: it stays as it is.
//!
//! What if we are killed? `-shm` is not READY: the next to come begins again. Replaying writes only pages
//! that are outside the checkpoint; once the new checkpoint is durable, there is nothing to replay.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use perilune_disk::{Disk, DiskFile};
use perilune_store::{Error, Result};

use super::sessions::{claim_session, release_session};
use crate::access::Access;
use crate::checkpoint;
use crate::image::layout::Owner;
use crate::image::Image;
use crate::limits::PROCESSES;
use crate::log::{self, Batch, Damage, End, Replay};
use crate::meta::{sums, Meta};
use crate::recover::RecoveryReport;
use crate::session::patch;
use crate::session::record::{Kind, Op};
use crate::tree::Which;

/// Who acts before anybody is attached, for repair and recovery: a slot's number in a life it never has.
pub(crate) const RECOVERER: Owner = Owner { slot: PROCESSES as u16 - 1, incarnation: u32::MAX };

/// How long removing a subtree may take.
const PATIENCE: Duration = Duration::from_secs(3600);

/// Recovers. Commits that had been on disk and that the log does not give back are refused, and the log is
/// left as it is, unless `accepts_lost`.
///
/// # Errors
/// `Corrupt`, naming each damaged page, or the place in the log; `CannotOpen` when the log is gone; `NoSpace`, `Io`.
pub(crate) fn recover(
    mut image: Image,
    meta: &Meta,
    file: &dyn DiskFile,
    disk: &dyn Disk,
    accepts_lost: bool,
) -> Result<(Image, RecoveryReport)> {
    let begin = Instant::now();
    let pages = sums::compare(file, &image.path, meta)?.into_result(&image.path)?;
    let nobody = std::mem::replace(&mut image.me, RECOVERER);
    let image = Arc::new(image);
    let end = Ok(End { next_batch: 1, ..End::default() });
    let mut replayed = Replayed { batches: 0, records: 0, behind: 0, end, lost: None };
    if meta.wal_batch != 0 {
        replayed = replay(&image, disk, &image.path, meta, false)?;
    }
    let end = replayed.end?;
    let mut dropped = dropped(&end);
    match replayed.lost {
        Some(lost) if !accepts_lost => return Err(lost),
        Some(lost) if dropped.is_none() => dropped = Some(lost.to_string()),
        _ => {}
    }
    log::restart(&image, end.next_batch, log::level_of_meta(meta.level));
    checkpoint::take(&image, disk, 0)?;
    log::clear(&image)?;
    let mut image =
        Arc::into_inner(image).ok_or_else(|| Error::Internal("recovery keeps the image".to_owned()))?;
    image.me = nobody;
    let report = RecoveryReport {
        generation: meta.generation.into(),
        pages,
        batches: replayed.batches,
        records: replayed.records,
        dropped,
        seconds: begin.elapsed().as_secs_f64(),
    };
    Ok((image, report))
}

/// What came of a log.
pub(crate) struct Replayed {
    pub(crate) batches: u64,
    /// Records applied.
    pub(crate) records: u64,
    /// Of them those that lie behind damage.
    pub(crate) behind: u64,
    /// How the log ended, or why it could not be read any further.
    pub(crate) end: Result<End>,
    /// What had been on disk and was not found.
    pub(crate) lost: Option<Error>,
}

/// Applies what the log of the database at `path` holds beyond its checkpoint `meta` to the tree of `image`,
/// which logs nothing meanwhile. With `goes_on` also what can be read behind damage.
///
/// # Errors
/// `NoSpace`, `Io` from applying.
pub(crate) fn replay(
    image: &Arc<Image>,
    disk: &dyn Disk,
    path: &Path,
    meta: &Meta,
    goes_on: bool,
) -> Result<Replayed> {
    let mut reader = match log::read(disk, path, meta.log_id(), meta.wal_batch) {
        Ok(reader) => reader,
        Err(error) => return Ok(Replayed { batches: 0, records: 0, behind: 0, end: Err(error), lost: None }),
    };
    let access = Access::new(claim_session(image)?);
    let applied = apply_all(&access, disk, &mut reader, meta, goes_on);
    release_session(&access.seat);
    let mut replayed = applied?;
    replayed.lost = match &replayed.end {
        Ok(End { damage: Some(damage), .. }) => Some(damaged(damage)),
        Ok(_) if reader.lacks(meta.log_segment) => Some(gone(path, meta)),
        _ => None,
    };
    Ok(replayed)
}

fn apply_all(
    access: &Access,
    disk: &dyn Disk,
    reader: &mut Replay<'_>,
    meta: &Meta,
    goes_on: bool,
) -> Result<Replayed> {
    let (mut batches, mut records, mut behind) = (0, 0, 0);
    let apply_batch = |batch: &Batch, records: &mut u64| -> Result<()> {
        for record in batch.records.iter().filter(|record| record.generation > meta.generation) {
            record.loaded(disk)?.ops()?.iter().try_for_each(|op| apply(access, op))?;
            *records += 1;
        }
        Ok(())
    };
    let end = loop {
        match reader.next() {
            Ok(Some(batch)) => {
                apply_batch(&batch, &mut records)?;
                batches += 1;
            }
            Ok(None) => {
                break reader.end().cloned().ok_or_else(|| Error::Internal("a log without an end".to_owned()))
            }
            Err(error) => break Err(error),
        }
    };
    if goes_on {
        reader.behind(|batch| apply_batch(&batch, &mut behind))?;
    }
    Ok(Replayed { batches, records: records + behind, behind, end, lost: None })
}

/// Refuses a log of which something is missing that had been on disk.
fn damaged(damage: &Damage) -> Error {
    let place = format!(
        "{damage}. The log is left as it is: restore a backup; or `perilune salvage --log` copies into a new database \
         what can be read, also behind the damage; or open it with accept_lost_commits, which gives up all that \
         follows in the log"
    );
    Error::Corrupt { place }
}

/// Says that files of the log have been removed.
fn gone(path: &Path, meta: &Meta) -> Error {
    let why = format!(
        "was not closed, and its log is gone: no file {}-wal.* is segment {}, which had been on disk. Put these \
         files back beside it; if there are none, `perilune salvage` copies what is left into a new database, and \
         accept_lost_commits opens it without them",
        path.display(),
        meta.log_segment
    );
    Error::CannotOpen { place: path.into(), why }
}

/// What was dropped of a log, and why.
fn dropped(end: &End) -> Option<String> {
    match &end.damage {
        Some(damage) => Some(format!("{} batches that had been on disk: {damage}", end.dropped)),
        None if end.dropped > 0 => Some(format!("{} batches that were being written", end.dropped)),
        None => None,
    }
}

fn apply(access: &Access, op: &Op<'_>) -> Result<()> {
    match op.kind {
        Kind::Set => access.set(Which::Main, op.key, op.value).map(drop),
        Kind::Remove => access.remove(Which::Main, op.key).map(drop),
        Kind::RemovePrefix => access.atomically(Instant::now() + PATIENCE, |_, txn| {
            txn.remove_prefix(Which::Main, op.key);
            Ok(())
        }),
        // NB: salvage may begin with a log that tells of values that have gone since.
        Kind::Patch => access.atomically(Instant::now() + PATIENCE, |access, txn| {
            let patches = patch::decode(op.value)
                .ok_or_else(|| Error::Corrupt { place: "a patch in the log".to_owned() })?;
            let mut scratch = Vec::new();
            for patch in patches {
                access.txn_patch(txn, op.key, patch, &mut scratch)?;
            }
            Ok(())
        }),
    }
}
