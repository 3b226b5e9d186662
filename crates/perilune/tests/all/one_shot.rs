//! One-shot transactions: tried by hand, and as the first try of every transaction, which goes on as a whole one where they
//! cannot do what is asked.

use std::ops::Bound;
use std::time::Duration;

use crate::fixture::Scratch;
use perilune::{node, Error, Levels, NodeRef, RangeEnds, Result, Serving, Session, Steps, Value};

/// A one-shot transaction does what it says or nothing, and says which.
#[test]
fn attempts_are_whole_or_nothing() -> Result<()> {
    let scratch = Scratch::new();
    let mut session = scratch.session();
    let (a, b) = (node!("^a")?, node!("^b")?);
    session.set(&a, 0)?;
    let both = session.attempt(|session| {
        session.set(&a, 1)?;
        session.set(&b, 2)?;
        session.delete_value(&node!("^none")?)
    })?;
    assert_eq!(both, Some(false));
    assert_eq!(session.get_many([&a, &b])?, [Some(Value::Int(1)), Some(Value::Int(2))]);
    // What is beyond its means: long values, trees, levels, many nodes.
    type Body<'b> = &'b dyn Fn(&mut Session) -> Result<()>;
    let beyond: [Body<'_>; 4] = [
        &|session| session.set(&b, "x".repeat(100_000)),
        &|session| session.delete_tree(&b),
        &|session| session.transaction(|session| session.set(&b, 3)),
        &|session| (0..1_100).try_for_each(|number| session.set(&node!("^c", number)?, 1)),
    ];
    for body in beyond {
        let outcome = session.attempt(|session| {
            session.set(&a, 5)?;
            // Even if the body takes no notice.
            let _ = body(session);
            Ok(())
        });
        assert!(matches!(outcome, Ok(None)), "{outcome:?}");
        assert!(!session.was_disturbed(), "another try would not do better");
        assert_eq!(session.get_many([&a, &b])?, [Some(Value::Int(1)), Some(Value::Int(2))]);
    }
    let refused = session.attempt(|session| {
        session.set(&a, 5)?;
        Err::<(), _>(Error::other("no"))
    });
    assert!(matches!(refused, Err(Error::Other(_))));
    let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        session.attempt(|session| session.set(&a, 5).map(|()| panic!("on purpose"))).map(|_: Option<()>| ())
    }));
    assert!(panic.is_err());
    assert_eq!((session.get_int(&a)?, session.depth()), (Some(1), 0));
    // Inside a transaction there are none, and it goes on.
    session.transaction(|session| {
        assert_eq!(session.attempt(|session| session.set(&a, 5))?, None);
        session.set(&a, 6)
    })?;
    assert_eq!(session.get_int(&a)?, Some(6));
    Ok(())
}

/// A one-shot transaction reads what it has written, among what was there, and writes it again; the last counts.
#[test]
fn attempts_see_what_they_wrote() -> Result<()> {
    let scratch = Scratch::new();
    let mut session = scratch.session();
    let (a, b, c) = (node!("^a", 1)?, node!("^a", 2)?, node!("^a", 3)?);
    session.set(&a, "first")?;
    session.set(&c, "last")?;
    let done = session.attempt(|session| {
        for value in ["x", "y", "longer"] {
            session.set(&b, value)?;
            assert_eq!(session.get(&b)?, Some(Value::String(value.into())));
            assert!(session.data(&b)?.has_value());
            let all: Bound<NodeRef<'_>> = Bound::Excluded(NodeRef::from(&a));
            let next = session
                .first_entry(&node!("^a")?, all)?
                .map(|(node, value)| (node.to_node(), value.to_owned_value()));
            let Some((node, found)) = next else { panic!("the new one is there") };
            assert_eq!((node?, found), (b.clone(), Value::String(value.into())));
        }
        session.set(&a, "second")?;
        assert_eq!(session.first_child(&node!("^a")?)?, Some(a.clone()));
        assert_eq!(session.sibling_after(&b)?, Some(c.clone()));
        session.validate()?;
        session.get(&a)
    })?;
    assert_eq!(done, Some(Some(Value::String("second".into()))));
    let values = ["second", "longer", "last"].map(|value| Some(Value::String(value.into())));
    assert_eq!(session.get_many([&a, &b, &c])?, values);
    Ok(())
}

/// Of the same nodes a one-shot transaction sets what it has deleted, deletes what it has set, adds and compares; what was there
/// before, or was not, is told right each time, and what is left is what the last of it made.
#[test]
fn attempts_take_back_and_set_again() -> Result<()> {
    let scratch = Scratch::new();
    let mut session = scratch.session();
    let nodes = (0..4).map(|number| node!("^t", number)).collect::<Result<Vec<_>>>()?;
    let mut model = [None::<i64>; 4];
    let mut random = 11_u64;
    let mut below = |bound: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % bound
    };
    let mut done = 0;
    for round in 0..3_000 {
        let plan: Vec<(u64, usize, i64)> =
            (0..1 + below(6)).map(|_| (below(5), below(4) as usize, below(3) as i64)).collect();
        let outcome = session.attempt(|session| {
            let mut new = model;
            for (what, at, number) in &plan {
                let (node, old) = (&nodes[*at], &mut new[*at]);
                match what {
                    0 => assert_eq!(session.delete_value(node)?, old.take().is_some(), "{round}: {plan:?}"),
                    1 => {
                        session.set(node, *number)?;
                        *old = Some(*number);
                    }
                    2 => {
                        let sum = session.increment(node, *number)?;
                        assert_eq!(sum.as_i64(), Some(old.unwrap_or(0) + number), "{round}: {plan:?}");
                        *old = Some(old.unwrap_or(0) + number);
                    }
                    3 => {
                        let becomes = (*number > 0).then_some(*number);
                        let is_so = session.compare_and_set(node, Some(1), becomes)?;
                        assert_eq!(is_so, *old == Some(1), "{round}: {plan:?}");
                        if is_so {
                            *old = becomes;
                        }
                    }
                    _ => assert_eq!(session.get_int(node)?, *old, "{round}: {plan:?}"),
                }
            }
            Ok(new)
        })?;
        match outcome {
            Some(new) => (model, done) = (new, done + 1),
            // A page of the last checkpoint is copied by whoever writes without it.
            None => session.set(&node!("^t", "beside")?, round)?,
        }
        for (node, wanted) in nodes.iter().zip(&model) {
            assert_eq!(session.get_int(node)?, *wanted, "{round}: {plan:?}");
        }
    }
    assert!(done > 2_900, "{done} of 3,000");
    Ok(())
}

/// A one-shot transaction reads as much as a scan of a thousand leaves, and is told when others write there.
#[test]
fn attempts_scan_many_leaves() -> Result<()> {
    let scratch = Scratch::new();
    let (mut session, mut other) = (scratch.session(), scratch.session());
    let list = node!("^t")?;
    for number in 0..40_000 {
        session.set(&list.child(number)?, number)?;
    }
    let scan = |session: &mut Session| -> Result<i64> {
        let mut cursor = perilune::Cursor::children(&list);
        let mut sum = 0;
        while cursor.next(session)? {
            sum += cursor.integer_value().unwrap_or(0);
        }
        Ok(sum)
    };
    let sum = 39_999 * 40_000 / 2;
    assert_eq!(session.attempt(scan)?, Some(sum));
    let moved = session.attempt(|session| {
        let sum = scan(session)?;
        // Somebody takes from a node that was read long before.
        other.set(&list.child(20_000)?, 0)?;
        session.set(&node!("^sum")?, sum)
    })?;
    assert_eq!((moved, session.was_disturbed()), (None, true));
    assert_eq!(session.get(&node!("^sum")?)?, None);
    Ok(())
}

/// What reads have told of places is used by writes: one-shot transactions at random, beside a map that says what is to be.
#[test]
fn attempts_write_where_they_have_read() -> Result<()> {
    let scratch = Scratch::new();
    let mut session = scratch.session();
    let (list, mut model) = (node!("^t")?, std::collections::BTreeMap::new());
    let (mut random, mut done) = (7_u64, 0);
    let mut below = |bound: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % bound
    };
    for round in 0..4_000_i64 {
        let mut plan = [0; 4].map(|_| (below(7), below(900) as i64, "x".repeat(below(60) as usize)));
        let outcome = session.attempt(|session| {
            let mut new = model.clone();
            for (what, number, text) in &mut plan {
                let node = list.child(*number)?;
                let from = Bound::Excluded(NodeRef::from(&node));
                let found = match what {
                    0 | 1 => {
                        let value = session.get(&node)?;
                        assert_eq!(value, new.get(number).cloned().map(Value::String), "{round}");
                        value.is_some()
                    }
                    2 => session.first_entry(&list, from)?.is_some(),
                    3 => session.last_entry(&list, from)?.is_some(),
                    _ => false,
                };
                let beside = if *what == 3 { *number - 1 } else { *number + 1 };
                match (*what, found) {
                    (1, true) | (4, _) => {
                        assert_eq!(session.delete_value(&node)?, new.remove(number).is_some(), "{round}");
                    }
                    (2 | 3, _) => {
                        session.set(&list.child(beside)?, &*text)?;
                        new.insert(beside, text.clone().into_bytes());
                    }
                    _ => {
                        session.set(&node, &*text)?;
                        new.insert(*number, text.clone().into_bytes());
                    }
                }
            }
            Ok(new)
        })?;
        // What it cannot do has done nothing; a transaction makes the room it lacked.
        match outcome {
            Some(new) => (model, done) = (new, done + 1),
            None => {
                let (_, number, text) = &plan[0];
                session.transaction(|session| session.set(&list.child(*number)?, &**text))?;
                model.insert(*number, text.clone().into_bytes());
            }
        }
        if round % 100 == 0 {
            let all = session.get_tree(&list)?;
            let all = all.into_iter().map(|(node, value)| (node.to_string(), value));
            let known =
                model.iter().map(|(number, text)| (format!("^t({number})"), Value::String(text.clone())));
            assert!(all.eq(known), "{round}");
        }
    }
    assert!(done > 2_000, "{done} of 4,000");
    Ok(())
}

/// Up to 1,024 nodes are written by a one-shot transaction, in whatever order they come: new ones behind all others, which
/// fill leaf after leaf, and among others; such that are there with shorter and longer values; some that are removed.
#[test]
fn attempts_write_many() -> Result<()> {
    let scratch = Scratch::new();
    let mut session = scratch.session();
    let (list, mut model, mut snapshots) = (node!("^t")?, std::collections::BTreeMap::new(), Vec::new());
    let expect = |session: &mut Session, model: &std::collections::BTreeMap<i64, String>| -> Result<()> {
        let all = session.get_tree(&list)?;
        let all = all.into_iter().map(|(node, value)| (node.to_string(), value));
        let known = model.iter();
        let known =
            known.map(|(number, text)| (format!("^t({number})"), Value::String(text.clone().into_bytes())));
        assert!(all.eq(known), "of {} nodes some are not what was written", model.len());
        Ok(())
    };
    let mut random = 11_u64;
    let mut below = |bound: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % bound
    };
    for round in 0..120_i64 {
        let count = [17, 64, 65, 100, 400, 1_024][below(6) as usize];
        let plan: Vec<(i64, Option<String>)> = (0..count)
            .map(|step| {
                let number = match round % 3 {
                    0 => round * 2_000 + step,
                    1 => (round - 1) * 2_000 + 1_000 - step,
                    _ => below(1_500) as i64 + below(round as u64) as i64 * 2_000,
                };
                let value = "x".repeat(below(80) as usize);
                (number, Some(value).filter(|_| round % 3 < 2 || below(4) > 0))
            })
            .collect();
        let done = session.attempt(|session| {
            for (number, value) in &plan {
                match value {
                    Some(value) => session.set(&list.child(*number)?, value)?,
                    None => _ = session.delete_value(&list.child(*number)?)?,
                }
            }
            let (number, value) = &plan[plan.len() / 2];
            let last = plan.iter().rev().find(|(other, _)| other == number).map_or(value, |(_, value)| value);
            assert_eq!(session.get_str(&list.child(*number)?)?, last.as_deref(), "{round}");
            Ok(())
        })?;
        // Those that are far from each other may be in more leaves than one such transaction writes to.
        assert!(done.is_some() || round % 3 == 2 && count > 64, "{round}: {count}");
        if done.is_some() {
            for (number, value) in plan {
                match value {
                    Some(value) => _ = model.insert(number, value),
                    None => _ = model.remove(&number),
                }
            }
        }
        expect(&mut session, &model)?;
        // What is written while a snapshot is open goes to copies of its leaves.
        if round % 9 == 0 {
            snapshots.push((scratch.database.snapshot()?, model.clone()));
        } else if round % 9 == 7 {
            snapshots.drain(..).try_for_each(|(mut snapshot, then)| expect(&mut snapshot, &then))?;
        }
    }
    Ok(())
}

/// What a one-shot transaction has read is no longer one state: it is told when it asks, before it goes on.
#[test]
fn attempts_learn_before_their_end_that_they_fail() -> Result<()> {
    let scratch = Scratch::new();
    let (mut session, mut other) = (scratch.session(), scratch.session());
    let a = node!("^a")?;
    session.set(&a, 0)?;
    let lost = session.attempt(|session| {
        session.get(&a)?;
        session.validate()?;
        other.set(&a, 7)?;
        assert!(session.validate().is_err());
        Ok(())
    })?;
    assert_eq!(lost, None);
    assert!(session.was_disturbed());
    // Inside a transaction there was none.
    session.transaction(|session| {
        assert_eq!(session.attempt(|session| session.get(&a))?, None);
        assert!(!session.was_disturbed());
        Ok(())
    })
}

/// A transaction begins as a one-shot one, and goes on as a whole one with whatever that cannot do: its body runs once, and
/// sees and leaves what it would have anyhow.
#[test]
fn a_transaction_goes_on_as_a_whole_one_without_running_again() -> Result<()> {
    let scratch = Scratch::new();
    let mut session = scratch.session();
    let (a, b, tree) = (node!("^a")?, node!("^b")?, node!("^tree")?);
    type Body<'b> = &'b dyn Fn(&mut Session) -> Result<()>;
    let beyond: [(&str, Body<'_>); 12] = [
        // The leaf that was read is split by the commit.
        ("many new nodes", &|t| (0..1_100).try_for_each(|number| t.set(&node!("^c", number)?, number))),
        ("many writes", &|t| (0..1_100).try_for_each(|number| t.set(&node!("^far", number)?, number))),
        ("writes of many bytes", &|t| {
            (0..200).try_for_each(|number| t.set(&node!("^long", number)?, "y".repeat(1_000)))
        }),
        ("writes in many leaves", &|t| {
            (0..100).try_for_each(|number| t.set(&node!("^far", number * 500)?, number * 500))
        }),
        ("a long value", &|t| t.set(&node!("^c")?, "x".repeat(100_000))),
        ("a removed tree", &|t| t.delete_tree(&tree)),
        ("a level", &|t| t.transaction(|t| t.set(&node!("^c")?, 1))),
        ("a level that fails", &|t| {
            let failed = t.transaction(|t| t.set(&node!("^c")?, 1).and(Err::<(), _>(Error::Rollback)));
            assert!(matches!(failed, Err(Error::Rollback)));
            Ok(())
        }),
        ("a lock", &|t| t.lock(&node!("^c")?, perilune::LockMode::Exclusive, None).map(drop)),
        ("a message", &|t| t.channel("c").post("hello").map(drop)),
        ("backwards over own writes", &|t| {
            assert_eq!(t.previous(&node!("^tree", 100)?)?, Some(node!("^tree", 9)?));
            Ok(())
        }),
        ("a piece", &|t| t.set_piece(&node!("^text")?, 1, "piece").map(drop)),
    ];
    session.set(&node!("^text")?, "a text of some length")?;
    (0..50_000).try_for_each(|number| session.set(&node!("^far", number)?, number))?;
    (0..200).try_for_each(|number| session.set(&node!("^long", number)?, "x".repeat(1_000)))?;
    for (name, body) in beyond {
        for number in 0..8 {
            session.set(&tree.child(number)?, number)?;
        }
        session.set(&a, 1)?;
        session.delete_value(&b)?;
        let mut runs = 0;
        session.transaction(|t| {
            runs += 1;
            assert_eq!((t.get_int(&a)?, t.get(&b)?), (Some(1), None), "{name}");
            t.set(&b, "before")?;
            t.delete_value(&a)?;
            t.set(&tree.child(9)?, 9)?;
            body(t)?;
            assert_eq!((t.get_int(&a)?, t.get_str(&b)?), (None, Some("before")), "{name}");
            t.set(&a, "behind")
        })?;
        assert_eq!((runs, session.depth()), (1, 0), "{name}");
        assert_eq!(session.get_str(&a)?, Some("behind"), "{name}");
        assert_eq!(session.unlock(&node!("^c")?)?, name == "a lock");
        assert_eq!(session.get_str(&b)?, Some("before"), "{name}");
    }
    assert_eq!(
        session.channel("c").receive(Some(Duration::ZERO))?.map(|message| message.body),
        Some(b"hello".to_vec())
    );
    Ok(())
}

/// What a transaction has read while it was a one-shot one still counts when it has become a whole one.
#[test]
fn what_was_read_before_a_transaction_grew_is_checked_at_its_end() -> Result<()> {
    let scratch = Scratch::new();
    let (mut one, mut two) = (scratch.session(), scratch.session());
    let (a, sum) = (node!("^a")?, node!("^sum")?);
    for grows in [false, true] {
        one.set(&a, 1)?;
        let mut runs = 0;
        one.transaction(|t| {
            runs += 1;
            let old = t.get_int(&a)?.unwrap_or(0);
            if grows {
                t.delete_tree(&node!("^none")?)?;
            }
            if runs == 1 {
                two.set(&a, 10)?;
            }
            t.set(&sum, old)
        })?;
        assert_eq!((runs, one.get_int(&sum)?), (2, Some(10)), "{grows}");
    }
    // In between, too: what it reads is one state at each moment.
    let (x, y) = (node!("^x")?, node!("^y", "far")?);
    for number in 0..2_000 {
        one.set(&node!("^xx", number)?, "between them")?;
    }
    one.transaction(|t| t.set(&x, 0).and(t.set(&y, 0)))?;
    let mut runs = 0;
    one.transaction(|t| {
        runs += 1;
        let first = t.get_int(&x)?;
        if runs == 1 {
            two.transaction(|u| u.set(&x, 1).and(u.set(&y, 1)))?;
        }
        let second = t.get_int(&y)?;
        assert_eq!(first, second, "halves of two states");
        Ok(())
    })?;
    assert_eq!(runs, 2);
    Ok(())
}

/// Transfers between accounts in many leaves, some of which grow beyond a one-shot transaction, by threads that look at all
/// accounts meanwhile: no body ever sees another sum.
#[test]
fn bodies_that_begin_small_see_one_state_each() -> Result<()> {
    const ACCOUNTS: i64 = 12;
    let scratch = Scratch::new();
    let mut session = scratch.session();
    for account in 0..ACCOUNTS {
        session.set(&node!("^account", account)?, 100)?;
        session.set(&node!("^account", account, "padding")?, "x".repeat(1_900))?;
        for number in 0..6 {
            session.set(&node!("^account", account, number)?, "x".repeat(1_900))?;
        }
    }
    let runs = std::sync::atomic::AtomicU32::new(0);
    std::thread::scope(|scope| {
        for thread in 0..4_i64 {
            let (scratch, runs) = (&scratch, &runs);
            scope.spawn(move || {
                let mut session = scratch.session();
                let account = |number: i64| node!("^account", number.rem_euclid(ACCOUNTS)).unwrap();
                for round in 0..400_i64 {
                    let (from, to) = (account(round * 7 + thread), account(round * 5 + 3 * thread + 1));
                    session
                        .transaction(|t| {
                            runs.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                            if round % 3 == 0 {
                                let sum =
                                    (0..ACCOUNTS).map(|number| Ok(t.get_int(&account(number))?.unwrap_or(0)));
                                let sum: i64 = sum.collect::<Result<Vec<_>>>()?.iter().sum();
                                assert_eq!(sum, ACCOUNTS * 100, "thread {thread}, round {round}");
                            }
                            if round % 5 == 0 {
                                t.delete_tree(&node!("^none")?)?;
                            }
                            t.increment(&from, -1)?;
                            t.increment(&to, 1).map(drop)
                        })
                        .expect("a transfer");
                }
            });
        }
    });
    let all = (0..ACCOUNTS).map(|number| session.get_int(&node!("^account", number).unwrap()));
    let sum: i64 = all.map(|value| value.unwrap().unwrap()).sum();
    assert_eq!(sum, ACCOUNTS * 100);
    assert!(runs.into_inner() >= 1_600);
    Ok(())
}

/// Somebody else writes between a read and the end: it has done nothing.
#[test]
fn attempts_notice_what_others_write() -> Result<()> {
    let scratch = Scratch::new();
    let (mut session, mut other) = (scratch.session(), scratch.session());
    let (a, b) = (node!("^a")?, node!("^b")?);
    for number in 0..3_000 {
        session.set(&node!("^a", number)?, "so that the two lie in leaves of their own")?;
    }
    session.set(&b, 0)?;
    for keep in [true, false] {
        let lost = session.attempt(|session| {
            let seen = session.get_int(&b)?;
            other.set(&b, 7)?;
            if keep {
                session.set(&a, 1)?;
            }
            Ok(seen)
        })?;
        assert_eq!(lost, None);
        assert_eq!((session.get(&a)?, session.was_disturbed()), (None, true));
    }
    // What is alone is read again, and found.
    assert_eq!(session.attempt(|session| session.get_int(&b))?, Some(Some(7)));
    assert!(!session.was_disturbed());
    // A neighbour that was not there, either.
    let lost = session.attempt(|session| {
        let none = session.first_child(&b)?;
        other.set(&node!("^b", "new")?, 1)?;
        session.set(&a, 1)?;
        Ok(none.is_none())
    })?;
    assert_eq!((lost, session.get(&a)?), (None, None));
    Ok(())
}

/// Threads move amounts between accounts by attempts, and by transactions where those fail; sums stay.
#[test]
fn attempts_are_serializable() -> Result<()> {
    const ACCOUNTS: i64 = 40;
    let scratch = Scratch::new();
    let account = |number: i64| node!("^account", number, "of a name that fills the leaves ".repeat(20));
    let mut session = scratch.session();
    for number in 0..ACCOUNTS {
        session.set(&account(number)?, 100)?;
    }
    let total = |session: &mut Session| {
        session.transaction(|session| {
            (0..ACCOUNTS)
                .try_fold(0, |sum, number| Ok(sum + session.get_int(&account(number)?)?.unwrap_or(0)))
        })
    };
    let one_shot = std::sync::atomic::AtomicU32::new(0);
    std::thread::scope(|scope| -> Result<()> {
        let movers: Vec<_> = (0..3_i64)
            .map(|thread| {
                let (scratch, account, one_shot) = (&scratch, &account, &one_shot);
                scope.spawn(move || -> Result<()> {
                    let mut session = scratch.session();
                    for step in 0..3_000_i64 {
                        let (from, to) = ((step * 7 + thread) % ACCOUNTS, (step * 11 + 3) % ACCOUNTS);
                        if from == to {
                            continue;
                        }
                        let transfer = |session: &mut Session| {
                            let (rich, poor) =
                                (session.get_int(&account(from)?)?, session.get_int(&account(to)?)?);
                            session.set(&account(from)?, rich.unwrap_or(0) - 1)?;
                            session.set(&account(to)?, poor.unwrap_or(0) + 1)
                        };
                        if session.attempt(transfer)?.is_some() {
                            one_shot.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                        } else {
                            session.transaction(transfer)?;
                        }
                    }
                    Ok(())
                })
            })
            .collect();
        while movers.iter().any(|mover| !mover.is_finished()) {
            assert_eq!(total(&mut session)?, ACCOUNTS * 100);
        }
        movers.into_iter().try_for_each(|mover| mover.join().expect("a thread"))
    })?;
    assert_eq!(total(&mut session)?, ACCOUNTS * 100);
    assert!(one_shot.into_inner() > 100, "hardly any was a one-shot transaction");
    Ok(())
}
