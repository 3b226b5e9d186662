//! One-shot transactions beside checkpoints.
//!
//! A checkpoint makes all pages pages of an earlier generation, and who writes to one of those first copies it. Attempts did
//! not: each was refused, however often it was tried, until somebody wrote to that page in another way. Now they copy what
//! they write to, and what they have read of a page is true of its copy.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::fixture::Scratch;
use perilune::{node, NodeRef, RangeEnds, Result, Serving, Session, Value};

/// Wide records, so that a few hundred of them fill several leaves.
const ACCOUNTS: i64 = 400;
const FIRST: i64 = 1_000;

fn plant(session: &mut Session) -> Result<()> {
    for number in 0..ACCOUNTS {
        session.set(&node!("^account", number, "of a name that fills leaves ".repeat(8))?, FIRST)?;
        session.set(&node!("^account", number)?, FIRST)?;
    }
    Ok(())
}

#[test]
fn the_first_attempt_after_a_checkpoint_is_as_good_as_any() -> Result<()> {
    let scratch = Scratch::new();
    let mut session = scratch.session();
    plant(&mut session)?;
    for round in 0..40_i64 {
        assert!(scratch.database.checkpoint()?);
        // A few leaves, some of them read, one of them only written.
        let accounts: Vec<_> =
            (0..4).map(|at| node!("^account", (round * 3 + at * 97) % ACCOUNTS)).collect::<Result<_>>()?;
        let done = session.attempt(|session| {
            let sum = session.get_int(&accounts[0])?.unwrap_or(0);
            session.set(&accounts[0], sum - 1)?;
            let next =
                session.first_entry(&node!("^account")?, Bound::Excluded(NodeRef::from(&accounts[1])))?;
            assert!(next.is_some());
            session.increment(&accounts[1], 1)?;
            session.count_children(&accounts[2])?;
            session.increment(&accounts[2], 0)?;
            session.set(&node!("^new", round)?, "of a leaf that nobody has read")?;
            session.delete_value(&accounts[3])
        })?;
        assert_eq!((done, session.was_disturbed()), (Some(true), false), "round {round}");
        assert_eq!(
            (session.get(&accounts[3])?, session.get(&node!("^new", round)?)?.is_some()),
            (None, true)
        );
        session.set(&accounts[3], FIRST)?;
    }
    assert_eq!(session.count_children(&node!("^new")?)?, 40);
    Ok(())
}

/// Random attempts, checkpoints between them and inside them, beside a map: each that says so has happened whole.
#[test]
fn attempts_over_a_checkpoint_are_whole_or_nothing() -> Result<()> {
    let scratch = Scratch::new();
    let mut session = scratch.session();
    let (list, mut model) = (node!("^t")?, BTreeMap::<i64, Vec<u8>>::new());
    let (mut random, mut done) = (5_u64, 0);
    let mut below = |bound: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % bound
    };
    for round in 0..1_500 {
        let plan: Vec<(u64, i64, String)> = (0..1 + below(5))
            .map(|_| (below(12), below(600) as i64, "x".repeat(below(90) as usize)))
            .collect();
        let outcome = session.attempt(|session| {
            let mut new = model.clone();
            for (what, number, text) in &plan {
                let node = list.child(*number)?;
                match what {
                    0 => {
                        scratch.database.checkpoint()?;
                    }
                    1..=3 => {
                        let value = session.get(&node)?;
                        assert_eq!(value, new.get(number).cloned().map(Value::String), "{round}");
                    }
                    4 | 5 => {
                        assert_eq!(session.delete_value(&node)?, new.remove(number).is_some(), "{round}");
                    }
                    6 => {
                        session.next(&node)?;
                    }
                    _ => {
                        session.set(&node, &**text)?;
                        new.insert(*number, text.clone().into_bytes());
                    }
                }
            }
            Ok(new)
        })?;
        if let Some(new) = outcome {
            (model, done) = (new, done + 1);
        }
        if round % 100 == 99 {
            let all = session.get_tree(&list)?;
            let all = all.into_iter().map(|(node, value)| (node.to_string(), value));
            let known =
                model.iter().map(|(number, text)| (format!("^t({number})"), Value::String(text.clone())));
            assert!(all.eq(known), "{round}");
        }
    }
    assert!(done > 1_450, "{done} of 1,500");
    Ok(())
}

/// Whoever never does anything but attempts gets on while checkpoints come one after another, and nothing is lost.
#[test]
fn attempts_alone_get_on_beside_checkpoints() -> Result<()> {
    const THREADS: i64 = 3;
    const ROUNDS: i64 = 600;
    let scratch = Scratch::new();
    plant(&mut scratch.session())?;
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let movers: Vec<_> = (0..THREADS)
            .map(|thread| {
                let scratch = &scratch;
                scope.spawn(move || -> Result<()> {
                    let mut session = scratch.session();
                    for round in 0..ROUNDS {
                        let from = node!("^account", (round * 7 + thread) % ACCOUNTS)?;
                        let to = node!("^account", (round * 11 + 3 * thread + 1) % ACCOUNTS)?;
                        let moved = |session: &mut Session| {
                            session.increment(&from, -1)?;
                            session.increment(&to, 1).map(drop)
                        };
                        while session.attempt(moved)?.is_none() {
                            assert!(
                                session.was_disturbed(),
                                "round {round}: nothing but others is in the way"
                            );
                        }
                    }
                    Ok(())
                })
            })
            .collect();
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                scratch.database.checkpoint().expect("a checkpoint");
            }
        });
        let moved: Vec<_> = movers.into_iter().map(std::thread::ScopedJoinHandle::join).collect();
        // NB: told in any case, so that a failure ends the test.
        is_over.store(true, Ordering::Relaxed);
        moved.into_iter().try_for_each(|moved| moved.expect("a thread"))
    })?;
    let mut session = scratch.session();
    let all = (0..ACCOUNTS).map(|number| Ok(session.get_int(&node!("^account", number)?)?.unwrap_or(0)));
    assert_eq!(all.collect::<Result<Vec<_>>>()?.iter().sum::<i64>(), ACCOUNTS * FIRST);
    Ok(())
}
