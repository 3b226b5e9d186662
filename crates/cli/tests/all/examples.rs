//! Every example runs in the program, with its own database, and leaves nothing in it.

use std::fs;
use std::path::{Path, PathBuf};

use crate::program::Place;

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples")
}

/// What an example prints, among other things.
fn expected(name: &str) -> &'static str {
    match name {
        "cache.lua" => "144\tcomputed\n144\tfound\n",
        "collatz.lua" => "n=1000 procs=3 longest=178 highest=250504 stored=2227 ",
        "counters.lua" => "/about\t10\t2026-01-01=5 2026-01-02=5\n",
        "csv_import.lua" => "2\tGrace\t85\tArlington, \"VA\"\n",
        "fork.lua" => "workers\t3\trequests\t100\n",
        "job_queue.lua" => "left\t0\t0\n",
        "leaderboard.lua" => "player0 550, player9 540, player8 530\n",
        "order.lua" => "rolled back\n0\t0\tnone\ncommitted\n1\t1\t2\n7\tpaper\n",
        "sessions.lua" => "expired\t2\n",
        "tour.lua" => "older\t38\n",
        _ => panic!("{name} is new: say here what it prints, and describe it in examples/README.md"),
    }
}

#[test]
fn every_example_runs_and_cleans_up() {
    let readme = fs::read_to_string(examples().join("README.md")).expect("examples/README.md");
    let mut count = 0;
    for entry in fs::read_dir(examples()).expect("examples") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        if path.extension().is_none_or(|suffix| suffix != "lua") {
            continue;
        }
        count += 1;
        assert!(readme.contains(&format!("[{name}]({name})")), "{name} is not in examples/README.md");
        let place = Place::new();
        let script = path.to_str().expect("UTF-8");
        let mut words = vec!["--db", "t.db", script];
        if name == "collatz.lua" {
            words.extend(["--n", "1000", "--procs", "3", "--block", "50"]);
        }
        let (code, out, err) = place.run(&words);
        assert_eq!((code, err.as_str()), (0, ""), "{name}: {out}");
        assert!(out.contains(expected(&name)), "{name}: {out}");
        if place.path().join("t.db").exists() {
            // The number of a schema, which every process compares, is never taken back.
            let left =
                "for name in require('perilune').use():names() do if name ~= '^sql' then print(name) end end";
            assert_eq!(place.run(&["--db", "t.db", "-e", left]).1, "", "{name} left something");
        }
    }
    assert_eq!(count, 10, "every kind of example is there");
}
