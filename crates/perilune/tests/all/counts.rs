//! Counting: cursors that skip against cursors that step, and what others write meanwhile.

use std::ops::Bound;

use crate::fixture::Scratch;
use perilune::{node, Cursor, Node, NodeRef, Result, Serving, Session, Value};

/// A tree of some leaves, with values and trees below some of them.
fn plant(session: &mut Session, root: &Node) -> Result<()> {
    for number in 0..900 {
        let node = root.child(number)?;
        if number % 7 > 0 {
            session.set(&node, number)?;
        }
        if number % 50 == 0 {
            session.set(&node.child("below")?, "x".repeat(1 + number as usize * 10))?;
        }
        // More than a leaf holds.
        for below in 0..if number == 333 { 2_000 } else { 0 } {
            session.set(&node.child(below)?, "a value of some bytes")?;
        }
    }
    Ok(())
}

/// Steps, one by one.
fn step(cursor: &mut Cursor, session: &mut Session, entries: u64, backwards: bool) -> Result<u64> {
    for done in 0..entries {
        let found = if backwards { cursor.previous(session)? } else { cursor.next(session)? };
        if !found {
            return Ok(done);
        }
    }
    Ok(entries)
}

fn place(cursor: &Cursor) -> Option<(Node, bool, Option<Value>)> {
    let node = cursor.node().ok()?;
    Some((node, cursor.has_value(), cursor.value().ok().flatten().map(|value| value.to_owned_value())))
}

/// Both go the same ways, from each place that a cursor can stand at.
fn compare(session: &mut Session, cursor: &Cursor, text: &str) -> Result<()> {
    let (mut skips, mut steps) = (cursor.clone(), cursor.clone());
    let ways = [5, -3, 300, -1, 1, -40, 2_000, 3, -10, -2_000, -1, 10, 0, 500, -200, 1, 1, 700, -701];
    for (at, way) in ways.into_iter().enumerate() {
        let (entries, backwards) = (u64::try_from(i64::abs(way)).unwrap_or(0), way < 0);
        let skipped =
            if backwards { skips.skip_back(session, entries)? } else { skips.skip(session, entries)? };
        assert_eq!(skipped, step(&mut steps, session, entries, backwards)?, "{text}: way {at}");
        assert_eq!(place(&skips), place(&steps), "{text}: way {at}");
    }
    Ok(())
}

#[test]
fn skipping_is_stepping() -> Result<()> {
    let scratch = Scratch::new();
    let mut session = scratch.session();
    for name in ["^g", "g"] {
        let root = node!(name)?;
        plant(&mut session, &root)?;
        let (low, high) = (root.child(100)?, root.child(650)?);
        let mut bounded = Cursor::subtree(&root);
        bounded.bound(Bound::Excluded(NodeRef::from(&low)), Bound::Included(NodeRef::from(&high)));
        let mut sought = Cursor::subtree(&root);
        sought.seek_past(&high);
        let cursors = [
            ("subtree", Cursor::subtree(&root)),
            ("without values", Cursor::subtree(&root).without_values()),
            ("children", Cursor::children(&root)),
            ("children without values", Cursor::children(&root).without_values()),
            ("some children", Cursor::children(&root).between(Bound::Excluded(49), Bound::Included(700))?),
            ("range", Cursor::range(low..high.clone())?),
            ("bounded", bounded),
            ("sought", sought),
            ("nothing", Cursor::subtree(&root.child("nothing")?)),
        ];
        for (text, cursor) in &cursors {
            compare(&mut session, cursor, text)?;
            session.transaction(|session| compare(session, cursor, text))?;
            // Among what the transaction has written itself, and removed.
            session.transaction(|session| {
                session.set(&root.child(301)?.child("own")?, 1)?;
                session.delete_tree(&root.child(400)?)?;
                session.delete_value(&root.child(402)?)?;
                session.set(&root.child(400)?.child(1)?, 1)?;
                compare(session, cursor, text)?;
                session.transaction(|session| {
                    session.delete_tree(&root)?;
                    session.set(&root.child(5)?, 1)?;
                    compare(session, cursor, text)?;
                    session.delete_tree(&root)
                })?;
                plant(session, &root)
            })?;
        }
        assert_eq!(session.count_valued(&root)?, 900 - 129 + 18 + 2_000);
        assert_eq!(session.count_valued(&root.child(50)?)?, 1);
    }
    Ok(())
}

/// A one-shot transaction that has counted ends well unless what it counted has changed.
#[test]
fn attempts_notice_what_comes_among_what_they_counted() -> Result<()> {
    let scratch = Scratch::new();
    let (mut session, mut other) = (scratch.session(), scratch.session());
    let root = node!("^g")?;
    let far = node!("^z")?;
    plant(&mut session, &root)?;
    for number in 0..1_000 {
        session.set(&far.child(number)?, "so that the two lie in leaves of their own")?;
    }
    let elsewhere = far.child(990)?;
    let new = root.child(301)?.child("new")?;
    let count = |session: &mut Session| Cursor::subtree(&root).without_values().skip(session, u64::MAX);
    let kept = session.attempt(|session| {
        let counted = count(session)?;
        other.set(&elsewhere, 1)?;
        session.set(&far.child("mine")?, 1)?;
        Ok(counted)
    })?;
    // Of tiny leaves there are too many for it.
    assert!(kept.is_none_or(|kept| kept == 900 - 129 + 18 + 2_000), "{kept:?}");
    let lost = session.attempt(|session| {
        let counted = count(session)?;
        other.set(&new, 1)?;
        session.set(&far.child("lost")?, 1)?;
        Ok(counted)
    })?;
    assert_eq!((lost, session.get(&far.child("lost")?)?), (None, None));
    // What it has written itself it counts as it has written it.
    let own = session.attempt(|session| {
        session.set(&root.child(1)?, "there before")?;
        session.set(&root.child(7)?, "new")?;
        session.set(&root.child(700)?, "new")?;
        assert!(session.delete_value(&root.child(2)?)?);
        let mut back = Cursor::subtree(&root).without_values();
        assert_eq!(back.skip_back(session, 198)?, 198);
        assert_eq!(back.node()?, root.child(675)?);
        count(session)
    })?;
    assert!(own.is_none_or(|own| own == 900 - 129 + 18 + 2_000 + 2), "{own:?}");
    Ok(())
}
