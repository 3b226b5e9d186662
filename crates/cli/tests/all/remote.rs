//! The program and the module with a database behind a server: the specs of Lua over TCP and a Unix socket, 3n+1
//! unchanged, a server that is killed, commands that need the file.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::program::{told, Killed, Place};

/// A server in a process of its own.
struct Server {
    process: Killed,
    tcp: String,
    unix: String,
}

impl Server {
    fn start(place: &Place) -> Server {
        let words = [
            "serve",
            "s.db",
            "--port",
            "any",
            "--bind",
            "127.0.0.1",
            "--unixsocket",
            "s.sock",
            "--threads",
            "2",
        ];
        let mut child = place.command(&words).stderr(Stdio::piped()).spawn().expect("the server starts");
        let mut lines = BufReader::new(child.stderr.take().expect("its errors")).lines();
        let mut place_of = || {
            let line = lines.next().expect("a line for each address").expect("text");
            line.rsplit(' ').next().expect("an address").to_owned()
        };
        let tcp = format!("tcp://{}", place_of());
        let unix = format!("unix:{}", place.path().join(place_of()).display());
        Server { process: Killed(child), tcp, unix }
    }
}

/// Whoever starts it has closed the pipe that its standard error leads to: it ended with the first line that it said.
#[test]
fn a_server_whose_words_nobody_reads_serves() {
    let place = Place::new();
    let words = ["serve", "s.db", "--port", "0", "--unixsocket", "s.sock"];
    let mut child = place.command(&words).stderr(Stdio::piped()).spawn().expect("the server starts");
    drop(child.stderr.take());
    let mut server = Server { process: Killed(child), tcp: String::new(), unix: String::new() };
    let begun = Instant::now();
    while UnixStream::connect(place.path().join("s.sock")).is_err() {
        assert!(begun.elapsed() < Duration::from_secs(60), "it does not serve");
        assert!(server.process.0.try_wait().expect("its state").is_none(), "it has ended");
        std::thread::yield_now();
    }
    let address = format!("unix:{}", place.path().join("s.sock").display());
    let (code, out, err) = place.run(&["-e", "print(require 'perilune'.open(...).node('^x').__)", &address]);
    assert_eq!((code, out.as_str(), err.as_str()), (0, "nil\n", ""));
}

fn spec(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bindings/lua/spec").join(name)
}

#[test]
fn the_specs_of_lua_are_kept_behind_a_server() {
    let place = Place::new();
    let server = Server::start(&place);
    let names = ["arguments", "locks", "nodes", "ship", "transactions", "trees", "values", "walks"];
    let files: Vec<String> =
        names.iter().map(|name| spec(&format!("{name}_spec.lua")).display().to_string()).collect();
    let runner = spec("run.lua").display().to_string();
    for (address, files) in [(&server.tcp, &files[..]), (&server.unix, &files[2..4])] {
        let mut words = vec!["run", runner.as_str()];
        words.extend(files.iter().map(String::as_str));
        let mut command = place.command(&words);
        let (code, out, err) =
            told(command.env("PERILUNE_SPEC_SERVER", address).output().expect("the specs run"));
        assert_eq!(code, 0, "{address}:\n{out}{err}");
        assert!(out.contains(" passed, 0 failed"), "{out}");
    }
}

#[test]
fn collatz_runs_unchanged_behind_a_server() {
    let place = Place::new();
    let server = Server::start(&place);
    let (code, out, err) =
        place.run(&["bench", "collatz", "--n", "1000", "--procs", "1,3", "--db", &server.tcp]);
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    // With one process reads and updates, too, are as in a file.
    assert!(out.contains("as expected") && out.contains("4522") && out.contains("2255"), "{out}");
    let seen = "local db = perilune.use() print(db:path(), db.node('^longest').__)";
    let (code, out, err) =
        place.run(&["--db", &server.unix, "-e", &format!("perilune = require 'perilune' {seen}")]);
    assert_eq!((code, out.trim()), (0, format!("{}\t178", server.unix).as_str()), "{err}");
}

#[test]
fn a_server_that_is_killed_is_an_error_and_no_wait_without_end() {
    let place = Place::new();
    let mut server = Server::start(&place);
    let script =
        "local db = require 'perilune'.open(...) db.node('^lock'):grab() print 'held' io.stdout:flush() \
                  db.node('^never'):wait()";
    let mut client = place
        .command(&["-e", script, &server.tcp])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("a client");
    let mut line = String::new();
    BufReader::new(client.stdout.take().expect("its output")).read_line(&mut line).expect("a line");
    assert_eq!(line, "held\n");
    let killed = Instant::now();
    server.process.0.kill().expect("the server is killed");
    let mut text = String::new();
    client.stderr.take().expect("its errors").read_to_string(&mut text).expect("text");
    assert!(!client.wait().expect("it ends").success());
    assert!(killed.elapsed() < Duration::from_secs(8), "{text}");
    assert!(text.contains(&server.tcp) && text.contains("connect"), "{text}");
    // What the killed server held for its client is free for programs with the file, too.
    let (code, out, err) =
        place.run(&["-e", "print(require 'perilune'.open('s.db').node('^lock'):grab(20))"]);
    assert_eq!((code, out.as_str()), (0, "true\n"), "{err}");
}

#[test]
fn commands_that_need_the_file_say_so() {
    let place = Place::new();
    for words in [
        &["check", "tcp://db"][..],
        &["stat", "unix:/run/s"],
        &["locks", "tcp://db"],
        &["processes", "tcp://db"],
        &["checkpoint", "tcp://db"],
        &["keep", "tcp://db"],
        &["backup", "tcp://db", "copy.db"],
        &["compact", "tcp://db"],
        &["salvage", "tcp://db", "new.db"],
        &["dump", "tcp://db"],
    ] {
        let (code, out, err) = place.run(words);
        assert_eq!((code, out.as_str()), (2, ""), "{words:?}: {err}");
        assert!(err.contains("on the server's machine"), "{words:?}: {err}");
    }
    let (code, _, err) = place.run(&["--db", "tcp://127.0.0.1:1", "-e", "require 'perilune'.use()"]);
    assert!(code != 0 && err.contains("perilune serve"), "{err}");
}
