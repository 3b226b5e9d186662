//! How much a user of the Rust API meets at once: the public methods of its `Session`.
//!
//! What only servers, bindings or owners of many locks call stands in traits beside it (`Serving`, `Levels`, `LockOwners` and
//! others), so that the page of `Session` shows what a program needs that has one session and some nodes.

use crate::finding::Finding;
use crate::lexer;
use crate::sources::Sources;

const RULE: &str = "face";
/// Where the methods stand.
const PLACE: &str = "crates/perilune/src/";
/// So many public methods `Session` has at most.
const MOST: usize = 45;

pub(crate) fn check(sources: &Sources) -> Vec<Finding> {
    let count: usize = sources
        .texts(&["rs"])
        .filter(|(path, _)| path.starts_with(PLACE))
        .map(|(_, text)| methods(&lexer::lex(text).code))
        .sum();
    if count <= MOST {
        return Vec::new();
    }
    let complaint =
        format!("`Session` has {count} public methods, {MOST} at most: has one a trait beside it?");
    vec![Finding::new(&format!("{PLACE}session/mod.rs"), 1, RULE, complaint)]
}

/// The public methods of blocks `impl Session` in a file.
fn methods(code: &str) -> usize {
    let mut is_inside = false;
    let mut count = 0;
    for line in code.lines() {
        match line.trim_end() {
            "impl Session {" => is_inside = true,
            "}" => is_inside = false,
            line => count += usize::from(is_inside && line.starts_with("    pub fn ")),
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::project;

    #[test]
    fn too_many_methods_are_found() {
        let methods =
            |count: usize| format!("impl Session {{\n{}}}\n", "    pub fn f(&self) {}\n".repeat(count));
        let files = |count: usize| {
            project(&[("crates/perilune/src/a.rs", &*methods(count)), ("crates/key/src/a.rs", "")])
        };
        assert!(check(&files(MOST)).is_empty());
        assert_eq!(check(&files(MOST + 1)).len(), 1);
        let other = "impl Session {\n    pub(crate) fn f() {}\n    fn g() {}\n}\nimpl Other {\n    pub fn h() {}\n}\n";
        assert_eq!(super::methods(other), 0);
    }
}
