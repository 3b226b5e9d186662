//! `dump` and `load`: formats, errors, files that go on where they were interrupted.

use std::fs;
use std::io::Write;
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use crate::program::{told, Place};
use perilune::node;

const GOOD: i32 = 0;
const FOUND: i32 = 1;
const WRONG_USE: i32 = 2;
const ENVIRONMENT: i32 = 3;

const FEW: &str = "^a(1)=\"x\"\n^a(2,\"y\")=5\n^b=-2.5e-1\n^b(\"\")=null\n^c=[]\n";

#[test]
fn every_format_tells_the_same() {
    let place = Place::new();
    place.file("few.txt", FEW);
    assert_eq!(place.run(&["load", "t.db", "few.txt"]).0, GOOD);
    assert_eq!(place.run(&["dump", "t.db"]), (GOOD, FEW.into(), String::new()));
    let (_, lines, _) = place.run(&["dump", "t.db", "^a(2)", "b", "--format", "jsonl"]);
    let expected = "{\"node\":\"^a(2,\\\"y\\\")\",\"value\":5}\n{\"node\":\"^b\",\"value\":-0.25}\n\
                    {\"node\":\"^b(\\\"\\\")\",\"value\":null}\n";
    assert_eq!(lines, expected);
    let (code, zwr, err) = place.run(&["dump", "t.db", "--format", "zwr", "--label", "of a test"]);
    assert!(code == GOOD && err.contains("2 truth values, nulls"), "{err}");
    let nodes = "^a(1)=\"x\"\n^a(2,\"y\")=\"5\"\n^b=\"-.25\"\n^b(\"\")=\"\"\n^c=\"\"\n";
    assert!(zwr.starts_with("of a test UTF-8\n") && zwr.ends_with(&format!(" ZWR\n{nodes}")), "{zwr}");
    for format in ["text", "jsonl"] {
        let words = ["dump", "t.db", "--format", format, "-o", "all"];
        let (code, out, err) = place.run(&words);
        assert_eq!((code, out.as_str()), (GOOD, ""));
        assert!(err.starts_with("t.db: 5 nodes dumped to all in "), "{err}");
        assert!(!place.path().join("all.partial").exists());
        let other = format!("{format}.db");
        assert_eq!(place.run(&["load", &other, "all"]).0, GOOD);
        assert_eq!(place.run(&["dump", &other]).1, FEW);
    }
}

/// Two nodes at both ends of a dump, which every transaction sets to the same.
#[test]
fn a_dump_is_of_one_moment() -> perilune::Result<()> {
    let place = Place::new();
    let many: String = (0..30_000).map(|at| format!("^m({at})=\"something in between\"\n")).collect();
    place.file("many.txt", &format!("^a=0\n{many}^z=0\n"));
    assert_eq!(place.run(&["load", "t.db", "many.txt"]).0, GOOD);
    let database = perilune::Database::open(place.path().join("t.db"))?;
    let (database, commits) = (&database, &AtomicU64::new(0));
    thread::scope(|scope| {
        // Gone at the end of this block, by a failure too: then the writer ends.
        let going_on = Arc::new(());
        let is_going_on = Arc::downgrade(&going_on);
        let writer = scope.spawn(move || -> perilune::Result<()> {
            let mut session = database.session()?;
            while is_going_on.strong_count() > 0 {
                session.transaction(|t| {
                    let next = t.increment(&node!("^a")?, 1)?;
                    t.set(&node!("^z")?, next)
                })?;
                commits.fetch_add(1, Ordering::SeqCst);
            }
            Ok(())
        });
        let mut met = 0;
        for _ in 0..5 {
            let before = commits.load(Ordering::SeqCst);
            while commits.load(Ordering::SeqCst) == before && !writer.is_finished() {
                thread::yield_now();
            }
            let before = commits.load(Ordering::SeqCst);
            let (code, out, err) = place.run(&["dump", "t.db"]);
            met += commits.load(Ordering::SeqCst) - before;
            assert_eq!(code, GOOD, "{err}");
            let first = out.lines().next().and_then(|line| line.strip_prefix("^a="));
            let last = out.lines().last().and_then(|line| line.strip_prefix("^z="));
            assert!(first.is_some() && first == last, "{first:?} {last:?}");
            assert_eq!(out.lines().count(), 30_002);
        }
        assert!(met > 0, "no transaction while a dump was made");
        drop(going_on);
        writer.join().expect("the writer ends")
    })
}

#[test]
fn the_standard_input_is_loaded() {
    let place = Place::new();
    let mut child = place
        .command(&["load", "t.db"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    child.stdin.take().expect("piped").write_all(FEW.as_bytes()).expect("it reads");
    let (code, out, _) = told(child.wait_with_output().expect("it ends"));
    assert!(code == GOOD && out.starts_with("(standard input): 5 nodes loaded"), "{out}");
    assert_eq!(place.run(&["dump", "t.db"]).1, FEW);
}

#[test]
fn wrong_lines_are_named_mended_and_left_out() {
    let place = Place::new();
    let wrong = place.file("wrong.txt", "^a(1)=1\n^a(2)=\n^a(3)=3\n^a(4=4\n^a(5)=5\n");
    let (code, _, err) = place.run(&["load", "t.db", "wrong.txt"]);
    assert_eq!(code, FOUND);
    assert!(err.contains("wrong.txt:2:7: expected a value") && err.contains("1 nodes before it"), "{err}");
    assert_eq!(place.run(&["dump", "t.db"]).1, "^a(1)=1\n", "the program's own notes are not dumped");
    fs::write(&wrong, "^a(1)=1\n^a(2)=\"mended\"\n^a(3)=3\n^a(4=4\n^a(5)=5\n").expect("a file");
    let (code, out, err) = place.run(&["load", "t.db", "wrong.txt", "--resume", "--keep-going"]);
    assert!(code == FOUND && out.contains("3 nodes loaded"), "{out}{err}");
    assert!(
        err.contains("going on behind line 1") && err.contains("wrong.txt:4:5: expected , or )"),
        "{err}"
    );
    assert!(err.contains("one line was wrong"), "{err}");
    assert_eq!(place.run(&["dump", "t.db"]).1, "^a(1)=1\n^a(2)=\"mended\"\n^a(3)=3\n^a(5)=5\n");
    let (_, out, _) = place.run(&["stat", "t.db", "--json"]);
    assert!(!out.contains("_perilune"), "a file that is loaded leaves no mark: {out}");
}

#[test]
fn failures_say_what_to_do() {
    let place = Place::new();
    let failing = |words: &[&str], expected: i32, text: &str| {
        let (code, _, err) = place.run(words);
        assert!(code == expected && err.contains(text), "{words:?}: {code} {err}");
    };
    place.file("few.txt", "^a_b(1)=1\n^b=true\n");
    assert_eq!(place.run(&["load", "t.db", "few.txt"]).0, GOOD);
    failing(&["dump", "missing.db"], ENVIRONMENT, "no such database");
    failing(&["dump", "t.db", "^a("], WRONG_USE, "expected a number or a quoted string");
    failing(&["dump", "t.db", "--format", "zwr"], FOUND, "M names have at most 31");
    failing(&["dump", "t.db", "-o", "no/such/file"], ENVIRONMENT, "write no/such/file");
    failing(&["load", "t.db", "missing.txt"], ENVIRONMENT, "missing.txt");
    failing(&["load", "t.db", "--resume"], WRONG_USE, "only a regular file");
    let (code, out, err) = place.run(&["dump", "t.db", "--format", "zwr", "--keep-going"]);
    assert!(
        code == FOUND && err.contains("1 nodes were left out") && out.ends_with("^b=\"1\"\n"),
        "{out}{err}"
    );
}

/// Killed at any moment, a load goes on from a place between what is set and what is not.
#[test]
fn a_killed_load_goes_on() {
    let place = Place::new();
    // Not in order, so that each batch is all over the tree.
    let lines: Vec<String> = (0..120_000u32)
        .map(|index| {
            format!("^a({},\"customer\")=\"number {index}\"\n", index.wrapping_mul(2_654_435_761) >> 8)
        })
        .collect();
    place.file("many.txt", &lines.concat());
    let mut killed = 0;
    for round in 1..=30u32 {
        let mut words = vec!["load", "t.db", "many.txt"];
        words.extend((round > 1).then_some("--resume"));
        let mut child = place
            .command(&words)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let patience = Instant::now() + Duration::from_millis(u64::from(20 * round));
        while round < 30 && Instant::now() < patience && child.try_wait().expect("a child").is_none() {
            std::thread::yield_now();
        }
        if round < 30 && child.try_wait().expect("a child").is_none() {
            child.kill().expect("a child of ours");
            killed += 1;
        }
        let (code, out, err) = told(child.wait_with_output().expect("it ends"));
        if code >= 0 {
            assert!(code == GOOD && out.contains("nodes loaded"), "{out}{err}");
            break;
        }
    }
    assert!(killed > 0, "no load was killed");
    let (code, found, _) = place.run(&["check", "t.db"]);
    assert!(code == GOOD && found.contains("120000 nodes"), "{found}");
    let mut dumped: Vec<String> =
        place.run(&["dump", "t.db"]).1.lines().map(|line| format!("{line}\n")).collect();
    let mut lines = lines;
    lines.sort();
    dumped.sort();
    assert!(dumped == lines, "what was loaded is not what was in the file");
}
