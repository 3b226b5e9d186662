//! Where everything lies in the two files: byte offsets and the fields of packed words.
//!
//! `x.db` is pages only. Its pages 0 and 1 hold the two copies of meta, and info pages follow (see `meta`).
//! `x.db-shm` is the volatile rest: header, control words, pins, buckets, processes, sessions, page table, in this
//! order. All words are 64 bits, little endian. Format: `docs/format/shm.md`.

use crate::limits::{
    CHANGED_PAGES, CLAIMED, FREED, HELD, LOCK_BUCKETS, LOG_SLOTS, PINS, PROCESSES, RING, SESSIONS, UNDO,
    VOLATILE, WATCH_BUCKETS,
};

/// First word of `-shm`: "PERILSHM".
pub(crate) const SHM_MAGIC: u64 = u64::from_le_bytes(*b"PERILSHM");
/// Number of this layout of `-shm`; libraries with another number do not attach.
pub(crate) const SHM_LAYOUT: u64 = 5;

/// Words of the header, by byte offset.
pub(crate) mod header {
    pub(crate) const MAGIC: usize = 0;
    /// Layout number in the low half, geometry (page, ring) in the high half.
    pub(crate) const LAYOUT: usize = 8;
    pub(crate) const UUID: usize = 16;
    pub(crate) const BOOT_ID: usize = 32;
    pub(crate) const DEVICE: usize = 48;
    pub(crate) const INODE: usize = 56;
    /// Pages that the page table has room for.
    pub(crate) const PAGES_MAX: usize = 64;
    /// 1 when the file is complete and may be attached to.
    pub(crate) const READY: usize = 72;
    /// The database's durability level.
    pub(crate) const LEVEL: usize = 80;
}

/// Control words, by byte offset. The first eight share a line that is mostly read.
pub(crate) mod control {
    pub(crate) const FLUSH: usize = 128;
    pub(crate) const GEN: usize = 136;
    pub(crate) const DURABLE_GEN: usize = 144;
    pub(crate) const ROOT: usize = 152;
    pub(crate) const VROOT: usize = 160;
    pub(crate) const LEASE: usize = 168;
    pub(crate) const FILTER: usize = 176;
    pub(crate) const FLAGS: usize = 184;
    pub(crate) const NPAGES: usize = 256;
    pub(crate) const FRONTIER: usize = 320;
    pub(crate) const DEAD_PAGES: usize = 384;
    pub(crate) const SESSIONS_HIGH: usize = 448;
    /// Who takes a checkpoint; see `duty`.
    pub(crate) const CHECKPOINT_OWNER: usize = 512;
    /// Who begins a generation.
    pub(crate) const CUT_OWNER: usize = 528;
    /// 1 when somebody has asked for a checkpoint.
    pub(crate) const CHECKPOINT_WANTED: usize = 536;
    /// When the last checkpoint was durable, in ms of the monotonic clock; 0: none since `-shm` was made.
    pub(crate) const CHECKPOINT_AT: usize = 544;
    /// The generation that the copy of meta names which is being written, or was last: it may be the
    /// one that counts after a power loss, though nobody lives who knows.
    pub(crate) const PENDING_GEN: usize = 552;
    /// Who writes the log; see `duty`.
    pub(crate) const LOG_OWNER: usize = 520;
    /// All records with this flush number or a lower one are durable.
    pub(crate) const DURABLE_FLUSH: usize = 576;
    /// Who syncs the log.
    pub(crate) const SYNC_OWNER: usize = 584;
    /// Who makes segments of the log.
    pub(crate) const SPARE_OWNER: usize = 592;
    /// Futex that is bumped when `DURABLE_FLUSH` has changed.
    pub(crate) const DURABLE_FUTEX: usize = 600;
    /// The last batch of the log that is durable.
    pub(crate) const DURABLE_BATCH: usize = 608;
    /// Counts batches; its lowest bit says which copy of the position counts.
    pub(crate) const LOG_SELECTOR: usize = 616;
    /// When the log was last synced, and how long that took, in ns of the monotonic clock.
    pub(crate) const FLUSHED_AT: usize = 624;
    pub(crate) const FLUSH_TOOK: usize = 632;
    /// Two words {generation g, root at its end} at `ROOT_PREV + 8 * (g & 1)`, of the last generations
    /// after which the root was replaced.
    pub(crate) const ROOT_PREV: usize = 640;
    /// Two copies of where the log stands {batch, end of its interval, slot, sequence, offset}, 64 bytes each.
    pub(crate) const LOG_POSITION: usize = 768;
    /// Sequence number of the segment in which the durable part of the log ends.
    pub(crate) const DURABLE_SEQUENCE: usize = 896;
    /// Bytes written to the log, and syncs of it, for `stat`.
    pub(crate) const LOG_BYTES: usize = 904;
    pub(crate) const LOG_SYNCS: usize = 912;
    /// Checkpoints taken, and syncs of the database file, for `stat`.
    pub(crate) const CHECKPOINTS: usize = 920;
    pub(crate) const FILE_SYNCS: usize = 928;
    /// The sync that stopped writing: bit 63, the log's slot + 1 (0: the database file) << 32, error number.
    pub(crate) const FAILURE: usize = 936;
    /// When anything was last written or flushed, as far as somebody has looked: monotonic clock in ns.
    pub(crate) const ACTIVE_AT: usize = 944;
    /// Sequence number of the segment of the log that meta names; 0: none.
    pub(crate) const NAMED_SEQUENCE: usize = 952;
    /// The mark of this `-shm`'s log: random, in every segment made for it, and in meta.
    pub(crate) const LOG_MARK: usize = 960;
    /// 1 from when the database was closed until somebody attaches: its log is needed no more.
    pub(crate) const CLOSED: usize = 968;
    /// Bytes of log after which a checkpoint is taken: fewer on a small file system.
    pub(crate) const LOG_ENOUGH: usize = 976;
    /// Next ticket of the lease (serial number of its takings).
    pub(crate) const LEASE_TICKET: usize = 704;
    /// Futex that is bumped when the lease is given back.
    pub(crate) const LEASE_FUTEX: usize = 712;
    /// Next lock owner, ticket or channel position that must be unique in this boot.
    pub(crate) const SERIAL: usize = 720;
    /// Futex that is bumped when a process has been repaired.
    pub(crate) const REPAIR_FUTEX: usize = 728;
    /// No pin with this index or a higher one has ever been used.
    pub(crate) const PINS_HIGH: usize = 736;
    /// Bits: copy A, copy B of meta was found damaged at an opening since `-shm` was made.
    pub(crate) const META_DAMAGED: usize = 744;
}

/// Bit of the FLAGS word: an I/O error has stopped all writing.
pub(crate) const FLAG_FAILED: u64 = 1;
/// Bit of the FLAGS word: the log cannot grow; writers fail before they publish.
pub(crate) const FLAG_FULL: u64 = 2;
/// Bit of the FLAGS word, beside [`FLAG_FULL`]: nor is there room in the log for what frees space.
pub(crate) const FLAG_SPENT: u64 = 32;
/// Bit of the FLAGS word: the log has begun, and meta does not name it yet: no recovery would look for it.
pub(crate) const FLAG_UNNAMED: u64 = 4;
/// FLAGS: maintenance threads rest: ring before publishing (`idle`).
pub(crate) const FLAG_IDLE: u64 = 8;
/// FLAGS: one more of those that went to rest, in the upper half.
pub(crate) const FLAG_IDLE_COUNT: u64 = 1 << 32;
/// Bits of the FLAGS word: the database's durability level, 0 = none, no log.
pub(crate) const FLAG_LEVEL: u64 = 3 << 8;

/// Pins: {gen, root, owner word, spare} each; gen 0 holds nothing.
pub(crate) const PINS_AT: usize = 4096;
pub(crate) const PIN_BYTES: usize = 32;
/// Where in a pin its root and its owner's word lie.
pub(crate) const PIN_ROOT: usize = 8;
pub(crate) const PIN_OWNER: usize = 16;
/// Lock buckets: {seq u32 futex, waiters u32} each.
pub(crate) const LOCK_BUCKETS_AT: usize = PINS_AT + PINS * PIN_BYTES;
/// Watch buckets: {seq u64, mask of processes 1,024 bits} each, padded.
pub(crate) const WATCH_BUCKETS_AT: usize = LOCK_BUCKETS_AT + LOCK_BUCKETS * 8;
pub(crate) const WATCH_BUCKET_BYTES: usize = 192;
/// Process table: {word, pid, bell u32 futex, ...} each.
pub(crate) const PROCESSES_AT: usize = (WATCH_BUCKETS_AT + WATCH_BUCKETS * WATCH_BUCKET_BYTES + 4095) & !4095;
pub(crate) const PROCESS_BYTES: usize = 64;
/// Where in a process's entry its pid lies (for display only).
pub(crate) const PROCESS_PID: usize = 8;
/// Where in a process's entry the version of its library lies, {major, minor, patch} of 16 bits each.
pub(crate) const PROCESS_VERSION: usize = 32;
/// Where in a process's entry lies when it came, on the monotonic clock in ns.
pub(crate) const PROCESS_SINCE: usize = 40;
/// Where in a process's entry its bell, a 32-bit futex, lies.
pub(crate) const PROCESS_BELL: usize = 16;
/// Where in a process's entry the futex lies on which its maintenance threads sleep.
pub(crate) const PROCESS_UPKEEP: usize = 48;
/// Where in a process's entry the bits lie that it needs in the filter of watched keys.
pub(crate) const PROCESS_FILTER: usize = 24;

/// Segments of the log: {file exists 1 bit, sequence number; last batch} each.
pub(crate) const LOG_SLOTS_AT: usize = (PROCESSES_AT + PROCESSES * PROCESS_BYTES + 4095) & !4095;
pub(crate) const LOG_SLOT_BYTES: usize = 16;

/// Sessions' areas: head, undo, ring.
pub(crate) const SESSIONS_AT: usize = (LOG_SLOTS_AT + LOG_SLOTS * LOG_SLOT_BYTES + 4095) & !4095;
/// Words of a session's head.
pub(crate) const SESSION_HEAD_WORDS: usize = 512;
pub(crate) const SESSION_UNDO: usize = SESSION_HEAD_WORDS * 8;
pub(crate) const SESSION_RING: usize = SESSION_UNDO + UNDO;
pub(crate) const SESSION_BYTES: usize = SESSION_RING + RING;

/// The page table: {latch, life} of each page.
pub(crate) const PAGE_TABLE_AT: usize = SESSIONS_AT + (SESSIONS + 1) * SESSION_BYTES;
/// Entries that are permuted among themselves so that neighbours lie in different cache lines.
pub(crate) const PAGE_TABLE_BLOCK: u64 = 4096;

/// Words of a session's head, by index.
pub(crate) mod session {
    use super::{CHANGED_PAGES, CLAIMED, FREED, HELD};

    /// {live bit, incarnation, process slot} of the process it belongs to; 0 = nobody's.
    pub(crate) const OWNER: usize = 0;
    pub(crate) const IN_OP: usize = 1;
    /// count << 2 | phase.
    pub(crate) const STEP: usize = 2;
    pub(crate) const UNDO_LEN: usize = 3;
    pub(crate) const SEQ: usize = 4;
    pub(crate) const STRUCTURE_GEN: usize = 5;
    /// Position after the last published record; bit 0 = frozen.
    pub(crate) const HEAD: usize = 8;
    pub(crate) const APPLIED: usize = 9;
    pub(crate) const TAIL: usize = 16;
    pub(crate) const HELD_COUNT: usize = 24;
    pub(crate) const FRESH_COUNT: usize = 25;
    pub(crate) const STALE_COUNT: usize = 26;
    pub(crate) const CLAIMED_COUNT: usize = 27;
    pub(crate) const FREED_COUNT: usize = 28;
    /// When somebody let its process, which had been stopped, go on for this operation alone; 0: nobody has.
    pub(crate) const STOPS_AGAIN: usize = 29;
    /// Bits: more latches are held, runs claimed, than are noted.
    pub(crate) const OVERFLOW: usize = 30;
    /// Runs of the last long record, which are the log's until the tail has passed it.
    pub(crate) const LONG_COUNT: usize = 31;
    pub(crate) const HELD_LIST: usize = 32;
    pub(crate) const FRESH: usize = HELD_LIST + HELD;
    pub(crate) const STALE: usize = FRESH + CHANGED_PAGES;
    pub(crate) const CLAIMED_LIST: usize = STALE + CHANGED_PAGES;
    pub(crate) const FREED_LIST: usize = CLAIMED_LIST + CLAIMED;
    /// Counters for `stat`, written by the session alone.
    pub(crate) const STATISTICS: usize = FREED_LIST + FREED;
    pub(crate) const LONG_LIST: usize = STATISTICS + 64;
    pub(crate) const LONG_RUNS: usize = 16;

    pub(crate) const OVERFLOW_HELD: u64 = 1;
    pub(crate) const OVERFLOW_CLAIMED: u64 = 2;
    /// Bit 0 of HEAD.
    pub(crate) const FROZEN: u64 = 1;
}

/// Phases of a step.
pub(crate) mod phase {
    /// Nothing is half done.
    pub(crate) const NONE: u64 = 0;
    /// Pages or words are being changed; the undo area restores them.
    pub(crate) const CHANGING: u64 = 1;
    /// A structure change has happened; only latch words are left to set.
    pub(crate) const DONE: u64 = 2;
}

/// A run of pages in one word: first page in the low half, number of pages in the high half.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) first: u32,
    pub(crate) pages: u32,
}

impl Run {
    pub(crate) fn to_word(self) -> u64 {
        u64::from(self.first) | u64::from(self.pages) << 32
    }

    pub(crate) fn from_word(word: u64) -> Run {
        Run { first: word as u32, pages: (word >> 32) as u32 }
    }
}

/// The two generations of a page: in which it was born, in which it died (0: it lives).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Life {
    pub(crate) born: u32,
    pub(crate) died: u32,
    /// Whether a page that died was part of a run; while it lives its latch word says so. Of a page of a run that lives:
    /// see [`Life::is_patched`].
    pub(crate) was_run: bool,
    /// A page of a run that nobody has compared with its sum; of a page of a tree its latch word says so.
    pub(crate) is_unproved: bool,
}

/// Bit of a life word's lower half: see [`Life::was_run`].
const WAS_RUN: u32 = 1 << 31;
/// Bit of a life word's upper half: see [`Life::is_unproved`]. Generations end below it.
const UNPROVED: u32 = 1 << 31;

impl Life {
    #[inline(always)]
    pub(crate) fn to_word(self) -> u64 {
        let died = if self.was_run { self.died | WAS_RUN } else { self.died };
        let born = if self.is_unproved { self.born | UNPROVED } else { self.born };
        u64::from(born) << 32 | u64::from(died)
    }

    #[inline(always)]
    pub(crate) fn from_word(word: u64) -> Life {
        let (born, died) = ((word >> 32) as u32, word as u32);
        let was_run = died & WAS_RUN != 0 && died != VOLATILE;
        let is_unproved = born & UNPROVED != 0 && born != VOLATILE;
        Life {
            born: if is_unproved { born & !UNPROVED } else { born },
            died: if was_run { died & !WAS_RUN } else { died },
            was_run,
            is_unproved,
        }
    }

    /// Whether a page of a run that lives was written by a patch: no record of a ring names it.
    pub(crate) fn is_patched(self) -> bool {
        self.died == 0 && self.was_run
    }

    /// Whether snapshot `generation` contains the page.
    pub(crate) fn is_in(self, generation: u32) -> bool {
        self.born <= generation && (self.died == 0 || generation < self.died)
    }
}

/// Who owns a session, a pin or a duty: a process slot and which of its lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    pub(crate) slot: u16,
    pub(crate) incarnation: u32,
}

impl Owner {
    pub(crate) fn to_word(self) -> u64 {
        1 << 63 | u64::from(self.incarnation) << 16 | u64::from(self.slot)
    }

    pub(crate) fn from_word(word: u64) -> Option<Owner> {
        (word >> 63 == 1).then_some(Owner { slot: word as u16, incarnation: (word >> 16) as u32 })
    }
}

/// The word of a process: state, incarnation, and who repairs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProcessState {
    Free { incarnation: u32 },
    Live { incarnation: u32 },
    Repairing { incarnation: u32, by: Owner },
}

impl ProcessState {
    pub(crate) fn to_word(self) -> u64 {
        match self {
            ProcessState::Free { incarnation } => u64::from(incarnation) << 32,
            ProcessState::Live { incarnation } => u64::from(incarnation) << 32 | 1,
            ProcessState::Repairing { incarnation, by } => {
                let repairer = u64::from(by.slot) << 2 | u64::from(by.incarnation & 0xf_ffff) << 12;
                u64::from(incarnation) << 32 | repairer | 2
            }
        }
    }

    pub(crate) fn from_word(word: u64) -> ProcessState {
        let incarnation = (word >> 32) as u32;
        match word & 3 {
            0 => ProcessState::Free { incarnation },
            1 => ProcessState::Live { incarnation },
            _ => {
                let by =
                    Owner { slot: (word >> 2 & 0x3ff) as u16, incarnation: (word >> 12 & 0xf_ffff) as u32 };
                ProcessState::Repairing { incarnation, by }
            }
        }
    }
}

const _: () = {
    assert!(session::LONG_LIST + session::LONG_RUNS <= SESSION_HEAD_WORDS);
    assert!(SESSIONS_AT.is_multiple_of(4096) && SESSION_BYTES.is_multiple_of(4096));
    assert!(PAGE_TABLE_AT.is_multiple_of(4096));
    assert!(PROCESSES <= 1 << 10);
    assert!(WATCH_BUCKET_BYTES >= 8 + PROCESSES / 8);
};
