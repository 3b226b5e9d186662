//! What must be listed is listed: design notes in their index, crates in ARCHITECTURE.md, whose tables are those of `house.rs`.

use crate::finding::Finding;
use crate::sources::{self, Sources};
use crate::storeys;

const INDEX: &str = "docs/design/README.md";
const ARCHITECTURE: &str = storeys::DOCUMENT;

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
    findings
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
    fn tables_that_are_not_true_are_found() {
        let marks: String = storeys::tables()
            .iter()
            .map(|(name, _)| format!("<!-- {name}: begin -->\n<!-- {name}: end -->\n"))
            .collect();
        assert!(tables(&marks).is_some() && tables("").is_some());
        assert!(tables(&storeys::with_tables(&marks)).is_none());
    }
}
