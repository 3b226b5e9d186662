//! Long values whose pieces are written, against values in memory: through checkpoints, snapshots, reopening, and recovery from
//! the log alone.

mod party;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use party::Scratch;
use perilune_engine::{Database, OpenOptions, Session};
use perilune_store::{put_piece, Bulk, Durability, Session as _, Store, TransactionOptions, Transactions};

const LONGEST: usize = 3_000_000;

fn options(durability: Durability) -> OpenOptions {
    OpenOptions { max_size: 1 << 30, durability: Some(durability), ..OpenOptions::default() }
}

/// Numbers that look random, from a seed that is told.
struct Chance(u64);

impl Chance {
    fn new() -> Chance {
        let seed = std::env::var("PERILUNE_SEED").ok().and_then(|seed| seed.parse().ok());
        let seed = seed.unwrap_or_else(|| u64::from(std::process::id()) << 20 | 1);
        println!("PERILUNE_SEED={seed}");
        Chance(seed)
    }

    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }

    fn bytes(&mut self, count: usize) -> Vec<u8> {
        let first = self.below(251);
        (0..count).map(|at| (at + first) as u8).collect()
    }
}

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

fn key(index: usize) -> Vec<u8> {
    format!("value{index}").into_bytes()
}

/// One write of a key, mostly of a piece of it.
fn write(session: &mut Session, model: &mut Model, chance: &mut Chance) {
    let key = key(chance.below(4));
    let len = model.get(&key).map_or(0, Vec::len);
    match chance.below(40) {
        0 => {
            let value = [100, 5_000, 70_000, 1_500_000][chance.below(4)];
            let value = chance.bytes(value);
            session.set(&key, &value).unwrap();
            model.insert(key, value);
        }
        1 => {
            let there = session.remove(&key).unwrap();
            assert_eq!(there, model.remove(&key).is_some());
        }
        what => {
            let count = [1, 10, 300, 9_000, 200_000][chance.below(if what < 5 { 5 } else { 4 })];
            let piece = chance.bytes(count);
            let offset = match what {
                2..8 => len,
                8..10 => len + chance.below(30_000),
                _ => chance.below(len + 1),
            };
            if offset + count > LONGEST {
                return;
            }
            let length = session.set_piece(&key, offset, &piece).unwrap();
            let expected =
                model.get_mut(&key).map(|value| put_piece(value, offset, &piece, usize::MAX).unwrap());
            assert_eq!(length, expected);
        }
    }
}

fn compare(session: &mut Session, model: &Model, place: &str) {
    for index in 0..4 {
        let (key, mut value) = (key(index), Vec::new());
        let there = session.get(&key, &mut value).unwrap();
        assert!(there.then_some(&value) == model.get(&key), "{place}: value {index} differs");
        let middle = value.len() / 2;
        let piece = middle..middle + 100;
        let mut out = Vec::new();
        let length = session.get_pieces(&key, std::slice::from_ref(&piece), &mut out).unwrap();
        assert_eq!(length, there.then_some(value.len()), "{place}");
        assert!(
            !there || out == value[middle..piece.end.min(value.len())],
            "{place}: a piece of {index} differs"
        );
    }
}

/// The files of a database but `-shm`, with what is in them.
fn files(path: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(path.parent().unwrap()).unwrap().map(|entry| entry.unwrap());
    let named = entries.map(|entry| (entry.file_name().into_string().unwrap(), entry.path()));
    let ours = named.filter(|(name, _)| name.starts_with("test.db") && !name.ends_with("-shm"));
    ours.map(|(name, path)| (name, fs::read(path).unwrap())).collect()
}

/// The database as the next one would find it after a crash of the machine: its file and its log, without `-shm`.
///
/// A crash is one moment. So the files are read again until a checkpoint in the background changes nothing meanwhile.
fn crashed(path: &Path, to: &Path) {
    let mut found = files(path);
    loop {
        let again = files(path);
        if again == found {
            break;
        }
        found = again;
    }
    fs::create_dir_all(to).unwrap();
    for (name, bytes) in found {
        fs::write(to.join(name), bytes).unwrap();
    }
}

fn random_pieces(level: Durability) {
    let mut chance = Chance::new();
    let scratch = Scratch::new("pieces");
    let path = scratch.database();
    let mut model = Model::new();
    let mut database = Database::open(&path, &options(level)).unwrap();
    let mut session = database.session().unwrap();
    let mut kept: Option<(Session, Model)> = None;
    for round in 0..60 {
        let place = format!("round {round}");
        for _ in 0..chance.below(40) {
            if chance.below(4) > 0 {
                write(&mut session, &mut model, &mut chance);
                continue;
            }
            // Levels, of which the inner one may be taken back.
            session.begin(&TransactionOptions::default()).unwrap();
            let mut inside = model.clone();
            for _ in 0..chance.below(6) {
                write(&mut session, &mut inside, &mut chance);
            }
            compare(&mut session, &inside, &place);
            session.begin(&TransactionOptions::default()).unwrap();
            let mut inner = inside.clone();
            for _ in 0..chance.below(6) {
                write(&mut session, &mut inner, &mut chance);
            }
            compare(&mut session, &inner, &place);
            if chance.below(2) == 0 {
                session.commit().unwrap();
                inside = inner;
            } else {
                session.rollback().unwrap();
                compare(&mut session, &inside, &place);
            }
            session.commit().unwrap();
            model = inside;
        }
        compare(&mut session, &model, &place);
        match chance.below(8) {
            0 => drop(database.checkpoint().unwrap()),
            1 => kept = Some((database.snapshot().unwrap(), model.clone())),
            2 => {
                if let Some((mut snapshot, then)) = kept.take() {
                    compare(&mut snapshot, &then, &format!("{place}, snapshot"));
                }
            }
            3 if level == Durability::Fsync => {
                let to = path.with_file_name("crashed");
                crashed(&path, &to);
                let copy = Database::open(&to.join("test.db"), &options(level)).unwrap();
                assert!(copy.recovery().is_some(), "{place}: nothing was recovered");
                compare(&mut copy.session().unwrap(), &model, &format!("{place}, recovered"));
                copy.verify().unwrap_or_else(|error| panic!("{place}: recovered: {error}"));
                drop(copy);
                fs::remove_dir_all(to).unwrap();
            }
            4 => {
                kept = None;
                drop(session);
                database.close().unwrap();
                database = Database::open(&path, &options(level)).unwrap();
                session = database.session().unwrap();
                compare(&mut session, &model, &format!("{place}, reopened"));
            }
            _ => {}
        }
        database.verify().unwrap_or_else(|error| panic!("{place}: {error}"));
    }
}

#[test]
fn random_pieces_are_what_was_written() {
    random_pieces(Durability::None);
}

#[test]
fn random_pieces_come_back_from_the_log() {
    random_pieces(Durability::Fsync);
}

/// As it was, each bit that was set took the whole value into new pages and into the log.
#[test]
fn a_small_piece_takes_little_room_and_little_log() {
    let scratch = Scratch::new("pieces");
    let path = scratch.database();
    let options = options(Durability::Fsync);
    let database = Database::open(&path, &options).unwrap();
    let mut session = database.session().unwrap();
    session.set(b"bits", &vec![0; 32 << 20]).unwrap();
    database.checkpoint().unwrap();
    let sizes = || -> u64 {
        let sizes = fs::read_dir(path.parent().unwrap())
            .unwrap()
            .map(|entry| entry.unwrap().metadata().unwrap().len());
        sizes.sum()
    };
    session.set_piece(b"bits", 5_000_000, &[1]).unwrap();
    let before = sizes();
    for at in 0..1_000 {
        session.set_piece(b"bits", 5_000_000 + at * 3, &[1]).unwrap();
    }
    let more = sizes() - before;
    // 1,000 batches of a block of 4 KiB each, in segments of the log of 1, 2 and 4 MiB.
    assert!(more <= 8 << 20, "{more} bytes for 1,000 pieces");
    database.verify().unwrap();
}

/// Many writers of one value, and readers of it: each sees pieces that were written whole.
#[test]
fn pieces_are_written_whole_while_others_read() {
    let scratch = Scratch::new("pieces");
    let database = Database::open(&scratch.database(), &options(Durability::None)).unwrap();
    database.session().unwrap().set(b"shared", &vec![0; 400_000]).unwrap();
    let rounds = 300;
    std::thread::scope(|scope| {
        for writer in 0..3_usize {
            let mut session = database.session().unwrap();
            scope.spawn(move || {
                for round in 0..rounds {
                    let byte = (round % 250) as u8 + 1;
                    session.set_piece(b"shared", writer * 100_000 + 7, &[byte; 20_000]).unwrap();
                }
            });
        }
        let mut session = database.session().unwrap();
        let database = &database;
        scope.spawn(move || {
            let mut out = Vec::new();
            for round in 0..rounds {
                let writer = round % 3;
                let piece = writer * 100_000 + 7..writer * 100_000 + 20_007;
                session.get_pieces(b"shared", std::slice::from_ref(&piece), &mut out).unwrap();
                assert!(out.iter().all(|byte| *byte == out[0]), "half a piece was seen");
                if round % 50 == 0 {
                    database.checkpoint().unwrap();
                }
            }
        });
    });
    let mut value = Vec::new();
    assert!(database.session().unwrap().get(b"shared", &mut value).unwrap());
    let last = ((rounds - 1) % 250) as u8 + 1;
    for writer in 0..3 {
        let piece = &value[writer * 100_000 + 7..writer * 100_000 + 20_007];
        assert!(piece.iter().all(|byte| *byte == last), "a write was lost");
    }
    database.verify().unwrap();
}
