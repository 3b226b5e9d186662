//! Framing and reading: whole, cut, garbled at every byte, and at random.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use perilune_disk::{Disk, FileAccess, RealDisk};
use perilune_store::Result;
use proptest::prelude::*;

use super::batch::{BatchWriter, Segment, Segments, Spot};
use super::frame::{salt, ChunkHead, SegmentHead, BLOCK, FORMAT};
use super::read::{read, End};
use super::record::{heading, Batch, LogRecord, LOG_HEADING};
use super::segment;
use crate::image::space_error;
use crate::limits::{LOG_CHUNK, LOG_RECORD_HELD};
use crate::meta::LogId;
use crate::session::record::{Kind, Op};

const UUID: [u8; 16] = *b"sixteen bytes...";
const MARK: u64 = 0x6d61_726b;

fn id(uuid: [u8; 16], mark: u64) -> LogId {
    LogId { uuid, mark }
}

/// Segments of a directory, of a size of the test's own.
struct Files {
    database: PathBuf,
    bytes: u64,
    mark: u64,
}

impl Segments for Files {
    fn open(&mut self, spot: Spot) -> Result<Segment> {
        let path = segment::path(&self.database, spot.slot);
        let file = RealDisk.open(&path, true).map_err(|source| space_error("open", &path, source))?;
        Ok(Segment { file, spot, bytes: self.bytes, head: None })
    }

    fn next(&mut self, spot: Spot, batch: u64, chunk: u32) -> Result<Segment> {
        let slot = spot.sequence as u32;
        let sequence = spot.sequence + 1;
        let path = segment::path(&self.database, slot);
        let file = RealDisk
            .create(&path, FileAccess { mode: 0o600, owner: None })
            .map_err(|e| space_error("create", &path, e))?;
        file.write_at(&vec![0; self.bytes as usize], 0).map_err(|e| space_error("fill", &path, e))?;
        let (bytes, mark) = (self.bytes, self.mark);
        let head = SegmentHead { uuid: UUID, sequence, bytes, batch, chunk, mark, format: FORMAT };
        let spot = Spot { slot, sequence, offset: 0 };
        Ok(Segment { file, spot, bytes: self.bytes, head: Some(head.encode()) })
    }

    fn write_error(&self, segment: &Segment, source: std::io::Error) -> perilune_store::Error {
        space_error("write", &segment::path(&self.database, segment.spot.slot), source)
    }
}

struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Directory {
        let path = std::env::temp_dir().join(format!("perilune-log-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        std::fs::write(path.join("x.db"), b"").unwrap();
        Directory(path)
    }

    fn database(&self) -> PathBuf {
        self.0.join("x.db")
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        // It fails where a file is made meanwhile, as a database that is still being closed makes.
        let _gone = (0..1_000).any(|_| std::fs::remove_dir_all(&self.0).is_ok() || !self.0.exists());
    }
}

/// A log being written by a test.
struct Log {
    files: Files,
    spot: Spot,
    batch: u64,
    until: u64,
    durable: u64,
}

impl Log {
    fn new(database: &Path, bytes: u64) -> Log {
        let files = Files { database: database.into(), bytes, mark: MARK };
        Log { files, spot: Spot::default(), batch: 0, until: 0, durable: 0 }
    }

    /// Writes a batch of records, each of one operation: (seq, value).
    fn write(&mut self, records: &[(u64, Vec<u8>)]) {
        let (batch, until) = (self.batch + 1, self.until + 2);
        let head = ChunkHead {
            salt: salt(id(UUID, self.files.mark), FORMAT),
            batch,
            after: self.until,
            until,
            durable: self.durable,
            ..ChunkHead::default()
        };
        let mut writer = BatchWriter::new(&mut self.files, self.spot, head, Vec::new());
        for (seq, value) in records {
            let op = Op { kind: Kind::Set, volatile: false, big: false, key: &seq.to_be_bytes(), value };
            let mut bytes = Vec::new();
            op.encode_to(|part| {
                bytes.extend_from_slice(part);
                Ok(())
            })
            .unwrap();
            writer.note_generation(4);
            let len = (LOG_HEADING + bytes.len()) as u64;
            writer.write(&heading(len, until, *seq, 4, 1)).unwrap();
            writer.write(&bytes).unwrap();
        }
        if let (Some((Segment { spot, .. }, _)), _) = writer.finish().unwrap() {
            self.spot = spot;
            self.batch = batch;
            self.until = until;
        }
    }
}

/// Reads a log: the batches and its end.
fn all(database: &Path, first: u64) -> (Vec<Batch>, End) {
    let mut replay = read(&RealDisk, database, id(UUID, MARK), first).unwrap();
    let mut batches = Vec::new();
    while let Some(batch) = replay.next().unwrap() {
        batches.push(batch);
    }
    let end = replay.end().unwrap().clone();
    (batches, end)
}

fn values(batch: &Batch) -> Vec<(u64, Vec<u8>)> {
    batch
        .records
        .iter()
        .map(|record| {
            let loaded = record.loaded(&RealDisk).unwrap();
            let ops = loaded.ops().unwrap();
            assert_eq!(ops.len(), 1);
            assert_eq!(ops[0].key, record.seq.to_be_bytes());
            (record.seq, ops[0].value.to_vec())
        })
        .collect()
}

/// Three batches in segments of three blocks: the second goes over the end of one.
fn small_log(database: &Path) -> Vec<Vec<(u64, Vec<u8>)>> {
    let batches = vec![
        vec![(7, b"seven".to_vec()), (3, b"three".to_vec())],
        vec![(9, vec![9; 6000]), (10, vec![10; 3000])],
        vec![(11, b"eleven".to_vec())],
    ];
    let mut log = Log::new(database, 3 * BLOCK as u64);
    for batch in &batches {
        log.write(batch);
        log.durable = log.batch;
    }
    batches
}

/// A long record lies in many chunks and segments and is only read when it is wanted: a batch may hold more
/// of them than there is memory.
#[test]
fn long_records_of_a_batch_are_not_held() {
    let directory = Directory::new("long");
    let path = directory.database();
    let long = |byte: u8, bytes: usize| (0..bytes).map(|at| byte ^ (at / 7) as u8).collect::<Vec<u8>>();
    let batch = vec![
        (1, vec![1; 20]),
        (2, long(2, 3 * LOG_CHUNK + 777)),
        (3, vec![3; 40]),
        (4, long(4, LOG_RECORD_HELD + 1)),
        (5, long(5, LOG_CHUNK - 64)),
        (6, vec![]),
    ];
    let mut log = Log::new(&path, 2 * LOG_CHUNK as u64);
    log.write(&batch);
    log.durable = log.batch;
    log.write(&[(7, vec![7; 7])]);
    let (batches, end) = all(&path, 1);
    assert_eq!((batches.len(), end.damage), (2, None));
    assert_eq!(values(&batches[0]), batch);
    let held: Vec<bool> = batches[0].records.iter().map(LogRecord::is_held).collect();
    assert_eq!(held, [true, false, true, false, false, true]);
}

#[test]
fn batches_are_read_back_in_the_order_of_their_seq() {
    let directory = Directory::new("whole");
    let written = small_log(&directory.database());
    let (batches, end) = all(&directory.database(), 1);
    assert_eq!(batches.len(), 3);
    for (batch, mut wanted) in batches.iter().zip(written) {
        wanted.sort_by_key(|(seq, _)| *seq);
        assert_eq!(values(batch), wanted);
        assert_eq!(batch.max_generation, 4);
    }
    assert_eq!((end.batches, end.dropped, end.damage), (3, 0, None));
    assert!(end.next_batch > 3);
    for first in 2..=6 {
        let (batches, end) = all(&directory.database(), first);
        assert_eq!(batches.first().map(|batch| batch.number), (first <= 3).then_some(first));
        assert_eq!(end.damage, None, "from {first}");
        assert!(end.next_batch > first.max(3));
    }
}

#[test]
fn no_log_and_foreign_logs_hold_nothing() {
    let directory = Directory::new("none");
    let (batches, end) = all(&directory.database(), 1);
    assert!(batches.is_empty() && end.damage.is_none() && end.place.is_none());
    small_log(&directory.database());
    let mut replay = read(&RealDisk, &directory.database(), id([0; 16], MARK), 1).unwrap();
    assert!(replay.next().unwrap().is_none(), "another database's");
    std::fs::write(directory.0.join("x.db-wal.07"), b"").unwrap();
    std::fs::write(directory.0.join("x.db-wal.x"), b"").unwrap();
    std::fs::write(directory.0.join("x.db-wal.1024"), b"").unwrap();
    assert_eq!(all(&directory.database(), 1).0.len(), 3);
}

/// The answers to a changed log: always a prefix, and damage is told where a durable batch is hit.
fn check_prefix(database: &Path, written: &[Vec<(u64, Vec<u8>)>], what: &str) -> usize {
    let (batches, end) = all(database, 1);
    for (batch, wanted) in batches.iter().zip(written) {
        let mut wanted = wanted.clone();
        wanted.sort_by_key(|(seq, _)| *seq);
        assert_eq!(values(batch), wanted, "{what}");
    }
    let whole = batches.len();
    assert!(whole <= written.len(), "{what}");
    // Batch n + 1 says that n had been durable, if its chunks can be found: in a segment that is there.
    if whole + 1 < written.len() {
        let damage = end.damage.as_ref();
        if let Some(damage) = damage {
            assert!(damage.file.to_string_lossy().contains("-wal."), "{what}");
        }
    } else {
        assert_eq!(end.damage, None, "{what}");
    }
    whole
}

#[test]
fn garbled_at_every_byte_it_ends_before_the_garbled_batch() {
    let directory = Directory::new("garbled");
    let written = small_log(&directory.database());
    let files = segment::files(&RealDisk, &directory.database()).unwrap();
    assert!(files.len() >= 2, "the log goes over several segments");
    let mut hit = BTreeMap::new();
    for (_, path) in &files {
        let good = std::fs::read(path).unwrap();
        let file = RealDisk.open(path, true).unwrap();
        // Every byte of all heads, and some of what is behind.
        for at in (0..good.len()).filter(|at| at % BLOCK < 160 || at % 37 == 0) {
            file.write_at(&[good[at] ^ 0x11], at as u64).unwrap();
            let what = format!("{} byte {at}", path.display());
            *hit.entry(check_prefix(&directory.database(), &written, &what)).or_insert(0) += 1;
            file.write_at(&[good[at]], at as u64).unwrap();
        }
    }
    assert!((0..=3).all(|whole| hit.contains_key(&whole)), "{hit:?}");
}

#[test]
fn a_durable_batch_that_is_garbled_is_damage_with_its_place() {
    let directory = Directory::new("damage");
    small_log(&directory.database());
    let path = segment::path(&directory.database(), 0);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[BLOCK + 70] ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    let (batches, end) = all(&directory.database(), 1);
    assert!(batches.is_empty());
    let damage = end.damage.unwrap();
    assert_eq!((damage.file, damage.offset), (path, BLOCK as u64));
    assert!(damage.why.contains("batch 1") && damage.why.contains("checksum"), "{}", damage.why);
    assert_eq!(end.dropped, 2, "batches 1 and 2 are known to have been durable");
}

#[test]
fn an_unsynced_tail_that_is_torn_is_no_damage() {
    let directory = Directory::new("tail");
    let mut log = Log::new(&directory.database(), 16 * BLOCK as u64);
    for seq in 1..=4 {
        log.write(&[(seq, b"value".to_vec())]);
        log.durable = log.batch.min(2);
    }
    let path = segment::path(&directory.database(), 0);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[3 * BLOCK + 80] ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    let (batches, end) = all(&directory.database(), 1);
    assert_eq!(batches.len(), 2);
    assert_eq!((end.dropped, end.damage), (2, None), "3 and 4 were not on disk for certain");
    assert!(end.next_batch > 4);
}

#[test]
fn cut_anywhere_it_is_a_prefix() {
    let directory = Directory::new("cut");
    let written = small_log(&directory.database());
    for (_, path) in segment::files(&RealDisk, &directory.database()).unwrap() {
        let good = std::fs::read(&path).unwrap();
        for len in (0..good.len()).step_by(61) {
            std::fs::write(&path, &good[..len]).unwrap();
            check_prefix(&directory.database(), &written, &format!("{} cut at {len}", path.display()));
        }
        std::fs::remove_file(&path).unwrap();
        let (_, end) = all(&directory.database(), 1);
        if path == segment::path(&directory.database(), 0) {
            assert!(end.damage.unwrap().why.contains("a file is missing"));
        }
        std::fs::write(&path, &good).unwrap();
    }
}

#[test]
fn a_segment_used_again_shows_nothing_of_its_old_batches() {
    let directory = Directory::new("again");
    let mut log = Log::new(&directory.database(), 64 * BLOCK as u64);
    for seq in 1..=20 {
        log.write(&[(seq, vec![1; 3000])]);
    }
    // The same file, begun anew with batch 21: old chunks lie behind the new one.
    let path = segment::path(&directory.database(), 0);
    let bytes = 64 * BLOCK as u64;
    let head =
        SegmentHead { uuid: UUID, sequence: 2, bytes, batch: 21, chunk: 0, mark: MARK, format: FORMAT }
            .encode();
    let file = RealDisk.open(&path, true).unwrap();
    file.write_at(&head, 0).unwrap();
    log.spot = Spot { slot: 0, sequence: 2, offset: BLOCK as u64 };
    log.write(&[(21, b"new".to_vec())]);
    let (batches, end) = all(&directory.database(), 21);
    assert_eq!(batches.iter().map(|batch| batch.number).collect::<Vec<_>>(), [21]);
    assert_eq!((end.dropped, end.damage), (0, None));
}

/// A log begins its numbers anew when a database was closed. What a crash has left of the one before, in a file whose
/// head is lost, says nothing of this one.
#[test]
fn a_file_that_an_older_log_has_left_is_no_evidence() {
    let directory = Directory::new("older");
    let database = directory.database();
    let mut older = Log::new(&database, 64 * BLOCK as u64);
    older.files.mark = MARK + 1;
    for seq in 1..=9 {
        older.write(&[(seq, b"old".to_vec())]);
        older.durable = older.batch;
    }
    let left = segment::path(&database, 5);
    std::fs::rename(segment::path(&database, 0), &left).unwrap();
    let mut bytes = std::fs::read(&left).unwrap();
    bytes[..BLOCK].fill(0xa5);
    std::fs::write(&left, bytes).unwrap();
    let mut log = Log::new(&database, 64 * BLOCK as u64);
    log.write(&[(1, b"new".to_vec())]);
    let (batches, end) = all(&database, 1);
    assert_eq!((batches.len(), end.dropped, end.damage), (1, 0, None));
    // A file of this log that has lost its head still is.
    log.durable = 2;
    log.write(&[(2, b"new".to_vec())]);
    log.write(&[(3, b"new".to_vec())]);
    std::fs::rename(segment::path(&database, 0), &left).unwrap();
    let mut bytes = std::fs::read(&left).unwrap();
    bytes[..BLOCK].fill(0xa5);
    std::fs::write(&left, bytes).unwrap();
    let (batches, end) = all(&database, 1);
    assert_eq!((batches.len(), end.damage.map(|damage| damage.lost)), (0, Some(2)));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// Any batches, in segments of any size, with some bytes changed behind a point: a prefix that
    /// reaches that point.
    #[test]
    fn any_log_reads_back_up_to_where_it_is_garbled(
        lengths in prop::collection::vec(prop::collection::vec(0usize..60_000, 1..6), 1..8),
        blocks in 4u64..40,
        garbage in prop::collection::vec((0usize..4_000_000, any::<u8>()), 0..4),
    ) {
        let directory = Directory::new("any");
        let database = directory.database();
        let mut log = Log::new(&database, blocks * BLOCK as u64);
        let mut seq = 0;
        let mut written = Vec::new();
        for batch in &lengths {
            let records: Vec<(u64, Vec<u8>)> = batch.iter().map(|len| {
                seq += 1;
                (seq, vec![seq as u8; *len])
            }).collect();
            log.write(&records);
            written.push(records);
        }
        prop_assert_eq!(check_prefix(&database, &written, "untouched"), written.len());
        let files = segment::files(&RealDisk, &database).unwrap();
        for (at, byte) in garbage {
            let file = &files[at % files.len()].1;
            let mut bytes = std::fs::read(file).unwrap();
            let at = at / files.len() % bytes.len();
            bytes[at] = byte;
            std::fs::write(file, &bytes).unwrap();
        }
        check_prefix(&database, &written, "garbled");
    }
}

const _: () = assert!(LOG_CHUNK >= 2 * BLOCK);
