//! The warden, with second processes that are killed: this test binary, run again in a named role.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use perilune_store::{LockMode, LockRequest, WatchRequest, WatchScope};

use super::*;
use crate::image::bell::FILTER_BITS;
use crate::image::layout::{control, WATCH_BUCKETS_AT, WATCH_BUCKET_BYTES};
use crate::limits::{PROCESSES, WATCH_BUCKETS};
use crate::lock::Locks;
use crate::open::{Attachment, OpenOptions};
use crate::watch::{SessionWatches, Watches};

const ROLE: &str = "PERILUNE_WARDEN_TEST_ROLE";
const PATH: &str = "PERILUNE_WARDEN_TEST_PATH";

struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Scratch {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let name = format!("perilune-warden-{}-{}", std::process::id(), NUMBER.fetch_add(1, Relaxed));
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Scratch(path)
    }

    fn path(&self) -> PathBuf {
        self.0.join("x.db")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // It fails where a file is made meanwhile, as a database that is still being closed makes.
        let _gone = (0..1_000).any(|_| std::fs::remove_dir_all(&self.0).is_ok() || !self.0.exists());
    }
}

fn open(path: &Path) -> Arc<Attachment> {
    let options = OpenOptions { max_size: 1 << 30, ..OpenOptions::default() };
    Attachment::open(path, &options).unwrap()
}

/// An attachment with a session.
struct Party {
    image: Arc<Image>,
    access: Access,
    locks: Locks,
}

impl Party {
    fn new(attachment: &Attachment) -> Party {
        let image = attachment.image().unwrap().clone();
        Party { access: Access::new(claim_session(&image).unwrap()), locks: Locks::new(image.clone()), image }
    }

    fn lock(&self, name: &[u8], timeout: Option<Duration>) -> bool {
        let request = LockRequest { name, ancestors: &[], mode: LockMode::Exclusive };
        self.locks.lock(&self.access, self.locks.new_owner(), &[request], timeout, None).unwrap()
    }

    fn entries(&self) -> usize {
        let mut count = 0;
        for_each(&self.access, tag::LOCK..=tag::WAITER, |_| count += 1).unwrap();
        count
    }

    fn waiters(&self) -> u32 {
        (0..LOCK_BUCKETS)
            .map(|b| lock::waiters_word(&self.image, b).load(Relaxed) & lock::WAITERS_COUNT)
            .sum()
    }

    fn filter(&self) -> u64 {
        self.image.control(control::FILTER).load(Relaxed) & FILTER_BITS
    }

    /// The bits of all processes in the masks of all buckets.
    fn mask_bits(&self) -> u32 {
        let words = (0..WATCH_BUCKETS).flat_map(|bucket| {
            (0..PROCESSES / 64).map(move |word| WATCH_BUCKETS_AT + bucket * WATCH_BUCKET_BYTES + 8 + word * 8)
        });
        words.map(|at| self.image.shm.word(at).load(Relaxed).count_ones()).sum()
    }

    /// How often any bucket has been touched.
    fn touches(&self) -> u64 {
        let at = |bucket| WATCH_BUCKETS_AT + bucket * WATCH_BUCKET_BYTES;
        (0..WATCH_BUCKETS).map(|bucket| self.image.shm.word(at(bucket)).load(Relaxed)).sum()
    }

    fn write(&self, key: &[u8]) {
        self.access.set(crate::tree::Which::Main, key, b"x").unwrap();
    }

    fn end(self) {
        release_session(&self.access.seat);
    }
}

/// The key that a watcher watches.
fn watched_by(role: &str) -> Vec<u8> {
    [role.as_bytes(), b"\0"].concat()
}

fn start(role: &str, path: &Path) -> Child {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["warden::tests::second_process", "--exact", "--nocapture", "--test-threads=1"])
        .env(ROLE, role)
        .env(PATH, path)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    let ready = output.lines().any(|line| line.unwrap().contains("@ready"));
    assert!(ready, "the second process ended before it was ready");
    child
}

/// Plays the role named in the environment; without one there is nothing to do.
#[test]
fn second_process() {
    let (Ok(role), Some(path)) = (std::env::var(ROLE), std::env::var_os(PATH)) else { return };
    let attachment = open(Path::new(&path));
    let party = Party::new(&attachment);
    let warden = super::start(party.image.clone()).unwrap();
    let ready = || {
        println!("\n@ready");
        std::io::stdout().flush().unwrap();
    };
    match role.as_str() {
        "holder" => {
            assert!(party.lock(b"a\0", None));
            let mut session = SessionWatches::new(Arc::new(Watches::new(party.image.clone())));
            let place = WatchRequest { key: b"w\0", scope: WatchScope::Key };
            session.watch(&party.access, &[place]).unwrap();
            ready();
            let _ = std::io::stdin().lines().next();
            std::mem::forget(session);
        }
        // It has no warden, so that only others can tidy up after it.
        "watcher a" | "watcher b" => {
            drop(warden);
            let mut session = SessionWatches::new(Arc::new(Watches::new(party.image.clone())));
            let place = WatchRequest { key: &watched_by(&role), scope: WatchScope::Key };
            session.watch(&party.access, &[place]).unwrap();
            ready();
            let _ = std::io::stdin().lines().next();
            std::mem::forget(session);
        }
        "waiter" => std::thread::scope(|scope| {
            scope.spawn(|| Party::new(&attachment).lock(b"b\0", None));
            party.waiters_then(ready);
        }),
        _ => panic!("unknown role {role}"),
    }
}

impl Party {
    /// Calls `then` when somebody waits in a queue.
    fn waiters_then(&self, then: impl Fn()) {
        let mut queued = 0;
        while queued == 0 {
            for_each(&self.access, tag::QUEUE..=tag::QUEUE, |_| queued += 1).unwrap();
            std::thread::yield_now();
        }
        then();
    }
}

fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < Duration::from_secs(30), "{what}: not within 30 s");
        std::thread::yield_now();
    }
}

#[test]
fn what_the_dead_held_is_free_at_once_and_swept_soon() {
    let scratch = Scratch::new();
    let attachment = open(&scratch.path());
    let party = Party::new(&attachment);
    let mut holder = start("holder", &scratch.path());
    assert!(!party.lock(b"a\0", Some(Duration::ZERO)));
    assert_ne!(party.filter(), 0);
    holder.kill().unwrap();
    holder.wait().unwrap();
    assert!(party.lock(b"a\0", Some(Duration::ZERO)), "the dead's lock is absent at once");
    assert!(party.lock(b"b\0", Some(Duration::ZERO)));
    let mut waiter = start("waiter", &scratch.path());
    waiter.kill().unwrap();
    waiter.wait().unwrap();
    assert_eq!((party.entries(), party.waiters()), (4, 1), "two locks and a dead waiter");
    let warden = super::start(party.image.clone()).unwrap();
    eventually("entries of the dead go", || party.entries() == 2);
    eventually("their waiters are forgotten", || party.waiters() == 0);
    eventually("the filter shrinks", || party.filter() == 0);
    drop(warden);
    party.end();
    attachment.close().unwrap();
}

#[test]
fn a_sleeper_gets_what_a_killed_process_held() {
    let scratch = Scratch::new();
    let attachment = open(&scratch.path());
    let mut holder = start("holder", &scratch.path());
    let party = Party::new(&attachment);
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            let party = Party::new(&attachment);
            let granted = party.lock(b"a\0", Some(Duration::from_secs(30)));
            party.end();
            granted
        });
        party.waiters_then(|| {});
        let start = Instant::now();
        holder.kill().unwrap();
        assert!(waiting.join().unwrap());
        assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    });
    holder.wait().unwrap();
    party.end();
}

#[test]
fn one_of_several_processes_is_the_warden_and_the_next_follows() {
    let scratch = Scratch::new();
    let attachment = open(&scratch.path());
    let image = attachment.image().unwrap().clone();
    let is_on_duty = || {
        let byte = Anchor::acquire(&image.path, WARDEN, region::Access::ReadWrite, false).unwrap();
        byte.is_none()
    };
    assert!(!is_on_duty());
    let first = super::start(image.clone()).unwrap();
    eventually("somebody is on duty", is_on_duty);
    let second = super::start(image.clone()).unwrap();
    let start = Instant::now();
    drop(first);
    eventually("the next one follows", is_on_duty);
    drop(second);
    assert!(!is_on_duty(), "nobody is left");
    // Far less than the periods that would have to be slept through, were they not told.
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
}

/// Watchers that are killed: their bits in the masks go, and with the last one of a bit of the filter that
/// bit; then writers touch nothing.
#[test]
fn a_killed_watcher_costs_nobody_anything() {
    let scratch = Scratch::new();
    let attachment = open(&scratch.path());
    let party = Party::new(&attachment);
    let mut watchers = ["watcher a", "watcher b"].map(|role| (role, start(role, &scratch.path())));
    let both = party.filter();
    assert_eq!(
        (party.mask_bits(), both.count_ones()),
        (8, 2),
        "two keys with a bucket, gates and a bit of their own"
    );
    for (role, _) in &watchers {
        let before = party.touches();
        party.write(&watched_by(role));
        assert!(party.touches() > before, "{role} is told");
    }
    let mut kill = |index: usize| {
        let (role, child) = &mut watchers[index];
        child.kill().unwrap();
        child.wait().unwrap();
        watched_by(role)
    };
    let warden = super::start(party.image.clone()).unwrap();
    kill(0);
    eventually("the first one's bit goes", || party.mask_bits() == 4);
    eventually("the filter shrinks", || party.filter().count_ones() == 1);
    assert_eq!(party.filter() & !both, 0, "what the other one needs stays");
    kill(1);
    eventually("the last one's bit goes", || party.mask_bits() == 0 && party.filter() == 0);
    drop(warden);
    let before = party.touches();
    party.write(&watched_by("watcher a"));
    party.write(&watched_by("watcher b"));
    assert_eq!(party.touches(), before, "writers pay nothing");
    // Without a warden the next one to attach takes the dead out of the masks.
    let mut third = start("watcher a", &scratch.path());
    assert_eq!(party.mask_bits(), 4);
    third.kill().unwrap();
    third.wait().unwrap();
    assert_eq!(party.mask_bits(), 4);
    let next = open(&scratch.path());
    assert_eq!(party.mask_bits(), 0, "whoever attaches takes it out");
    next.close().unwrap();
    party.end();
    attachment.close().unwrap();
}
