//! Writing one batch: records in, chunks out.
//!
//! Memory is bounded by one chunk, however large the batch. Nothing here is durable, and nothing counts
//! before the log's position says so: a batch that was not finished is written again in the same place.
//!
//! What if we are killed? The position still names the place where the batch began.

use perilune_disk::DiskFile;
use perilune_store::Result;

use super::frame::{ChunkHead, BLOCK, CHUNK_HEAD};
use crate::limits::LOG_CHUNK;

/// A place in the log: where the next chunk goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Spot {
    /// Number in the file's name.
    pub(super) slot: u32,
    /// The segment's number; 0: there is none yet.
    pub(super) sequence: u64,
    pub(super) offset: u64,
}

impl Spot {
    /// The offset of a place in a segment whose file is gone: the log goes on in the next.
    pub(super) const FILE_MISSING: u64 = u64::MAX;
}

/// A segment open for writing.
pub(super) struct Segment {
    pub(super) file: Box<dyn DiskFile>,
    pub(super) spot: Spot,
    /// Bytes that chunks may fill, the head's block included.
    pub(super) bytes: u64,
    /// The block to be written in front of the first chunk, if the segment is new.
    pub(super) head: Option<[u8; BLOCK]>,
}

/// Where segments come from.
pub(super) trait Segments {
    /// Opens the segment in which the log goes on.
    ///
    /// # Errors
    /// `Io`.
    fn open(&mut self, spot: Spot) -> Result<Segment>;

    /// The segment behind the one of `spot`, to begin with this chunk of this batch.
    ///
    /// # Errors
    /// `NoSpace` when there is none and none can be made; `Io`.
    fn next(&mut self, spot: Spot, batch: u64, chunk: u32) -> Result<Segment>;

    /// Turns the system's answer to a failed write into an error.
    fn write_error(&self, segment: &Segment, source: std::io::Error) -> perilune_store::Error;
}

/// The segment, at the spot where the next batch begins, and the bytes written; None if the batch was empty.
pub(super) type Written = Option<(Segment, u64)>;

/// A batch being written.
pub(super) struct BatchWriter<'a> {
    segments: &'a mut dyn Segments,
    /// Where the batch began, until the first chunk is opened.
    begin: Spot,
    segment: Option<Segment>,
    head: ChunkHead,
    /// The chunk being filled, behind the segment's head if that is still to be written.
    buffer: Vec<u8>,
    /// Bytes before the chunk in the buffer.
    lead: usize,
    /// Bytes of the whole batch, with all heads and padding.
    written: u64,
}

impl<'a> BatchWriter<'a> {
    /// A batch that begins at `begin`. Of `head` the batch, its interval, the salt and the durable batch
    /// count; `buffer` lends its memory.
    pub(super) fn new(
        segments: &'a mut dyn Segments,
        begin: Spot,
        head: ChunkHead,
        buffer: Vec<u8>,
    ) -> BatchWriter<'a> {
        let head = ChunkHead { chunk: 0, is_last: false, max_generation: 0, ..head };
        BatchWriter { segments, begin, segment: None, head, buffer, lead: 0, written: 0 }
    }

    /// Notes the generation of a record that is about to be written.
    pub(super) fn note_generation(&mut self, generation: u32) {
        self.head.max_generation = self.head.max_generation.max(generation);
    }

    /// A buffer to which up to so many bytes may be appended, at least one.
    ///
    /// # Errors
    /// As [`Segments::next`]; what writing answers.
    pub(super) fn room(&mut self) -> Result<(&mut Vec<u8>, usize)> {
        if self.segment.is_none() || self.left() == 0 {
            self.turn()?;
        }
        let left = self.left();
        Ok((&mut self.buffer, left))
    }

    /// Appends bytes.
    ///
    /// # Errors
    /// As [`BatchWriter::room`].
    pub(super) fn write(&mut self, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            let (buffer, room) = self.room()?;
            let count = room.min(bytes.len());
            buffer.extend_from_slice(&bytes[..count]);
            bytes = &bytes[count..];
        }
        Ok(())
    }

    /// Ends the batch, and gives the buffer back.
    ///
    /// # Errors
    /// What writing answers.
    pub(super) fn finish(mut self) -> Result<(Written, Vec<u8>)> {
        if self.segment.is_none() {
            return Ok((None, self.buffer));
        }
        self.head.is_last = true;
        self.put_chunk()?;
        Ok((self.segment.map(|segment| (segment, self.written)), self.buffer))
    }

    /// Bytes that the chunk under way still takes.
    fn left(&self) -> usize {
        let Some(segment) = &self.segment else { return 0 };
        let room = (segment.bytes - segment.spot.offset - self.lead as u64).min(LOG_CHUNK as u64) as usize;
        room - (self.buffer.len() - self.lead)
    }

    /// Writes the full chunk, if there is one, and begins the next, in the next segment if need be.
    fn turn(&mut self) -> Result<()> {
        if self.segment.is_some() {
            self.put_chunk()?;
            self.head.chunk += 1;
        }
        let segment = match self.segment.take() {
            Some(segment) => segment,
            None if self.begin.sequence == 0 || self.begin.offset == Spot::FILE_MISSING => {
                self.segments.next(self.begin, self.head.batch, self.head.chunk)?
            }
            None => self.segments.open(self.begin)?,
        };
        let is_full = segment.bytes - segment.spot.offset < (2 * CHUNK_HEAD) as u64;
        let segment = if is_full {
            self.segments.next(segment.spot, self.head.batch, self.head.chunk)?
        } else {
            segment
        };
        self.buffer.clear();
        if let Some(head) = &segment.head {
            self.buffer.extend_from_slice(head);
        }
        self.lead = self.buffer.len();
        self.buffer.resize(self.lead + CHUNK_HEAD, 0);
        self.segment = Some(segment);
        Ok(())
    }

    fn put_chunk(&mut self) -> Result<()> {
        let Some(segment) = &mut self.segment else { return Ok(()) };
        let body = self.lead + CHUNK_HEAD;
        self.head.bytes = (self.buffer.len() - body) as u32;
        self.head.sum = crc32c::crc32c(&self.buffer[body..]);
        self.buffer[self.lead..body].copy_from_slice(&self.head.encode());
        let padded = self.buffer.len().next_multiple_of(BLOCK);
        self.buffer.resize(padded, 0);
        let written = segment.file.write_at(&self.buffer, segment.spot.offset);
        written.map_err(|source| self.segments.write_error(segment, source))?;
        segment.spot.offset += self.buffer.len() as u64;
        segment.head = None;
        self.written += self.buffer.len() as u64;
        self.lead = 0;
        self.buffer.clear();
        Ok(())
    }
}
