//! A record as it lies in the log: like one in a ring, but all by value.
//!
//! `{bytes u32, generation u32, flush u64, seq u64, operations u32, bytes / 2^32 u32}`, then the operations as
//! in a ring, without those of the volatile tree, and with long values in full. So a record of a ring that
//! has neither is, byte for byte, a record of the log.

use perilune_store::Result;

use crate::session::record::{self, Op, HEADING};

/// Bytes of a record's heading in the log.
pub(super) const LOG_HEADING: usize = HEADING;

/// A record of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LogRecord {
    pub(crate) generation: u32,
    pub(crate) flush: u64,
    pub(crate) seq: u64,
    count: u32,
    /// The operations.
    bytes: Vec<u8>,
}

/// The heading of a record of `bytes` bytes, itself included.
pub(super) fn heading(bytes: u64, flush: u64, seq: u64, generation: u32, count: u32) -> [u8; LOG_HEADING] {
    let mut heading = [0; LOG_HEADING];
    heading[..4].copy_from_slice(&(bytes as u32).to_le_bytes());
    heading[4..8].copy_from_slice(&generation.to_le_bytes());
    heading[8..16].copy_from_slice(&flush.to_le_bytes());
    heading[16..24].copy_from_slice(&seq.to_le_bytes());
    heading[24..28].copy_from_slice(&count.to_le_bytes());
    heading[28..].copy_from_slice(&((bytes >> 32) as u32).to_le_bytes());
    heading
}

impl LogRecord {
    /// The operations, in the order in which they are to be applied; none is of the volatile tree, none
    /// `big`: values may be longer than a leaf takes.
    ///
    /// # Errors
    /// `Corrupt` when they contradict their format.
    pub(crate) fn ops(&self) -> Result<Vec<Op<'_>>> {
        record::parse_ops(&self.bytes, self.count as usize)
    }

    /// The records of a batch's body, in the order of their seq; None if they contradict their format or
    /// do not belong in the interval.
    pub(super) fn split(mut body: &[u8], (after, until): (u64, u64)) -> Option<Vec<LogRecord>> {
        let mut records = Vec::new();
        while !body.is_empty() {
            let heading = body.get(..LOG_HEADING)?;
            let word = |at: usize| heading[at..at + 8].try_into().map(u64::from_le_bytes).ok();
            let (first, flush, seq, last) = (word(0)?, word(8)?, word(16)?, word(24)?);
            let bytes = usize::try_from(first & 0xffff_ffff | last >> 32 << 32).ok()?;
            if flush <= after || flush > until {
                return None;
            }
            let ops = body.get(LOG_HEADING..bytes)?;
            let record = LogRecord {
                generation: (first >> 32) as u32,
                flush,
                seq,
                count: last as u32,
                bytes: ops.to_vec(),
            };
            record.ops().ok()?;
            records.push(record);
            body = &body[bytes..];
        }
        // Stable: records of one seq touch different leaves.
        records.sort_by_key(|record| record.seq);
        Some(records)
    }
}
