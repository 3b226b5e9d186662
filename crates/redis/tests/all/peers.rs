//! Three server processes on one database and one port, and SIGKILL of the one that sweeps, with clients that
//! wait and listen.

use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, thread};

use crate::peer::{Client, Place, Text as _};
use perilune::{node, Database, Session};
use perilune_redis::{Running, Settings};
use perilune_resp::Answer;

/// Names the database and the socket to the process of a server.
const PLACE: &str = "PERILUNE_TEST_SERVER";

/// A server in a process of its own, killed when it is dropped.
struct Process {
    child: Child,
    socket: PathBuf,
}

impl Process {
    fn start(place: &Place, number: usize, port: u16) -> Process {
        let socket = place.path().join(format!("{number}.sock"));
        let child = Command::new(env::current_exe().expect("this program"))
            .args(["--exact", "peers::the_process_of_a_server"])
            .env(PLACE, format!("{}:{}:{port}", place.path().join("test.db").display(), socket.display()))
            .stdout(Stdio::null())
            .spawn()
            .expect("a process");
        let process = Process { child, socket };
        until("a server does not start", || UnixStream::connect(&process.socket).is_ok());
        process
    }

    fn kill(&mut self) {
        self.child.kill().expect("it is there");
        self.child.wait().expect("it ends");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Serves in the processes that [`Process::start`] starts; a test of nothing elsewhere.
#[test]
fn the_process_of_a_server() {
    let Ok(place) = env::var(PLACE) else { return };
    let parts: Vec<&str> = place.split(':').collect();
    let database = Database::open(Path::new(parts[0])).expect("the database");
    let settings = Settings {
        port: parts[2].parse().expect("a port"),
        unix_socket: Some(parts[1].into()),
        threads: 2,
        ..Settings::default()
    };
    Running::start(&database, settings).expect("a server").wait();
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(30), "{what}");
        thread::sleep(Duration::from_millis(1));
    }
}

fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("its number").port()
}

fn bulk(text: &str) -> Answer {
    Answer::Bulk(text.as_bytes().to_vec())
}

fn bulks(texts: &[&str]) -> Answer {
    Answer::Array(texts.iter().map(|text| bulk(text)).collect())
}

fn until_blocked(session: &mut Session, clients: u64) {
    let queue = node!("^redis", "blocked", 0, "jobs").unwrap();
    until("not so many clients wait", || session.count_children(&queue).unwrap() == clients);
}

fn messages_reach_all(clients: &mut [Client], listening: &mut [Client]) {
    for (number, client) in clients.iter_mut().enumerate() {
        assert_eq!(client.line(&format!("publish news m{number}")), Answer::Integer(3));
    }
    for client in listening {
        let mut got: Vec<_> = (0..3).map(|_| client.receive().unwrap()).collect();
        got.sort_by_key(Answer::to_text);
        let wanted: Vec<_> = (0..3).map(|n| bulks(&["message", "news", &format!("m{n}")])).collect();
        assert_eq!(got, wanted);
    }
}

#[test]
fn servers_go_on_when_one_is_killed() -> perilune::Result<()> {
    let place = Place::new();
    let database = Database::open(place.path().join("test.db"))?;
    let mut session = database.session()?;
    let port = free_port();
    let mut servers: Vec<_> = (0..3).map(|number| Process::start(&place, number, port)).collect();
    let mut clients: Vec<_> = servers.iter().map(|server| Client::connect(&server.socket)).collect();

    // One port for all: the kernel deals connections out.
    for _ in 0..20 {
        TcpStream::connect(("127.0.0.1", port)).expect("a connection");
    }
    let mut listening: Vec<_> = servers.iter().map(|server| Client::connect(&server.socket)).collect();
    listening
        .iter_mut()
        .for_each(|client| assert!(matches!(client.line("subscribe news"), Answer::Array(_))));
    messages_reach_all(&mut clients, &mut listening);
    // Waiting, in turn.
    let mut waiting = Vec::new();
    for number in 0..9 {
        let mut client = Client::connect(&servers[number % 3].socket);
        client.send(b"blpop jobs 0\r\n");
        until_blocked(&mut session, number as u64 + 1);
        waiting.push(client);
    }
    for (number, client) in waiting.iter_mut().take(3).enumerate() {
        let pusher = &mut clients[2 - number];
        pusher.line(&format!("rpush jobs j{number}"));
        assert_eq!(client.receive(), Some(bulks(&["jobs", &format!("j{number}")])));
    }
    // The clients of all are seen from each.
    let lines = |client: &mut Client| client.line("client list").to_text().lines().count();
    until("not all clients are seen", || clients.iter_mut().all(|client| lines(client) == 15));

    // The first to start sweeps; its clients are the first in the queue.
    servers[0].kill();
    assert_eq!(listening[0].receive(), None);
    let mut pusher = clients.remove(1);
    pusher.line("rpush jobs a b");
    session.set(&node!("^redis", 0, "jobs", "list", 500)?, "c")?;
    assert_eq!(waiting[4].receive(), Some(bulks(&["jobs", "a"])));
    assert_eq!(waiting[5].receive(), Some(bulks(&["jobs", "b"])));
    assert_eq!(waiting[7].receive(), Some(bulks(&["jobs", "c"])));
    assert_eq!(pusher.line("llen jobs"), Answer::Integer(0));
    // What is left of it goes, another one sweeps.
    assert!(matches!(pusher.line("publish news late"), Answer::Integer(2 | 3)));
    assert_eq!(listening[2].receive(), Some(bulks(&["message", "news", "late"])));
    until("the dead server's subscribers are counted", || {
        pusher.line("pubsub numsub news") == Answer::Array(vec![bulk("news"), Answer::Integer(2)])
    });
    pusher.line("set brief x px 1");
    let brief = node!("^redis", 0, "brief")?;
    until("nobody sweeps expired keys", || session.data(&brief).unwrap() == perilune::Data::Nothing);
    let noted = node!("^redis", "server")?;
    until("the dead server is still noted", || session.count_children(&noted).unwrap() == 2);
    until_blocked(&mut session, 1);
    // The others see and end each other.
    assert_eq!(lines(&mut pusher), 10);
    assert_eq!(pusher.line("client kill skipme yes"), Answer::Integer(9));
    assert_eq!(waiting[8].receive(), None);
    Ok(())
}

/// Who is told of all keys is told to forget all when a server is killed, which may not have told what it changed last; and
/// of what the others change as before.
#[test]
fn a_killed_server_makes_who_is_told_of_all_keys_forget() -> perilune::Result<()> {
    let place = Place::new();
    let database = Database::open(place.path().join("test.db"))?;
    let mut session = database.session()?;
    let port = free_port();
    let mut servers: Vec<_> = (0..2).map(|number| Process::start(&place, number, port)).collect();
    let mut listening: Vec<_> = servers.iter().map(|server| Client::connect(&server.socket)).collect();
    for client in &mut listening {
        client.line("hello 3");
        assert_eq!(client.line("client tracking on bcast").to_text(), "OK");
    }
    let told = |client: &mut Client, wanted: Answer| loop {
        match client.receive().expect("a notice") {
            Answer::Push(parts) if parts[1] == wanted => return,
            Answer::Push(_) => {}
            other => panic!("no notice: {other:?}"),
        }
    };
    for server in &servers {
        Client::connect(&server.socket).line("set a 1");
        listening.iter_mut().for_each(|client| told(client, bulks(&["a"])));
    }
    servers[0].kill();
    assert_eq!(listening[0].receive(), None);
    told(&mut listening[1], Answer::Null);
    let loops = node!("^redis", "broadcast")?;
    until("the dead server is still noted", || session.count_children(&loops).unwrap() == 1);
    Client::connect(&servers[1].socket).line("set b 1");
    told(&mut listening[1], bulks(&["b"]));
    Ok(())
}

/// `perilune serve` of another database with the port that everybody has by default was let in, and the kernel dealt
/// the clients of both out to both.
#[test]
fn a_port_and_a_socket_are_not_shared_with_another_database() -> perilune::Result<()> {
    let (place, elsewhere) = (Place::new(), Place::new());
    let database = Database::open(place.path().join("test.db"))?;
    let other = Database::open(elsewhere.path().join("test.db"))?;
    let port = free_port();
    let mut servers: Vec<_> = (0..2).map(|number| Process::start(&place, number, port)).collect();
    let settings =
        || Settings { port, bind: vec!["127.0.0.1".to_owned()], threads: 1, ..Settings::default() };
    let refused = |settings: Settings, database: &Database| {
        Running::start(database, settings).err().map(|error| error.to_string())
    };
    let why = refused(settings(), &other).expect("it must not start");
    assert!(why.contains(&format!("127.0.0.1:{port}")) && why.contains("another database"), "{why}");
    // Nothing is left of it, and what it said of all servers was not heard.
    let mut session = other.session()?;
    assert_eq!(session.count_children(&node!("^redis", "server")?)?, 0);
    assert!(refused(settings().with("timeout", "7").unwrap(), &other).is_some());
    assert_eq!(session.get(&node!("^redis", "config", "timeout")?)?, None);
    // A server that is gone, or listens elsewhere, is not one that shares it.
    let unshared = Settings { any_port: true, ..settings() };
    let third = Running::start(&other, unshared).expect("any other port is free");
    assert!(refused(settings(), &other).is_some());
    third.stopper().stop();
    third.wait();
    let socket = Some(servers[0].socket.clone());
    let taken = Settings { port: 0, unix_socket: socket, ..settings() };
    assert!(refused(taken.clone(), &other).is_some_and(|why| why.contains("0.sock")));
    assert!(refused(taken.clone(), &database).is_some());
    // Of the same database one more is welcome, also where one was killed.
    servers[0].kill();
    let fourth = Running::start(&database, Settings { port, ..taken }).expect("its sockets are free");
    servers[1].kill();
    fourth.stopper().stop();
    fourth.wait();
    assert!(refused(settings(), &other).is_none());
    Ok(())
}
