//! Nobody waits beyond his limit for a page that another holds and does not give back.
//!
//! A process that was stopped in the midst of a commit kept every other one at its leaves waiting, readers too, whatever
//! `timeout` they had, and by way of exclusive mode all who wrote. Here a session of this process holds what the stopped one
//! would: nobody can tell the two apart, but by the process's state.

use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use perilune_shm::latch;
use perilune_store::{
    transact, Bounds, Bulk, Decision, Error, LockMode, LockRequest, Locks, Messages, Optimistic, Probe,
    ProbeTarget, Reports, Result, Session as _, Span, Store, TransactionOptions, Watch, WatchRequest,
    WatchScope,
};

use super::durability_tests::Scratch;
use super::{Database, Session};
use crate::access::Access;
use crate::control::take_lease;
use crate::image::{layout, Image};
use crate::open::{claim_session, release_session, OpenOptions};
use crate::session::record::{Kind, Op};
use crate::session::{Epoch, Seat};
use crate::tree::{self, Seen, Which};

/// How long the sessions of these tests wait.
const LIMIT: Duration = Duration::from_millis(100);
/// Longer than any of it takes, also on a busy machine, and shorter than the limits that must not count.
const LONG: Duration = Duration::from_secs(30);

fn key(number: u32) -> Vec<u8> {
    format!("k{number:05}").into_bytes()
}

fn database(scratch: &Scratch) -> Database {
    let options = OpenOptions { wait_limit: LIMIT, max_size: 1 << 30, ..OpenOptions::default() };
    let database = Database::open(&scratch.db(), &options).unwrap();
    let mut session = database.session().unwrap();
    for number in 0..2_000 {
        session.set(&key(number), &[7; 100]).unwrap();
    }
    database
}

/// A session that has latched the leaf of a key, and does not go on.
struct Stopped {
    seat: Seat,
    leaf: Seen,
    key: Vec<u8>,
}

impl Stopped {
    fn at(image: &Arc<Image>, which: Which, key: &[u8]) -> Stopped {
        let access = Access::new(claim_session(image).unwrap());
        if which == Which::Main {
            // Of this generation, as every leaf is that is latched to be written.
            access.set(which, key, b"before").unwrap();
        }
        let leaf = access.read(|| tree::descend(image, which, key, 0)).unwrap();
        access.seat.enter();
        assert!(access.seat.try_latch(leaf.number, leaf.word));
        Stopped { seat: access.seat, leaf, key: key.to_vec() }
    }

    fn op(&self) -> Op<'_> {
        Op { kind: Kind::Set, volatile: false, big: false, key: &self.key, value: b"after" }
    }

    /// Publishes, and does not apply.
    fn publish(&self) {
        let epoch = Epoch::read(&self.seat.image);
        self.seat.set_seq(self.leaf.word.version());
        loop {
            let len = self.seat.write_record(epoch.generation, epoch.flush, &[self.op()], &[]);
            if self.seat.publish(len) {
                return;
            }
        }
    }

    /// Goes on to the end of what it has begun.
    fn go_on(self) {
        if self.seat.applied() < self.seat.head() {
            tree::apply_to(&self.seat, self.leaf.number, &self.op(), self.seat.image.generation(), &[]);
            self.seat.set_applied();
        }
        self.seat.release(self.leaf.number, 0);
        self.seat.forget_latch();
        self.seat.leave();
        release_session(&self.seat);
    }
}

/// What `operation` answers, in time.
fn answer<T: Send + 'static>(
    session: Session,
    operation: impl FnOnce(&mut Session) -> Result<T> + Send + 'static,
) -> (Result<T>, Duration) {
    let (mut session, begun) = (session, Instant::now());
    let (done, answer) = mpsc::channel();
    std::thread::spawn(move || done.send((operation(&mut session), begun.elapsed())));
    answer.recv_timeout(LONG).expect("it waits beyond its limit")
}

type Operation = (&'static str, fn(&mut Session, &[u8]) -> Result<()>);

fn at(key: &[u8]) -> [Probe<'_>; 1] {
    [Probe { key, target: ProbeTarget::At }]
}

const OPERATIONS: &[Operation] = &[
    ("get", |session, key| session.get(key, &mut Vec::new()).map(drop)),
    ("presence", |session, key| session.presence(key).map(drop)),
    ("next", |session, key| session.next(key, true, &mut Vec::new(), None).map(drop)),
    ("previous", |session, key| session.previous(key, &mut Vec::new(), None).map(drop)),
    ("count", |session, _| {
        let span = Span { low: b"k", high: b"l", backwards: false, most: u64::MAX };
        session.count(&span, &mut Vec::new()).map(drop)
    }),
    ("set", |session, key| session.set(key, b"1")),
    ("set long", |session, key| session.set(key, &[1; 10_000])),
    ("remove", |session, key| session.remove(key).map(drop)),
    ("remove_prefix", |session, _| session.remove_prefix(b"k")),
    ("update", |session, key| session.update(key, &mut |_, _| Ok(Decision::Remove))),
    ("compare_and_set", |session, key| session.compare_and_set(key, Some(b"0"), Some(b"1")).map(drop)),
    ("set_unless_parent", |session, key| session.set_unless_parent(key, b"l", b"1").map(drop)),
    ("update_unless_parent", |session, key| {
        session.update_unless_parent(key, &mut |_, _| Ok(Decision::Remove))
    }),
    ("set_each", |session, key| session.set_each(&[(key, b"1"), (b"l", b"2")])),
    ("set_all_unless_parents", |session, key| {
        // Where it gives up its caller goes on with a transaction.
        match session.set_all_unless_parents(&[(key, b"1"), (b"l", b"2")])? {
            true => Ok(()),
            false => session.set(key, b"1"),
        }
    }),
    ("look_probed", |session, key| session.look_probed(&at(key), &mut |_| Ok(true)).map(drop)),
    ("change_probed", |session, key| {
        let set = &mut |probed: &mut dyn perilune_store::Probed| {
            probed.set(0, b"k01000", b"1");
            Ok(true)
        };
        match session.change_probed(&at(key), set)? {
            true => Ok(()),
            false => session.set(key, b"1"),
        }
    }),
    ("a one-shot transaction", |session, key| {
        assert!(session.begin_attempt()?);
        let got = session.get(key, &mut Vec::new());
        // Whatever the body does about the error, it has failed.
        assert!(!session.end_attempt(true)?, "a one-shot transaction ended well with a read that failed");
        got.map(drop)
    }),
    ("a transaction that reads", |session, key| {
        transact(session, &TransactionOptions::default(), |session| {
            session.get(key, &mut Vec::new()).map(drop)
        })
    }),
    ("a transaction that writes", |session, key| {
        transact(session, &TransactionOptions::default(), |session| {
            session.set(&super::stopped_tests::key(0), b"1")?;
            session.set(key, b"1")?;
            session.set(&super::stopped_tests::key(1_999), b"1")
        })
    }),
];

fn is_busy(error: &Error) -> bool {
    let own = std::process::id();
    matches!(error, Error::Busy { waited, holder: Some(holder) }
        if *waited >= LIMIT && holder.pid == own && !holder.stopped)
}

#[test]
fn every_operation_ends_at_its_limit_and_names_the_holder() {
    let scratch = Scratch::new();
    let database = database(&scratch);
    let stopped = Stopped::at(&database.image(), Which::Main, &key(1_000));
    for (name, operation) in OPERATIONS {
        let (result, took) = answer(database.session().unwrap(), |session| operation(session, &key(1_000)));
        let error = result.expect_err(name);
        assert!(is_busy(&error), "{name}: {error}");
        assert!(took >= LIMIT, "{name}: {took:?}");
        // In a transaction of a shorter limit that is what ends it; some ways there are only outside of one.
        let is_outside =
            ["set_unless_parent", "update_unless_parent", "look_probed", "a one-shot transaction"]
                .contains(name);
        if !is_outside {
            let mut session = database.session().unwrap();
            session.set_wait_limit(2 * LONG);
            let options = TransactionOptions { timeout: LIMIT, ..TransactionOptions::default() };
            let (result, _) = answer(session, move |session| {
                transact(session, &options, |session| operation(session, &key(1_000)))
            });
            let in_time = matches!(&result, Err(Error::TransactionTimeout { limit: LIMIT, holder: Some(_) }));
            assert!(in_time, "{name} in a transaction: {result:?}");
        }
        // Others are not concerned.
        let mut session = database.session().unwrap();
        assert!(session.get(&key(0), &mut Vec::new()).unwrap());
        session.set(&key(0), b"2").unwrap();
    }
    stopped.go_on();
    for (name, operation) in OPERATIONS.iter().filter(|(name, _)| !name.contains("one-shot")) {
        operation(&mut database.session().unwrap(), &key(1_000)).expect(name);
    }
    database.verify().unwrap();
}

#[test]
fn a_published_record_that_nobody_applies_holds_up_its_leaf_and_the_cut_alone() {
    let scratch = Scratch::new();
    let database = database(&scratch);
    let image = database.image();
    let stopped = Stopped::at(&image, Which::Main, &key(1_000));
    stopped.publish();
    let generation = image.generation();
    let session = database.session().unwrap();
    let (result, _) = answer(session, |session| session.get(&key(1_000), &mut Vec::new()));
    assert!(is_busy(&result.unwrap_err()));
    for result in [database.snapshot().map(drop), database.checkpoint().map(drop)] {
        assert!(is_busy(&result.unwrap_err()));
    }
    assert_eq!(image.generation(), generation, "a cut that cannot be made is not begun");
    // Exclusive mode and watches did wait for him, and all writers for them.
    let begun = Instant::now();
    let access = Access::new(claim_session(&image).unwrap());
    let lease = take_lease(&access.seat, 0, begun + LONG).unwrap().expect("no exclusive mode");
    access.set(Which::Main, &key(1_999), b"alone").unwrap();
    drop(lease);
    let mut session = database.session().unwrap();
    let watch = session.watch(&[WatchRequest { key: &key(0), scope: WatchScope::Key }]).unwrap();
    session.set(&key(0), b"2").unwrap();
    assert!(session.wait(watch, Some(LONG)).unwrap());
    assert!(begun.elapsed() < LONG);
    release_session(&access.seat);
    stopped.go_on();
    let mut value = Vec::new();
    assert!(session.get(&key(1_000), &mut value).unwrap());
    assert_eq!(value, b"after");
    let mut snapshot = database.snapshot().unwrap();
    assert!(snapshot.get(&key(1_000), &mut value).unwrap());
    assert_eq!(value, b"after");
    database.verify().unwrap();
}

/// A reader who was kept waiting asked for exclusive mode, for which he waited for the stopped one: nobody wrote any more.
#[test]
fn a_reader_who_waits_keeps_no_writer_waiting() {
    let scratch = Scratch::new();
    let database = database(&scratch);
    let stopped = Stopped::at(&database.image(), Which::Main, &key(1_000));
    let mut session = database.session().unwrap();
    session.set_wait_limit(20 * LIMIT);
    let leases = database.statistics().unwrap().leases;
    let (result, _) = answer(session, |session| session.get(&key(1_000), &mut Vec::new()));
    assert!(matches!(result, Err(Error::Busy { .. })), "{result:?}");
    assert_eq!(database.statistics().unwrap().leases, leases);
    stopped.go_on();
}

/// A commit waited for the stopped one with the leaves latched that it had met before, and so on from one to the next.
#[test]
fn who_waits_for_a_page_holds_none() {
    let scratch = Scratch::new();
    let database = database(&scratch);
    let image = database.image();
    let stopped = Stopped::at(&image, Which::Main, &key(1_000));
    let first = Access::new(claim_session(&image).unwrap());
    let first = first.read(|| tree::descend(&image, Which::Main, &key(0), 0)).unwrap().number;
    let mut session = database.session().unwrap();
    session.set_wait_limit(20 * LIMIT);
    let (done, ended) = mpsc::channel();
    let writer = std::thread::spawn(move || {
        let result = transact(&mut session, &TransactionOptions::default(), |session| {
            session.set(&key(0), b"1")?;
            session.set(&key(1_000), b"1")
        });
        done.send(()).unwrap();
        result
    });
    // Of many looks hardly any finds the leaf latched that it meets first: only while it tries.
    let (mut looks, mut held) = (0_u64, 0_u64);
    while ended.try_recv().is_err() {
        looks += 1;
        held += u64::from(latch::load(image.latch(first)).locked());
        std::thread::sleep(Duration::from_micros(100));
    }
    assert!(matches!(writer.join().unwrap(), Err(Error::Busy { .. })));
    assert!(held * 4 < looks, "{held} of {looks} looks found the leaf latched");
    stopped.go_on();
}

/// Locks and messages lie in the volatile tree. Who gives up while its leaf is held leaves no place in a queue behind that
/// would keep others out for ever.
#[test]
fn locks_and_messages_end_in_time_and_leave_nothing_behind() {
    let scratch = Scratch::new();
    let database = database(&scratch);
    let image = database.image();
    let mut holder = database.session().unwrap();
    let owner = holder.new_lock_owner();
    let request = || [LockRequest { name: b"L", ancestors: &[], mode: LockMode::Exclusive }];
    assert!(holder.lock(owner, &request(), Some(Duration::ZERO)).unwrap());
    // It waits in the queue when the leaf is latched.
    let mut waiter = database.session().unwrap();
    let waiting = std::thread::spawn(move || {
        let owner = waiter.new_lock_owner();
        waiter.lock(owner, &request(), Some(3 * LIMIT))
    });
    let begun = Instant::now();
    while database.locks().unwrap().len() < 2 {
        assert!(begun.elapsed() < LONG, "nobody waits");
        std::thread::yield_now();
    }
    let stopped = Stopped::at(&image, Which::Volatile, &[1]);
    let given_up = waiting.join().unwrap();
    assert!(matches!(given_up, Ok(false) | Err(Error::Busy { .. })), "{given_up:?}");
    let mut other = database.session().unwrap();
    other.set_wait_limit(LONG * 2);
    let (result, _) = answer(other, |session| {
        let owner = session.new_lock_owner();
        session.lock(
            owner,
            &[LockRequest { name: b"M", ancestors: &[], mode: LockMode::Exclusive }],
            Some(LIMIT),
        )
    });
    assert!(matches!(result, Err(Error::Busy { .. })), "{result:?}");
    let mut other = database.session().unwrap();
    other.set_wait_limit(LONG * 2);
    let (result, _) = answer(other, |session| session.receive(b"channel", Some(LIMIT)).map(drop));
    assert!(matches!(result, Err(Error::Busy { .. })), "{result:?}");
    stopped.go_on();
    assert!(holder.unlock(owner, b"L").unwrap());
    let mut next = database.session().unwrap();
    let owner = next.new_lock_owner();
    assert!(next.lock(owner, &request(), Some(LONG)).unwrap(), "a place in the queue was left behind");
    database.verify().unwrap();
}

/// A note that the process stops again, of somebody who died before he sent the signal: it is taken away, and this process
/// goes on, or the test would never end.
#[test]
fn an_old_note_stops_nobody() {
    let scratch = Scratch::new();
    let database = database(&scratch);
    let seat = claim_session(&database.image()).unwrap();
    let note = &seat.head_words()[layout::session::STOPS_AGAIN];
    note.store(1, Ordering::Relaxed);
    seat.enter();
    seat.leave();
    assert_eq!(note.load(Ordering::Relaxed), 0);
    release_session(&seat);
}
