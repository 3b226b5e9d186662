//! Nothing unfinished is left in the sources; a library prints nothing, and keeps nothing in thread-local memory;
//! the library's threads run no signal handler of the host program.

use crate::finding::Finding;
use crate::house::{room_of, BANNED_CODE, BANNED_NOTES};
use crate::lexer::{self, line_at, Lexed};
use crate::sources::Sources;

/// Whoever holds a session or transaction of these may use it on another thread, as ARCHITECTURE.md says.
const HANDLES_ONLY: &[&str] = &[
    "crates/key/src/",
    "crates/shm/src/",
    "crates/disk/src/",
    "crates/store/src/",
    "crates/engine/src/",
    "crates/perilune/src/",
];

/// These are mapped into other people's programs, whose signals are not for our threads.
const IN_HOSTS: &[&str] = &[
    "crates/shm/src/",
    "crates/engine/src/",
    "crates/remote/src/",
    "crates/perilune/src/",
    "crates/capi/src/",
];

const PRINTS: &[&str] = &["println!", "print!", "eprintln!", "eprint!"];

pub(crate) fn check(sources: &Sources) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in sources.texts(&["rs"]) {
        let lexed = lexer::lex(text);
        unfinished(path, &lexed, &mut findings);
        notes(path, &lexed.comments, &mut findings);
        notes(path, &lexed.code, &mut findings);
        if is_library(path) {
            prints(path, &lexed.code, &mut findings);
        }
        if HANDLES_ONLY.iter().any(|dir| path.starts_with(dir)) {
            thread_locals(path, &lexed.code, &mut findings);
        }
        if IN_HOSTS.iter().any(|dir| path.starts_with(dir)) && !path.ends_with("tests.rs") {
            threads(path, &lexed.code, &mut findings);
        }
    }
    for (path, text) in sources.texts(&["c", "h", "cc", "lua", "sh", "py", "toml"]) {
        notes(path, text, &mut findings);
    }
    findings
}

fn unfinished(path: &str, lexed: &Lexed, findings: &mut Vec<Finding>) {
    for banned in BANNED_CODE {
        for (at, _) in lexed.code.match_indices(banned) {
            let message = format!(
                "`{banned}`: finish it, or return an error that says what to do; \
                 a test that cannot run yet does not exist yet"
            );
            findings.push(Finding::new(path, line_at(&lexed.code, at), "unfinished", message));
        }
    }
    for (at, _) in lexed.comments.match_indices("```ignore") {
        let message = "an example that is not compiled; make it compile or write it as `text`";
        findings.push(Finding::new(path, line_at(&lexed.comments, at), "unfinished", message));
    }
}

fn notes(path: &str, text: &str, findings: &mut Vec<Finding>) {
    for note in BANNED_NOTES {
        for at in lexer::words(text, note) {
            let message = format!("`{note}`: do it now, or open an issue");
            findings.push(Finding::new(path, line_at(text, at), "notes", message));
        }
    }
}

/// Memory of one thread, outside tests.
fn thread_locals(path: &str, code: &str, findings: &mut Vec<Finding>) {
    let lines: Vec<&str> = code.lines().collect();
    let tests = lexer::test_lines(code);
    for (at, _) in code.match_indices("thread_local!") {
        let line = line_at(code, at);
        let is_marked = line > 1 && lines[line - 2].trim() == "#[cfg(test)]";
        let in_tests = tests.iter().any(|(first, last)| (*first..=*last).contains(&line));
        if !is_marked && !in_tests {
            let message = "`thread_local!`: keep it in the session, which may move to another thread";
            findings.push(Finding::new(path, line, "thread-local", message));
        }
    }
}

/// Threads that are started with signals open, outside tests.
fn threads(path: &str, code: &str, findings: &mut Vec<Finding>) {
    let tests = lexer::test_lines(code);
    let blocks = code.contains("with_signals_blocked(");
    for (at, text) in code.lines().enumerate() {
        let starts = text.contains("thread::spawn(") || text.contains("thread::Builder") && !blocks;
        let in_tests = tests.iter().any(|(first, last)| (*first..=*last).contains(&(at + 1)));
        if starts && !in_tests {
            let message = "a thread with signals open: start it by a `Builder` in `with_signals_blocked`";
            findings.push(Finding::new(path, at + 1, "signals", message));
        }
    }
}

fn is_library(path: &str) -> bool {
    let Some(room) = room_of(path) else {
        return false;
    };
    let inside = &path[room.dir.len()..];
    let is_program = inside.starts_with("/src/bin/");
    let is_test_module = inside.ends_with("/tests.rs");
    !room.prints && inside.starts_with("/src/") && !is_program && !is_test_module
}

fn prints(path: &str, code: &str, findings: &mut Vec<Finding>) {
    let tests = lexer::test_lines(code);
    for print in PRINTS {
        for (at, _) in code.match_indices(print) {
            let line = line_at(code, at);
            let in_tests = tests.iter().any(|(first, last)| (*first..=*last).contains(&line));
            if !in_tests && (at == 0 || !lexer::is_word(code.as_bytes()[at - 1])) {
                let message =
                    format!("`{print}` in a library; return it, the terminal belongs to the caller");
                findings.push(Finding::new(path, line, "prints", message));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{places, project};

    #[test]
    fn unfinished_code_is_found() {
        let bad = project(&[
            (
                "crates/key/src/a.rs",
                "fn f() { todo!() }\nfn g() { dbg!(1); }\n#[ignore]\nfn h() {}\n/// ```ignore\n",
            ),
            ("crates/key/src/b.rs", "// FIXME: later\n/* TODO */\n"),
            ("bindings/lua/node.lua", "x = 1 -- XXX\n"),
        ]);
        assert_eq!(
            places(check(&bad)),
            [
                "bindings/lua/node.lua:1",
                "crates/key/src/a.rs:1",
                "crates/key/src/a.rs:2",
                "crates/key/src/a.rs:3",
                "crates/key/src/a.rs:5",
                "crates/key/src/b.rs:1",
                "crates/key/src/b.rs:2"
            ]
        );
    }

    #[test]
    fn a_library_that_prints_is_found() {
        let text = "fn f() { println!(); }\n#[cfg(test)]\nmod tests {\n fn g() { println!(); }\n}\n";
        let bad = project(&[("crates/key/src/a.rs", text), ("crates/xtask/src/a.rs", text)]);
        assert_eq!(places(check(&bad)), ["crates/key/src/a.rs:1"]);
    }

    #[test]
    fn memory_of_a_thread_is_found() {
        let text = "thread_local! {}\n#[cfg(test)]\nthread_local! {}\n";
        let bad = project(&[("crates/engine/src/a.rs", text), ("crates/capi/src/a.rs", text)]);
        assert_eq!(places(check(&bad)), ["crates/engine/src/a.rs:1"]);
    }

    #[test]
    fn a_thread_with_signals_open_is_found() {
        let text = "fn f() { thread::Builder::new().spawn(g); }\n\
            #[cfg(test)]\nmod tests {\n fn g() { thread::spawn(h); }\n}\n";
        let bad = project(&[
            ("crates/engine/src/a.rs", text),
            ("crates/engine/src/a_tests.rs", text),
            (
                "crates/engine/src/b.rs",
                "fn f() {\n let b = thread::Builder::new();\n with_signals_blocked(|| b.spawn(g));\n}\n",
            ),
            ("crates/cli/src/a.rs", text),
        ]);
        assert_eq!(places(check(&bad)), ["crates/engine/src/a.rs:1"]);
    }

    #[test]
    fn words_in_strings_and_longer_words_are_fine() {
        let good = project(&[("crates/key/src/a.rs", "const A: &str = \"TODO todo!\"; // XXXXXX\n")]);
        assert_eq!(check(&good), []);
    }
}
