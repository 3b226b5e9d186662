//! A storm of damage in the log: random bytes of its files are changed after all processes were killed and `-shm`
//! was lost. The database opens with all that was acknowledged, or is refused; never with less, and nothing said.
//!
//! One exception is told in docs/format/log.md: damage in the last batches, behind which nothing says that they had
//! been on disk, cannot be told from what a power loss leaves. So what is missing must be a suffix of the commits, and
//! each batch of it must have been hit.
//!
//! `make log-damage SECONDS=60` for longer; `PERILUNE_SEED` for the same again.

use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use perilune_engine::{Database, OpenOptions, Session};
use perilune_store::{transact, Durability, Error, Session as _, Store, TransactionOptions};

const BLOCK: usize = 4096;
const COMMITS: u64 = 330;

type Content = BTreeMap<Vec<u8>, Vec<u8>>;

/// A generator that a seed decides (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }
}

struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Directory {
        let path = std::env::temp_dir().join(format!("perilune-log-damage-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Directory(path)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        // It fails where a file is made meanwhile, as a database that is still being closed makes.
        let _gone = (0..1_000).any(|_| fs::remove_dir_all(&self.0).is_ok() || !self.0.exists());
    }
}

fn options() -> OpenOptions {
    OpenOptions { max_size: 1 << 28, durability: Some(Durability::Fsync), ..OpenOptions::default() }
}

/// Commit `number`: sets, removals, transactions of several nodes, and long values over several blocks.
fn commit(session: &mut Session, number: u64) {
    let key = format!("key{:03}", number % 97).into_bytes();
    let value = number.to_le_bytes().repeat(1 + (number % 13) as usize);
    match number % 11 {
        3 => drop(session.remove(format!("key{:03}", (number + 50) % 97).as_bytes()).unwrap()),
        5 => session.set(&key, &value.repeat(number as usize)).unwrap(),
        7 => transact(session, &TransactionOptions::default(), |session| {
            session.set(b"count", &number.to_le_bytes())?;
            session.set(&key, &value)
        })
        .unwrap(),
        _ => session.set(&key, &value).unwrap(),
    }
}

fn content(session: &mut Session) -> Content {
    let (mut content, mut from) = (Content::new(), vec![0]);
    let (mut key, mut value) = (Vec::new(), Vec::new());
    while session.next(&from, false, &mut key, Some(&mut value)).unwrap() {
        content.insert(key.clone(), value.clone());
        std::mem::swap(&mut from, &mut key);
    }
    content
}

/// The files of a database without `-shm`, as bytes.
fn files(directory: &Path) -> Vec<(String, Vec<u8>)> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap());
    let named = entries.map(|entry| (entry.file_name().into_string().unwrap(), entry.path()));
    let mut files: Vec<_> = named.filter(|(name, _)| !name.ends_with("-shm")).collect();
    files.sort();
    files.into_iter().map(|(name, path)| (name, fs::read(path).unwrap())).collect()
}

/// Where each batch lies: file, bytes. By number, as its chunks' heads tell.
fn batches(files: &[(String, Vec<u8>)]) -> BTreeMap<u64, Vec<(usize, Range<usize>)>> {
    let mut batches = BTreeMap::<u64, Vec<_>>::new();
    for (file, (_, bytes)) in files.iter().enumerate().filter(|(_, (name, _))| name.contains("-wal.")) {
        let mut at = BLOCK;
        while bytes.get(at..at + 4).is_some_and(|magic| magic == b"PLOG") {
            let batch = u64::from_le_bytes(bytes[at + 8..at + 16].try_into().unwrap());
            let body = u32::from_le_bytes(bytes[at + 20..at + 24].try_into().unwrap()) as usize;
            // What lies between the body and the next block means nothing.
            batches.entry(batch).or_default().push((file, at..at + 64 + body));
            at = (at + 64 + body).next_multiple_of(BLOCK);
        }
    }
    batches
}

/// What has become of a damaged log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// It opened with everything.
    Whole,
    Refused,
    /// It opened without its last batches.
    Torn,
}

/// Writes, each commit a batch of its own; answers the states after each, and what the machine's crash leaves.
fn scene(directory: &Directory) -> (Vec<Content>, Vec<(String, Vec<u8>)>) {
    let path = directory.0.join("x.db");
    let database = Database::open(&path, &options()).unwrap();
    let mut session = database.session().unwrap();
    let mut states = vec![Content::new()];
    for number in 1..=COMMITS {
        commit(&mut session, number);
        let now = content(&mut session);
        // NB: removing what is not there is in no batch.
        if states.last() != Some(&now) {
            states.push(now);
        }
        if number == 40 {
            database.checkpoint().unwrap();
        }
    }
    let files = files(&directory.0);
    (states, files)
}

/// Opens what is left, with some bytes changed.
fn round(
    directory: &Directory,
    (states, files): &(Vec<Content>, Vec<(String, Vec<u8>)>),
    random: &mut Random,
    hits_wanted: usize,
) -> Outcome {
    let batches = batches(files);
    let mut damaged = files.clone();
    let mut hits = Vec::new();
    for _ in 0..hits_wanted {
        // A batch, some place in it: any, one of the last, or of those that a checkpoint has; or the head of a file.
        let back = match random.below(8) {
            0 | 1 => random.below(3),
            2 => batches.len() - 1 - random.below(20),
            _ => random.below(batches.len()),
        };
        let (file, at) = match random.below(12) {
            0 => {
                let first = files.iter().position(|(name, _)| name.contains("-wal."));
                (first.unwrap() + random.below(2), random.below(64))
            }
            _ => {
                let parts = batches.values().nth_back(back).unwrap();
                let (file, range) = &parts[random.below(parts.len())];
                (*file, range.start + random.below(range.len()))
            }
        };
        damaged[file].1[at] ^= 1 << random.below(8);
        hits.push((file, at));
    }
    let place = directory.0.join("round");
    let _ = fs::remove_dir_all(&place);
    fs::create_dir(&place).unwrap();
    damaged.iter().for_each(|(name, bytes)| fs::write(place.join(name), bytes).unwrap());
    match Database::open(&place.join("x.db"), &options()) {
        Err(Error::Corrupt { .. } | Error::CannotOpen { .. }) => {
            let after = self::files(&place);
            let log = |(name, _): &&(String, Vec<u8>)| name.contains("-wal.");
            assert!(after.iter().filter(log).eq(damaged.iter().filter(log)), "the log is changed: {hits:?}");
            Outcome::Refused
        }
        Err(error) => panic!("{error}: {hits:?}"),
        Ok(database) => {
            let found = content(&mut database.session().unwrap());
            let kept = states.iter().rposition(|state| *state == found);
            let kept = kept.unwrap_or_else(|| panic!("what was found was never there: {hits:?}"));
            let missing = states.len() - 1 - kept;
            let is_hit = |parts: &Vec<(usize, Range<usize>)>| {
                let hit = |(file, range): &(usize, Range<usize>)| {
                    hits.iter().any(|(hit, at)| hit == file && range.contains(at))
                };
                parts.iter().any(hit)
            };
            let last = batches.values().rev().take(missing);
            assert!(last.clone().all(is_hit), "{missing} commits are gone that nobody has damaged: {hits:?}");
            if missing == 0 {
                Outcome::Whole
            } else {
                Outcome::Torn
            }
        }
    }
}

#[test]
fn damage_in_the_log_is_harmless_or_refused() {
    let number = |name: &str, default: u64| {
        std::env::var(name)
            .map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name} is a number")))
    };
    let seed = number("PERILUNE_SEED", u64::from(std::process::id()) << 20 | 0x9e37).max(1);
    let time = Duration::from_secs(number("PERILUNE_LOG_DAMAGE", 4));
    println!("PERILUNE_SEED={seed}");
    let directory = Directory::new("storm");
    let scene = scene(&directory);
    let mut random = Random(seed);
    assert_eq!(round(&directory, &scene, &mut random, 0), Outcome::Whole, "nothing is damaged");
    let begun = Instant::now();
    let mut outcomes = Vec::new();
    while begun.elapsed() < time || outcomes.len() < 40 {
        let hits = 1 + random.below(3);
        outcomes.push(round(&directory, &scene, &mut random, hits));
    }
    let count = |wanted: Outcome| outcomes.iter().filter(|outcome| **outcome == wanted).count();
    let (whole, refused, torn) = (count(Outcome::Whole), count(Outcome::Refused), count(Outcome::Torn));
    println!(
        "{} damaged logs: {refused} refused, {whole} opened with everything, {torn} without a torn tail",
        outcomes.len()
    );
    assert!(refused * 2 > outcomes.len(), "a storm that damages little");
}
