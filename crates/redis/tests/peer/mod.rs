//! The two servers that are compared: ours in this process, and Redis in one of its own.

#![allow(dead_code, unreachable_pub)] // Each file of tests is a crate that uses some of it.

pub mod changes;
pub mod loops;
pub mod pieces;

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use std::{env, fs, process, thread};

use perilune::Database;
use perilune_redis::{Name, Running, Settings, Stopper};
use perilune_resp::{Answer, ArgumentsBuf};

/// A directory of a test, gone with it.
pub struct Place(PathBuf);

impl Place {
    pub fn new() -> Place {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = env::temp_dir().join(format!("perilune-redis-test-{}-{number}", process::id()));
        fs::create_dir_all(&path).expect("a directory for the test");
        Place(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // It fails where a file is made meanwhile, as a database that is still being closed makes.
        let _gone = (0..1_000).any(|_| fs::remove_dir_all(&self.0).is_ok() || !self.0.exists());
    }
}

/// Our server, stopped when it is dropped.
pub struct Ours {
    pub database: Database,
    pub socket: PathBuf,
    pub port: u16,
    stopper: Stopper,
    running: Option<Running>,
}

impl Ours {
    pub fn start(place: &Place, settings: Settings) -> Ours {
        let database = Database::open(place.path().join("test.db")).expect("a database for the test");
        Ours::start_on(database, place, settings)
    }

    /// A server of a database that is open already.
    pub fn start_on(database: Database, place: &Place, settings: Settings) -> Ours {
        let socket = place.path().join("ours.sock");
        let settings = Settings { any_port: true, unix_socket: Some(socket.clone()), ..shared_out(settings) };
        let running = Running::start(&database, settings).expect("our server starts");
        let port = running.addresses().first().map_or(0, |address| address.port());
        Ours { database, socket, port, stopper: running.stopper(), running: Some(running) }
    }

    /// Another server of the same database.
    pub fn beside(&self, place: &Place) -> Ours {
        let socket = place.path().join("beside.sock");
        let settings =
            Settings { any_port: true, unix_socket: Some(socket.clone()), ..shared_out(Settings::default()) };
        let running = Running::start(&self.database, settings).expect("another server starts");
        let database = self.database.clone();
        Ours { database, socket, port: 0, stopper: running.stopper(), running: Some(running) }
    }
}

/// With clients on all threads, unless the test has said otherwise: so they meet each other there.
fn shared_out(settings: Settings) -> Settings {
    if settings.is_given(Name::ThreadsAwake) {
        return settings;
    }
    settings.with("threads-awake", "all").expect("a setting")
}

impl Drop for Ours {
    fn drop(&mut self) {
        self.stopper.stop();
        if let Some(running) = self.running.take() {
            running.wait();
        }
    }
}

/// A redis-server without persistence, killed when it is dropped.
pub struct Redis {
    child: Child,
    pub socket: PathBuf,
}

impl Redis {
    pub fn start(place: &Place) -> Redis {
        let socket = place.path().join("redis.sock");
        let child = Command::new("redis-server")
            .args(["--port", "0", "--save", "", "--appendonly", "no", "--daemonize", "no", "--unixsocket"])
            .arg(&socket)
            .current_dir(place.path())
            .stdout(Stdio::null())
            .spawn()
            .expect("redis-server is needed: apt-get install redis-server");
        let redis = Redis { child, socket };
        let start = Instant::now();
        while UnixStream::connect(&redis.socket).is_err() {
            assert!(start.elapsed() < Duration::from_secs(20), "redis-server does not answer");
            thread::yield_now();
        }
        redis
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A client of either server.
pub struct Client {
    stream: UnixStream,
    arrived: Vec<u8>,
}

impl Client {
    pub fn connect(socket: &Path) -> Client {
        let stream = UnixStream::connect(socket).expect("a connection");
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a limit");
        Client { stream, arrived: Vec::new() }
    }

    pub fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).expect("the server reads");
    }

    /// The next reply; none when the server has closed.
    pub fn receive(&mut self) -> Option<Answer> {
        loop {
            if let Some((answer, used)) = Answer::parse(&self.arrived).expect("a reply") {
                self.arrived.drain(..used);
                return Some(answer);
            }
            let mut buffer = [0; 1 << 16];
            match self.stream.read(&mut buffer).expect("the server answers in time") {
                0 => return None,
                came => self.arrived.extend_from_slice(&buffer[..came]),
            }
        }
    }

    pub fn call<T: AsRef<[u8]>>(&mut self, words: impl IntoIterator<Item = T>) -> Answer {
        let mut request = Vec::new();
        words.into_iter().collect::<ArgumentsBuf>().write_request(&mut request);
        self.send(&request);
        self.receive().expect("a reply")
    }

    /// A command without blanks inside its words.
    pub fn line(&mut self, line: &str) -> Answer {
        self.call(line.split(' '))
    }
}

/// What an answer says, for looking into.
pub trait Text {
    fn to_text(&self) -> String;
}

impl Text for Answer {
    fn to_text(&self) -> String {
        match self {
            Answer::Bulk(bytes) | Answer::Simple(bytes) | Answer::Error(bytes) => {
                String::from_utf8_lossy(bytes).into_owned()
            }
            other => format!("{other:?}"),
        }
    }
}
