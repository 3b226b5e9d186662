//! C files of a directory stand in one order: each says in a header what it offers, includes that first, and otherwise only
//! headers of files above it.
//!
//! The orders are `house::C_ORDERS`. A header without a C file has its place there, too; headers of other directories are no
//! concern of this rule.

use crate::finding::Finding;
use crate::house::{COrder, C_ORDERS};
use crate::sources::Sources;

const RULE: &str = "include-order";

pub(crate) fn check(sources: &Sources) -> Vec<Finding> {
    C_ORDERS.iter().flat_map(|order| check_one(sources, order)).collect()
}

fn check_one(sources: &Sources, order: &COrder) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in sources.texts(&["c", "h"]) {
        let Some((stem, suffix)) = path.strip_prefix(order.dir).and_then(|name| name.rsplit_once('.')) else {
            continue;
        };
        if stem.contains('/') {
            continue;
        }
        let Some(own) = rank(order, stem) else {
            let message = format!(
                "has no place in the order of {}; give it one in crates/xtask/src/house.rs",
                order.dir
            );
            findings.push(Finding::new(path, 1, RULE, message));
            continue;
        };
        let mut included = included(text);
        if suffix == "c" {
            let first = included.next();
            if first.is_none_or(|(_, name)| name.strip_suffix(".h") != Some(stem)) {
                let line = first.map_or(1, |(line, _)| line);
                let message = format!("includes {stem}.h first, which says what this file offers");
                findings.push(Finding::new(path, line, RULE, message));
            }
        }
        for (line, name) in included {
            if let Some(message) = judge(order, own, stem, name) {
                findings.push(Finding::new(path, line, RULE, message));
            }
        }
    }
    findings
}

/// Why a file may not include a header; nothing if it may.
fn judge(order: &COrder, own: usize, stem: &str, name: &str) -> Option<String> {
    let used = name.strip_suffix(".h")?;
    let rank = rank(order, used)?;
    (rank >= own)
        .then(|| format!("`{stem}` stands above `{used}` and may not include it; move the shared part up or the user of it down"))
}

/// The files that a text includes, with the numbers of the lines.
fn included(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines().enumerate().filter_map(|(index, line)| {
        let name = line.trim_start().strip_prefix('#')?.trim_start().strip_prefix("include")?.trim();
        let inner = name.strip_prefix(['"', '<'])?;
        Some((index + 1, inner.split(['"', '>']).next()?))
    })
}

fn rank(order: &COrder, stem: &str) -> Option<usize> {
    order.files.iter().position(|name| *name == stem)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{places, project};

    const ORDER: COrder = COrder { dir: "c/", files: &["low", "middle", "high"] };

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        places(check_one(&project(files), &ORDER))
    }

    #[test]
    fn a_file_includes_its_own_header_first_and_none_from_below() {
        let bad = found(&[
            ("c/low.c", "/* Low. */\n#include \"low.h\"\n\n#include \"middle.h\"\n"),
            ("c/low.h", "#include <stddef.h>\n# include <high.h>\n"),
            ("c/middle.c", "#include \"low.h\"\n#include \"middle.h\"\n"),
            ("c/high.c", "int x;\n"),
            ("c/stuff.c", "#include \"stuff.h\"\n"),
        ]);
        let wanted = ["c/high.c:1", "c/low.c:4", "c/low.h:2", "c/middle.c:1", "c/middle.c:2", "c/stuff.c:1"];
        let mut bad = bad;
        bad.sort();
        assert_eq!(bad, wanted);
    }

    #[test]
    fn what_stands_above_is_fine() {
        let good = found(&[
            ("c/low.h", "#include <lua.h>\n"),
            (
                "c/middle.c",
                "#include \"middle.h\"\n\n#include \"low.h\"\n\n#include <stdio.h>\n#include \"text.inc\"\n",
            ),
            ("c/middle.h", "#include \"low.h\"\n"),
            ("c/spec/other.c", "int x;\n"),
            ("d/other.c", "int x;\n"),
        ]);
        assert!(good.is_empty(), "{good:?}");
    }

    /// A name in an order that no file has would make room for arrows that nobody sees.
    #[test]
    fn every_place_of_an_order_has_a_file() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        for order in C_ORDERS {
            for name in order.files {
                let has = |suffix| root.join(order.dir).join(format!("{name}.{suffix}")).exists();
                assert!(has("h"), "{}{name}.h", order.dir);
            }
        }
    }
}
