//! Files and functions stay short; those that are too long today may only shrink.
//!
//! `ratchet.txt` holds the exceptions, one a line: `path function lines` (or `path - lines` for a
//! whole file). An entry that is no longer needed must go, so the list only gets shorter.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::finding::Finding;
use crate::house::{FILE_LINES_MAX, FUNCTION_LINES_MAX, LONG_FILES};
use crate::lexer;
use crate::sources::Sources;

const RULE: &str = "sizes";

/// The list of exceptions.
pub(crate) const RATCHET: &str = "crates/xtask/ratchet.txt";

const HEAD: &str = "\
# Functions over 70 lines and files over 800 that existed when the rule met them: path function lines.
# An entry may only shrink or go: `cargo xtask tidy --lower-ratchet`. New ones are not accepted.
";

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
    findings
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
    for (path, text) in sources.texts(&["rs", "c", "h", "cc", "lua", "py", "sh"]) {
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
        assert_eq!(places(check(&bad)), ["bindings/lua/a.c:1"]);
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
