//! `perilune graph`: files go in whole or not at all, are walked, drawn and checked, and come out over nothing that is there.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::program::{told, Place};

/// A place with the files of the guide.
fn place() -> Place {
    let place = Place::new();
    for name in ["airports.csv", "routes.csv"] {
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/graph").join(name);
        fs::copy(from, place.path().join(name)).expect("a file of the example");
    }
    place
}

fn graph(place: &Place, words: &[&str]) -> (i32, String, String) {
    place.run(&[&["graph"], words].concat())
}

/// Each block of commands in the guide, run as it stands there, prints the block of text behind it.
#[test]
fn the_guide_prints_what_it_says() {
    let page = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/graphs.md"));
    let page = page.expect("the page");
    let place = place();
    let program = Path::new(env!("CARGO_BIN_EXE_perilune")).parent().expect("a directory");
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap_or_default());
    let mut count = 0;
    for block in page.split("```sh\n").skip(1) {
        let (commands, behind) = block.split_once("```").expect("its end");
        let expected = behind
            .trim_start()
            .strip_prefix("```text\n")
            .map_or("", |text| text.split_once("```").expect("its end").0);
        let mut shell: Command = place.command_of("sh");
        let (code, out, err) =
            told(shell.args(["-ec", commands]).env("PATH", &path).output().expect("sh starts"));
        // How long an import takes differs from run to run.
        let mut out: String =
            out.lines().map(|line| line.split(" in 0.").next().unwrap_or("").to_owned() + "\n").collect();
        if expected.is_empty() {
            out.clear();
        }
        assert_eq!((code, out.as_str(), err.as_str()), (0, expected, ""), "{commands}");
        count += 1;
    }
    assert!(count >= 8, "{count} blocks");
    let picture = fs::read(place.path().join("ams.png")).expect("the picture");
    assert!(picture.starts_with(b"\x89PNG") && picture.len() > 10_000, "{}", picture.len());
    let drawn = fs::read_to_string(place.path().join("ams.svg")).expect("the picture");
    for part in ["Amsterdam", "FLIES", "TRAIN", "prefers-color-scheme: dark"] {
        assert!(drawn.contains(part), "{part}");
    }
}

#[test]
fn a_wrong_file_changes_nothing_and_makes_no_database() {
    let place = place();
    let mut routes = fs::read_to_string(place.path().join("routes.csv")).unwrap();
    routes.extend((0..2_000).map(|at| format!("AMS,FLIES,X{at},1\n")));
    place.file("long.csv", &(routes + "AMS,,LHR,1\n"));
    let words = ["import", "air.db", "^air", "--vertices", "airports.csv", "--edges", "long.csv"];
    let (code, out, err) = graph(&place, &words);
    assert_eq!((code, out.as_str()), (1, ""), "{err}");
    assert!(
        err.contains("long.csv: line 2044: a type of edges") && err.contains("nothing was imported"),
        "{err}"
    );
    let (code, _, err) = graph(&place, &["import", "air.db", "^air", "--edges", "none.csv"]);
    assert!(code == 3 && err.contains("none.csv"), "{err}");
    for words in
        [&["import", "air.db", "^air"][..], &["import", "air.db", "^air", "--edges", "-", "--vertices", "-"]]
    {
        assert_eq!(graph(&place, words).0, 2);
    }
    assert!(!place.path().join("air.db").exists());
    // Nor does a graph that is there get any of it.
    assert_eq!(graph(&place, &["create", "air.db", "^air", "--weight", "km"]).0, 0);
    assert_eq!(graph(&place, &words).0, 1);
    assert_eq!(graph(&place, &["check", "air.db", "^air"]).1, "^air: 0 vertices, 0 edges, sound\n");
    let (code, _, err) =
        graph(&place, &["import", "air.db", "^air", "--edges", "routes.csv", "--weight", "m"]);
    assert!(code == 2 && err.contains("has `km` as weight"), "{err}");
}

#[test]
fn files_come_by_pipes_and_as_json_lines() {
    let place = place();
    let text = "{\"id\":1,\"labels\":[\"Person\"],\"name\":\"Ada\"}\n{\"id\":2,\"name\":\"Ben\"}\n";
    place.file("people.jsonl", text);
    let mut child = place
        .command(&["--db", "t.db", "graph", "import", "^g", "--vertices", "people.jsonl", "--edges", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let edges =
        b"{\"source\":1,\"type\":\"KNOWS\",\"target\":2}\n{\"source\":2,\"type\":\"KNOWS\",\"target\":-3}\n";
    child.stdin.take().unwrap().write_all(edges).unwrap();
    let (code, out, err) = told(child.wait_with_output().unwrap());
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(out.contains("people.jsonl: 2 vertices") && out.contains("(standard input): 2 edges"), "{out}");
    // Twice is no harm for vertices.
    assert_eq!(place.run(&["--db", "t.db", "graph", "import", "^g", "--vertices", "people.jsonl"]).0, 0);
    let (code, out, err) =
        graph(&place, &["walk", "t.db", "^g", "--from", "-3", "--direction", "both", "--depth", "2..2"]);
    assert_eq!((code, out.as_str()), (0, "-3<-[KNOWS]-2<-[KNOWS]-1\n"), "{err}");
    let (_, out, _) = graph(&place, &["stat", "t.db", "^g", "--json"]);
    for part in ["\"vertices\":3", "\"labels\":{\"Person\":1}", "\"types\":{\"KNOWS\":2}", "\"weight\":null"]
    {
        assert!(out.contains(part), "{part} in {out}");
    }
}

#[test]
fn what_is_written_is_written_over_nothing() {
    let place = place();
    let import = ["import", "air.db", "^air", "--vertices", "airports.csv", "--edges", "routes.csv"];
    assert_eq!(graph(&place, &import).0, 0);
    place.file("kept.dot", "kept");
    let (code, _, err) = graph(&place, &["export", "air.db", "^air", "-o", "kept.dot"]);
    assert!(code == 2 && err.contains("--force"), "{err}");
    let draw = ["draw", "air.db", "^air", "--from", "AMS", "--svg", "kept.dot"];
    assert_eq!(graph(&place, &draw).0, 2);
    assert_eq!(fs::read_to_string(place.path().join("kept.dot")).unwrap(), "kept");
    assert_eq!(graph(&place, &["export", "air.db", "^air", "-o", "kept.dot", "--force"]).0, 0);
    assert!(fs::read_to_string(place.path().join("kept.dot")).unwrap().starts_with("digraph"));
    let (code, _, err) = graph(&place, &["export", "air.db", "^air", "-o", "air.db", "--force"]);
    assert!(code == 2 && err.contains("is a database"), "{err}");
    for (name, begins) in [("a.graphml", "<?xml"), ("a.json", "{\"vertices\":["), ("a.gv", "digraph")] {
        assert_eq!(graph(&place, &["export", "air.db", "^air", "-o", name]).0, 0);
        assert!(fs::read_to_string(place.path().join(name)).unwrap().starts_with(begins), "{name}");
    }
    assert!(graph(&place, &["export", "air.db", "^air", "--format", "json"]).1.contains("\"Sao Paulo\""));
    let names: Vec<_> = fs::read_dir(place.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(names.iter().all(|name| !name.to_string_lossy().ends_with(".new")), "{names:?}");
}

#[test]
fn what_is_not_there_is_told_and_not_made() {
    let place = place();
    for words in [
        &["check", "no.db", "^g"][..],
        &["stat", "no.db", "^g"],
        &["export", "no.db", "^g"],
        &["walk", "no.db", "^g", "--from", "1"],
        &["path", "no.db", "^g", "--from", "1", "--to", "2"],
        &["draw", "no.db", "^g", "--from", "1", "--svg", "x.svg"],
    ] {
        let (code, _, err) = graph(&place, words);
        assert!(code == 3 && err.contains("no.db: no such database"), "{words:?}: {code} {err}");
    }
    assert!(!place.path().join("no.db").exists() && !place.path().join("x.svg").exists());
    assert_eq!(place.run(&["--read-only", "graph", "create", "no.db", "^g"]).0, 2);
    assert_eq!(graph(&place, &["create", "t.db", "^g"]).0, 0);
    let path = ["path", "t.db", "^g", "--from", "1", "--to", "2"];
    let (code, _, err) = graph(&place, &path);
    assert!(code == 1 && err.contains("no vertex 1"), "{err}");
    assert_eq!(graph(&place, &["create", "t.db", "g"]).0, 2);
    let (code, _, err) = place.run(&["--db", "t.db", "graph", "stat", "other.db", "^g"]);
    assert!(code == 2 && err.contains("leave one out"), "{err}");
    let (code, _, err) = graph(&place, &["stat", "t.db", "^h"]);
    assert!(code == 1 && err.contains("no graph lies at ^h"), "{err}");
    place.file("two.csv", "source,type,target\n1,R,3\n2,R,3\n");
    assert_eq!(graph(&place, &["import", "t.db", "^g", "--edges", "two.csv"]).0, 0);
    let (code, out, err) = graph(&place, &path);
    assert!(code == 1 && out.is_empty() && err.contains("no path from 1 to 2"), "{err}");
    assert_eq!(graph(&place, &[&path[..], &["--direction", "both"]].concat()).1, "1-[R]->3<-[R]-2 (2)\n");
    let (code, _, err) = graph(&place, &[&path[..], &["--cheapest"]].concat());
    assert!(code == 2 && err.contains("--weight"), "{err}");
    // Reading needs no permission to write; a graph that is damaged is found.
    let (code, out, err) = place.run(&["--read-only", "graph", "check", "t.db", "^g"]);
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    assert_eq!(
        place
            .run(&["--db", "t.db", "-e", "require('perilune').use().node('^g')['in'][3].R[1][1]:delete()"])
            .0,
        0
    );
    let (code, out, err) = graph(&place, &["check", "t.db", "^g"]);
    assert!(
        code == 1 && out.contains("^g(\"in\",3,\"R\",1,1)") && err.contains("fault"),
        "{code} {out} {err}"
    );
}
