//! Which database a command is for, and reading without permission to write.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use crate::program::{told, Place};

const FEW: &str = "^a(1)=1\n^a(2)=2\n";

/// A place with `t.db`, whose nodes are those of [`FEW`].
fn place() -> Place {
    let place = Place::new();
    place.file("few.txt", FEW);
    assert_eq!(place.run(&["--db", "t.db", "load", "few.txt"]).0, 0);
    place
}

#[test]
fn the_flag_names_the_database_of_every_command() {
    let place = place();
    for words in
        [&["dump"][..], &["dump", "^a"], &["stat"], &["check"], &["locks"], &["processes"], &["checkpoint"]]
    {
        let words = [&["--db", "t.db"][..], words].concat();
        let (code, out, err) = place.run(&words);
        assert_eq!((code, err.as_str()), (0, ""), "{words:?}: {out}");
    }
    assert_eq!(place.run(&["dump", "--db", "t.db", "a(2)"]).1, "^a(2)=2\n");
    assert_eq!(place.run(&["--db", "t.db", "backup", "copy.db"]).0, 0);
    assert_eq!(place.run(&["dump", "copy.db"]).1, FEW);
    assert_eq!(place.run(&["--db", "t.db", "salvage", "new.db"]).0, 0);
    assert_eq!(place.run(&["dump", "new.db"]).1, FEW);
    assert_eq!(place.run(&["--db", "t.db", "compact"]).0, 0);
    let mut ours = place.command(&["dump"]);
    assert_eq!(told(ours.env("PERILUNE_DB", "t.db").output().unwrap()).1, FEW);
}

#[test]
fn a_database_that_is_named_twice_is_an_error() {
    let place = place();
    place.file("other.db", "");
    let cases: [&[&str]; 9] = [
        &["check", "other.db"],
        &["stat", "other.db"],
        &["dump", "other.db"],
        &["keep", "other.db"],
        &["compact", "other.db"],
        &["checkpoint", "other.db"],
        &["backup", "other.db", "copy.db"],
        &["salvage", "other.db", "copy.db"],
        &["serve", "7701"],
    ];
    for words in cases {
        let (code, _, err) = place.run(&[&["--db", "t.db"][..], words].concat());
        assert!(code == 2 && err.contains("leave one out"), "{words:?}: {code} {err}");
    }
    for name in ["copy.db", "7701"] {
        assert!(!place.path().join(name).exists(), "{name} was made");
    }
}

#[test]
fn no_command_that_reads_makes_a_database() {
    let place = place();
    for command in ["dump", "check", "stat", "locks", "processes", "checkpoint", "keep", "compact"] {
        for words in [&[command, "no.db"][..], &["--db", "no.db", command]] {
            let (code, _, err) = place.run(words);
            assert!(code == 3 && err.contains("no.db: no such database"), "{words:?}: {code} {err}");
        }
    }
    for words in [&["backup", "no.db", "x.db"][..], &["salvage", "no.db", "x.db"]] {
        assert_eq!(place.run(words).0, 3, "{words:?}");
    }
    assert_eq!(place.run(&["--read-only", "--db", "no.db", "-e", "require('perilune').use()"]).0, 3);
    assert!(!place.path().join("no.db").exists());
}

#[test]
fn what_was_meant_is_said_where_a_word_is_no_database() {
    let place = place();
    let failing = |words: &[&str], wanted: i32, text: &str| {
        let (code, _, err) = place.run(words);
        assert!(code == wanted && err.contains(text), "{words:?}: {code} {err}");
    };
    failing(&["load", "few.txt"], 3, "perilune --db DB load few.txt");
    failing(&["serve", "7701"], 2, "--port 7701");
    failing(&["backup", "t.db"], 2, "and then the copy");
    failing(&["salvage", "t.db"], 2, "and then the new database");
    failing(&["--read-only", "load", "t.db", "few.txt"], 2, "`load` writes");
    assert_eq!(fs::read_to_string(place.path().join("few.txt")).unwrap(), FEW);
}

/// `perilune dump z.db out.txt` took out.txt for a global and ended well with an empty dump; `dump z.db -o z.db` wrote over
/// the database; `sql "SELECT 1"` made one of that name; a file of one line was an extract without nodes.
#[test]
fn a_wrong_word_never_ends_well() {
    let place = place();
    place.file("one line.txt", "a note");
    place.file("notes.txt", "a note\nand one more\n");
    let cases: [(&[&str], i32, &str); 18] = [
        (
            &["dump", "t.db", "out.txt"],
            2,
            "to write to a file: -o out.txt; `perilune stat t.db` lists its names",
        ),
        (&["dump", "t.db", "/tmp/out"], 2, "-o /tmp/out"),
        (&["dump", "t.db", "^a(1)", "^b"], 1, "t.db has no node ^b: `perilune stat t.db`"),
        (&["dump", "t.db", "-o", "t.db"], 2, "is a database"),
        (&["dump", "t.db", "--charset", "m"], 2, "--charset is for extracts: add --format zwr"),
        (&["dump", "t.db", "--format", "jsonl", "--label", "x"], 2, "--label is for extracts"),
        (&["load", "t.db", "few.txt", "--charset", "m"], 1, "few.txt is no extract: leave out --charset"),
        (&["load", "t.db", "t.db"], 1, "expected the date and ZWR"),
        (&["load", "t.db", "one line.txt"], 1, "expected the date and ZWR"),
        (&["load", "t.db", "notes.txt"], 1, "notes.txt:2:1: expected the date and ZWR"),
        (&["sql", "SELECT 1"], 2, "statements are given by -c"),
        (&["sql", "few.txt"], 3, "perilune --db DB sql <few.txt"),
        (&["sql", "t.db", "-c", "SELECT 1", "--mode", "csw"], 2, "csv"),
        (&["serve", "t.db", "7701"], 2, "--port 7701"),
        (&["serve", "few.txt"], 3, "few.txt.conf"),
        (&["t.db"], 2, "`perilune --db t.db` opens a session"),
        (&["--db", "t.db", "stat", "--watch", "2"], 2, "--watch=2"),
        (&["statt", "t.db"], 2, "did you mean `stat`"),
    ];
    for (words, wanted, text) in cases {
        let (code, out, err) = place.run(words);
        assert!(code == wanted && out.is_empty() && err.contains(text), "{words:?}: {code} {out}{err}");
    }
    let mut schema = place.command(&["sql", "t.db"]);
    schema.stdin(fs::File::open(place.file("schema.sql", ".schema nosuch\n")).unwrap());
    let (code, _, err) = told(schema.output().unwrap());
    assert!(code == 1 && err.contains(".tables"), "{code} {err}");
    assert_eq!(place.run(&["dump", "t.db", "a", "^a(2)"]).1, format!("{FEW}^a(2)=2\n"));
    assert_eq!(place.run(&["dump", "t.db", "-o", "few.txt"]).0, 0);
    assert_eq!(fs::read_to_string(place.path().join("few.txt")).unwrap(), FEW);
    assert!(!place.path().join("SELECT 1").exists());
}

/// With files that may only be read, in a directory where nothing can be made.
#[test]
fn who_may_only_read_reads() {
    let place = place();
    let (code, out, err) = place.run(&[
        "--read-only",
        "--db",
        "t.db",
        "-e",
        "print(require('perilune').use().node('^a')[2].__)",
    ]);
    assert_eq!((code, out.as_str()), (0, "2\n"), "{err}");
    let write =
        "local ok, e = pcall(function() require('perilune').use().node('^a').__ = 1 end) print(ok, e.code)";
    assert_eq!(place.run(&["--read-only", "--db", "t.db", "-e", write]).1, "false\tREAD_ONLY\n");
    assert_eq!(place.run(&["--read-only", "--db", "t.db", "dump"]).1, FEW);

    fs::set_permissions(place.path().join("t.db"), Permissions::from_mode(0o444)).unwrap();
    fs::set_permissions(place.path(), Permissions::from_mode(0o555)).unwrap();
    // Root may write everything: then without that right.
    let is_root = fs::File::options().write(true).open(place.path().join("t.db")).is_ok();
    let run = |words: &[&str]| {
        let program = env!("CARGO_BIN_EXE_perilune");
        let mut command = place.command_of(if is_root { "setpriv" } else { program });
        if is_root {
            command.args(["--bounding-set=-dac_override,-dac_read_search", program]);
        }
        told(command.args(words).output().expect("it starts"))
    };
    for command in ["dump", "check", "stat"] {
        let (code, out, err) = run(&["--db", "t.db", command]);
        assert_eq!(code, 0, "{command}: {out}{err}");
    }
    let (code, _, err) = run(&["--db", "t.db", "-e", "require('perilune').use()"]);
    assert!(code == 3 && err.contains("--read-only"), "{code} {err}");
    let (code, _, err) = run(&["--db", "t.db", "backup", "/tmp/never-made.db"]);
    assert!(code == 3 && err.contains("salvage"), "{code} {err}");
    let new = std::env::temp_dir().join(format!("perilune-cli-read-{}.db", std::process::id()));
    let (code, out, err) = run(&["--db", "t.db", "salvage", new.to_str().unwrap()]);
    assert_eq!(code, 0, "{out}{err}");
    for end in ["", "-shm"] {
        let _ = fs::remove_file(format!("{}{end}", new.display()));
    }
    fs::set_permissions(place.path(), Permissions::from_mode(0o755)).unwrap();
}
