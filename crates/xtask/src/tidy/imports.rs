//! Modules of the engine stand in one order and use only what stands above them.
//!
//! The order is `house::ENGINE_MODULES`. A cycle between modules cannot be written down in it,
//! so there is none. Looks at `crate::` paths, and at `super::` paths that reach the crate root.

use crate::finding::Finding;
use crate::house::ENGINE_MODULES;
use crate::lexer::{self, identifier, is_word, line_at};
use crate::sources::Sources;

const RULE: &str = "import-order";
const ENGINE: &str = "crates/engine/src/";

pub(crate) fn check(sources: &Sources) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in sources.texts(&["rs"]) {
        let Some(inside) = path.strip_prefix(ENGINE) else {
            continue;
        };
        if is_test_module(inside) {
            continue;
        }
        let module = module_of(inside);
        let Some(rank) = rank(module) else {
            findings.push(Finding::new(path, 1, RULE, format!(
                "module `{module}` has no place in the order; put it into ENGINE_MODULES in crates/xtask/src/house.rs"
            )));
            continue;
        };
        if module == "lib" {
            continue;
        }
        let code = lexer::lex(text).code;
        for (at, used) in uses(&code, depth(inside)) {
            if let Some(message) = judge(module, rank, used) {
                findings.push(Finding::new(path, line_at(&code, at), RULE, message));
            }
        }
    }
    findings
}

/// Tests may use whatever they like: they stand beside the order, not in it.
fn is_test_module(inside: &str) -> bool {
    inside.ends_with("/tests.rs") || inside.starts_with("fuzz/")
}

fn judge(module: &str, rank_of_module: usize, used: &str) -> Option<String> {
    if used == module {
        return None;
    }
    match rank(used) {
        Some(rank) if rank < rank_of_module => None,
        Some(_) => Some(format!(
            "`{module}` stands above `{used}` and may not use it; move the shared part up or the user of it down"
        )),
        None => Some(format!(
            "`crate::{used}` is no module of the order; name the module that holds it, \
             or add it to ENGINE_MODULES in crates/xtask/src/house.rs"
        )),
    }
}

fn rank(module: &str) -> Option<usize> {
    ENGINE_MODULES.iter().position(|(name, _)| *name == module)
}

/// The top-level module that a path below `src/` belongs to.
fn module_of(inside: &str) -> &str {
    let first = inside.split('/').next().unwrap_or(inside);
    first.strip_suffix(".rs").unwrap_or(first)
}

/// How many modules deep a file is: `page.rs` and `page/mod.rs` are 1.
fn depth(inside: &str) -> usize {
    let parts = inside.split('/').count();
    parts - usize::from(inside.ends_with("/mod.rs"))
}

/// Every first name below the crate root that the code mentions.
fn uses(code: &str, depth: usize) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices("crate::") {
        let word_before = at > 0 && is_word(code.as_bytes()[at - 1]);
        if !word_before && !code[..at].ends_with('$') {
            first_names(code, at + "crate::".len(), &mut found);
        }
    }
    let climb = "super::".repeat(depth);
    let outline = &code[..first_inline_module(code)];
    for (at, _) in outline.match_indices(&climb) {
        let before = &outline[..at];
        let rest = &outline[at + climb.len()..];
        let part_of_longer = before.ends_with("super::") || rest.starts_with("super::");
        if !part_of_longer && !before.ends_with("in ") {
            first_names(code, at + climb.len(), &mut found);
        }
    }
    found
}

/// Where the first `mod name { ... }` starts: `super` means something else inside it.
fn first_inline_module(code: &str) -> usize {
    let inline = |&at: &usize| {
        let rest = code[at + 3..].trim_start();
        rest[identifier(rest).len()..].trim_start().starts_with('{')
    };
    lexer::words(code, "mod").find(inline).unwrap_or(code.len())
}

/// The names at `at`: one, or those at the first level of `{a, b::c, d::{e}}`. Macros are left out.
fn first_names<'a>(code: &'a str, at: usize, found: &mut Vec<(usize, &'a str)>) {
    let rest = &code[at..];
    if !rest.starts_with('{') {
        let name = identifier(rest);
        let after = rest.trim_start()[name.len()..].bytes().next();
        if !name.is_empty() && after != Some(b'!') {
            found.push((at, name));
        }
        return;
    }
    let (mut level, mut start) = (0usize, false);
    for (offset, byte) in rest.bytes().enumerate() {
        match byte {
            b'{' => (level, start) = (level + 1, level == 0),
            b'}' if level == 1 => return,
            b'}' => level -= 1,
            b',' => start = level == 1,
            _ if start && is_word(byte) => {
                found.push((at + offset, identifier(&rest[offset..])));
                start = false;
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::samples::{places, project};

    #[test]
    fn a_module_may_not_use_one_below() {
        let bad = project(&[
            ("crates/engine/src/page.rs", "//! Page.\nuse crate::limits;\nuse crate::tree::Tree;\n"),
            ("crates/engine/src/tree/mod.rs", "use crate::{page::Page, txn::{Txn, wal}};\n"),
            ("crates/engine/src/image.rs", "fn f() { super::txn::g(); super::page::h(); }\n"),
        ]);
        assert_eq!(
            places(check(&bad)),
            [
                "crates/engine/src/image.rs:1",
                "crates/engine/src/page.rs:3",
                "crates/engine/src/tree/mod.rs:1"
            ]
        );
    }

    #[test]
    fn test_modules_stand_beside_the_order() {
        let good = project(&[
            ("crates/engine/src/page/tests.rs", "use crate::txn;\n"),
            ("crates/engine/src/fuzz/mod.rs", ""),
        ]);
        assert!(check(&good).is_empty());
    }

    #[test]
    fn an_unknown_module_is_named() {
        let bad = project(&[("crates/engine/src/stuff.rs", "//! Stuff.\n")]);
        assert_eq!(places(check(&bad)), ["crates/engine/src/stuff.rs:1"]);
        let root = project(&[("crates/engine/src/page.rs", "use crate::Error;\n")]);
        assert_eq!(places(check(&root)), ["crates/engine/src/page.rs:1"]);
    }

    #[test]
    fn what_stands_above_is_fine() {
        let good = project(&[
            ("crates/engine/src/tree/insert.rs", "use super::search;\nuse crate::page;\n// crate::txn\n"),
            ("crates/engine/src/page.rs", "mod tests { use super::*; use super::txn; }\n"),
            ("crates/engine/src/lib.rs", "pub use crate::txn::Txn;\n"),
            ("crates/engine/src/txn.rs", "crate::fault!(1); pub(in crate::txn) fn f() {}\n"),
        ]);
        assert_eq!(check(&good), []);
    }
}
