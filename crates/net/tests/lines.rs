//! Event loops serve any protocol: here one of lines, on a socket of this machine. `hold` waits for a letter that `go` sends,
//! `long` runs aside until somebody has said `open`, `bye` ends the connection, `flood` answers more than may wait, and all else
//! is answered as it is.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use perilune_net::aside::{self, Aside, Slots, Task};
use perilune_net::crew::Crew;
use perilune_net::event_loop::{Comer, EventLoop, Handed, Service};
use perilune_net::listener::{Listeners, Places};
use perilune_net::protocol::{Client, Output, Progress, Protocol, Waits};
use perilune_net::seat::Seat;

/// What is remembered of who speaks.
#[derive(Debug, Default)]
struct Speaker {
    seat: Seat,
    ends: bool,
    holds: bool,
    goes_aside: bool,
}

impl Client for Speaker {
    fn is_closing(&self) -> bool {
        self.ends
    }

    fn close(&mut self) {
        self.ends = true;
    }

    fn seat(&self) -> Seat {
        self.seat
    }

    fn sit(&mut self, seat: Seat) {
        self.seat = seat;
    }

    fn waits(&self) -> Waits {
        if self.holds {
            Waits::WhileThere
        } else {
            Waits::No
        }
    }

    fn goes_aside(&self) -> bool {
        self.goes_aside
    }
}

/// What a loop is told.
#[derive(Debug)]
enum Letter {
    Handed(Handed<Lines>),
    Go(Seat),
    Done(Seat),
}

impl From<Handed<Lines>> for Letter {
    fn from(handed: Handed<Lines>) -> Letter {
        Letter::Handed(handed)
    }
}

/// What the threads of a server of lines share.
#[derive(Debug)]
struct Shared {
    crew: Crew<Letter>,
    slots: Slots<Lines>,
    /// Somebody has said `open`.
    is_open: AtomicBool,
}

/// Lines, of a loop.
#[derive(Debug)]
struct Lines {
    shared: Arc<Shared>,
    /// The last one that holds.
    holder: Option<Seat>,
    /// Those that have said `long`.
    asides: VecDeque<Seat>,
    next: i64,
    most: i64,
}

impl Protocol for Lines {
    type Client = Speaker;
    type Reader = ();

    fn request(
        &mut self,
        speaker: &mut Speaker,
        _: &mut (),
        bytes: &[u8],
        output: &mut Output<'_>,
    ) -> Progress {
        let Some(end) = bytes.iter().position(|byte| *byte == b'\n') else { return Progress::Incomplete };
        match &bytes[..end] {
            b"hold" => {
                speaker.holds = true;
                self.holder = Some(speaker.seat);
            }
            b"go" => {
                if let Some(seat) = self.holder.take() {
                    self.shared.crew.mailboxes()[seat.thread].post(Letter::Go(seat));
                }
            }
            b"long" => {
                (speaker.holds, speaker.goes_aside) = (true, true);
                self.asides.push_back(speaker.seat);
            }
            b"open" => self.shared.is_open.store(true, Ordering::Release),
            b"bye" => speaker.ends = true,
            b"flood" => output.bytes.resize(output.bytes.len() + (8 << 20), b'-'),
            line => output.bytes.extend_from_slice(&[line, b"\n"].concat()),
        }
        Progress::Ran(end + 1)
    }
}

impl Service for Lines {
    type Letter = Letter;

    fn crew(&self) -> &Crew<Letter> {
        &self.shared.crew
    }

    fn admit(&mut self, comer: Comer) -> Result<Speaker, &'static [u8]> {
        assert!(comer.is_local);
        self.next += 1;
        if self.next > self.most {
            return Err(b"full\n");
        }
        Ok(Speaker { seat: Seat { client: self.next, ..Seat::default() }, ..Speaker::default() })
    }

    fn reader(&self) {}

    fn letter(event_loop: &mut EventLoop<Lines>, letter: Letter) {
        match letter {
            Letter::Handed(handed) => event_loop.take(handed),
            Letter::Go(seat) => {
                if let Some(connection) = event_loop.at(seat) {
                    connection.client.holds = false;
                    event_loop.push(seat, b"gone on\n");
                }
            }
            Letter::Done(seat) => Lines::answer(event_loop, seat),
        }
    }

    fn unread(&self, _: &Speaker) -> [i64; 3] {
        [4 << 20, 0, 0]
    }
}

impl Aside for Lines {
    type Shared = Shared;
    type Work = Seat;
    type Done = Seat;

    const STACK: usize = 256 << 10;

    fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    fn slots(shared: &Shared) -> &Slots<Lines> {
        &shared.slots
    }

    fn crew_of(shared: &Shared) -> &Crew<Letter> {
        &shared.crew
    }

    fn next_task(event_loop: &mut EventLoop<Lines>) -> Option<Task<Seat>> {
        let seat = event_loop.service.asides.pop_front()?;
        event_loop.at(seat)?.client.goes_aside = false;
        Some(Task { token: seat.token, work: seat })
    }

    fn leaves(_: &Shared) {}

    fn run(shared: &Arc<Shared>, seat: Seat) -> Seat {
        // What a watcher does in a real server: nobody else here knows that the loop lies.
        while !shared.is_open.load(Ordering::Acquire) {
            shared.slots.hand_over(shared);
            thread::yield_now();
        }
        seat
    }

    fn answer(event_loop: &mut EventLoop<Lines>, seat: Seat) {
        if let Some(connection) = event_loop.at(seat) {
            connection.client.holds = false;
            event_loop.push(seat, b"at last\n");
        }
    }

    fn letter_of(seat: Seat) -> Letter {
        Letter::Done(seat)
    }

    fn finish(mut event_loop: EventLoop<Lines>) {
        event_loop.finish(|_, _| {});
    }
}

/// A server of lines.
struct Server {
    shared: Arc<Shared>,
    path: PathBuf,
    threads: Vec<JoinHandle<()>>,
}

impl Server {
    fn start(name: &str, loops: usize, most: i64) -> Server {
        let path = std::env::temp_dir().join(format!("perilune-lines-{}-{name}", std::process::id()));
        let places = Places { bind: &[], port: None, tls_port: 0, backlog: 16, unix: Some((&path, 0o700)) };
        let opened = Listeners::open(&places, |_| Ok::<_, std::convert::Infallible>(false));
        let mut listeners = Some(opened.expect("a socket is to be had"));
        let shared = Arc::new(Shared {
            crew: Crew::new(loops, true),
            slots: Slots::new(loops),
            is_open: AtomicBool::new(false),
        });
        let threads = (0..loops).map(|number| {
            let lines =
                Lines { shared: Arc::clone(&shared), holder: None, asides: VecDeque::new(), next: 0, most };
            let event_loop = EventLoop::new(number, listeners.take(), |_| Ok(lines)).expect("a loop");
            thread::spawn(move || aside::serve(Box::new(event_loop)))
        });
        let threads = threads.collect();
        Server { shared, path, threads }
    }

    fn client(&self) -> BufReader<UnixStream> {
        BufReader::new(UnixStream::connect(&self.path).expect("it listens"))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.crew.stop();
        self.shared.slots.stop();
        for thread in self.threads.drain(..) {
            thread.join().expect("a loop ends as it should");
        }
        self.shared.slots.join();
        remove(&self.path);
    }
}

fn remove(path: &Path) {
    let _ = std::fs::remove_file(path);
}

fn say(client: &mut BufReader<UnixStream>, text: &str) {
    client.get_mut().write_all(text.as_bytes()).expect("it reads");
}

fn heard(client: &mut BufReader<UnixStream>) -> String {
    let mut line = String::new();
    client.read_line(&mut line).expect("it answers");
    line
}

#[test]
fn requests_are_answered_in_their_order_however_they_are_cut() {
    let server = Server::start("order", 1, 9);
    let mut client = server.client();
    say(&mut client, "one\ntwo\nth");
    assert_eq!((heard(&mut client), heard(&mut client)), ("one\n".into(), "two\n".into()));
    say(&mut client, "ree\n");
    assert_eq!(heard(&mut client), "three\n");
    say(&mut client, "last\nbye\nnever\n");
    assert_eq!((heard(&mut client), heard(&mut client)), ("last\n".into(), String::new()));
}

#[test]
fn who_waits_goes_on_by_a_letter() {
    let server = Server::start("letter", 1, 9);
    let (mut waits, mut other) = (server.client(), server.client());
    say(&mut waits, "first\nhold\nsecond\n");
    assert_eq!(heard(&mut waits), "first\n");
    // `hold` ran in the visit of `first`, so that this finds it.
    say(&mut other, "go\nfree\n");
    assert_eq!(heard(&mut other), "free\n");
    assert_eq!((heard(&mut waits), heard(&mut waits)), ("gone on\n".into(), "second\n".into()));
}

/// Only another thread can serve who says `open`, since the one with the loop waits for that.
#[test]
fn a_loop_goes_on_while_its_thread_runs_something_long() {
    let server = Server::start("aside", 1, 9);
    let (mut waits, mut other) = (server.client(), server.client());
    say(&mut waits, "first\nlong\nsecond\n");
    assert_eq!(heard(&mut waits), "first\n");
    say(&mut other, "free\nopen\nstill\n");
    assert_eq!((heard(&mut other), heard(&mut other)), ("free\n".into(), "still\n".into()));
    assert_eq!((heard(&mut waits), heard(&mut waits)), ("at last\n".into(), "second\n".into()));
    // What is short by then keeps its loop.
    say(&mut waits, "long\nthird\n");
    assert_eq!((heard(&mut waits), heard(&mut waits)), ("at last\n".into(), "third\n".into()));
    assert!(!server.shared.crew.away().has_any());
}

#[test]
fn loops_share_clients_and_refuse_too_many() {
    let server = Server::start("share", 2, 4);
    let mut clients: Vec<_> = (0..4).map(|_| server.client()).collect();
    for client in &mut clients {
        say(client, "here\n");
        assert_eq!(heard(client), "here\n");
    }
    let mailboxes = server.shared.crew.mailboxes().iter();
    let loads = mailboxes.map(|mailbox| mailbox.load.load(Ordering::Relaxed));
    assert_eq!(loads.collect::<Vec<_>>(), [2, 2]);
    assert_eq!(heard(&mut server.client()), "full\n");
}

#[test]
fn who_leaves_too_much_unread_is_cut_off() {
    let server = Server::start("unread", 1, 9);
    let (mut floods, mut other) = (server.client(), server.client());
    say(&mut floods, "flood\nflood\n");
    // The second answer comes from a later round than the flood's.
    for _ in 0..2 {
        say(&mut other, "still here\n");
        assert_eq!(heard(&mut other), "still here\n");
    }
    let mut rest = Vec::new();
    let _ = floods.read_to_end(&mut rest);
    assert!(rest.len() < 8 << 20, "{} bytes came", rest.len());
}
