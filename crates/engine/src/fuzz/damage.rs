//! A storm of damage: bytes of a closed database are changed at random places, and then it is read, written, checked.
//! What comes of it is right, byte for byte, or an error; never other data.
//!
//! Long: `make damage-storm SECONDS=600`. It prints its seed (`PERILUNE_FUZZ_SEED` uses one again) and ends in a line of totals.
//! Its canary damages pages that are proved already: that nobody promises to notice, and the judge here must.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use perilune_shm::platform;
use perilune_store::{Error, Session as _, Store};

use super::{number_in, Random};
use crate::handle::Database;
use crate::limits::{PAGE, SEGMENT_RESERVED};
use crate::meta::sums::checkpoint_pages;
use crate::open::OpenOptions;
use crate::page::{INNER, LEAF};
use crate::proof::tests::Bytes;
use crate::salvage::tests::{make, options, set_all, some_nodes, Nodes, Scratch};

/// Other data than was written.
struct Wrong(String);

type Judged<T> = Result<T, Wrong>;

/// One of a list that is not empty.
fn one<'a, T>(random: &mut Random, list: &'a [T]) -> &'a T {
    &list[random.below(list.len())]
}

/// What has been damaged and what came of it.
#[derive(Debug, Default)]
struct Totals {
    leaf: u32,
    inner: u32,
    run: u32,
    info: u32,
    meta: u32,
    free: u32,
    /// Reads of all nodes, or of one, that were right.
    right: u32,
    /// Errors.
    told: u32,
    /// Verifications that found nothing.
    sound: u32,
    /// Writes that succeeded.
    written: u32,
}

/// A closed database with pages of all kinds, some of earlier generations, and free ones.
fn build(path: &Path, random: &mut Random) -> Nodes {
    let mut nodes = some_nodes(600 + random.below(2500) as u32);
    make(path, &nodes);
    for round in 0..random.below(4) as u8 {
        let database = Database::open(path, &options()).unwrap();
        let keys: Vec<Vec<u8>> = nodes.keys().cloned().collect();
        let mut changed = Nodes::new();
        for _ in 0..random.below(300) {
            let bytes = if random.below(20) == 0 { 3 * PAGE } else { random.below(100) };
            changed.insert(one(random, &keys).clone(), vec![round; bytes]);
        }
        set_all(&database, &changed);
        nodes.extend(changed);
        database.close().unwrap();
    }
    nodes
}

/// Where to damage a file, by what lies there.
fn aim(path: &Path, random: &mut Random, totals: &mut Totals) -> u64 {
    let (bytes, known) = (Bytes::of(path), checkpoint_pages(path).unwrap());
    let kind = |page: &u64| bytes.read(page * PAGE as u64, 1)[0];
    let within = random.below(PAGE) as u64;
    match random.below(8) {
        0 => {
            totals.meta += 1;
            (random.below(2) * PAGE + random.below(128)) as u64
        }
        1 => {
            totals.info += 1;
            let (first, second) = (2, 2 + crate::meta::info::PER_SEGMENT);
            [first, second][random.below(2)] * PAGE as u64
                + if random.below(3) == 0 { within } else { within % 1000 }
        }
        2 => {
            totals.free += 1;
            let free: Vec<u64> =
                (SEGMENT_RESERVED..known.pages).filter(|page| !known.data.contains(page)).collect();
            if free.is_empty() {
                within
            } else {
                *one(random, &free) * PAGE as u64 + within
            }
        }
        3 => {
            let inner: Vec<&u64> = known.data.iter().filter(|page| kind(page) == INNER).collect();
            totals.inner += 1;
            **one(random, &inner) * PAGE as u64 + within
        }
        _ => {
            let page = *one(random, &known.data);
            *(if kind(&page) == LEAF { &mut totals.leaf } else { &mut totals.run }) += 1;
            page * PAGE as u64 + within
        }
    }
}

/// Damages a file, and answers how to undo it.
fn damage(path: &Path, random: &mut Random, totals: &mut Totals) -> (u64, Vec<u8>) {
    let at = aim(path, random, totals);
    let bytes = Bytes::of(path);
    let most = PAGE as u64 - at % PAGE as u64;
    let len = match random.below(4) {
        0 => random.below(512) + 1,
        1 => random.below(16) + 1,
        _ => 1,
    }
    .min(most as usize);
    let before = bytes.read(at, len);
    let mut after: Vec<u8> = match random.below(4) {
        0 => vec![0; len],
        1 => bytes.read(random.below(fs::metadata(path).unwrap().len() as usize - len) as u64, len),
        _ => (0..len).map(|_| random.next() as u8).collect(),
    };
    if after == before {
        after[0] ^= 1 << random.below(8);
    }
    bytes.write(at, &after);
    (at, before)
}

/// Whether an error tells of damage; any other is one of ours.
fn told(error: &Error) -> Judged<()> {
    match error {
        Error::Corrupt { .. }
        | Error::Lost { .. }
        | Error::NotADatabase { .. }
        | Error::WritesStopped { .. } => Ok(()),
        other => Err(Wrong(format!("not an error about damage: {other:?}"))),
    }
}

/// Reads everything, round what is lost, and compares it with what is to be there.
fn read_all(database: &Database, nodes: &Nodes, totals: &mut Totals) -> Judged<()> {
    let mut session = match database.session() {
        Ok(session) => session,
        Err(error) => return told(&error),
    };
    let (mut at, mut key, mut value, mut first) = (Vec::new(), Vec::new(), Vec::new(), true);
    let mut expected = nodes.iter().peekable();
    loop {
        match session.next(&at, first, &mut key, Some(&mut value)) {
            Ok(true) => {
                let is_right = expected.next().is_some_and(|(k, v)| *k == key && *v == value);
                if !is_right {
                    return Err(Wrong(format!("{} is something else", key.escape_ascii())));
                }
                at.clone_from(&key);
            }
            Ok(false) if expected.peek().is_none() => break,
            Ok(false) => return Err(Wrong("the end comes too early".to_owned())),
            Err(Error::Lost { keys, .. }) => {
                totals.told += 1;
                let until = &keys.1;
                while expected.next_if(|(k, _)| until.is_empty() || *k <= until).is_some() {}
                if until.is_empty() {
                    return Ok(());
                }
                (at, first) = ([&until[..], &[0]].concat(), true);
                continue;
            }
            Err(error) => {
                totals.told += 1;
                return told(&error);
            }
        }
        first = false;
    }
    totals.right += 1;
    Ok(())
}

/// Reads some nodes by their keys, the values alone.
fn read_some(database: &Database, nodes: &Nodes, random: &mut Random, totals: &mut Totals) -> Judged<()> {
    let Ok(mut session) = database.session() else { return Ok(()) };
    let keys: Vec<&Vec<u8>> = nodes.keys().collect();
    let mut value = Vec::new();
    for _ in 0..40 {
        let key = *one(random, &keys);
        match session.get(key, &mut value) {
            Ok(true) if Some(&value) == nodes.get(key) => totals.right += 1,
            Ok(_) => return Err(Wrong(format!("{} has another value", key.escape_ascii()))),
            Err(error) => {
                totals.told += 1;
                told(&error)?;
            }
        }
    }
    Ok(())
}

/// Writes some nodes, and closes.
fn write_some(database: Database, nodes: &mut Nodes, random: &mut Random, totals: &mut Totals) -> Judged<()> {
    let Ok(mut session) = database.session() else { return Ok(()) };
    let keys: Vec<Vec<u8>> = nodes.keys().cloned().collect();
    for round in 0..random.below(60) as u8 {
        let (key, value) = (one(random, &keys).clone(), vec![round; random.below(3000)]);
        match if round % 5 == 0 { session.remove(&key).map(drop) } else { session.set(&key, &value) } {
            Ok(()) if round % 5 == 0 => drop(nodes.remove(&key)),
            Ok(()) => drop(nodes.insert(key, value)),
            Err(error) => {
                totals.told += 1;
                told(&error)?;
                continue;
            }
        }
        totals.written += 1;
    }
    if random.below(2) == 0 {
        database.checkpoint().map(drop).or_else(|error| told(&error))?;
    }
    drop(session);
    database.close().or_else(|error| told(&error))
}

/// Opens a damaged database in some way and does something with it; true: it has been written to.
fn use_it(path: &Path, nodes: &mut Nodes, random: &mut Random, totals: &mut Totals) -> Judged<bool> {
    let read_only = random.below(3) == 0;
    if random.below(2) == 0 {
        let _ = fs::remove_file(crate::meta::beside(path, "-shm"));
    }
    let open = || Database::open(path, &OpenOptions { read_only, ..options() });
    let database = match open() {
        Ok(database) => database,
        Err(error) => {
            totals.told += 1;
            return told(&error).map(|()| false);
        }
    };
    if random.below(3) == 0 {
        match database.verify() {
            Ok(_) => {
                totals.sound += 1;
                let before = totals.told;
                read_all(&database, nodes, totals)?;
                if totals.told > before {
                    return Err(Wrong("called sound, and then there was damage".to_owned()));
                }
            }
            Err(error) => {
                totals.told += 1;
                told(&error)?;
            }
        }
    }
    if random.below(2) == 0 {
        read_some(&database, nodes, random, totals)?;
    }
    if random.below(2) == 0 {
        read_all(&database, nodes, totals)?;
    }
    if read_only || random.below(2) == 0 {
        return database.close().or_else(|error| told(&error)).map(|()| !read_only);
    }
    write_some(database, nodes, random, totals)?;
    match open() {
        Ok(database) => {
            read_all(&database, nodes, totals)?;
            database.close().or_else(|error| told(&error))?;
        }
        Err(error) => told(&error)?,
    }
    Ok(true)
}

#[cfg(test)]
fn storm(seed: u64, time: Duration) {
    println!("damage storm: PERILUNE_FUZZ_SEED={seed}");
    let (mut random, mut totals, begin) = (Random::new(seed), Totals::default(), Instant::now());
    let mut damages = 0_u64;
    let scratch = Scratch::new();
    for round in 0.. {
        let path: PathBuf = scratch.path(&format!("{round}.db"));
        let mut nodes = build(&path, &mut random);
        loop {
            let (at, before) = damage(&path, &mut random, &mut totals);
            damages += 1;
            let used = use_it(&path, &mut nodes, &mut random, &mut totals);
            let is_written = used.unwrap_or_else(|Wrong(what)| {
                panic!("seed {seed}, damage {damages}, {} bytes at byte {at}: {what}", before.len())
            });
            if is_written || random.below(20) == 0 {
                break;
            }
            Bytes::of(&path).write(at, &before);
        }
        let _ = fs::remove_file(crate::meta::beside(&path, "-shm"));
        let Totals { right, told, sound, written, .. } = totals;
        // On a slow machine longer: until each way to end was met.
        if begin.elapsed() >= time
            && damages >= 50
            && [right, told, sound, written].iter().all(|count| *count > 0)
        {
            break;
        }
    }
    let Totals { leaf, inner, run, info, meta, free, right, told, sound, written } = totals;
    println!(
        "damage storm: {damages} damages (leaves {leaf}, inner pages {inner}, long values {run}, info pages {info}, \
         meta {meta}, free pages {free}): {right} reads right, {told} errors, {sound} verified as sound, {written} writes, \
         none other than it should be; seed {seed}"
    );
}

#[test]
fn damage_storm() {
    let seed = number_in("PERILUNE_FUZZ_SEED").unwrap_or_else(platform::random_u64);
    storm(seed, Duration::from_secs(number_in("PERILUNE_FUZZ_SECONDS").unwrap_or(4)));
}

/// Damage of what is proved already is what only the judge can see.
#[test]
fn the_judge_of_the_storm_sees_other_data() {
    let scratch = Scratch::new();
    let path = scratch.path("a.db");
    let (mut nodes, mut totals) = (some_nodes(500), Totals::default());
    nodes.insert(b"name 020 canary".to_vec(), b"balance=1000;777".to_vec());
    make(&path, &nodes);
    let database = Database::open(&path, &options()).unwrap();
    assert!(read_all(&database, &nodes, &mut totals).is_ok());
    let data = checkpoint_pages(&path).unwrap().data;
    let bytes = Bytes::of(&path);
    bytes.write(bytes.find(&data, b"balance=1000;777")[0].1, b"balance=9000;777");
    assert!(read_all(&database, &nodes, &mut totals).is_err());
    database.close().unwrap();
}
