//! A record as it lies in the log: like one in a ring, but all by value.
//!
//! `{bytes u32, generation u32, flush u64, seq u64, operations u32, bytes / 2^32 u32}`, then the operations as
//! in a ring, without those of the volatile tree, and with long values in full. So a record of a ring that
//! has neither is, byte for byte, a record of the log.

use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;

use perilune_disk::Disk;
use perilune_store::Result;

use crate::image::io_error;
use crate::limits::LOG_RECORD_HELD;
use crate::session::record::{self, Op, HEADING};

/// Bytes of a record's heading in the log.
pub(super) const LOG_HEADING: usize = HEADING;

/// A batch of the log.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) number: u64,
    /// The records' flush numbers are above the first and up to the second.
    pub(crate) interval: (u64, u64),
    pub(crate) max_generation: u32,
    /// In the order in which they are to be applied.
    pub(crate) records: Vec<LogRecord>,
}

/// A record of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LogRecord {
    pub(crate) generation: u32,
    pub(crate) flush: u64,
    pub(crate) seq: u64,
    count: u32,
    body: Body,
}

/// The operations of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Body {
    Held(Vec<u8>),
    /// In the files where they were found.
    Left(Vec<Part>),
}

/// A stretch of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Part {
    path: Arc<Path>,
    offset: u64,
    len: usize,
}

/// A record whose operations are in memory.
pub(crate) struct Loaded<'a> {
    count: usize,
    bytes: Cow<'a, [u8]>,
}

impl Loaded<'_> {
    /// The operations, in the order in which they are to be applied; none is of the volatile tree, none
    /// `big`: values may be longer than a leaf takes.
    ///
    /// # Errors
    /// `Corrupt` when they contradict their format.
    pub(crate) fn ops(&self) -> Result<Vec<Op<'_>>> {
        record::parse_ops(&self.bytes, self.count)
    }
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
    /// The record with its operations; a long one is read again.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn loaded(&self, disk: &dyn Disk) -> Result<Loaded<'_>> {
        let bytes = match &self.body {
            Body::Held(bytes) => Cow::Borrowed(bytes.as_slice()),
            Body::Left(parts) => {
                let mut bytes = Vec::with_capacity(parts.iter().map(|part| part.len).sum());
                for Part { path, offset, len } in parts {
                    let failed = |source| io_error("read the log", path, source);
                    let from = bytes.len();
                    bytes.resize(from + len, 0);
                    let file = disk.open(path, false).map_err(failed)?;
                    file.read_at(&mut bytes[from..], *offset).map_err(failed)?;
                }
                Cow::Owned(bytes)
            }
        };
        Ok(Loaded { count: self.count as usize, bytes })
    }

    /// Whether its operations are in memory.
    #[cfg(test)]
    pub(super) fn is_held(&self) -> bool {
        matches!(self.body, Body::Held(_))
    }
}

/// Takes records out of the bodies of a batch's chunks, as they come.
///
/// It holds what is short, and of the rest at most the record that is not whole yet.
pub(super) struct Splitter {
    after: u64,
    until: u64,
    /// Bytes of records that are not whole yet, and where they lie.
    waiting: Vec<u8>,
    parts: Vec<Part>,
    records: Vec<LogRecord>,
}

impl Splitter {
    /// For the records of a batch with that interval.
    pub(super) fn new(after: u64, until: u64) -> Splitter {
        Splitter { after, until, waiting: Vec::new(), parts: Vec::new(), records: Vec::new() }
    }

    /// Adds the next body, which lies at `offset` of the file at `path`. None if the records contradict their
    /// format or do not belong in the interval.
    pub(super) fn add(&mut self, path: &Arc<Path>, offset: u64, body: &[u8]) -> Option<()> {
        self.waiting.extend_from_slice(body);
        self.parts.push(Part { path: Arc::clone(path), offset, len: body.len() });
        let mut at = 0;
        while let Some(heading) = self.waiting.get(at..at + LOG_HEADING) {
            let word = |at: usize| heading[at..at + 8].try_into().map(u64::from_le_bytes).ok();
            let (first, flush, seq, last) = (word(0)?, word(8)?, word(16)?, word(24)?);
            let bytes = usize::try_from(first & 0xffff_ffff | last >> 32 << 32).ok()?;
            if flush <= self.after || flush > self.until || bytes < LOG_HEADING {
                return None;
            }
            let end = at.checked_add(bytes)?;
            let Some(ops) = self.waiting.get(at + LOG_HEADING..end) else { break };
            record::parse_ops(ops, last as u32 as usize).ok()?;
            let body = if ops.len() <= LOG_RECORD_HELD {
                Body::Held(ops.to_vec())
            } else {
                Body::Left(stretch(&self.parts, at + LOG_HEADING, end))
            };
            let (generation, count) = ((first >> 32) as u32, last as u32);
            self.records.push(LogRecord { generation, flush, seq, count, body });
            at = end;
        }
        self.waiting.drain(..at);
        self.parts = stretch(&self.parts, at, usize::MAX);
        Some(())
    }

    /// The records, in the order of their seq; None if the last is not whole.
    pub(super) fn finish(mut self) -> Option<Vec<LogRecord>> {
        if !self.waiting.is_empty() {
            return None;
        }
        // Stable: records of one seq touch different leaves.
        self.records.sort_by_key(|record| record.seq);
        Some(self.records)
    }
}

/// Bytes `from..to` of what lies in `parts`.
fn stretch(parts: &[Part], from: usize, to: usize) -> Vec<Part> {
    let (mut found, mut at) = (Vec::new(), 0);
    for part in parts {
        let (begin, end) = (from.max(at), to.min(at + part.len));
        if begin < end {
            let offset = part.offset + (begin - at) as u64;
            found.push(Part { path: Arc::clone(&part.path), offset, len: end - begin });
        }
        at += part.len;
    }
    found
}
