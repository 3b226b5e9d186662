//! Modules of a crate stand in one order and use only what stands above them.
//!
//! The orders are `house::ORDERS`. A circle of modules cannot be written down in an order, so a crate that has one
//! has no circles.

use crate::arrows::{self, is_root};
use crate::finding::Finding;
use crate::house::{Order, ORDERS};
use crate::sources::Sources;

const RULE: &str = "import-order";

pub(crate) fn check(sources: &Sources) -> Vec<Finding> {
    ORDERS.iter().flat_map(|order| check_one(sources, order)).collect()
}

fn check_one(sources: &Sources, order: &Order) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, module, _) in arrows::files(sources, order.src) {
        if rank(order, module).is_none() && !is_root(module) {
            let message = format!(
                "module `{module}` has no place in the order of {}; give it one in crates/xtask/src/house.rs",
                order.src
            );
            findings.push(Finding::new(path, 1, RULE, message));
        }
    }
    for arrow in arrows::arrows(sources, order.src) {
        let Some(own) = rank(order, arrow.from) else { continue };
        if let Some(message) = judge(order, arrow.from, own, &arrow.to) {
            findings.push(Finding::new(arrow.path, arrow.line, RULE, message));
        }
    }
    findings
}

fn judge(order: &Order, module: &str, own: usize, used: &str) -> Option<String> {
    match rank(order, used) {
        Some(rank) if rank < own => None,
        Some(_) => Some(format!(
            "`{module}` stands above `{used}` and may not use it; move the shared part up or the user of it down"
        )),
        None => Some(format!(
            "`crate::{used}` is no module of the order; name the module that holds it, \
             or give it a place in crates/xtask/src/house.rs"
        )),
    }
}

fn rank(order: &Order, module: &str) -> Option<usize> {
    order.modules.iter().position(|(name, _)| *name == module)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{places, project};

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
