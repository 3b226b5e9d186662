//! Tests of the comparison's instruments: do they see what is there, and only that?

use super::*;
use crate::statistics::paired;

fn wish(peers: &[&str]) -> Wish {
    Wish {
        full: false,
        quick: false,
        only: vec!["sequence".to_owned()],
        classes: vec![Class::D4],
        peers: peers.iter().map(|name| (*name).to_owned()).collect(),
        processes: vec![1],
        rounds: 5,
        seconds: 0.01,
        n: 1_000,
        nodes: 1_000,
        servers: Vec::new(),
        directory: std::env::temp_dir(),
        record: None,
    }
}

#[test]
fn every_goal_has_its_cell() {
    let cells = cells::all();
    for goal in goals::GOALS {
        assert!(cells.iter().any(|cell| goal.class == cell.class.name()), "{}", goal.text);
    }
    assert!(chosen(&wish(&[])).iter().all(|cell| cell.name == "sequence"));
}

#[test]
fn no_file_of_a_peer_is_long() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/peers/subjects");
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        // The table of a library's functions is its header's text, not ours.
        let table =
            text.split_once("\nlibrary! {").map_or("", |(_, rest)| rest.split("\n}\n").next().unwrap());
        let lines = text.lines().count() - table.lines().count();
        // Ours shows all that a mapping can have, and is no peer.
        let most = if path.ends_with("perilune.rs") { 175 } else { 150 };
        assert!(path.ends_with("mod.rs") || lines <= most, "{}: {lines} lines", path.display());
    }
}

/// What is beside the files of `subjects`: of each library of C that has one, a file that is named here.
#[test]
fn a_peer_has_no_other_file_than_its_own() {
    let peers = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/peers");
    let mut found: Vec<String> = Vec::new();
    for directory in ["", "lmdb", "sqlite"] {
        for entry in std::fs::read_dir(peers.join(directory)).unwrap() {
            let path = entry.unwrap().path();
            if path.is_file() {
                found.push(path.strip_prefix(&peers).unwrap().display().to_string());
            }
        }
    }
    found.sort_unstable();
    let engine = ["btree.rs", "perilune.rs", "redb.rs"];
    let libraries =
        ["bdb.rs", "lmdb/library.rs", "lmdb/mod.rs", "lmdb/ordered.rs", "sqlite/library.rs", "sqlite/mod.rs"];
    let shared = ["library.rs", "mod.rs", "tests.rs"];
    let mut wanted: Vec<String> =
        engine.iter().chain(&libraries).chain(&shared).map(|name| (*name).to_owned()).collect();
    wanted.sort_unstable();
    assert_eq!(found, wanted, "a peer is one file in subjects");
}

/// The guide shows the example as it is; that it is right is shown by `bench/tests/run.rs`.
#[test]
fn the_guide_shows_the_example() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let guide = std::fs::read_to_string(root.join("../docs/guide/add-a-peer.md")).unwrap();
    let example = std::fs::read_to_string(root.join("src/peers/subjects/example.rs")).unwrap();
    assert!(
        guide.contains(&format!("```rust\n{example}```\n")),
        "docs/guide/add-a-peer.md is behind example.rs"
    );
}

#[test]
fn the_same_side_twice_has_one_in_its_interval() {
    let rows = [100.0, 104.0, 97.0, 101.0, 99.0];
    let again = [98.0, 103.0, 102.0, 96.0, 100.0];
    let found = paired(&rows, &again);
    assert!(found.low <= 1.0 && 1.0 <= found.high, "{found:?}");
}
