//! What is acknowledged is in the log: levels, group commit, long values, failing disks.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

use perilune_disk::{Disk, Fault, FaultyDisk, RealDisk};
use perilune_store::{
    transact, Bulk, Deferral, Durability, Error, LockMode, LockRequest, Locks, Optimistic, Session as _,
    Store, TransactionOptions,
};

use super::{Database, Session};
use crate::duty;
use crate::image::layout::{control, FLAG_FAILED, FLAG_FULL, FLAG_IDLE};
use crate::limits::{IDLE_REST, RECORD_INLINE_MAX};
use crate::log::{self, End};
use crate::meta;
use crate::open::{Attachment, OpenOptions};
use crate::session::patch;
use crate::session::record::Kind;

pub(super) type Content = BTreeMap<Vec<u8>, Vec<u8>>;

pub(super) struct Scratch(pub(super) PathBuf);

impl Scratch {
    pub(super) fn new() -> Scratch {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("perilune-durable-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Scratch(path)
    }

    pub(super) fn db(&self) -> PathBuf {
        self.0.join("x.db")
    }

    pub(super) fn open(&self, level: Durability) -> Database {
        Database::open(&self.db(), &options(level)).unwrap()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // It fails where a file is made meanwhile, as a database that is still being closed makes.
        let _gone = (0..1_000).any(|_| std::fs::remove_dir_all(&self.0).is_ok() || !self.0.exists());
    }
}

pub(super) fn options(level: Durability) -> OpenOptions {
    OpenOptions { max_size: 1 << 30, durability: Some(level), ..OpenOptions::default() }
}

/// What the log of a database says from batch `first` on, and how it ends; anyhow, if others are writing.
fn replay_prefix(path: &Path, first: u64) -> (Content, End) {
    let file = RealDisk.open(path, false).unwrap();
    let (_, meta) = meta::newest(&*file, path).unwrap();
    let mut replay = log::read(&RealDisk, path, meta.log_id(), first).unwrap();
    let mut content = Content::new();
    while let Some(batch) = replay.next().unwrap() {
        for record in &batch.records {
            assert!(record.flush > batch.interval.0 && record.flush <= batch.interval.1);
            for op in record.loaded(&RealDisk).unwrap().ops().unwrap() {
                assert!(!op.volatile && !op.big);
                match op.kind {
                    Kind::Set => drop(content.insert(op.key.to_vec(), op.value.to_vec())),
                    Kind::Remove => drop(content.remove(op.key)),
                    Kind::RemovePrefix => content.retain(|key, _| !key.starts_with(op.key)),
                    Kind::Patch => {
                        let value = content.get_mut(op.key).expect("what is patched is there");
                        patch::apply_to_bytes(&patch::decode(op.value).expect("patches"), value);
                    }
                }
            }
        }
    }
    (content, replay.end().unwrap().clone())
}

/// What a log that nobody is writing to says from batch `first` on, and how it ends.
fn replay(path: &Path, first: u64) -> (Content, End) {
    let (content, end) = replay_prefix(path, first);
    assert_eq!(end.damage, None);
    (content, end)
}

pub(super) fn content(session: &mut Session) -> Content {
    let (mut content, mut from) = (Content::new(), vec![0]);
    let (mut key, mut value) = (Vec::new(), Vec::new());
    while session.next(&from, false, &mut key, Some(&mut value)).unwrap() {
        content.insert(key.clone(), value.clone());
        std::mem::swap(&mut from, &mut key);
    }
    content
}

pub(super) fn key(number: u64) -> Vec<u8> {
    format!("key{number:06}").into_bytes()
}

#[test]
fn at_fsync_the_log_has_what_was_acknowledged() {
    let scratch = Scratch::new();
    let database = scratch.open(Durability::Fsync);
    let first = log::next_batch(&database.image());
    let mut session = database.session().unwrap();
    let check = |session: &mut Session, what: &str| {
        assert_eq!(replay(&scratch.db(), first).0, content(session), "{what}");
    };
    session.set(b"a", b"1").unwrap();
    check(&mut session, "a set");
    session.set(b"long", &vec![7; 100_000]).unwrap();
    check(&mut session, "a long value");
    session.remove(b"a").unwrap();
    check(&mut session, "a removal");
    session
        .update(b"n", &mut |_, buffer| {
            buffer[0] = 9;
            Ok(perilune_store::Decision::Write(1))
        })
        .unwrap();
    check(&mut session, "an update");
    assert!(session.compare_and_set(b"n", Some(&[9]), Some(b"swapped")).unwrap());
    check(&mut session, "a swap");
    transact(&mut session, &TransactionOptions::default(), |session| {
        (0..500).try_for_each(|number| session.set(&key(number), &[3; 1000]))?;
        session.set(b"longer", &vec![8; 300_000])
    })
    .unwrap();
    const { assert!(500 * 1000 > RECORD_INLINE_MAX, "the record lies in runs") };
    check(&mut session, "a long record");
    session.set_each(&[(b"key0001x", b"1"), (b"key0001y", b"2"), (b"of a batch", b"3")]).unwrap();
    check(&mut session, "a batch");
    session.set_each(&[(b"before a bad key", b"4"), (b"", b"5")]).unwrap_err();
    check(&mut session, "a batch that was ended by an error");
    session.remove_prefix(b"key0001").unwrap();
    check(&mut session, "a removal of a prefix");
    let owner = session.new_lock_owner();
    let request = [LockRequest { name: b"lock", ancestors: &[], mode: LockMode::Exclusive }];
    assert!(session.lock(owner, &request, None).unwrap());
    session.post_and_set();
    check(&mut session, "volatile operations, and a transaction of both trees");
    drop(session);
    database.verify().unwrap();
    database.close().unwrap();
}

impl Session {
    /// A transaction that writes both trees.
    fn post_and_set(&mut self) {
        use perilune_store::{ChannelOptions, Messages};
        self.create_channel(b"channel", ChannelOptions::default()).unwrap();
        transact(self, &TransactionOptions::default(), |session| {
            session.post(b"channel", b"message")?;
            session.set(b"with a message", b"set")
        })
        .unwrap();
    }
}

#[test]
fn rings_and_segments_wrap_and_lose_nothing() {
    let scratch = Scratch::new();
    let database = scratch.open(Durability::Periodic);
    let image = database.image();
    // No checkpoint recycles the log meanwhile.
    let quiet = duty::take(&image, control::CHECKPOINT_OWNER).unwrap();
    let first = log::next_batch(&image);
    let mut session = database.session().unwrap();
    // Over twenty rings, and over the first two segments.
    for number in 0..6000 {
        session.set(&key(number % 700), &vec![number as u8; 1000]).unwrap();
    }
    log::sync(&image).unwrap();
    let (logged, end) = replay(&scratch.db(), first);
    assert_eq!(logged, content(&mut session));
    assert!(log::size(&image) > (3 << 20) || cfg!(feature = "tiny"), "{}", log::size(&image));
    assert_eq!(end.next_batch, log::next_batch(&image) + 1);
    // Sessions come and go; what they have written stays to be written.
    for number in 0..50 {
        let mut other = database.session().unwrap();
        other.set(&key(1000 + number), b"of a short session").unwrap();
    }
    log::sync(&image).unwrap();
    assert_eq!(replay(&scratch.db(), first).0, content(&mut session));
    // What a checkpoint makes superfluous is used again.
    let used = log::size(&image);
    log::recycle(&image, log::next_batch(&image)).unwrap();
    assert!(log::size(&image) < used);
    let first = log::next_batch(&image);
    for number in 0..6000 {
        session.set(&key(number % 700), &vec![number as u8; 1000]).unwrap();
    }
    log::sync(&image).unwrap();
    let (logged, _) = replay(&scratch.db(), first);
    assert_eq!(logged.len(), 700);
    assert!(logged.iter().all(|(key, value)| content(&mut session)[key] == *value));
    drop((session, quiet));
    database.verify().unwrap();
}

/// Runs went past the records that were not in the log yet: what was loaded was missing from the log, and the
/// next commit found the ring damaged.
#[test]
fn runs_are_in_the_log_as_single_sets_are() {
    let scratch = Scratch::new();
    let database = scratch.open(Durability::Fsync);
    let first = log::next_batch(&database.image());
    let mut session = database.session().unwrap();
    let keys: Vec<Vec<u8>> = (0..20_000).map(key).collect();
    let pairs: Vec<(&[u8], &[u8])> = keys.iter().map(|key| (&key[..], &[5; 30][..])).collect();
    const { assert!(20_000 * 30 > 2 * crate::limits::RING, "the records fill the ring again and again") };
    session.set_each(&pairs).unwrap();
    let logged = replay(&scratch.db(), first).0;
    assert_eq!(logged.len(), keys.len());
    assert_eq!(logged, content(&mut session));
    drop(session);
    database.close().unwrap();
}

#[test]
fn periodic_flushes_by_itself() {
    let scratch = Scratch::new();
    let database = scratch.open(Durability::Periodic);
    let first = log::next_batch(&database.image());
    let mut session = database.session().unwrap();
    session.set(b"a", b"1").unwrap();
    let deadline = Instant::now() + Duration::from_secs(20);
    while replay(&scratch.db(), first).0.is_empty() {
        assert!(Instant::now() < deadline, "nothing was flushed");
        std::thread::yield_now();
    }
}

#[test]
fn many_writers_share_syncs_and_each_finds_its_commit_in_the_log() {
    let scratch = Scratch::new();
    let database = scratch.open(Durability::Fsync);
    let image = database.image();
    let first = log::next_batch(&image);
    let (threads, rounds) = (8, 40);
    // Nobody syncs until each has a commit that waits for it: where a sync takes no time, in memory, they might never meet.
    let duty = duty::take(&image, control::SYNC_OWNER).unwrap();
    let syncs = || image.control(control::LOG_SYNCS).load(Ordering::Acquire);
    let before = syncs();
    let mut onlooker = database.session().unwrap();
    std::thread::scope(|scope| {
        for thread in 0..threads as u64 {
            let (database, scratch) = (&database, &scratch);
            scope.spawn(move || {
                let mut session = database.session().unwrap();
                for round in 0..rounds {
                    session.set(&key(thread * 1000 + round), b"value").unwrap();
                    if round % 20 == 7 {
                        let (logged, _) = replay_prefix(&scratch.db(), first);
                        for earlier in 0..=round {
                            assert!(logged.contains_key(&key(thread * 1000 + earlier)), "{thread} {earlier}");
                        }
                    }
                }
            });
        }
        let mut value = Vec::new();
        while !(0..threads as u64).all(|thread| onlooker.get(&key(thread * 1000), &mut value).unwrap()) {
            std::thread::yield_now();
        }
        drop(duty);
    });
    let commits = threads as u64 * rounds;
    let syncs = syncs() - before;
    assert!(syncs <= commits + 1 - threads as u64, "{syncs} syncs for {commits} commits");
    assert_eq!(replay(&scratch.db(), first).0.len() as u64, commits);
}

#[test]
fn an_operator_sees_log_syncs_checkpoints_and_what_snapshots_keep() {
    let scratch = Scratch::new();
    let database = scratch.open(Durability::Fsync);
    let mut session = database.session().unwrap();
    let before = database.statistics().unwrap();
    session.set(b"a", &[7; 1000]).unwrap();
    let seen = database.statistics().unwrap();
    assert!(seen.fsyncs > before.fsyncs && seen.log_bytes >= before.log_bytes + 1000, "{before:?} {seen:?}");
    assert!(seen.replay_bytes >= 1000, "{seen:?}");
    assert!(database.checkpoint().unwrap());
    let then = database.statistics().unwrap();
    assert!(then.checkpoints > seen.checkpoints && then.fsyncs >= seen.fsyncs + 2, "{seen:?} {then:?}");
    assert!(then.checkpoint_age_ms < 60_000, "{then:?}");
    let snapshot = database.snapshot().unwrap();
    session.set(b"a", b"another").unwrap();
    // NB: until then the last checkpoint keeps the old page, too.
    assert!(database.checkpoint().unwrap());
    let with = database.statistics().unwrap();
    assert_eq!(with.snapshots, 1);
    assert!(with.snapshot_bytes > 0, "{with:?}");
    drop(snapshot);
    assert_eq!(database.statistics().unwrap().snapshot_bytes, 0);
}

#[test]
fn a_transaction_says_what_it_waits_for() {
    let scratch = Scratch::new();
    let database = scratch.open(Durability::Periodic);
    let image = database.image();
    let mut session = database.session().unwrap();
    let fsync = TransactionOptions { durability: Some(Durability::Fsync), ..TransactionOptions::default() };
    transact(&mut session, &fsync, |session| session.set(b"a", b"1")).unwrap();
    let durable = image.control(control::DURABLE_FLUSH).load(Ordering::Acquire);
    assert!(durable >= session.access.seat.flush());
}

/// Without a log the commit waits for a checkpoint, and one of them does for many.
#[test]
fn an_fsync_transaction_without_a_log_is_in_a_checkpoint() {
    const THREADS: u64 = 4;
    let scratch = Scratch::new();
    let database = scratch.open(Durability::None);
    let image = database.image();
    let fsync = TransactionOptions { durability: Some(Durability::Fsync), ..TransactionOptions::default() };
    let periodic =
        TransactionOptions { durability: Some(Durability::Periodic), ..TransactionOptions::default() };
    let mut session = database.session().unwrap();
    transact(&mut session, &periodic, |session| session.set(b"periodic", b"waits for nothing")).unwrap();
    assert!(
        image.control(control::DURABLE_GEN).load(Ordering::Acquire) < session.access.seat.generation().into()
    );
    transact(&mut session, &fsync, |session| session.set(b"a", b"1")).unwrap();
    let copy = crashed(&scratch);
    assert_eq!(content(&mut copy.open(Durability::None).session().unwrap()), content(&mut session));
    let before = image.generation();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (database, fsync) = (&database, &fsync);
            scope.spawn(move || {
                let mut session = database.session().unwrap();
                for number in 0..20 {
                    let key = key(number * THREADS + thread);
                    transact(&mut session, fsync, |session| session.set(&key, b"1")).unwrap();
                }
            });
        }
    });
    let taken = u64::from(image.generation() - before);
    assert!(taken <= 20 * THREADS, "{taken} checkpoints");
    let copy = crashed(&scratch);
    let again = copy.open(Durability::None);
    assert_eq!(content(&mut again.session().unwrap()).len() as u64, 2 + 20 * THREADS);
    again.verify().unwrap();
}

/// Threads of two handles, which are two processes to the database, rest again and again, and are woken by
/// one's or the other's write.
#[test]
fn what_is_written_after_a_rest_is_flushed_as_soon_as_ever() {
    let scratch = Scratch::new();
    let databases = [(); 2].map(|()| scratch.open(Durability::Periodic));
    let image = databases[0].image();
    let mut sessions = databases.each_ref().map(|database| database.session().unwrap());
    let until = |what: &str, is_done: &dyn Fn() -> bool| {
        let begun = Instant::now();
        while !is_done() {
            // Far below the time after which a thread looks although nobody has rung.
            assert!(begun.elapsed() < IDLE_REST / 3, "{what}");
            std::thread::yield_now();
        }
    };
    for round in 0..60 {
        let flags = image.control(control::FLAGS);
        until("nobody rests", &|| flags.load(Ordering::Acquire) & FLAG_IDLE != 0);
        let session = &mut sessions[round % 2];
        session.set(&key(round as u64), b"1").unwrap();
        let flush = session.access.seat.flush();
        let durable = image.control(control::DURABLE_FLUSH);
        until("nobody flushes", &|| durable.load(Ordering::Acquire) >= flush);
    }
}

#[test]
fn the_level_changes_and_the_log_begins_anew() {
    let scratch = Scratch::new();
    let database = scratch.open(Durability::None);
    let image = database.image();
    // No checkpoint recycles the log meanwhile.
    let quiet = duty::take(&image, control::CHECKPOINT_OWNER).unwrap();
    assert_eq!(log::next_batch(&image), 0);
    let mut session = database.session().unwrap();
    for number in 0..5000 {
        session.set(&key(number % 10), b"not logged").unwrap();
    }
    for round in 0..5u8 {
        log::set_level(&image, Durability::Periodic).unwrap();
        let first = log::next_batch(&image);
        for number in 0..3000 {
            session.set(&key(number % 20), &[round; 200]).unwrap();
        }
        log::sync(&image).unwrap();
        let (logged, _) = replay(&scratch.db(), first);
        assert_eq!(logged.len(), 20, "exactly what was written since");
        assert!(logged.values().all(|value| *value == [round; 200]));
        log::set_level(&image, Durability::None).unwrap();
        for number in 0..3000 {
            session.set(&key(number % 30), b"not logged").unwrap();
        }
        assert_eq!(replay(&scratch.db(), first).0, logged);
    }
    drop((session, quiet));
    database.verify().unwrap();
}

/// Every call that the disk can fail at, in every way: what was acknowledged is in the log, nothing hangs,
/// reads go on; and once the disk is well, so do writes, unless a sync has failed.
#[test]
fn the_disk_fails_at_every_call() {
    for fault in [Fault::NoSpace, Fault::Io, Fault::ShortWrite] {
        let mut stopped = 0;
        for number in 1.. {
            let scratch = Scratch::new();
            let disk = FaultyDisk::new(fault);
            let database =
                Database::open_on(&scratch.db(), &options(Durability::Fsync), Arc::new(disk.clone()))
                    .unwrap();
            let image = database.image();
            let first = log::next_batch(&image);
            let mut session = database.session().unwrap();
            // NB: a full disk asks for a checkpoint at once, whose calls are not those that are counted here.
            let quiet = duty::take(&image, control::CHECKPOINT_OWNER).unwrap();
            let before = disk.calls();
            disk.fail_call(number);
            let mut acknowledged = Vec::new();
            let mut failed = None;
            for step in 0..4 {
                match session.set(&key(step), &[1; 2000]) {
                    Ok(()) => acknowledged.push(key(step)),
                    Err(error) => failed = failed.or(Some(error)),
                }
            }
            let is_over = disk.calls() - before < number;
            disk.fail_call(0);
            drop(quiet);
            let flags = image.control(control::FLAGS).load(Ordering::Acquire);
            let mut value = Vec::new();
            for key in &acknowledged {
                assert!(session.get(key, &mut value).unwrap());
            }
            let logged = replay(&scratch.db(), first).0;
            assert!(acknowledged.iter().all(|key| logged.contains_key(key)), "{fault:?} {number}");
            if let Some(error) = &failed {
                let text = error.to_string();
                assert!(
                    matches!(
                        error,
                        Error::NotDurable { .. } | Error::WritesStopped { .. } | Error::NoSpace { .. }
                    ),
                    "{text}"
                );
            }
            if flags & FLAG_FAILED != 0 {
                stopped += 1;
                let stopped = session.set(b"more", b"").unwrap_err();
                let Error::WritesStopped { place, source, is_final: true } = &stopped else {
                    panic!("{stopped}")
                };
                assert!(place.as_str().contains("x.db-wal."), "{stopped}");
                assert!([5, 28].contains(&source.raw_os_error().unwrap()), "{stopped}");
            } else {
                retry(|| session.set(b"more", b"works"));
                assert!(replay(&scratch.db(), first).0.contains_key(b"more".as_slice()));
                assert_eq!(image.control(control::FLAGS).load(Ordering::Acquire) & FLAG_FULL, 0);
            }
            drop(session);
            if is_over {
                assert!(failed.is_none() && number > 8, "{fault:?} {number}: {failed:?}");
                break;
            }
        }
        assert!(stopped > 0, "{fault:?}: no sync failed");
    }
}

/// FULL was left standing by a process that had ended, and at level none nobody takes it away.
#[test]
fn a_log_that_could_not_grow_stops_nobody_at_level_none() {
    let scratch = Scratch::new();
    // Without threads that see to the log.
    let attachment = Attachment::open(&scratch.db(), &options(Durability::Fsync)).unwrap();
    crate::control::raise_flag(attachment.image().unwrap(), FLAG_FULL);
    attachment.close().unwrap();
    let database = scratch.open(Durability::None);
    database.session().unwrap().set(b"a", b"1").unwrap();
}

/// A failed sync of the log leaves a hole in its segment that the kernel takes for written. What was
/// acknowledged after the healing lay behind it, where no recovery came.
#[test]
fn what_is_acknowledged_after_a_failed_sync_is_found_behind_the_hole() {
    let scratch = Scratch::new();
    let database = scratch.open(Durability::Fsync);
    let mut session = database.session().unwrap();
    for number in 0..3 {
        session.set(&key(number), b"before").unwrap();
    }
    crate::control::raise_flag(&database.image(), FLAG_FAILED);
    session.set(b"refused", b"").unwrap_err();
    drop(session);
    database.close().unwrap();
    let segment = std::fs::OpenOptions::new().write(true).open(scratch.0.join("x.db-wal.0")).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&segment, &[0; 4096], 2 * 4096).unwrap();
    for round in 0..2 {
        let database = scratch.open(Durability::Fsync);
        let mut session = database.session().unwrap();
        session.set(&key(10 + round), b"after").unwrap();
        let copy = crashed(&scratch);
        let again = copy.open(Durability::Fsync);
        assert_eq!(content(&mut again.session().unwrap()), content(&mut session), "round {round}");
        assert_eq!(again.recovery().unwrap().dropped, None, "round {round}");
    }
}

/// Repeats what fails while FULL stands; the maintenance thread takes it away.
fn retry(mut write: impl FnMut() -> perilune_store::Result<()>) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while let Err(error) = write() {
        assert!(Instant::now() < deadline, "{error}");
        std::thread::yield_now();
    }
}

/// What a crash of the machine leaves: the files without `-shm`.
pub(super) fn crashed(scratch: &Scratch) -> Scratch {
    let copy = Scratch::new();
    copy_without_shm(&scratch.0, &copy.0);
    copy
}

/// Copies the files of a database, with holes where they hold zeros: segments of the log are up to 64 MiB, mostly zeros.
pub(super) fn copy_without_shm(from: &Path, into: &Path) {
    let files = std::fs::read_dir(from).unwrap().map(|entry| entry.unwrap().path());
    let files = files.filter(|path| !path.to_str().unwrap().ends_with("-shm"));
    let mut copy = Command::new("cp");
    let status = copy.arg("--sparse=always").args(files).arg(into).status().unwrap();
    assert!(status.success(), "{copy:?}");
}

#[test]
fn a_crash_of_the_machine_loses_nothing_that_was_acknowledged_at_fsync() {
    let scratch = Scratch::new();
    let database = scratch.open(Durability::Fsync);
    let image = database.image();
    let mut session = database.session().unwrap();
    let check = |session: &mut Session, what: &str| {
        let copy = crashed(&scratch);
        for round in 0..2 {
            let again = copy.open(Durability::Fsync);
            let mut other = again.session().unwrap();
            assert_eq!(content(&mut other), content(session), "{what}, opened {round}");
            again.verify().unwrap();
            other.set(b"after", b"recovery").unwrap();
            other.remove(b"after").unwrap();
            drop(other);
            again.close().unwrap();
        }
    };
    for round in 0..4u64 {
        for number in 0..60 {
            session.set(&key(number * 7 % 60), format!("{round} {number}").as_bytes()).unwrap();
        }
        session.set(b"long", &vec![round as u8; 70_000]).unwrap();
        session.remove_prefix(format!("key00000{round}").as_bytes()).unwrap();
        check(&mut session, "before a checkpoint");
        if round % 2 == 1 {
            crate::checkpoint::take(&image, &RealDisk, 0).unwrap();
            check(&mut session, "after a checkpoint");
        }
    }
    transact(&mut session, &TransactionOptions::default(), |session| {
        (0..400).try_for_each(|number| session.set(&key(number), &[5; 1000]))
    })
    .unwrap();
    check(&mut session, "a long record");
    // Twice: a recovered copy that crashes again before its next checkpoint.
    let copy = crashed(&scratch);
    let again = copy.open(Durability::Fsync);
    let mut other = again.session().unwrap();
    other.set(b"second", b"life").unwrap();
    let third = crashed(&copy);
    let last = third.open(Durability::Periodic);
    assert_eq!(content(&mut last.session().unwrap()), content(&mut other));
}

/// The disk fails once, or the process is killed, at every call of a recovery that has a log to replay: whoever
/// opens it then, or next, finds all that was acknowledged.
#[test]
fn the_disk_fails_at_every_call_of_a_recovery_with_a_log() {
    let scratch = Scratch::new();
    let database = scratch.open(Durability::Fsync);
    let mut session = database.session().unwrap();
    for number in 0..30 {
        session.set(&key(number), &[1; 500]).unwrap();
    }
    session.set(b"long", &vec![7; 30_000]).unwrap();
    crate::checkpoint::take(&database.image(), &RealDisk, 0).unwrap();
    session.set(b"long", &vec![8; 40_000]).unwrap();
    session.remove_prefix(b"key00000").unwrap();
    for number in 5..8 {
        session.set(&key(number), &[2; 700]).unwrap();
    }
    let expected = content(&mut session);
    let crash = crashed(&scratch);
    let mut refused = 0;
    for (fault, is_killed) in [(Fault::NoSpace, false), (Fault::Io, true), (Fault::ShortWrite, false)] {
        for call in 1.. {
            let what = format!("{fault:?} at call {call}, killed: {is_killed}");
            let copy = crashed(&crash);
            let disk = FaultyDisk::new(fault);
            match is_killed {
                true => disk.fail_from_call(call),
                false => disk.fail_call(call),
            }
            // Without threads that would go on.
            let opened = Attachment::open_on(&copy.db(), &options(Durability::Fsync), Arc::new(disk.clone()));
            let is_over = disk.calls() < call;
            assert!(!is_over || opened.is_ok(), "{what}");
            refused += u32::from(opened.is_err());
            disk.fail_call(0);
            drop(opened);
            let again = copy.open(Durability::Fsync);
            let mut session = again.session().unwrap();
            assert!(content(&mut session) == expected, "{what}");
            if call % 16 == 1 {
                again.verify().unwrap();
            }
            drop(session);
            again.close().unwrap();
            if is_over {
                assert!(call > 30, "a recovery makes {call} calls only");
                break;
            }
        }
    }
    assert!(refused > 100, "{refused} calls matter");
}

/// Meta says that a log belongs to the database only with the checkpoint after the level has changed. Whoever was
/// killed between the two left a level whose commits no recovery would have found: the next to open saw
/// nothing to raise, and those who were there already acknowledged at once.
#[test]
fn a_level_whose_checkpoint_never_came_acknowledges_nothing_before_one() {
    for is_new in [true, false] {
        let scratch = Scratch::new();
        // No option: what its commits wait for is the database's affair.
        let first = scratch.open(Durability::None);
        let there =
            Database::open(&scratch.db(), &OpenOptions { durability: None, ..options(Durability::None) });
        let there = there.unwrap();
        let mut early = first.session().unwrap();
        early.set(b"a", b"at none").unwrap();
        // As one who is killed before his checkpoint leaves it.
        let quiet = duty::take(&there.image(), control::CHECKPOINT_OWNER).unwrap();
        log::set_level(&there.image(), Durability::Fsync).unwrap();
        drop(quiet);
        let second = if is_new { scratch.open(Durability::Fsync) } else { there.clone() };
        let mut session = second.session().unwrap();
        session.set(b"b", b"acknowledged at fsync").unwrap();
        let copy = crashed(&scratch);
        let found = content(&mut copy.open(Durability::Fsync).session().unwrap());
        assert_eq!(found.keys().map(Vec::as_slice).collect::<Vec<_>>(), [b"a".as_slice(), b"b"], "{is_new}");
    }
}

/// Killed between a change from one level with a log to another and its checkpoint: whoever opens it at the new
/// level finds nothing to change but meta, from which a recovery takes the level.
#[test]
fn a_level_that_meta_does_not_name_is_named_at_opening() {
    let scratch = Scratch::new();
    let disk = FaultyDisk::new(Fault::Io);
    let first =
        Database::open_on(&scratch.db(), &options(Durability::Periodic), Arc::new(disk.clone())).unwrap();
    first.session().unwrap().set(b"a", b"1").unwrap();
    log::sync(&first.image()).unwrap();
    let quiet = duty::take(&first.image(), control::CHECKPOINT_OWNER).unwrap();
    log::set_level(&first.image(), Durability::Fsync).unwrap();
    disk.fail_from_call(1);
    drop(quiet);
    first.close().unwrap_err();
    let again = scratch.open(Durability::Fsync);
    let copy = crashed(&scratch);
    let recovered =
        Database::open(&copy.db(), &OpenOptions { durability: None, ..options(Durability::None) });
    assert_eq!(log::level(&recovered.unwrap().image()), Durability::Fsync);
    drop(again);
}

#[test]
fn leaving_level_none_makes_what_was_there_durable() {
    let scratch = Scratch::new();
    let database = scratch.open(Durability::None);
    let mut session = database.session().unwrap();
    session.set(b"a", b"at none").unwrap();
    // Another handle of the same process asks for more: it is a second process to the database.
    let second = scratch.open(Durability::Fsync);
    let mut other = second.session().unwrap();
    other.set(b"b", b"at fsync").unwrap();
    let copy = crashed(&scratch);
    let again = copy.open(Durability::Fsync);
    let found = content(&mut again.session().unwrap());
    assert_eq!(found.keys().map(Vec::as_slice).collect::<Vec<_>>(), [b"a".as_slice(), b"b"]);
    drop((session, other));
    second.close().unwrap();
    database.close().unwrap();
    // Back to none: no log belongs to it.
    let database = scratch.open(Durability::None);
    assert_eq!(log::next_batch(&database.image()), 0);
    let file = RealDisk.open(&scratch.db(), false).unwrap();
    assert_eq!(meta::newest(&*file, &scratch.db()).unwrap().1.wal_batch, 0);
    drop(database);
}

#[test]
fn what_is_deferred_is_settled_by_one_sync() {
    let scratch = Scratch::new();
    let database = scratch.open(Durability::Fsync);
    let image = database.image();
    let first = log::next_batch(&image);
    let mut session = database.session().unwrap();
    let syncs = || image.control(control::LOG_SYNCS).load(Ordering::Acquire);
    session.set(b"before", b"v").unwrap();
    let before = syncs();
    session.defer(true);
    for number in 0..50 {
        session.set(&key(number), b"v").unwrap();
    }
    transact(&mut session, &TransactionOptions::default(), |session| session.set(b"t", b"v")).unwrap();
    assert!(session.begin_attempt().unwrap());
    session.set(b"b", b"v").unwrap();
    assert!(session.end_attempt(true).unwrap());
    assert!(session.is_unsettled());
    session.settle().unwrap();
    assert!(!session.is_unsettled());
    assert!(syncs() - before <= 2, "one for all, and perhaps one by the thread that flushes");
    assert_eq!(replay(&scratch.db(), first).0, content(&mut session));
    session.defer(false);
    session.set(b"after", b"v").unwrap();
    assert!(!session.is_unsettled());
    assert_eq!(replay(&scratch.db(), first).0, content(&mut session));
}

/// A sync that fails is told once, by whoever settles.
#[test]
fn what_cannot_be_settled_is_told() {
    let scratch = Scratch::new();
    let disk = FaultyDisk::new(Fault::Io);
    let database =
        Database::open_on(&scratch.db(), &options(Durability::Fsync), Arc::new(disk.clone())).unwrap();
    let image = database.image();
    let _quiet = duty::take(&image, control::CHECKPOINT_OWNER).unwrap();
    let mut session = database.session().unwrap();
    session.set(b"before", b"v").unwrap();
    session.defer(true);
    session.set(b"k", b"v").unwrap();
    disk.fail_call(1);
    let error = session.settle().unwrap_err();
    assert!(matches!(error, Error::NotDurable { .. }), "{error}");
    session.settle().unwrap();
    disk.fail_call(0);
}
