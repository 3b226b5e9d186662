//! The journal of one worker: a line before each try, and one after each answer.
//!
//! ```text
//! try 200000001 0 3
//! ok 200000001 0:17:9ae16a3b2f90404f 3:2:c3a5c85c97cb3127
//! ```
//!
//! Each line is one `write` to the end of an ordinary file, so the death of the worker loses none. A last
//! line without its end was being written when the worker died; it is dropped, and what it would have said
//! is unknown.

use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use perilune_store::{Error, Result, Session};

use super::{Attempt, Lists, Seen};
use crate::bank::Random;

/// Bits of a transaction's number that count within its worker.
const COUNT_BITS: u32 = 28;

/// A worker's journal. One process writes it at a time; a successor goes on in it.
#[derive(Debug)]
pub struct Journal {
    file: File,
    path: PathBuf,
    next_id: u64,
}

impl Journal {
    /// Opens the journal of worker `worker` at `path`, or begins one there.
    ///
    /// # Errors
    /// When the file cannot be opened, or holds what is no journal.
    pub fn open(path: &Path, worker: u32) -> io::Result<Journal> {
        let file = OpenOptions::new().append(true).create(true).open(path)?;
        let whole = fs::read(path)?.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
        file.set_len(whole as u64)?;
        let tried = Journal::read(path)?.len() as u64;
        Ok(Journal { file, path: path.to_path_buf(), next_id: (u64::from(worker) << COUNT_BITS) + tried + 1 })
    }

    /// All attempts in the journal at `path`, oldest first.
    ///
    /// # Errors
    /// When the file cannot be read, or holds what is no journal.
    pub fn read(path: &Path) -> io::Result<Vec<Attempt>> {
        let text = fs::read_to_string(path)?;
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        let mut attempts: Vec<Attempt> = Vec::new();
        for line in whole.lines() {
            if parse(line, &mut attempts).is_none() {
                let why = format!("{}: `{line}` is no line of a journal", path.display());
                return Err(io::Error::new(io::ErrorKind::InvalidData, why));
            }
        }
        Ok(attempts)
    }

    /// One transaction on random lists, noted before and after.
    ///
    /// # Errors
    /// As [`Lists::append`]; `Io` when the journal cannot be written.
    pub fn append(&mut self, lists: &Lists, session: &mut impl Session, random: &mut Random) -> Result<()> {
        let id = self.next_id;
        let chosen = lists.choose(random);
        let mut line = format!("try {id:x}");
        for list in &chosen {
            // Writing to a String cannot fail.
            let _ = write!(line, " {list:x}");
        }
        self.note(line)?;
        self.next_id += 1;
        let seen = lists.append(session, id, &chosen)?;
        let mut line = format!("ok {id:x}");
        for Seen { list, length, sum } in seen {
            let _ = write!(line, " {list:x}:{length:x}:{sum:x}");
        }
        self.note(line)
    }

    fn note(&mut self, mut line: String) -> Result<()> {
        line.push('\n');
        let failed = |source| Error::Io { action: "write the journal", place: (&self.path).into(), source };
        self.file.write_all(line.as_bytes()).map_err(failed)
    }
}

/// Adds what a line says to the attempts; None if it says nothing known.
fn parse(line: &str, attempts: &mut Vec<Attempt>) -> Option<()> {
    let number = |text: &str| u64::from_str_radix(text, 16).ok();
    let mut words = line.split(' ');
    let (kind, id) = (words.next()?, number(words.next()?)?);
    match kind {
        "try" => {
            let lists = words.map(number).collect::<Option<_>>()?;
            attempts.push(Attempt { id, lists, seen: None });
        }
        "ok" => {
            let seen = |word: &str| {
                let mut parts = word.split(':').map(number);
                let (list, length, sum) = (parts.next()??, parts.next()??, parts.next()??);
                Some(Seen { list, length: usize::try_from(length).ok()?, sum })
            };
            let attempt = attempts.last_mut().filter(|attempt| attempt.id == id)?;
            attempt.seen = Some(words.map(seen).collect::<Option<_>>()?);
        }
        _ => return None,
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use perilune_store::Store;

    use super::*;
    use crate::appends::check;
    use perilune_memory::MemoryStore;

    #[test]
    fn a_successor_goes_on_in_the_journal() {
        let path = std::env::temp_dir().join(format!("perilune-journal-{}", std::process::id()));
        let lists = Lists::new(b"list\0", 4);
        let mut session = MemoryStore::new().session().unwrap();
        let mut random = Random::new(1);
        for life in 1..=3_usize {
            let mut journal = Journal::open(&path, 7).unwrap();
            for _ in 0..20 {
                journal.append(&lists, &mut session, &mut random).unwrap();
            }
            assert_eq!(Journal::read(&path).unwrap().len(), life * 20, "in life {life}");
            // The worker dies in the middle of a line.
            journal.file.write_all(b"try 7000").unwrap();
        }
        let attempts = Journal::read(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert!(attempts.iter().all(|attempt| attempt.seen.is_some()), "all were acknowledged");
        check(&lists.read_all(&mut session).unwrap(), &attempts).unwrap();
    }
}
