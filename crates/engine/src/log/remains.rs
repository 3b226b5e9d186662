//! What lies in the log's files behind the place where its reading ended: the evidence of whether that is
//! damage, and what a salvage can still make of it.
//!
//! Chunks are looked for block by block, also where heads cannot be read, and in files whose own head is lost.
//! Each tells its batch and the last batch that had been on disk when it was written.
//!
//! Invariants
//! - What a chunk says counts only if its head has its sum, and the database's; its records, only if its body has.
//! - Nothing is written.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use perilune_disk::Disk;
use perilune_store::Result;

use super::frame::{ChunkHead, BLOCK, CHUNK_HEAD};
use super::record::{Batch, Splitter};
use crate::image::io_error;
use crate::limits::LOG_CHUNK;

/// A chunk that was found.
#[derive(Clone, Debug)]
pub(super) struct Piece {
    pub(super) head: ChunkHead,
    pub(super) path: Arc<Path>,
    /// Where its head lies.
    pub(super) offset: u64,
}

/// A stretch of a file that is looked through: from an offset on, up to an end.
pub(super) struct Stretch {
    pub(super) path: Arc<Path>,
    pub(super) from: u64,
    pub(super) to: u64,
}

/// All chunks of some batch and of later ones.
#[derive(Default)]
pub(super) struct Remains {
    /// By batch; of each by chunk.
    batches: BTreeMap<u64, Vec<Piece>>,
}

impl Remains {
    /// Looks through `stretches` for chunks of batch `first` and of later ones.
    ///
    /// # Errors
    /// `Io`.
    pub(super) fn find(disk: &dyn Disk, stretches: &[Stretch], salt: u32, first: u64) -> Result<Remains> {
        let mut remains = Remains::default();
        let mut bytes = Vec::new();
        for Stretch { path, from, to } in stretches {
            let failed = |source| io_error("read the log", path, source);
            let file = disk.open(path, false).map_err(failed)?;
            let size = file.size().map_err(failed)?.min(*to);
            let (mut at, mut behind) = (*from, 0);
            while at < size {
                bytes.resize((size - at).min(LOG_CHUNK as u64) as usize, 0);
                file.read_at(&mut bytes, at).map_err(failed)?;
                for (block, offset) in bytes.chunks(BLOCK).zip((at..).step_by(BLOCK)) {
                    // NB: the inside of a chunk is the user's bytes. That of an older one may have been written over.
                    let Some(head) = (offset >= behind).then(|| ChunkHead::decode(block, salt)).flatten()
                    else {
                        continue;
                    };
                    if head.batch >= first {
                        behind = offset + head.span();
                        let piece = Piece { head, path: Arc::clone(path), offset };
                        remains.batches.entry(head.batch).or_default().push(piece);
                    }
                }
                at += bytes.len() as u64;
            }
        }
        remains.batches.values_mut().for_each(|pieces| pieces.sort_by_key(|piece| piece.head.chunk));
        Ok(remains)
    }

    /// The highest batch of which there is anything; 0: none.
    pub(super) fn highest(&self) -> u64 {
        self.batches.last_key_value().map_or(0, |(batch, _)| *batch)
    }

    /// The highest batch that anything here says to have been on disk; 0: none.
    pub(super) fn durable(&self) -> u64 {
        self.pieces().map(|piece| piece.head.durable).max().unwrap_or(0)
    }

    /// All chunks, by batch and chunk.
    pub(super) fn pieces(&self) -> impl Iterator<Item = &Piece> {
        self.batches.values().flatten()
    }

    /// The first chunk of `batch`.
    pub(super) fn begin(&self, batch: u64) -> Option<&Piece> {
        self.batches.get(&batch)?.iter().find(|piece| piece.head.chunk == 0)
    }

    /// The batches behind `batch` that are whole, in their order. Those that are not are left out.
    ///
    /// # Errors
    /// `Io`.
    pub(super) fn behind<'a>(
        &'a self,
        disk: &'a dyn Disk,
        batch: u64,
    ) -> impl Iterator<Item = Result<Batch>> + 'a {
        let later = self.batches.range(batch + 1..);
        later.filter_map(move |(_, pieces)| whole(disk, pieces).transpose())
    }
}

/// The batch that `pieces` are, if none is missing and all have their sums.
fn whole(disk: &dyn Disk, pieces: &[Piece]) -> Result<Option<Batch>> {
    let Some(Piece { head: first, .. }) = pieces.first() else { return Ok(None) };
    let interval = (first.after, first.until);
    let mut splitter = Splitter::new(first.after, first.until);
    for (count, Piece { head, path, offset }) in pieces.iter().enumerate() {
        let failed = |source| io_error("read the log", path, source);
        let is_last = count + 1 == pieces.len();
        if head.chunk as usize != count || (head.after, head.until) != interval || head.is_last != is_last {
            return Ok(None);
        }
        let mut body = vec![0; head.bytes as usize];
        let (file, at) = (disk.open(path, false).map_err(failed)?, offset + CHUNK_HEAD as u64);
        if at + u64::from(head.bytes) > file.size().map_err(failed)? {
            return Ok(None);
        }
        file.read_at(&mut body, at).map_err(failed)?;
        if crc32c::crc32c(&body) != head.sum || splitter.add(path, at, &body).is_none() {
            return Ok(None);
        }
    }
    let max_generation = pieces.iter().map(|piece| piece.head.max_generation).max().unwrap_or(0);
    let batch = |records| Batch { number: first.batch, interval, max_generation, records };
    Ok(splitter.finish().map(batch))
}
