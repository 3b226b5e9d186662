//! What sessions share besides data: locks, watches, channels.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::fixture::Scratch;
use perilune::{
    node, ChannelOptions, Error, ErrorCode, LockMode, LockOwners, Result, TransactionOptions, WatchScope,
    WhenFull,
};

const ONCE: Option<Duration> = Some(Duration::ZERO);
const LONG: Option<Duration> = Some(Duration::from_secs(30));

#[test]
fn a_lock_excludes_ancestors_and_descendants() -> Result<()> {
    let scratch = Scratch::new();
    let (mut one, mut two) = (scratch.session(), scratch.session());
    assert!(one.lock(&node!("^L", "a")?, LockMode::Exclusive, ONCE)?);
    for (name, free) in [
        (node!("^L")?, false),
        (node!("^L", "a")?, false),
        (node!("^L", "a", 1)?, false),
        (node!("^L", "b")?, true),
        (node!("^L", "aa")?, true),
        (node!("L", "a")?, true),
        (node!("^La")?, true),
    ] {
        assert_eq!(two.lock(&name, LockMode::Exclusive, ONCE)?, free, "{name}");
    }
    // An owner never blocks itself.
    assert!(one.lock(&node!("^L", "a", 1)?, LockMode::Exclusive, ONCE)?);
    two.unlock_all(two.lock_owner())?;
    one.unlock_all(one.lock_owner())?;
    assert!(two.lock(&node!("^L")?, LockMode::Exclusive, ONCE)?);
    Ok(())
}

#[test]
fn locks_are_counted_and_shared() -> Result<()> {
    let scratch = Scratch::new();
    let (mut one, mut two) = (scratch.session(), scratch.session());
    let name = node!("^L")?;
    assert!(!one.unlock(&name)?);
    assert!(one.lock(&name, LockMode::Exclusive, ONCE)?);
    assert!(one.lock(&name, LockMode::Exclusive, ONCE)?);
    assert_eq!(one.lock_count(one.lock_owner(), &name)?, 2);
    assert!(one.unlock(&name)?);
    assert!(!two.lock(&name, LockMode::Shared, ONCE)?);
    assert!(one.unlock(&name)?);
    assert!(one.lock(&name, LockMode::Shared, ONCE)?);
    assert!(two.lock(&name, LockMode::Shared, ONCE)?);
    assert!(!two.lock(&name, LockMode::Exclusive, ONCE)?);
    Ok(())
}

#[test]
fn several_locks_are_taken_all_or_none() -> Result<()> {
    let scratch = Scratch::new();
    let (mut one, mut two) = (scratch.session(), scratch.session());
    let (a, b) = (node!("^a")?, node!("b")?);
    assert!(two.lock(&b, LockMode::Exclusive, ONCE)?);
    let both = [(&a, LockMode::Exclusive), (&b, LockMode::Exclusive)];
    assert!(!one.lock_all(one.lock_owner(), both, ONCE)?);
    assert_eq!(one.lock_count(one.lock_owner(), &a)?, 0);
    drop(two);
    assert!(one.lock_all(one.lock_owner(), both, ONCE)?, "a session's locks go with it");
    // An owner of one's own is no session.
    let owner = one.new_lock_owner();
    assert!(!one.lock_all(owner, both, ONCE)?);
    one.unlock_all(one.lock_owner())?;
    assert!(one.lock_all(owner, both, ONCE)?);
    assert!(one.unlock_as(owner, &b)?);
    assert_eq!((one.lock_count(owner, &a)?, one.lock_count(owner, &b)?), (1, 0));
    Ok(())
}

#[test]
fn a_waiter_gets_the_lock_when_it_is_released() -> Result<()> {
    let scratch = Scratch::new();
    let (mut one, mut two) = (scratch.session(), scratch.session());
    let name = node!("^L")?;
    assert!(one.lock(&name, LockMode::Exclusive, ONCE)?);
    let waiter = thread::spawn(move || two.lock(&node!("^L", 1)?, LockMode::Exclusive, LONG));
    one.unlock(&name)?;
    assert!(waiter.join().expect("the waiter ends")?);
    Ok(())
}

#[test]
fn a_lock_taken_in_a_level_goes_with_its_rollback() -> Result<()> {
    let scratch = Scratch::new();
    let mut session = scratch.session();
    let (kept, dropped) = (node!("^kept")?, node!("^dropped")?);
    session.transaction(|t| {
        assert!(t.lock(&kept, LockMode::Exclusive, ONCE)?);
        let _: Result<()> = t.transaction(|t| {
            assert!(t.lock(&dropped, LockMode::Exclusive, ONCE)?);
            Err(Error::Rollback)
        });
        Ok(())
    })?;
    let owner = session.lock_owner();
    assert_eq!((session.lock_count(owner, &kept)?, session.lock_count(owner, &dropped)?), (1, 0));
    Ok(())
}

#[test]
fn a_circle_of_waiters_is_an_error_for_one() -> Result<()> {
    let scratch = Scratch::new();
    let (mut one, mut two) = (scratch.session(), scratch.session());
    let (a, b) = (node!("^a")?, node!("^b")?);
    assert!(one.lock(&a, LockMode::Exclusive, ONCE)?);
    assert!(two.lock(&b, LockMode::Exclusive, ONCE)?);
    let first = {
        let (a, b) = (a.clone(), b.clone());
        thread::spawn(move || {
            let outcome = one.lock(&b, LockMode::Exclusive, LONG);
            one.unlock(&a)?;
            outcome
        })
    };
    let second = two.lock(&a, LockMode::Exclusive, LONG);
    two.unlock(&b)?;
    let outcomes = [first.join().expect("the waiter ends"), second];
    let deadlocks = outcomes
        .iter()
        .filter(|outcome| matches!(outcome, Err(error) if error.code() == ErrorCode::Deadlock))
        .count();
    let granted = outcomes.iter().filter(|outcome| matches!(outcome, Ok(true))).count();
    assert_eq!((deadlocks, granted), (1, 1), "{outcomes:?}");
    Ok(())
}

#[test]
fn a_watch_notices_commits_below_it() -> Result<()> {
    let scratch = Scratch::new();
    let (mut one, mut two) = (scratch.session(), scratch.session());
    let watch = one.watch([(&node!("^w")?, WatchScope::Subtree), (&node!("^v")?, WatchScope::Node)])?;
    assert!(!one.wait(watch, ONCE)?);
    two.set(&node!("^w", 1, 2)?, 0)?;
    assert!(one.wait(watch, LONG)?);
    assert!(!one.wait(watch, ONCE)?);
    two.transaction(|t| t.set(&node!("^v")?, 0))?;
    assert!(one.wait(watch, LONG)?);
    // A waiter sleeps until it is told.
    let (ready, begun) = mpsc::channel();
    let waiter = thread::spawn(move || {
        ready.send(()).expect("the test waits");
        one.wait(watch, LONG).map(|touched| (touched, one))
    });
    begun.recv().expect("the waiter begins");
    two.delete_tree(&node!("^w")?)?;
    let (touched, mut one) = waiter.join().expect("the waiter ends")?;
    assert!(touched);
    one.unwatch(watch);
    assert_eq!(one.wait(watch, ONCE).expect_err("it has ended").code(), ErrorCode::Invalid);
    assert_eq!(
        one.watch([(&node!("local")?, WatchScope::Node)]).expect_err("nobody else sees it").code(),
        ErrorCode::LocalNode
    );
    Ok(())
}

#[test]
fn waiting_inside_a_transaction_is_refused() -> Result<()> {
    let scratch = Scratch::new();
    let mut session = scratch.session();
    let watch = session.watch([(&node!("^w")?, WatchScope::Node)])?;
    let error = session.transaction(|t| t.wait(watch, LONG)).expect_err("nothing that blocks runs inside");
    assert_eq!(error.code(), ErrorCode::TransactionState);
    Ok(())
}

#[test]
fn channels_keep_order_and_bounds() -> Result<()> {
    let scratch = Scratch::new();
    let (mut one, mut two) = (scratch.session(), scratch.session());
    let options = ChannelOptions { messages: 2, bytes: 1_000, when_full: WhenFull::Refuse };
    one.channel("jobs").create(options)?;
    assert_eq!((one.channel("jobs").post("a")?, one.channel("jobs").post("b")?), (1, 2));
    assert_eq!(one.channel("jobs").post("c").expect_err("it is full").code(), ErrorCode::ChannelFull);
    let message = two.channel("jobs").follow(0, ONCE)?.expect("the first message");
    assert_eq!((message.number, &message.body[..]), (1, &b"a"[..]));
    for (number, body) in [(1, b"a"), (2, b"b")] {
        let message = two.channel("jobs").receive(ONCE)?.expect("a message");
        assert_eq!((message.number, &message.body[..]), (number, &body[..]));
    }
    assert_eq!(two.channel("jobs").receive(ONCE)?, None);
    let _: Result<()> = one.transaction(|t| {
        t.channel("jobs").post("never")?;
        Err(Error::Rollback)
    });
    one.transaction_with(&TransactionOptions::default(), |t| t.channel("jobs").post("once").map(|_| ()))?;
    let body = two.channel("jobs").receive(LONG)?.expect("the committed message").body;
    assert_eq!(body, b"once");
    assert_eq!(two.channel("jobs").receive(ONCE)?, None);
    for name in ["", "a\0b", &"x".repeat(256)] {
        assert_eq!(one.channel(name).post("").expect_err("no name").code(), ErrorCode::Invalid);
    }
    one.channel("jobs").remove()
}
