//! Recovering a database that was open when the machine crashed (or whose `-shm` was removed).
//!
//! The caller holds the `open` lock exclusively, and no byte of any process is held. The new `-shm` has
//! been filled from the last checkpoint; here that checkpoint's pages are compared with their sums, the
//! log is replayed, and what came of it is made a checkpoint before anybody can commit anything.
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
use crate::log::{self, End};
use crate::meta::{sums, Meta};
use crate::recover::RecoveryReport;
use crate::session::record::{Kind, Op};
use crate::tree::Which;

/// Who acts before anybody is attached, for repair and recovery: a slot's number in a life it never has.
pub(crate) const FORERUNNER: Owner = Owner { slot: PROCESSES as u16 - 1, incarnation: u32::MAX };

/// How long removing a subtree may take.
const PATIENCE: Duration = Duration::from_secs(3600);

/// Recovers.
///
/// # Errors
/// `Corrupt`, naming each damaged page; `NoSpace`, `Io`.
pub(crate) fn recover(
    mut image: Image,
    meta: &Meta,
    file: &dyn DiskFile,
    disk: &dyn Disk,
) -> Result<(Image, RecoveryReport)> {
    let begin = Instant::now();
    let pages = sums::compare(file, &image.path, meta)?.into_result(&image.path)?;
    let nobody = std::mem::replace(&mut image.me, FORERUNNER);
    let image = Arc::new(image);
    let mut replayed = Replayed { batches: 0, records: 0, end: Ok(End { next_batch: 1, ..End::default() }) };
    if meta.wal_batch != 0 {
        replayed = replay(&image, disk, &image.path, meta)?;
    }
    let end = replayed.end?;
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
        dropped: dropped(&end),
        seconds: begin.elapsed().as_secs_f64(),
    };
    Ok((image, report))
}

/// What came of a log.
pub(crate) struct Replayed {
    pub(crate) batches: u64,
    /// Records applied.
    pub(crate) records: u64,
    /// How the log ended, or why it could not be read any further.
    pub(crate) end: Result<End>,
}

/// Applies what the log of the database at `path` holds beyond its checkpoint `meta` to the tree of `image`,
/// which logs nothing meanwhile.
///
/// # Errors
/// `NoSpace`, `Io` from applying.
pub(crate) fn replay(image: &Arc<Image>, disk: &dyn Disk, path: &Path, meta: &Meta) -> Result<Replayed> {
    let (mut batches, mut records) = (0, 0);
    let mut reader = match log::read(disk, path, meta.uuid, meta.wal_batch) {
        Ok(reader) => reader,
        Err(error) => return Ok(Replayed { batches, records, end: Err(error) }),
    };
    let is_gone = reader.lacks(meta.log_segment);
    let access = Access::new(claim_session(image)?);
    let end = loop {
        match reader.next() {
            Ok(Some(batch)) => {
                for record in batch.records.iter().filter(|record| record.generation > meta.generation) {
                    for op in record.loaded(disk)?.ops()? {
                        apply(&access, &op)?;
                    }
                    records += 1;
                }
                batches += 1;
            }
            Ok(None) => {
                break reader.end().cloned().ok_or_else(|| Error::Internal("a log without an end".to_owned()))
            }
            Err(error) => break Err(error),
        }
    };
    release_session(&access.seat);
    let end = if is_gone && end.is_ok() { Err(gone(path, meta)) } else { end };
    Ok(Replayed { batches, records, end })
}

/// Says that files of the log have been removed.
fn gone(path: &Path, meta: &Meta) -> Error {
    let why = format!(
        "was not closed, and its log is gone: no file {}-wal.* is segment {}, which had been on disk. Put these \
         files back beside it; if there are none, `perilune salvage` copies what is left into a new database",
        path.display(),
        meta.log_segment
    );
    Error::CannotOpen { path: path.into(), why }
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
    }
}
