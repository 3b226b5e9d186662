//! Running scripts and code: arguments, modules, errors and exit codes.

use std::io::Write;
use std::process::Stdio;

use crate::program::{told, Place};

const GOOD: i32 = 0;
const FOUND: i32 = 1;
const WRONG_USE: i32 = 2;
const ENVIRONMENT: i32 = 3;

#[test]
fn a_script_gets_arguments_module_and_database() {
    let place = Place::new();
    place.file("other.lua", "return {name = 'other'}");
    place.file(
        "a.lua",
        "#!/usr/bin/env perilune\n\
         print(arg[0], arg[1], arg[2], select('#', ...), require('other').name)\n\
         local db = require('perilune').use()\n\
         db.node('^person')[21].age.__ = 36\n\
         print(db.node('^person')[21].age, db.node('^person')[21].age.__)\n\
         for k, v in pairs(db.node('^person')[21]) do print(k, v) end\n",
    );
    let expected = "a.lua\t--db\tx y\t2\tother\n^person(21,\"age\")\t36\nage\t36\n";
    let (code, out, err) = place.run(&["--db", "t.db", "run", "a.lua", "--db", "x y"]);
    assert_eq!((code, out.as_str(), err.as_str()), (GOOD, expected, ""));
    assert!(place.path().join("t.db").exists());
    let (code, out, _) = place.run(&["--db", "t.db", "a.lua", "--db", "x y"]);
    assert_eq!((code, out.as_str()), (GOOD, expected), "the same without `run`");
}

#[test]
fn code_and_standard_input_are_run() {
    let place = Place::new();
    assert_eq!(place.run(&["-e", "print(1 + 1, ...)", "a", "b"]), (GOOD, "2\ta\tb\n".into(), String::new()));
    for words in [&["run", "-"][..], &["-"], &["/dev/stdin"], &[]] {
        let mut child = place
            .command(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        child.stdin.take().expect("piped").write_all(b"print('from input')").expect("it reads");
        let (code, out, err) = told(child.wait_with_output().expect("it ends"));
        assert_eq!((code, out.as_str(), err.as_str()), (GOOD, "from input\n", ""));
    }
}

#[test]
fn an_error_in_an_assignment_tells_the_line_of_the_script() {
    let place = Place::new();
    place.file("a.lua", "local n = require('perilune').use().node('^person')\n\nn.age.__ = 0 / 0\n");
    let (code, _, err) = place.run(&["--db", "t.db", "a.lua"]);
    assert_eq!(code, FOUND);
    assert!(err.contains("a.lua:3: perilune: a value must be a finite number, not NaN"), "{err}");
}

#[test]
fn exit_codes_tell_kinds_of_failure() {
    let place = Place::new();
    let failing = |words: &[&str], expected: i32, text: &str| {
        let (code, _, err) = place.run(words);
        assert_eq!(code, expected, "{words:?}: {err}");
        assert!(err.contains(text), "{words:?}: {err}");
    };
    failing(&["-e", "error('broken')"], FOUND, "broken\nstack traceback:");
    failing(&["-e", "local x ="], FOUND, "<eof>");
    failing(&["-e", "os.exit(7)"], 7, "");
    failing(&["unknown"], WRONG_USE, "neither a command nor a file");
    failing(&["chek"], WRONG_USE, "did you mean `check`?");
    failing(&["--unknown"], WRONG_USE, "--unknown");
    failing(&["bench", "collatz", "--n", "0"], WRONG_USE, "--n");
    failing(&["-e", "x = 1", "check"], WRONG_USE, "not a command");
    failing(&["run", "missing.lua"], ENVIRONMENT, "cannot read missing.lua");
    failing(&["check", "missing.db"], ENVIRONMENT, "no such database");
    let text = place.file("text.db", &"this is no database\n".repeat(1000));
    let text = text.to_str().expect("UTF-8");
    failing(&["check", text], ENVIRONMENT, "text.db");
    failing(&["--db", text, "-e", "require('perilune').use()"], ENVIRONMENT, "text.db");
    assert!(!place.path().join("missing.db").exists(), "looking at a database never makes it");
}

#[test]
fn databases_are_checked_and_described() {
    let place = Place::new();
    let fill = "local n = require('perilune').node('^a'); n[1].__ = 'x'; n[2].y.__ = 'z'";
    assert_eq!(place.run(&["--db", "t.db", "-e", fill]).0, GOOD);
    let (code, out, _) = place.run(&["check", "t.db"]);
    assert_eq!((code, out.as_str()), (GOOD, "t.db: sound, 2 nodes with a value\n"));
    let (_, out, _) = place.run(&["--db", "t.db", "check", "--json"]);
    let found: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!((&found["sound"], &found["nodes"]), (&true.into(), &2.into()));
    let (_, out, _) = place.run(&["stat", "t.db", "--json"]);
    let found: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    let name = serde_json::json!({"name": "^a", "children": 2, "values": 2, "key_bytes": 9, "value_bytes": 4,
                                  "bytes_per_node": 6.5});
    assert_eq!((&found["names"][0], &found["figures"]["writes"]), (&name, &2.into()));
    let (_, out, _) = place.run(&["stat", "t.db"]);
    assert!(out.lines().any(|line| line.split_whitespace().eq(["^a", "2", "2", "9", "4", "6.5"])), "{out}");
}

#[test]
fn modules_made_for_lua_5_1_are_loaded() {
    let place = Place::new();
    let code = "print(require('cjson').encode({1, 2, {a = 'b'}}))\n\
                local socket = require 'socket'\n\
                local server = assert(socket.bind('127.0.0.1', 0))\n\
                print(type(server:getsockname()))";
    let (code, out, err) = place.run(&["-e", code]);
    let advice = "apt-get install lua-cjson lua-socket (.ci/packages.txt)";
    assert_eq!((code, out.as_str()), (GOOD, "[1,2,{\"a\":\"b\"}]\nstring\n"), "{advice}: {err}");
}

#[test]
fn functions_of_lua_are_exported_and_others_are_not() {
    let place = Place::new();
    let found = |name: &str| {
        let code = format!("local f = require 'ffi'; f.cdef 'int {name}(void *);'; local _ = f.C.{name}");
        place.run(&["-e", &code]).0 == GOOD
    };
    assert!(found("lua_gettop") && found("luaL_checklstring") && found("lua_tothread"));
    assert!(!found("perilune_open"), "the module has addresses, and scripts have the module");
}

#[test]
fn a_version_names_the_lua() {
    let (code, out, _) = Place::new().run(&["version"]);
    assert_eq!(code, GOOD);
    assert!(out.starts_with("perilune ") && out.contains("LuaJIT 2.1"), "{out}");
}

#[test]
fn an_error_keeps_its_text_whatever_the_globals_of_the_program_are_called() {
    let place = Place::new();
    let names = "debug, tostring, type, pcall, rawget, xpcall, select, error = nil";
    let code = format!("local n = require('perilune').use().node('^n')\n{names}\nn:git()");
    let (code, _, err) = place.run(&["--db", "t.db", "-e", &code]);
    assert!(code == FOUND && err.contains("(command line):3: perilune: nodes have no method 'git'"), "{err}");
    // Also before it asks for the module.
    let names = "debug, tostring, type, pcall, rawget, pairs, tonumber, error = nil";
    let code = format!(
        "{names}\nlocal n = require('perilune').use().node('^n')\nn[1].__ = 5\nn[1].__ = nil\nn:git()"
    );
    let (code, _, err) = place.run(&["--db", "t.db", "-e", &code]);
    assert!(code == FOUND && err.contains("(command line):5: perilune: nodes have no method 'git'"), "{err}");
    let (_, _, err) =
        place.run(&["--db", "t.db", "-e", "require('perilune').use().node('^n')[1e300].__ = 1"]);
    assert!(err.contains("1E47") && err.contains("subscript"), "{err}");
}
