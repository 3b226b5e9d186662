//! Probed nodes changed at once as a function says: what it sees, and when it is not asked.

use crate::fixture::Scratch;
use perilune::{node, Conditional, Node, Probe, ProbeResult, Result, Serving, Session, ValueRef};

/// Adds one to the number at a node, if there is one.
fn add(session: &mut Session, node: &Node) -> Result<bool> {
    session.change_probed(&[Probe::at(node)], |probed| {
        let Some(ValueRef::Int(number)) = probed.value(0) else { return false };
        probed.set(0, node, number + 1);
        true
    })
}

#[test]
fn a_queue_is_filled_and_emptied_at_its_ends() -> Result<()> {
    let scratch = Scratch::new();
    let mut session = scratch.session();
    let queue = node!("^queue")?;
    // Neighbours of the queue are no part of it.
    let aside = node!("^aside")?;
    session.set(&aside, 1)?;
    session.set(&node!("^that")?, 1)?;
    session.set(&queue.child(0)?, "first")?;
    let (mut first, mut last, mut by_hand) = (0, 0, 0);
    for round in 0..4_000 {
        let mut element = queue.child(last + 1)?;
        let pushed = session.change_probed(&[Probe::last(&queue)], |probed| {
            assert!(probed.is_at(0, &queue.child(last).expect("a node")), "{round}");
            assert_eq!(probed.index(0, &queue), Some(last), "{round}");
            assert_eq!(probed.index(0, &queue.child(last).expect("a node")), None, "no subscript is left");
            probed.set(0, &element, round);
            true
        })?;
        if !pushed {
            session.set(&element, round)?;
            by_hand += 1;
        }
        last += 1;
        // What is pushed waits for a while.
        if round % 3 == 0 {
            element = queue.child(first)?;
            let popped = session.change_probed(&[Probe::first(&queue)], |probed| {
                assert!(probed.node(0).is_some_and(|node| node.encoded() == element.encoded()), "{round}");
                assert_eq!(probed.index(0, &aside), None, "{round}: it is no child of that");
                probed.remove(0, &element);
                probed.step(0) == ProbeResult::Record && probed.node(0).is_some_and(|node| !node.is_local())
            })?;
            if !popped {
                session.delete_value(&element)?;
                by_hand += 1;
            }
            first += 1;
        }
        if round % 1_000 == 0 {
            scratch.database.checkpoint()?;
        }
    }
    assert_eq!(session.count_children(&queue)?, (last - first + 1) as u64);
    // Where the next element lies in the next leaf, nobody can tell whether there is one.
    assert!(by_hand < 60, "{by_hand} of some 5,300");
    Ok(())
}

#[test]
fn what_is_beyond_it_is_left_to_transactions() -> Result<()> {
    let scratch = Scratch::new();
    let mut session = scratch.session();
    let (t, local) = (node!("^t")?, node!("t")?);
    assert!(!add(&mut session, &t)?, "nothing is there");
    session.set(&t, 1)?;
    session.set(&local, 1)?;
    assert!(add(&mut session, &t)? && session.get_int(&t)? == Some(2));
    assert!(!add(&mut session, &local)?, "local nodes have no need of it");
    assert!(!session.transaction(|session| add(session, &t))?, "a transaction is open");
    assert_eq!(session.attempt(|session| add(session, &t))?, Some(false), "a one-shot one, too");
    let many = vec![Probe::at(&t); 18];
    assert!(!session.change_probed(&many, |_| true)?, "they are many");
    assert!(session.change_probed(&many[1..], |_| true)?, "one less are not");
    let long = "x".repeat(100_000);
    assert!(!session.change_probed(&[Probe::at(&t)], |probed| {
        probed.set(0, &t, &*long);
        true
    })?);
    assert!(!session.change_probed(&[Probe::at(&t)], |probed| {
        probed.set(0, &local, 1);
        true
    })?);
    // What is not in order, or far from what is looked at.
    let far = node!("^z", "far")?;
    for number in 0..3_000 {
        session.set(&node!("^u", number)?, "so that it lies in another leaf")?;
    }
    session.set(&far, 1)?;
    assert!(!session.change_probed(&[Probe::at(&t)], |probed| {
        probed.set(0, &far, 2);
        true
    })?);
    assert!(!session.change_probed(&[Probe::at(&t), Probe::at(&far)], |probed| {
        probed.set(1, &far, 2);
        probed.set(0, &t, 2);
        true
    })?);
    assert!(session.change_probed(&[Probe::at(&t), Probe::at(&far)], |probed| {
        probed.set(0, &t, 7);
        probed.set(1, &far, 8);
        true
    })?);
    assert_eq!(
        (session.get_int(&t)?, session.get_int(&far)?, session.get_int(&local)?),
        (Some(7), Some(8), Some(1))
    );
    // A long value is there, and not shown.
    session.set(&t, &*long)?;
    assert!(session.change_probed(&[Probe::at(&t)], |probed| probed.found(0) == ProbeResult::Record
        && probed.value(0).is_none())?);
    Ok(())
}
