//! What must be listed is listed: design notes in their index, crates in ARCHITECTURE.md.

use crate::finding::Finding;
use crate::sources::{self, Sources};

const INDEX: &str = "docs/design/README.md";
const ARCHITECTURE: &str = "ARCHITECTURE.md";

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
    findings
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
    use crate::tidy::samples::{places, project};

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
        assert_eq!(places(check(&bad)), ["crates/shm/Cargo.toml:1", "docs/design/0002-two.md:1"]);
    }
}
