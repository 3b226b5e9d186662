//! What documents name by its name is there: targets of `make`, variables of the environment.
//!
//! Invariants
//! - `make TARGET` in backticks, in any document but recorded runs, names a target of the Makefile.
//! - SECURITY.md lists every variable `PERILUNE_...` that the library reads, so that the list is whole.

use crate::finding::Finding;
use crate::sources::Sources;

const MAKEFILE: &str = "Makefile";
const SECURITY: &str = "SECURITY.md";
/// Where the library that programs link reads its environment.
const LIBRARY: &[&str] = &[
    "crates/key/src/",
    "crates/shm/src/",
    "crates/disk/src/",
    "crates/store/src/",
    "crates/engine/src/",
    "crates/perilune/src/",
];

pub(crate) fn check(sources: &Sources) -> Vec<Finding> {
    let mut findings = Vec::new();
    let makefile = sources.text(MAKEFILE).unwrap_or("");
    for (path, text) in sources.texts(&["md"]).filter(|(path, _)| !path.starts_with("bench/runs/")) {
        for (index, line) in text.lines().enumerate() {
            for target in targets(line).filter(|target| !has_target(makefile, target)) {
                let message = format!("`make {target}`: {MAKEFILE} has no such target");
                findings.push(Finding::new(path, index + 1, "dead-target", message));
            }
        }
    }
    let security = sources.text(SECURITY).unwrap_or("");
    for (path, text) in sources.texts(&["rs"]).filter(|(path, _)| is_library(path)) {
        for (index, line) in text.lines().enumerate() {
            for name in variables(line).filter(|name| !security.contains(&format!("`{name}`"))) {
                let message = format!("`{name}` is read here and not listed in {SECURITY}");
                findings.push(Finding::new(path, index + 1, "environment", message));
            }
        }
    }
    findings
}

/// Instruments and tests are no part of what a program links.
fn is_library(path: &str) -> bool {
    LIBRARY.iter().any(|dir| path.starts_with(dir)) && !path.contains("test") && !path.contains("/fuzz/")
}

/// The targets of `make` that a line names.
fn targets(line: &str) -> impl Iterator<Item = &str> {
    let quoted = line.split('`').skip(1).step_by(2);
    quoted
        .filter_map(|quoted| quoted.strip_prefix("make ")?.split(' ').next())
        .filter(|target| is_name(target))
}

fn is_name(target: &str) -> bool {
    let letters =
        target.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
    letters && !target.starts_with('-')
}

fn has_target(makefile: &str, target: &str) -> bool {
    makefile.lines().any(|line| {
        let names = line.split_once(':').map(|(names, _)| names);
        !line.starts_with(['\t', '#', '.'])
            && names.is_some_and(|names| names.split(' ').any(|name| name == target))
    })
}

/// The names `PERILUNE_...` that stand in a line as whole strings.
fn variables(line: &str) -> impl Iterator<Item = &str> {
    line.split('"').skip(1).step_by(2).filter(|text| {
        let rest = text.strip_prefix("PERILUNE_").unwrap_or("");
        !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_')
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{places, project};

    #[test]
    fn a_target_that_is_not_there_is_found() {
        let text = "`make test`, `make bench-all`,\n`make gone TIMES=2`, `make -C x all`, `cargo make`\n";
        let makefile = "# gone:\n.PHONY: gone\ntest bench-all: x\n\tgone: y\n";
        let bad = project(&[("docs/a.md", text), ("bench/runs/r.md", text), (MAKEFILE, makefile)]);
        assert_eq!(places(check(&bad)), ["docs/a.md:2"]);
    }

    #[test]
    fn a_variable_that_is_not_listed_is_found() {
        let code = "fn f() { set(\"PERILUNE_DB\"); }\nfn g() { set(\"PERILUNE_NEW\"); }\n// PERILUNE_X\n";
        let bad = project(&[
            (SECURITY, "It reads `PERILUNE_DB`.\n"),
            ("crates/perilune/src/a.rs", code),
            ("crates/engine/src/fuzz/a.rs", code),
            ("crates/cli/src/a.rs", code),
        ]);
        assert_eq!(places(check(&bad)), ["crates/perilune/src/a.rs:2"]);
    }
}
