//! The README's tour in Lua is run by the program, and so are the lines of the shell below it.

mod program;

use std::path::Path;
use std::process::Command;
use std::{env, fs};

use program::{told, Place};

/// The first block of `language` behind `heading`.
fn block<'a>(text: &'a str, heading: &str, language: &str) -> &'a str {
    let (_, text) = text.split_once(heading).unwrap_or_else(|| panic!("the README has no `{heading}`"));
    let (_, text) = text.split_once(&format!("```{language}\n")).expect("a block of code");
    text.split_once("```").expect("its end").0
}

/// What comments that begin with `mark` say is printed, a print a line and its values apart by a tab.
fn documented(code: &str, mark: &str) -> String {
    let texts = code.lines().filter_map(|line| line.split_once(mark)).map(|(_, text)| text);
    texts.flat_map(|text| text.split(", ")).map(|line| line.replace(' ', "\t") + "\n").collect()
}

#[test]
fn the_tour_of_the_readme_prints_what_it_says() {
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
    let readme = fs::read_to_string(readme).expect("README.md");
    let lua = block(&readme, "## A tour in Lua", "lua");
    let shell = block(&readme, "## A tour in Lua", "sh");
    let expected = documented(lua, "--> ") + &documented(shell, "# ");
    assert_eq!(expected.lines().count(), 5, "{expected}");

    let place = Place::new();
    place.file("tour.lua", lua);
    let program = Path::new(env!("CARGO_BIN_EXE_perilune")).parent().expect("a directory");
    let old = env::var_os("PATH").unwrap_or_default();
    let path =
        env::join_paths([program.to_owned()].into_iter().chain(env::split_paths(&old))).expect("a path");
    let mut command = Command::new("sh");
    command.args(["-ec", shell]).current_dir(place.path()).env("PATH", path).env("HOME", place.path());
    for name in ["PERILUNE_DB", "XDG_DATA_HOME", "LUA_PATH", "LUA_CPATH", "LUA_INIT"] {
        command.env_remove(name);
    }
    let (code, out, err) = told(command.output().expect("sh starts"));
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    assert!(out.starts_with(&expected), "printed:\n{out}\nsaid:\n{expected}");
    assert!(place.path().join("people.db").exists());
}
