//! Ctrl-C in a benchmark leaves nothing behind, though no signal is handled.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use crate::program::Place;

/// The directory of the database was left in /tmp when the program was interrupted.
#[test]
fn a_benchmark_that_is_interrupted_or_killed_removes_its_directory() {
    for signal in ["-INT", "-KILL"] {
        let place = Place::new();
        let mut child = place
            .command(&["bench", "collatz", "--n", "1000000000", "--procs", "2"])
            .env("TMPDIR", place.path())
            .process_group(0)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let mut lines = BufReader::new(child.stdout.take().expect("its output")).lines();
        let first = lines.next().expect("a line").expect("it is read");
        assert!(first.starts_with("3n+1 for"), "{first}");
        assert_eq!(fs::read_dir(place.path()).expect("the directory").count(), 1);
        // To the group, as the terminal does.
        let group = format!("-{}", child.id());
        let sent = Command::new("kill").args([signal, "--", &group]).status().expect("kill runs");
        assert!(sent.success());
        child.wait().expect("it ends");
        // All who hold this pipe have ended when it does: also the one that removes the directory.
        let mut rest = String::new();
        child.stderr.take().expect("its errors").read_to_string(&mut rest).expect("text");
        assert_eq!(fs::read_dir(place.path()).expect("the directory").count(), 0, "{signal} {rest}");
    }
}
