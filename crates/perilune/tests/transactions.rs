//! Transactions: commit, rollback, levels, restart, conflict, panic, local trees, the hook.

mod fixture;

use std::ops::Bound;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use fixture::Scratch;
use perilune::{
    node, Cursor, Data, Error, ErrorCode, Node, NodeRef, NodeWrite, Result, Session, TransactionOptions,
    Value,
};

#[test]
fn a_body_reads_its_writes_and_others_do_not() -> Result<()> {
    let scratch = Scratch::new();
    let (mut one, mut two) = (scratch.session(), scratch.session());
    let x = node!("^x")?;
    one.transaction(|t| {
        t.set(&x, 1)?;
        assert_eq!(t.get_int(&x)?, Some(1));
        assert_eq!(two.get(&x)?, None);
        assert_eq!(t.depth(), 1);
        Ok(())
    })?;
    assert_eq!(two.get_int(&x)?, Some(1));
    assert_eq!(one.depth(), 0);
    Ok(())
}

#[test]
fn an_error_leaves_no_trace() -> Result<()> {
    let scratch = Scratch::new();
    let mut session = scratch.session();
    let nodes = [node!("^x")?, node!("x")?];
    for node in &nodes {
        session.set(node, "before")?;
    }
    let result: Result<()> = session.transaction(|t| {
        for node in &nodes {
            t.set(node, "within")?;
            t.set(&node.child(1)?, "within")?;
        }
        t.delete_tree(&nodes[1])?;
        Err(Error::other("no"))
    });
    let error = result.expect_err("the body failed");
    assert_eq!((error.code(), error.to_string()), (ErrorCode::Other, "no".to_owned()));
    for node in &nodes {
        assert_eq!(session.get_str(node)?, Some("before"));
        assert_eq!(session.count_valued(node)?, 0);
    }
    assert!(matches!(session.transaction(|_| -> Result<()> { Err(Error::Rollback) }), Err(Error::Rollback)));
    Ok(())
}

#[test]
fn one_level_rolls_back_without_the_other() -> Result<()> {
    let scratch = Scratch::new();
    let mut session = scratch.session();
    let (outer, inner, local) = (node!("^outer")?, node!("^inner")?, node!("local")?);
    session.transaction(|t| {
        t.set(&outer, 1)?;
        t.set(&local, "outer")?;
        let result: Result<()> = t.transaction(|t| {
            assert_eq!(t.depth(), 2);
            assert_eq!(t.get_int(&outer)?, Some(1));
            t.set(&inner, 1)?;
            t.set(&outer, 2)?;
            t.set(&local, "inner")?;
            Err(Error::Rollback)
        });
        assert!(matches!(result, Err(Error::Rollback)));
        assert_eq!(t.get_int(&outer)?, Some(1));
        assert_eq!(t.get(&inner)?, None);
        assert_eq!(t.get_str(&local)?, Some("outer"));
        t.transaction(|t| t.set(&inner, "kept"))
    })?;
    assert_eq!(session.get_str(&inner)?, Some("kept"));
    assert_eq!(session.get_str(&local)?, Some("outer"));
    Ok(())
}

#[test]
fn a_restart_reaches_the_outermost_level_even_if_swallowed() -> Result<()> {
    let scratch = Scratch::new();
    let mut session = scratch.session();
    let (x, local) = (node!("^x")?, node!("local")?);
    for swallow in [false, true] {
        session.delete_tree(&x)?;
        let mut runs = 0;
        session.transaction(|t| {
            runs += 1;
            assert_eq!(t.restarts(), runs - 1);
            assert_eq!(t.get(&local)?, None, "a run begins with what was before the transaction");
            t.set(&local, runs)?;
            t.increment(&x, 1)?;
            let inner = t.transaction(|t| {
                t.increment(&x, 10)?;
                if runs < 3 {
                    return Err(Error::Restart);
                }
                Ok(())
            });
            if swallow {
                return Ok(());
            }
            inner
        })?;
        assert_eq!(runs, 3);
        assert_eq!(session.get_int(&x)?, Some(11));
        session.delete_tree(&local)?;
    }
    Ok(())
}

#[test]
fn a_conflict_runs_the_body_again() -> Result<()> {
    let scratch = Scratch::new();
    let (mut one, mut two) = (scratch.session(), scratch.session());
    let x = node!("^x")?;
    one.set(&x, 0)?;
    let mut runs = 0;
    let seen = one.transaction(|t| {
        runs += 1;
        let value = t.get_int(&x)?.unwrap_or(0);
        if runs == 1 {
            two.increment(&x, 10)?;
        }
        t.set(&x, value + 1)?;
        Ok(value)
    })?;
    assert_eq!((runs, seen), (2, 10));
    assert_eq!(one.get_int(&x)?, Some(11));
    Ok(())
}

#[test]
fn counters_of_many_threads_add_up() -> Result<()> {
    const THREADS: i64 = 4;
    const ROUNDS: i64 = 200;
    let scratch = Scratch::new();
    let (a, b) = (node!("^sum", "a")?, node!("^sum", "b")?);
    thread::scope(|scope| {
        for _ in 0..THREADS {
            let mut session = scratch.session();
            let (a, b) = (&a, &b);
            scope.spawn(move || {
                for _ in 0..ROUNDS {
                    session
                        .transaction(|t| {
                            let old = t.get_int(a)?.unwrap_or(0);
                            t.set(a, old + 1)?;
                            t.set(b, -(old + 1))
                        })
                        .expect("a transaction commits in time");
                    session.increment(a, 0).expect("an increment");
                }
            });
        }
    });
    let mut session = scratch.session();
    assert_eq!(session.get_int(&a)?, Some(THREADS * ROUNDS));
    assert_eq!(session.get_int(&b)?, Some(-THREADS * ROUNDS));
    Ok(())
}

#[test]
fn a_panic_rolls_back_and_goes_on() -> Result<()> {
    let scratch = Scratch::new();
    let mut session = scratch.session();
    let (x, local) = (node!("^x")?, node!("x")?);
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        session.transaction(|t| -> Result<()> {
            t.set(&x, 1)?;
            t.set(&local, 1)?;
            t.transaction(|_| -> Result<()> { panic!("boom") })
        })
    }));
    let panic = outcome.expect_err("the panic goes on");
    assert_eq!(panic.downcast_ref(), Some(&"boom"));
    assert_eq!((session.depth(), session.get(&x)?, session.get(&local)?), (0, None, None));
    session.transaction(|t| t.set(&x, 2))?;
    assert_eq!(session.get_int(&x)?, Some(2));
    Ok(())
}

#[test]
fn a_read_only_transaction_writes_local_nodes_only() -> Result<()> {
    let scratch = Scratch::new();
    let mut session = scratch.session();
    let options = TransactionOptions { read_only: true, ..TransactionOptions::default() };
    let result = session.transaction_with(&options, |t| {
        t.set(&node!("seen")?, 1)?;
        t.set(&node!("^x")?, 1)
    });
    assert_eq!(result.expect_err("it is read-only").code(), ErrorCode::ReadOnly);
    assert_eq!(session.get(&node!("seen")?)?, None);
    session.transaction_with(&options, |t| t.set(&node!("seen")?, 1))?;
    assert_eq!(session.get_int(&node!("seen")?)?, Some(1));
    Ok(())
}

#[test]
fn an_endless_transaction_reaches_its_limit() {
    let scratch = Scratch::new();
    let options = TransactionOptions { timeout: Duration::from_millis(20), ..TransactionOptions::default() };
    let result = scratch.session().transaction_with(&options, |_| -> Result<()> { Err(Error::Restart) });
    let error = result.expect_err("it never ends by itself");
    assert_eq!(error.code(), ErrorCode::TransactionTimeout);
    assert!(error.to_string().contains("timeout"), "{error}");
}

#[test]
fn no_call_after_the_limit_succeeds_nor_does_the_commit() -> Result<()> {
    let scratch = Scratch::new();
    let mut session = scratch.session();
    let x = node!("^x")?;
    let limit = Duration::from_millis(20);
    let options = TransactionOptions { timeout: limit, ..TransactionOptions::default() };
    let swallowed = session.transaction_with(&options, |t| {
        while t.set(&x, 1).is_ok() {}
        for _ in 0..100 {
            assert_eq!(t.set(&x, 2).expect_err("late").code(), ErrorCode::TransactionTimeout);
            assert_eq!(t.get(&x).expect_err("late").code(), ErrorCode::TransactionTimeout);
        }
        Ok(())
    });
    assert_eq!(swallowed.expect_err("late").code(), ErrorCode::TransactionTimeout);
    for writes in [false, true] {
        let late = session.transaction_with(&options, |t| {
            if writes {
                t.set(&x, 3)?;
            }
            t.get(&x)?;
            let begun = Instant::now();
            while begun.elapsed() < limit {
                thread::yield_now();
            }
            Ok(())
        });
        assert_eq!(late.expect_err("late").code(), ErrorCode::TransactionTimeout);
    }
    assert_eq!(session.get(&x)?, None);
    Ok(())
}

#[test]
fn nesting_has_a_limit_that_is_an_error() -> Result<()> {
    fn nest(session: &mut perilune::Session, levels: usize) -> Result<()> {
        session.transaction(|t| if levels == 0 { Ok(()) } else { nest(t, levels - 1) })
    }
    let scratch = Scratch::new();
    let limit = scratch.database.limits().transaction_depth;
    let mut session = scratch.session();
    nest(&mut session, limit - 1)?;
    assert_eq!(nest(&mut session, limit).expect_err("too deep").code(), ErrorCode::LimitReached);
    assert_eq!(session.depth(), 0);
    Ok(())
}

#[test]
fn levels_by_hand_are_the_same_levels() -> Result<()> {
    let scratch = Scratch::new();
    let mut session = scratch.session();
    let (x, local) = (node!("^x")?, node!("x")?);
    let options = TransactionOptions::default();
    session.begin(&options)?;
    session.set(&x, 1)?;
    session.begin(&options)?;
    session.set(&x, 2)?;
    session.set(&local, 2)?;
    assert_eq!(session.depth(), 2);
    session.rollback()?;
    assert_eq!((session.get_int(&x)?, session.get_int(&local)?), (Some(1), None));
    session.validate()?;
    session.commit()?;
    assert_eq!(session.get_int(&x)?, Some(1));
    assert_eq!(session.commit().expect_err("none is open").code(), ErrorCode::TransactionState);
    assert_eq!(session.rollback().expect_err("none is open").code(), ErrorCode::TransactionState);
    Ok(())
}

#[test]
fn a_restart_inside_reaches_levels_by_hand() -> Result<()> {
    let scratch = Scratch::new();
    let mut session = scratch.session();
    let options = TransactionOptions::default();
    for run in 1..=2 {
        session.begin(&options)?;
        session.set(&node!("x")?, run)?;
        let inner = session.transaction(|_| if run == 1 { Err(Error::Restart) } else { Ok(()) });
        assert_eq!(inner.is_err(), run == 1);
        if run == 1 {
            assert!(matches!(session.commit(), Err(Error::Restart)), "what it asked for is not forgotten");
            assert_eq!((session.depth(), session.get(&node!("x")?)?), (0, None));
            session.retry()?;
        } else {
            session.commit()?;
        }
    }
    assert_eq!(session.get_int(&node!("x")?)?, Some(2));
    Ok(())
}

#[test]
fn the_hook_sees_each_transaction_and_adds_to_it() -> Result<()> {
    let scratch = Scratch::new();
    let mut session = scratch.session();
    let (sender, seen) = mpsc::channel();
    session.set_commit_hook(move |writes| {
        let mut index = Vec::new();
        writes.for_each(|write| {
            let _ = sender.send(format!("{write:?}"));
            if let NodeWrite::Set(node, _) = write {
                index.push(node.to_node());
            }
        })?;
        for node in index {
            let name = node?;
            if name.name() == "^refused" {
                return Err(Error::other("the hook refuses"));
            }
            writes.set(&node!("^log", name.to_string())?, 1)?;
        }
        Ok(())
    });
    session.transaction(|t| {
        t.delete_tree(&node!("^old")?)?;
        t.set(&node!("^new", 1)?, "v")?;
        t.set(&node!("local")?, "unseen")
    })?;
    let seen: Vec<String> = seen.try_iter().collect();
    assert_eq!(seen, ["DeleteTree(^old)", r#"Set(^new(1), String([118]))"#]);
    assert_eq!(session.get_int(&node!("^log", "^new(1)")?)?, Some(1));

    let refused = node!("^refused")?;
    let error = session.set(&refused, 1).expect_err("the hook refuses single writes, too");
    assert_eq!((error.code(), error.to_string()), (ErrorCode::Refused, "the hook refuses".to_owned()));
    assert_eq!(session.increment(&refused, 1).expect_err("increments as well").code(), ErrorCode::Refused);
    assert_eq!(session.get(&refused)?, None);
    session.clear_commit_hook();
    session.set(&refused, 1)
}

/// A walk over a subtree, and how it is done.
type Walk = (&'static str, fn(&mut Session, &Node) -> Result<u64>);

/// Every way to walk through all of a subtree or its children.
const WALKS: &[Walk] = &[
    ("count_children", |t, node| t.count_children(node)),
    ("count_valued", |t, node| t.count_valued(node)),
    ("forwards", |t, node| {
        let mut cursor = Cursor::subtree(node);
        let mut count = 0;
        while cursor.next(t)? {
            count += 1;
        }
        Ok(count)
    }),
    ("backwards", |t, node| {
        let mut cursor = Cursor::children(node);
        let mut count = 0;
        while cursor.previous(t)? {
            count += 1;
        }
        Ok(count)
    }),
    ("next siblings", |t, node| {
        let mut count = 0;
        let mut at = t.first_child(node)?;
        while let Some(child) = at {
            count += 1;
            at = t.next(&child)?;
        }
        Ok(count)
    }),
    ("previous siblings", |t, node| {
        let mut count = 0;
        let mut at = t.last_child(node)?;
        while let Some(child) = at {
            count += 1;
            at = t.previous(&child)?;
        }
        Ok(count)
    }),
    ("data", |t, node| {
        assert_ne!(t.data(&node.child(CHILDREN / 2)?)?, Data::Nothing);
        Ok(CHILDREN as u64)
    }),
];
const CHILDREN: i64 = 300;

/// Walks used to read on into the leaf behind the subtree, so that whoever wrote there was in conflict.
#[test]
fn walks_do_not_conflict_with_writes_beside_the_subtree() -> Result<()> {
    let scratch = Scratch::new();
    let (mut one, mut two) = (scratch.session(), scratch.session());
    let subtrees = (0..3).map(|index| node!("^wide", index)).collect::<Result<Vec<_>>>()?;
    for subtree in &subtrees {
        for child in 1..=CHILDREN {
            one.set(&subtree.child(child)?, "v".repeat(100).as_str())?;
        }
    }
    for (name, walk) in WALKS {
        for is_phantom in [false, true] {
            let written = match is_phantom {
                true => vec![subtrees[1].child(CHILDREN / 2)?.child("x")?, subtrees[1].child("x")?],
                false => vec![subtrees[0].child(CHILDREN)?.child("x")?, subtrees[2].child(0)?],
            };
            let mut runs = 0;
            one.transaction(|t| {
                runs += 1;
                let count = walk(t, &subtrees[1])?;
                if runs == 1 {
                    assert_eq!(count, CHILDREN as u64, "{name}");
                    for node in &written {
                        two.set(node, 1)?;
                    }
                }
                t.set(&node!("^walked")?, *name)
            })?;
            assert_eq!(runs > 1, is_phantom, "{name}: {runs} runs, phantom: {is_phantom}");
            for node in &written {
                two.delete_value(node)?;
            }
        }
    }
    Ok(())
}

/// A brief transaction does what it says or nothing, and says which.
#[test]
fn attempts_are_whole_or_nothing() -> Result<()> {
    let scratch = Scratch::new();
    let mut session = scratch.session();
    let (a, b) = (node!("^a")?, node!("^b")?);
    // The first write to a page of an earlier generation is beyond its means as well.
    session.set(&a, 0)?;
    let both = session.attempt(|session| {
        session.set(&a, 1)?;
        session.set(&b, 2)?;
        session.delete_value(&node!("^none")?)
    })?;
    assert_eq!(both, Some(false));
    assert_eq!(session.get_many([&a, &b])?, [Some(Value::Int(1)), Some(Value::Int(2))]);
    // What is beyond its means: removing what it wrote, long values, trees, levels, many nodes.
    type Body<'b> = &'b dyn Fn(&mut Session) -> Result<()>;
    let beyond: [Body<'_>; 6] = [
        &|session| session.delete_value(&a).map(drop),
        &|session| session.set(&b, "x".repeat(100_000)),
        &|session| session.delete_tree(&b),
        &|session| session.transaction(|session| session.set(&b, 3)),
        &|session| session.increment(&b, 1).map(drop),
        &|session| (0..1_000).try_for_each(|number| session.set(&node!("^c", number)?, 1)),
    ];
    for body in beyond {
        let outcome = session.attempt(|session| {
            session.set(&a, 5)?;
            // Even if the body takes no notice.
            let _ = body(session);
            Ok(())
        });
        assert!(matches!(outcome, Ok(None)), "{outcome:?}");
        assert!(!session.has_met(), "another try would not do better");
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

/// A brief transaction reads what it has written, among what was there, and writes it again; the last counts.
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

/// What reads have told of places is used by writes: brief transactions at random, beside a map that says what is to be.
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

/// What a brief transaction has read is no longer one state: it is told when it asks, before it goes on.
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
    assert!(session.has_met());
    // Inside a transaction there was none.
    session.transaction(|session| {
        assert_eq!(session.attempt(|session| session.get(&a))?, None);
        assert!(!session.has_met());
        Ok(())
    })
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
        assert_eq!((session.get(&a)?, session.has_met()), (None, true));
    }
    // What is alone is read again, and found.
    assert_eq!(session.attempt(|session| session.get_int(&b))?, Some(Some(7)));
    assert!(!session.has_met());
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
    let brief = std::sync::atomic::AtomicU32::new(0);
    std::thread::scope(|scope| -> Result<()> {
        let movers: Vec<_> = (0..3_i64)
            .map(|thread| {
                let (scratch, account, brief) = (&scratch, &account, &brief);
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
                            brief.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
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
    assert!(brief.into_inner() > 100, "hardly any was brief");
    Ok(())
}
