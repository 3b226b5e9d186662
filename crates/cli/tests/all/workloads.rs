//! `bench lua`: every workload has its rows, whatever the Lua can do.

use std::collections::BTreeMap;
use std::fs;

use crate::program::Place;

fn rows(place: &Place, name: &str) -> BTreeMap<String, Vec<serde_json::Value>> {
    let mut rows = BTreeMap::<String, Vec<_>>::new();
    for line in fs::read_to_string(place.path().join(name)).expect("rows").lines() {
        let row: serde_json::Value = serde_json::from_str(line).expect("JSON");
        rows.entry(row["workload"].as_str().expect("a name").to_owned()).or_default().push(row);
    }
    rows
}

#[test]
fn every_workload_is_measured_each_round() {
    let place = Place::new();
    let (code, out, err) =
        place.run(&["bench", "lua", "--rounds", "2", "--json", "r.jsonl", "--chart", "c.svg"]);
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    let rows = rows(&place, "r.jsonl");
    // Without libcrypto three rows are left out, and that is said.
    let left_out = out.matches("left out: sha512-c").count();
    assert_eq!(rows.len() + left_out, 35, "{out}");
    for (name, rows) in &rows {
        assert!(out.contains(&format!("{name} ")), "{name} is in the table: {out}");
        assert_eq!(rows.iter().map(|row| row["round"].as_u64()).collect::<Vec<_>>(), [Some(1), Some(2)]);
        for row in rows {
            assert_eq!((row["suite"].as_str(), row["class"].as_str()), (Some("lua"), Some("D4")), "{row}");
            assert!(row["lua"].as_str().is_some_and(|lua| lua.starts_with("LuaJIT")), "{row}");
            assert!(row["unit"].is_string() && row["value"].as_f64() >= Some(0.0), "{row}");
        }
    }
    assert_eq!(rows["signals"][0]["value"].as_f64(), Some(0.0));
    assert!(rows["^BCAT-pairs"][1]["value"].as_f64() > Some(0.0));
    assert!(out.contains("i7-8565U") && out.contains("node-26"), "{out}");
    assert!(fs::read_to_string(place.path().join("c.svg")).expect("a chart").contains("</svg>"));
    assert!(fs::read(place.path().join("c.png")).expect("a picture").starts_with(b"\x89PNG"));
}

#[test]
fn a_lua_that_cannot_run_them_is_named() {
    let place = Place::new();
    let (code, _, err) = place.run(&["bench", "lua", "--rounds", "1", "--lua", "/missing/lua"]);
    assert_eq!(code, 3, "{err}");
    assert!(err.contains("cannot start \"/missing/lua\""), "{err}");
    let (code, _, err) = place.run(&["bench", "lua", "--rounds", "1", "--lua", "/bin/false"]);
    assert_eq!(code, 3, "{err}");
    assert!(err.contains("the process that runs the workloads failed"), "{err}");
    let (code, _, err) = place.run(&["bench", "lua", "--chart", "c.png"]);
    assert_eq!(code, 2, "{err}");
}
