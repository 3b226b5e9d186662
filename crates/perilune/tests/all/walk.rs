//! Order: M's `$ORDER` and `$QUERY` with their edge cases, names, and the order of subscripts.

use std::ops::Bound;

use crate::fixture::Scratch;
use perilune::{node, Neighbour, Node, NodeRef, RangeEnds, Result, Session, Steps, Value};

fn both(test: impl Fn(&mut Session, &Node) -> Result<()>) -> Result<()> {
    let scratch = Scratch::new();
    for name in ["^g", "g"] {
        test(&mut scratch.session(), &node!(name)?)?;
    }
    Ok(())
}

fn text(node: Option<Node>) -> String {
    node.map_or("-".to_owned(), |node| node.to_string().trim_start_matches('^').to_owned())
}

/// The order observed on YottaDB, smallest first; `""` exists, but `$ORDER` never returns it.
fn observed_order() -> Vec<Vec<u8>> {
    let huge = format!("1{}", "0".repeat(46));
    let tiny = format!(".{}1", "0".repeat(42));
    let words: [&[u8]; 38] = [
        format!("-{huge}").leak().as_bytes(),
        b"-1",
        b"-.5",
        b"0",
        tiny.leak().as_bytes(),
        b".5",
        b"1",
        b"2",
        b"10",
        b"123456789012345678",
        b"999999999999999999",
        b"1234567890123456780",
        b"100000000000000000000",
        huge.leak().as_bytes(),
        b"\0",
        b"\x01",
        b" ",
        b"+1",
        b"-0",
        format!(".{}1", "0".repeat(43)).leak().as_bytes(),
        b"0.5",
        b"00",
        b"1.0",
        format!("1{}", "0".repeat(47)).leak().as_bytes(),
        b"1234567890123456789",
        b"12345678901234567890",
        b"1E3",
        b"1e3",
        b"9999999999999999999",
        b"A",
        b"_",
        b"a",
        b"a\0b",
        b"a\x01",
        b"ab",
        b"~",
        "é".as_bytes(),
        b"\xff",
    ];
    words.iter().map(|word| word.to_vec()).collect()
}

#[test]
fn subscripts_sort_as_observed() -> Result<()> {
    both(|session, g| {
        let words = observed_order();
        for word in words.iter().rev() {
            session.set(&g.child(word)?, 1)?;
        }
        session.set(&g.child("")?, 1)?;
        let mut forward = Vec::new();
        let mut at = g.child("")?;
        while let Some(next) = session.next(&at)? {
            forward.push(next.last()?.expect("a sibling has a subscript").to_text().into_owned());
            at = next;
        }
        assert_eq!(forward, words);
        let mut backward = Vec::new();
        let mut at = g.child("")?;
        while let Some(previous) = session.previous(&at)? {
            backward.push(previous.last()?.expect("a sibling has a subscript").to_text().into_owned());
            at = previous;
        }
        backward.reverse();
        assert_eq!(backward, words);
        Ok(())
    })
}

#[test]
fn order_walks_siblings_with_value_or_descendants() -> Result<()> {
    both(|session, g| {
        session.set(&g.child("a")?.child(1)?, 0)?;
        session.set(&g.child("c")?, 0)?;
        session.set(&g.child("c")?.child("x")?, 0)?;
        let name = text(Some(g.clone()));
        let cases = [
            // From "": the first, and backwards the last.
            ("", format!("{name}(\"a\")"), format!("{name}(\"c\")")),
            ("a", format!("{name}(\"c\")"), "-".to_owned()),
            // What is between need not exist.
            ("b", format!("{name}(\"c\")"), format!("{name}(\"a\")")),
            ("c", "-".to_owned(), format!("{name}(\"a\")")),
            ("d", "-".to_owned(), format!("{name}(\"c\")")),
        ];
        for (from, next, previous) in cases {
            let from = g.child(from)?;
            assert_eq!(text(session.next(&from)?), next, "next of {from}");
            assert_eq!(text(session.previous(&from)?), previous, "previous of {from}");
        }
        // Parents need not exist either.
        assert_eq!(session.next(&g.child("zz")?.child("")?)?, None);
        assert_eq!(session.previous(&g.child("zz")?.child("")?)?, None);
        Ok(())
    })
}

#[test]
fn order_never_answers_the_empty_subscript() -> Result<()> {
    both(|session, g| {
        let (empty, below) = (g.child("")?, g.child("")?.child(5)?);
        session.set(&empty, 0)?;
        session.set(&below, 0)?;
        assert_eq!(session.next(&empty)?, None);
        assert_eq!(session.previous(&empty)?, None);
        session.set(&g.child(1)?, 0)?;
        assert_eq!(session.next(&empty)?, Some(g.child(1)?));
        assert_eq!(session.previous(&g.child(1)?)?, None);
        assert_eq!(session.previous(&empty)?, Some(g.child(1)?));
        // The inclusive steps know it.
        assert_eq!(session.sibling_before(&g.child(1)?)?, Some(empty.clone()));
        assert_eq!(session.sibling_before(&empty)?, None);
        assert_eq!(session.sibling_after(&empty)?, Some(g.child(1)?));
        assert_eq!(session.first_child(g)?, Some(empty.clone()));
        assert_eq!(session.last_child(g)?, Some(g.child(1)?));
        assert_eq!(session.last_child(&empty)?, Some(below));
        assert_eq!(session.first_child(&g.child(1)?)?, None);
        assert_eq!(session.last_child(&g.child(1)?)?, None);
        Ok(())
    })
}

#[test]
fn query_visits_valued_nodes_depth_first() -> Result<()> {
    both(|session, g| {
        let nodes = [
            g.child("")?,
            g.child(1)?.child("x")?.child("y")?,
            g.child(2)?,
            g.child(2)?.child(3)?,
            g.child("a")?,
        ];
        for node in &nodes {
            session.set(node, 0)?;
        }
        let mut at = g.clone();
        for node in &nodes {
            at = session.next_valued(&at)?.expect("one node more");
            assert_eq!(&at, node);
        }
        assert_eq!(session.next_valued(&at)?, None);
        for node in nodes.iter().rev().skip(1) {
            at = session.previous_valued(&at)?.expect("one node more");
            assert_eq!(&at, node);
        }
        assert_eq!(session.previous_valued(&at)?, None);
        // The name itself counts backwards, once it has a value; the start need not exist.
        session.set(g, 0)?;
        assert_eq!(session.previous_valued(&at)?, Some(g.clone()));
        assert_eq!(session.previous_valued(g)?, None);
        assert_eq!(session.next_valued(&g.child(1)?.child("x")?)?, Some(nodes[1].clone()));
        assert_eq!(session.next_valued(&g.child(1)?.child("z")?)?, Some(nodes[2].clone()));
        Ok(())
    })
}

#[test]
fn query_stays_under_its_name() -> Result<()> {
    let scratch = Scratch::new();
    let mut session = scratch.session();
    for name in ["^a", "^ab", "^b"] {
        session.set(&node!(name, 1)?, 0)?;
    }
    assert_eq!(session.next_valued(&node!("^a", 1)?)?, None);
    assert_eq!(session.previous_valued(&node!("^b", 1)?)?, None);
    Ok(())
}

#[test]
fn names_walk_in_the_order_of_their_bytes() -> Result<()> {
    both(|session, g| {
        let local = g.is_local();
        let caret = if local { "" } else { "^" };
        let names: Vec<String> =
            ["%", "A", "a", "ab", "b"].iter().map(|name| format!("{caret}{name}")).collect();
        assert_eq!(session.first_name(local)?, None);
        assert_eq!(session.last_name(local)?, None);
        for name in &names {
            session.set(&node!(name, "x", 1)?, 0)?;
        }
        let mut at = session.first_name(local)?;
        for name in &names {
            assert_eq!(at, Some(node!(name)?));
            at = session.next(&node!(name)?)?;
        }
        assert_eq!(at, None);
        at = session.last_name(local)?;
        for name in names.iter().rev() {
            assert_eq!(at, Some(node!(name)?));
            at = session.previous(&node!(name)?)?;
        }
        assert_eq!(at, None);
        assert_eq!(session.next(&node!(&format!("{caret}aa"))?)?, Some(node!(&names[3])?));
        Ok(())
    })
}

#[test]
fn a_neighbour_is_answered_without_a_copy() -> Result<()> {
    both(|session, g| {
        session.set(&g.child(7)?, 0)?;
        let found = session.neighbour(Neighbour::Next, &g.child("")?)?.expect("one child");
        assert_eq!(found.last()?.and_then(|subscript| subscript.as_i64()), Some(7));
        assert_eq!(found, (&g.child(7)?).into());
        Ok(())
    })
}

#[test]
fn walks_see_the_transactions_own_writes() -> Result<()> {
    both(|session, g| {
        session.set(&g.child(1)?, 0)?;
        session.set(&g.child(3)?, 0)?;
        session.transaction(|t| {
            t.set(&g.child(2)?, 0)?;
            t.delete_value(&g.child(3)?)?;
            assert_eq!(t.next(&g.child(1)?)?, Some(g.child(2)?));
            assert_eq!(t.next(&g.child(2)?)?, None);
            assert_eq!(t.previous(&g.child("")?)?, Some(g.child(2)?));
            Ok(())
        })
    })
}

/// Ends of ranges, against all entries of the subtree in order; nodes around it must not be found.
#[test]
fn entries_are_found_at_both_ends_of_any_range() -> Result<()> {
    let scratch = Scratch::new();
    let mut session = scratch.session();
    for name in ["^d", "^e", "d"] {
        session.set(&node!(name)?, "outside")?;
        for (first, second) in [(1, 1), (1, 2), (2, 1), (3, 7)] {
            session.set(&node!(name, first, second)?, format!("{first} {second}"))?;
        }
        session.set(&node!(name, 2)?, "two")?;
    }
    for root in [node!("^d")?, node!("^d", 1)?, node!("^d", 2)?, node!("^d", 9)?, node!("d")?, node!("d", 2)?]
    {
        let all: Vec<(Node, Value)> = session.subtree(&root).collect::<Result<_>>()?;
        let name = root.name();
        let places =
            [node!(&name)?, node!(&name, 1)?, node!(&name, 1, 2)?, node!(&name, 2)?, node!(&name, 3, 8)?];
        for place in &places {
            for bound in [Bound::Included(place), Bound::Excluded(place), Bound::Unbounded] {
                let (after, before): (Vec<_>, Vec<_>) = match bound {
                    Bound::Included(at) => (
                        all.iter().filter(|(node, _)| node >= at).collect(),
                        all.iter().filter(|(node, _)| node <= at).collect(),
                    ),
                    Bound::Excluded(at) => (
                        all.iter().filter(|(node, _)| node > at).collect(),
                        all.iter().filter(|(node, _)| node < at).collect(),
                    ),
                    Bound::Unbounded => (all.iter().collect(), all.iter().collect()),
                };
                let bound = bound.map(NodeRef::from);
                let first = session.first_entry(&root, bound)?;
                let first = first.map(|(node, value)| (node.to_string(), value.to_owned_value()));
                assert_eq!(
                    first,
                    after.first().map(|(node, value)| (node.to_string(), value.clone())),
                    "{root} {bound:?}"
                );
                let last = session.last_entry(&root, bound)?;
                let last = last.map(|(node, value)| (node.to_string(), value.to_owned_value()));
                assert_eq!(
                    last,
                    before.last().map(|(node, value)| (node.to_string(), value.clone())),
                    "{root} {bound:?}"
                );
            }
        }
    }
    Ok(())
}
