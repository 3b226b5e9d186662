//! A process is stopped in the midst of a change, with the page latched that clients of the server need.
//!
//! A GET whose key lay in that page kept the event loop waiting, with all its clients, for as long as the process was stopped.
//! So did four of them where all cores were busy: each try took so long that the next one was due when the last had ended.

use std::env;
use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::peer::{Client, Ours, Place, Text};
use perilune::{Conditional, Database, Node, Probe};
use perilune_redis::Settings;
use perilune_resp::Answer;

/// How long commands of the server wait, and much longer.
const LIMIT: Duration = Duration::from_secs(2);
const LONG: Duration = Duration::from_secs(60);
/// Where the stopped process finds the database.
const STOPS_AT: &str = "PERILUNE_TEST_STOPS_AT";

fn key(number: u32) -> String {
    format!("key{number:05}")
}

/// The key in whose page the process is stopped, and one that lies far from it.
const HELD: u32 = 1_000;
const FAR: u32 = 0;

/// Says that the stopped process may go on.
fn gate(place: &Place) -> PathBuf {
    place.path().join("goes-on")
}

/// No test by itself: what the stopped process does. It looks at a node under the latch, and stops itself there.
#[test]
fn stops_itself_where_it_is_told_to() {
    let Some(path) = env::var_os(STOPS_AT).map(PathBuf::from) else { return };
    let gate = path.with_file_name("goes-on");
    let mut session = Database::open(path).expect("the database").session().expect("a session");
    let node = Node::new("^redis").and_then(|node| node.with(0)).and_then(|node| node.with(&key(HELD)[..]));
    let node = node.expect("a node");
    let done = session.change_probed(&[Probe::at(&node)], |probed| {
        // NB: once. A checkpoint that comes meanwhile has this run again, when nobody lets it go on any more.
        if !gate.exists() {
            let own = std::process::id().to_string();
            assert!(Command::new("kill").args(["-STOP", &own]).status().expect("kill runs").success());
        }
        // NB: the signal is for another thread, which stops this one when it runs next.
        while !gate.exists() {
            std::thread::yield_now();
        }
        probed.set(0, &node, "changed");
        true
    });
    assert!(done.expect("it goes on"));
}

/// The stopped process; it goes on, or is killed, with this.
struct Stopped(Child);

impl Stopped {
    fn at(place: &Place) -> Stopped {
        let child = Command::new(env::current_exe().expect("this program"))
            .args(["--exact", "held::stops_itself_where_it_is_told_to"])
            .env(STOPS_AT, place.path().join("test.db"))
            .stdout(Stdio::null())
            .spawn()
            .expect("a process");
        let stopped = Stopped(child);
        let begun = Instant::now();
        while !stopped.is_stopped() {
            assert!(begun.elapsed() < Duration::from_secs(60), "it does not stop");
            std::thread::yield_now();
        }
        stopped
    }

    fn is_stopped(&self) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.0.id())).unwrap_or_default();
        stat.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with('T'))
    }

    fn go_on(mut self, place: &Place) {
        File::create(gate(place)).expect("a file");
        let pid = self.0.id().to_string();
        assert!(Command::new("kill").args(["-CONT", &pid]).status().expect("kill runs").success());
        assert!(self.0.wait().expect("its end").success());
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A server with one event loop, whose commands wait so long, and keys in many pages.
fn server(place: &Place, limit: Duration) -> Ours {
    let database = Database::options()
        .wait_limit(limit)
        .wake_stopped(false)
        .open(place.path().join("test.db"))
        .expect("a database");
    let ours = Ours::start_on(database, place, Settings::default().with("threads", "1").expect("a setting"));
    let mut client = Client::connect(&ours.socket);
    for number in 0..2_000 {
        assert_eq!(client.call(["SET", &key(number), &"x".repeat(100)]).to_text(), "OK");
    }
    assert_eq!(client.call(["SET", &key(HELD), "7"]).to_text(), "OK");
    ours
}

/// Asks the loop for this and that until `until`, and answers how long the slowest answer took.
fn slowest(other: &mut Client, until: Instant) -> Duration {
    let mut slowest = Duration::ZERO;
    while Instant::now() < until {
        let begun = Instant::now();
        assert_eq!(other.line("PING").to_text(), "PONG");
        assert_eq!(other.call(["GET", &key(FAR)]).to_text().len(), 100);
        assert_eq!(other.call(["SET", &key(FAR), &"y".repeat(100)]).to_text(), "OK");
        slowest = slowest.max(begun.elapsed());
    }
    slowest
}

#[test]
fn one_waits_for_a_held_page_and_nobody_with_it() {
    let place = Place::new();
    let ours = server(&place, LIMIT);
    let (mut one, mut other) = (Client::connect(&ours.socket), Client::connect(&ours.socket));
    assert_eq!(one.line("PING").to_text(), "PONG");
    let stopped = Stopped::at(&place);
    let requests: &[&[&str]] = &[
        &["GET", "key01000"],
        &["SET", "key01000", "8"],
        &["INCR", "key01000"],
        &["DEL", "key01000"],
        &["MGET", "key00000", "key01000"],
        &["MSET", "key00000", "1", "key01000", "2"],
        &["OBJECT", "ENCODING", "key01000"],
        &["WATCH", "key00001", "key01000"],
        &["BLPOP", "key01000", "0"],
        &["EVAL", "return redis.call('get', 'key01000')", "0"],
        &["EVAL", "return redis.pcall('incr', 'key01000')", "0"],
    ];
    for request in requests {
        let begun = Instant::now();
        let mut bytes = Vec::new();
        request.iter().collect::<perilune_resp::ArgumentsBuf>().write_request(&mut bytes);
        // What comes behind it in the pipeline is answered behind it.
        bytes.extend_from_slice(b"PING\r\n");
        one.send(&bytes);
        let slow = slowest(&mut other, begun + LIMIT / 2);
        assert!(slow < LIMIT * 4 / 5, "{request:?}: others waited for {slow:?}");
        let answer = one.receive().expect("an answer");
        let took = begun.elapsed();
        let text = answer.to_text();
        assert!(matches!(answer, Answer::Error(_)), "{request:?}: {text}");
        assert!(
            text.contains(&stopped.0.id().to_string()) && text.contains("stopped"),
            "{request:?}: {text}"
        );
        assert!(took >= LIMIT * 9 / 10 && took < LIMIT * 4, "{request:?} took {took:?}");
        assert_eq!(one.receive().expect("an answer").to_text(), "PONG");
    }
    stopped.go_on(&place);
    // Nothing of them has happened: but what the process did that went on.
    assert_eq!(one.call(["GET", &key(HELD)]).to_text(), "changed");
    assert_eq!(one.call(["GET", &key(FAR)]).to_text(), "y".repeat(100));
    assert_eq!(one.line("UNWATCH").to_text(), "OK");
}

#[test]
fn nobody_waits_with_many_where_all_cores_are_busy() {
    let place = Place::new();
    let ours = server(&place, LONG);
    let mut clients: Vec<Client> = (0..8).map(|_| Client::connect(&ours.socket)).collect();
    let mut other = Client::connect(&ours.socket);
    let stopped = Stopped::at(&place);
    for client in &mut clients {
        client.send(b"INCR key01000x\r\n");
    }
    let (cores, is_over) =
        (std::thread::available_parallelism().map_or(4, usize::from), AtomicBool::new(false));
    let slowest = std::thread::scope(|scope| {
        for _ in 0..3 * cores {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let slowest = slowest(&mut other, Instant::now() + LIMIT);
        is_over.store(true, Ordering::Relaxed);
        slowest
    });
    // Each of the eight may take a turn of the busy cores; before, they took all of the time.
    assert!(slowest < LONG / 4, "{slowest:?}");
    stopped.go_on(&place);
    for client in &mut clients {
        assert!(matches!(client.receive(), Some(Answer::Integer(_))));
    }
    assert_eq!(clients[0].call(["GET", "key01000x"]).to_text(), "8");
}

#[test]
fn what_was_put_off_runs_once_when_the_process_goes_on() {
    let place = Place::new();
    let ours = server(&place, LONG);
    let mut clients: Vec<Client> = (0..4).map(|_| Client::connect(&ours.socket)).collect();
    assert_eq!(clients[0].call(["SET", "key01000x", "0"]).to_text(), "OK");
    for client in &mut clients {
        assert_eq!(client.line("PING").to_text(), "PONG");
    }
    let mut other = Client::connect(&ours.socket);
    let stopped = Stopped::at(&place);
    for client in &mut clients {
        // EXEC waits with what is queued; it is what a second one would no longer find.
        client.send(b"INCR key01000x\r\nMULTI\r\nINCR key01000x\r\nGET key01000\r\nEXEC\r\nEXEC\r\n");
    }
    slowest(&mut other, Instant::now() + LIMIT / 3);
    stopped.go_on(&place);
    for client in &mut clients {
        assert!(matches!(client.receive(), Some(Answer::Integer(_))));
        for expected in ["OK", "QUEUED", "QUEUED"] {
            assert_eq!(client.receive().expect("an answer").to_text(), expected);
        }
        match client.receive() {
            Some(Answer::Array(answers)) => {
                assert!(matches!(answers[0], Answer::Integer(_)), "{answers:?}");
                assert_eq!(answers[1].to_text(), "changed");
            }
            answer => panic!("EXEC answers {answer:?}"),
        }
        assert_eq!(client.receive().expect("an answer").to_text(), "ERR EXEC without MULTI");
    }
    assert_eq!(clients[0].call(["GET", "key01000x"]).to_text(), "8");
}
