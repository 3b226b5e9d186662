//! Reading the log after a crash of the machine: batches in order, and where and why they end.
//!
//! The log ends at the first batch that is not whole. That is normal after a power loss: the last
//! batches were being written, or not synced yet. It is *damage* if a chunk further on says that the
//! missing batch had been on disk ([`super::remains`]); so it is judged, too, if the log does not reach back to where it
//! is to begin.
//!
//! Damage in the last batch that had been on disk cannot be told from a batch that was being written: nothing
//! behind it says what it was.
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
use super::record::{Batch, Splitter};
use super::remains::{Remains, Stretch};
use super::segment::{self, Found};
use crate::image::io_error;
use crate::limits::{LOG_CHUNK, LOG_SEGMENT};
use crate::meta::LogId;

/// What is wrong with a log, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Damage {
    pub(crate) file: PathBuf,
    pub(crate) offset: u64,
    pub(crate) why: String,
    /// Batches that had been on disk, from that one on.
    pub(crate) lost: u64,
    /// Batches behind it that are whole nevertheless, and their records.
    pub(crate) behind: (u64, u64),
}

impl Display for Damage {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let (batches, records) = self.behind;
        write!(
            f,
            "{} is damaged at byte {}: {}; {} batches that had been on disk cannot be applied, of which {batches} \
             with {records} records lie whole behind the damage",
            self.file.display(),
            self.offset,
            self.why,
            self.lost
        )
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

/// The reading of a log.
pub(crate) struct Replay<'a> {
    disk: &'a dyn Disk,
    database: PathBuf,
    salt: u32,
    /// By sequence number, without what lies before the beginning.
    segments: Vec<Found>,
    /// The sequence numbers of all that were found.
    found: Vec<u64>,
    /// Files of the log whose heads are lost, or that were never used.
    headless: Vec<Arc<Path>>,
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

/// Whether a file with this head belongs to a log.
pub(super) fn is_of(id: LogId, head: &SegmentHead) -> bool {
    head.uuid == id.uuid && (id.mark == 0 || head.mark == id.mark)
}

/// Begins to read the log `id` of the database at `path` with batch `first`.
///
/// # Errors
/// `Io`; `NotADatabase` when a segment has a newer format.
pub(crate) fn read<'a>(disk: &'a dyn Disk, path: &Path, id: LogId, first: u64) -> Result<Replay<'a>> {
    let (mut segments, headless) = segment::found(disk, path)?;
    segments.retain(|segment| is_of(id, &segment.head));
    // A log is written in one format. A mark of 0 stands for any, of versions whose chunks do not have it.
    let format = segments.first().map_or(frame::FORMAT, |segment| segment.head.format);
    let mut replay = Replay {
        headless,
        disk,
        database: path.into(),
        salt: frame::salt(id, format),
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
    pub(crate) id: LogId,
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
    let (mut segments, _) = segment::found(disk, path)?;
    let Some(last) = segments.last() else { return Ok(None) };
    let id = LogId { uuid: last.head.uuid, mark: last.head.mark };
    if segments.iter().any(|segment| segment.head.uuid != id.uuid) {
        let place = format!("{}: the files of its log are of several databases", path.display());
        return Err(Error::Corrupt { place });
    }
    segments.retain(|segment| is_of(id, &segment.head));
    // NB: only what follows without a gap; older segments are spare.
    let gap = segments.windows(2).rposition(|pair| pair[0].head.sequence + 1 != pair[1].head.sequence);
    let head = segments[gap.map_or(0, |gap| gap + 1)].head;
    let first = head.batch + u64::from(head.chunk > 0);
    let mut replay = read(disk, path, id, first)?;
    let mut generation = 0;
    while let Some(batch) = replay.next()? {
        generation = generation.max(batch.max_generation);
    }
    let is_whole = replay.end().is_some_and(|end| end.damage.is_none());
    Ok(Some(Unnamed { id, first, generation, is_whole }))
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
                let begin = oldest.head.batch;
                self.end = Some(
                    self.judge(format!("the log begins with batch {begin}, a file is missing"), (0, 0))?,
                );
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
                    return self.seek_behind(first);
                }
                Err(Flaw::Failed(error)) => return Err(error),
            }
        }
    }

    /// Goes to where batch `first` begins behind the present place, at which no chunk can be read: none of the
    /// batches before it is needed. Stays if it is not found.
    fn seek_behind(&mut self, first: u64) -> Result<()> {
        let remains = self.remains()?;
        let Some(begin) = remains.begin(first) else { return Ok(()) };
        if let Some(at) = self.segments.iter().position(|segment| segment.path == begin.path) {
            (self.at, self.offset) = (at, begin.offset);
        }
        Ok(())
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
            let (first, splitter) =
                begun.get_or_insert_with(|| (interval, Splitter::new(chunk.after, chunk.until)));
            let flaw = if chunk.batch != self.expected || chunk.chunk != count {
                Some("another batch follows")
            } else if *first != interval || self.until.is_some_and(|before| before != chunk.after) {
                Some("its interval does not follow the one before")
            } else {
                None
            };
            if let Some(flaw) = flaw {
                self.offset -= chunk.span();
                return Err(Flaw::Broken(flaw.to_owned()));
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
        let remains = self.remains()?;
        let (highest, durable) = (remains.highest(), remains.durable());
        let begun = self.segments.last().map_or(0, |segment| segment.head.batch);
        let place = self.segments.get(self.at).map(|segment| (segment.path.to_path_buf(), self.offset));
        let mut end = End { batches: self.batches, place, ..End::default() };
        // NB: one more, so that no left-over of a batch can ever be taken for one of the new log.
        end.next_batch = highest.max(begun).max(self.expected) + 1;
        if durable < self.expected {
            end.dropped = (highest + 1).saturating_sub(self.expected);
            return Ok(end);
        }
        let mut behind = (0, 0);
        for batch in remains.behind(self.disk, self.expected) {
            behind = (behind.0 + 1, behind.1 + batch?.records.len() as u64);
        }
        end.dropped = durable + 1 - self.expected;
        let (file, offset, why) = match (self.segments.get(flaw.0), self.lost_head(&remains)) {
            // NB: a chunk never begins where a file does.
            (Some(segment), _) if (1..segment.head.bytes).contains(&flaw.1) => (&*segment.path, flaw.1, why),
            (_, Some(headless)) => (headless, 0, "the head of the file is damaged".to_owned()),
            (Some(segment), None) => (&*segment.path, flaw.1, why),
            (None, None) => (&*self.database, 0, why),
        };
        let why = format!("batch {} cannot be read ({why}), but it had been on disk", self.expected);
        end.damage = Some(Damage { file: file.into(), offset, why, lost: end.dropped, behind });
        Ok(end)
    }

    /// The first file without a head in which something is that would come next.
    fn lost_head<'b>(&self, remains: &'b Remains) -> Option<&'b Path> {
        remains
            .pieces()
            .map(|piece| &piece.path)
            .find(|path| self.headless.contains(path))
            .map(|path| &**path)
    }

    /// All that there is of the batch that comes next, and of those behind it.
    fn remains(&self) -> Result<Remains> {
        let whole = |path: &Arc<Path>| Stretch { path: Arc::clone(path), from: BLOCK as u64, to: u64::MAX };
        let segments = self.segments.iter().enumerate().skip(self.at).map(|(at, segment)| Stretch {
            from: if at == self.at { self.offset } else { BLOCK as u64 },
            to: segment.head.bytes,
            path: Arc::clone(&segment.path),
        });
        let stretches: Vec<_> = segments.chain(self.headless.iter().map(whole)).collect();
        Remains::find(self.disk, &stretches, self.salt, self.expected)
    }

    /// The batches that lie whole behind the damage that has ended the log, in their order, as far as anything of
    /// them can be read: others between them are missing.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn behind(&self, mut each: impl FnMut(Batch) -> Result<()>) -> Result<()> {
        if self.end.as_ref().is_none_or(|end| end.damage.is_none()) {
            return Ok(());
        }
        let remains = self.remains()?;
        for batch in remains.behind(self.disk, self.expected) {
            each(batch?)?;
        }
        Ok(())
    }

    /// The database whose log this is.
    pub(crate) fn database(&self) -> &Path {
        &self.database
    }
}

const _: () = assert!(LOG_CHUNK <= LOG_SEGMENT as usize && LOG_CHUNK.is_multiple_of(BLOCK));
