//! Reading the log after a crash of the machine: batches in order, and where and why they end.
//!
//! The log ends at the first batch that is not whole. That is normal after a power loss: the last
//! batches were being written, or not synced yet. It is *damage* if a chunk further on says that the
//! missing batch had been on disk, or if the log does not reach back to where it is to begin.
//!
//! Invariants
//! - Batches come without gaps in their numbers and in their intervals, each with the sum of every chunk
//!   checked; what is answered is a prefix of what was written.
//! - Nothing is written.
//! - Of a batch only short records are held in memory, at most about 16 MiB for each session that wrote, and
//!   besides the longest record: long ones are read again when they are applied.
//!
//! Deliberately absent: applying records (`open`).

use std::fmt::{Display, Formatter};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use perilune_disk::Disk;
use perilune_store::{Error, Result};

use super::frame::{self, ChunkHead, SegmentHead, BLOCK, CHUNK_HEAD};
use super::record::{LogRecord, Splitter};
use crate::image::io_error;
use crate::limits::{LOG_CHUNK, LOG_SEGMENT};

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

/// What is wrong with a log, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Damage {
    pub(crate) file: PathBuf,
    pub(crate) offset: u64,
    pub(crate) why: String,
}

impl Display for Damage {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} is damaged at byte {}: {}", self.file.display(), self.offset, self.why)
    }
}

/// How a log ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct End {
    /// Batches answered.
    pub(crate) batches: u64,
    /// The number with which a new log goes on; higher than all found.
    pub(crate) next_batch: u64,
    /// The file and offset behind the last batch; None if there is no log.
    pub(crate) place: Option<(PathBuf, u64)>,
    /// Batches that were begun and not known to be on disk, and cannot be used.
    pub(crate) dropped: u64,
    /// Set if batches are missing that had been on disk.
    pub(crate) damage: Option<Damage>,
}

/// A segment found.
#[derive(Debug)]
struct Found {
    path: Arc<Path>,
    head: SegmentHead,
}

/// The reading of a log.
pub(crate) struct Replay<'a> {
    disk: &'a dyn Disk,
    database: PathBuf,
    salt: u32,
    /// By sequence number, without what lies before the beginning.
    segments: Vec<Found>,
    /// The sequence numbers of all that were found.
    found: Vec<u64>,
    at: usize,
    offset: u64,
    expected: u64,
    /// The end of the interval of the batch before.
    until: Option<u64>,
    batches: u64,
    end: Option<End>,
}

/// Why the next batch cannot be read.
enum Flaw {
    /// Nothing of it is there, or not all, or not as it was written.
    Broken(String),
    Failed(Error),
}

impl From<Error> for Flaw {
    fn from(error: Error) -> Self {
        Flaw::Failed(error)
    }
}

/// Begins to read the log of the database at `path` with batch `first`.
///
/// # Errors
/// `Io`; `NotADatabase` when a segment has a newer format.
pub(crate) fn read<'a>(disk: &'a dyn Disk, path: &Path, uuid: [u8; 16], first: u64) -> Result<Replay<'a>> {
    let mut segments = all_segments(disk, path)?;
    segments.retain(|segment| segment.head.uuid == uuid);
    let mut replay = Replay {
        disk,
        database: path.into(),
        salt: frame::salt(uuid),
        found: segments.iter().map(|segment| segment.head.sequence).collect(),
        segments,
        at: 0,
        offset: BLOCK as u64,
        expected: first,
        until: None,
        batches: 0,
        end: None,
    };
    replay.seek(first)?;
    Ok(replay)
}

/// A log of which no meta says where it is to begin.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unnamed {
    pub(crate) uuid: [u8; 16],
    /// The first batch that is there from its first chunk on.
    pub(crate) first: u64,
    /// The highest generation among the records that can be read.
    pub(crate) generation: u32,
    /// Whether it ends as a crash leaves it, not by damage.
    pub(crate) is_whole: bool,
}

/// The log that lies beside the database at `path`; None if there is none.
///
/// # Errors
/// `Io`; `NotADatabase` when a segment has a newer format; `Corrupt` when there are logs of several databases.
pub(crate) fn unnamed(disk: &dyn Disk, path: &Path) -> Result<Option<Unnamed>> {
    let segments = all_segments(disk, path)?;
    let Some(last) = segments.last() else { return Ok(None) };
    let uuid = last.head.uuid;
    if segments.iter().any(|segment| segment.head.uuid != uuid) {
        let place = format!("{}: the files of its log are of several databases", path.display());
        return Err(Error::Corrupt { place });
    }
    // NB: only what follows without a gap; older segments are spare.
    let gap = segments.windows(2).rposition(|pair| pair[0].head.sequence + 1 != pair[1].head.sequence);
    let head = segments[gap.map_or(0, |gap| gap + 1)].head;
    let first = head.batch + u64::from(head.chunk > 0);
    let mut replay = read(disk, path, uuid, first)?;
    let mut generation = 0;
    while let Some(batch) = replay.next()? {
        generation = generation.max(batch.max_generation);
    }
    let is_whole = replay.end().is_some_and(|end| end.damage.is_none());
    Ok(Some(Unnamed { uuid, first, generation, is_whole }))
}

/// The segments beside the database at `path`, by sequence number.
fn all_segments(disk: &dyn Disk, path: &Path) -> Result<Vec<Found>> {
    let mut segments = Vec::new();
    for (_, path) in super::segment::files(disk, path)? {
        if let Some(head) = segment_head(disk, &path)? {
            segments.push(Found { path: path.into(), head });
        }
    }
    segments.sort_by_key(|segment| segment.head.sequence);
    Ok(segments)
}

fn segment_head(disk: &dyn Disk, path: &Path) -> Result<Option<SegmentHead>> {
    let failed = |source| io_error("read the log", path, source);
    let file = disk.open(path, false).map_err(failed)?;
    if file.size().map_err(failed)? < BLOCK as u64 {
        return Ok(None);
    }
    let mut block = [0; BLOCK];
    file.read_at(&mut block, 0).map_err(failed)?;
    if let Some(format) = SegmentHead::other_format(&block) {
        return Err(Error::NotADatabase {
            path: path.into(),
            why: format!(
                "is a log of format {format}, this version reads format 1: use a newer version of Perilune"
            ),
        });
    }
    Ok(SegmentHead::decode(&block))
}

impl Replay<'_> {
    /// The next batch; None at the end, of which [`Replay::end`] tells.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn next(&mut self) -> Result<Option<Batch>> {
        if self.end.is_some() {
            return Ok(None);
        }
        let (at, offset) = (self.at, self.offset);
        match self.batch() {
            Ok(batch) => {
                self.expected += 1;
                self.batches += 1;
                self.until = Some(batch.interval.1);
                Ok(Some(batch))
            }
            Err(Flaw::Broken(why)) => {
                // A batch may have begun in another segment than the chunk that cannot be read.
                let flaw = (self.at, self.offset);
                (self.at, self.offset) = (at, offset);
                self.end = Some(self.judge(why, flaw)?);
                Ok(None)
            }
            Err(Flaw::Failed(error)) => Err(error),
        }
    }

    /// Whether the file of the segment with this sequence number is missing (0: of none).
    pub(crate) fn lacks(&self, sequence: u64) -> bool {
        sequence != 0 && !self.found.contains(&sequence)
    }

    /// How the log ended, once [`Replay::next`] has answered None.
    pub(crate) fn end(&self) -> Option<&End> {
        self.end.as_ref()
    }

    /// Goes to where batch `first` begins.
    fn seek(&mut self, first: u64) -> Result<()> {
        let reaches = |segment: &Found| (segment.head.batch, segment.head.chunk) <= (first, 0);
        let Some(begin) = self.segments.iter().rposition(reaches) else {
            if let Some(oldest) = self.segments.first() {
                let why = format!(
                    "the log begins with batch {}, but the checkpoint needs it from batch {first} on: a file is missing",
                    oldest.head.batch
                );
                let damage = Damage { file: oldest.path.to_path_buf(), offset: 0, why };
                self.end = Some(self.over(Some(damage), 0, oldest.head.batch)?);
            }
            return Ok(());
        };
        self.segments.drain(..begin);
        let mut head = Vec::new();
        loop {
            let (at, offset) = (self.at, self.offset);
            match self.chunk(&mut head, false) {
                Ok(chunk) if chunk.batch >= first => {
                    (self.at, self.offset) = (at, offset);
                    return Ok(());
                }
                Ok(_) => {}
                Err(Flaw::Broken(_)) => {
                    (self.at, self.offset) = (at, offset);
                    return Ok(());
                }
                Err(Flaw::Failed(error)) => return Err(error),
            }
        }
    }

    /// Reads the chunk at the present place and goes behind it; its body too, if that is wanted.
    fn chunk(&mut self, body: &mut Vec<u8>, wanted: bool) -> std::result::Result<ChunkHead, Flaw> {
        let broken = |why: &str| Flaw::Broken(why.to_owned());
        if let Some(segment) = self.segments.get(self.at) {
            if self.offset >= segment.head.bytes {
                let next = self.segments.get(self.at + 1);
                if next.is_none_or(|next| next.head.sequence != segment.head.sequence + 1) {
                    return Err(broken("the next segment is missing"));
                }
                self.at += 1;
                self.offset = BLOCK as u64;
            }
        }
        let segment = self.segments.get(self.at).ok_or_else(|| broken("there is no log"))?;
        let failed = |source| io_error("read the log", &segment.path, source);
        let file = self.disk.open(&segment.path, false).map_err(failed)?;
        let size = file.size().map_err(failed)?.min(segment.head.bytes);
        let mut head = [0; CHUNK_HEAD];
        if self.offset + CHUNK_HEAD as u64 > size {
            return Err(broken("the file ends"));
        }
        file.read_at(&mut head, self.offset).map_err(failed)?;
        let chunk = ChunkHead::decode(&head, self.salt).ok_or_else(|| broken("no batch follows"))?;
        if self.offset + chunk.span() > size {
            return Err(broken("the file ends"));
        }
        if wanted {
            let from = body.len();
            body.resize(from + chunk.bytes as usize, 0);
            file.read_at(&mut body[from..], self.offset + CHUNK_HEAD as u64).map_err(failed)?;
            if crc32c::crc32c(&body[from..]) != chunk.sum {
                return Err(broken("the checksum of a chunk is wrong"));
            }
        }
        self.offset += chunk.span();
        Ok(chunk)
    }

    fn batch(&mut self) -> std::result::Result<Batch, Flaw> {
        let contradictory = || Flaw::Broken("its records contradict their format".to_owned());
        let mut body = Vec::new();
        let mut count = 0;
        let mut begun = None;
        loop {
            body.clear();
            let chunk = self.chunk(&mut body, true)?;
            let interval = (chunk.after, chunk.until);
            let (first, splitter) = begun.get_or_insert_with(|| (interval, Splitter::new(interval)));
            if chunk.batch != self.expected || chunk.chunk != count {
                return Err(Flaw::Broken("another batch follows".to_owned()));
            }
            if *first != interval || self.until.is_some_and(|before| before != chunk.after) {
                return Err(Flaw::Broken("its interval does not follow the one before".to_owned()));
            }
            let offset = self.offset - chunk.span() + CHUNK_HEAD as u64;
            splitter.add(&self.segments[self.at].path, offset, &body).ok_or_else(contradictory)?;
            count += 1;
            if chunk.is_last {
                let records = begun.and_then(|(_, splitter)| splitter.finish()).ok_or_else(contradictory)?;
                return Ok(Batch {
                    number: chunk.batch,
                    interval,
                    max_generation: chunk.max_generation,
                    records,
                });
            }
        }
    }

    /// Finds out whether what ends the log at the present place is damage; `flaw`: where it was found.
    fn judge(&self, why: String, flaw: (usize, u64)) -> Result<End> {
        let (highest, durable) = self.survey()?;
        let dropped = (highest + 1).saturating_sub(self.expected);
        let Some(segment) = self.segments.get(flaw.0) else {
            return self.over(None, 0, highest);
        };
        let damage = (durable >= self.expected).then(|| Damage {
            file: segment.path.to_path_buf(),
            offset: flaw.1,
            why: format!("batch {} cannot be read ({why}), but it had been on disk", self.expected),
        });
        let dropped = if damage.is_some() { durable + 1 - self.expected } else { dropped };
        self.over(damage, dropped, highest)
    }

    fn over(&self, damage: Option<Damage>, dropped: u64, highest: u64) -> Result<End> {
        let place = self.segments.get(self.at).map(|segment| (segment.path.to_path_buf(), self.offset));
        // NB: one more, so that no left-over of a batch can ever be taken for one of the new log.
        let next_batch = highest.max(self.expected) + 1;
        Ok(End { batches: self.batches, next_batch, place, dropped, damage })
    }

    /// The highest batch of which there is anything from the present place on, and the highest that
    /// any of it says to have been on disk.
    fn survey(&self) -> Result<(u64, u64)> {
        let (mut highest, mut durable) = (0, 0);
        let mut from = self.offset;
        for segment in self.segments.iter().skip(self.at) {
            let failed = |source| io_error("read the log", &segment.path, source);
            let file = self.disk.open(&segment.path, false).map_err(failed)?;
            let size = file.size().map_err(failed)?.min(segment.head.bytes);
            let mut bytes = Vec::new();
            while from < size {
                bytes.resize((size - from).min(LOG_CHUNK as u64) as usize, 0);
                file.read_at(&mut bytes, from).map_err(failed)?;
                for block in bytes.chunks(BLOCK) {
                    if let Some(chunk) = ChunkHead::decode(block, self.salt) {
                        if chunk.batch >= self.expected {
                            highest = highest.max(chunk.batch);
                            durable = durable.max(chunk.durable);
                        }
                    }
                }
                from += bytes.len() as u64;
            }
            from = BLOCK as u64;
        }
        Ok((highest, durable))
    }

    /// The database whose log this is.
    pub(crate) fn database(&self) -> &Path {
        &self.database
    }
}

const _: () = assert!(LOG_CHUNK <= LOG_SEGMENT as usize && LOG_CHUNK.is_multiple_of(BLOCK));
