//! Runs the server's suite as a user does, small: rows of every section, charts, and answers that are wrong.
//!
//! `perilune` is needed beside `perilune-bench`: `cargo build -p perilune-cli`.

mod program;

use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::Stdio;
use std::{fs, thread};

use program::{bench, scratch, text};

/// The rows of both servers in a section and workload.
fn rows(raw: &str, section: &str, workload: &str) -> usize {
    let part = format!("\"section\":\"{section}\",\"workload\":\"{workload}\"");
    raw.lines().filter(|line| line.contains(&part)).count()
}

#[test]
fn every_section_has_rows_of_both_servers_and_nothing_is_left() {
    let scratch = scratch("all");
    let run = scratch.0.join("run");
    let mut command = bench(&["server", "--quick", "--rounds", "1", "--dir"]);
    let output = command.arg(&scratch.0).arg("--run-dir").arg(&run).output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
    let raw = fs::read_to_string(run.join("raw.jsonl")).unwrap();
    // Three sides: Redis, ours with one thread and with two; pipelines of 1 and of 16.
    for (section, workload, count) in [
        ("commands", "SET", 6),
        ("commands", "LPOP", 6),
        ("scripts", "EVAL of 2", 3),
        ("scripts", "2 trips", 3),
        ("neighbours", "GET beside a script", 3),
        ("clients", "3n+1", 3),
        ("inside", "3n+1", 2),
        ("idle", "memory of a plain connection", 2),
        ("idle", "memory of a TLS connection", 2),
        // Four levels of all, and one of four processes of ours.
        ("connections", "GET", 13),
    ] {
        assert_eq!(rows(&raw, section, workload), count, "{section}, {workload} in\n{raw}");
    }
    let summary = fs::read_to_string(run.join("summary.md")).unwrap();
    assert!(summary.contains("## Goals") && !summary.contains("charts/"), "{summary}");
    assert!(run.join("charts/latency-5.svg").exists());
    assert!(fs::read(run.join("charts/throughput.png")).unwrap().starts_with(b"\x89PNG"));
    let page = fs::read_to_string(run.join("index.html")).unwrap();
    assert!(page.contains("<svg") && page.contains(">Goals</h2>"), "a page without charts or goals");
    // Drawn again from what was written, it is the same.
    for file in ["summary.md", "charts/throughput.svg"] {
        let before = fs::read_to_string(run.join(file)).unwrap();
        fs::remove_file(run.join(file)).unwrap();
        if file == "summary.md" {
            fs::write(run.join(file), "").unwrap();
        }
        let output = bench(&["report"]).arg(&run).output().unwrap();
        assert!(output.status.success(), "{}", text(&output));
        assert_eq!(fs::read_to_string(run.join(file)).unwrap(), before, "{file}");
    }
    let again = fs::read_to_string(run.join("index.html")).unwrap();
    assert_eq!(again.lines().count(), page.lines().count(), "another page");
    let left: Vec<_> = fs::read_dir(&scratch.0).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["run"]);
}

/// A server that answers each request, but not with what was asked for.
fn wrong_server() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            thread::spawn(move || {
                let mut buffer = [0; 4096];
                while let Ok(1..) = stream.read(&mut buffer) {
                    if stream.write_all(b"$5\r\nwrong\r\n").is_err() {
                        return;
                    }
                }
            });
        }
    });
    port
}

#[test]
fn a_wrong_answer_is_counted_as_one() {
    let port = wrong_server().to_string();
    let mut process = bench(&["client-process", "--source", "127.0.0.3", "--port", &port]);
    let mut child = process.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let work = r#"{"Work":{"operations":10,"nanoseconds":0,"busy":3,"interval":0}}"#;
    let orders = format!("{{\"Connect\":3}}\n{{\"Load\":[\"Get\",1]}}\n{work}\n");
    child.stdin.take().unwrap().write_all(orders.as_bytes()).unwrap();
    let told = text(&child.wait_with_output().unwrap());
    let last = told.lines().last().unwrap();
    for part in ["\"requests\":10", "\"operations\":10", "\"wrong\":10", "wrong"] {
        assert!(last.contains(part), "{part} in {told}");
    }
}

#[test]
fn a_section_that_does_not_exist_is_said() {
    let output = bench(&["server", "--only", "nothing"]).output().unwrap();
    assert!(!output.status.success() && text(&output).contains("commands, scripts"), "{}", text(&output));
}
