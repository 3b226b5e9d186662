//! What the sessions have tried, what was acknowledged to them, and what they saw: files that survive their
//! writers.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use perilune_shm::platform::monotonic_nanos;

use crate::operations::Mark;

/// Words of an entry: what, operation, time, levels, and two times cell and mark.
const WORDS: usize = 12;
/// Bytes of an entry.
pub(crate) const ENTRY: u64 = 8 * WORDS as u64;
const TRIED: u64 = 1;
const DONE: u64 = 2;

/// A cell, and what it held.
pub(crate) type Seen = (u64, Mark);

/// The journal of one session.
pub(crate) struct Journal(File);

/// An operation that was acknowledged.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Done {
    pub(crate) number: u64,
    /// When that was known, at the latest.
    pub(crate) time: u64,
    /// It was acknowledged as being on disk.
    pub(crate) is_durable: bool,
    /// The process had the database at a level with a log.
    pub(crate) is_logged: bool,
}

/// What a journal tells.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    /// The last operation that may have been done; 0: none.
    pub(crate) tried: u64,
    pub(crate) done: Vec<Done>,
    /// What operations saw before they did anything.
    pub(crate) looked: Vec<(u64, Seen)>,
    /// What operations saw of the cells they then wrote.
    pub(crate) overwrote: Vec<(u64, Seen)>,
}

pub(crate) fn path(dir: &Path, session: usize) -> PathBuf {
    dir.join(format!("journal-{session}"))
}

/// Where a process tells the checkpoints it has taken.
pub(crate) fn checkpoints_path(dir: &Path, process: usize) -> PathBuf {
    dir.join(format!("checkpoints-{process}"))
}

impl Journal {
    pub(crate) fn open(path: &Path) -> io::Result<Journal> {
        Ok(Journal(OpenOptions::new().append(true).create(true).open(path)?))
    }

    fn note(&mut self, what: u64, number: u64, levels: u64, seen: &[Seen]) -> io::Result<()> {
        let mut words = [0; WORDS];
        words[..4].copy_from_slice(&[what, number, monotonic_nanos(), levels]);
        for (place, (cell, mark)) in words[4..].chunks_exact_mut(4).zip(seen) {
            place.copy_from_slice(&[cell + 1, mark.session, mark.number, mark.count]);
        }
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.0.write_all(&bytes)
    }

    pub(crate) fn tried(&mut self, number: u64, looked: &[Seen]) -> io::Result<()> {
        self.note(TRIED, number, 0, looked)
    }

    pub(crate) fn done(
        &mut self,
        number: u64,
        is_durable: bool,
        is_logged: bool,
        overwrote: &[Seen],
    ) -> io::Result<()> {
        self.note(DONE, number, u64::from(is_durable) | u64::from(is_logged) << 1, overwrote)
    }
}

impl History {
    pub(crate) fn read(path: &Path) -> io::Result<History> {
        let mut history = History::default();
        for words in words(path)?.chunks_exact(WORDS) {
            let (number, time, levels) = (words[1], words[2], words[3]);
            let seen = words[4..].chunks_exact(4).filter(|seen| seen[0] != 0);
            let seen = seen.map(|seen| {
                let mark = Mark { session: seen[1], number: seen[2], count: seen[3] };
                (number, (seen[0] - 1, mark))
            });
            if words[0] == TRIED {
                history.tried = number;
                history.looked.extend(seen);
            } else {
                history.done.push(Done {
                    number,
                    time,
                    is_durable: levels & 1 != 0,
                    is_logged: levels & 2 != 0,
                });
                history.overwrote.extend(seen);
            }
        }
        Ok(history)
    }
}

/// Begins of checkpoints that have been completed.
pub(crate) fn checkpoints(path: &Path) -> io::Result<Vec<u64>> {
    words(path)
}

fn words(path: &Path) -> io::Result<Vec<u64>> {
    let bytes = match fs::read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        other => other?,
    };
    let word = |bytes: &[u8]| bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
    Ok(bytes.chunks_exact(8).map(word).collect())
}
