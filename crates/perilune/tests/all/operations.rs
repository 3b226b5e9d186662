//! The operations on one node and on subtrees, on nodes of the database and on local ones alike.

use crate::fixture::Scratch;
use perilune::{
    node, Batch, Conditional, Data, Decimal, Error, Node, NodeRef, Number, Result, Serving, Session, Value,
    ABSENT,
};

/// Runs a test with a name of the database and with a local one.
fn both(test: impl Fn(&mut Session, &Node) -> Result<()>) -> Result<()> {
    let scratch = Scratch::new();
    for name in ["^t", "t"] {
        test(&mut scratch.session(), &node!(name)?)?;
    }
    Ok(())
}

#[test]
fn every_type_of_value_comes_back() -> Result<()> {
    both(|session, t| {
        let values = [
            Value::Null,
            Value::Bool(true),
            Value::Bool(false),
            Value::Int(0),
            Value::Int(i64::MIN),
            Value::Int(i64::MAX),
            Value::Decimal(Decimal::new(15, -1)?),
            Value::Double(1.5),
            Value::String(Vec::new()),
            Value::String(b"\0\x01\xff".to_vec()),
            Value::String(vec![b'x'; 100_000]),
            Value::EmptyList,
            Value::EmptyMap,
        ];
        for value in &values {
            session.set(t, value)?;
            assert_eq!(session.get(t)?.as_ref(), Some(value));
        }
        session.set(t, ())?;
        assert_eq!(session.get(t)?, Some(Value::Null));
        session.set(t, 10_000_000_000_000_000_000_u64)?;
        assert!(matches!(session.set(t, u64::MAX), Err(Error::Number(_))), "20 digits");
        session.set(t, true)?;
        assert_eq!(session.get(t)?, Some(Value::Bool(true)));
        Ok(())
    })
}

#[test]
fn typed_reads_refuse_other_types() -> Result<()> {
    both(|session, t| {
        assert_eq!(session.get_int(t)?, None);
        assert_eq!(session.get_str(t)?, None);
        session.set(t, 7)?;
        assert_eq!(session.get_int(t)?, Some(7));
        assert!(matches!(session.get_str(t), Err(Error::WrongType { found: "an integer", .. })));
        session.set(t, "42")?;
        assert_eq!(session.get_int(t)?, Some(42));
        assert_eq!(session.get_str(t)?, Some("42"));
        session.set(t, "042")?;
        assert!(matches!(session.get_int(t), Err(Error::WrongType { found: "a string", .. })));
        session.set(t, &[0xff][..])?;
        assert!(matches!(session.get_str(t), Err(Error::WrongType { .. })));
        Ok(())
    })
}

#[test]
fn data_follows_values_and_descendants() -> Result<()> {
    both(|session, t| {
        let (parent, child) = (t.child("a")?, t.child("a")?.child(1)?);
        assert_eq!(session.data(t)?, Data::Nothing);
        session.set(&child, 1)?;
        assert_eq!(session.data(t)?, Data::Descendants);
        assert_eq!(session.data(&parent)?.number(), 10);
        assert_eq!(session.data(&child)?, Data::Value);
        session.set(&parent, 1)?;
        assert_eq!(session.data(&parent)?.number(), 11);
        // Implied ancestors go with their last descendant.
        assert!(session.delete_value(&parent)?);
        assert!(!session.delete_value(&parent)?);
        assert!(session.delete_value(&child)?);
        assert_eq!(session.data(t)?, Data::Nothing);
        Ok(())
    })
}

#[test]
fn a_tree_is_deleted_without_its_neighbours() -> Result<()> {
    both(|session, t| {
        for (subscript, below) in [("a", 1), ("a", 2), ("ab", 1), ("b", 1)] {
            session.set(&t.child(subscript)?.child(below)?, 0)?;
        }
        session.set(&t.child("a")?, 0)?;
        session.delete_tree(&t.child("a")?)?;
        let left: Vec<String> = session.children(t).map(|s| Ok(s?.to_string())).collect::<Result<_>>()?;
        assert_eq!(left, [r#""ab""#, r#""b""#]);
        session.delete_tree(t)?;
        assert_eq!(session.data(t)?, Data::Nothing);
        Ok(())
    })
}

#[test]
fn increments_are_exact() -> Result<()> {
    both(|session, t| {
        assert_eq!(session.increment(t, 1)?, Number::from(1));
        assert_eq!(session.increment(t, -3)?, Number::from(-2));
        assert_eq!(session.get(t)?, Some(Value::Int(-2)));
        let tenth = t.child("tenth")?;
        for _ in 0..10 {
            session.increment(&tenth, 0.1)?;
        }
        assert_eq!(session.get(&tenth)?, Some(Value::Int(1)));

        session.set(t, i64::MAX)?;
        let before = session.get(t)?;
        assert!(matches!(session.increment(t, 0.5), Err(Error::Number(_))));
        assert!(matches!(session.increment(t, f64::NAN), Err(Error::Number(_))));
        assert_eq!(session.get(t)?, before);

        session.set(t, "12abc")?;
        assert!(matches!(session.increment(t, 1), Err(Error::Number(_))));
        assert_eq!(session.increment_truncating(t, 1)?, Number::from(13));
        session.set(t, "12")?;
        assert_eq!(session.increment(t, 1)?, Number::from(13));
        Ok(())
    })
}

#[test]
fn compare_and_set_compares_type_and_value() -> Result<()> {
    both(|session, t| {
        assert!(session.compare_and_set(t, ABSENT, Some(1))?);
        assert!(!session.compare_and_set(t, ABSENT, Some(2))?);
        assert!(!session.compare_and_set(t, Some("1"), Some(2))?);
        assert_eq!(session.get_int(t)?, Some(1));
        assert!(session.compare_and_set(t, Some(1), Some("two"))?);
        assert_eq!(session.get_str(t)?, Some("two"));
        assert!(session.compare_and_set(t, Some("two"), ABSENT)?);
        assert_eq!(session.data(t)?, Data::Nothing);
        Ok(())
    })
}

/// A small tree: a value of its own, two children, one of them deep.
fn plant(session: &mut Session, root: &Node) -> Result<()> {
    session.set(root, "root")?;
    session.set(&root.child(1)?, "one")?;
    session.set(&root.child(2)?.child("deep")?.child("")?, "two")
}

fn shape(session: &mut Session, root: &Node) -> Result<Vec<String>> {
    let start = root.to_string().len();
    session
        .get_tree(root)?
        .into_iter()
        .map(|(node, value)| Ok(format!("{}={value}", &node.to_string()[start..])))
        .collect()
}

#[test]
fn copy_replaces_and_merge_overlays() -> Result<()> {
    let scratch = Scratch::new();
    for (from, to) in [("^from", "^to"), ("^from", "to"), ("from", "^to"), ("from", "to")] {
        let mut session = scratch.session();
        let (from, to) = (node!(from)?, node!(to)?);
        session.delete_tree(&to)?;
        plant(&mut session, &from)?;
        let planted = ["=\"root\"", "(1)=\"one\"", "(2,\"deep\",\"\")=\"two\""];
        assert_eq!(shape(&mut session, &from)?, planted);
        session.set(&to.child(1)?, "old")?;
        session.set(&to.child(9)?, "old")?;
        session.merge(&from, &to)?;
        assert_eq!(shape(&mut session, &to)?, [planted[0], planted[1], planted[2], "(9)=\"old\""]);
        session.copy(&from, &to)?;
        assert_eq!(shape(&mut session, &to)?, planted);
        session.delete_tree(&from)?;
        session.copy(&from, &to)?;
        assert_eq!(session.data(&to)?, Data::Nothing);
    }
    Ok(())
}

#[test]
fn trees_that_contain_each_other_are_not_copied() -> Result<()> {
    both(|session, t| {
        plant(session, t)?;
        let inner = t.child(2)?;
        for (from, to) in [(t, &inner), (&inner, t), (t, t)] {
            assert!(matches!(session.copy(from, to), Err(Error::Overlap)));
            assert!(matches!(session.merge(from, to), Err(Error::Overlap)));
        }
        // Siblings whose names begin alike do not overlap.
        session.copy(&t.child(2)?, &t.child(21)?)?;
        assert_eq!(session.count_valued(&t.child(21)?)?, 1);
        Ok(())
    })
}

/// Copies are read many at a time: over leaves, long values and what the transaction around has written itself.
#[test]
fn a_large_subtree_is_copied_whole() -> Result<()> {
    let scratch = Scratch::new();
    let mut session = scratch.session();
    let (from, to, local) = (node!("^from")?, node!("^to", "below")?, node!("local")?);
    for number in 0..3_000 {
        let value = if number % 100 == 7 { "x".repeat(5_000) } else { format!("value {number}") };
        session.set(&from.child(number % 60)?.child(number)?, value)?;
    }
    session.set(&to.child("old")?, 1)?;
    session.transaction(|t| {
        t.set(&from, "own")?;
        t.set(&from.child(30)?.child("own")?, "in between")?;
        t.delete_tree(&from.child(31)?)?;
        t.copy(&from, &to)?;
        t.merge(&to, &local)
    })?;
    let texts = |session: &mut Session, root: &Node| -> Result<Vec<String>> {
        let all = session.get_tree(root)?.into_iter();
        all.map(|(node, value)| Ok(format!("{:?} {value:?}", &node.subscripts()?[root.depth()..]))).collect()
    };
    let all = texts(&mut session, &from)?;
    assert_eq!(all.len(), 3_000 - 50 + 2);
    assert_eq!(texts(&mut session, &to)?, all);
    assert_eq!(texts(&mut session, &local)?, all);
    Ok(())
}

#[test]
fn a_copy_that_does_not_fit_writes_nothing() -> Result<()> {
    let scratch = Scratch::new();
    let mut session = scratch.session();
    let (from, to) = (node!("^f")?, node!("^t", "x".repeat(1_000))?);
    session.set(&from.child(1)?, 1)?;
    session.set(&from.child("y".repeat(1_000))?, 1)?;
    session.set(&to, "before")?;
    let error = session.copy(&from, &to).expect_err("2,000 bytes are too long");
    assert_eq!(error.code(), perilune::ErrorCode::KeyTooLong);
    assert_eq!(shape(&mut session, &to)?, ["=\"before\""]);
    Ok(())
}

#[test]
fn counts_are_of_children_and_of_values() -> Result<()> {
    both(|session, t| {
        assert_eq!((session.count_children(t)?, session.count_valued(t)?), (0, 0));
        plant(session, t)?;
        session.set(&t.child("")?, 0)?;
        session.set(&t.child("a")?.child("b")?, 0)?;
        session.set(&t.child("a")?.child("c")?, 0)?;
        assert_eq!((session.count_children(t)?, session.count_valued(t)?), (4, 5));
        assert_eq!(session.count_children(&t.child("a")?)?, 2);
        session.transaction(|t_session| {
            t_session.delete_tree(&t.child("a")?)?;
            assert_eq!((t_session.count_children(t)?, t_session.count_valued(t)?), (3, 3));
            Ok(())
        })
    })
}

#[test]
fn batches_read_and_write_many_nodes() -> Result<()> {
    let scratch = Scratch::new();
    let mut session = scratch.session();
    let nodes = [node!("^b", 1)?, node!("b", 1)?, node!("^b", 2)?];
    session.set_many(nodes.iter().zip(["x", "y", "z"]))?;
    let values = session.get_many([&nodes[2], &node!("^b", 3)?, &nodes[1]])?;
    assert_eq!(values, [Some(Value::String(b"z".to_vec())), None, Some(Value::String(b"y".to_vec()))]);
    let long = [b'a'; 2_000];
    let pairs = [((&nodes[0]).into(), "new"), (NodeRef::from_encoded(&long, false), "new")];
    let error = session.set_many(pairs).expect_err("the second key is too long");
    assert_eq!(error.code(), perilune::ErrorCode::KeyTooLong);
    assert_eq!(session.get_str(&nodes[0])?, Some("x"));
    Ok(())
}

#[test]
fn local_trees_are_private_and_take_long_keys() -> Result<()> {
    let scratch = Scratch::new();
    let (mut one, mut two) = (scratch.session(), scratch.session());
    let long = node!("x", "y".repeat(1 << 20))?;
    one.set(&long, 1)?;
    one.set(&node!("^x")?, "shared")?;
    assert_eq!(one.get_int(&long)?, Some(1));
    assert_eq!(two.get(&long)?, None);
    assert_eq!(two.get(&node!("x")?)?, None);
    assert_eq!(two.get_str(&node!("^x")?)?, Some("shared"));
    assert_eq!(
        node!("^x", "y".repeat(1 << 20)).expect_err("too long").code(),
        perilune::ErrorCode::KeyTooLong
    );
    Ok(())
}

/// A value is set where one is, or where nothing is, in one operation; descendants are left alone.
#[test]
fn a_value_is_set_if_it_is_alone() -> Result<()> {
    let scratch = Scratch::new();
    let mut session = scratch.session();
    let t = node!("^t")?;
    for number in 0..3_000 {
        // Some lie at the ends of leaves, where it takes a transaction to tell; never is anything overwritten.
        let alone = t.child(number)?;
        if !session.set_unless_parent(&alone, "first")? {
            session.set(&alone, "first")?;
        }
        let above = t.child(number)?.with("x")?;
        assert!(session.set_unless_parent(&alone, number)?);
        session.delete_value(&alone)?;
        session.set(&above, 1)?;
        assert!(!session.set_unless_parent(&alone, "second")?, "{number}");
        assert_eq!((session.get(&alone)?, session.get_int(&above)?), (None, Some(1)));
    }
    let long = "x".repeat(100_000);
    assert!(!session.set_unless_parent(&node!("^u")?, &long)?, "a long value takes a transaction");
    assert_eq!(session.get(&node!("^u")?)?, None);
    assert!(session.transaction(|session| session.set_unless_parent(&node!("^u")?, 1)).is_ok_and(|set| !set));
    Ok(())
}

/// In a one-shot transaction too, where what it has written itself counts.
#[test]
fn a_value_is_set_if_it_is_alone_in_a_brief_transaction() -> Result<()> {
    let scratch = Scratch::new();
    let mut session = scratch.session();
    let t = node!("^t")?;
    let add = |old: Option<perilune::ValueRef<'_>>| Some(old.map_or(Some(0), |old| old.as_i64())? + 1);
    // A checkpoint or a split may make one fail: then nothing has happened.
    let mut failed = 0;
    for number in 0..1_000 {
        let (alone, above) = (t.child(number)?, t.child(number)?.with("x")?);
        let looks = number % 2 == 0;
        let done = session.attempt(|session| {
            if looks {
                assert_eq!(session.get(&alone)?, None);
            }
            assert!(session.set_unless_parent(&alone, "first")?, "{number}");
            assert!(session.set_unless_parent(&alone, number)?, "{number}: over its own value");
            assert_eq!(session.revise_integer_unless_parent(&alone, add)?, Some(number + 1));
            assert_eq!(session.get_int(&alone)?, Some(number + 1));
            Ok(())
        })?;
        failed += i32::from(done.is_none());
        assert_eq!(session.get_int(&alone)?, done.map(|()| number + 1));
        session.delete_value(&alone)?;
        let done = session.attempt(|session| {
            session.set(&above, 1)?;
            assert!(!session.set_unless_parent(&alone, "second")?, "{number}: beside its own");
            assert_eq!(session.revise_integer_unless_parent(&alone, add)?, None);
            Ok(())
        })?;
        if done.is_none() {
            failed += 1;
            session.set(&above, 1)?;
        }
        let done = session.attempt(|session| {
            assert!(!looks || session.get_int(&above)? == Some(1));
            assert!(!session.set_unless_parent(&alone, "third")?, "{number}");
            assert_eq!(session.revise_integer_unless_parent(&alone, add)?, None);
            assert!(session.set_unless_parent(&above, 7)?);
            assert_eq!(session.revise_integer_unless_parent(&above, add)?, Some(8));
            Ok(())
        })?;
        failed += i32::from(done.is_none());
        let kept = if done.is_some() { 8 } else { 1 };
        assert_eq!((session.get(&alone)?, session.get_int(&above)?), (None, Some(kept)));
    }
    assert!(failed < 300, "{failed} of 3000 have failed");
    let long = "x".repeat(100_000);
    let done = session.attempt(|session| session.set_unless_parent(&node!("^u")?, &long))?;
    assert_eq!(done, Some(false), "a long value takes a transaction");
    // What another has changed in between takes all of it back.
    let mut other = scratch.session();
    let u = node!("^u")?;
    let done = session.attempt(|session| {
        assert!(session.set_unless_parent(&u, 1)?);
        other.set(&u.child("x")?, 2)
    })?;
    assert_eq!((done, session.get(&u)?), (None, None));
    Ok(())
}

/// Many at once are as one: all, or none of them; through splits, and across checkpoints.
#[test]
fn many_values_are_set_if_all_are_alone() -> Result<()> {
    let scratch = Scratch::new();
    let mut session = scratch.session();
    let t = node!("^t")?;
    let mut all_at_once = 0;
    for round in 0..200_i64 {
        let mut batch = Batch::new();
        // In no order, and one of them twice: its last value counts.
        for number in 0..if round % 4 == 3 { 150 } else { 12 } {
            batch.push(&t.child((round * 7 + number * 997) % 3_000)?, format!("{round} {number}"))?;
        }
        batch.push(&t.child(round * 7 % 3_000)?, "again")?;
        if session.set_all_unless_parents(&mut batch)? {
            all_at_once += 1;
            assert_eq!(session.get_str(&t.child((round * 7 + 997) % 3_000)?)?, Some(&*format!("{round} 1")));
            assert_eq!(session.get_str(&t.child(round * 7 % 3_000)?)?, Some("again"));
        }
        if round % 50 == 0 {
            scratch.database.checkpoint()?;
        }
    }
    assert!(all_at_once > 150, "{all_at_once} of 200");
    session.set(&t.child("x")?.with("below")?, 1)?;
    let mut batch = Batch::with_capacity(2, 100);
    batch.push(&t.child("a")?, 1)?;
    batch.push(&t.child("x")?, 1)?;
    assert!(!session.set_all_unless_parents(&mut batch)?, "something lies below one of them");
    assert_eq!(session.data(&t.child("a")?)?, Data::Nothing);
    let mut batch = Batch::new();
    batch.push(&t.child("a")?, 1)?;
    batch.push(&t.child("b")?, "x".repeat(100_000))?;
    assert!(!session.set_all_unless_parents(&mut batch)?, "a long value takes a transaction");
    assert_eq!(session.data(&t.child("a")?)?, Data::Nothing);
    let mut batch = Batch::new();
    batch.push(&t.child("a")?, 1)?;
    assert!(session.transaction(|session| session.set_all_unless_parents(&mut batch)).is_ok_and(|set| !set));
    assert!(session.set_all_unless_parents(&mut Batch::new())?, "nothing is easily done");
    Ok(())
}

/// Two set the same nodes in many leaves at once, and a third never sees but one of them.
#[test]
fn values_set_at_once_are_seen_at_once() -> Result<()> {
    let scratch = Scratch::new();
    let mut session = scratch.session();
    for number in 0..3_000 {
        session.set(&node!("^t", number)?, "so that they lie in leaves of their own")?;
    }
    let nodes: Vec<Node> = (0..10).map(|number| node!("^t", number * 300)).collect::<Result<_>>()?;
    let set = |session: &mut Session, value: i64| {
        let mut batch = Batch::new();
        nodes.iter().try_for_each(|node| batch.push(node, value))?;
        session.set_all_unless_parents(&mut batch)
    };
    assert!(set(&mut session, 0)?);
    std::thread::scope(|scope| {
        let writers = [0, 1].map(|writer| {
            let (scratch, set) = (&scratch, &set);
            scope.spawn(move || {
                let mut session = scratch.session();
                let done =
                    (0..2_000).filter(|round| set(&mut session, 2 * round + writer).expect("it is set"));
                assert_eq!(done.count(), 2_000);
            })
        });
        while writers.iter().any(|writer| !writer.is_finished()) {
            let values = session.get_many(&nodes)?;
            assert!(values.iter().all(|value| *value == values[0]), "{values:?}");
        }
        Ok(())
    })
}

/// Against writers of subtrees that look first: no node ever has both.
#[test]
fn values_and_subtrees_exclude_each_other() -> Result<()> {
    let scratch = Scratch::new();
    let nodes: Vec<Node> = (0..2_000).map(|number| node!("^t", number)).collect::<Result<_>>()?;
    // In pieces, so that neither is done before the other has begun.
    let meeting = std::sync::Barrier::new(2);
    std::thread::scope(|scope| {
        let values = scope.spawn(|| {
            let (mut session, mut set) = (scratch.session(), 0);
            for piece in nodes.chunks(20) {
                meeting.wait();
                for node in piece {
                    set += i32::from(session.set_unless_parent(node, 1)?);
                }
            }
            Ok::<_, Error>(set)
        });
        let mut session = scratch.session();
        for piece in nodes.chunks(20) {
            meeting.wait();
            for node in piece.iter().rev() {
                let below = node.child("x")?;
                session.transaction(|session| match session.get(node)? {
                    None => session.set(&below, 1),
                    Some(_) => Ok(()),
                })?;
            }
        }
        assert!(values.join().expect("a writer")? > 0, "none was set");
        for node in &nodes {
            assert_ne!(session.data(node)?, Data::Both, "{node}");
        }
        Ok(())
    })
}

/// Where there is nothing, it counts, too; where something lies below, it does not.
#[test]
fn integers_are_made_where_nothing_is() -> Result<()> {
    let scratch = Scratch::new();
    let mut session = scratch.session();
    let one_more = |old: Option<perilune::ValueRef<'_>>| match old {
        None => Some(1),
        Some(old) => old.as_i64()?.checked_add(1),
    };
    let mut made = 0;
    for number in 0..3_000 {
        let node = node!("^t", number)?;
        // Some lie at the ends of leaves, where it takes a transaction to tell.
        let Some(first) = session.revise_integer_unless_parent(&node, one_more)? else { continue };
        assert_eq!((first, session.revise_integer_unless_parent(&node, one_more)?), (1, Some(2)));
        made += 1;
        session.delete_value(&node)?;
        session.set(&node.child("x")?, 1)?;
        assert_eq!(session.revise_integer_unless_parent(&node, one_more)?, None, "{number}");
        assert_eq!(session.get(&node)?, None);
    }
    assert!(made > 2_000, "{made} of 3,000");
    session.set(&node!("^t", 1)?, "no number")?;
    assert_eq!(session.revise_integer_unless_parent(&node!("^t", 1)?, one_more)?, None);
    assert_eq!(session.revise_integer_unless_parent(&node!("t", 1)?, one_more)?, None, "a local one");
    Ok(())
}

#[test]
fn integers_are_revised() -> Result<()> {
    both(|session, t| {
        let add = |value: perilune::ValueRef<'_>| value.as_i64()?.checked_add(5);
        assert_eq!(session.revise_integer(t, add)?, None);
        assert_eq!(session.get(t)?, None);
        session.set(t, 7)?;
        assert_eq!(session.revise_integer(t, add)?, Some(12));
        assert_eq!(session.get_int(t)?, Some(12));
        session.set(t, i64::MAX)?;
        assert_eq!(session.revise_integer(t, add)?, None);
        let long = "1".repeat(63);
        session.set(t, &long)?;
        assert_eq!(session.revise_integer(t, |_| Some(1))?, None, "it may be longer than what is shown");
        assert_eq!(session.get(t)?, Some(Value::String(long.into_bytes())));
        Ok(())
    })
}
