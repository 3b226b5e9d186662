//! `backup`, `compact` and `salvage`: what they tell, and with which code they end.

use std::fs;
use std::process::Stdio;

use crate::program::Place;

const GOOD: i32 = 0;
const FOUND: i32 = 1;
const ENVIRONMENT: i32 = 3;

fn lines(count: u32) -> String {
    (0..count).map(|at| format!("^a({at})=\"a text of some length\"\n")).collect()
}

#[test]
fn backups_and_compacted_files_hold_the_same() {
    let place = Place::new();
    let text = lines(3000);
    place.file("all.txt", &text);
    assert_eq!(place.run(&["load", "t.db", "all.txt"]).0, GOOD);
    let (code, out, err) = place.run(&["backup", "t.db", "copy.db"]);
    assert!(code == GOOD && out.starts_with("copy.db: ") && err.is_empty(), "{out}{err}");
    assert!(place.run(&["dump", "copy.db"]).1 == text);
    let (code, out, _) = place.run(&["backup", "t.db", "copy.db", "--json"]);
    assert!(code == GOOD && out.contains("\"compared\":"), "{out}");
    place.file("more.txt", "^a(7)=\"another\"\n^b=1\n");
    assert_eq!(place.run(&["load", "t.db", "more.txt"]).0, GOOD);
    let text = place.run(&["dump", "t.db"]).1;
    for (dest, is_there) in [("copy.db", true), ("first.db", false), ("first.db", true)] {
        let (code, out, err) = place.run(&["backup", "--incremental", "t.db", dest]);
        assert!(code == GOOD && err.is_empty(), "{out}{err}");
        assert_eq!(out.contains("were there already"), is_there, "{out}");
        assert!(place.run(&["dump", dest]).1 == text);
        assert_eq!(place.run(&["check", dest]).0, GOOD);
    }
    let (code, out, err) = place.run(&["compact", "t.db", "--json"]);
    assert!(code == GOOD && out.contains("\"bytes_after\":"), "{out}{err}");
    assert!(place.run(&["dump", "t.db"]).1 == text);
    assert_eq!(place.run(&["check", "t.db"]).0, GOOD);
    let (code, _, err) = place.run(&["backup", "--incremental", "t.db", "copy.db"]);
    assert!(code == ENVIRONMENT && err.contains("before it was compacted"), "{err}");
    for words in [&["backup", "no.db", "x.db"][..], &["compact", "no.db"], &["salvage", "no.db", "x.db"]] {
        let (code, _, err) = place.run(words);
        assert!(code == ENVIRONMENT && err.contains("no such database"), "{err}");
    }
    assert!(!place.path().join("x.db").exists());
}

#[test]
fn what_is_lost_is_named() {
    let place = Place::new();
    place.file("all.txt", &lines(3000));
    place.run(&["load", "t.db", "all.txt"]);
    let mut bytes = fs::read(place.path().join("t.db")).expect("the database");
    let at = bytes.windows(6).rposition(|window| window == b"a text").expect("a value");
    bytes[at] ^= 1;
    fs::write(place.path().join("t.db"), &bytes).expect("damage");
    let (code, out, err) = place.run(&["salvage", "t.db", "new.db"]);
    assert!(code == FOUND && err.contains("restore what is missing"), "{out}{err}");
    assert!(out.contains("does not have its sum") && out.contains("lost: nodes b"), "{out}");
    assert_eq!(place.run(&["check", "new.db"]).0, GOOD);
    assert_eq!(place.run(&["salvage", "t.db", "new.db"]).0, ENVIRONMENT, "it exists");
    let (code, out, _) = place.run(&["salvage", "t.db", "other.db", "--json"]);
    assert!(code == FOUND && out.contains("\"complete\":false"), "{out}");
}

#[test]
fn a_database_in_use_is_backed_up_and_not_compacted() {
    let place = Place::new();
    place.file("few.txt", &lines(30));
    place.run(&["load", "t.db", "few.txt"]);
    let code = "require('perilune').use():set('^b', 1) io.write('ready\\n') io.flush() io.read()";
    let mut user = place.command(&["--db", "t.db", "-e", code]);
    let mut user = user.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the program starts");
    let mut line = String::new();
    let out = user.stdout.take().expect("piped");
    std::io::BufRead::read_line(&mut std::io::BufReader::new(out), &mut line).expect("it writes");
    assert_eq!(line, "ready\n");
    let (code, _, err) = place.run(&["compact", "t.db"]);
    assert!(code == ENVIRONMENT && err.contains("is in use"), "{err}");
    assert_eq!(place.run(&["salvage", "t.db", "new.db"]).0, ENVIRONMENT);
    assert_eq!(place.run(&["backup", "t.db", "copy.db"]).0, GOOD);
    assert!(place.run(&["dump", "copy.db"]).1.ends_with("^b=1\n"));
    drop(user.stdin.take());
    user.wait().expect("it ends");
    assert_eq!(place.run(&["compact", "t.db"]).0, GOOD);
}

/// The file is cut while somebody uses it.
#[test]
fn a_process_that_loses_its_file_names_it() {
    let place = Place::new();
    place.file("few.txt", &lines(3000));
    place.run(&["load", "t.db", "few.txt"]);
    let code = "local n = require('perilune').node('^a') io.write('ready\\n') io.flush() io.read() \
                for _ in n:subscripts() do end";
    let mut user = place.command(&["--db", "t.db", "-e", code]);
    let user = user.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut user = user.spawn().expect("the program starts");
    let mut line = String::new();
    let out = user.stdout.take().expect("piped");
    std::io::BufRead::read_line(&mut std::io::BufReader::new(out), &mut line).expect("it writes");
    let file = fs::File::options().write(true).open(place.path().join("t.db")).expect("the database");
    file.set_len(4096).expect("it is cut");
    drop(user.stdin.take());
    let (code, _, err) = crate::program::told(user.wait_with_output().expect("it ends"));
    assert!(
        code == ENVIRONMENT && err.contains("t.db: byte ") && err.contains("was cut to 4096"),
        "{code} {err}"
    );
}

/// A hundred commits at `fsync`, the process killed, `-shm` gone, a byte of the tenth changed: it opened with nine of
/// them and said nothing.
#[test]
fn a_damaged_log_is_refused_and_given_up_only_when_asked() {
    let place = Place::new();
    let code = "local db = require('perilune').open('t.db', {durability = 'fsync'})
for i = 1, 100 do db.node('^n')[i].__ = 'number ' .. i end os.execute('kill -9 $PPID')";
    assert_eq!(place.run(&["-e", code]).0, -1, "it is killed");
    fs::remove_file(place.path().join("t.db-shm")).expect("the memory is lost");
    let log = place.path().join("t.db-wal.0");
    let mut bytes = fs::read(&log).expect("the log");
    let at = bytes.windows(9).position(|window| window == b"number 10").expect("the tenth commit");
    bytes[at] ^= 1;
    fs::write(&log, &bytes).expect("damage");
    for words in [&["check", "t.db"][..], &["checkpoint", "t.db"], &["dump", "t.db"]] {
        let (code, out, err) = place.run(words);
        assert!(code != GOOD && out.is_empty(), "{words:?}: {code} {out}{err}");
        let told = err.contains("t.db-wal.0 is damaged at byte ") && err.contains("records lie whole behind");
        assert!(told && err.contains("accept_lost_commits") && err.contains("salvage --log"), "{err}");
    }
    assert!(fs::read(&log).expect("the log") == bytes, "the evidence is left as it is");
    let count = |name: &str| place.run(&["dump", name]).1.lines().count();
    let (code, out, _) = place.run(&["salvage", "t.db", "before.db"]);
    assert!(code == FOUND && out.contains("lost: what follows in the log"), "{out}");
    let before = count("before.db");
    assert!((9..50).contains(&before), "{before}");
    let (code, out, _) = place.run(&["salvage", "t.db", "behind.db", "--log"]);
    assert!(code == FOUND && out.contains("of them lay behind damage"), "{out}");
    assert!(count("behind.db") > 2 * before, "{}", count("behind.db"));
    let (code, out, err) = place.run(&["checkpoint", "t.db", "--accept-lost-commits"]);
    assert!(code == GOOD && out.contains("dropped ") && err.is_empty(), "{out}{err}");
    assert_eq!(count("t.db"), before);
}
