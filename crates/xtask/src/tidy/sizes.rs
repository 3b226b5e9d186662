//! Files and functions stay short; those that are too long today may only shrink.
//!
//! `ratchet.txt` holds the exceptions, one a line: `path function lines` (or `path - lines` for a
//! whole file). An entry that is no longer needed must go, so the list only gets shorter.
//!
//! One concept takes 400 lines at most, without its tests. A file that is longer stands in `long-files.txt` with its
//! reason: `path: why its lines belong together`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::finding::Finding;
use crate::house::{CONCEPT_LINES_MAX, FILE_LINES_MAX, FUNCTION_LINES_MAX, LONG_FILES};
use crate::lexer;
use crate::sources::Sources;

const RULE: &str = "sizes";

/// The list of exceptions.
pub(crate) const RATCHET: &str = "crates/xtask/ratchet.txt";

/// The list of files that are longer than a concept, and why.
const REASONS: &str = "crates/xtask/long-files.txt";

const HEAD: &str = "\
# Functions over 70 lines and files over 800 that existed when the rule met them: path function lines.
# An entry may only shrink or go: `cargo xtask tidy --lower-ratchet`. New ones are not accepted.
";

/// Of the files that are looked at.
const SUFFIXES: &[&str] = &["rs", "c", "h", "cc", "lua", "py", "sh", "js", "mjs", "ts"];

/// What is too long, by (path, function or `-`): its line and its size.
type Sizes = BTreeMap<(String, String), (usize, usize)>;

pub(crate) fn check(sources: &Sources) -> Vec<Finding> {
    let mut findings = Vec::new();
    let allowed = ratchet(sources.text(RATCHET).unwrap_or(""), &mut findings);
    let found = too_long(sources);
    for ((path, name), (line, size)) in &found {
        let key = (path.clone(), name.clone());
        let limit = allowed.get(&key).map_or(0, |(_, size)| *size);
        if *size > limit {
            findings.push(Finding::new(path, *line, RULE, complaint(name, *size, limit)));
        }
    }
    for (key, (line, _)) in &allowed {
        if !found.contains_key(key) {
            let message = format!(
                "`{} {}` is short enough or gone; run `cargo xtask tidy --lower-ratchet`",
                key.0, key.1
            );
            findings.push(Finding::new(RATCHET, *line, RULE, message));
        }
    }
    findings.extend(long_files(sources));
    findings
}

/// Files that are longer than a concept and have no reason, and reasons of files that are not.
fn long_files(sources: &Sources) -> Vec<Finding> {
    let reasons = sources.text(REASONS).unwrap_or("");
    let entries = reasons.lines().enumerate().filter(|(_, line)| !line.starts_with('#') && !line.is_empty());
    let entries: Vec<_> =
        entries.map(|(at, line)| (at + 1, line.split_once(": ").unwrap_or((line, "")))).collect();
    let long: BTreeMap<_, _> = sources
        .texts(SUFFIXES)
        .filter(|(path, _)| !is_test(path))
        .map(|(path, text)| (path, without_tests(text)))
        .filter(|(path, lines)| *lines > CONCEPT_LINES_MAX && !LONG_FILES.contains(path))
        .collect();
    let unexplained =
        long.iter().filter(|(path, _)| entries.iter().all(|(_, (of, why))| of != *path || why.is_empty()));
    let mut findings: Vec<_> = unexplained
        .map(|(path, lines)| {
            let message = format!(
                "{lines} lines without tests, at most {CONCEPT_LINES_MAX}: split it by concept, or say in {REASONS} why not"
            );
            Finding::new(path, 1, RULE, message)
        })
        .collect();
    let needless = entries.iter().filter(|(_, (path, _))| !long.contains_key(path));
    findings.extend(needless.map(|(line, (path, _))| {
        Finding::new(REASONS, *line, RULE, format!("`{path}` is short enough or gone; remove the line"))
    }));
    findings
}

/// Whether a file is one of tests alone.
fn is_test(path: &str) -> bool {
    let of_tests = ["/tests/", "/spec/", "/test/", "/fuzz/"].iter().any(|directory| path.contains(directory));
    of_tests || path.ends_with("tests.rs")
}

/// Lines before the tests that stand at the end of a file.
fn without_tests(text: &str) -> usize {
    let is_begin = |line: &str| line.starts_with("#[cfg(test)]") || line.starts_with("#[cfg(all(test");
    let lines: Vec<&str> = text.lines().collect();
    let begin = lines.iter().enumerate().rposition(|(at, line)| {
        is_begin(line) && lines.get(at + 1).is_some_and(|next| next.starts_with("mod tests {"))
    });
    begin.unwrap_or(lines.len())
}

fn complaint(name: &str, size: usize, limit: usize) -> String {
    match (name, limit) {
        ("-", 0) => format!("{size} lines, at most {FILE_LINES_MAX}; one concept a file: split it"),
        (_, 0) => format!("`{name}` has {size} lines, at most {FUNCTION_LINES_MAX}; branches in the caller, loops in the callee"),
        _ => format!("`{name}` grew from {limit} to {size} lines; what is too long may only shrink"),
    }
}

/// The ratchet without what is no longer needed, and with today's size where it is smaller.
pub(crate) fn lowered(sources: &Sources) -> String {
    let allowed = ratchet(sources.text(RATCHET).unwrap_or(""), &mut Vec::new());
    let found = too_long(sources);
    let mut text = HEAD.to_string();
    for ((path, name), (_, limit)) in &allowed {
        if let Some((_, size)) = found.get(&(path.clone(), name.clone())) {
            let _ = writeln!(text, "{path} {name} {}", size.min(limit));
        }
    }
    text
}

fn ratchet(text: &str, findings: &mut Vec<Finding>) -> Sizes {
    let mut sizes = Sizes::new();
    for (index, line) in text.lines().enumerate() {
        if line.starts_with('#') || line.is_empty() {
            continue;
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        match (words.as_slice(), words.last().and_then(|size| size.parse().ok())) {
            ([path, name, _], Some(size)) => {
                sizes.insert(((*path).to_string(), (*name).to_string()), (index + 1, size));
            }
            _ => findings.push(Finding::new(RATCHET, index + 1, RULE, "not `path function lines`")),
        }
    }
    sizes
}

fn too_long(sources: &Sources) -> Sizes {
    let mut sizes = Sizes::new();
    for (path, text) in sources.texts(SUFFIXES) {
        let lines = text.lines().count();
        if lines > FILE_LINES_MAX && !LONG_FILES.contains(&path) {
            sizes.insert((path.to_string(), "-".to_string()), (1, lines));
        }
        if !path.ends_with(".rs") {
            continue;
        }
        for function in lexer::functions(&lexer::lex(text).code) {
            if function.lines > FUNCTION_LINES_MAX {
                // Of two functions of one name in a file the longer one counts.
                let size = (function.line, function.lines);
                let entry = sizes.entry((path.to_string(), function.name)).or_insert(size);
                if size.1 > entry.1 {
                    *entry = size;
                }
            }
        }
    }
    sizes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{places, project};

    fn function(lines: usize) -> String {
        format!("fn long() {{\n{}}}\n", "    f();\n".repeat(lines - 2))
    }

    #[test]
    fn a_long_function_is_found() {
        let bad = project(&[("crates/key/src/a.rs", &format!("\n{}", function(71)))]);
        assert_eq!(places(check(&bad)), ["crates/key/src/a.rs:2"]);
        let good = project(&[("crates/key/src/a.rs", &function(70))]);
        assert_eq!(check(&good), []);
    }

    #[test]
    fn a_long_file_is_found() {
        let bad = project(&[("bindings/lua/a.c", &"int x;\n".repeat(801))]);
        assert_eq!(places(check(&bad)), ["bindings/lua/a.c:1", "bindings/lua/a.c:1"], "and without a reason");
    }

    #[test]
    fn a_file_longer_than_a_concept_needs_a_reason() {
        let (long, tested) = (
            "f();\n".repeat(401),
            format!("{}#[cfg(test)]\nmod tests {{\n{}}}\n", "f();\n".repeat(300), "\n".repeat(300)),
        );
        let files = |reasons| {
            project(&[
                ("crates/key/src/a.rs", &long),
                ("crates/key/src/b.rs", &tested),
                ("crates/key/tests/c.rs", &long),
                (REASONS, reasons),
            ])
        };
        assert_eq!(places(check(&files("# why\ncrates/key/src/a.rs: a table\n"))), [""; 0]);
        assert_eq!(places(check(&files(""))), ["crates/key/src/a.rs:1"]);
        let needless = "crates/key/src/a.rs: a table\ncrates/key/src/b.rs: long once\n";
        assert_eq!(places(check(&files(needless))), ["crates/xtask/long-files.txt:2"]);
    }

    #[test]
    fn the_ratchet_only_turns_one_way() {
        let entry = "crates/key/src/a.rs long 80\n";
        let with = |lines| project(&[("crates/key/src/a.rs", &function(lines)), (RATCHET, entry)]);
        assert_eq!(check(&with(80)), []);
        assert_eq!(places(check(&with(81))), ["crates/key/src/a.rs:1"]);
        assert_eq!(places(check(&with(60))), ["crates/xtask/ratchet.txt:1"]);
        assert!(lowered(&with(75)).ends_with("crates/key/src/a.rs long 75\n"));
        assert!(lowered(&with(90)).ends_with("crates/key/src/a.rs long 80\n"));
        assert!(!lowered(&with(60)).contains("long"));
    }
}
