//! The tree's functions in programs in C: see `functions.c`.

mod support;

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;

use support::{artefact, compiler, run, Directory};

const CASES: [&str; 10] =
    ["kinds", "lazy", "forked", "handlers", "blocked", "threads", "stacks", "starved", "unloaded", "copied"];

/// Seconds that one case may take; an endless loop takes five, and the machine may have other things to do.
const SECONDS: &str = "120";

/// Side by side, since most of their time is that of endless loops.
#[test]
fn functions_of_the_tree_are_guests_in_the_process() {
    let directory = Directory::new("functions");
    let (program, library) = (directory.0.join("functions"), artefact("libperilune_capi.a"));
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/functions.c");
    let mut cc = compiler("cc", "-std=gnu99");
    cc.arg(source).arg("-o").arg(&program).arg(library).args(["-lpthread", "-ldl", "-lm", "-lrt"]);
    run(&mut cc);
    let shared = artefact("libperilune_capi.so");
    let copy = directory.0.join("copy.so");
    fs::copy(&shared, &copy).expect("the library can be copied");
    let good = |case: &str| {
        let mut command = Command::new("timeout");
        command.arg(SECONDS).arg(&program).arg(case).arg(directory.0.join(case).with_extension("db"));
        let output = run(command.args([&shared, &copy]));
        assert_eq!(String::from_utf8_lossy(&output.stdout), "good\n", "{case}");
    };
    thread::scope(|scope| {
        for case in CASES {
            let good = &good;
            scope.spawn(move || good(case));
        }
    });
}
