//! Crates depend on each other as `house::ROOMS` says, and every crate has a room.
//!
//! Reads the sections of each `Cargo.toml` line by line: enough for manifests that write one
//! dependency a line or a section, as ours do.

use crate::finding::Finding;
use crate::house::{Room, ROOMS};
use crate::sources::Sources;

const RULE: &str = "dependencies";

pub(crate) fn check(sources: &Sources) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in sources.texts(&["toml"]) {
        let Some(dir) = path.strip_suffix("/Cargo.toml") else {
            continue;
        };
        let crate_dir = dir.starts_with("crates/") && dir.matches('/').count() == 1;
        match ROOMS.iter().find(|room| room.dir == dir) {
            Some(room) => manifest(room, path, text, &mut findings),
            None if crate_dir => findings.push(Finding::new(path, 1, RULE, format!(
                "crate `{dir}` has no room; add it to ROOMS in crates/xtask/src/house.rs and to ARCHITECTURE.md"
            ))),
            None => {}
        }
    }
    findings
}

fn manifest(room: &Room, path: &str, text: &str, findings: &mut Vec<Finding>) {
    for (line, section, name) in dependencies(text) {
        let in_tests = section != "dependencies";
        let allowed = room.uses.contains(&name) || (in_tests && room.tests_use.contains(&name));
        if !allowed {
            findings.push(Finding::new(
                path,
                line,
                RULE,
                format!(
                "`{}` may not depend on `{name}` in [{section}]; a new edge needs a note in docs/design and \
                     a line in ROOMS in crates/xtask/src/house.rs",
                room.dir
            ),
            ));
        }
    }
    let inherits = text.contains("[lints]\nworkspace = true");
    if !inherits {
        findings.push(Finding::new(
            path,
            1,
            RULE,
            "the lints of the workspace do not apply; add `[lints]` with `workspace = true`",
        ));
    }
}

/// Line, kind of section (`dependencies`, `dev-dependencies`, `build-dependencies`) and package.
fn dependencies(text: &str) -> Vec<(usize, &str, &str)> {
    let mut found = Vec::new();
    let mut section = None;
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if let Some(head) = line.strip_prefix('[') {
            let head = head.trim_end_matches(']');
            let (kind, name) = kind_of(head);
            if let (Some(kind), Some(name)) = (kind, name) {
                found.push((index + 1, kind, name));
            }
            section = kind.filter(|_| name.is_none());
        } else if let (Some(kind), true) = (section, !line.is_empty() && !line.starts_with('#')) {
            let end = line.find(['.', '=', ' ']).unwrap_or(line.len());
            found.push((index + 1, kind, line[..end].trim_matches('"')));
        }
    }
    found
}

/// Kind of a section head, and the package when the head names one (`dependencies.foo`).
fn kind_of(head: &str) -> (Option<&str>, Option<&str>) {
    let head = head.rsplit_once(").").map_or(head, |(_, rest)| rest);
    let head = head.rsplit_once("'.").map_or(head, |(_, rest)| rest);
    let (kind, name) = match head.split_once('.') {
        Some((kind, name)) => (kind, Some(name)),
        None => (head, None),
    };
    if kind.ends_with("dependencies") {
        (Some(kind), name)
    } else {
        (None, None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{places, project};

    const LINTS: &str = "[lints]\nworkspace = true\n";

    #[test]
    fn a_forbidden_edge_is_found() {
        let text = format!(
            "{LINTS}[dependencies]\nperilune-engine.workspace = true\n\n[dependencies.serde]\nversion = \"1\"\n\
             [target.'cfg(loom)'.dependencies]\nrand = \"1\"\n"
        );
        let bad = project(&[("crates/key/Cargo.toml", &text)]);
        assert_eq!(
            places(check(&bad)),
            ["crates/key/Cargo.toml:4", "crates/key/Cargo.toml:6", "crates/key/Cargo.toml:9"]
        );
    }

    #[test]
    fn a_test_dependency_is_not_an_ordinary_one() {
        let dev = format!("{LINTS}[dev-dependencies]\nproptest.workspace = true\n");
        assert_eq!(check(&project(&[("crates/key/Cargo.toml", &dev)])), []);
        let plain = format!("{LINTS}[dependencies]\nproptest.workspace = true\n");
        assert_eq!(check(&project(&[("crates/key/Cargo.toml", &plain)])).len(), 1);
    }

    #[test]
    fn a_crate_without_a_room_or_lints_is_found() {
        let bad = project(&[("crates/attic/Cargo.toml", LINTS), ("crates/key/Cargo.toml", "[package]\n")]);
        assert_eq!(places(check(&bad)), ["crates/attic/Cargo.toml:1", "crates/key/Cargo.toml:1"]);
    }
}
