//! Cursors both ways over children, subtrees and ranges.

use std::ops::Bound;

use crate::fixture::Scratch;
use perilune::{node, Cursor, Data, Error, Node, Result, Session};

fn both(test: impl Fn(&mut Session, &Node) -> Result<()>) -> Result<()> {
    let scratch = Scratch::new();
    for name in ["^c", "c"] {
        test(&mut scratch.session(), &node!(name)?)?;
    }
    Ok(())
}

/// `""`, 1 (no value, two below), 2, "a" (with one below), "b".
fn plant(session: &mut Session, c: &Node) -> Result<()> {
    session.set(c, "self")?;
    session.set(&c.child("")?, "empty")?;
    session.set(&c.child(1)?.child("x")?, "1x")?;
    session.set(&c.child(1)?.child("y")?, "1y")?;
    session.set(&c.child(2)?, "2")?;
    session.set(&c.child("a")?, "a")?;
    session.set(&c.child("a")?.child(0)?, "a0")?;
    session.set(&c.child("b")?, "b")
}

fn forward(session: &mut Session, mut cursor: Cursor) -> Result<Vec<String>> {
    let mut entries = Vec::new();
    while cursor.next(session)? {
        entries.push(entry(&cursor)?);
    }
    assert!(!cursor.next(session)?, "the end stays the end");
    let mut back = Vec::new();
    while cursor.previous(session)? {
        back.push(entry(&cursor)?);
    }
    assert!(!cursor.previous(session)?, "the beginning stays the beginning");
    back.reverse();
    assert_eq!(back, entries, "both ways show the same");
    Ok(entries)
}

fn entry(cursor: &Cursor) -> Result<String> {
    let value = cursor.value()?.map_or("-".to_owned(), |value| value.to_string());
    match cursor.node_ref()?.last()? {
        Some(subscript) => Ok(format!("{subscript}={value}")),
        None => Ok(format!("name={value}")),
    }
}

#[test]
fn children_are_walked_over_their_subtrees() -> Result<()> {
    both(|session, c| {
        assert!(forward(session, Cursor::children(c))?.is_empty());
        plant(session, c)?;
        let all = [r#"""="empty""#, "1=-", r#"2="2""#, r#""a"="a""#, r#""b"="b""#];
        assert_eq!(forward(session, Cursor::children(c))?, all);
        assert_eq!(forward(session, Cursor::children(c).without_empty())?, all[1..]);
        assert_eq!(forward(session, Cursor::children(&c.child(1)?))?, [r#""x"="1x""#, r#""y"="1y""#]);
        assert!(forward(session, Cursor::children(&c.child("b")?))?.is_empty());
        Ok(())
    })
}

#[test]
fn children_can_be_bounded_by_subscripts() -> Result<()> {
    both(|session, c| {
        plant(session, c)?;
        let some = Cursor::children(c).between(Bound::Included(1), Bound::Excluded("b"))?;
        assert_eq!(forward(session, some)?, ["1=-", r#"2="2""#, r#""a"="a""#]);
        let some = Cursor::children(c).between(Bound::Excluded(1), Bound::Included("a"))?;
        assert_eq!(forward(session, some)?, [r#"2="2""#, r#""a"="a""#]);
        let some = Cursor::children(c).between(Bound::<i64>::Unbounded, Bound::Included(1.5))?;
        assert_eq!(forward(session, some)?, [r#"""="empty""#, "1=-"]);
        let none = Cursor::children(c).between(Bound::Included("b"), Bound::Included(1))?;
        assert!(forward(session, none)?.is_empty());
        Ok(())
    })
}

#[test]
fn a_subtree_shows_its_values_depth_first() -> Result<()> {
    both(|session, c| {
        plant(session, c)?;
        assert_eq!(
            forward(session, Cursor::subtree(c))?,
            [
                r#"name="self""#,
                r#"""="empty""#,
                r#""x"="1x""#,
                r#""y"="1y""#,
                r#"2="2""#,
                r#""a"="a""#,
                r#"0="a0""#,
                r#""b"="b""#
            ]
        );
        assert_eq!(forward(session, Cursor::subtree(&c.child("a")?))?, [r#""a"="a""#, r#"0="a0""#]);
        Ok(())
    })
}

#[test]
fn a_range_crosses_subtrees_and_names() -> Result<()> {
    both(|session, c| {
        plant(session, c)?;
        let other = node!(&format!("{}x", c.name()), 1)?;
        session.set(&other, "other")?;
        let (from, to) = (c.child(1)?.child("y")?, c.child("a")?);
        let all = [r#""y"="1y""#, r#"2="2""#, r#""a"="a""#];
        assert_eq!(forward(session, Cursor::range(&from..=&to)?)?, all);
        assert_eq!(forward(session, Cursor::range(&from..&to)?)?, all[..2]);
        let inner = Cursor::range((Bound::Excluded(&from), Bound::Excluded(&to)))?;
        assert_eq!(forward(session, inner)?, all[1..2]);
        let open = Cursor::range(c.child("b")?..)?;
        assert_eq!(forward(session, open)?, [r#""b"="b""#, r#"1="other""#]);
        assert!(Cursor::range(..).is_err());
        assert!(Cursor::range(node!("^q")?..node!("q")?).is_err());
        Ok(())
    })
}

#[test]
fn a_cursor_turns_round_at_every_entry() -> Result<()> {
    both(|session, c| {
        plant(session, c)?;
        let mut cursor = Cursor::children(c);
        assert!(matches!(cursor.node_ref(), Err(Error::Store(_))), "it stands nowhere yet");
        assert!(cursor.next(session)? && cursor.next(session)? && cursor.next(session)?);
        assert_eq!(entry(&cursor)?, r#"2="2""#);
        assert!(cursor.previous(session)?);
        assert_eq!(entry(&cursor)?, "1=-");
        assert_eq!(cursor.data(session)?, Data::Descendants);
        assert!(cursor.next(session)?);
        assert_eq!(entry(&cursor)?, r#"2="2""#);
        // From nowhere, backwards means from the end.
        cursor.rewind();
        assert!(cursor.previous(session)?);
        assert_eq!(entry(&cursor)?, r#""b"="b""#);
        Ok(())
    })
}

#[test]
fn seeking_stands_before_the_place() -> Result<()> {
    both(|session, c| {
        plant(session, c)?;
        for (place, next, previous) in [
            (c.child(2)?, r#"2="2""#, "1=-"),
            (c.child(1.5)?, r#"2="2""#, "1=-"),
            (c.child("")?, r#"""="empty""#, ""),
            (c.clone(), r#"""="empty""#, ""),
            (c.child("zz")?, "", r#""b"="b""#),
        ] {
            let mut cursor = Cursor::children(c);
            cursor.seek(&place);
            let step = if cursor.next(session)? { entry(&cursor)? } else { String::new() };
            assert_eq!(step, next, "next from {place}");
            cursor.seek(&place);
            let step = if cursor.previous(session)? { entry(&cursor)? } else { String::new() };
            assert_eq!(step, previous, "previous from {place}");
        }
        Ok(())
    })
}

#[test]
fn seeking_past_a_node_leaves_out_its_subtree() -> Result<()> {
    both(|session, c| {
        session.set(&c.child(1)?.child("below")?, 1)?;
        session.set(&c.child(1)?.child("deeper")?.child(2)?, 2)?;
        session.set(&c.child(3)?, 3)?;
        let mut cursor = Cursor::subtree(c);
        cursor.seek_past(&c.child(1)?);
        assert!(cursor.next(session)?);
        assert_eq!(cursor.node()?, c.child(3)?);
        cursor.seek_past(c);
        assert!(!cursor.next(session)?);
        assert!(cursor.previous(session)?);
        assert_eq!(cursor.node()?, c.child(3)?);
        Ok(())
    })
}

#[test]
fn integers_are_told_apart() -> Result<()> {
    both(|session, c| {
        let mut cursor = Cursor::children(c);
        assert_eq!(cursor.integer(), None);
        let subscripts = [i64::MIN, -1, 0, 7, 70_000, i64::MAX];
        for subscript in subscripts {
            session.set(&c.child(subscript)?, 1)?;
        }
        session.set(&c.child(1.5)?, 1)?;
        session.set(&c.child("7x")?, 1)?;
        let (mut found, mut steps) = (Vec::new(), 0);
        while cursor.next(session)? {
            steps += 1;
            found.extend(cursor.integer());
        }
        assert_eq!((&found[..], steps), (&subscripts[..], 8));
        Ok(())
    })
}

#[test]
fn entries_may_go_under_the_cursor() -> Result<()> {
    both(|session, c| {
        plant(session, c)?;
        let mut cursor = Cursor::children(c);
        let mut seen = 0;
        while cursor.next(session)? {
            seen += 1;
            let node = cursor.node()?;
            session.delete_tree(&node)?;
            session.set(&c.child("z")?, "ahead")?;
            if seen > 6 {
                break;
            }
        }
        // What is written ahead of the cursor is seen, what is deleted under it does no harm.
        assert_eq!(seen, 6);
        assert_eq!(session.count_children(c)?, 1);
        Ok(())
    })
}

#[test]
fn a_cursor_without_values_still_knows_whether_there_is_one() -> Result<()> {
    both(|session, c| {
        plant(session, c)?;
        let mut cursor = Cursor::children(c).without_values();
        let mut with_value = Vec::new();
        while cursor.previous(session)? {
            with_value.push(cursor.has_value());
            assert_eq!(cursor.value().is_err(), cursor.has_value());
        }
        assert_eq!(with_value, [true, true, true, false, true]);
        Ok(())
    })
}

#[test]
fn the_longest_key_is_a_node_like_any_other() -> Result<()> {
    let scratch = Scratch::new();
    let mut session = scratch.session();
    for length in 1_894..=1_896 {
        // "^c" takes 2 bytes, the string 2 more than its length.
        let (c, long) = (node!("^c")?, node!("^c", "x".repeat(length))?);
        session.delete_tree(&c)?;
        session.set(&long, 1)?;
        assert_eq!(session.get_int(&long)?, Some(1));
        assert_eq!(session.data(&long)?, Data::Value);
        assert_eq!(session.next(&c.child("")?)?, Some(long.clone()));
        assert_eq!(session.next(&long)?, None);
        assert_eq!(session.last_child(&c)?, Some(long.clone()));
        assert_eq!(session.count_children(&long)?, 0);
        assert_eq!(forward(&mut session, Cursor::children(&c))?.len(), 1);
        for cursor in [Cursor::children(&long), Cursor::children(&long).without_empty()] {
            assert!(forward(&mut session, cursor)?.is_empty());
        }
        assert_eq!(forward(&mut session, Cursor::subtree(&long))?.len(), 1);
        assert_eq!(forward(&mut session, Cursor::range(&c..=&long)?)?.len(), 1);
        assert_eq!(
            forward(&mut session, Cursor::range((Bound::Excluded(&long), Bound::Unbounded))?)?.len(),
            0
        );
    }
    Ok(())
}
