//! Runs the comparison as a user does, small: correctness suites, rows, canaries, the page in a browser.
//!
//! Sides whose programs are built by other crates (`perilune serve`, the Lua modules) take part in `make bench`, not here.

mod program;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use program::{bench, scratch, text, Scratch};

/// A run of some sides, recorded in a directory.
fn run(scratch: &Scratch, name: &str, slowed: &str, arguments: &[&str]) -> PathBuf {
    let directory = scratch.0.join(name);
    let mut command = bench(&["run", "--quick", "--dir"]);
    command.arg(&scratch.0).arg("--run-dir").arg(&directory).args(arguments);
    let output = command.env("PERILUNE_BENCH_SLOWED", slowed).output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
    directory
}

/// What `compare` finds for a workload: the ratio and its interval.
fn change(runs: &[&Path], options: &[&str], workload: &str) -> (f64, f64, f64) {
    let output = bench(&["compare"]).args(runs).args(options).output().unwrap();
    let table = text(&output);
    let line = table.lines().find(|line| line.split_whitespace().next() == Some(workload));
    let numbers: Vec<f64> = line
        .unwrap_or_else(|| panic!("{table}"))
        .split_whitespace()
        .rev()
        .take(3)
        .map(|word| word.parse().unwrap())
        .collect();
    (numbers[2], numbers[1], numbers[0])
}

/// The sides that take part here.
const SIDES: [&str; 14] = [
    "perilune",
    "lmdb",
    "lmdb-published",
    "bdb",
    "bdb-published",
    "sqlite",
    "rocksdb",
    "redb",
    "redis",
    "redis-lua",
    "redis-published",
    "tarantool",
    "gtm",
    "example",
];

/// Every peer of Debian passes its correctness suite and is measured in some cell; nothing is left behind.
#[test]
fn every_installed_peer_takes_part_and_is_right() {
    let scratch = scratch("all");
    let sides = SIDES.join(",");
    let arguments = ["--processes", "1", "--rounds", "1", "--only", "collatz,sequence", "--peers", &sides];
    let directory = run(&scratch, "run", "0", &[&arguments[..], &["--classes", "d4"]].concat());
    let raw = fs::read_to_string(directory.join("raw.jsonl")).unwrap();
    for side in SIDES {
        let workloads: &[&str] = if side == "redis-lua" { &["collatz"] } else { &["set", "get-random"] };
        for workload in workloads {
            let row = |line: &&str| {
                line.contains(&format!("\"backend\":\"{side}\""))
                    && line.contains(&format!("\"workload\":\"{workload}\""))
            };
            assert!(raw.lines().any(|line| row(&line)), "{side} has no {workload}");
        }
    }
    let summary = fs::read_to_string(directory.join("summary.md")).unwrap();
    for part in ["D4: 3n+1 over 1000", "D4: sets of cm(n) in order", "Hoyt's paper, Ryzen 7 5800X"] {
        assert!(summary.contains(part), "{part} in\n{summary}");
    }
    // Charts can be drawn again, so they are not kept: the tables must not name them.
    assert!(!summary.contains("charts/"), "{summary}");
    assert!(directory.join("charts/D4-set-1.svg").exists());
    assert!(fs::read(directory.join("charts/D4-collatz-1.png")).unwrap().starts_with(b"\x89PNG"));
    page_is_readable_on_a_phone(&directory, raw.lines().count());
    let left: Vec<_> = fs::read_dir(&scratch.0).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["run"]);
}

/// The XML trace is replayed whole, and what it leaves has the known digest.
#[test]
fn the_xml_trace_is_replayed_in_several_languages() {
    let scratch = scratch("xml");
    let arguments =
        ["--only", "xml", "--classes", "d4", "--rounds", "1", "--peers", "perilune,lmdb-published,gtm"];
    let raw = fs::read_to_string(run(&scratch, "run", "0", &arguments).join("raw.jsonl")).unwrap();
    // Three sides; parse, output, both, and five kinds of calls.
    assert_eq!(raw.lines().count(), 24, "{raw}");
}

/// What is durable is measured by itself: few operations, for each waits for the disk.
#[test]
fn durable_sides_take_part_and_are_right() {
    let scratch = scratch("durable");
    let arguments = ["--only", "writers,batch", "--rounds", "1", "--peers", "perilune,lmdb"];
    let directory = run(&scratch, "run", "0", &arguments);
    let raw = fs::read_to_string(directory.join("raw.jsonl")).unwrap();
    let mut found: Vec<(&str, &str)> = Vec::new();
    for line in raw.lines() {
        let field = |name: &str| line.split(&format!("\"{name}\":\"")).nth(1)?.split('"').next();
        found.push((field("workload").unwrap(), field("class").unwrap()));
    }
    found.sort_unstable();
    assert_eq!(found, [("batch", "D2"), ("batch", "D2"), ("writers", "D1"), ("writers", "D1")], "{raw}");
}

/// The page in a browser: all there, nothing wider than the screen.
fn page_is_readable_on_a_phone(directory: &Path, rows: usize) {
    let output = bench(&["report", "--html"]).arg(directory).output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
    let page = format!("file://{}#phone", directory.join("index.html").display());
    let mut browser = Command::new("chromium");
    browser.args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--dump-dom"]);
    browser.arg(format!("--user-data-dir={}", directory.join("browser").display())).arg(page);
    let output = browser.output().expect("chromium: apt-get install chromium");
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    let body = shown.split("<body").nth(1).and_then(|rest| rest.split('>').next()).unwrap_or("").to_owned();
    for part in ["data-fits=\"yes\"", "data-charts=\"yes\"", &format!("data-rows=\"{rows}\"")] {
        assert!(body.contains(part), "{part} in {body}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

const CANARY: [&str; 4] = ["--only", "sequence", "--classes", "d4"];

/// A canary: a side that idles is seen as slower.
#[test]
fn a_slower_side_is_seen() {
    let scratch = scratch("canary");
    // Long enough that a time slice of somebody else is no round: means are not deaf to those as medians are.
    let more = ["--peers", "perilune", "--rounds", "7", "--seconds-per-cell", "0.25"];
    let arguments = [&CANARY[..], &more].concat();
    let one = run(&scratch, "one", "0", &arguments);
    let slowed = run(&scratch, "slowed", "2000", &arguments);
    let (ratio, _, high) = change(&[&one, &slowed], &[], "get-random");
    assert!(ratio < 0.7 && high < 1.0, "slowed: {ratio}, at most {high}");
}

/// The other canary: a side beside itself. Of intervals of 95 % one in twenty does without the truth; that five of
/// twenty do happens once in four hundred runs if they are what they say.
#[test]
fn the_same_side_twice_is_no_faster() {
    let scratch = scratch("twin");
    let more = ["--peers", "perilune,perilune-twin", "--rounds", "5", "--seconds-per-cell", "0.03"];
    let arguments = [&CANARY[..], &more].concat();
    let (mut held, mut seen) = (0, String::new());
    for index in 0..5 {
        let run = run(&scratch, &index.to_string(), "0", &arguments);
        for workload in ["set", "get", "get-random", "set-random"] {
            let (_, low, high) = change(&[&run], &["--sides", "perilune,perilune-twin"], workload);
            held += usize::from(low <= 1.0 && 1.0 <= high);
            seen.push_str(&format!("{workload} [{low}, {high}]\n"));
        }
    }
    assert!(held >= 16, "{held} of 20 intervals hold 1:\n{seen}");
}

#[test]
fn what_cannot_be_run_is_said() {
    for (arguments, part) in [
        (["run", "--only", "nothing"], "no workload"),
        (["run", "--peers", "oracle"], "no side"),
        (["report", "/nowhere", "--html"], "holds no run"),
    ] {
        let output = bench(&arguments).output().unwrap();
        assert!(!output.status.success() && text(&output).contains(part), "{arguments:?}: {}", text(&output));
    }
    assert!(text(&bench(&["list"]).output().unwrap()).contains("lua-yottadb"));
}
