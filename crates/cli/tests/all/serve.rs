//! `perilune serve` as an operator runs it: a file of settings, flags, signals, systemd.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::program::{Killed, Place};

/// A server of the database `s.db`, which has said that it is ready.
struct Server {
    child: Child,
}

impl Server {
    fn start(place: &Place, words: &[&str]) -> Server {
        let ready = UnixDatagram::bind(place.path().join("ready")).expect("a socket");
        ready.set_read_timeout(Some(Duration::from_secs(20))).expect("a limit");
        let mut command = place.command(&["--db", "s.db", "serve", "--bind", "", "--unixsocket", "sock"]);
        command.args(words).env("NOTIFY_SOCKET", place.path().join("ready")).stderr(Stdio::null());
        let child = command.spawn().expect("the program starts");
        let mut text = [0; 64];
        let length = ready.recv(&mut text).expect("it tells systemd that it is ready");
        assert_eq!(&text[..length], b"READY=1");
        Server { child }
    }

    fn connect(place: &Place) -> UnixStream {
        let stream = UnixStream::connect(place.path().join("sock")).expect("it listens");
        stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a limit");
        stream
    }

    fn signal(&self, name: &str) {
        let status = Command::new("kill").args([name, &self.child.id().to_string()]).status();
        assert!(status.expect("kill").success());
    }

    /// Waits for its end: the exit code.
    fn wait(mut self) -> Option<i32> {
        let start = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("our child") {
                return status.code();
            }
            if start.elapsed() > Duration::from_secs(20) {
                let _ = self.child.kill();
                panic!("it does not end");
            }
            std::thread::yield_now();
        }
    }
}

fn ask(stream: &mut UnixStream, request: &str, reply: &str) {
    stream.write_all(request.as_bytes()).expect("it reads");
    let mut told = vec![0; reply.len()];
    stream.read_exact(&mut told).expect("it answers");
    assert_eq!(String::from_utf8_lossy(&told), reply);
}

#[test]
fn signals_open_the_log_anew_and_end_it_in_good_order() {
    for signal in ["-TERM", "-INT"] {
        let place = Place::new();
        place.file("p.conf", "logfile server.log\nmaxclients 7\n");
        let server = Server::start(&place, &["p.conf", "--maxclients", "8"]);
        let mut stream = Server::connect(&place);
        // Flags outdo the file.
        ask(&mut stream, "CONFIG GET maxclients\r\n", "*2\r\n$10\r\nmaxclients\r\n$1\r\n8\r\n");
        let (log, old) = (place.path().join("server.log"), place.path().join("server.log.1"));
        fs::rename(&log, &old).expect("the log is there");
        server.signal("-HUP");
        let start = Instant::now();
        while !log.exists() {
            assert!(start.elapsed() < Duration::from_secs(20), "the log is not opened anew");
            std::thread::yield_now();
        }
        ask(&mut stream, "SET k 1\r\nINCR k\r\n", "+OK\r\n:2\r\n");
        server.signal(signal);
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).expect("the end");
        assert!(rest.is_empty());
        assert_eq!(server.wait(), Some(0));
        assert!(fs::read_to_string(&old).expect("the old log").contains("event=started"));
        assert!(fs::read_to_string(&log).expect("the new log").contains("event=stopped"));
        assert!(!place.path().join("sock").exists());
    }
}

#[test]
fn wrong_settings_say_what_would_be_right() {
    let place = Place::new();
    place.file("wrong.conf", "port 7000\n\nmaxmemroy 1gb\n");
    let (code, _, err) = place.run(&["--db", "s.db", "serve", "wrong.conf"]);
    assert_eq!(code, 2);
    assert!(err.contains("wrong.conf:3: there is no setting `maxmemroy`; is `maxmemory` meant?"), "{err}");
    let (code, _, err) = place.run(&["--db", "s.db", "serve", "--maxmemroy", "1"]);
    assert!(code == 2 && err.contains("--maxmemory"), "{err}");
    let (code, _, err) = place.run(&["--db", "s.db", "serve", "nowhere.conf"]);
    assert!(code == 3 && err.contains("nowhere.conf"), "{err}");
    let (code, _, err) = place.run(&["--db", "s.db", "serve", "--tls-port", "1"]);
    assert!(code == 3 && err.contains("`tls-port` needs `tls-cert-file`"), "{err}");
    assert!(!place.path().join("wrong.conf-shm").exists());
}

/// A file's `db` outdid `--db`; `dir` and `pidfile` were no settings.
#[test]
fn names_of_files_lead_from_dir_and_flags_outdo_the_file() {
    let place = Place::new();
    fs::create_dir(place.path().join("data")).expect("a directory");
    let text = "dir data\npidfile here.pid\nlogfile here.log\nhz 10\ndb other.db\n";
    place.file("p.conf", text);
    let server = Server::start(&place, &["p.conf"]);
    // A flag is a setting, too.
    let mut stream = UnixStream::connect(place.path().join("data/sock")).expect("it listens");
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a limit");
    ask(&mut stream, "SET k 1\r\n", "+OK\r\n");
    let within = |name: &str| place.path().join(name).exists();
    assert!(within("s.db") && within("data/here.log") && !within("data/other.db"));
    let noted = fs::read_to_string(place.path().join("data/here.pid")).expect("its number");
    assert_eq!(noted.trim(), server.child.id().to_string());
    server.signal("-TERM");
    assert_eq!(server.wait(), Some(0));
    assert!(!within("data/here.pid"));

    place.file("p.conf", "dir nowhere\n");
    let (code, _, err) = place.run(&["--db", "s.db", "serve", "p.conf"]);
    assert!(code == 3 && err.contains("`dir` nowhere"), "{err}");
}

/// packaging/perilune.conf names every setting with its default, and can be used as it is.
#[test]
fn the_sample_names_every_setting() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/perilune.conf");
    let sample = fs::read_to_string(path).expect("the sample");
    let lines: Vec<_> = sample.lines().filter_map(|line| line.strip_prefix("# ")).collect();
    for setting in perilune_redis::SETTINGS {
        let line = lines.iter().find(|line| line.split(' ').next() == Some(setting.name));
        let line = line.unwrap_or_else(|| panic!("packaging/perilune.conf lacks `{}`", setting.name));
        assert_eq!(line[setting.name.len()..].trim().trim_matches('"'), setting.default, "{}", setting.name);
    }
    let place = Place::new();
    // Every line, also without its mark.
    let all: Vec<_> = sample.lines().map(|line| line.strip_prefix("# ").unwrap_or(line)).collect();
    let known = |line: &&&str| {
        line.split(' ')
            .next()
            .is_some_and(|name| perilune_redis::find(name).is_some_and(|row| row.name == name))
    };
    let settings: Vec<_> = all.iter().filter(known).copied().collect();
    assert!(settings.len() >= perilune_redis::SETTINGS.len());
    let file = place.file("all.conf", &settings.join("\n"));
    perilune_redis::Settings::default().read_file(&file).expect("every default is valid");
}

#[test]
fn only_a_file_is_served() {
    let place = Place::new();
    let (code, _, err) = place.run(&["--db", "memory:", "serve", "--port", "7390"]);
    assert!(code == 3 && err.contains("memory: is no file"), "{code} {err}");
}

/// The settings that Debian's redis.conf has, in one that names places of ours.
#[test]
fn a_redis_conf_of_debian_starts_a_server() {
    let place = Place::new();
    let dir = place.path().display();
    let text = format!(
        "bind 127.0.0.1 -::1\nport 0\nunixsocket {dir}/s\ndaemonize yes\npidfile {dir}/missing/redis.pid\n\
         logfile {dir}/redis.log\ndir {dir}\nsave 3600 1\nhz 10\nset-proc-title yes\nappendonly no\n"
    );
    place.file("redis.conf", &text);
    let child = place.command(&["--db", "t.db", "serve", "redis.conf"]).stderr(Stdio::piped()).spawn();
    let mut server = Killed(child.expect("the program starts"));
    let mut told = String::new();
    let mut lines = BufReader::new(server.0.stderr.take().expect("piped"));
    while !told.contains("is served at") {
        assert!(lines.read_line(&mut told).expect("it says so") > 0, "{told}");
    }
    let said = |text: &str| assert!(told.lines().any(|line| line.contains(text)), "{text}: {told}");
    said("passed over: daemonize: it stays in the foreground");
    said("passed over: hz: it means nothing here");
    said("redis.pid");
}
