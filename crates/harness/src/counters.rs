//! Counters, and a record of what their workers were promised, that outlives the workers' death.
//!
//! A worker adds 1 to its counter again and again. Before each try it writes into its ledger, an ordinary
//! file, how many it will have attempted, and after the answer how many were acknowledged. Both are
//! written by the system call itself (`pwrite`), so a SIGKILL between any two instructions loses neither.
//!
//! Invariant: acknowledged <= value of the counter <= attempted, whoever died when, as long as the
//! machine lives; and attempted - acknowledged is at most the number of deaths of the worker, plus 1.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use perilune_store::{transact, Decision, Result, Session, TransactionOptions};

use crate::number;

/// How often a worker attempted an increment, and how often it was told that one is done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Promises {
    /// Increments begun.
    pub attempted: u64,
    /// Increments reported done.
    pub acknowledged: u64,
}

/// The file with one worker's promises. One process writes it at a time; a successor goes on in it.
#[derive(Debug)]
pub struct Ledger {
    file: File,
    promises: Promises,
}

impl Ledger {
    /// Opens the ledger at `path`, or begins one there.
    ///
    /// # Errors
    /// When the file cannot be opened or read.
    pub fn open(path: &Path) -> io::Result<Ledger> {
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        let mut bytes = [0; 16];
        // A first worker may have died before both numbers were there: what is absent is 0.
        let mut filled = 0;
        while filled < bytes.len() {
            match file.read_at(&mut bytes[filled..], filled as u64)? {
                0 => break,
                read => filled += read,
            }
        }
        let half = |at: usize| u64::from_le_bytes(std::array::from_fn(|index| bytes[at + index]));
        Ok(Ledger { file, promises: Promises { attempted: half(0), acknowledged: half(8) } })
    }

    /// What has been promised so far.
    #[must_use]
    pub fn promises(&self) -> Promises {
        self.promises
    }

    /// Notes that an increment is about to be tried.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn attempt(&mut self) -> io::Result<()> {
        self.promises.attempted += 1;
        self.file.write_all_at(&self.promises.attempted.to_le_bytes(), 0)
    }

    /// Notes that the increment tried last was reported done.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn acknowledge(&mut self) -> io::Result<()> {
        self.promises.acknowledged += 1;
        self.file.write_all_at(&self.promises.acknowledged.to_le_bytes(), 8)
    }
}

/// How an increment is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// By one update.
    Update,
    /// By a read and a write in a transaction.
    Transaction,
    /// By compare-and-set until it succeeds.
    CompareAndSet,
}

/// Adds 1 to the number at `key`.
///
/// # Errors
/// As the operations used; after an error the number may not have grown.
pub fn increment(session: &mut impl Session, key: &[u8], way: Way) -> Result<()> {
    match way {
        Way::Update => session.update(key, &mut |old, buffer| {
            let new = old.map_or(Ok(0), number::decode)? + 1;
            buffer[..8].copy_from_slice(&new.to_le_bytes());
            Ok(Decision::Write(8))
        }),
        Way::Transaction => transact(session, &TransactionOptions::default(), |session| {
            let old = number::get(session, key)?;
            number::set(session, key, old + 1)
        }),
        Way::CompareAndSet => loop {
            let mut value = Vec::new();
            let found = session.get(key, &mut value)?;
            let old = if found { number::decode(&value)? } else { 0 };
            let expected = found.then_some(&value[..]);
            if session.compare_and_set(key, expected, Some(&(old + 1).to_le_bytes()))? {
                return Ok(());
            }
        },
    }
}

/// One increment with its promises noted before and after.
///
/// # Errors
/// As [`increment`]; `Io` when the ledger cannot be written.
pub fn promised_increment(
    session: &mut impl Session,
    key: &[u8],
    way: Way,
    ledger: &mut Ledger,
) -> Result<()> {
    let failed =
        |source| perilune_store::Error::Io { action: "write the ledger", place: "ledger".into(), source };
    ledger.attempt().map_err(failed)?;
    increment(session, key, way)?;
    ledger.acknowledge().map_err(failed)
}

/// Compares a counter's value with the promises of all workers that increment it.
///
/// # Errors
/// The text says which promise was broken: an increment lost, or one too many.
pub fn check(value: u64, promises: &[Promises]) -> std::result::Result<(), String> {
    let acknowledged: u64 = promises.iter().map(|promises| promises.acknowledged).sum();
    let attempted: u64 = promises.iter().map(|promises| promises.attempted).sum();
    if value < acknowledged {
        return Err(format!(
            "{} of {acknowledged} acknowledged increments are lost: {value}",
            acknowledged - value
        ));
    }
    if value > attempted {
        return Err(format!("the counter is {value}, but only {attempted} increments were attempted"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use perilune_memory::MemoryStore;
    use perilune_store::Store;

    #[test]
    fn a_ledger_is_read_back_by_a_successor() {
        let path = std::env::temp_dir().join(format!("perilune-ledger-{}", std::process::id()));
        let mut session = MemoryStore::new().session().unwrap();
        for (life, way) in [Way::Update, Way::Transaction, Way::CompareAndSet].into_iter().enumerate() {
            let mut ledger = Ledger::open(&path).unwrap();
            let lives = life as u64;
            // Each life ended with an increment in flight.
            let expected = Promises { attempted: lives * 6, acknowledged: lives * 5 };
            assert_eq!(ledger.promises(), expected, "in life {life}");
            for _ in 0..5 {
                promised_increment(&mut session, b"n\0", way, &mut ledger).unwrap();
            }
            ledger.attempt().unwrap();
        }
        let promises = Ledger::open(&path).unwrap().promises();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(promises, Promises { attempted: 18, acknowledged: 15 });
        check(number::get(&mut session, b"n\0").unwrap(), &[promises]).unwrap();
    }

    #[test]
    fn broken_promises_are_found() {
        let promises =
            [Promises { attempted: 3, acknowledged: 2 }, Promises { attempted: 5, acknowledged: 5 }];
        assert_eq!((check(7, &promises), check(8, &promises)), (Ok(()), Ok(())));
        assert!(check(6, &promises).unwrap_err().contains("1 of 7 acknowledged increments are lost"));
        assert!(check(9, &promises).unwrap_err().contains("only 8 increments were attempted"));
    }
}
