//! The bytes that frame the log: heads of segments and of chunks.
//!
//! A segment is a file. It begins with a block that holds its head; behind it chunks follow each other,
//! each beginning on a block. A batch is one or more chunks, the last of which says so; its records lie
//! in the chunks' bodies, one after the other, over the ends of chunks and segments. Format:
//! `docs/format/log.md`.
//!
//! Invariants
//! - A head that decodes was written whole, for this log: a segment's says uuid and mark, a chunk's has their sum as
//!   salt. So what is left of an older log of the same database, which began its numbers anew, is never taken for this
//!   one's, not even in a file whose own head is lost.
//! - Every file bears, from when it is made, the mark of the `-shm` that it was made for: that a database has the
//!   same uuid is not enough, as that of a restored backup has.
//! - What a head says is checked for its own bounds here; against its neighbours by the reader.

use crate::limits::LOG_CHUNK;
use crate::meta::LogId;

/// Chunks begin on multiples of this, and what is on disk is never written again within one.
pub(super) const BLOCK: usize = 4096;
/// Bytes of a chunk's head.
pub(super) const CHUNK_HEAD: usize = 64;
/// Bytes of a segment's head that its sum covers.
const SEGMENT_HEAD: usize = 64;
/// Bytes of a segment's head that mean something; the rest of its block is zero. Behind [`SEGMENT_HEAD`] lie the mark
/// and its sum, of which older versions know nothing.
pub(super) const HEAD_READ: usize = SEGMENT_HEAD + 12;

const CHUNK_MAGIC: u32 = u32::from_le_bytes(*b"PLOG");
const SEGMENT_MAGIC: u64 = u64::from_le_bytes(*b"PERILOGS");
/// Begins a file that is no segment yet; else its head is that of one. To all readers it is none.
const SPARE_MAGIC: u64 = u64::from_le_bytes(*b"PERISPAR");
/// The format of logs this version writes, and the highest it reads.
pub(super) const FORMAT: u32 = 3;
/// The oldest one that is read. In format 1 no operation was a patch; in formats 1 and 2 the salt of chunks was of the
/// uuid alone; else they were the same.
const FORMAT_MIN: u32 = 1;
/// The first format whose chunks have a salt of the mark, too.
const FORMAT_MARKED: u32 = 3;
/// Flag of a chunk: the batch ends with it.
const LAST: u32 = 1;

/// The head of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SegmentHead {
    pub(super) uuid: [u8; 16],
    /// Rises by one from segment to segment, whatever their files are called.
    pub(super) sequence: u64,
    /// Bytes of the file that chunks may fill, this head's block included.
    pub(super) bytes: u64,
    /// The batch and chunk with which the segment begins.
    pub(super) batch: u64,
    pub(super) chunk: u32,
    /// The mark of the `-shm` that the file was made for; 0: it was made by a version that had none.
    pub(super) mark: u64,
    pub(super) format: u32,
}

/// The head of a chunk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ChunkHead {
    /// See [`salt`].
    pub(super) salt: u32,
    pub(super) batch: u64,
    /// Counts the chunks of the batch from 0.
    pub(super) chunk: u32,
    pub(super) is_last: bool,
    /// Bytes of the body.
    pub(super) bytes: u32,
    /// CRC-32C of the body.
    pub(super) sum: u32,
    /// The batch holds the records whose flush number is above `after`, up to `until`.
    pub(super) after: u64,
    pub(super) until: u64,
    /// The last batch known to be on disk when this was written.
    pub(super) durable: u64,
    /// The highest generation among the records of the batch so far.
    pub(super) max_generation: u32,
}

/// What tells the chunks of the log `id`, written in this format, from those of another log.
pub(super) fn salt(id: LogId, format: u32) -> u32 {
    let of_database = crc32c::crc32c(&id.uuid);
    if format < FORMAT_MARKED {
        of_database
    } else {
        crc32c::crc32c_append(of_database, &id.mark.to_le_bytes())
    }
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(word)
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut word = [0; 4];
    word.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(word)
}

/// The sum of a segment's head: of the format, and of all behind the sum.
fn segment_sum(head: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&head[8..12]), &head[16..SEGMENT_HEAD])
}

impl SegmentHead {
    /// The block with which the segment begins.
    pub(super) fn encode(&self) -> [u8; BLOCK] {
        self.block(SEGMENT_MAGIC)
    }

    /// The block with which a file begins that is no segment yet.
    pub(super) fn spare(uuid: [u8; 16], mark: u64) -> [u8; BLOCK] {
        SegmentHead { uuid, mark, sequence: 0, bytes: 0, batch: 0, chunk: 0, format: FORMAT }
            .block(SPARE_MAGIC)
    }

    fn block(&self, magic: u64) -> [u8; BLOCK] {
        let mut block = [0; BLOCK];
        block[..8].copy_from_slice(&magic.to_le_bytes());
        block[8..12].copy_from_slice(&self.format.to_le_bytes());
        block[16..32].copy_from_slice(&self.uuid);
        block[32..40].copy_from_slice(&self.sequence.to_le_bytes());
        block[40..48].copy_from_slice(&self.bytes.to_le_bytes());
        block[48..56].copy_from_slice(&self.batch.to_le_bytes());
        block[56..60].copy_from_slice(&self.chunk.to_le_bytes());
        let sum = segment_sum(&block);
        block[12..16].copy_from_slice(&sum.to_le_bytes());
        block[64..72].copy_from_slice(&self.mark.to_le_bytes());
        let sum = crc32c::crc32c(&block[16..72]);
        block[72..76].copy_from_slice(&sum.to_le_bytes());
        block
    }

    /// The head that `block` holds: None if it is none, or not whole.
    pub(super) fn decode(block: &[u8]) -> Option<SegmentHead> {
        SegmentHead::decode_as(SEGMENT_MAGIC, block)
    }

    /// The head that a file of the log begins with, be it a segment or, with sequence number 0, spare.
    pub(super) fn of_file(block: &[u8]) -> Option<SegmentHead> {
        SegmentHead::decode(block).or_else(|| SegmentHead::decode_as(SPARE_MAGIC, block))
    }

    fn decode_as(magic: u64, block: &[u8]) -> Option<SegmentHead> {
        let head = block.get(..HEAD_READ)?;
        let mark = u64_at(head, 64);
        let is_marked = u32_at(head, 72) == crc32c::crc32c(&head[16..72]);
        if u64_at(head, 0) != magic
            || !(FORMAT_MIN..=FORMAT).contains(&u32_at(head, 8))
            || u32_at(head, 12) != segment_sum(head)
            || !is_marked && (mark != 0 || u32_at(head, 72) != 0)
        {
            return None;
        }
        let mut uuid = [0; 16];
        uuid.copy_from_slice(&head[16..32]);
        Some(SegmentHead {
            uuid,
            sequence: u64_at(head, 32),
            bytes: u64_at(head, 40),
            batch: u64_at(head, 48),
            chunk: u32_at(head, 56),
            mark,
            format: u32_at(head, 8),
        })
    }

    /// The format of the segment, if it is another one; all formats keep it, and the sum of the head.
    pub(super) fn other_format(block: &[u8]) -> Option<u32> {
        let head = block.get(..SEGMENT_HEAD)?;
        let format = u32_at(head, 8);
        let is_known = (FORMAT_MIN..=FORMAT).contains(&format);
        (u64_at(head, 0) == SEGMENT_MAGIC && !is_known && u32_at(head, 12) == segment_sum(head))
            .then_some(format)
    }
}

impl ChunkHead {
    pub(super) fn encode(&self) -> [u8; CHUNK_HEAD] {
        let mut head = [0; CHUNK_HEAD];
        head[..4].copy_from_slice(&CHUNK_MAGIC.to_le_bytes());
        head[8..16].copy_from_slice(&self.batch.to_le_bytes());
        head[16..20].copy_from_slice(&self.chunk.to_le_bytes());
        head[20..24].copy_from_slice(&self.bytes.to_le_bytes());
        head[24..32].copy_from_slice(&self.after.to_le_bytes());
        head[32..40].copy_from_slice(&self.until.to_le_bytes());
        head[40..48].copy_from_slice(&self.durable.to_le_bytes());
        head[48..52].copy_from_slice(&self.max_generation.to_le_bytes());
        head[52..56].copy_from_slice(&(if self.is_last { LAST } else { 0 }).to_le_bytes());
        head[56..60].copy_from_slice(&self.sum.to_le_bytes());
        head[60..].copy_from_slice(&self.salt.to_le_bytes());
        let sum = crc32c::crc32c(&head[8..]);
        head[4..8].copy_from_slice(&sum.to_le_bytes());
        head
    }

    /// The head that `bytes` begins with, if it is one of the log with this salt.
    pub(super) fn decode(bytes: &[u8], salt: u32) -> Option<ChunkHead> {
        let head = bytes.get(..CHUNK_HEAD)?;
        if u32_at(head, 0) != CHUNK_MAGIC
            || u32_at(head, 60) != salt
            || u32_at(head, 4) != crc32c::crc32c(&head[8..])
        {
            return None;
        }
        let chunk = ChunkHead {
            salt,
            batch: u64_at(head, 8),
            chunk: u32_at(head, 16),
            is_last: u32_at(head, 52) & LAST != 0,
            bytes: u32_at(head, 20),
            sum: u32_at(head, 56),
            after: u64_at(head, 24),
            until: u64_at(head, 32),
            durable: u64_at(head, 40),
            max_generation: u32_at(head, 48),
        };
        (chunk.bytes as usize <= LOG_CHUNK - CHUNK_HEAD && chunk.after <= chunk.until).then_some(chunk)
    }

    /// Bytes that the chunk takes in its segment.
    pub(super) fn span(&self) -> u64 {
        (CHUNK_HEAD + self.bytes as usize).next_multiple_of(BLOCK) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_are_read_back_and_every_changed_byte_is_noticed() {
        let (bytes, batch) = (1 << 20, 1 << 40);
        let (uuid, mark) = ([7; 16], 1 << 63 | 1);
        let segment = SegmentHead { uuid, sequence: 9, bytes, batch, chunk: 3, mark, format: FORMAT };
        let block = segment.encode();
        assert_eq!(SegmentHead::decode(&block), Some(segment));
        let chunk = ChunkHead {
            salt: 77,
            batch: u64::MAX,
            chunk: 12,
            is_last: true,
            bytes: 1000,
            sum: 0xdead_beef,
            after: 4,
            until: 5,
            durable: 3,
            max_generation: 8,
        };
        let head = chunk.encode();
        assert_eq!(ChunkHead::decode(&head, 77), Some(chunk));
        assert_eq!(ChunkHead::decode(&head, 78), None, "another database's");
        for at in 0..HEAD_READ {
            let mut bent = block;
            bent[at] ^= 0x40;
            assert_eq!(SegmentHead::decode(&bent), None, "byte {at}");
        }
        for at in 0..64 {
            let mut bent = head;
            bent[at] ^= 0x40;
            assert_eq!(ChunkHead::decode(&bent, 77), None, "byte {at}");
        }
        let mut of_before = block;
        of_before[64..HEAD_READ].fill(0);
        assert_eq!(SegmentHead::decode(&of_before), Some(SegmentHead { mark: 0, ..segment }));
        let spare = SegmentHead::spare([7; 16], 5);
        assert_eq!(SegmentHead::decode(&spare), None, "it is no segment");
        assert_eq!(SegmentHead::of_file(&spare).map(|head| (head.sequence, head.mark)), Some((0, 5)));
        assert_eq!(SegmentHead::of_file(&block), Some(segment));
        assert_eq!(SegmentHead::other_format(&block), None);
        let mut newer = block;
        newer[8] = FORMAT as u8 + 1;
        assert_eq!(SegmentHead::other_format(&newer), None, "its sum is wrong");
        let sum = segment_sum(&newer);
        newer[12..16].copy_from_slice(&sum.to_le_bytes());
        assert_eq!(SegmentHead::other_format(&newer), Some(FORMAT + 1));
        let mut older = block;
        older[8] = FORMAT_MIN as u8;
        let sum = segment_sum(&older);
        older[12..16].copy_from_slice(&sum.to_le_bytes());
        assert_eq!(SegmentHead::decode(&older), Some(SegmentHead { format: FORMAT_MIN, ..segment }));
    }

    #[test]
    fn logs_of_one_database_have_salts_of_their_own_since_format_3() {
        let id = |mark| LogId { uuid: [7; 16], mark };
        assert_ne!(salt(id(1), 3), salt(id(2), 3));
        assert_eq!(salt(id(1), 2), salt(id(2), 2));
    }

    #[test]
    fn a_chunk_that_claims_too_much_is_none() {
        let chunk = ChunkHead { bytes: LOG_CHUNK as u32, ..ChunkHead::default() };
        assert_eq!(ChunkHead::decode(&chunk.encode(), 0), None);
        let chunk = ChunkHead { after: 2, until: 1, ..ChunkHead::default() };
        assert_eq!(ChunkHead::decode(&chunk.encode(), 0), None);
    }
}
