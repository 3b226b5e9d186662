//! The cases of [`crate::cases`] that commit several keys at once: transactions, subtrees, locks, messages.

use std::time::Duration;

use perilune_engine::instrument::{
    Party, Shape, Tree, Write as Part, INLINE_BYTES, PAGE_BYTES, RECORD_BYTES,
};
use perilune_store::{LockMode, Result};

use crate::cases::{
    any, has_copied, has_grown_files, has_merged, has_split, key, leaves, value, Case, MAIN, VOLATILE,
};
use crate::run_case::broken;
use crate::setup::{Content, Plan, Setup, Write, ACTOR};
use crate::tracee::{Step, Tracee};

/// The name of a lock or channel: one component.
const NAME: &[u8] = b"jobs\0";
/// Single steps are slow: long enough to come to stand in the queue, whatever the pace.
const WAIT: Duration = Duration::from_secs(10);

/// Sets, removals (no value) and removals of prefixes in one transaction, that reads all keys first.
pub(crate) fn transaction(
    writes: Vec<Write>,
    prefixes: Vec<(Tree, Vec<u8>)>,
    setup: &Setup,
    took: fn(&Shape, &Shape) -> bool,
) -> Plan {
    let mut after = setup.content.clone();
    for (tree, prefix) in &prefixes {
        after.remove_prefix(*tree, prefix);
    }
    writes.iter().for_each(|write| after.apply(write));
    let stages = vec![setup.content.changes_to(&after)];
    let act = move |party: &Party| {
        let reads: Vec<(Tree, &[u8])> = writes.iter().map(|write| (write.tree, &write.key[..])).collect();
        let removals = prefixes.iter().map(|(tree, prefix)| Part::RemovePrefix(*tree, prefix));
        let others = writes.iter().map(|write| match &write.value {
            Some(value) => Part::Set(write.tree, &write.key, value),
            None => Part::Remove(write.tree, &write.key),
        });
        party.transact(&reads, &removals.chain(others).collect::<Vec<_>>())
    };
    Plan { act: Box::new(act), stages, took }
}

/// Values set at once, without a transaction.
fn all_unless_parents(writes: Vec<Write>, setup: &Setup, took: fn(&Shape, &Shape) -> bool) -> Plan {
    let mut after = setup.content.clone();
    writes.iter().for_each(|write| after.apply(write));
    let stages = vec![setup.content.changes_to(&after)];
    let act = move |party: &Party| {
        let pairs = writes.iter().filter_map(|write| Some((&write.key[..], write.value.as_deref()?)));
        let done = party.set_all_unless_parents(&pairs.collect::<Vec<_>>())?;
        assert!(done, "they are alone");
        Ok(())
    };
    Plan { act: Box::new(act), stages, took }
}

/// Sets and removals of probed keys.
fn probed(writes: Vec<Write>, setup: &Setup, took: fn(&Shape, &Shape) -> bool) -> Plan {
    let mut after = setup.content.clone();
    writes.iter().for_each(|write| after.apply(write));
    let stages = vec![setup.content.changes_to(&after)];
    let act = move |party: &Party| {
        let writes: Vec<_> = writes.iter().map(|write| (&write.key[..], write.value.as_deref())).collect();
        assert!(party.change_probed(&writes)?, "nobody is in its way");
        Ok(())
    };
    Plan { act: Box::new(act), stages, took }
}

/// A one-shot transaction that reads a key of each leaf and what it sets.
fn one_shot(writes: Vec<Write>, setup: &Setup, took: fn(&Shape, &Shape) -> bool) -> Plan {
    let mut after = setup.content.clone();
    writes.iter().for_each(|write| after.apply(write));
    let stages = vec![setup.content.changes_to(&after)];
    let act = move |party: &Party| {
        let pairs: Vec<_> =
            writes.iter().filter_map(|write| Some((&write.key[..], write.value.as_deref()?))).collect();
        let other = key(0);
        let reads: Vec<_> = pairs.iter().map(|(key, _)| *key).chain([&other[..]]).collect();
        assert!(party.attempt(&reads, &pairs)?, "nobody is in its way");
        Ok(())
    };
    Plan { act: Box::new(act), stages, took }
}

fn write(tree: Tree, index: usize, len: usize) -> Write {
    Write { tree, key: key(index), value: Some(value(len, index + 5)) }
}

fn removal(tree: Tree, index: usize) -> Write {
    Write { tree, key: key(index), value: None }
}

/// An operation whose states are learnt from a child that runs it, unharmed, on a setup of its own.
fn learnt(
    setup: &mut Setup,
    prepare: fn(&mut Setup) -> Result<()>,
    act: fn(&Party) -> Result<()>,
) -> Result<Plan> {
    prepare(setup)?;
    setup.refresh()?;
    let mut other = Setup::new()?;
    prepare(&mut other)?;
    let mut child = Tracee::start(|| act(&other.actor).expect("the operation succeeds")).map_err(broken)?;
    let mut stages = Vec::new();
    let mut before = setup.content.clone();
    let mut was_at_rest = true;
    loop {
        let step = child.step().map_err(broken)?;
        let is_at_rest = other.actor.signature(ACTOR) == 0;
        if is_at_rest && !was_at_rest {
            let after = Content::seen_by(&other.actor)?;
            if after != before {
                stages.push(before.changes_to(&after));
                before = after;
            }
        }
        was_at_rest = is_at_rest;
        match step {
            Step::Instruction => {}
            Step::Over => return Ok(Plan { act: Box::new(act), stages, took: any }),
            Step::Broken(status) => {
                return Err(perilune_store::Error::Internal(format!("the child broke: {status}")))
            }
        }
    }
}

fn exclusive(party: &Party, name: &[u8]) -> Result<bool> {
    party.lock(&[(name, LockMode::Exclusive)], Duration::ZERO)
}

fn granted(got: Result<bool>) -> Result<()> {
    assert!(got?, "the lock is not had");
    Ok(())
}

fn refused(got: Result<bool>) -> Result<()> {
    assert!(!got?, "the lock is had");
    Ok(())
}

/// Another living party holds the lock.
fn held_by_other(setup: &mut Setup) -> Result<()> {
    granted(exclusive(&setup.place.join(3, &[])?, NAME))
}

fn posted(setup: &mut Setup) -> Result<()> {
    for index in 0..3 {
        setup.actor.post(NAME, &value(30, index))?;
    }
    Ok(())
}

/// Some leaves, of which several lie below the prefix `node001`.
fn subtree(setup: &mut Setup) -> Result<()> {
    leaves(setup, MAIN, 4)?;
    (101..140)
        .filter(|index| index % 10 != 0)
        .try_for_each(|index| setup.set(MAIN, &key(index), &value(900, index)))
}

/// Writes in more leaves than a session notes as held: repair looks for their latches.
fn writes_apart(setup: &mut Setup) -> Result<Vec<Write>> {
    (0..220).try_for_each(|index| setup.set(MAIN, &key(index), &value(INLINE_BYTES, index)))?;
    Ok((0..70).map(|index| write(MAIN, index * 3, 20)).collect())
}

/// All cases here.
pub(crate) const CASES: &[Case] = &[
    Case {
        name: "transaction-one",
        build: |setup| {
            leaves(setup, MAIN, 2)?;
            Ok(transaction(vec![write(MAIN, 11, 40)], vec![], setup, any))
        },
    },
    Case {
        name: "transaction-leaves",
        build: |setup| {
            leaves(setup, MAIN, 4)?;
            let writes = [5, 100, 105, 200, 300].map(|index| write(MAIN, index, 50)).to_vec();
            Ok(transaction(writes, vec![], setup, any))
        },
    },
    Case {
        name: "all-unless-parents",
        build: |setup| {
            leaves(setup, MAIN, 4)?;
            // New ones and old ones, beside each other and in leaves of their own.
            let writes = [5, 10, 11, 100, 200, 201, 300].map(|index| write(MAIN, index, 50)).to_vec();
            Ok(all_unless_parents(writes, setup, any))
        },
    },
    Case {
        name: "all-unless-parents-overflow",
        build: |setup| Ok(all_unless_parents(writes_apart(setup)?, setup, any)),
    },
    Case {
        name: "all-unless-parents-splits",
        build: |setup| {
            leaves(setup, MAIN, 3)?;
            // NB: where two keys differ in their last byte a fence is the first of them, and what begins with it may lie
            // behind its leaf: that is no matter for this operation.
            let longer = |write: Write| Write { key: [&write.key[..], b"-"].concat(), ..write };
            let writes = (0..9).map(|index| longer(write(MAIN, 101 + index, PAGE_BYTES / 10))).collect();
            Ok(all_unless_parents(writes, setup, has_split))
        },
    },
    Case {
        name: "all-unless-parents-first-touch",
        build: |setup| {
            leaves(setup, MAIN, 3)?;
            setup.actor.cut()?;
            let writes = [5, 13, 200].map(|index| write(MAIN, index, 50)).to_vec();
            Ok(all_unless_parents(writes, setup, has_copied))
        },
    },
    Case {
        name: "probed",
        build: |setup| {
            leaves(setup, MAIN, 4)?;
            // New ones, old ones and removals, beside each other and in leaves of their own.
            let mut writes = [5, 10, 11, 100].map(|index| write(MAIN, index, 50)).to_vec();
            writes.extend([removal(MAIN, 110), write(MAIN, 200, 50), removal(MAIN, 300)]);
            Ok(probed(writes, setup, any))
        },
    },
    Case {
        name: "probed-many",
        build: |setup| {
            leaves(setup, MAIN, 3)?;
            // As many as one operation takes: more than most take, in all leaves.
            let writes = (0..17).map(|index| write(MAIN, 5 + 17 * index, 20)).collect();
            Ok(probed(writes, setup, any))
        },
    },
    Case {
        name: "probed-splits",
        build: |setup| {
            leaves(setup, MAIN, 3)?;
            let writes = (0..8).map(|index| write(MAIN, 101 + index, PAGE_BYTES / 8)).collect();
            Ok(probed(writes, setup, has_split))
        },
    },
    Case {
        name: "probed-first-touch",
        build: |setup| {
            leaves(setup, MAIN, 3)?;
            setup.actor.cut()?;
            let writes = vec![write(MAIN, 5, 50), removal(MAIN, 10), write(MAIN, 200, 50)];
            Ok(probed(writes, setup, has_copied))
        },
    },
    Case {
        name: "one-shot",
        build: |setup| {
            leaves(setup, MAIN, 3)?;
            let writes = [5, 10, 100, 101, 200].map(|index| write(MAIN, index, 50)).to_vec();
            Ok(one_shot(writes, setup, any))
        },
    },
    Case {
        name: "one-shot-splits",
        build: |setup| {
            leaves(setup, MAIN, 3)?;
            let writes = (0..9).map(|index| write(MAIN, 101 + index, PAGE_BYTES / 10)).collect();
            Ok(one_shot(writes, setup, has_split))
        },
    },
    Case {
        name: "one-shot-many",
        build: |setup| {
            leaves(setup, MAIN, 3)?;
            // More than most write, beside each other and behind all others; leaves are split, each as one step changed.
            let beside = (0..20).map(|index| write(MAIN, 101 + index, PAGE_BYTES / 16));
            let behind = (0..20).map(|index| write(MAIN, 901 + index, 20));
            Ok(one_shot(beside.chain(behind).collect(), setup, has_split))
        },
    },
    Case { name: "one-shot-overflow", build: |setup| Ok(one_shot(writes_apart(setup)?, setup, any)) },
    Case {
        name: "transaction-mixed",
        build: |setup| {
            leaves(setup, MAIN, 3)?;
            leaves(setup, VOLATILE, 2)?;
            setup.set(MAIN, &key(13), &value(PAGE_BYTES + 9, 1))?;
            setup.set(MAIN, &key(17), &value(PAGE_BYTES * 2, 1))?;
            let mut writes = vec![write(MAIN, 13, PAGE_BYTES + 50), removal(MAIN, 17), write(MAIN, 200, 30)];
            writes.extend([write(VOLATILE, 55, 20), removal(VOLATILE, 100), write(MAIN, 210, 900)]);
            Ok(transaction(writes, vec![], setup, any))
        },
    },
    Case {
        name: "transaction-splits",
        build: |setup| {
            leaves(setup, MAIN, 3)?;
            let writes = (0..12).map(|index| write(MAIN, 101 + index, PAGE_BYTES / 10)).collect();
            Ok(transaction(writes, vec![], setup, has_split))
        },
    },
    Case {
        name: "transaction-first-touch",
        build: |setup| {
            leaves(setup, MAIN, 3)?;
            setup.set(MAIN, &key(13), &value(PAGE_BYTES * 2, 1))?;
            setup.actor.cut()?;
            let writes = vec![write(MAIN, 5, 50), write(MAIN, 13, PAGE_BYTES + 1), write(MAIN, 200, 50)];
            Ok(transaction(writes, vec![], setup, has_copied))
        },
    },
    Case {
        name: "transaction-merges",
        build: |setup| {
            leaves(setup, MAIN, 4)?;
            let writes = (8..30).map(|index| removal(MAIN, index * 10)).collect();
            Ok(transaction(writes, vec![], setup, has_merged))
        },
    },
    Case {
        name: "transaction-long-record",
        build: |setup| {
            let count = RECORD_BYTES / INLINE_BYTES + 1;
            (0..count).try_for_each(|index| setup.set(MAIN, &key(index), &value(INLINE_BYTES, index)))?;
            let writes = (0..count).map(|index| write(MAIN, index, INLINE_BYTES)).collect();
            Ok(transaction(writes, vec![], setup, |before, after| before.extent_pages == after.extent_pages))
        },
    },
    Case {
        name: "transaction-exclusive",
        build: |setup| Ok(transaction(writes_apart(setup)?, vec![], setup, any)),
    },
    Case {
        name: "transaction-grows",
        build: |setup| {
            leaves(setup, MAIN, 2)?;
            setup.actor.spend_pages(1);
            let writes = vec![write(MAIN, 5, PAGE_BYTES * 2), write(MAIN, 15, PAGE_BYTES)];
            Ok(transaction(writes, vec![], setup, has_grown_files))
        },
    },
    Case {
        name: "remove-prefix",
        build: |setup| {
            subtree(setup)?;
            setup.set(MAIN, b"node001:long", &value(PAGE_BYTES * 2, 1))?;
            Ok(transaction(vec![], vec![(MAIN, b"node001".to_vec())], setup, any))
        },
    },
    Case {
        name: "remove-prefix-and-set",
        build: |setup| {
            subtree(setup)?;
            let writes = vec![write(MAIN, 105, 60), write(MAIN, 250, 60)];
            Ok(transaction(writes, vec![(MAIN, b"node001".to_vec())], setup, any))
        },
    },
    Case {
        name: "remove-prefix-first-touch",
        build: |setup| {
            subtree(setup)?;
            setup.set(MAIN, b"node001:long", &value(PAGE_BYTES * 2, 1))?;
            setup.actor.cut()?;
            Ok(transaction(vec![], vec![(MAIN, b"node001".to_vec())], setup, has_copied))
        },
    },
    Case {
        name: "remove-everything",
        build: |setup| {
            leaves(setup, MAIN, 4)?;
            let lowered = |before: &Shape, after: &Shape| after.level < before.level;
            Ok(transaction(vec![], vec![(MAIN, b"node".to_vec())], setup, lowered))
        },
    },
    Case { name: "lock", build: |setup| learnt(setup, |_| Ok(()), |party| granted(exclusive(party, NAME))) },
    Case {
        name: "lock-again",
        build: |setup| {
            let prepare = |setup: &mut Setup| granted(exclusive(&setup.actor, NAME));
            learnt(setup, prepare, |party| granted(exclusive(party, NAME)))
        },
    },
    Case {
        name: "lock-several",
        build: |setup| {
            learnt(
                setup,
                |_| Ok(()),
                |party| {
                    let names: [(&[u8], LockMode); 2] =
                        [(NAME, LockMode::Shared), (b"other\0", LockMode::Exclusive)];
                    granted(party.lock(&names, Duration::ZERO))
                },
            )
        },
    },
    Case {
        name: "lock-refused",
        build: |setup| learnt(setup, held_by_other, |party| refused(exclusive(party, NAME))),
    },
    Case {
        name: "unlock",
        build: |setup| {
            let prepare = |setup: &mut Setup| granted(exclusive(&setup.actor, NAME));
            learnt(setup, prepare, |party| granted(party.unlock(NAME)))
        },
    },
    Case {
        name: "lock-waits",
        build: |setup| {
            learnt(setup, held_by_other, |party| refused(party.lock(&[(NAME, LockMode::Exclusive)], WAIT)))
        },
    },
    Case {
        name: "post-first",
        build: |setup| learnt(setup, |_| Ok(()), |party| party.post(NAME, &value(30, 9)).map(drop)),
    },
    Case {
        name: "post",
        build: |setup| learnt(setup, posted, |party| party.post(NAME, &value(30, 9)).map(drop)),
    },
    Case {
        name: "receive",
        build: |setup| {
            learnt(setup, posted, |party| {
                assert!(party.receive(NAME)?.is_some(), "there is no message");
                Ok(())
            })
        },
    },
    Case {
        name: "run",
        build: |setup| {
            learnt(setup, |setup| leaves(setup, MAIN, 1), |party| set_run(party, &[5, 10, 11], 40))
        },
    },
    // A run that adds to a leaf, replaces in it, cuts it and goes on in the next.
    Case {
        name: "run-mixed",
        build: |setup| {
            learnt(
                setup,
                |setup| leaves(setup, MAIN, 2),
                |party| set_run(party, &[5, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 25], PAGE_BYTES / 10),
            )
        },
    },
    Case {
        name: "run-at-end",
        build: |setup| {
            learnt(
                setup,
                |setup| leaves(setup, MAIN, 1),
                |party| set_run(party, &(900..930).collect::<Vec<_>>(), PAGE_BYTES / 12),
            )
        },
    },
];

fn set_run(party: &Party, indices: &[usize], len: usize) -> Result<()> {
    let pairs: Vec<(Vec<u8>, Vec<u8>)> =
        indices.iter().map(|index| (key(*index), value(len, index + 3))).collect();
    party.set_run(&pairs.iter().map(|(key, value)| (&key[..], &value[..])).collect::<Vec<_>>())
}
