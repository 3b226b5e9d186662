//! Every size and bound of the engine, in one place, with the assertions that tie them together.
//!
//! Features change the geometry for tests only: `page-4k` halves the page, `tiny` shrinks rings and
//! read sets so that rare paths are common. A file made with another geometry is refused at open.

use std::time::Duration;

/// Bytes of a page.
pub(crate) const PAGE: usize = if cfg!(feature = "page-4k") { 4096 } else { 8192 };
/// Words of a page.
pub(crate) const PAGE_WORDS: usize = PAGE / 8;
/// Bytes of a key as users give it.
pub(crate) const USER_KEY_MAX: usize = if cfg!(feature = "page-4k") { 760 } else { 1900 };
/// Bytes of a key with the engine's own additions (locks, messages, the 0xFF of a range end).
pub(crate) const KEY_MAX: usize = USER_KEY_MAX + 32;
/// Bytes of a value that lies in its leaf; longer ones lie in runs of pages.
pub(crate) const INLINE_MAX: usize = if cfg!(feature = "page-4k") { 1024 } else { 2048 };
/// Bytes of a value: strings of 512 MiB, and a byte for their type.
pub(crate) const VALUE_MAX: usize = (512 << 20) + 1;
/// Bytes of a value that `update` shows and writes, and that a preview shows.
pub(crate) const UPDATE_BYTES: usize = 64;
/// Runs of one value: their list must fit a leaf.
pub(crate) const VALUE_RUNS: usize = 120;
/// Pages that move at once when one of them is written over: 64 KiB.
pub(crate) const PATCH_BLOCK: usize = (64 << 10) / PAGE;
/// Pages that a value that grows has beyond its end, at most.
pub(crate) const PATCH_SLACK: usize = 8;
/// Inner levels above the leaves: far more than the largest file needs.
pub(crate) const HEIGHT_MAX: usize = 24;

/// Pages of a segment (508 MiB of 8 KiB pages).
pub(crate) const SEGMENT_PAGES: u64 = 65_024;
/// Pages at the start of a segment that hold meta and info pages, never data.
pub(crate) const SEGMENT_RESERVED: u64 = if cfg!(feature = "page-4k") { 2 + 256 } else { 2 + 128 };
/// Pages at the end of the file that only what frees space may take; fewer in a small file.
pub(crate) const RESERVE_PAGES: u64 = 32;
/// Pages of a run at most.
pub(crate) const RUN_PAGES: u32 = (SEGMENT_PAGES - SEGMENT_RESERVED) as u32;
/// Pages by which the file grows.
pub(crate) const GROWTH_PAGES: u64 = if cfg!(feature = "tiny") { 128 } else { (64 << 20) / PAGE as u64 };

/// Pages by which it grows at least, where there is no space for more.
pub(crate) const GROWTH_LEAST: u64 = 16;
/// Bytes that it then leaves on the disk: a process that comes to remove something needs sessions, and a log.
pub(crate) const GROWTH_LEAVES: u64 = 1 << 20;

/// Pages whose memory is prepared in one system call: 2 MiB, so that it can be one huge page.
pub(crate) const POPULATE: u64 = (2 << 20) / PAGE as u64;
/// Pages that are prepared ahead of a writer who takes them fast.
pub(crate) const POPULATE_AHEAD: u64 = 2 * POPULATE;
/// A writer takes pages fast if he needs [`POPULATE`] of them in less than this.
pub(crate) const AHEAD_WITHIN: Duration = Duration::from_millis(20);

/// Processes attached at once.
pub(crate) const PROCESSES: usize = 1024;
/// Sessions at once, over all processes; the owner's number fits the latch word's 13 bits, 0 is nobody.
pub(crate) const SESSIONS: usize = 8191;
/// Bytes of a session's redo ring.
pub(crate) const RING: usize = if cfg!(feature = "tiny") { 16 << 10 } else { 256 << 10 };
/// Bytes of a session's undo area: three pages and their headings.
pub(crate) const UNDO: usize = 32 << 10;
/// A record longer than this lies in runs, with a stub in the ring.
pub(crate) const RECORD_INLINE_MAX: usize = RING / 2;
/// Bytes that a ring has free, at least, when a run of keys goes into it; more of them are one record if they fit.
pub(crate) const RUN_ROOM: usize = if cfg!(feature = "tiny") { RECORD_INLINE_MAX } else { RING / 8 };
/// Bytes of a ring in use from which on a maintenance thread is asked to empty it.
pub(crate) const RING_WORTH: usize = RING / 4;
/// Bytes of a record's operations up to which recovery holds them; longer ones it reads again. A record without
/// a long value and within a ring is seldom longer.
pub(crate) const LOG_RECORD_HELD: usize = if cfg!(feature = "tiny") { 512 } else { 4 << 10 };
/// Bytes of a segment of the log; the first few are shorter, from [`LOG_SEGMENT_LEAST`] on.
pub(crate) const LOG_SEGMENT: u64 = if cfg!(feature = "tiny") { 256 << 10 } else { 64 << 20 };
/// Bytes of the log's first segment; each further one is twice as long, up to [`LOG_SEGMENT`].
pub(crate) const LOG_SEGMENT_LEAST: u64 = if cfg!(feature = "tiny") { 64 << 10 } else { 1 << 20 };
/// Segments of the log at once.
pub(crate) const LOG_SLOTS: usize = 1024;
/// Bytes of a chunk of the log, its head included.
pub(crate) const LOG_CHUNK: usize = if cfg!(feature = "tiny") { 16 << 10 } else { 1 << 20 };
/// How often is looked whether a checkpoint is due.
pub(crate) const CHECKPOINT_LOOK: Duration = Duration::from_millis(50);
/// How often a process looks whether its database still has its name.
pub(crate) const HOME_LOOK: Duration = Duration::from_millis(900);
/// Bytes of log after which a checkpoint is taken, where that is no large part of the file system ([`LOG_PART`]).
pub(crate) const LOG_CHECKPOINT: u64 = LOG_CHECKPOINT_SEGMENTS * LOG_SEGMENT;
/// See [`LOG_CHECKPOINT`].
pub(crate) const LOG_CHECKPOINT_SEGMENTS: u64 = 8;
/// The part of a file system, one in so many, that the log may take before a checkpoint is due.
pub(crate) const LOG_PART: u64 = 8;
/// The part of a segment, one in so many, that only what frees space may fill if there is no other to go on in.
pub(crate) const LOG_RESERVE: u64 = 4;
/// Spare segments that are kept.
pub(crate) const LOG_SPARES: usize = 4;
/// The age in which each commit is durable at level `periodic`, while the disk keeps up.
pub(crate) const FLUSH_AGE: Duration = Duration::from_millis(50);
/// The shortest pause between two flushes at level `periodic`.
pub(crate) const FLUSH_PAUSE_LEAST: Duration = Duration::from_millis(10);
/// Bytes of a ring that any single write may need: its record's heading, key and value.
pub(crate) const SINGLE_RECORD_MAX: usize = 32 + 8 + KEY_MAX + INLINE_MAX + 8;
/// Latches a session notes one by one; beyond, repair scans.
pub(crate) const HELD: usize = 64;
/// Fresh or stale pages of one structure change.
pub(crate) const CHANGED_PAGES: usize = 8;
/// Runs a session notes one by one as claimed; beyond, repair scans.
pub(crate) const CLAIMED: usize = 64;
/// Runs noted as freed in one page step; steps are cut so that this is enough. A patch cuts off what its value had, in
/// at most one piece more for each stretch that moves, and these lie between runs that stay.
pub(crate) const FREED: usize = 192;

/// Snapshots and cuts in progress at once.
pub(crate) const PINS: usize = 256;
/// Futex buckets of the user's locks.
pub(crate) const LOCK_BUCKETS: usize = 256;
/// Buckets of watched keys.
pub(crate) const WATCH_BUCKETS: usize = 512;

/// Leaves a transaction reads before it asks for exclusive mode.
pub(crate) const READ_LEAVES_MAX: usize = if cfg!(feature = "tiny") { 16 } else { 1024 };
/// Leaves a transaction in exclusive mode reads before it no longer notes what it reads.
pub(crate) const READ_LEAVES_NOTED: usize = 8 * READ_LEAVES_MAX;
/// Leaves that a one-shot transaction reads at most, and nodes that it writes.
pub(crate) const ONE_SHOT_LEAVES: usize = READ_LEAVES_MAX;
/// See [`ONE_SHOT_LEAVES`]. They are one record, and may be in as many leaves.
pub(crate) const ONE_SHOT_WRITES: usize = 1024;
/// Nodes that a small one-shot transaction writes: most are, and should not pay for the memory of large ones.
pub(crate) const ONE_SHOT_SMALL: usize = 16;
/// Pages that are split at most to make room for a one-shot transaction.
pub(crate) const ONE_SHOT_SPLITS: usize = 8;
/// Leaves whose records a one-shot transaction counts at most: some million keys.
pub(crate) const ONE_SHOT_COUNTED: usize = if cfg!(feature = "tiny") { 16 } else { 16_384 };
/// Values that one conditional write sets at most: after each split all of it is tried again.
pub(crate) const CONDITIONAL_WRITES: usize = 4 * HELD;
/// Pauses that somebody is waited for at a leaf in the midst of that, before all are given back: he mostly takes fewer.
pub(crate) const LATCH_PAUSES: usize = 100;
/// Keys that one operation probes at most: sixteen elements, and how many there are.
pub(crate) const PROBES: usize = 17;
/// Leaves of that, of each key its own and the one beside it, and what it writes at most.
pub(crate) const PROBED_LEAVES: usize = 2 * PROBES;
/// As [`PROBES`], for most operations, which should not pay for the memory of many.
pub(crate) const FEW_PROBES: usize = 8;
/// As [`PROBED_LEAVES`], of those.
pub(crate) const FEW_PROBED_LEAVES: usize = 2 * FEW_PROBES;
/// Tries of that.
pub(crate) const PROBED_TRIES: usize = 64;
/// Leaves a commit writes before it asks for exclusive mode for the apply.
pub(crate) const COMMIT_LEAVES_MAX: usize = HELD;
/// Levels of nested transactions.
pub(crate) const TRANSACTION_DEPTH: usize = 126;
/// Tries of a transaction before it asks for exclusive mode.
pub(crate) const TRIES_BEFORE_LEASE: u32 = perilune_store::TRIES_BEFORE_EXCLUSIVE;
/// The shortest lease; it doubles with each loss.
pub(crate) const LEASE_SHORTEST: Duration = Duration::from_millis(10);
/// Doublings of a lease at most. The last one would make 1,280 ms of it, which [`LEASE_LONGEST`] cuts to a second.
pub(crate) const LEASE_CLASS_MAX: u64 = 7;
/// The longest lease.
pub(crate) const LEASE_LONGEST: Duration = Duration::from_secs(1);
/// How long a single operation or a commit that has no limit of its own waits for exclusive mode before it looks again.
pub(crate) const LEASE_WAIT: Duration = Duration::from_secs(60);
/// How long a transaction that reads very much waits for exclusive mode, each time it asks for it; then it goes on without.
pub(crate) const LEASE_WAIT_READING: Duration = Duration::from_secs(10);
/// How long a session waits for one page that another holds, unless it is told.
pub(crate) const WAIT_LIMIT: Duration = Duration::from_secs(10);
/// How long an attempt at a lock or a message may wait for pages at least, whatever its caller's patience with others.
pub(crate) const ATTEMPT_LEAST: Duration = Duration::from_secs(1);
/// Who takes exclusive mode, or registers a watch, waits so long for what was published before to be applied. That mostly takes
/// microseconds, and what is not applied then is latched.
pub(crate) const SETTLING: Duration = LEASE_SHORTEST;
/// How long a repair waits for a page that somebody else holds, before it is put off.
pub(crate) const REPAIR_WAIT: Duration = Duration::from_millis(100);
/// How often a lock is counted up at most.
pub(crate) const LOCK_COUNT_MAX: u32 = 511;
/// Slices in which a waiter looks whether the other side still lives.
pub(crate) const WAIT_SLICE: Duration = Duration::from_millis(20);
/// A checkpoint is taken this long after the one before, if anything has changed.
pub(crate) const CHECKPOINT_PERIOD: Duration = Duration::from_secs(30);
/// Damaged pages that an error names one by one.
pub(crate) const DAMAGES_NAMED: usize = 20;
/// Damaged pages, lost ranges and lost values that a salvage names one by one, each.
pub(crate) const SALVAGE_NAMED: usize = 10_000;
/// How often the warden looks for dead processes.
pub(crate) const WARDEN_PERIOD: Duration = Duration::from_millis(50);

/// The time without a write after which maintenance threads sleep for long.
pub(crate) const IDLE_AFTER: Duration = Duration::from_millis(if cfg!(test) { 20 } else { 1000 });
/// How often maintenance threads that nobody rings look for work then.
pub(crate) const IDLE_LOOK: Duration = Duration::from_secs(1);
/// How often it is tried again to let a log grow that could not.
pub(crate) const FULL_LOOK: Duration = Duration::from_millis(200);
/// How long the thread that flushes rests, unless it is rung.
pub(crate) const IDLE_REST: Duration = Duration::from_secs(60);

/// The highest version of a page. A page that has it cannot be written before the database was closed everywhere and reopened.
pub(crate) const VERSION_MAX: u64 = (1 << 48) - (1 << 20);
/// The highest generation of a file: the top bit of the field that holds one marks runs.
pub(crate) const GENERATION_MAX: u64 = (1 << 31) - 16;
/// The generation of pages that belong to no snapshot (the volatile tree's).
pub(crate) const VOLATILE: u32 = u32::MAX;

/// Bytes of a page's fixed head: fields and hints.
pub(crate) const PAGE_HEAD: usize = 128;
/// Bytes a leaf takes for one record beyond key and value: slot, heading, rounding.
pub(crate) const RECORD_OVERHEAD: usize = 8 + 4 + 3;

/// An attempt that has been repeated without success for so long may have met damage (see `repair::patience`).
pub(crate) const FRUITLESS: Duration = Duration::from_millis(if cfg!(test) { 300 } else { 5_000 });
/// How long a killed process may seem to live: the kernel frees its locks with its memory, which others may be reading.
pub(crate) const DYING: Duration = Duration::from_millis(200);
/// How long a process that only reads repeats an attempt before it calls that damage. It cannot take exclusive mode, by which
/// others prove it.
pub(crate) const HOPELESS: Duration = Duration::from_secs(60);

const _: () = {
    // A leaf holds two fences and one largest record.
    assert!(PAGE_HEAD + 2 * KEY_MAX + KEY_MAX + INLINE_MAX + RECORD_OVERHEAD + 8 <= PAGE);
    // An inner page holds two fences and two separators.
    assert!(PAGE_HEAD + 4 * KEY_MAX + 2 * 24 <= PAGE);
    // A structure change saves at most three whole pages and a few words.
    assert!(3 * (PAGE + 24) + 1024 <= UNDO);
    assert!(PROBED_LEAVES <= HELD);
    assert!(SINGLE_RECORD_MAX <= RUN_ROOM && RUN_ROOM <= RECORD_INLINE_MAX);
    assert!(16 + 8 * VALUE_RUNS <= INLINE_MAX && VALUE_RUNS + VALUE_RUNS / 2 + 2 < FREED);
    assert!(SESSIONS < 1 << 13);
    assert!(RING.is_power_of_two() && PAGE.is_power_of_two());
    assert!(SEGMENT_RESERVED * (PAGE as u64) < 1 << 30);
};
