//! The log: records from the sessions' rings, in batches, on disk.
//!
//! Problem: between two checkpoints a crash of the machine would cost all commits. Idea: records are copied from the rings
//! into files, and one sync makes durable what all sessions have published until then.
//!
//! Example: sessions 3 and 5 have published records with flush number 41. The owner of the duty `log` raises the number to
//! 42, freezes the heads, writes all records up to 41 as batch 17, and selects the position behind it: now batch 17
//! counts. The owner of `sync` calls `fdatasync`, stores 41 in `DURABLE_FLUSH`, and wakes those who wait for that.
//!
//! Reading order: [`frame`] (bytes), [`record`], [`batch`] (writing one), [`gather`] (from the rings),
//! [`position`], [`slots`], [`mod@segment`] (files), [`flush`] (writing and syncing), [`mod@level`], [`mod@read`],
//! [`remains`] (evidence of damage).
//!
//! Invariants
//! - A batch holds exactly the records of its interval of flush numbers; intervals follow each other.
//! - What is durable is a prefix of the batches, and so a causally consistent prefix of the commits.
//! - A batch counts once the position's selector says so; one that had counted is never written again.
//!
//! # Killed here?
//!
//! | killed | left behind | then |
//! |---|---|---|
//! | owner of `log`, flush number raised, k heads frozen | some writers reread | the next owner raises and freezes again |
//! | batch written in part, or wholly, selector old | bytes behind the position | the same batch again, with all it had and more |
//! | a segment numbered, batch not selected | a slot in use beyond the position | the batch written again finds it by its number |
//! | selector new, k tails advanced | old tails | the interval leaves out what has been written |
//! | owner of `sync`, before / after `fdatasync` | old `durable` words | the next owner syncs again |
//! | `DURABLE_BATCH` stored, `DURABLE_FLUSH` not, or nobody woken | sleepers | they look every 20 ms, and one leads |
//! | making a segment, no mark in it yet | an empty file | its slot is passed over until `-shm` is built anew |
//! | making a segment, marked | a file that no slot names | the next one finds its mark, and goes on |
//! | recycling, k segments made spare, or one given up and not cut | some in use, or long, for longer | the next checkpoint |
//! | changing the level | meta names no log | whoever waits for the disk next takes the checkpoint |
//! | a long record's writer | its runs, noted for the log | freed by whoever gets the session, once the tail has passed |
//!
//! Design: docs/design/0014-redo-log.md. Format: docs/format/log.md.
//!
//! Deliberately absent: when checkpoints are taken, what recovery does with the batches.

mod batch;
mod flush;
mod frame;
mod gather;
mod level;
mod position;
mod read;
mod record;
mod remains;
mod segment;
mod slots;
#[cfg(test)]
mod tests;

pub(crate) use crate::meta::LogId;
pub(crate) use flush::{drain, help, is_settled, level, make_room, sync, tend, wait};
pub(crate) use level::{
    clear, is_enough, is_full, is_unnamed, leave_missing, leave_segment, level_of_meta, mark, next_batch,
    note_named, recycle, restart, segment, set_level, size,
};
pub(crate) use read::{read, unnamed, Damage, End, Replay, Unnamed};
pub(crate) use record::{Batch, LogRecord};
pub(crate) use slots::remove_files;
#[cfg(feature = "instrument")]
pub(crate) use slots::room;
#[cfg(test)]
pub(crate) use slots::{open_if_used, used};
