//! A disk that notes what it was asked for, so that the simulator knows what a power loss may leave.
//!
//! Each process has a recording, a file that survives its death. What is done to the database file and to the log's
//! segments by system calls is noted there: before it is begun, and once it is done. Nothing is really synced: what
//! a sync makes durable is read from the recordings. Stores through mappings are not seen.
//!
//! Invariants
//! - A note is one write of the recording: only the last note of a recording can be torn.
//! - Notes of all recordings are ordered by their times: what happened before has a lower one.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::RawFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use perilune_disk::{Disk, DiskFile, FileAccess, FileId, RealDisk};
use perilune_harness::bank::Random;
use perilune_shm::platform::monotonic_nanos;

use crate::Canary;

/// The database file; segment `n` of the log is file `n + 1`.
pub(crate) const DATABASE: u32 = 0;
/// Bytes of a note without the data written.
const HEAD: usize = 48;

/// What was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    WriteBegun = 1,
    WriteDone,
    /// `length` is the size of the file.
    SyncBegun,
    SyncDone,
    Created,
    Removed,
    DirectorySyncBegun,
    DirectorySyncDone,
}

const KINDS: [Kind; 8] = [
    Kind::WriteBegun,
    Kind::WriteDone,
    Kind::SyncBegun,
    Kind::SyncDone,
    Kind::Created,
    Kind::Removed,
    Kind::DirectorySyncBegun,
    Kind::DirectorySyncDone,
];

/// One note.
#[derive(Clone, Debug)]
pub(crate) struct Note {
    pub(crate) kind: Kind,
    pub(crate) file: u32,
    /// Joins begin and end, unique among all recordings.
    pub(crate) id: (usize, u64),
    /// Nanoseconds of the machine's clock.
    pub(crate) time: u64,
    pub(crate) offset: u64,
    pub(crate) length: u64,
    /// What was written; None for zeros.
    pub(crate) data: Option<Vec<u8>>,
}

/// What fails from now on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(test), allow(dead_code))]
pub(crate) enum Failing {
    Nothing,
    /// Writes and making files, for want of space.
    NoSpace,
    Sync,
}

#[derive(Debug)]
struct Recording {
    failing: AtomicU64,
    file: Mutex<File>,
    next: AtomicU64,
    random: Mutex<Random>,
    /// Longest sync, in microseconds.
    sync_max: u64,
    canary: Option<Canary>,
}

/// The disk of a process.
#[derive(Clone, Debug)]
pub(crate) struct RecordingDisk(Arc<Recording>);

#[derive(Debug)]
struct RecordingFile {
    recording: Arc<Recording>,
    /// None: not one whose fate is of interest.
    number: Option<u32>,
    file: Box<dyn DiskFile>,
    real: PathBuf,
}

/// Which file a path names.
fn number(path: &Path) -> Option<u32> {
    let name = path.file_name()?.to_str()?;
    if name == crate::operations::DATABASE {
        return Some(DATABASE);
    }
    let slot = name.strip_prefix(crate::operations::DATABASE)?.strip_prefix("-wal.")?;
    Some(slot.parse::<u32>().ok()? + 1)
}

impl Recording {
    fn id(&self) -> u64 {
        self.next.fetch_add(1, Relaxed)
    }

    fn note(&self, kind: Kind, file: u32, id: u64, place: (u64, u64), data: &[u8]) -> io::Result<()> {
        let mut note = Vec::with_capacity(HEAD + data.len());
        let mut recording = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        note.extend_from_slice(&(kind as u32).to_le_bytes());
        note.extend_from_slice(&file.to_le_bytes());
        for word in [id, monotonic_nanos(), place.0, place.1, data.len() as u64] {
            note.extend_from_slice(&word.to_le_bytes());
        }
        note.extend_from_slice(data);
        recording.write_all(&note)
    }

    fn check(&self, failing: Failing) -> io::Result<()> {
        let error = if failing == Failing::NoSpace { 28 } else { 5 };
        match self.failing.load(Relaxed) == failing as u64 {
            true => Err(io::Error::from_raw_os_error(error)),
            false => Ok(()),
        }
    }

    fn below(&self, bound: u64) -> u64 {
        self.random.lock().unwrap_or_else(PoisonError::into_inner).below(bound)
    }
}

impl RecordingDisk {
    /// A disk with a new recording at `path`. Syncs take up to `sync_max` microseconds.
    pub(crate) fn new(
        path: &Path,
        seed: u64,
        sync_max: u64,
        canary: Option<Canary>,
    ) -> io::Result<RecordingDisk> {
        let file = OpenOptions::new().append(true).create(true).open(path)?;
        let (next, random) = (AtomicU64::new(0), Mutex::new(Random::new(seed)));
        Ok(RecordingDisk(Arc::new(Recording {
            failing: AtomicU64::new(0),
            file: Mutex::new(file),
            next,
            random,
            sync_max,
            canary,
        })))
    }

    /// Lets calls fail, until told otherwise.
    #[cfg(test)]
    pub(crate) fn fail(&self, failing: Failing) {
        self.0.failing.store(failing as u64, Relaxed);
    }

    fn wrap(&self, path: &Path, file: Box<dyn DiskFile>) -> Box<dyn DiskFile> {
        let (recording, real) = (Arc::clone(&self.0), path.to_path_buf());
        Box::new(RecordingFile { recording, number: number(path), file, real })
    }
}

impl Disk for RecordingDisk {
    fn open(&self, path: &Path, write: bool) -> io::Result<Box<dyn DiskFile>> {
        Ok(self.wrap(path, RealDisk.open(path, write)?))
    }

    fn open_held(&self, descriptor: RawFd, write: bool) -> io::Result<Box<dyn DiskFile>> {
        RealDisk.open_held(descriptor, write)
    }

    fn create(&self, path: &Path, access: FileAccess) -> io::Result<Box<dyn DiskFile>> {
        self.0.check(Failing::NoSpace)?;
        let file = RealDisk.create(path, access)?;
        if let Some(number) = number(path) {
            self.0.note(Kind::Created, number, self.0.id(), (0, 0), &[])?;
        }
        Ok(self.wrap(path, file))
    }

    fn remove(&self, path: &Path) -> io::Result<bool> {
        // NB: before it is done, so that nobody finds it gone without a note.
        if let Some(number) = number(path) {
            self.0.note(Kind::Removed, number, self.0.id(), (0, 0), &[])?;
        }
        RealDisk.remove(path)
    }

    fn names(&self, directory: &Path) -> io::Result<Vec<OsString>> {
        RealDisk.names(directory)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        RealDisk.rename(from, to)
    }

    fn rename_new(&self, from: &Path, to: &Path) -> io::Result<()> {
        RealDisk.rename_new(from, to)
    }

    fn sync_directory(&self, _path: &Path) -> io::Result<()> {
        let id = self.0.id();
        self.0.note(Kind::DirectorySyncBegun, 0, id, (0, 0), &[])?;
        self.0.note(Kind::DirectorySyncDone, 0, id, (0, 0), &[])
    }
}

impl DiskFile for RecordingFile {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        self.file.read_at(bytes, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let Some(number) = self.number else { return self.file.write_at(bytes, offset) };
        self.recording.check(Failing::NoSpace)?;
        let (id, place) = (self.recording.id(), (offset, bytes.len() as u64));
        let data = if bytes.iter().all(|byte| *byte == 0) { &[] } else { bytes };
        self.recording.note(Kind::WriteBegun, number, id, place, data)?;
        self.file.write_at(bytes, offset)?;
        self.recording.note(Kind::WriteDone, number, id, place, &[])
    }

    fn sync_data(&self) -> io::Result<()> {
        let Some(number) = self.number else { return Ok(()) };
        self.recording.check(Failing::Sync)?;
        let lies = match self.recording.canary {
            Some(Canary::UnsyncedLog) => number != DATABASE,
            Some(Canary::UnsyncedCheckpoint) => number == DATABASE,
            _ => false,
        };
        if lies {
            return Ok(());
        }
        let (id, size) = (self.recording.id(), fs::metadata(&self.real)?.len());
        self.recording.note(Kind::SyncBegun, number, id, (0, size), &[])?;
        std::thread::sleep(Duration::from_micros(self.recording.below(self.recording.sync_max + 1)));
        self.recording.note(Kind::SyncDone, number, id, (0, size), &[])
    }

    fn size(&self) -> io::Result<u64> {
        self.file.size()
    }

    fn cut(&self, bytes: u64) -> io::Result<()> {
        self.file.cut(bytes)
    }

    fn id(&self) -> io::Result<FileId> {
        self.file.id()
    }
}

/// All notes of some recordings, in the order of their times.
pub(crate) fn read(recordings: &[PathBuf]) -> io::Result<Vec<Note>> {
    let mut notes = Vec::new();
    for (recording, path) in recordings.iter().enumerate() {
        let bytes = fs::read(path)?;
        let mut rest = &bytes[..];
        while let Some((note, behind)) = parse(rest, recording) {
            notes.push(note);
            rest = behind;
        }
    }
    notes.sort_by_key(|note| note.time);
    Ok(notes)
}

/// The first note, and what follows it; None if it is torn.
fn parse(bytes: &[u8], recording: usize) -> Option<(Note, &[u8])> {
    let word = |at: usize| Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
    let first = word(0)?;
    let kind = *KINDS.get((first as u32 as usize).checked_sub(1)?)?;
    let count = usize::try_from(word(40)?).ok()?;
    let data = bytes.get(HEAD..HEAD + count)?;
    let data = (!data.is_empty()).then(|| data.to_vec());
    let file = (first >> 32) as u32;
    let note = Note {
        kind,
        file,
        id: (recording, word(8)?),
        time: word(16)?,
        offset: word(24)?,
        length: word(32)?,
        data,
    };
    Some((note, &bytes[HEAD + count..]))
}
