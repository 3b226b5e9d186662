//! Which top-level module of a crate uses which: the arrows of its house, read from the sources.
//!
//! Looks at `crate::` paths, and at `super::` paths that reach the crate root. Tests stand beside the house: files
//! named `tests.rs` or `*_tests.rs`, and the engine's fuzz targets, are passed over. So are programs in `bin/`: each is
//! a crate of its own.

use std::collections::{BTreeMap, BTreeSet};

use crate::lexer::{self, identifier, is_word, line_at};
use crate::sources::Sources;

/// One use of another module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Arrow<'a> {
    /// Path of the file that uses, and the line.
    pub(crate) path: &'a str,
    pub(crate) line: usize,
    /// The module of that file, and the module it uses: the one that is named, or that the crate root has the name
    /// from. Else the name itself, which then is none of either.
    pub(crate) from: &'a str,
    pub(crate) to: String,
}

/// Every file of the house below `dir`, a crate's `src/` with the slash: its path, its module, its text.
pub(crate) fn files<'a>(
    sources: &'a Sources,
    dir: &'a str,
) -> impl Iterator<Item = (&'a str, &'a str, &'a str)> + 'a {
    sources.texts(&["rs"]).filter_map(move |(path, text)| {
        let inside = path.strip_prefix(dir)?;
        (!is_test(inside)).then(|| (path, module_of(inside), text))
    })
}

/// Every arrow between files below `dir`, also to names that are no module. The crate root itself uses all.
pub(crate) fn arrows<'a>(sources: &'a Sources, dir: &'a str) -> Vec<Arrow<'a>> {
    let mut found = Vec::new();
    let modules: BTreeSet<&str> = files(sources, dir).map(|(_, module, _)| module).collect();
    let root = files(sources, dir).find(|(_, module, _)| is_root(module));
    let shown = root.map_or(BTreeMap::new(), |(_, _, text)| shown_by_root(text));
    for (path, from, text) in files(sources, dir) {
        if is_root(from) {
            continue;
        }
        let code = lexer::lex(text).code;
        for (at, name) in uses(&code, depth(&path[dir.len()..])) {
            let through = (!modules.contains(name)).then(|| shown.get(name).map(String::as_str)).flatten();
            let to = through.unwrap_or(name);
            // What the root has from another crate, or defines itself, is no arrow between modules.
            let foreign = through.is_some_and(|module| !modules.contains(module));
            let own = !modules.contains(to) && root.is_some_and(|(_, _, text)| defines(text, name));
            if to != from && !foreign && !own {
                found.push(Arrow { path, line: line_at(&code, at), from, to: to.to_string() });
            }
        }
    }
    found
}

/// Whether the crate root has an item of that name.
fn defines(root: &str, name: &str) -> bool {
    let code = lexer::lex(root).code;
    let is_defined = |at: usize| {
        let before = code[..at].trim_end();
        ["struct", "enum", "trait", "type", "fn", "const", "static", "union"]
            .iter()
            .any(|word| before.ends_with(word))
    };
    let found = lexer::words(&code, name).any(is_defined);
    found
}

/// Names that the crate root takes from elsewhere, with the module, or the crate, that it takes each from.
fn shown_by_root(text: &str) -> BTreeMap<String, String> {
    let code = lexer::lex(text).code;
    let mut shown = BTreeMap::new();
    for at in lexer::words(&code, "use") {
        let rest = &code[at + "use".len()..];
        let path = &rest[..rest.find(';').unwrap_or(rest.len())];
        let path = path.trim().trim_start_matches("crate::").trim_start_matches("self::");
        let module = identifier(path);
        let words = path[module.len()..].split(|letter: char| !(letter == '_' || letter.is_alphanumeric()));
        shown.extend(words.filter(|word| !word.is_empty()).map(|name| (name.to_owned(), module.to_owned())));
    }
    shown
}

/// Modules that use each other, directly or by others: each set of two or more, largest first.
pub(crate) fn circles<'a>(arrows: &'a [Arrow<'a>]) -> Vec<BTreeSet<&'a str>> {
    let mut edges: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for arrow in arrows {
        edges.entry(arrow.from).or_default().insert(&arrow.to);
    }
    let reached: BTreeMap<&str, BTreeSet<&str>> =
        edges.keys().map(|module| (*module, reachable(&edges, module))).collect();
    let mut circles: Vec<BTreeSet<&str>> = Vec::new();
    for (module, there) in &reached {
        let back = |other: &&&str| reached.get(**other).is_some_and(|all| all.contains(module));
        let circle: BTreeSet<&str> = there.iter().filter(back).copied().collect();
        if circle.len() > 1 && !circles.contains(&circle) {
            circles.push(circle);
        }
    }
    circles.sort_by_key(|circle| std::cmp::Reverse(circle.len()));
    circles
}

fn reachable<'a>(edges: &BTreeMap<&'a str, BTreeSet<&'a str>>, from: &str) -> BTreeSet<&'a str> {
    let mut seen = BTreeSet::new();
    let mut open: Vec<&str> = edges.get(from).into_iter().flatten().copied().collect();
    while let Some(module) = open.pop() {
        if seen.insert(module) {
            open.extend(edges.get(module).into_iter().flatten());
        }
    }
    seen
}

/// Whether a module is the crate's root.
pub(crate) fn is_root(module: &str) -> bool {
    matches!(module, "lib" | "main")
}

fn is_test(inside: &str) -> bool {
    inside.ends_with("/tests.rs")
        || inside.ends_with("_tests.rs")
        || inside.starts_with("fuzz/")
        || inside.starts_with("bin/")
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
    use crate::samples::project;

    #[test]
    fn modules_that_use_each_other_are_a_circle() {
        let sources = project(&[
            ("crates/a/src/lib.rs", "pub use crate::x::X;\n"),
            ("crates/a/src/x.rs", "use crate::y::Y;\n"),
            ("crates/a/src/y/mod.rs", "use crate::z;\n"),
            ("crates/a/src/y/tests.rs", "use crate::w;\n"),
            ("crates/a/src/z.rs", "fn f() { super::x::g(); }\n"),
            ("crates/a/src/w.rs", "use crate::{x, y};\n"),
        ]);
        let all = arrows(&sources, "crates/a/src/");
        assert_eq!(all.len(), 5, "{all:?}");
        assert_eq!(circles(&all), [BTreeSet::from(["x", "y", "z"])]);
    }

    #[test]
    fn names_of_the_root_lead_to_their_modules() {
        let sources = project(&[
            (
                "crates/a/src/lib.rs",
                "mod x;\npub use other::Far;\npub use x::{Near, inner::Deep};\nconst OWN: u8 = 0;\n",
            ),
            ("crates/a/src/x.rs", "pub struct Near;\n"),
            ("crates/a/src/y.rs", "use crate::{Deep, Far, Near, Nobody, OWN};\n"),
        ]);
        let all = arrows(&sources, "crates/a/src/");
        let to: Vec<_> = all.iter().map(|arrow| arrow.to.as_str()).collect();
        assert_eq!(to, ["x", "x", "Nobody"]);
    }

    #[test]
    fn a_straight_line_has_no_circle() {
        let sources =
            project(&[("crates/a/src/x.rs", "use crate::y;\n"), ("crates/a/src/y.rs", "use super::y;\n")]);
        assert!(circles(&arrows(&sources, "crates/a/src/")).is_empty());
    }
}
