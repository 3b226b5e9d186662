//! A script that uses the database changes nothing about signals: seen by strace.

use std::fs;
use std::process::Command;

use crate::program::Place;

/// What reads, writes, waits, locks and runs a transaction.
const SCRIPT: &str = "local perilune = require 'perilune'
local db = perilune.open('signals.db')
local n = db.node('^n')
n.a.b.__ = 1
db:transaction(function() n.a.b:incr() end)
n:grab() n:release()
n.a:wait(0.01)
for _ in n:subscripts() do end
n:settree {1, 2, {3}} n:gettree() n:kill()
db:close()
";

/// The calls of `rt_sigaction`, those of `rt_sigprocmask` and the threads made while `script` runs.
fn calls(place: &Place, script: &str) -> (Vec<String>, usize, usize) {
    let file = place.file("script.lua", script);
    let mut command = Command::new("strace");
    command.args(["-f", "-qq", "-e", "trace=rt_sigaction,rt_sigprocmask,clone,clone3", "-o", "trace.txt"]);
    command.arg(env!("CARGO_BIN_EXE_perilune")).args(["run", "script.lua"]).current_dir(place.path());
    command.env_remove("PERILUNE_DB").env("HOME", place.path());
    let status = command.status().expect("strace is needed: apt-get install strace");
    assert!(status.success(), "{} under strace: {status}", file.display());
    let trace = fs::read_to_string(place.path().join("trace.txt")).expect("the trace");
    let count = |name: &str| trace.lines().filter(|line| line.contains(name)).count();
    // NB: SIGRT_1 is the C library's own, for setuid() in programs with threads.
    let counts = |line: &&str| line.contains("rt_sigaction(") && !line.contains("(SIGRT_1,");
    let actions = trace.lines().filter(counts);
    // The signal's name only: addresses differ from run to run.
    let named = |line: &str| {
        line.split_once('(').and_then(|(_, rest)| rest.split_once(',')).map(|(name, _)| name.to_owned())
    };
    let actions = actions.filter_map(named);
    (actions.collect(), count("rt_sigprocmask("), count("CLONE_THREAD"))
}

#[test]
fn a_database_sets_no_handler_and_blocks_no_signal() {
    let place = Place::new();
    let (bare_actions, bare_masks, bare_threads) = calls(&place, "");
    let (actions, masks, threads) = calls(&place, SCRIPT);
    assert_eq!(actions, bare_actions);
    // NB: the C library blocks all signals while it makes a thread, and so does this library, for the thread to start so:
    // handlers run where the program expects them.
    let allowed = bare_masks + 7 * (threads - bare_threads);
    assert!(masks <= allowed, "{masks} changes of the mask, {allowed} allowed for {threads} threads");
}

#[test]
fn the_trace_shows_what_it_should() {
    let place = Place::new();
    let block = "local ffi = require 'ffi'
        ffi.cdef 'int sigprocmask(int, const void *, void *); void *signal(int, void *);'
        ffi.C.sigprocmask(0, ffi.new('char[128]'), nil)
        ffi.C.signal(10, nil)";
    let (bare_actions, bare_masks, _) = calls(&place, "");
    let (actions, masks, _) = calls(&place, block);
    assert_eq!((actions.len(), masks), (bare_actions.len() + 1, bare_masks + 1));
}
