//! `keep`: it flushes what the dead have left, and ends cleanly when it is told to.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use crate::program::Place;

/// Starts it, and returns when the database is kept.
fn keep(place: &Place, name: &str) -> Child {
    let mut keeper = place.command(&["keep", name]).stdout(Stdio::piped()).spawn().expect("it starts");
    let mut line = String::new();
    BufReader::new(keeper.stdout.as_mut().expect("its output")).read_line(&mut line).expect("a line");
    assert!(line.starts_with("keeping ") && line.contains(name), "{line}");
    keeper
}

fn tell(child: &Child, signal: &str) {
    let sent = Command::new("kill").args([signal, &child.id().to_string()]).status().expect("kill");
    assert!(sent.success());
}

/// Nodes below ^a that a database has.
fn count(place: &Place, name: &str) -> u64 {
    let code = "local n = 0; for _ in require('perilune').node('^a'):subscripts() do n = n + 1 end print(n)";
    let (code, out, error) = place.run(&["--db", name, "-e", code]);
    assert_eq!(code, 0, "{error}");
    out.trim().parse().expect("a number")
}

/// Removes the files whose names begin so.
fn remove(place: &Place, begin: &str) {
    for file in fs::read_dir(place.path()).expect("the place").map(|file| file.expect("a name")) {
        if file.file_name().to_str().is_some_and(|name| name.starts_with(begin)) {
            fs::remove_file(file.path()).expect("a file");
        }
    }
}

/// What the files of k.db have without the memory that goes with them.
fn count_in_files(place: &Place) -> u64 {
    remove(place, "c.db");
    for file in fs::read_dir(place.path()).expect("the place").map(|file| file.expect("a name")) {
        let name = file.file_name().into_string().expect("UTF-8");
        if let Some(rest) = name.strip_prefix("k.db").filter(|rest| *rest != "-shm") {
            fs::copy(file.path(), place.path().join(format!("c.db{rest}"))).expect("a copy");
        }
    }
    count(place, "c.db")
}

#[test]
fn what_the_killed_have_written_is_flushed_and_a_signal_closes_the_database() {
    let place = Place::new();
    for signal in ["-TERM", "-INT", "-HUP"] {
        assert_eq!(place.run(&["--db", "k.db", "-e", "require('perilune').node('^a').__ = 1"]).0, 0);
        let mut keeper = keep(&place, "k.db");
        let script = "local perilune = require 'perilune'
            for i = 1, 500 do perilune.node('^a')[i].__ = i end
            io.stdout:write('written\\n') io.stdout:flush() io.read()";
        let mut writer = place.command(&["--db", "k.db", "-e", script]);
        let mut writer = writer.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
        let mut line = String::new();
        BufReader::new(writer.stdout.as_mut().expect("its output")).read_line(&mut line).expect("a line");
        assert_eq!(line, "written\n");
        writer.kill().expect("it is there");
        writer.wait().expect("it ends");
        while count_in_files(&place) < 500 {
            assert!(keeper.try_wait().expect("its state").is_none(), "it has ended by itself");
        }
        tell(&keeper, signal);
        assert_eq!(keeper.wait().expect("it ends").code(), Some(0), "{signal}");
        // Closed, the file has everything by itself.
        remove(&place, "k.db-");
        assert_eq!(count(&place, "k.db"), 500, "{signal}");
        remove(&place, "k.db");
    }
}

#[test]
fn there_is_nothing_to_keep_of_a_database_that_is_not_there() {
    let place = Place::new();
    let (code, _, error) = place.run(&["keep", "missing.db"]);
    assert_eq!(code, 3, "{error}");
    assert!(error.contains("missing.db"), "{error}");
}
