//! Recovering a database that was open when the machine crashed (or whose `-shm` was removed).
//!
//! The caller holds the `open` lock exclusively, and no byte of any process is held. The new `-shm` has
//! been filled from the last checkpoint; here that checkpoint's pages are compared with their sums, the
//! log is replayed, and what came of it is made a checkpoint before anybody can commit anything.
//!
//! What if we are killed? `-shm` is not READY: the next to come begins again. Replaying writes only pages
//! that are outside the checkpoint; once the new checkpoint is durable, there is nothing to replay.

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
use crate::log;
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
    let replayed = replay(&image, meta, disk)?;
    log::restart(&image, replayed.next_batch, log::level_of_meta(meta.level));
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
        dropped: replayed.dropped,
        seconds: begin.elapsed().as_secs_f64(),
    };
    Ok((image, report))
}

/// What came of the log.
#[derive(Default)]
struct Replayed {
    next_batch: u64,
    batches: u64,
    records: u64,
    dropped: Option<String>,
}

/// Applies what the log holds beyond the checkpoint. Nothing is logged meanwhile.
fn replay(image: &Arc<Image>, meta: &Meta, disk: &dyn Disk) -> Result<Replayed> {
    if meta.wal_batch == 0 {
        return Ok(Replayed { next_batch: 1, ..Replayed::default() });
    }
    let access = Access::new(claim_session(image)?);
    let mut replayed = Replayed::default();
    let mut reader = log::read(disk, &image.path, meta.uuid, meta.wal_batch)?;
    while let Some(batch) = reader.next()? {
        for record in batch.records.iter().filter(|record| record.generation > meta.generation) {
            for op in record.ops()? {
                apply(&access, &op)?;
            }
            replayed.records += 1;
        }
        replayed.batches += 1;
    }
    release_session(&access.seat);
    let Some(end) = reader.end() else { return Err(Error::Internal("a log without an end".to_owned())) };
    replayed.next_batch = end.next_batch;
    replayed.dropped = end.damage.as_ref().map(|damage| {
        format!(
            "{} batches that had been on disk: {} is damaged at byte {}: {}",
            end.dropped,
            damage.file.display(),
            damage.offset,
            damage.why
        )
    });
    if replayed.dropped.is_none() && end.dropped > 0 {
        replayed.dropped = Some(format!("{} batches that were being written", end.dropped));
    }
    Ok(replayed)
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
