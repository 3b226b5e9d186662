//! Transactions: commit, rollback, levels, restart, conflict, panic, local trees, the hook.

use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use crate::fixture::Scratch;
use perilune::{
    node, Cursor, Data, Error, ErrorCode, FirstTry, Levels, Node, NodeWrite, Result, Session,
    TransactionOptions,
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
            // A one-shot transaction knows no more than which leaves it has read.
            let whole = TransactionOptions { first_try: FirstTry::Whole, ..TransactionOptions::default() };
            one.transaction_with(&whole, |t| {
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

/// A transaction that is never to hold others up fails after three tries, also where it began as a one-shot one.
#[test]
fn what_never_runs_alone_is_told_of_conflicts() -> Result<()> {
    let scratch = Scratch::new();
    let (mut one, mut two) = (scratch.session(), scratch.session());
    let (x, y) = (node!("^x")?, node!("^y")?);
    for first_try in [FirstTry::Any, FirstTry::OneShot, FirstTry::Whole] {
        let options =
            TransactionOptions { never_exclusive: true, first_try, ..TransactionOptions::default() };
        let mut runs = 0;
        let lost = one.transaction_with(&options, |t| {
            runs += 1;
            t.get(&x)?;
            two.set(&x, runs)?;
            t.set(&y, "mine")
        });
        assert!(matches!(lost, Err(Error::Conflict)), "{lost:?}");
        assert_eq!((runs, one.depth(), one.get(&y)?), (3, 0, None));
        // A level does not end the tries; a later transaction begins anew.
        let levels = one.transaction_with(&options, |t| t.transaction(|t| t.set(&y, "mine")));
        levels.expect("nobody is in its way");
        one.delete_value(&y)?;
    }
    Ok(())
}
