//! The instruments of the comparison: do they see what is there, and only that?

use super::*;
use crate::statistics::paired;

fn wish(peers: &[&str]) -> Wish {
    Wish {
        full: false,
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
        let lines = std::fs::read_to_string(&path).unwrap().lines().count();
        let shared = path.ends_with("mod.rs") || path.ends_with("resp.rs");
        // Ours shows all that a mapping can have.
        let most = if path.ends_with("perilune.rs") { 175 } else { 150 };
        assert!(shared || lines <= most, "{}: {lines} lines", path.display());
    }
}

#[test]
fn the_same_side_twice_has_one_in_its_interval() {
    let rows = [100.0, 104.0, 97.0, 101.0, 99.0];
    let again = [98.0, 103.0, 102.0, 96.0, 100.0];
    let found = paired(&rows, &again);
    assert!(found.low <= 1.0 && 1.0 <= found.high, "{found:?}");
}
