//! Runs the suite as a user does, small: processes, checks, rows, the directory of a run.

mod program;

use std::fs;
use std::process::Output;

use program::{bench as perilune_bench, scratch, text, Scratch};

fn bench(scratch: &Scratch, arguments: &[&str]) -> Output {
    let mut command = perilune_bench(&["engine", "--quick", "--rounds", "2", "--milliseconds", "2", "--dir"]);
    command.arg(&scratch.0);
    command.args(arguments).output().unwrap()
}

#[test]
fn a_small_run_leaves_rows_tables_and_nothing_else() {
    let scratch = scratch("run");
    let run = scratch.0.join("run");
    let run_text = run.to_str().unwrap();
    let output = bench(
        &scratch,
        &["--keys", "1k", "--only", "get,set,transfer", "--peers", "redb,btreemap", "--run-dir", run_text],
    );
    let text = text(&output);
    assert!(output.status.success(), "{text}");
    assert!(text.contains("0 sides wrong"), "{text}");
    let raw = fs::read_to_string(run.join("raw.jsonl")).unwrap();
    // get, get-snapshot, get-same, get-leaf, set and transfer by one process, two sides, two rounds.
    assert_eq!(raw.lines().count(), 6 * 2 * 2, "{raw}");
    for key in
        ["suite", "workload", "backend", "class", "keys", "procs", "round", "unit", "value", "cpu_seconds"]
    {
        assert!(raw.lines().all(|line| line.contains(&format!("\"{key}\":"))), "{key} in\n{raw}");
    }
    assert!(fs::read_to_string(run.join("summary.md")).unwrap().contains("| get | 1k | 1 | ns/op |"));
    assert!(fs::read_to_string(run.join("README.md")).unwrap().contains("--peers redb,btreemap"));
    let left: Vec<_> = fs::read_dir(&scratch.0).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["run"]);
    let again = bench(&scratch, &["--only", "lock", "--run-dir", run_text]);
    assert_eq!(again.status.code(), Some(3), "a run is never overwritten");
}

#[test]
fn durability_is_measured_and_leaves_nothing() {
    let scratch = scratch("durability");
    let json = scratch.0.join("rows");
    let sections = "commits,recovery,reopen,load";
    let mut command =
        perilune_bench(&["durability", "--quick", "--rounds", "1", "--only", sections, "--dir"]);
    let output = command.arg(&scratch.0).arg("--json").arg(&json).output().unwrap();
    let text = text(&output);
    assert!(output.status.success(), "{text}");
    let rows = fs::read_to_string(&json).unwrap();
    for part in ["\"commit\"", "\"disk-again\"", "\"reopen\"", "\"load-batch\"", "\"recovery-small\""] {
        assert!(rows.contains(part), "{part} in\n{rows}");
    }
    assert!(rows.lines().all(|line| line.contains("\"suite\":\"durability\"")), "{rows}");
    let left: Vec<_> = fs::read_dir(&scratch.0).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["rows"]);
}

#[test]
fn what_cannot_be_run_is_said() {
    let scratch = scratch("wrong");
    for (arguments, part) in [
        (["--only", "nothing"], "no workload"),
        (["--peers", "oracle"], "no peer"),
        (["--keys", "1q"], "no size"),
    ] {
        let output = bench(&scratch, &arguments);
        let error = text(&output);
        assert!(!output.status.success() && error.contains(part), "{arguments:?}: {error}");
    }
}
