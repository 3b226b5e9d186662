//! A disk whose power fails: what was written and not synced is there or not, or in part.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::fd::RawFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use perilune_disk::{Disk, DiskFile, FileAccess, FileId, RealDisk};

/// What a call did to a file.
#[derive(Clone, Debug)]
enum Event {
    Emptied(PathBuf),
    Wrote(PathBuf, u64, Vec<u8>),
    Synced(PathBuf),
}

/// The real disk, with a list of what was done.
#[derive(Clone, Debug, Default)]
pub(super) struct Recorder(Arc<Mutex<Vec<Event>>>);

#[derive(Debug)]
struct RecordedFile {
    path: PathBuf,
    file: Box<dyn DiskFile>,
    recorder: Recorder,
}

impl Recorder {
    fn note(&self, event: Event) {
        self.0.lock().unwrap().push(event);
    }

    /// Calls noted.
    pub(super) fn count(&self) -> usize {
        self.0.lock().unwrap().len()
    }

    /// The files when the power has failed after `count` calls, which began with `files`. What is not on disk
    /// then is there or not as `coin` falls; a file keeps the size it has now.
    pub(super) fn after(
        &self,
        count: usize,
        mut files: BTreeMap<PathBuf, Vec<u8>>,
        coin: &mut dyn FnMut() -> u32,
    ) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut waiting: BTreeMap<PathBuf, Vec<(u64, Vec<u8>)>> = BTreeMap::new();
        let put = |file: &mut Vec<u8>, at: u64, bytes: &[u8]| {
            let at = at as usize;
            file.resize(file.len().max(at + bytes.len()), 0);
            file[at..at + bytes.len()].copy_from_slice(bytes);
        };
        for event in &self.0.lock().unwrap()[..count] {
            match event {
                Event::Emptied(path) => {
                    files.insert(path.clone(), Vec::new());
                    waiting.remove(path);
                }
                Event::Wrote(path, at, bytes) => {
                    waiting.entry(path.clone()).or_default().push((*at, bytes.clone()));
                }
                Event::Synced(path) => {
                    for (at, bytes) in waiting.remove(path).unwrap_or_default() {
                        put(files.entry(path.clone()).or_default(), at, &bytes);
                    }
                }
            }
        }
        for (path, writes) in waiting {
            for (at, bytes) in writes {
                // Sectors of 512 bytes: all, none, or the first of them.
                let sectors = bytes.len().div_ceil(512);
                let there = match coin() % 3 {
                    0 => 0,
                    1 => bytes.len(),
                    _ => (coin() as usize % (sectors + 1) * 512).min(bytes.len()),
                };
                put(files.entry(path.clone()).or_default(), at, &bytes[..there]);
            }
        }
        for (path, bytes) in &mut files {
            let size = fs::metadata(path).map_or(0, |found| found.len() as usize);
            bytes.resize(bytes.len().max(size), 0);
        }
        files
    }
}

impl Disk for Recorder {
    fn open(&self, path: &Path, write: bool) -> io::Result<Box<dyn DiskFile>> {
        let file = RealDisk.open(path, write)?;
        Ok(Box::new(RecordedFile { path: path.into(), file, recorder: self.clone() }))
    }

    fn open_held(&self, descriptor: RawFd, write: bool) -> io::Result<Box<dyn DiskFile>> {
        RealDisk.open_held(descriptor, write)
    }

    fn create(&self, path: &Path, access: FileAccess) -> io::Result<Box<dyn DiskFile>> {
        let file = RealDisk.create(path, access)?;
        self.note(Event::Emptied(path.into()));
        Ok(Box::new(RecordedFile { path: path.into(), file, recorder: self.clone() }))
    }

    fn remove(&self, path: &Path) -> io::Result<bool> {
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

    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        RealDisk.sync_directory(path)
    }
}

impl DiskFile for RecordedFile {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        self.file.read_at(bytes, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.recorder.note(Event::Wrote(self.path.clone(), offset, bytes.to_vec()));
        self.file.write_at(bytes, offset)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data()?;
        self.recorder.note(Event::Synced(self.path.clone()));
        Ok(())
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
