//! A server that somebody else runs takes part by its address, and keeps its data.

mod program;

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{fs, thread};

use program::{bench, scratch, text};

/// A redis-server; it ends with the test.
struct Server {
    child: Child,
    port: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Server {
    fn start(directory: &std::path::Path) -> Server {
        let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let mut command = Command::new("redis-server");
        command
            .args(["--save", "", "--bind", "127.0.0.1", "--port", &port.to_string(), "--dir"])
            .arg(directory);
        let child = command.stdout(Stdio::null()).spawn().expect("apt-get install redis-server");
        let server = Server { child, port: port.to_string() };
        let begun = Instant::now();
        while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            assert!(begun.elapsed() < Duration::from_secs(30), "redis-server takes no connections");
            thread::yield_now();
        }
        server
    }

    fn ask(&self, words: &[&str]) -> String {
        let output = Command::new("redis-cli").args(["-p", &self.port]).args(words).output().unwrap();
        text(&output).trim().to_owned()
    }
}

#[test]
fn a_server_at_an_address_takes_part_and_no_data_are_lost() {
    let scratch = scratch("resp");
    let server = Server::start(&scratch.0);
    let address = format!("other=127.0.0.1:{}", server.port);
    let run = |more: &[&str]| {
        let mut command = bench(&["run", "--quick", "--rounds", "2", "--only", "collatz,sequence,bank"]);
        command.args(["--processes", "1,2", "--peers", "other", "--resp", &address, "--dir"]);
        command.arg(&scratch.0).args(more).output().unwrap()
    };
    server.ask(&["SET", "somebody's", "data"]);
    let output = run(&[]);
    assert!(!output.status.success() && text(&output).contains("has 1 keys"), "{}", text(&output));
    assert_eq!(server.ask(&["GET", "somebody's"]), "data");
    server.ask(&["FLUSHDB"]);
    let directory = scratch.0.join("run");
    let output = run(&["--run-dir", directory.to_str().unwrap()]);
    assert!(output.status.success(), "{}", text(&output));
    let raw = fs::read_to_string(directory.join("raw.jsonl")).unwrap();
    for workload in ["collatz", "get-random", "bank"] {
        let part = format!("\"workload\":\"{workload}\",\"backend\":\"other\",\"class\":\"D4\"");
        assert!(raw.contains(&part), "{workload} in\n{raw}");
    }
    assert!(fs::read_to_string(directory.join("summary.md")).unwrap().contains("redis version:"));
    assert_eq!(server.ask(&["DBSIZE"]), "0", "what the suite has written is gone");
}

#[test]
fn a_class_is_what_the_command_line_says() {
    for (address, part) in [
        ("other=127.0.0.1:1,d9", "NAME=HOST:PORT"),
        ("redis=127.0.0.1:1", "no side has"),
        ("other=127.0.0.1:1,d1", "127.0.0.1:1: "),
    ] {
        let output = bench(&["run", "--quick", "--resp", address]).output().unwrap();
        assert!(!output.status.success() && text(&output).contains(part), "{address}: {}", text(&output));
    }
}
