//! What an operator sees: figures by name, and processes.
//!
//! A new counter becomes a field of [`Statistics`] and a row here; the compiler asks for both.
//!
//! Deliberately absent: locks (`lock::report`), how any of it is printed.

use std::sync::atomic::Ordering::{Acquire, Relaxed};
use std::time::Duration;

use perilune_shm::stopped::is_stopped;
use perilune_shm::{latch, platform};
use perilune_store::{Figure, FigureKind, ProcessReport};

use super::Statistics;
use crate::image::layout::{
    control, Owner, ProcessState, FLAG_FAILED, PROCESSES_AT, PROCESS_BYTES, PROCESS_SINCE, PROCESS_VERSION,
};
use crate::image::Image;
use crate::limits::{PAGE, PROCESSES};
use crate::repair::sessions_high;
use crate::session::Seat;

impl Statistics {
    /// All of them with their names, in the order in which they are shown.
    #[must_use]
    pub fn figures(&self) -> Vec<Figure> {
        // NB: without `..`: whoever adds a field names it here.
        let Statistics {
            writes,
            commits,
            conflicts,
            splits,
            merges,
            copies,
            leases,
            repairs,
            locks,
            lock_waits,
            log_bytes,
            fsyncs,
            checkpoints,
            checkpoint_age_ms,
            replay_bytes,
            file_bytes,
            free_bytes,
            generation,
            durable_generation,
            snapshots,
            snapshot_bytes,
            checkpoint_bytes,
            durability,
            writes_stopped,
        } = self.clone();
        let figure = |kind| move |name, value, meaning| Figure { name, kind, value, meaning };
        let (count, gauge) = (figure(FigureKind::Count), figure(FigureKind::Gauge));
        vec![
            count("writes", writes, "writes outside transactions"),
            count("commits", commits, "transactions that wrote"),
            count("conflicts", conflicts, "transactions run again: another was faster"),
            count("leases", leases, "transactions that needed exclusive mode"),
            count("locks", locks, "locks granted"),
            count("lock_waits", lock_waits, "waits for a lock that another held"),
            count("splits", splits, "pages split"),
            count("merges", merges, "pages merged"),
            count("copies", copies, "pages copied, once behind each checkpoint"),
            count("repairs", repairs, "sessions of killed processes repaired"),
            count("log_bytes", log_bytes, "bytes written to the log"),
            count("fsyncs", fsyncs, "waits for the disk: log and checkpoints"),
            count("checkpoints", checkpoints, "checkpoints taken"),
            gauge("checkpoint_age_ms", checkpoint_age_ms, "milliseconds since the last checkpoint"),
            gauge("replay_bytes", replay_bytes, "about how much log a recovery would read now"),
            gauge("generation", generation, "number of the next checkpoint"),
            gauge("durable_generation", durable_generation, "number of the last checkpoint"),
            gauge("snapshots", snapshots, "snapshots that are held"),
            gauge("file_bytes", file_bytes, "size of the file"),
            gauge("free_bytes", free_bytes, "about how much of it is free"),
            gauge("snapshot_bytes", snapshot_bytes, "bytes that snapshots alone keep"),
            gauge("checkpoint_bytes", checkpoint_bytes, "bytes that the last checkpoint alone keeps"),
            gauge("durability", durability, "commits wait for: 0 none, 1 periodic, 2 fsync"),
            gauge("writes_stopped", writes_stopped, "writes refused: 1 a sync failed, 2 replaced"),
        ]
    }
}

/// Why nothing can be written, if so.
pub(super) fn writes_stopped(image: &Image) -> u64 {
    if image.lost_flag() != 0 {
        2
    } else {
        u64::from(image.flags() & FLAG_FAILED != 0)
    }
}

/// Bytes of pages that hold nothing; roughly, while others work.
pub(super) fn free_bytes(image: &Image) -> u64 {
    let word = |at| image.control(at).load(Relaxed);
    let unused = word(control::NPAGES).saturating_sub(word(control::FRONTIER));
    (unused + word(control::DEAD_PAGES)) * PAGE as u64
}

/// Processes attached, the dead that nobody has repaired yet included.
pub(super) fn processes(image: &std::sync::Arc<Image>) -> Vec<ProcessReport> {
    let seats = (1..=sessions_high(image)).map(|id| Seat::new(image.clone(), id));
    let owners: Vec<(Option<Owner>, u32)> =
        seats.map(|seat| (Owner::from_word(seat.owner_word().load(Acquire)), pages_held(&seat))).collect();
    let now = platform::monotonic_nanos();
    let mut found = Vec::new();
    for slot in 0..PROCESSES {
        let incarnation = match image.process(slot) {
            ProcessState::Free { .. } => continue,
            ProcessState::Live { incarnation } | ProcessState::Repairing { incarnation, .. } => incarnation,
        };
        let owner = Owner { slot: slot as u16, incarnation };
        let word = |at| image.shm.word(PROCESSES_AT + slot * PROCESS_BYTES + at).load(Acquire);
        let version = word(PROCESS_VERSION);
        let own = || owners.iter().filter(|(other, _)| *other == Some(owner));
        found.push(ProcessReport {
            slot: owner.slot,
            pid: image.pid(slot),
            alive: image.is_alive(owner),
            stopped: is_stopped(image.pid(slot)),
            pages_held: own().map(|(_, pages)| pages).sum(),
            is_this: owner == image.me,
            sessions: own().count() as u32,
            version: format!("{}.{}.{}", version >> 32 & 0xffff, version >> 16 & 0xffff, version & 0xffff),
            since: Duration::from_nanos(now.saturating_sub(word(PROCESS_SINCE))),
        });
    }
    found
}

/// Pages that a session holds at this moment, of those that it notes one by one.
fn pages_held(seat: &Seat) -> u32 {
    let (held, _) = seat.held();
    let is_held = |number: &&u32| {
        u64::from(**number) < seat.image.npages()
            && latch::load(seat.image.latch(**number)).is_locked_by(seat.id)
    };
    held.iter().filter(is_held).count() as u32
}
