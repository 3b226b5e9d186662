//! What an operator asks of a database that others use: figures, locks, processes, the library's log.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Stdio};

use crate::program::{told, Place};
use serde_json::Value;

/// A process with the script's text, once it has printed a line; it goes on when its input is written to.
fn start(place: &Place, code: &str) -> Child {
    let mut child = place
        .command(&["--db", "t.db", "-e", code])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().expect("piped")).read_line(&mut line).expect("it tells");
    assert_eq!(line, "ready\n");
    child
}

fn json(place: &Place, words: &[&str]) -> Value {
    let (code, out, err) = place.run(words);
    assert_eq!((code, err.as_str()), (0, ""), "{words:?}");
    serde_json::from_str(&out).unwrap_or_else(|error| panic!("{words:?}: {error}: {out}"))
}

fn end(mut child: Child) {
    let _ = child.stdin.take().expect("piped").write_all(b"\n");
    assert!(child.wait().expect("it ends").success());
}

const HEAD: &str = "io.stdout:setvbuf('no'); local n = require('perilune').use().node('^job')[7]; ";

#[test]
fn who_holds_and_who_waits_is_seen_with_pid_and_time() {
    let place = Place::new();
    let empty = "require('perilune').use()";
    assert_eq!(place.run(&["--db", "t.db", "-e", empty]).0, 0);
    assert_eq!(place.run(&["locks", "t.db"]).1, "nobody holds a lock or waits for one\n");
    let holder =
        start(&place, &format!("{HEAD} n:grab() n:grab() print 'ready' io.read() n:release() n:release()"));
    let waiter = start(&place, &format!("{HEAD} print 'ready' n:grab() io.read()"));
    let mut found = json(&place, &["locks", "t.db", "--json"]);
    // Each look takes as long as a process; a minute is far beyond what the waiter needs to get there.
    for _ in 0..1000 {
        if found["locks"].as_array().is_some_and(|locks| locks.len() == 2) {
            break;
        }
        found = json(&place, &["locks", "t.db", "--json"]);
    }
    let shown = place.run(&["locks", "t.db"]).1;
    let text = |index: usize, key: &str| found["locks"][index][key].clone();
    let what = |index| (text(index, "node"), text(index, "held"), text(index, "count"), text(index, "pid"));
    let node = || Value::from("^job(7)");
    assert_eq!(what(0), (node(), true.into(), 2.into(), holder.id().into()));
    assert_eq!(what(1), (node(), false.into(), 0.into(), waiter.id().into()));
    let seconds: Vec<f64> = (0..2).filter_map(|index| text(index, "seconds").as_f64()).collect();
    assert!(seconds[0] > seconds[1] && seconds[0] < 600.0, "{seconds:?}");
    let lines: Vec<Vec<&str>> = shown.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[1][..3], ["^job(7)", "held", "exclusive"], "{shown}");
    assert_eq!(lines[2][..3], ["^job(7)", "waits", "exclusive"], "{shown}");

    let found = json(&place, &["processes", "t.db", "--json"]);
    let processes = found["processes"].as_array().expect("a list");
    let of = |pid: u32| processes.iter().find(|process| process["pid"] == pid).expect("it is there");
    assert_eq!((processes.len(), processes.iter().filter(|process| process["this"] == true).count()), (3, 1));
    for child in [&holder, &waiter] {
        let process = of(child.id());
        assert_eq!((&process["alive"], &process["this"]), (&true.into(), &false.into()));
        assert_eq!(process["version"], env!("CARGO_PKG_VERSION"));
        assert!(process["sessions"].as_u64() >= Some(1));
    }
    let shown = place.run(&["processes", "t.db"]).1;
    assert!(shown.contains("this command") && shown.contains(&holder.id().to_string()), "{shown}");
    end(holder);
    end(waiter);
    let figures = json(&place, &["stat", "t.db", "--json", "--quick"]);
    assert_eq!(figures["figures"]["lock_waits"], 1);
    assert!(figures.get("names").is_none());
}

#[test]
fn figures_come_as_people_and_machines_want_them() {
    let place = Place::new();
    let fill = "local n = require('perilune').node('^a'); for i = 1, 9 do n[i].__ = i end";
    assert_eq!(place.run(&["--db", "t.db", "-e", fill]).0, 0);
    let (code, out, _) = place.run(&["stat", "t.db"]);
    // Figures of 12 digits, behind months of use, take 6 columns more.
    for line in out.lines() {
        assert!(line.len() <= 74, "{line}");
    }
    assert_eq!(code, 0);
    assert!(out.lines().any(|line| line.starts_with("writes ") && line.contains(" 9 ")), "{out}");
    let figures = json(&place, &["stat", "t.db", "--json", "--quick"]);
    for name in ["log_bytes", "fsyncs", "checkpoints", "checkpoint_age_ms", "replay_bytes", "snapshot_bytes"]
    {
        assert!(figures["figures"][name].is_u64(), "{name}: {figures}");
    }
    let (_, out, _) = place.run(&["stat", "t.db", "--prometheus"]);
    assert!(out.contains("\nperilune_writes_total{db=\"t.db\"} 9\n"), "{out}");
    assert!(out.contains("\nperilune_tree_values{db=\"t.db\",name=\"^a\"} 9\n"), "{out}");
    let (_, out, _) = place.run(&["stat", "t.db", "--watch=0.01", "--count", "3"]);
    assert_eq!(out.lines().count(), 4, "{out}");
    assert!(out.lines().next().is_some_and(|line| line.contains("writes") && line.contains("file_bytes")));
    let (_, out, _) = place.run(&["stat", "t.db", "--watch=0.01", "--count=2", "--json"]);
    for line in out.lines() {
        let found: Value = serde_json::from_str(line).expect("JSON");
        assert_eq!((&found["writes"], &found["processes"]), (&0.0.into(), &1.0.into()));
    }
    assert_eq!(out.lines().count(), 2);
    for wrong in [&["stat", "--watch=0"][..], &["stat", "--json", "--prometheus"], &["stat", "--count=1"]] {
        assert_eq!(place.run(wrong).0, 2, "{wrong:?}");
    }
    for command in ["stat", "locks", "processes"] {
        assert_eq!(place.run(&[command, "missing.db"]).0, 3, "{command}");
    }
}

#[test]
fn the_library_speaks_when_it_is_asked_to() {
    let place = Place::new();
    let run = |level: Option<&str>| {
        let mut command = place.command(&["--db", "t.db", "-e", "require('perilune').use()"]);
        match level {
            Some(level) => command.env("PERILUNE_LOG", level),
            None => command.env_remove("PERILUNE_LOG"),
        };
        let (code, _, err) = told(command.output().expect("the program starts"));
        assert_eq!(code, 0);
        err
    };
    for quiet in [None, Some(""), Some("off"), Some("error")] {
        assert_eq!(run(quiet), "", "{quiet:?}");
    }
    let said = run(Some("info"));
    assert!(said.contains(": info: opened ") && said.contains("t.db in slot 0"), "{said}");
    assert!(said.lines().last().is_some_and(|line| line.contains(": info: closed ")), "{said}");
    assert!(run(Some("loud")).contains("PERILUNE_LOG is off, error or info, not `loud`"));
}

#[test]
fn who_may_only_read_may_look() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    use std::os::unix::process::CommandExt;
    /// Root may write everything: then the program runs as nobody.
    const NOBODY: u32 = 65_534;
    let place = Place::new();
    let code = "require('perilune').use(); require('perilune').node('^a').b.__ = 5";
    assert_eq!(place.run(&["--db", "t.db", "-e", code]).0, 0);
    let program = place.path().join("perilune");
    std::fs::copy(env!("CARGO_BIN_EXE_perilune"), &program).expect("a copy that nobody may run");
    let set_mode = |name: &str, mode| {
        let permissions = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(place.path().join(name), permissions).expect("its mode is changed");
    };
    for name in ["t.db", "t.db-shm"] {
        set_mode(name, 0o444);
    }
    set_mode("", 0o555);
    let is_root = std::fs::metadata(place.path()).expect("it is there").uid() == 0;
    let run = |words: &[&str]| {
        let mut command = std::process::Command::new(&program);
        command.args(words).current_dir(place.path());
        if is_root {
            command.uid(NOBODY).gid(NOBODY);
        }
        told(command.output().expect("the program starts"))
    };
    for has_shm in [true, false] {
        if !has_shm {
            set_mode("", 0o755);
            std::fs::remove_file(place.path().join("t.db-shm")).expect("it is there");
            set_mode("", 0o555);
        }
        for (command, text) in [
            ("check", "sound, 1 node"),
            ("stat", "^a"),
            // It said that the database is damaged.
            ("locks", "nobody holds a lock"),
            ("processes", "slot"),
        ] {
            for options in [&[][..], &["--read-only"]] {
                let (code, out, err) = run(&[&[command, "t.db"], options].concat());
                assert_eq!((code, err.as_str()), (0, ""), "{command}");
                assert!(out.contains(text), "{command}: {out}");
            }
        }
    }
    let (code, _, err) = run(&["checkpoint", "t.db"]);
    assert!(code == 3 && err.contains("no permission to write"), "{code} {err}");
    set_mode("t.db", 0o000);
    assert_eq!(run(&["check", "t.db"]).0, 3);
    set_mode("", 0o755);
}
