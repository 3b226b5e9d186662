//! `bench collatz`: real processes, checked results, rows and drawings.

use std::fs;

use crate::program::Place;

#[test]
fn processes_find_what_is_expected_and_say_so() {
    let place = Place::new();
    let words = ["bench", "collatz", "--n", "1000", "--procs", "1,2", "--json", "r.jsonl"];
    let (code, out, err) = place.run(&[&words[..], &["--chart", "c.svg", "--tree", "t.svg"]].concat());
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    assert!(out.contains("as expected"), "{out}");
    let rows = fs::read_to_string(place.path().join("r.jsonl")).expect("rows");
    let rows: Vec<serde_json::Value> =
        rows.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(rows.len(), 2);
    for (row, procs) in rows.iter().zip([1, 2]) {
        let found = ["procs", "n", "longest", "highest", "stored"].map(|key| row[key].as_u64());
        assert_eq!(found, [procs, 1000, 178, 250_504, 2227].map(Some), "{row}");
        assert_eq!(row["backend"], "perilune");
        assert!(row["lua"].as_str().is_some_and(|lua| lua.starts_with("LuaJIT")), "{row}");
        assert!(row["seconds"].as_f64() > Some(0.0) && row["cpu_seconds"].as_f64() > Some(0.0), "{row}");
        assert!(row["ops_per_second"].as_f64() > Some(0.0), "{row}");
    }
    assert_eq!((rows[0]["reads"].as_u64(), rows[0]["updates"].as_u64()), (Some(4522), Some(2255)));
    assert!(fs::read_to_string(place.path().join("c.svg")).expect("a chart").contains("</svg>"));
    assert!(fs::read(place.path().join("c.png")).expect("a picture").starts_with(b"\x89PNG"));
    assert!(fs::read_to_string(place.path().join("t.svg")).expect("a tree").contains("<path"));
}

#[test]
fn the_smallest_and_an_unlisted_n_run() {
    let place = Place::new();
    let (code, out, err) = place.run(&["bench", "collatz", "--n", "1", "--procs", "1"]);
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    assert!(out.contains("not checked"), "{out}");
    let (code, out, _) = place.run(&["bench", "collatz", "--n", "2", "--procs", "3", "--block", "1"]);
    assert_eq!(code, 0, "{out}");
    assert!(out.contains("as expected"), "{out}");
}

#[test]
fn rounds_take_turns_and_have_medians() {
    let place = Place::new();
    let words = ["bench", "collatz", "--n", "100", "--procs", "1,2", "--rounds", "2", "--json", "r.jsonl"];
    let (code, out, err) = place.run(&words);
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    assert_eq!(out.matches("median: ").count(), 2, "{out}");
    let rows = fs::read_to_string(place.path().join("r.jsonl")).expect("rows");
    let rows: Vec<_> = rows
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).expect("JSON"))
        .map(|row| (row["procs"].as_u64(), row["round"].as_u64()))
        .collect();
    let expected = [(1, 1), (2, 1), (1, 2), (2, 2)];
    assert_eq!(rows, expected.map(|(procs, round)| (Some(procs), Some(round))));
}

#[test]
fn a_named_database_is_kept_and_one_of_the_environment_is_not_touched() {
    let place = Place::new();
    let words = ["bench", "collatz", "--n", "100", "--procs", "2"];
    let (code, out, _) = place.run(&[&["--db", "kept.db"], &words[..]].concat());
    assert_eq!(code, 0, "{out}");
    let (_, out, _) = place.run(&["--db", "kept.db", "-e", "print(require('perilune').node('^longest').__)"]);
    assert_eq!(out, "118\n");
    let output = place.command(&words).env("PERILUNE_DB", "own.db").output().expect("the program starts");
    assert!(output.status.success());
    assert!(!place.path().join("own.db").exists());
}

#[test]
fn processes_that_fail_end_the_run() {
    let place = Place::new();
    let (code, _, err) =
        place.run(&["bench", "collatz", "--n", "100", "--procs", "2", "--lua", "/missing/lua"]);
    assert_eq!(code, 3, "{err}");
    assert!(err.contains("cannot start \"/missing/lua\""), "{err}");
    let (code, _, err) =
        place.run(&["bench", "collatz", "--n", "100", "--procs", "2", "--lua", "/bin/false"]);
    assert_eq!(code, 3, "{err}");
    assert!(err.contains("of 2 failed"), "{err}");
}
