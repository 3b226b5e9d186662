//! Clients that mean no good, and servers that are killed: each in a process of its own, whose memory and
//! descriptors are looked at. Whatever happens, honest clients are answered, nothing acknowledged is lost, and what
//! the others took is given back.
//!
//! `PERILUNE_HOSTILITY=20` makes each test so many times as long (`make hostility`).

mod peer;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use peer::{Client, Place};
use perilune::Database;
use perilune_redis::{Running, Settings};
use perilune_resp::{Answer, ArgumentsBuf};

const SOCKET: &str = "PERILUNE_TEST_SOCKET";
const DATABASE: &str = "PERILUNE_TEST_DATABASE";
/// What hostile clients may make a server keep for a while, in KiB.
const SLACK: u64 = 64 << 10;
/// How long anything may take that an honest client waits for.
const PATIENCE: Duration = Duration::from_secs(20);

/// How many times as long as usual.
fn times() -> u32 {
    env::var("PERILUNE_HOSTILITY").map_or(1, |times| times.parse().expect("PERILUNE_HOSTILITY is a number"))
}

/// The process of a server, if it is one.
#[test]
fn server_process() -> Result<(), Box<dyn std::error::Error>> {
    let Ok(socket) = env::var(SOCKET) else { return Ok(()) };
    let database = Database::open(env::var(DATABASE)?)?;
    let settings =
        Settings { any_port: true, unix_socket: Some(socket.into()), threads: 2, ..Settings::default() };
    let running = Running::start(&database, settings)?;
    println!("@ready {}", running.addresses().first().map_or(0, |address| address.port()));
    running.wait();
    Ok(())
}

/// A server in a process of its own, killed when it is dropped.
struct Server {
    child: Child,
    socket: PathBuf,
    port: u16,
}

impl Server {
    fn start(place: &Place, name: &str) -> Server {
        let socket = place.path().join(name);
        let _ = fs::remove_file(&socket);
        let mut child = Command::new(env::current_exe().expect("this program"))
            .args(["server_process", "--exact", "--nocapture", "--test-threads=1"])
            .env(SOCKET, &socket)
            .env(DATABASE, place.path().join("test.db"))
            .stdout(Stdio::piped())
            .spawn()
            .expect("a process for the server");
        let output = BufReader::new(child.stdout.take().expect("piped"));
        let port = output.lines().map_while(Result::ok).find_map(|line| {
            let (_, port) = line.split_once("@ready ")?;
            port.trim().parse().ok()
        });
        Server { child, socket, port: port.expect("the server is ready") }
    }

    fn client(&self) -> Client {
        Client::connect(&self.socket)
    }

    fn process_file(&self, name: &str) -> PathBuf {
        Path::new("/proc").join(self.child.id().to_string()).join(name)
    }

    /// Memory of its own that it has now, in KiB: the database, which is shared, is not counted.
    fn memory(&self) -> u64 {
        let status = fs::read_to_string(self.process_file("status")).expect("the server lives");
        let anonymous = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
        let number = anonymous.and_then(|rest| rest.split_whitespace().next()?.parse().ok());
        number.expect("/proc tells RssAnon")
    }

    fn descriptors(&self) -> usize {
        fs::read_dir(self.process_file("fd")).expect("the server lives").count()
    }

    /// Waits until the server has let go of all connections but `left` descriptors, and has at most so much memory.
    fn settles(&self, descriptors: usize, memory: u64, what: &str) {
        let begun = Instant::now();
        // Some are opened when they are first needed.
        let descriptors = descriptors + 8;
        while self.descriptors() > descriptors || self.memory() > memory {
            let (now, kib) = (self.descriptors(), self.memory());
            assert!(
                begun.elapsed() < PATIENCE,
                "{what}: {now} descriptors for {descriptors}, {kib} KiB for {memory}"
            );
            thread::yield_now();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

struct Dice(u64);

impl Dice {
    fn new(seed: u64) -> Dice {
        let seed = env::var("PERILUNE_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(seed);
        println!("PERILUNE_SEED={seed}");
        Dice(seed)
    }

    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }
}

fn pong() -> Answer {
    Answer::Simple(b"PONG".to_vec())
}

fn now() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(1, |since| since.as_nanos() as u64)
}

/// Requests with bytes changed, left out, doubled and cut.
fn garbled(dice: &mut Dice) -> Vec<u8> {
    const WORDS: [&[u8]; 24] = [
        b"set",
        b"get",
        b"k",
        b"lpush",
        b"l",
        b"zadd",
        b"z",
        b"1.5",
        b"-1",
        b"hset",
        b"h",
        b"multi",
        b"exec",
        b"watch",
        b"scan",
        b"0",
        b"setrange",
        b"70000",
        b"getrange",
        b"setbit",
        b"incrby",
        b"9223372036854775807",
        b"\xff\x00\r\n",
        b"range",
    ];
    let mut bytes = Vec::new();
    for _ in 0..1 + dice.below(12) {
        let words = (0..1 + dice.below(6)).map(|_| WORDS[dice.below(WORDS.len())]);
        words.collect::<Vec<_>>().into_iter().collect::<ArgumentsBuf>().write_request(&mut bytes);
    }
    for _ in 0..dice.below(6) {
        let at = dice.below(bytes.len());
        match dice.below(4) {
            0 => bytes[at] = dice.below(256) as u8,
            1 if bytes.len() > 1 => drop(bytes.remove(at)),
            1 | 2 => bytes.insert(at, b"*$\r\n0189-"[dice.below(9)]),
            _ => bytes.truncate(at.max(1)),
        }
    }
    bytes
}

#[test]
fn garbled_requests_cost_nothing_that_stays() {
    let place = Place::new();
    let server = Server::start(&place, "one.sock");
    let mut honest = server.client();
    assert_eq!(honest.line("set honest value"), Answer::Simple(b"OK".to_vec()));
    let (descriptors, memory) = (server.descriptors(), server.memory());
    let mut dice = Dice::new(now());
    for round in 0..1_000 * times() {
        let mut stream = UnixStream::connect(&server.socket).expect("a connection");
        stream.set_nonblocking(true).expect("a socket");
        for _ in 0..1 + dice.below(3) {
            // It may have been closed by now.
            let _ = stream.write_all(&garbled(&mut dice));
        }
        if dice.below(2) == 0 {
            let _ = stream.read(&mut [0; 4096]);
        }
        drop(stream);
        if round % 50 == 0 {
            assert_eq!(honest.line("get honest"), Answer::Bulk(b"value".to_vec()));
        }
    }
    server.settles(descriptors, memory + SLACK, "garbled requests");
    assert_eq!(honest.line("get honest"), Answer::Bulk(b"value".to_vec()));
}

#[test]
fn promises_cost_what_has_come_of_them() {
    let place = Place::new();
    let server = Server::start(&place, "one.sock");
    let mut honest = server.client();
    assert_eq!(honest.line("ping"), pong());
    let (descriptors, memory) = (server.descriptors(), server.memory());
    let promise = |header: &str, part: usize| {
        let mut stream = UnixStream::connect(&server.socket).expect("a connection");
        stream.write_all(header.as_bytes()).expect("the server reads");
        stream.write_all(&vec![b'x'; part]).expect("the server reads");
        stream
    };
    let mut held = Vec::new();
    for _ in 0..100 * times() {
        held.push(promise("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$536870912\r\n", 50_000));
        held.push(promise("*1048576\r\n$3\r\nDEL\r\n$1\r\na\r\n$1\r\n", 1));
    }
    assert_eq!(honest.line("ping"), pong());
    let most = memory + SLACK + u64::from(times()) * 100 * 200;
    assert!(server.memory() < most, "{} KiB, {memory} before", server.memory());
    // Those that are too large are refused.
    for header in ["*1048577\r\n", "*2\r\n$3\r\nGET\r\n$536870913\r\n", "*-2\r\n*9999999999999999999\r\n"] {
        let mut client = server.client();
        client.send(header.as_bytes());
        assert!(client.receive().is_some_and(|answer| answer.is_error()), "{header:?}");
        assert_eq!(client.receive(), None, "{header:?}");
    }
    drop(held);
    server.settles(descriptors, memory + SLACK * u64::from(1 + times() / 8), "promises");
    assert_eq!(honest.line("ping"), pong());
}

/// A request of a million arguments is run like any other, and others are served meanwhile.
#[test]
fn a_million_arguments_are_taken() {
    let place = Place::new();
    let server = Server::start(&place, "one.sock");
    let mut honest = server.client();
    assert_eq!(honest.line("set a 1"), Answer::Simple(b"OK".to_vec()));
    let (descriptors, memory) = (server.descriptors(), server.memory());
    for _ in 0..times() {
        let mut client = server.client();
        let count = 1 << 20;
        let mut request = format!("*{count}\r\n$6\r\nEXISTS\r\n").into_bytes();
        request.extend_from_slice(&b"$1\r\na\r\n".repeat(count - 1));
        client.send(&request);
        assert_eq!(client.receive(), Some(Answer::Integer(count as i64 - 1)));
        assert_eq!(honest.line("ping"), pong());
    }
    // NB: each of two threads keeps the memory of its largest transaction for the next.
    server.settles(descriptors, memory + 8 * SLACK, "a million arguments");
}

/// The longest value there is comes, goes, and is given back. Takes a while: only in the long form.
fn longest_value(server: &Server) {
    let mut client = server.client();
    let (descriptors, memory) = (server.descriptors(), server.memory());
    let value = vec![b'v'; 512 << 20];
    assert_eq!(client.call([&b"SET"[..], b"long", &value]), Answer::Simple(b"OK".to_vec()));
    assert_eq!(client.line("strlen long"), Answer::Integer(512 << 20));
    assert!(client.line("append long x").is_error());
    assert_eq!(client.line("getrange long -3 -1"), Answer::Bulk(b"vvv".to_vec()));
    assert_eq!(client.line("del long"), Answer::Integer(1));
    server.settles(descriptors, memory + SLACK, "a value of 512 MiB");
}

/// Large requests and replies of every kind: what they took is given back.
#[test]
fn memory_of_large_values_is_given_back() {
    let place = Place::new();
    let server = Server::start(&place, "one.sock");
    let mut client = server.client();
    let (descriptors, memory) = (server.descriptors(), server.memory());
    // Twice what may stay.
    let value = vec![b'v'; (2 * SLACK as usize) << 10];
    assert_eq!(client.call([&b"SET"[..], b"large", &value]), Answer::Simple(b"OK".to_vec()));
    client.line("multi");
    client.call([&b"APPEND"[..], b"other", &value]);
    assert_eq!(client.line("exec"), Answer::Array(vec![Answer::Integer(value.len() as i64)]));
    assert!(matches!(client.line("get other"), Answer::Bulk(bytes) if bytes == value));
    assert_eq!(client.line("del large other"), Answer::Integer(2));
    server.settles(descriptors, memory + SLACK, "a large value");
}

/// Half a request and then silence; an end of one direction; resets in the middle of a reply.
#[test]
fn half_open_connections_hold_up_nobody() {
    let place = Place::new();
    let server = Server::start(&place, "one.sock");
    let mut honest = server.client();
    assert_eq!(honest.call([&b"SET"[..], b"big", &[b'x'; 100_000]]), Answer::Simple(b"OK".to_vec()));
    if times() > 1 {
        longest_value(&server);
    }
    let (descriptors, memory) = (server.descriptors(), server.memory());
    let tcp = || TcpStream::connect(("127.0.0.1", server.port)).expect("a connection");
    let mut silent = Vec::new();
    for _ in 0..200 * times().min(40) {
        let mut stream = tcp();
        stream.write_all(b"*2\r\n$3\r\nGET\r\n$3\r\nbi").expect("the server reads");
        silent.push(stream);
    }
    assert_eq!(honest.line("ping"), pong());
    for stream in silent.iter_mut().take(50) {
        // One direction is over: what was asked is answered all the same.
        stream.write_all(b"g\r\n").expect("the server reads");
        stream.shutdown(Shutdown::Write).expect("half an end");
        let mut reply = Vec::new();
        stream.read_to_end(&mut reply).expect("a reply");
        assert_eq!(reply.len(), "$100000\r\n".len() + 100_000 + 2);
    }
    for _ in 0..100 * times() {
        let mut stream = tcp();
        stream.write_all(&b"get big\r\n".repeat(20)).expect("the server reads");
        // Unread bytes make the kernel send a reset.
        stream.read_exact(&mut [0]).expect("the reply begins");
        drop(stream);
    }
    assert_eq!(honest.line("ping"), pong());
    drop(silent);
    server.settles(descriptors, memory + SLACK, "half-open connections");
}

/// A read that failed took the thread's buffer with it: the next client of that thread was cut off.
#[test]
fn a_client_that_resets_cuts_off_nobody_else() {
    let place = Place::new();
    let server = Server::start(&place, "one.sock");
    for _ in 0..500 {
        // Gone without having read the reply: the kernel answers the server's next read with a reset.
        let mut rude = UnixStream::connect(&server.socket).expect("a connection");
        rude.write_all(b"PING\r\n").expect("the server reads");
        rude.set_read_timeout(Some(PATIENCE)).expect("a limit");
        rude.read_exact(&mut [0]).expect("the reply begins");
        drop(rude);
        assert_eq!(server.client().line("ping"), pong());
    }
}

#[test]
fn connections_by_the_thousand_leave_nothing_behind() {
    let place = Place::new();
    let server = Server::start(&place, "one.sock");
    let mut honest = server.client();
    assert_eq!(honest.line("ping"), pong());
    let (descriptors, memory) = (server.descriptors(), server.memory());
    let count = 5_000 * times();
    thread::scope(|scope| {
        for thread in 0..4u32 {
            let server = &server;
            scope.spawn(move || {
                for number in 0..count / 4 {
                    let mut stream = UnixStream::connect(&server.socket).expect("a connection");
                    if number % 3 == thread % 3 {
                        stream.write_all(b"PING\r\n").expect("the server reads");
                    }
                    if number % 7 == 0 {
                        stream.set_read_timeout(Some(PATIENCE)).expect("a limit");
                        stream.write_all(b"PING\r\n").expect("the server reads");
                        stream.read_exact(&mut [0; 7]).expect("a reply");
                    }
                }
            });
        }
        for _ in 0..200 {
            assert_eq!(honest.line("ping"), pong());
        }
    });
    server.settles(descriptors, memory + SLACK, "connections");
    assert_eq!(honest.line("ping"), pong());
}

/// What one client has been told was done.
#[derive(Default)]
struct Told {
    increments: AtomicU64,
    pushes: AtomicU64,
}

/// Works as long as `going_on` lives, or until its server is gone.
fn work(socket: &Path, id: usize, told: &Told, going_on: &Weak<()>) {
    let Ok(mut stream) = UnixStream::connect(socket) else { return };
    stream.set_read_timeout(Some(PATIENCE)).expect("a limit");
    let mut arrived = Vec::new();
    let mut ask = |line: String| -> Option<Answer> {
        stream.write_all(line.as_bytes()).ok()?;
        loop {
            if let Some((answer, used)) = Answer::parse(&arrived).expect("a reply") {
                arrived.drain(..used);
                assert!(!answer.is_error(), "{line}: {answer:?}");
                return Some(answer);
            }
            let mut buffer = [0; 4096];
            match stream.read(&mut buffer) {
                Ok(0) => return None,
                Ok(came) => arrived.extend_from_slice(&buffer[..came]),
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => return None,
                Err(error) => panic!("client {id} hangs: {error}"),
            }
        }
    };
    while going_on.strong_count() > 0 {
        let number = told.increments.load(SeqCst) + 1;
        // Its own, everybody's, and both in one transaction.
        let Some(_) = ask(format!("incr own:{id}\r\n")) else { return };
        told.increments.store(number, SeqCst);
        let Some(_) = ask("incr all\r\n".to_owned()) else { return };
        let Some(_) = ask(format!("rpush list:{} {id}:{number}\r\n", id % 2)) else { return };
        told.pushes.store(number, SeqCst);
        let lines = format!("multi\r\nincr pair:{id}\r\nhincrby pairs {id} 1\r\nexec\r\n");
        let Some(_) = ask(lines) else { return };
        for _ in 0..3 {
            if ask(String::new()).is_none() {
                return;
            }
        }
    }
}

fn integer(client: &mut Client, line: &str) -> u64 {
    match client.line(line) {
        Answer::Integer(number) => number as u64,
        Answer::Bulk(text) => String::from_utf8_lossy(&text).parse().expect("a number"),
        Answer::Null => 0,
        other => panic!("{line}: {other:?}"),
    }
}

/// Clients at each server.
const CLIENTS: usize = 4;

/// All that was pushed, each once.
fn pushed(client: &mut Client) -> Vec<String> {
    let mut pushed = Vec::new();
    for list in 0..2 {
        let Answer::Array(items) = client.line(&format!("lrange list:{list} 0 -1")) else { panic!("a list") };
        pushed.extend(items.into_iter().map(|item| match item {
            Answer::Bulk(text) => String::from_utf8(text).expect("text"),
            other => panic!("{other:?}"),
        }));
    }
    let count = pushed.len();
    pushed.sort_unstable();
    pushed.dedup();
    assert_eq!(pushed.len(), count, "something was pushed twice");
    pushed
}

/// Lets the clients of three servers work, kills one server, and lets the others' go on.
fn kill_one(servers: &mut [Server], victim: usize, round: usize, told: &[Told]) {
    thread::scope(|scope| {
        // Gone at the end of this block, by a failure too: then the clients end.
        let going_on = Arc::new(());
        let sockets: Vec<PathBuf> = servers.iter().map(|server| server.socket.clone()).collect();
        for (id, told) in told.iter().enumerate() {
            let (socket, going_on) = (sockets[id / CLIENTS].clone(), Arc::downgrade(&going_on));
            scope.spawn(move || work(&socket, 100 * round + id, told, &going_on));
        }
        let done = |id: usize| told[id].pushes.load(SeqCst);
        let reach = |ids: &[usize], count: u64, what: &str| {
            let begun = Instant::now();
            while ids.iter().any(|id| done(*id) < count) {
                assert!(begun.elapsed() < PATIENCE, "{what}");
                thread::yield_now();
            }
        };
        let all: Vec<usize> = (0..told.len()).collect();
        reach(&all, 20, "not all clients get going");
        servers[victim].child.kill().expect("it lived");
        let others: Vec<usize> = all.into_iter().filter(|id| id / CLIENTS != victim).collect();
        let so_far = others.iter().map(|id| done(*id)).max().unwrap_or(0);
        reach(&others, so_far + 50, "clients of the other servers hang");
        drop(going_on);
    });
    servers[victim].child.wait().expect("it is dead");
}

/// It neither lives on without one of its threads, nor takes anything along.
#[test]
fn a_server_that_panics_ends() {
    let place = Place::new();
    let (mut first, second) = (Server::start(&place, "first.sock"), Server::start(&place, "second.sock"));
    let (mut client, mut idle) = (first.client(), first.client());
    assert_eq!(client.line("set k v"), Answer::Simple(b"OK".to_vec()));
    assert_eq!(idle.line("ping"), pong());
    client.send(b"debug panic\r\n");
    assert_eq!((client.receive(), idle.receive()), (None, None));
    let status = first.child.wait().expect("it ends");
    assert_eq!(status.signal(), Some(6), "SIGABRT");
    assert_eq!(second.client().line("get k"), Answer::Bulk(b"v".to_vec()));
}

/// One server of three is killed under load, again and again: clients of the others go on, and of what was
/// acknowledged to anybody nothing is lost; at most the command under way of a client that was cut off is there besides.
#[test]
fn servers_that_are_killed_take_nothing_with_them() {
    let place = Place::new();
    let mut servers: Vec<Server> =
        (0..3).map(|number| Server::start(&place, &format!("{number}.sock"))).collect();
    let memory = servers[0].memory();
    let (mut expected, mut cut_off) = (0u64, 0u64);
    for round in 0..2 * times() as usize {
        let victim = round % servers.len();
        let told: Vec<Told> = (0..3 * CLIENTS).map(|_| Told::default()).collect();
        kill_one(&mut servers, victim, round, &told);
        let mut client = servers[(victim + 1) % 3].client();
        let lists = pushed(&mut client);
        for (id, told) in told.iter().enumerate() {
            let (name, may) = (100 * round + id, u64::from(id / CLIENTS == victim));
            let (increments, pushes) = (told.increments.load(SeqCst), told.pushes.load(SeqCst));
            let own = integer(&mut client, &format!("get own:{name}"));
            assert!((increments..=increments + may).contains(&own), "client {name}: {own} of {increments}");
            for number in 1..=pushes {
                assert!(
                    lists.binary_search(&format!("{name}:{number}")).is_ok(),
                    "client {name}: {number} is lost"
                );
            }
            let pair = integer(&mut client, &format!("get pair:{name}"));
            assert_eq!(
                pair,
                integer(&mut client, &format!("hget pairs {name}")),
                "client {name}: half a transaction"
            );
            expected += pushes;
            cut_off += may;
        }
        let all = integer(&mut client, "get all");
        // Acknowledged after the push that follows it; whoever was cut off may have done one or two more.
        assert!((expected..=expected + 2 * cut_off).contains(&all), "{all} of {expected}");
        servers[victim] = Server::start(&place, &format!("{victim}.sock"));
    }
    for server in &servers {
        assert!(server.memory() < memory + SLACK, "{} KiB, {memory} at first", server.memory());
    }
    let database = Database::open(place.path().join("test.db")).expect("the database");
    assert!(database.verify().expect("it can be read").is_sound());
}
