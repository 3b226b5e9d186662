//! Encoding, columns, white space, the head of every module, and where a module of several files begins.

use crate::finding::Finding;
use crate::house::COLUMNS_MAX;
use crate::sources::{self, Sources};

/// Files whose lines are short; documents wrap where they like.
const NARROW: &[&str] = &["rs", "c", "h", "cc", "lua", "sh", "py", "js", "mjs", "ts"];
/// Files that indent with spaces.
const NO_TABS: &[&str] = &["rs", "lua", "toml", "md", "py", "js", "mjs", "ts"];

pub(crate) fn check(sources: &Sources) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, bytes) in sources.bytes() {
        match std::str::from_utf8(bytes) {
            Ok(text) => lines(path, text, &mut findings),
            Err(error) => {
                let before = &bytes[..error.valid_up_to()];
                let line = 1 + before.iter().filter(|&&b| b == b'\n').count();
                findings.push(Finding::new(path, line, "encoding", "not UTF-8; save the file as UTF-8"));
            }
        }
    }
    module_files(sources, &mut findings);
    for (path, text) in sources.texts(&["rs"]) {
        let first = text.lines().find(|line| !line.trim().is_empty());
        if path.starts_with("crates/") && !first.is_some_and(|line| line.starts_with("//!")) {
            findings.push(Finding::new(
                path,
                1,
                "module-head",
                "does not open with `//!`; say what it is, its invariants, what it deliberately does not do",
            ));
        }
    }
    findings
}

/// A module of several files begins in `name/mod.rs`: a folder then holds all of it.
fn module_files(sources: &Sources, findings: &mut Vec<Finding>) {
    let paths: Vec<&str> = sources.texts(&["rs"]).map(|(path, _)| path).collect();
    for path in &paths {
        // The root of a program or of an integration test has no other place.
        let parent = path.rsplit('/').nth(1).unwrap_or("");
        let folder = format!("{}/", path.trim_end_matches(".rs"));
        if !matches!(parent, "tests" | "bin") && paths.iter().any(|other| other.starts_with(&folder)) {
            let message = format!("has files below {folder}; move it to {folder}mod.rs");
            findings.push(Finding::new(path, 1, "module-file", message));
        }
    }
}

fn lines(path: &str, text: &str, findings: &mut Vec<Finding>) {
    let suffix = sources::suffix(path);
    for (index, line) in text.split('\n').enumerate() {
        let mut find = |rule, message: String| findings.push(Finding::new(path, index + 1, rule, message));
        let columns = line.chars().count();
        if NARROW.contains(&suffix) && columns > COLUMNS_MAX {
            find("columns", format!("{columns} columns, at most {COLUMNS_MAX}; break the line"));
        }
        if line.ends_with([' ', '\t']) {
            find("white-space", "white space at the end of the line; remove it".to_string());
        }
        if NO_TABS.contains(&suffix) && line.contains('\t') {
            find("white-space", "a tab; indent with spaces".to_string());
        }
        if let Some(bad) = line.chars().find(|&c| is_hidden(c)) {
            find(
                "encoding",
                format!("hidden character U+{:04X}; remove it or write it as an escape", u32::from(bad)),
            );
        }
    }
    if !text.is_empty() && !text.ends_with('\n') {
        let last = text.lines().count();
        findings.push(Finding::new(path, last, "white-space", "no newline at the end of the file; add one"));
    }
}

/// Control characters, byte order marks, zero-width and direction marks: what a reader cannot see.
fn is_hidden(letter: char) -> bool {
    let control = letter.is_control() && letter != '\t';
    control
        || matches!(letter, '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2060}'..='\u{2069}' | '\u{FEFF}' | '\u{FFFD}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{places, project};

    #[test]
    fn a_module_with_a_folder_begins_in_it() {
        let head = "//! Head.\n";
        let bad = project(&[("crates/key/src/a.rs", head), ("crates/key/src/a/tests.rs", head)]);
        assert_eq!(places(check(&bad)), ["crates/key/src/a.rs:1"]);
        let good = project(&[
            ("crates/key/src/a/mod.rs", head),
            ("crates/key/src/a/tests.rs", head),
            ("crates/key/tests/formats.rs", head),
            ("crates/key/tests/formats/content.rs", head),
        ]);
        assert!(check(&good).is_empty());
    }

    #[test]
    fn every_kind_of_bad_line_is_found() {
        let text =
            format!("//! Head.\nlet a; \n\tlet b;\n// {}\nlet c;\r\n// \u{202E}x\n// end", "x".repeat(138));
        let found = places(check(&project(&[("crates/key/src/a.rs", &text)])));
        let lines = [2, 3, 4, 5, 6, 7].map(|line| format!("crates/key/src/a.rs:{line}"));
        assert_eq!(found, lines);
    }

    #[test]
    fn a_file_that_is_no_text_is_found() {
        let mut bad = Sources::default();
        bad.insert("crates/key/src/a.rs", b"//! Head.\n// \xFF\n".to_vec());
        assert_eq!(places(check(&bad)), ["crates/key/src/a.rs:2"]);
    }

    #[test]
    fn a_module_without_a_head_is_found() {
        let bad = project(&[("crates/key/src/a.rs", "// Key.\nfn f() {}\n")]);
        assert_eq!(places(check(&bad)), ["crates/key/src/a.rs:1"]);
        let good = project(&[
            ("crates/key/src/a.rs", "//! Key: \u{2264} 1,900 B.\n"),
            ("docs/a.md", &format!("{}\n", "x".repeat(300))),
            ("Makefile", "a:\n\tb\n"),
        ]);
        assert_eq!(check(&good), []);
    }
}
