//! A database is removed while a program, or `perilune serve`, has it open, and another one is made under its name:
//! the program's close, though it had written nothing, left that one damaged.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::program::{Killed, Place};

/// Removes every file of the database `x.db`.
fn remove(place: &Place) {
    for entry in fs::read_dir(place.path()).expect("the directory") {
        let path = entry.expect("an entry").path();
        if path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("x.db")) {
            fs::remove_file(path).expect("it can be removed");
        }
    }
}

fn make(place: &Place, name: &str, nodes: u32) {
    let script =
        format!("local n = require('perilune').use().node('^{name}') for i = 1, {nodes} do n[i].__ = i end");
    assert_eq!(place.run(&["--db", "x.db", "-e", &script]).0, 0);
}

fn check(place: &Place, nodes: u32) {
    let (code, out, err) = place.run(&["check", "x.db"]);
    assert!(code == 0 && out.contains(&format!("{nodes} nodes")), "{code}: {out}{err}");
}

#[test]
fn closing_a_removed_database_leaves_the_new_one_of_its_name() {
    let place = Place::new();
    make(&place, "old", 3);
    let script = "local db = require('perilune').use() print('open') io.stdout:flush() io.read() db:close()";
    let command = &mut place.command(&["--db", "x.db", "-e", script]);
    let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut old = pipes.spawn().expect("the program starts");
    let mut line = String::new();
    let mut out = BufReader::new(old.stdout.take().expect("a pipe"));
    out.read_line(&mut line).expect("it says that it has opened it");
    remove(&place);
    make(&place, "new", 10);
    check(&place, 10);
    old.stdin.take().expect("a pipe").write_all(b"\n").expect("it reads");
    // NB: in Lua the handle that `use` keeps closes it, at the end of the program, where nobody is to be told.
    old.wait().expect("its end");
    check(&place, 10);
}

/// What the server answers to one request, which is one line or a bulk string.
fn ask(stream: &mut UnixStream, request: &str) -> String {
    stream.write_all(format!("{request}\r\n").as_bytes()).expect("it reads");
    let mut reply = BufReader::new(stream);
    let mut line = String::new();
    reply.read_line(&mut line).expect("it answers");
    if let Some(length) = line.strip_prefix('$').and_then(|length| length.trim().parse::<usize>().ok()) {
        let mut bytes = vec![0; length + 2];
        reply.read_exact(&mut bytes).expect("the whole reply");
        line = String::from_utf8(bytes).expect("UTF-8");
    }
    line.trim_end().to_owned()
}

/// Waits until `is_so`.
fn wait(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(30), "{what}");
        std::thread::yield_now();
    }
}

#[test]
fn a_server_of_a_removed_database_says_so_and_stops_writing() {
    let place = Place::new();
    let ready = UnixDatagram::bind(place.path().join("ready")).expect("a socket");
    ready.set_read_timeout(Some(Duration::from_secs(30))).expect("a limit");
    let words = ["--db", "x.db", "serve", "--bind", "", "--unixsocket", "sock", "--logfile", "log"];
    let command = &mut place.command(&words);
    command.env("NOTIFY_SOCKET", place.path().join("ready")).stderr(Stdio::null());
    let _server = Killed(command.spawn().expect("the program starts"));
    ready.recv(&mut [0; 64]).expect("it tells systemd that it is ready");
    let mut stream = UnixStream::connect(place.path().join("sock")).expect("it listens");
    stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a limit");
    assert_eq!(ask(&mut stream, "SET k old"), "+OK");
    assert!(ask(&mut stream, "INFO persistence").contains("writes_stopped:0"));
    remove(&place);
    make(&place, "new", 10);
    wait("it goes on writing", || ask(&mut stream, "SET k new").starts_with("-MISCONF"));
    assert!(ask(&mut stream, "SET k new").contains("was removed or replaced"));
    assert_eq!(ask(&mut stream, "GET k").len(), 3, "it reads on");
    let told = ask(&mut stream, "INFO persistence");
    assert!(told.contains("writes_stopped:2") && told.contains("aof_last_write_status:err"), "{told}");
    let log = || fs::read_to_string(place.path().join("log")).unwrap_or_default();
    wait("its log does not tell", || log().contains("writes-stopped"));
    check(&place, 10);
}
