//! Random operations on nodes against a map from subscripts to values.
//!
//! The model holds what M says a tree is: a set of paths with values; a node exists while it or a
//! descendant has one. Each case runs on a node of the database and on a local one, partly inside
//! transactions that commit or roll back. proptest prints the seed and the shortest failing case.

use std::collections::{BTreeMap, BTreeSet};

use crate::fixture::Scratch;
use perilune::{node, Cursor, Data, Error, Node, Result, Session, Steps, Subscript, SubscriptBuf, Value};
use proptest::prelude::*;

type Path = Vec<SubscriptBuf>;
type Model = BTreeMap<Path, Value>;

#[derive(Clone, Debug)]
enum Command {
    Set(Path, i64),
    Delete(Path),
    DeleteTree(Path),
    Increment(Path, i64),
    CompareAndSet(Path, i64, i64),
    Copy(Path, Path, bool),
    Transaction(Vec<Command>, bool),
}

fn subscript() -> impl Strategy<Value = SubscriptBuf> {
    prop_oneof![
        Just(Subscript::from("")),
        (-2_i64..3).prop_map(Subscript::from),
        prop_oneof![Just("a"), Just("aa"), Just("b"), Just("1.5"), Just("\u{1}")].prop_map(Subscript::from),
    ]
}

fn path() -> impl Strategy<Value = Path> {
    prop::collection::vec(subscript(), 0..4)
}

fn command() -> impl Strategy<Value = Command> {
    let single = prop_oneof![
        6 => (path(), 0_i64..4).prop_map(|(path, value)| Command::Set(path, value)),
        1 => path().prop_map(Command::Delete),
        1 => path().prop_map(Command::DeleteTree),
        2 => (path(), -2_i64..3).prop_map(|(path, by)| Command::Increment(path, by)),
        1 => (path(), 0_i64..4, 0_i64..4).prop_map(|(path, old, new)| Command::CompareAndSet(path, old, new)),
        1 => (path(), path(), any::<bool>()).prop_map(|(from, to, merge)| Command::Copy(from, to, merge)),
    ];
    single.prop_recursive(2, 12, 5, |inner| {
        (prop::collection::vec(inner, 1..5), any::<bool>())
            .prop_map(|(commands, commit)| Command::Transaction(commands, commit))
    })
}

fn at(root: &Node, path: &[SubscriptBuf]) -> Result<Node> {
    path.iter().try_fold(root.clone(), |node, subscript| node.with(subscript))
}

fn run(session: &mut Session, root: &Node, model: &mut Model, command: &Command) -> Result<()> {
    match command {
        Command::Set(path, value) => {
            session.set(&at(root, path)?, *value)?;
            model.insert(path.clone(), Value::Int(*value));
        }
        Command::Delete(path) => {
            assert_eq!(session.delete_value(&at(root, path)?)?, model.remove(path).is_some());
        }
        Command::DeleteTree(path) => {
            session.delete_tree(&at(root, path)?)?;
            model.retain(|key, _| !key.starts_with(path));
        }
        Command::Increment(path, by) => {
            let sum = model.get(path).and_then(Value::as_i64).unwrap_or(0) + by;
            assert_eq!(session.increment(&at(root, path)?, *by)?.as_i64(), Some(sum));
            model.insert(path.clone(), Value::Int(sum));
        }
        Command::CompareAndSet(path, old, new) => {
            let same = model.get(path) == Some(&Value::Int(*old));
            assert_eq!(session.compare_and_set(&at(root, path)?, Some(*old), Some(*new))?, same);
            if same {
                model.insert(path.clone(), Value::Int(*new));
            }
        }
        Command::Copy(from, to, merge) => copy(session, root, model, (from, to), *merge)?,
        Command::Transaction(commands, commit) => {
            let before = model.clone();
            let result = session.transaction(|t| {
                *model = before.clone();
                for command in commands {
                    run(t, root, model, command)?;
                }
                if *commit {
                    Ok(())
                } else {
                    Err(Error::Rollback)
                }
            });
            if !matches!(result, Ok(()) | Err(Error::Rollback)) {
                return result;
            }
            if !commit {
                *model = before;
            }
        }
    }
    Ok(())
}

fn copy(
    session: &mut Session,
    root: &Node,
    model: &mut Model,
    (from, to): (&Path, &Path),
    merge: bool,
) -> Result<()> {
    let (source, target) = (at(root, from)?, at(root, to)?);
    let result = if merge { session.merge(&source, &target) } else { session.copy(&source, &target) };
    if from.starts_with(to) || to.starts_with(from) {
        assert!(matches!(result, Err(Error::Overlap)));
        return Ok(());
    }
    result?;
    let copied: Vec<(Path, Value)> = model
        .iter()
        .filter(|(key, _)| key.starts_with(from))
        .map(|(key, value)| ([&to[..], &key[from.len()..]].concat(), value.clone()))
        .collect();
    if !merge {
        model.retain(|key, _| !key.starts_with(to));
    }
    model.extend(copied);
    Ok(())
}

/// Compares everything that can be asked at `path` with the model.
fn compare(session: &mut Session, root: &Node, model: &Model, path: &Path) -> Result<()> {
    let node = at(root, path)?;
    let below = || model.iter().filter(|(key, _)| key.len() > path.len() && key.starts_with(path));
    assert_eq!(session.get(&node)?.as_ref(), model.get(path));
    let data = match (model.contains_key(path), below().next().is_some()) {
        (false, false) => Data::Nothing,
        (true, false) => Data::Value,
        (false, true) => Data::Descendants,
        (true, true) => Data::Both,
    };
    assert_eq!(session.data(&node)?, data);
    assert_eq!(session.count_valued(&node)?, below().count() as u64);

    let children: BTreeSet<SubscriptBuf> = below().map(|(key, _)| key[path.len()].clone()).collect();
    let found: Vec<SubscriptBuf> = session.children(&node).collect::<Result<_>>()?;
    assert!(found.iter().eq(children.iter()), "{found:?} are not {children:?}");
    assert_eq!(session.count_children(&node)?, children.len() as u64);
    let mut backwards = Vec::new();
    let mut cursor = Cursor::children(&node);
    while cursor.previous(session)? {
        let child = cursor.node()?;
        let value = cursor.value()?.map(|value| value.to_owned_value());
        assert_eq!(value, session.get(&child)?);
        backwards.push(cursor.subscript()?.into_owned());
    }
    assert!(backwards.iter().rev().eq(children.iter()));
    neighbours(session, root, model, path)
}

fn neighbours(session: &mut Session, root: &Node, model: &Model, path: &Path) -> Result<()> {
    let node = at(root, path)?;
    let after = model.range(path.clone()..).find(|(key, _)| *key != path).map(|(key, _)| key);
    let before = model.range(..path.clone()).next_back().map(|(key, _)| key);
    assert_eq!(session.next_valued(&node)?, after.map(|key| at(root, key)).transpose()?);
    assert_eq!(session.previous_valued(&node)?, before.map(|key| at(root, key)).transpose()?);
    let Some((last, parent)) = path.split_last() else { return Ok(()) };
    let siblings: BTreeSet<&SubscriptBuf> = model
        .keys()
        .filter(|key| key.len() > parent.len() && key.starts_with(parent))
        .map(|key| &key[parent.len()])
        .collect();
    let child = |subscript: Option<&&SubscriptBuf>| {
        subscript.map(|subscript| at(root, parent)?.with(*subscript)).transpose()
    };
    let following = siblings.iter().find(|sibling| **sibling > last);
    let preceding = siblings.iter().rev().find(|sibling| **sibling < last);
    assert_eq!(session.sibling_after(&node)?, child(following)?);
    assert_eq!(session.next(&node)?, child(following)?);
    assert_eq!(session.sibling_before(&node)?, child(preceding)?);
    let previous =
        siblings.iter().rev().find(|sibling| !sibling.is_empty() && (last.is_empty() || **sibling < last));
    assert_eq!(session.previous(&node)?, child(previous)?);
    Ok(())
}

fn check(name: &str, commands: &[Command], probes: &[Path]) -> Result<()> {
    let scratch = Scratch::new();
    let mut session = scratch.session();
    let root = node!(name)?;
    let mut model = Model::new();
    for command in commands {
        run(&mut session, &root, &mut model, command)?;
    }
    let all: Vec<(Node, Value)> =
        model.iter().map(|(path, value)| Ok((at(&root, path)?, value.clone()))).collect::<Result<_>>()?;
    assert_eq!(session.get_tree(&root)?, all);
    for path in probes.iter().chain(model.keys()) {
        compare(&mut session, &root, &model, path)?;
        session.transaction(|t| compare(t, &root, &model, path))?;
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nodes_behave_as_the_model(
        commands in prop::collection::vec(command(), 0..40),
        probes in prop::collection::vec(path(), 0..10),
    ) {
        for name in ["^m", "m"] {
            check(name, &commands, &probes).expect("no operation fails");
        }
    }
}
