//! Redo records: what an operation does, in logical terms.
//!
//! Problem: who completes the work of a dead process must know what it was. Idea: before a page is touched, the
//! session's ring says which keys are to have which values.
//!
//! `{len u32, gen u32, flush u64, seq u64, nops u32, flags u32}`, then per operation `{kind u8, flags u8, key
//! length u16, value length u32, key, value}` padded to 8. Example: setting `^a(1)` to 5 is the heading of 32
//! bytes, then 1 (set), 0, 3, 2, the key `a` 00 22, the value 11 05 and three zeros: 48 bytes.
//!
//! A record that is too long for the ring lies in runs of pages; the ring then holds the heading and the list of
//! runs. A record without flags is copied to the log as it lies here (`log::record`).
//!
//! Invariant: applying a record again changes nothing: operations say what is to be there, not how to change it.

use perilune_shm::words::{self, Block};
use perilune_store::{Error, Result};

use super::{patch, Seat};
use crate::image::layout::Run;
use crate::limits::{KEY_MAX, PAGE, RECORD_INLINE_MAX, RING};
use crate::page::Coming;

/// Bytes of a record's heading.
pub(crate) const HEADING: usize = 32;
/// Record flag: the operations lie in runs.
const LONG: u64 = 1;
/// Record flag: some operation is of the volatile tree, or has its value in runs.
const MIXED: u64 = 2;
const OP_VOLATILE: u64 = 1;
const OP_BIG: u64 = 2;

/// What an operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The key has this value.
    Set = 1,
    /// The key has no value.
    Remove = 2,
    /// No key with this prefix has a value.
    RemovePrefix = 3,
    /// The key's long value has these bytes at these places; see [`super::patch`].
    Patch = 4,
}

impl Kind {
    /// Whether the key has a value then.
    #[inline]
    pub(crate) fn sets(self) -> bool {
        matches!(self, Kind::Set | Kind::Patch)
    }
}

/// One operation of a record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Op<'a> {
    pub(crate) kind: Kind,
    /// Of the volatile tree.
    pub(crate) volatile: bool,
    /// The value is a list of runs.
    pub(crate) big: bool,
    pub(crate) key: &'a [u8],
    pub(crate) value: &'a [u8],
}

impl Op<'_> {
    /// Bytes that it takes in a record.
    #[inline]
    pub(crate) fn bytes(&self) -> usize {
        op_bytes(self.key.len(), self.value.len())
    }

    /// What of its value lies in the leaf: of a patch the list of runs.
    #[inline]
    pub(crate) fn stored(&self) -> &[u8] {
        match self.kind {
            Kind::Patch => &self.value[..patch::list_bytes(self.value).unwrap_or(0).min(self.value.len())],
            _ => self.value,
        }
    }

    /// What a leaf is to have room for, unless it removes many keys.
    pub(crate) fn coming(&self) -> Option<Coming<'_>> {
        let value = self.kind.sets().then(|| self.stored().len());
        (self.kind != Kind::RemovePrefix).then_some(Coming { key: self.key, value })
    }

    #[inline]
    fn heading(&self) -> u64 {
        let flags = if self.volatile { OP_VOLATILE } else { 0 } | if self.big { OP_BIG } else { 0 };
        self.kind as u64 | flags << 8 | (self.key.len() as u64) << 16 | (self.value.len() as u64) << 32
    }

    /// Hands the operation's bytes to `put`, piece by piece.
    ///
    /// # Errors
    /// Its.
    pub(crate) fn encode_to(&self, mut put: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
        put(&self.heading().to_le_bytes())?;
        put(self.key)?;
        put(self.value)?;
        put(&[0; 8][..self.bytes() - 8 - self.key.len() - self.value.len()])
    }

    /// Whether a batch of the log takes it as it lies in the ring.
    #[inline]
    fn is_plain(&self) -> bool {
        !self.volatile && !self.big
    }
}

/// A record read back, for repair.
pub(crate) struct Record {
    pub(crate) generation: u32,
    pub(crate) seq: u64,
    bytes: Vec<u8>,
    count: usize,
}

/// The heading of a record in a ring.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Heading {
    /// Length of the record in the ring, this heading included.
    pub(crate) bytes: u64,
    pub(crate) generation: u32,
    pub(crate) flush: u64,
    flags: u32,
}

impl Heading {
    /// Whether the operations lie in the ring, all of the main tree and with their values.
    pub(crate) fn is_plain(&self) -> bool {
        self.flags == 0
    }
}

/// Bytes that an operation with a key and value of these lengths takes in a record.
#[inline]
pub(crate) fn op_bytes(key_len: usize, value_len: usize) -> usize {
    8 + ((key_len + value_len + 7) & !7)
}

/// Bytes of the record of these operations.
#[inline]
pub(crate) fn record_bytes(ops: &[Op<'_>]) -> usize {
    HEADING + ops.iter().map(Op::bytes).sum::<usize>()
}

impl Seat {
    /// Takes the runs that a long record needs, before any latch is taken.
    ///
    /// # Errors
    /// As [`Seat::take_run`]; `LimitReached` for a record over 4 GiB.
    pub(crate) fn runs_for_record(&self, bytes: usize) -> Result<Vec<Run>> {
        if bytes <= RECORD_INLINE_MAX {
            return Ok(Vec::new());
        }
        super::extent::take(self, bytes - HEADING)
    }

    /// Writes a record behind the head, not yet published. `runs` come from [`Seat::runs_for_record`].
    /// Answers the bytes it takes in the ring.
    #[inline]
    pub(crate) fn write_record(&self, generation: u32, flush: u64, ops: &[Op<'_>], runs: &[Run]) -> u64 {
        let len = self.write_body(ops, runs);
        self.head_record(generation, flush, ops, runs, len);
        len
    }

    /// Writes the record but for its heading, as a rule before any page is latched: only the heading depends on what
    /// others do. Answers the bytes that the record takes in the ring.
    pub(crate) fn write_body(&self, ops: &[Op<'_>], runs: &[Run]) -> u64 {
        if runs.is_empty() {
            return self.write_ops(ops);
        }
        self.write_long(ops, runs);
        let mut at = self.head() as usize + HEADING;
        for run in runs {
            words::put_u64(self.ring_words(), at & (RING - 1), run.to_word());
            at += 8;
        }
        at as u64 - self.head()
    }

    /// Writes the heading of a record whose body is written.
    #[inline]
    pub(crate) fn head_record(&self, generation: u32, flush: u64, ops: &[Op<'_>], runs: &[Run], len: u64) {
        match runs.is_empty() {
            true => self.write_heading(generation, flush, ops, len),
            false => self.put_heading((generation, flush), ops.len(), LONG | MIXED, len),
        }
    }

    /// Writes the operations of a record that is not long where it will stand, before its heading. Answers the bytes that
    /// it takes in the ring.
    #[inline]
    pub(crate) fn write_ops(&self, ops: &[Op<'_>]) -> u64 {
        let ring = self.ring_words();
        let start = self.head() as usize;
        let mut at = start + HEADING;
        for op in ops {
            words::put_u64(ring, at & (RING - 1), op.heading());
            words::write_pair(ring, (at + 8) & (RING - 1), op.key, op.value);
            at += op.bytes();
        }
        (at - start) as u64
    }

    /// Writes the heading of a record whose operations are written.
    #[inline]
    pub(crate) fn write_heading(&self, generation: u32, flush: u64, ops: &[Op<'_>], len: u64) {
        let mixed = if ops.iter().all(Op::is_plain) { 0 } else { MIXED };
        self.put_heading((generation, flush), ops.len(), mixed, len);
    }

    #[inline]
    fn put_heading(&self, (generation, flush): (u32, u64), ops: usize, flags: u64, len: u64) {
        let ring = self.ring_words();
        let start = self.head() as usize;
        self.note_epoch(generation, flush);
        words::put_u64(ring, start & (RING - 1), len | u64::from(generation) << 32);
        words::put_u64(ring, (start + 8) & (RING - 1), flush);
        words::put_u64(ring, (start + 16) & (RING - 1), self.seq());
        words::put_u64(ring, (start + 24) & (RING - 1), ops as u64 | flags << 32);
    }

    fn write_long(&self, ops: &[Op<'_>], runs: &[Run]) {
        let mut out = super::extent::Writer::new(&self.image, runs);
        // Whole words, which are stored as such.
        let mut words = Vec::new();
        for op in ops {
            words.clear();
            words.extend_from_slice(&op.heading().to_le_bytes());
            words.extend_from_slice(op.key);
            words.extend_from_slice(op.value);
            words.resize(op.bytes(), 0);
            out.write(&words);
        }
    }

    /// The heading of the record that starts at `position`, below `head`.
    ///
    /// # Errors
    /// `Corrupt` when it contradicts its format.
    pub(crate) fn record_heading(&self, position: u64, head: u64) -> Result<Heading> {
        let ring = self.ring_words();
        let word = |offset: usize| words::u64_at(ring, (position as usize + offset) & (RING - 1));
        let (first, counts) = (word(0), word(24));
        let bytes = first & 0xffff_ffff;
        if bytes < HEADING as u64 || !bytes.is_multiple_of(8) || position + bytes > head {
            let place = format!("redo ring of session {}: a record's length is wrong", self.id);
            return Err(Error::Corrupt { place });
        }
        Ok(Heading { bytes, generation: (first >> 32) as u32, flush: word(8), flags: (counts >> 32) as u32 })
    }

    /// Appends bytes of the ring to `out`.
    pub(crate) fn append_ring(&self, position: u64, len: usize, out: &mut Vec<u8>) {
        words::append(self.ring_words(), position as usize & (RING - 1), len, out);
    }

    /// Reads the record that starts at `position`, below the head.
    ///
    /// # Errors
    /// `Corrupt` when it contradicts its format.
    pub(crate) fn read_record(&self, position: u64) -> Result<Record> {
        let ring: &Block<{ RING / 8 }> = self.ring_words();
        let start = position as usize;
        let first = words::u64_at(ring, start & (RING - 1));
        let counts = words::u64_at(ring, (start + 24) & (RING - 1));
        let len = (first & 0xffff_ffff) as usize;
        let damaged =
            |what: &str| Error::Corrupt { place: format!("redo ring of session {}: {what}", self.id) };
        if !(HEADING..=RING).contains(&len) || position + len as u64 > self.head() {
            return Err(damaged("a record's length is wrong"));
        }
        let mut bytes = vec![0; len - HEADING];
        words::read(ring, (start + HEADING) & (RING - 1), &mut bytes);
        if counts >> 32 & LONG != 0 {
            let runs: Vec<Run> = bytes
                .chunks_exact(8)
                .filter_map(|word| Some(Run::from_word(u64::from_le_bytes(word.try_into().ok()?))))
                .collect();
            let pages: u64 = runs.iter().map(|run| u64::from(run.pages)).sum();
            bytes.clear();
            // NB: runs that overlap could ask for more memory than there is file.
            let npages = self.image.npages();
            let outside = |run: &Run| u64::from(run.first) + u64::from(run.pages) > npages;
            if pages > npages || runs.iter().any(outside) {
                return Err(damaged("a long record lies outside the file"));
            }
            super::extent::append(&self.image, &runs, pages as usize * PAGE, &mut bytes);
        }
        Ok(Record {
            generation: (first >> 32) as u32,
            seq: words::u64_at(ring, (start + 16) & (RING - 1)),
            bytes,
            count: counts as u32 as usize,
        })
    }
}

impl Record {
    /// The operations, in the order in which they are to be applied.
    ///
    /// # Errors
    /// `Corrupt` when they contradict their format.
    pub(crate) fn ops(&self) -> Result<Vec<Op<'_>>> {
        parse_ops(&self.bytes, self.count)
    }
}

/// The operations that `bytes` begin with.
///
/// # Errors
/// `Corrupt` when they contradict their format.
pub(crate) fn parse_ops(bytes: &[u8], count: usize) -> Result<Vec<Op<'_>>> {
    // NB: the count is only a number from shared memory until that many have been parsed.
    let mut ops = Vec::with_capacity(count.min(bytes.len() / 8));
    let mut rest = bytes;
    for _ in 0..count {
        let (op, after) = parse(rest)
            .ok_or_else(|| Error::Corrupt { place: "an operation of a redo record is damaged".into() })?;
        ops.push(op);
        rest = after;
    }
    Ok(ops)
}

fn parse(bytes: &[u8]) -> Option<(Op<'_>, &[u8])> {
    let (heading, body) = bytes.split_first_chunk::<8>()?;
    let heading = u64::from_le_bytes(*heading);
    let kind = match heading & 0xff {
        1 => Kind::Set,
        2 => Kind::Remove,
        3 => Kind::RemovePrefix,
        4 => Kind::Patch,
        _ => return None,
    };
    let key_len = (heading >> 16 & 0xffff) as usize;
    let value_len = (heading >> 32) as usize;
    if key_len > KEY_MAX {
        return None;
    }
    let key = body.get(..key_len)?;
    let value = body.get(key_len..key_len + value_len)?;
    let after = body.get(((key_len + value_len + 7) & !7)..)?;
    let flags = heading >> 8;
    Some((Op { kind, volatile: flags & OP_VOLATILE != 0, big: flags & OP_BIG != 0, key, value }, after))
}
