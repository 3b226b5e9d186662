//! Unsafe code only in the rooms that may have it, each block under a `SAFETY:` comment.
//!
//! The compiler enforces the first half through `#![forbid(unsafe_code)]`; this rule makes sure
//! that the attribute is there, and covers tests and examples, which are crates of their own.

use crate::finding::Finding;
use crate::house::{room_of, Room, Unsafety, UNSAFE_TESTS};
use crate::lexer::{self, identifier, line_at, Lexed};
use crate::sources::Sources;

const RULE: &str = "unsafe-code";

pub(crate) fn check(sources: &Sources) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in sources.texts(&["rs"]) {
        let Some(room) = room_of(path) else {
            continue;
        };
        let lexed = lexer::lex(text);
        if room.unsafety == Unsafety::Forbidden && is_root(room, path) {
            let head: String = lexed.code.split_whitespace().collect();
            if !head.contains("#![forbid(unsafe_code)]") {
                findings.push(Finding::new(
                    path,
                    1,
                    RULE,
                    "a crate root without `#![forbid(unsafe_code)]`; add it, or move the \
                     unsafe part to crates/shm",
                ));
            }
        }
        blocks(room, path, &lexed, &mut findings);
    }
    findings
}

fn is_root(room: &Room, path: &str) -> bool {
    let inside = path[room.dir.len()..].strip_prefix("/src/").unwrap_or("");
    let is_bin =
        inside.strip_prefix("bin/").is_some_and(|rest| !rest.contains('/') || rest.ends_with("/main.rs"));
    inside == "lib.rs" || inside == "main.rs" || is_bin
}

fn may_be_unsafe(room: &Room, path: &str) -> bool {
    let named = |list: &[&str]| list.iter().any(|start| path.starts_with(start));
    match room.unsafety {
        Unsafety::Proved => true,
        Unsafety::Named(list) => named(list),
        Unsafety::Forbidden => named(UNSAFE_TESTS),
    }
}

fn blocks(room: &Room, path: &str, lexed: &Lexed, findings: &mut Vec<Finding>) {
    for at in lexer::words(&lexed.code, "unsafe") {
        let line = line_at(&lexed.code, at);
        if !may_be_unsafe(room, path) {
            findings.push(Finding::new(
                path,
                line,
                RULE,
                format!(
                    "`{}` may not contain unsafe code; use what crates/shm offers, \
                     or name the file in crates/xtask/src/house.rs with the reason",
                    room.dir
                ),
            ));
            continue;
        }
        let rest = lexed.code[at + "unsafe".len()..].trim_start();
        let needs_proof = rest.starts_with('{') || identifier(rest) == "impl";
        if needs_proof && !proved(lexed, line) {
            findings.push(Finding::new(
                path,
                line,
                RULE,
                "no `// SAFETY:` comment above; prove each obligation of the calls inside",
            ));
        }
    }
}

/// Is there a `SAFETY:` comment on the line or above the statement that the line belongs to?
fn proved(lexed: &Lexed, line: usize) -> bool {
    let comments: Vec<&str> = lexed.comments.lines().collect();
    let code: Vec<&str> = lexed.code.lines().collect();
    if comments[line - 1].contains("SAFETY:") {
        return true;
    }
    for index in (0..line - 1).rev() {
        if comments[index].contains("SAFETY:") {
            return true;
        }
        let statement = code[index].trim();
        let is_comment = !comments[index].trim().is_empty();
        let ends = statement.is_empty() || statement.ends_with([';', '{', '}', ',']);
        if ends && !is_comment {
            return false;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{places, project};

    #[test]
    fn unsafe_code_outside_its_rooms_is_found() {
        let bad = project(&[
            ("crates/engine/src/lib.rs", "//! Engine.\n"),
            ("crates/engine/tests/model.rs", "fn f() {\n    // SAFETY: no.\n    unsafe { g() }\n}\n"),
            ("crates/key/src/bin/tool.rs", "//! Tool.\n"),
        ]);
        assert_eq!(
            places(check(&bad)),
            ["crates/engine/src/lib.rs:1", "crates/engine/tests/model.rs:3", "crates/key/src/bin/tool.rs:1"]
        );
    }

    #[test]
    fn a_block_without_proof_is_found() {
        let bad = project(&[(
            "crates/shm/src/word.rs",
            "fn f() {\n    let x = 1;\n    let y = unsafe { g() };\n}\nunsafe impl Send for X {}\n",
        )]);
        assert_eq!(places(check(&bad)), ["crates/shm/src/word.rs:3", "crates/shm/src/word.rs:5"]);
    }

    #[test]
    fn proved_blocks_and_words_in_text_are_fine() {
        let good = project(&[
            ("crates/shm/src/word.rs", "fn f() {\n    // SAFETY: in bounds,\n    // and aligned.\n    let y =\n  unsafe { g() };\n}\n"),
            ("crates/engine/src/lib.rs", "//! unsafe {\n#![forbid(unsafe_code)]\nconst A: &str = \"unsafe {\";\n"),
        ]);
        assert_eq!(check(&good), []);
    }
}
