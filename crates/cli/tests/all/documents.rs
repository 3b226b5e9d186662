//! The README's tours are run: in Lua, of the program, and of the server. It stays within a thousand words.

use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use crate::program::{told, Killed, Place};

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
    let shell = block(&readme, "## A tour of the program", "sh");
    let expected = documented(lua, "--> ") + &documented(shell, "# ");
    assert_eq!(expected.lines().count(), 5, "{expected}");

    let place = Place::new();
    place.file("tour.lua", lua);
    let (code, out, err) = told(sh(&place, shell).output().expect("sh starts"));
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    assert!(out.starts_with(&expected), "printed:\n{out}\nsaid:\n{expected}");
    assert!(place.path().join("people.db").exists());

    served(&place, block(&readme, "## A tour of the server", "sh"));
}

/// A shell that finds the program, and nothing of whoever runs the tests.
fn sh(place: &Place, lines: &str) -> Command {
    let program = Path::new(env!("CARGO_BIN_EXE_perilune")).parent().expect("a directory");
    let old = env::var_os("PATH").unwrap_or_default();
    let path =
        env::join_paths([program.to_owned()].into_iter().chain(env::split_paths(&old))).expect("a path");
    let mut command = place.command_of("sh");
    command.args(["-ec", lines]).env("PATH", path);
    command
}

/// The tour of the server, at a free port. A user types one line after the other; here the second waits until the server
/// accepts.
fn served(place: &Place, lines: &str) {
    let expected = documented(lines, "# ");
    assert_eq!(expected.lines().count(), 3, "{expected}");
    let free = TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("a port");
    let lines = lines.replace("7390", &free.port().to_string());
    let (start, rest) = lines.split_once(" &\n").expect("the server's line");
    let rest = rest.strip_suffix("kill %1\n").expect("its end");

    let mut server =
        Killed(sh(place, &format!("exec {start}")).stderr(Stdio::null()).spawn().expect("sh starts"));
    let begun = Instant::now();
    while TcpStream::connect(free).is_err() {
        assert!(begun.elapsed() < Duration::from_secs(60), "the server does not accept");
        assert!(server.0.try_wait().expect("its state").is_none(), "the server has ended");
        thread::yield_now();
    }
    let (code, out, err) = told(sh(place, rest).output().expect("sh starts"));
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    assert_eq!(out, expected);
}

#[test]
fn the_readme_has_at_most_a_thousand_words() {
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
    let readme = fs::read_to_string(readme).expect("README.md");
    let words = readme.split_whitespace().filter(|word| word.contains(char::is_alphanumeric)).count();
    assert!(words <= 1_000, "{words} words: say less, or say it in docs/guide");
}
