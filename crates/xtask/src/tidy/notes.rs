//! What must be listed is listed: design notes in their index, crates in ARCHITECTURE.md, whose tables are those of
//! `house.rs`. And what is to be read at one sitting is short: a design note has two pages, CHANGELOG a line or two for
//! each thing that a user notices.

use crate::finding::Finding;
use crate::sources::{self, Sources};
use crate::storeys;

const INDEX: &str = "docs/design/README.md";
const ARCHITECTURE: &str = storeys::DOCUMENT;
/// Most words of a design note: two pages.
const WORDS: usize = 1_000;
/// Most lines of CHANGELOG.
const LINES: usize = 60;

pub(crate) fn check(sources: &Sources) -> Vec<Finding> {
    let mut findings = Vec::new();
    let index = sources.text(INDEX).unwrap_or("");
    let architecture = sources.text(ARCHITECTURE).unwrap_or("");
    for path in sources.paths() {
        let name = sources::name(path);
        if path == format!("docs/design/{name}") && is_note(name) && !index.contains(&format!("({name})")) {
            findings.push(Finding::new(
                path,
                1,
                "design-index",
                format!("not linked in {INDEX}; add a line for it"),
            ));
        }
        if path == format!("docs/design/{name}") && is_note(name) {
            findings.extend(sources.text(path).and_then(|text| long(path, text)));
        }
        if let Some(dir) = path.strip_suffix("/Cargo.toml") {
            let is_crate = dir.starts_with("crates/") && dir.matches('/').count() == 1;
            let listed =
                architecture.contains(&format!("`{dir}`")) || architecture.contains(&format!("({dir})"));
            if is_crate && !listed {
                findings.push(Finding::new(
                    path,
                    1,
                    "architecture",
                    format!("`{dir}` does not stand in {ARCHITECTURE}; say there what it is"),
                ));
            }
        }
    }
    findings.extend(sources.text(ARCHITECTURE).and_then(tables));
    let lines = sources.text("CHANGELOG.md").map_or(0, |text| text.lines().count());
    findings.extend((lines > LINES).then(|| {
        let message = format!("{lines} lines, at most {LINES}; say it shorter, or in a guide");
        Finding::new("CHANGELOG.md", LINES + 1, "long-document", message)
    }));
    findings
}

/// The finding if a note is longer than two pages.
fn long(path: &str, text: &str) -> Option<Finding> {
    let words = text.split_whitespace().count();
    (words > WORDS).then(|| {
        let message = format!("{words} words, at most {WORDS}; say it shorter, or make two of it");
        Finding::new(path, 1, "long-document", message)
    })
}

/// The finding if a table of ARCHITECTURE.md is missing, or not as `house.rs` has it.
fn tables(text: &str) -> Option<Finding> {
    let marked = storeys::tables().iter().all(|(name, _)| text.contains(&format!("<!-- {name}: begin -->")));
    let same = storeys::with_tables(text) == text;
    (!marked || !same).then(|| {
        let message = "its tables are not those of crates/xtask/src/house.rs; run cargo xtask house --write";
        Finding::new(ARCHITECTURE, 1, "architecture", message)
    })
}

/// `NNNN-title.md`.
fn is_note(name: &str) -> bool {
    let (number, rest) = name.split_at_checked(4).unwrap_or(("", ""));
    number.len() == 4
        && number.bytes().all(|b| b.is_ascii_digit())
        && rest.starts_with('-')
        && rest.ends_with(".md")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{places, project};

    #[test]
    fn what_is_not_listed_is_found() {
        let bad = project(&[
            ("docs/design/README.md", "- [one](0001-one.md)\n"),
            ("docs/design/0001-one.md", ""),
            ("docs/design/0002-two.md", ""),
            ("ARCHITECTURE.md", "`crates/key`\n"),
            ("crates/key/Cargo.toml", ""),
            ("crates/shm/Cargo.toml", ""),
        ]);
        assert_eq!(
            places(check(&bad)),
            ["ARCHITECTURE.md:1", "crates/shm/Cargo.toml:1", "docs/design/0002-two.md:1"]
        );
    }

    #[test]
    fn what_is_too_long_is_found() {
        let (long, short) = ("word ".repeat(WORDS + 1), "word ".repeat(WORDS));
        let project = project(&[
            ("docs/design/README.md", "- [one](0001-one.md)\n- [two](0002-two.md)\n"),
            ("docs/design/0001-one.md", &long),
            ("docs/design/0002-two.md", &short),
            ("CHANGELOG.md", &"line\n".repeat(LINES + 1)),
        ]);
        assert_eq!(places(check(&project)), ["CHANGELOG.md:61", "docs/design/0001-one.md:1"]);
    }

    #[test]
    fn tables_that_are_not_true_are_found() {
        let marks: String = storeys::tables()
            .iter()
            .map(|(name, _)| format!("<!-- {name}: begin -->\n<!-- {name}: end -->\n"))
            .collect();
        assert!(tables(&marks).is_some() && tables("").is_some());
        assert!(tables(&storeys::with_tables(&marks)).is_none());
    }
}
