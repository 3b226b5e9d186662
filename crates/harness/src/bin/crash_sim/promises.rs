//! The table of promises in README.md: each cell is a test.
//!
//! A commit is a transaction that sets the next number; so after a power loss the numbers 1 to n must be there, and
//! no others; the cell says how large n is at least.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::Arc;
use std::time::{Duration, Instant};

use perilune_engine::{Database, Session};
use perilune_harness::bank::Random;
use perilune_store::{transact, Durability, Error, Result, Session as _, Store, TransactionOptions};

use crate::power_loss::PowerLoss;
use crate::recording::{self, Failing, RecordingDisk};
use crate::storm::{copy_database, remove};
use crate::{operations, work};

const ROLE: &str = "PERILUNE_PROMISE";
/// What begins an answer of a process.
const ANSWER: &str = "=> ";
/// For what happens within 50 ms on an idle machine.
const PATIENCE: Duration = Duration::from_secs(60);
const LEVELS: [Durability; 3] = [Durability::None, Durability::Periodic, Durability::Fsync];

/// A database, and what became of it.
struct Place {
    dir: PathBuf,
    processes: usize,
}

/// Another process at work on it.
struct Party {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Place {
    fn new() -> Place {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let name = format!("{}-promise-{}", crate::scratch().display(), NUMBER.fetch_add(1, Relaxed));
        let place = Place { dir: PathBuf::from(name), processes: 0 };
        fs::create_dir_all(place.run()).unwrap();
        let database = Database::open(&place.database(), &work::options(Some(Durability::None))).unwrap();
        database.close().unwrap();
        copy_database(&place.run(), &place.dir.join("start")).unwrap();
        place
    }

    fn run(&self) -> PathBuf {
        self.dir.join("run")
    }

    fn database(&self) -> PathBuf {
        operations::database_path(&self.run())
    }

    /// Opens the database in this process.
    fn open(&mut self, level: Durability) -> (Database, RecordingDisk) {
        let recording = operations::recording_path(&self.run(), self.processes);
        self.processes += 1;
        let disk = RecordingDisk::new(&recording, 1, 0, None).unwrap();
        let options = work::options(Some(level));
        (Database::open_on(&self.database(), &options, Arc::new(disk.clone())).unwrap(), disk)
    }

    /// Opens it in another one.
    fn party(&mut self, level: Durability) -> Party {
        let recording = operations::recording_path(&self.run(), self.processes);
        self.processes += 1;
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "promises::party", "--nocapture", "--test-threads=1"]);
        let role =
            format!("{}\n{}\n{}", self.run().display(), recording.display(), work::level_name(Some(level)));
        let command = command.env(ROLE, role).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        Party { child, input, output: BufReader::new(output) }
    }

    /// What is there after a power loss now.
    fn after_power_loss(&self) -> u64 {
        let recordings: Vec<PathBuf> =
            (0..self.processes).map(|process| operations::recording_path(&self.run(), process)).collect();
        let power_loss = PowerLoss::new(recording::read(&recordings).unwrap());
        let after = self.dir.join("after");
        remove(&after).unwrap();
        let mut random = Random::new(perilune_harness::seed());
        power_loss.crash(&self.dir.join("start"), &self.run(), &after, &mut random).unwrap();
        let database = Database::open(&operations::database_path(&after), &work::options(None)).unwrap();
        database.verify().unwrap();
        let count = count(&database);
        database.close().unwrap();
        count
    }

    /// Waits until a power loss would leave `expected`.
    fn until_durable(&self, expected: u64) {
        let until = Instant::now() + PATIENCE;
        loop {
            let count = self.after_power_loss();
            assert!(count <= expected, "{count} of {expected}");
            if count == expected {
                return;
            }
            assert!(Instant::now() < until, "only {count} of {expected} become durable");
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            // What cannot be removed is left.
            let _ = remove(&self.dir);
        }
    }
}

impl Party {
    /// Has the process do something, and waits until it has.
    fn tell(&mut self, what: &str) {
        writeln!(self.input, "{what}").unwrap();
        let mut line = String::new();
        loop {
            line.clear();
            assert!(self.output.read_line(&mut line).unwrap() > 0, "the process ended instead of: {what}");
            if let Some((_, answer)) = line.trim_end().split_once(ANSWER) {
                assert_eq!(answer, what);
                return;
            }
        }
    }

    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// The process that [`Place::party`] starts; no test of its own.
#[test]
fn party() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let words: Vec<&str> = role.lines().collect();
    let disk = RecordingDisk::new(Path::new(words[1]), 1, 0, None).unwrap();
    let options = work::options(work::level_of(words[2]));
    let path = operations::database_path(Path::new(words[0]));
    let database = Database::open_on(&path, &options, Arc::new(disk)).unwrap();
    let mut session = database.session().unwrap();
    for line in std::io::stdin().lines().map_while(std::io::Result::ok) {
        match line.split_once(' ') {
            Some((what, range)) => {
                let (from, to) = range.split_once(' ').unwrap();
                let durability = (what == "sync").then_some(Durability::Fsync);
                let options = TransactionOptions { durability, ..TransactionOptions::default() };
                commit_as(&options, &mut session, from.parse().unwrap(), to.parse().unwrap()).unwrap();
            }
            _ => drop(database.checkpoint().unwrap()),
        }
        println!("{ANSWER}{line}");
    }
}

fn key(number: u64) -> Vec<u8> {
    format!("n/{number:06}").into_bytes()
}

/// Commits numbers, one after the other.
fn commit(session: &mut Session, from: u64, to: u64) -> Result<()> {
    commit_as(&TransactionOptions::default(), session, from, to)
}

fn commit_as(options: &TransactionOptions, session: &mut Session, from: u64, to: u64) -> Result<()> {
    for number in from..=to {
        let value = vec![number as u8; 20 + (number as usize * 97) % 3_000];
        transact(session, options, |session| {
            session.set(&key(number), &value)?;
            session.set(b"last", &number.to_le_bytes())
        })?;
    }
    Ok(())
}

/// How many numbers are there; nothing else may be.
fn count(database: &Database) -> u64 {
    let state = work::read_all(database).unwrap();
    let last = operations::count_of(state.get(&b"last"[..]).map(|value| &value[..]));
    let keys: Vec<Vec<u8>> = state.keys().filter(|key| key.starts_with(b"n/")).cloned().collect();
    assert_eq!(keys, (1..=last).map(key).collect::<Vec<_>>(), "no prefix");
    last
}

#[test]
fn the_death_of_any_process_or_all_loses_nothing() {
    for level in LEVELS {
        let mut place = Place::new();
        let (mut first, mut second) = (place.party(level), place.party(level));
        first.tell("commit 1 40");
        second.tell("commit 41 80");
        second.kill();
        first.tell("commit 81 120");
        first.kill();
        let (database, _) = place.open(level);
        assert_eq!(count(&database), 120, "{level:?}");
        database.verify().unwrap();
    }
}

#[test]
fn power_loss_while_a_process_is_attached() {
    for level in LEVELS {
        let mut place = Place::new();
        let mut party = place.party(level);
        party.tell("commit 1 30");
        party.tell("checkpoint");
        party.tell("commit 31 90");
        match level {
            Durability::None => assert_eq!(place.after_power_loss(), 30),
            Durability::Periodic => {
                assert!((30..=90).contains(&place.after_power_loss()));
                place.until_durable(90);
            }
            Durability::Fsync => assert_eq!(place.after_power_loss(), 90),
        }
        party.kill();
    }
}

#[test]
fn power_loss_after_a_transaction_with_fsync() {
    for level in LEVELS {
        let mut place = Place::new();
        let mut party = place.party(level);
        party.tell("commit 1 30");
        party.tell("sync 31 33");
        assert_eq!(place.after_power_loss(), 33, "{level:?}");
        party.kill();
    }
}

#[test]
fn power_loss_after_the_last_has_closed() {
    for level in LEVELS {
        let mut place = Place::new();
        let (database, _) = place.open(level);
        commit(&mut database.session().unwrap(), 1, 70).unwrap();
        database.close().unwrap();
        assert_eq!(place.after_power_loss(), 70, "{level:?}");
    }
}

#[test]
fn power_loss_after_all_were_killed_and_before_the_next_open() {
    for level in LEVELS {
        let mut place = Place::new();
        let mut party = place.party(level);
        party.tell("commit 1 30");
        party.tell("checkpoint");
        party.tell("commit 31 60");
        if level == Durability::Periodic {
            place.until_durable(60);
        }
        party.tell("commit 61 90");
        party.kill();
        let count = place.after_power_loss();
        match level {
            Durability::None => assert_eq!(count, 30),
            Durability::Periodic => assert!((60..=90).contains(&count), "{count}"),
            Durability::Fsync => assert_eq!(count, 90),
        }
    }
}

#[test]
fn power_loss_after_all_were_killed_and_after_the_next_open() {
    for level in LEVELS {
        let mut place = Place::new();
        let mut party = place.party(level);
        party.tell("commit 1 30");
        party.tell("checkpoint");
        party.tell("commit 31 90");
        party.kill();
        let (database, _) = place.open(level);
        match level {
            // The last checkpoint; whoever opens it alone may have taken one.
            Durability::None => assert!((30..=90).contains(&place.after_power_loss())),
            Durability::Periodic => place.until_durable(90),
            Durability::Fsync => assert_eq!(place.after_power_loss(), 90),
        }
        assert_eq!(count(&database), 90);
    }
}

#[test]
fn power_loss_after_all_were_killed_but_one_who_only_stays() {
    for level in LEVELS {
        let mut place = Place::new();
        // As `perilune keep` does.
        let (keeper, mut party) = (place.open(level), place.party(level));
        party.tell("commit 1 30");
        party.tell("checkpoint");
        party.tell("commit 31 90");
        party.kill();
        match level {
            Durability::None => assert!((30..=90).contains(&place.after_power_loss())),
            Durability::Periodic => place.until_durable(90),
            Durability::Fsync => assert_eq!(place.after_power_loss(), 90),
        }
        keeper.0.close().unwrap();
    }
}

#[test]
fn when_the_disk_is_full_nothing_is_written_and_space_heals_it() {
    for level in LEVELS {
        let mut place = Place::new();
        let (database, disk) = place.open(level);
        let mut session = database.session().unwrap();
        commit(&mut session, 1, 20).unwrap();
        disk.fail(Failing::NoSpace);
        let stopped = (21..5_000).find_map(|number| {
            let done = commit(&mut session, number, number);
            done.err().map(|error| (number, error))
        });
        match (level, stopped) {
            // No log is written; the checkpoint is, and says so.
            (Durability::None, None) => {
                let error = database.checkpoint().unwrap_err();
                assert!(matches!(error, Error::NoSpace { .. }), "{error}");
                assert!(error.to_string().contains("crash.db"), "{error}");
            }
            (Durability::None, Some((_, error))) => panic!("level none: {error}"),
            (_, Some((number, error))) => {
                assert!(is_space(&error), "{level:?}: {error}");
                let count = count(&database);
                assert!(count == number || count == number - 1, "{count} of {number}");
                assert!(place.after_power_loss() >= if level == Durability::Fsync { number - 1 } else { 0 });
            }
            (_, None) => panic!("{level:?}: nothing was refused"),
        }
        let count_then = count(&database);
        disk.fail(Failing::Nothing);
        let until = Instant::now() + PATIENCE;
        while let Err(error) = commit(&mut session, count_then + 1, count_then + 1) {
            assert!(is_space(&error) && Instant::now() < until, "{level:?}: {error}");
            assert_eq!(count(&database), count_then, "refused, yet written");
        }
        drop(session);
        database.close().unwrap();
        assert_eq!(place.after_power_loss(), count_then + 1, "{level:?}");
    }
}

/// Whether an error tells of a full disk: before anything is written, or that a commit waits for space.
fn is_space(error: &Error) -> bool {
    matches!(error, Error::NoSpace { .. })
        || matches!(error, Error::NotDurable { why } if why.contains("space"))
}

#[test]
fn when_fsync_fails_writes_stop_and_reads_go_on() {
    for level in LEVELS {
        let mut place = Place::new();
        let (database, disk) = place.open(level);
        let mut session = database.session().unwrap();
        commit(&mut session, 1, 20).unwrap();
        if level == Durability::Periodic {
            place.until_durable(20);
        }
        disk.fail(Failing::Sync);
        if level == Durability::None {
            assert!(database.checkpoint().unwrap_err().to_string().contains("crash.db"));
        }
        let until = Instant::now() + PATIENCE;
        let mut number = 20;
        let error = loop {
            assert!(Instant::now() < until, "{level:?}: nothing was refused");
            match commit(&mut session, number + 1, number + 1) {
                Ok(()) => number += 1,
                Err(error) => break error,
            }
        };
        // The sync that fails first may be that of the log's next segment, which holds nothing yet: then
        // commits are refused before they are published, and it is made again.
        let is_unmade = matches!(&error, Error::Io { place, .. } if place.as_str().contains("-wal."));
        let is_stopped = matches!(error, Error::WritesStopped { .. } | Error::NotDurable { .. });
        assert!(is_stopped || is_unmade, "{level:?}: {error}");
        if is_stopped {
            assert!(
                matches!(commit(&mut session, number + 2, number + 2), Err(Error::WritesStopped { .. })),
                "{level:?}"
            );
            disk.fail(Failing::Nothing);
            assert!(matches!(session.set(b"x", b"y"), Err(Error::WritesStopped { .. })), "no silent retry");
        }
        disk.fail(Failing::Nothing);
        let there = count(&database);
        assert!(there == number || there == number + 1);
        let least = if level == Durability::None { 0 } else { 20 };
        assert!((least..=there).contains(&place.after_power_loss()), "{level:?}");
        drop(session);
        // Nothing is lost as long as the machine runs; the next open heals it.
        let _ = database.close();
        let (database, _) = place.open(level);
        assert_eq!(count(&database), there, "{level:?}");
        commit(&mut database.session().unwrap(), there + 1, there + 9).unwrap();
        database.close().unwrap();
        assert_eq!(place.after_power_loss(), there + 9, "{level:?}");
    }
}

/// All processes killed at once: the next open repairs what they left, and need not recover.
#[test]
fn after_all_were_killed_it_opens_at_once() {
    let mut times = Vec::new();
    for round in 0..5 {
        let mut place = Place::new();
        let mut parties: Vec<Party> = (0..6).map(|_| place.party(LEVELS[round % 3])).collect();
        for (number, party) in parties.iter_mut().enumerate() {
            let from = number * 200 + 1;
            party.tell(&format!("commit {from} {}", from + 199));
        }
        for party in &mut parties {
            // All are at work when they die.
            writeln!(party.input, "commit 1201 9000").unwrap();
        }
        for party in &mut parties {
            party.child.kill().unwrap();
        }
        parties.into_iter().for_each(Party::kill);
        let begun = Instant::now();
        let database = Database::open(&place.database(), &work::options(None)).unwrap();
        times.push(begun.elapsed());
        assert!(database.recovery().is_none());
        database.verify().unwrap();
        assert!(work::read_all(&database).unwrap().len() > 1_200);
        place.processes = 0;
    }
    times.sort_unstable();
    println!("opened after all were killed in {times:?}");
    // 10 ms on an idle machine.
    assert!(times[2] < Duration::from_millis(500), "{times:?}");
}
