//! Golden scripts: what several sessions do in a fixed order, and what each step answers.
//!
//! A script has comments (`#`), steps, a line `---`, and the steps again with their answers. A step is a
//! letter for the session and a command (`actor` lists them):
//!
//! ```text
//! # Two sessions.
//! A: begin
//! A: get x
//! B: set x 2
//! A: commit
//! ---
//! A: begin => ok
//! A: get x => none
//! B: set x 2 => ok
//! A: commit => conflict
//! ```
//!
//! Each letter has a thread, or a process ([`run_script_with`]), of its own. A step that has to block is
//! written with `waits` at its end: the script goes on, and `A: ends` takes the answer later.
//!
//! Invariants
//! - Steps run one after another, but for those that wait; so one script has one output.
//! - That a step waits is written, never concluded from time. If it has answered before the next step
//!   of anybody, that is an error.
//!
//! Deliberately absent: loops, variables, anything random.

mod actor;
mod party;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Child;

use perilune_store::{Locks, Store};

use party::Party;

pub use party::serve_steps;

/// The result of a script: what it printed, or which line is wrong and why.
pub type Outcome = Result<String, String>;

/// The scripts of this crate: one a file, to be run on every back end.
#[must_use]
pub fn scripts() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/scripts"))
}

/// Runs a script, each letter a session of `store` on a thread of its own.
///
/// # Errors
/// Names the line that cannot be run, or that did not answer.
pub fn run_script<S: Store>(store: &S, text: &str) -> Outcome
where
    S::Session: Locks,
{
    run(text, &mut |_| Party::thread(store))
}

/// Runs a script, each letter a process that `children` starts. Its standard input and output must be
/// piped, and it must call [`serve_steps`] with them.
///
/// # Errors
/// As [`run_script`].
pub fn run_script_with(children: &mut dyn FnMut(char) -> std::io::Result<Child>, text: &str) -> Outcome {
    run(text, &mut |letter| {
        let child =
            children(letter).map_err(|error| format!("the process of {letter} cannot start: {error}"))?;
        Party::process(child)
    })
}

fn run(text: &str, open: &mut dyn FnMut(char) -> Result<Party, String>) -> Outcome {
    let (input, _) = split(text);
    let mut parties: BTreeMap<char, Party> = BTreeMap::new();
    let mut output = String::new();
    for (index, line) in input.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let place = |why: String| format!("line {}, `{line}`: {why}", index + 1);
        let (letter, step) = parse(line).ok_or_else(|| place("not `LETTER: command`".to_string()))?;
        for (waiting, party) in &mut parties {
            party.still_waits().map_err(|why| place(format!("before it, {waiting} {why}")))?;
        }
        let party = match parties.entry(letter) {
            std::collections::btree_map::Entry::Occupied(entry) => entry.into_mut(),
            std::collections::btree_map::Entry::Vacant(entry) => entry.insert(open(letter).map_err(place)?),
        };
        let answer = party.run(step).map_err(|why| format!("line {}, `{line}`: {why}", index + 1))?;
        let shown = step.strip_suffix(party::WAITS).unwrap_or(step).trim();
        // Writing to a String cannot fail.
        let _ = writeln!(output, "{letter}: {shown} => {answer}");
    }
    for (letter, party) in parties {
        party.close().map_err(|why| format!("at the end, {letter} {why}"))?;
    }
    Ok(output)
}

fn parse(line: &str) -> Option<(char, &str)> {
    let (letter, step) = line.split_once(':')?;
    let mut letters = letter.chars();
    let letter = letters.next().filter(char::is_ascii_uppercase)?;
    letters.next().is_none().then_some((letter, step.trim()))
}

/// The steps, and the output that is expected of them.
fn split(text: &str) -> (&str, &str) {
    text.split_once("\n---\n").unwrap_or((text, ""))
}

/// Runs every script (`*.txt`) in `dir`, each on a new store, and compares what it prints.
///
/// With `UPDATE_SCRIPTS=1` in the environment the files get the output of this run instead.
///
/// # Panics
/// When an output differs; the text shows every line that does.
pub fn check_dir<S: Store>(dir: &Path, make: impl Fn() -> S)
where
    S::Session: Locks,
{
    check_dir_with(dir, |text| run_script(&make(), text));
}

/// Checks the scripts of a directory like [`check_dir`], but `run` runs a script's text.
///
/// # Panics
/// As [`check_dir`].
pub fn check_dir_with(dir: &Path, mut run: impl FnMut(&str) -> Outcome) {
    if std::env::var_os("UPDATE_SCRIPTS").is_some_and(|value| value == "1") {
        update_dir(dir, &mut run);
    }
    let differences = differences(dir, run);
    assert!(differences.is_empty(), "scripts differ (UPDATE_SCRIPTS=1 rewrites them):\n{differences}");
}

/// Runs every script in `dir` and shows each that prints something else than it should, or fails; empty
/// when none does. Changes no file.
///
/// # Panics
/// When a file cannot be read.
pub fn differences(dir: &Path, mut run: impl FnMut(&str) -> Outcome) -> String {
    let mut failures = String::new();
    for (path, text) in script_files(dir) {
        match run(&text) {
            Ok(actual) if actual == split(&text).1 => {}
            Ok(actual) => failures += &difference(&path, split(&text).1, &actual),
            Err(why) => failures += &format!("{}: {why}\n", path.display()),
        }
    }
    failures
}

fn update_dir(dir: &Path, run: &mut dyn FnMut(&str) -> Outcome) {
    for (path, text) in script_files(dir) {
        if let Ok(actual) = run(&text) {
            let text = format!("{}\n---\n{actual}", split(&text).0.trim_end());
            fs::write(&path, text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        }
    }
}

/// The scripts in `dir` by name, with their texts.
fn script_files(dir: &Path) -> Vec<(PathBuf, String)> {
    let entries = fs::read_dir(dir).unwrap_or_else(|error| panic!("{}: {error}", dir.display()));
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.unwrap_or_else(|error| panic!("{}: {error}", dir.display())).path())
        .filter(|path| path.extension() == Some("txt".as_ref()))
        .collect();
    assert!(!paths.is_empty(), "{}: no script (*.txt) here", dir.display());
    paths.sort();
    let read = |path: PathBuf| match fs::read_to_string(&path) {
        Ok(text) => (path, text),
        Err(error) => panic!("{}: {error}", path.display()),
    };
    paths.into_iter().map(read).collect()
}

fn difference(path: &Path, expected: &str, actual: &str) -> String {
    let mut text = format!("{}:\n", path.display());
    let (mut expected, mut actual) = (expected.lines(), actual.lines());
    loop {
        match (expected.next(), actual.next()) {
            (None, None) => return text,
            (Some(line), Some(same)) if line == same => text += &format!("      {line}\n"),
            (line, other) => {
                let none = "(no line)";
                text += &format!("    - {}\n    + {}\n", line.unwrap_or(none), other.unwrap_or(none));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use perilune_memory::MemoryStore;

    #[test]
    fn a_script_prints_each_step_with_its_answer() {
        let text = "# Comment.\nA: begin\nA: get x\n\nB: set x 2\nA: set y 1\nA: commit\n---\nold\n";
        let output = run_script(&MemoryStore::new(), text).unwrap();
        let expected =
            "A: begin => ok\nA: get x => none\nB: set x 2 => ok\nA: set y 1 => ok\nA: commit => conflict\n";
        assert_eq!(output, expected);
    }

    #[test]
    fn a_waiting_step_ends_later() {
        let text = "A: lock x exclusive\nB: lock x shared waits\nA: unlock x\nB: ends\n";
        let output = run_script(&MemoryStore::new(), text).unwrap();
        let expected =
            "A: lock x exclusive => granted\nB: lock x shared => ... waits\nA: unlock x => true\nB: ends => granted\n";
        assert_eq!(output, expected);
    }

    #[test]
    fn a_wrong_script_names_its_line() {
        let fails = |text: &str| run_script(&MemoryStore::new(), text).unwrap_err();
        assert!(fails("A: begin\nbegin\n").starts_with("line 2, `begin`: not `LETTER: command`"));
        assert!(fails("A: ends\n").contains("does not wait"));
        let waits = fails("A: lock x exclusive\nB: lock x exclusive waits\nB: get x\n");
        assert!(waits.contains("still waits"), "{waits}");
    }

    #[test]
    fn a_difference_shows_both_lines() {
        let text = difference(Path::new("s"), "a\nb\n", "a\nc\nd\n");
        assert_eq!(text, "s:\n      a\n    - b\n    + c\n    - (no line)\n    + d\n");
    }
}
