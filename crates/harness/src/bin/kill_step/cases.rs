//! The operations that are killed: each with the state it begins in and what it must lead to.
//!
//! A case that is about a way through the engine (a split, a merge, growth) says how to see that its
//! operation has gone that way: a case that no longer does fails.

use perilune_engine::instrument::{Shape, Tree, INLINE_BYTES, KEY_BYTES, PAGE_BYTES};
use perilune_store::Result;

use crate::setup::{Plan, Setup, Write};

/// A named case.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) build: fn(&mut Setup) -> Result<Plan>,
}

pub(crate) const MAIN: Tree = Tree::Main;
pub(crate) const VOLATILE: Tree = Tree::Volatile;

/// A short key.
pub(crate) fn key(index: usize) -> Vec<u8> {
    format!("node{index:05}").into_bytes()
}

/// A key so long that few separators fill an inner page.
fn long_key(index: usize) -> Vec<u8> {
    let mut key = vec![b'k'; KEY_BYTES - 5];
    key.extend_from_slice(format!("{index:05}").as_bytes());
    key
}

/// A value of `len` bytes that differs from others in most.
pub(crate) fn value(len: usize, seed: usize) -> Vec<u8> {
    (0..len).map(|index| (index * 7 + seed * 13) as u8).collect()
}

pub(crate) fn any(_: &Shape, _: &Shape) -> bool {
    true
}

/// Sets one key.
fn set(tree: Tree, key: Vec<u8>, value: Vec<u8>, took: fn(&Shape, &Shape) -> bool) -> Plan {
    let stages = vec![vec![Write { tree, key: key.clone(), value: Some(value.clone()) }]];
    Plan { act: Box::new(move |party| party.set(tree, &key, &value)), stages, took }
}

/// Removes one key.
fn remove(tree: Tree, key: Vec<u8>, took: fn(&Shape, &Shape) -> bool) -> Plan {
    let stages = vec![vec![Write { tree, key: key.clone(), value: None }]];
    Plan { act: Box::new(move |party| party.remove(tree, &key)), stages, took }
}

/// Writes pieces of the value `old` of a key.
fn patch(key: Vec<u8>, mut old: Vec<u8>, pieces: &'static [(usize, &'static [u8])]) -> Plan {
    for (offset, piece) in pieces {
        old.resize(old.len().max(offset + piece.len()), 0);
        old[*offset..offset + piece.len()].copy_from_slice(piece);
    }
    let stages = vec![vec![Write { tree: MAIN, key: key.clone(), value: Some(old) }]];
    Plan { act: Box::new(move |party| party.set_pieces(&key, pieces)), stages, took: any }
}

/// One leaf with forty records of 40 bytes.
fn forty(setup: &mut Setup, tree: Tree) -> Result<()> {
    for index in 0..40 {
        setup.set(tree, &key(index * 2), &value(40, index))?;
    }
    Ok(())
}

/// A tree of some leaves in order, filled by values of 900 bytes.
pub(crate) fn leaves(setup: &mut Setup, tree: Tree, count: usize) -> Result<()> {
    for index in 0..count * PAGE_BYTES / 900 {
        setup.set(tree, &key(index * 10), &value(900, index))?;
    }
    Ok(())
}

/// Sets keys after that of `from` until there is less room in their leaf than for `len` bytes more.
fn fill(setup: &mut Setup, from: usize, len: usize) -> Result<usize> {
    let mut index = from;
    while setup.actor.leaf_room(&key(from + 9))?.0 >= len + 100 {
        index += 1;
        assert!(index % 10 != 9, "a leaf does not fill");
        setup.set(MAIN, &key(index), &value(len, index))?;
    }
    Ok(index + 1)
}

/// Runs the sets of `write` on a setup of its own until `wanted` is true of one; answers its number.
fn until(
    prepare: impl Fn(&mut Setup) -> Result<()>,
    write: impl Fn(&mut Setup, usize) -> Result<()>,
    wanted: fn(&Shape, &Shape) -> bool,
) -> Result<usize> {
    let mut setup = Setup::new()?;
    prepare(&mut setup)?;
    let mut before = setup.actor.shape()?;
    for index in 0..4000 {
        write(&mut setup, index)?;
        let after = setup.actor.shape()?;
        if wanted(&before, &after) {
            return Ok(index);
        }
        before = after;
    }
    panic!("the operation that the case is about does not come about");
}

/// Finds the write as [`until`] does, then repeats on `setup` all writes before it.
pub(crate) fn just_before(
    setup: &mut Setup,
    prepare: impl Fn(&mut Setup) -> Result<()>,
    write: impl Fn(&mut Setup, usize) -> Result<()>,
    wanted: fn(&Shape, &Shape) -> bool,
) -> Result<usize> {
    let last = until(&prepare, &write, wanted)?;
    prepare(setup)?;
    for index in 0..last {
        write(setup, index)?;
    }
    Ok(last)
}

fn nothing(_: &mut Setup) -> Result<()> {
    Ok(())
}

fn set_long_key(setup: &mut Setup, index: usize) -> Result<()> {
    setup.set(MAIN, &long_key(index), &value(INLINE_BYTES, index))
}

pub(crate) fn has_split(before: &Shape, after: &Shape) -> bool {
    after.splits > before.splits
}

fn has_split_inner(before: &Shape, after: &Shape) -> bool {
    after.inner_pages == before.inner_pages + 1 && after.level == before.level && after.splits > before.splits
}

fn has_grown_level(before: &Shape, after: &Shape) -> bool {
    after.level > before.level
}

pub(crate) fn has_merged(before: &Shape, after: &Shape) -> bool {
    after.merges > before.merges
}

fn has_lowered(before: &Shape, after: &Shape) -> bool {
    after.level < before.level && before.level > 1
}

pub(crate) fn has_copied(before: &Shape, after: &Shape) -> bool {
    after.copies >= before.copies + 1 + u64::from(before.level)
}

pub(crate) fn has_grown_files(before: &Shape, after: &Shape) -> bool {
    after.pages > before.pages
}

/// The number of long keys that make a tree of three levels.
fn tall(setup: &mut Setup) -> Result<usize> {
    let last = until(nothing, set_long_key, |_, after| after.level >= 2)?;
    for index in 0..=last {
        set_long_key(setup, index)?;
    }
    Ok(last)
}

/// All cases, also those of `commits`.
pub(crate) fn all() -> impl Iterator<Item = &'static Case> {
    CASES.iter().chain(crate::commits::CASES).chain(crate::graphs::CASES)
}

/// Operations on one key.
const CASES: &[Case] = &[
    Case { name: "set-first", build: |_| Ok(set(MAIN, key(1), value(40, 1), any)) },
    Case {
        name: "set-new",
        build: |setup| {
            forty(setup, MAIN)?;
            Ok(set(MAIN, key(11), value(60, 1), any))
        },
    },
    Case {
        name: "set-same-size",
        build: |setup| {
            forty(setup, MAIN)?;
            Ok(set(MAIN, key(12), value(40, 99), any))
        },
    },
    Case {
        name: "set-shorter",
        build: |setup| {
            forty(setup, MAIN)?;
            Ok(set(MAIN, key(12), value(7, 99), any))
        },
    },
    Case {
        name: "set-longer",
        build: |setup| {
            forty(setup, MAIN)?;
            Ok(set(MAIN, key(12), value(200, 99), any))
        },
    },
    Case {
        name: "compact-insert",
        build: |setup| {
            for index in 0..7 {
                setup.set(MAIN, &key(index), &value(PAGE_BYTES / 8, index))?;
            }
            for index in [1, 3, 4] {
                setup.remove(MAIN, &key(index))?;
            }
            let (room, garbage) = setup.actor.leaf_room(&key(3))?;
            let len = PAGE_BYTES / 5;
            assert!(room > len + 100 && room - garbage < len, "the leaf needs no compaction");
            Ok(set(MAIN, key(3), value(len, 9), |before, after| before.splits == after.splits))
        },
    },
    Case {
        name: "compact-replace",
        build: |setup| {
            for index in 0..7 {
                setup.set(MAIN, &key(index), &value(PAGE_BYTES / 8, index))?;
            }
            for index in [1, 3, 4] {
                setup.remove(MAIN, &key(index))?;
            }
            let (room, garbage) = setup.actor.leaf_room(&key(3))?;
            let len = PAGE_BYTES / 5;
            assert!(room > len + 100 && room - garbage < len, "the leaf needs no compaction");
            Ok(set(MAIN, key(2), value(len, 9), |before, after| before.splits == after.splits))
        },
    },
    Case {
        name: "remove",
        build: |setup| {
            forty(setup, MAIN)?;
            Ok(remove(MAIN, key(12), any))
        },
    },
    Case {
        name: "remove-missing",
        build: |setup| {
            forty(setup, MAIN)?;
            Ok(remove(MAIN, key(13), any))
        },
    },
    Case {
        name: "update",
        build: |setup| {
            forty(setup, MAIN)?;
            setup.set(MAIN, b"counter", &7u64.to_le_bytes())?;
            let written = Some(12u64.to_le_bytes().to_vec());
            let stages = vec![vec![Write { tree: MAIN, key: b"counter".to_vec(), value: written }]];
            Ok(Plan { act: Box::new(|party| party.add(MAIN, b"counter", 5)), stages, took: any })
        },
    },
    Case {
        name: "compare-and-set",
        build: |setup| {
            forty(setup, MAIN)?;
            let (old, new) = (value(40, 6), value(30, 6));
            let stages = vec![vec![Write { tree: MAIN, key: key(12), value: Some(new.clone()) }]];
            let act = move |party: &perilune_engine::instrument::Party| {
                party.swap(MAIN, &key(12), Some(&old), Some(&new))
            };
            Ok(Plan { act: Box::new(act), stages, took: any })
        },
    },
    Case {
        name: "volatile-set",
        build: |setup| {
            forty(setup, VOLATILE)?;
            Ok(set(VOLATILE, key(11), value(60, 1), any))
        },
    },
    Case {
        name: "volatile-split",
        build: |setup| {
            let write =
                |setup: &mut Setup, index: usize| setup.set(VOLATILE, &key(index), &value(500, index));
            let wanted = |before: &Shape, after: &Shape| after.volatile_pages == before.volatile_pages + 1;
            let last = just_before(setup, |setup| leaves(setup, VOLATILE, 3), write, wanted)?;
            Ok(set(VOLATILE, key(last), value(500, last), wanted))
        },
    },
    Case {
        name: "volatile-merge",
        build: |setup| {
            let prepare = |setup: &mut Setup| leaves(setup, VOLATILE, 4);
            let write = |setup: &mut Setup, index: usize| setup.remove(VOLATILE, &key(index * 10));
            let last = just_before(setup, prepare, write, has_merged)?;
            Ok(remove(VOLATILE, key(last * 10), has_merged))
        },
    },
    Case {
        name: "leaf-split-middle",
        build: |setup| {
            leaves(setup, MAIN, 4)?;
            let next = fill(setup, 100, PAGE_BYTES / 10)?;
            Ok(set(MAIN, key(next), value(PAGE_BYTES / 10 + 90, next), has_split))
        },
    },
    Case {
        name: "leaf-split-right-edge",
        build: |setup| {
            let write = |setup: &mut Setup, index: usize| setup.set(MAIN, &key(index), &value(500, index));
            let wanted = |before: &Shape, after: &Shape| has_split(before, after) && before.level > 0;
            let last = just_before(setup, nothing, write, wanted)?;
            Ok(set(MAIN, key(last), value(500, last), wanted))
        },
    },
    Case {
        name: "leaf-split-of-few",
        build: |setup| {
            for index in 0..3 {
                setup.set(MAIN, &key(index * 2), &value(INLINE_BYTES, index))?;
            }
            Ok(set(MAIN, key(3), value(INLINE_BYTES, 3), has_split))
        },
    },
    Case {
        name: "root-split-leaf",
        build: |setup| {
            let write = |setup: &mut Setup, index: usize| setup.set(MAIN, &key(index), &value(500, index));
            let last = just_before(setup, nothing, write, has_grown_level)?;
            Ok(set(MAIN, key(last), value(500, last), has_grown_level))
        },
    },
    Case {
        name: "root-split-inner",
        build: |setup| {
            let wanted = |before: &Shape, after: &Shape| has_grown_level(before, after) && before.level > 0;
            let last = just_before(setup, nothing, set_long_key, wanted)?;
            Ok(set(MAIN, long_key(last), value(INLINE_BYTES, last), wanted))
        },
    },
    Case {
        name: "inner-split",
        build: |setup| {
            let last = just_before(setup, nothing, set_long_key, has_split_inner)?;
            Ok(set(MAIN, long_key(last), value(INLINE_BYTES, last), has_split_inner))
        },
    },
    Case {
        name: "merge",
        build: |setup| {
            let write = |setup: &mut Setup, index: usize| setup.remove(MAIN, &key(index * 10));
            let last = just_before(setup, |setup| leaves(setup, MAIN, 5), write, has_merged)?;
            Ok(remove(MAIN, key(last * 10), has_merged))
        },
    },
    Case {
        name: "merge-inner",
        build: |setup| {
            let prepare = |setup: &mut Setup| tall(setup).map(drop);
            let write = |setup: &mut Setup, index: usize| setup.remove(MAIN, &long_key(index));
            let wanted = |before: &Shape, after: &Shape| after.inner_pages < before.inner_pages;
            let last = just_before(setup, prepare, write, wanted)?;
            Ok(remove(MAIN, long_key(last), wanted))
        },
    },
    Case {
        name: "lower-root",
        build: |setup| {
            let prepare = |setup: &mut Setup| tall(setup).map(drop);
            let write = |setup: &mut Setup, index: usize| setup.remove(MAIN, &long_key(index));
            let last = just_before(setup, prepare, write, has_lowered)?;
            Ok(remove(MAIN, long_key(last), has_lowered))
        },
    },
    Case {
        name: "lower-root-to-leaf",
        build: |setup| {
            let write = |setup: &mut Setup, index: usize| setup.remove(MAIN, &key(index * 10));
            let wanted = |before: &Shape, after: &Shape| before.level == 1 && after.level == 0;
            let last = just_before(setup, |setup| leaves(setup, MAIN, 2), write, wanted)?;
            Ok(remove(MAIN, key(last * 10), wanted))
        },
    },
    Case {
        name: "patch-first",
        build: |setup| {
            forty(setup, MAIN)?;
            setup.set(MAIN, &key(12), &value(3 * PAGE_BYTES, 1))?;
            Ok(patch(key(12), value(3 * PAGE_BYTES, 1), &[(PAGE_BYTES + 5, b"a piece")]))
        },
    },
    Case {
        name: "patch-in-place",
        build: |setup| {
            forty(setup, MAIN)?;
            setup.set(MAIN, &key(12), &value(3 * PAGE_BYTES, 1))?;
            let old = setup.set_piece(&key(12), value(3 * PAGE_BYTES, 1), PAGE_BYTES, &[7; 100])?;
            Ok(patch(key(12), old, &[(PAGE_BYTES + 3, b"a piece in place"), (2 * PAGE_BYTES, b"x")]))
        },
    },
    Case {
        name: "patch-after-cut",
        build: |setup| {
            forty(setup, MAIN)?;
            setup.set(MAIN, &key(12), &value(3 * PAGE_BYTES, 1))?;
            let old = setup.set_piece(&key(12), value(3 * PAGE_BYTES, 1), PAGE_BYTES, &[7; 100])?;
            setup.actor.cut()?;
            Ok(patch(key(12), old, &[(PAGE_BYTES + 3, b"a piece anew")]))
        },
    },
    Case {
        name: "patch-growing",
        build: |setup| {
            forty(setup, MAIN)?;
            setup.set(MAIN, &key(12), &value(3 * PAGE_BYTES, 1))?;
            Ok(patch(
                key(12),
                value(3 * PAGE_BYTES, 1),
                &[(3 * PAGE_BYTES, b"behind"), (3 * PAGE_BYTES + 999, b"far")],
            ))
        },
    },
    Case {
        name: "first-touch-leaf-root",
        build: |setup| {
            forty(setup, MAIN)?;
            setup.actor.cut()?;
            Ok(set(MAIN, key(11), value(60, 1), has_copied))
        },
    },
    Case {
        name: "first-touch-path",
        build: |setup| {
            let last = tall(setup)?;
            setup.actor.cut()?;
            Ok(set(MAIN, long_key(last / 2), value(60, 1), has_copied))
        },
    },
    Case {
        name: "first-touch-twice",
        build: |setup| {
            let last = tall(setup)?;
            setup.actor.cut()?;
            setup.set(MAIN, &long_key(0), &value(60, 1))?;
            setup.actor.cut()?;
            Ok(set(MAIN, long_key(last), value(60, 1), has_copied))
        },
    },
    Case {
        name: "first-touch-update",
        build: |setup| {
            setup.set(MAIN, b"counter", &7u64.to_le_bytes())?;
            leaves(setup, MAIN, 2)?;
            setup.actor.cut()?;
            let written = Some(12u64.to_le_bytes().to_vec());
            let stages = vec![vec![Write { tree: MAIN, key: b"counter".to_vec(), value: written }]];
            Ok(Plan { act: Box::new(|party| party.add(MAIN, b"counter", 5)), stages, took: has_copied })
        },
    },
    Case {
        name: "first-touch-split",
        build: |setup| {
            let last = just_before(setup, nothing, set_long_key, has_split_inner)?;
            setup.actor.cut()?;
            let wanted =
                |before: &Shape, after: &Shape| has_split(before, after) && after.copies > before.copies;
            Ok(set(MAIN, long_key(last), value(INLINE_BYTES, last), wanted))
        },
    },
    Case {
        name: "first-touch-merge",
        build: |setup| {
            let write = |setup: &mut Setup, index: usize| setup.remove(MAIN, &key(index * 10));
            let last = just_before(setup, |setup| leaves(setup, MAIN, 5), write, has_merged)?;
            setup.actor.cut()?;
            Ok(remove(MAIN, key(last * 10), |before, after| after.copies > before.copies))
        },
    },
    Case {
        name: "first-touch-lower-root",
        build: |setup| {
            let write = |setup: &mut Setup, index: usize| setup.remove(MAIN, &key(index * 10));
            let wanted = |before: &Shape, after: &Shape| before.level == 1 && after.level == 0;
            let last = just_before(setup, |setup| leaves(setup, MAIN, 2), write, wanted)?;
            setup.actor.cut()?;
            Ok(remove(MAIN, key(last * 10), |before, after| after.copies > before.copies))
        },
    },
    Case {
        name: "long-new",
        build: |setup| {
            forty(setup, MAIN)?;
            Ok(set(MAIN, key(11), value(PAGE_BYTES * 2 + 1234, 3), |before, after| {
                after.extent_pages == before.extent_pages + 3
            }))
        },
    },
    Case {
        name: "long-replaces-long",
        build: |setup| {
            forty(setup, MAIN)?;
            setup.set(MAIN, &key(11), &value(PAGE_BYTES * 2, 3))?;
            Ok(set(MAIN, key(11), value(PAGE_BYTES + 77, 5), |before, after| {
                before.extent_pages == 2 && after.extent_pages == 2
            }))
        },
    },
    Case {
        name: "long-replaces-older",
        build: |setup| {
            forty(setup, MAIN)?;
            setup.set(MAIN, &key(11), &value(PAGE_BYTES * 2, 3))?;
            setup.actor.cut()?;
            Ok(set(MAIN, key(11), value(PAGE_BYTES + 77, 5), has_copied))
        },
    },
    Case {
        name: "long-becomes-short",
        build: |setup| {
            forty(setup, MAIN)?;
            setup.set(MAIN, &key(11), &value(PAGE_BYTES * 2, 3))?;
            Ok(set(MAIN, key(11), value(40, 5), |_, after| after.extent_pages == 0))
        },
    },
    Case {
        name: "short-becomes-long",
        build: |setup| {
            forty(setup, MAIN)?;
            Ok(set(MAIN, key(12), value(PAGE_BYTES + 1, 5), |_, after| after.extent_pages == 2))
        },
    },
    Case {
        name: "long-removed",
        build: |setup| {
            forty(setup, MAIN)?;
            setup.set(MAIN, &key(11), &value(PAGE_BYTES * 2, 3))?;
            Ok(remove(MAIN, key(11), |before, after| before.extent_pages == 2 && after.extent_pages == 0))
        },
    },
    Case {
        name: "long-splits-leaf",
        build: |setup| {
            leaves(setup, MAIN, 4)?;
            let next = fill(setup, 100, PAGE_BYTES / 10)?;
            let (room, _) = setup.actor.leaf_room(&key(next))?;
            setup.set(MAIN, &key(next), &value(room - 40, next))?;
            Ok(set(MAIN, key(next + 1), value(PAGE_BYTES * 2, 3), has_split))
        },
    },
    Case {
        name: "volatile-long",
        build: |setup| {
            forty(setup, VOLATILE)?;
            Ok(set(VOLATILE, key(11), value(PAGE_BYTES + 5, 3), |before, after| {
                let long = |shape: &Shape| shape.extent_pages + shape.volatile_pages;
                long(after) == long(before) + 2
            }))
        },
    },
    Case {
        name: "reuse-freed-page",
        build: |setup| {
            for index in 0..60 {
                setup.set(MAIN, &key(index), &value(PAGE_BYTES * 4, index))?;
            }
            for index in 0..60 {
                setup.remove(MAIN, &key(index))?;
            }
            leaves(setup, MAIN, 4)?;
            let next = fill(setup, 100, PAGE_BYTES / 10)?;
            Ok(set(MAIN, key(next), value(PAGE_BYTES / 10 + 90, next), has_split))
        },
    },
    Case {
        name: "reuse-freed-run",
        build: |setup| {
            for index in 0..20 {
                setup.set(MAIN, &key(index), &value(PAGE_BYTES * 2, index))?;
            }
            for index in (0..20).step_by(2) {
                setup.remove(MAIN, &key(index))?;
            }
            Ok(set(MAIN, key(3), value(PAGE_BYTES * 2, 77), any))
        },
    },
    Case {
        name: "growth-by-split",
        build: |setup| {
            let write = |setup: &mut Setup, index: usize| setup.set(MAIN, &key(index), &value(500, index));
            let last = just_before(setup, nothing, write, has_grown_level)?;
            setup.actor.spend_pages(1);
            Ok(set(MAIN, key(last), value(500, last), has_grown_files))
        },
    },
    Case {
        name: "growth-by-run",
        build: |setup| {
            forty(setup, MAIN)?;
            setup.actor.spend_pages(1);
            Ok(set(MAIN, key(11), value(PAGE_BYTES * 2 + 1, 3), has_grown_files))
        },
    },
];
