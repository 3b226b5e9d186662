//! Cursors of every kind, in every mode of a session, against a map: a step comes to what the map says is next then.
//!
//! Kinds: children, a subtree, a range, with and without values. Modes: by itself while this and another session write; in whole
//! transactions, one-shot ones and attempts, which write themselves; read-only; in a snapshot. A walk turns round, seeks and skips
//! at random. What moves while it is walked over is tested by `cursor_races.rs`.

use std::collections::BTreeMap;
use std::ops::{Bound, RangeBounds};

use crate::chance::Chance;
use crate::fixture::Scratch;
use perilune::{
    node, Cursor, Error, FirstTry, Node, PlainSubscript, Result, Serving, Session, Subscript, SubscriptBuf,
    TransactionOptions, Value,
};

type Path = Vec<SubscriptBuf>;
type Model = BTreeMap<Path, Value>;
/// What a step comes to: a place, and its value if it has one.
type Entry = (Path, Option<Value>);

fn path(chance: &mut Chance) -> Path {
    let subscript = |chance: &mut Chance| -> SubscriptBuf {
        let texts = ["", "a", "aa", "a longer text than fits into the head of a slot", "b", "\u{1}"];
        match chance.below(4) {
            0 => Subscript::from(texts[chance.below(texts.len())]).into_owned(),
            1 => Subscript::from(["1.5", "-.25"][chance.below(2)]).into_owned(),
            _ => Subscript::from(chance.below(40) as i64 - 3).into_owned(),
        }
    };
    if chance.below(3) == 0 {
        // Many side by side, with nothing below most of them.
        let texts = ["text ", "text \0", ""];
        let text = format!("{}{}", texts[chance.below(texts.len())], chance.below(150));
        return [wide(), vec![Subscript::from(&*text).into_owned()]].concat();
    }
    (0..chance.below(4)).map(|_| subscript(chance)).collect()
}

fn wide() -> Path {
    vec![Subscript::from("b").into_owned()]
}

fn at(root: &Node, path: &[SubscriptBuf]) -> Node {
    path.iter().try_fold(root.clone(), |node, subscript| node.with(subscript)).expect("a short node")
}

/// Writes something, to a session and to what it should hold.
fn write(session: &mut Session, root: &Node, model: &mut Model, chance: &mut Chance) -> Result<()> {
    let path = path(chance);
    let node = at(root, &path);
    match chance.below(16) {
        0 if path.len() > 1 => {
            session.delete_tree(&node)?;
            model.retain(|key, _| !key.starts_with(&path));
        }
        1..=5 => {
            assert_eq!(session.delete_value(&node)?, model.remove(&path).is_some());
        }
        6 => {
            let text = "x".repeat([10, 300, 5_000][chance.below(3)]);
            session.set(&node, &*text)?;
            model.insert(path, Value::String(text.into_bytes()));
        }
        _ => {
            let number = chance.below(1_000) as i64;
            session.set(&node, number)?;
            model.insert(path, Value::Int(number));
        }
    }
    Ok(())
}

/// What a cursor goes over.
#[derive(Clone, Debug)]
enum Kind {
    Children(Path, Bound<SubscriptBuf>, Bound<SubscriptBuf>),
    Subtree(Path),
    Range(Bound<Path>, Bound<Path>),
}

/// Where a cursor stands, between the places of its range.
#[derive(Clone, Debug)]
enum Stand {
    /// The first step back comes to the end.
    Fresh,
    BeforeFirst,
    At(Path),
    Before(Path),
    /// Behind this and all below it.
    Past(Path),
    AfterLast,
}

struct Walk {
    kind: Kind,
    values: bool,
    cursor: Cursor,
    stand: Stand,
    backwards: bool,
}

fn bound<T>(chance: &mut Chance, value: T) -> Bound<T> {
    match chance.below(3) {
        0 => Bound::Unbounded,
        1 => Bound::Included(value),
        _ => Bound::Excluded(value),
    }
}

impl Walk {
    fn new(root: &Node, chance: &mut Chance) -> Walk {
        let (one, other) = (path(chance), path(chance));
        let (low, high) = if one <= other { (one, other) } else { (other, one) };
        let (kind, cursor) = match chance.below(4) {
            0 => {
                let cursor = Cursor::subtree(&at(root, &low));
                (Kind::Subtree(low), cursor)
            }
            1 => {
                let (from, to) = match (bound(chance, low), bound(chance, high)) {
                    (Bound::Unbounded, Bound::Unbounded) => (Bound::Included(Path::new()), Bound::Unbounded),
                    bounds => bounds,
                };
                let node = |path: &Path| at(root, path);
                let cursor = Cursor::range((from.as_ref().map(node), to.as_ref().map(node)));
                (Kind::Range(from, to), cursor.expect("both bounds lie in the database"))
            }
            _ => {
                let parent = match chance.below(4) {
                    0 => Path::new(),
                    1 => wide(),
                    _ => low,
                };
                let subscripts = [(); 2]
                    .map(|()| path(chance).into_iter().next().unwrap_or(Subscript::from(5).into_owned()));
                let [from, to] = subscripts;
                let (from, to) = if from <= to { (from, to) } else { (to, from) };
                let (from, to) = (bound(chance, from), bound(chance, to));
                let cursor = Cursor::children(&at(root, &parent)).between(from.as_ref(), to.as_ref());
                (Kind::Children(parent, from, to), cursor.expect("a cursor over children"))
            }
        };
        let values = chance.below(3) > 0;
        let cursor = if values { cursor } else { cursor.without_values() };
        let cursor = cursor.expecting([0, 1, 20, 5_000][chance.below(4)]);
        Walk { kind, values, cursor, stand: Stand::Fresh, backwards: chance.below(2) == 0 }
    }

    /// All places that it goes over, in order.
    fn all<'m>(&self, model: &'m Model) -> Vec<&'m [SubscriptBuf]> {
        match &self.kind {
            Kind::Subtree(root) => {
                model.keys().filter(|path| path.starts_with(root)).map(|path| &path[..]).collect()
            }
            Kind::Range(from, to) => {
                let range = (from.as_ref(), to.as_ref());
                model.keys().filter(|path| range.contains(path)).map(|path| &path[..]).collect()
            }
            Kind::Children(parent, from, to) => {
                let range = (from.as_ref(), to.as_ref());
                let is_below = |path: &&Path| path.len() > parent.len() && path.starts_with(parent);
                let below = model.keys().filter(is_below).filter(|path| range.contains(&path[parent.len()]));
                let mut children: Vec<_> = below.map(|path| &path[..=parent.len()]).collect();
                children.dedup();
                children
            }
        }
    }

    /// What the next step that way comes to.
    fn expected(&self, model: &Model, backwards: bool) -> Option<Entry> {
        let mut all = self.all(model).into_iter();
        let is_before = |entry: &&[SubscriptBuf]| match &self.stand {
            Stand::Fresh => backwards,
            Stand::BeforeFirst => false,
            Stand::At(path) | Stand::Before(path) => **entry < path[..],
            Stand::Past(path) => **entry < path[..] || entry.starts_with(path),
            Stand::AfterLast => true,
        };
        let is_under =
            |entry: &&[SubscriptBuf]| matches!(&self.stand, Stand::At(path) if **entry == path[..]);
        let found = if backwards {
            all.rev().find(is_before)
        } else {
            all.find(|entry| !is_before(entry) && !is_under(entry))
        };
        found.map(|path| (path.to_vec(), model.get(path).cloned()))
    }

    fn step(&mut self, session: &mut Session, model: &Model, root: &Node) -> Result<bool> {
        let backwards = self.backwards;
        let expected = self.expected(model, backwards);
        let there = if backwards { self.cursor.previous(session)? } else { self.cursor.next(session)? };
        assert_eq!(there, expected.is_some(), "{:?} from {:?}: {expected:?}", self.kind, self.stand);
        self.stand = match (&expected, backwards) {
            (Some((path, _)), _) => Stand::At(path.clone()),
            (None, true) => Stand::BeforeFirst,
            (None, false) => Stand::AfterLast,
        };
        let Some((path, value)) = expected else { return Ok(false) };
        assert_eq!(self.cursor.node()?, at(root, &path), "{:?}", self.kind);
        assert_eq!(self.cursor.has_value(), value.is_some(), "{path:?}");
        if self.values {
            assert_eq!(self.cursor.value()?.map(|value| value.to_owned_value()), value, "{path:?}");
        }
        if let Some(last) = path.last() {
            assert_eq!(self.cursor.subscript()?.into_owned(), *last);
        }
        Ok(true)
    }

    /// Has what was read ahead shown, some of it; how much it was.
    fn take(&mut self, session: &Session, model: &Model, root: &Node, chance: &mut Chance) -> usize {
        let (mut left, mut cursor) = (chance.below(60), self.cursor.clone());
        let taken = cursor.take_while(session, |child| {
            let (path, value) = self.expected(model, false).expect("there is none");
            let last = path.last().cloned().expect("a child");
            match child.subscript() {
                PlainSubscript::Int(int) => assert_eq!(last, Subscript::from(int)),
                PlainSubscript::Text(text) => assert_eq!(last, Subscript::from_bytes(text)),
                PlainSubscript::Escaped(text) => {
                    let mut string = Vec::new();
                    assert!(perilune::key::unescape(text, &mut string));
                    assert_eq!(last, Subscript::from_bytes(&string));
                }
            }
            if self.values {
                assert_eq!(Some(child.value().expect("a value").to_owned_value()), value);
            }
            left = left.saturating_sub(1);
            if left > 0 {
                self.stand = Stand::At(path);
            }
            left > 0
        });
        self.cursor = cursor;
        if let (Stand::At(path), true) = (&self.stand, taken > 0) {
            assert!(!self.backwards && matches!(self.kind, Kind::Children(..)));
            assert_eq!(self.cursor.node().expect("it stands somewhere"), at(root, path));
            assert!(self.cursor.has_value());
        }
        taken
    }

    /// Goes somewhere else by another way than a step.
    fn jump(&mut self, session: &mut Session, model: &Model, chance: &mut Chance, root: &Node) -> Result<()> {
        // NB: a cursor over children is sent to children only.
        let place = match (&self.kind, path(chance)) {
            (Kind::Children(parent, ..), path) => {
                let child = path.into_iter().next().unwrap_or(Subscript::from(7).into_owned());
                [&parent[..], &[child]].concat()
            }
            (_, path) => path,
        };
        match chance.below(5) {
            0 => {
                self.cursor.rewind();
                self.stand = Stand::Fresh;
            }
            1 => {
                self.cursor.seek(&at(root, &place));
                self.stand = Stand::Before(place);
            }
            2 => {
                self.cursor.seek_past(&at(root, &place));
                self.stand = Stand::Past(place);
            }
            3 => self.backwards = !self.backwards,
            _ => {
                let most = [1, 3, 40][chance.below(3)];
                let mut known = 0;
                let mut last = None;
                while known < most {
                    let Some((path, _)) = self.expected(model, self.backwards) else { break };
                    self.stand = Stand::At(path.clone());
                    (known, last) = (known + 1, Some(path));
                }
                let done = if self.backwards {
                    self.cursor.skip_back(session, most)?
                } else {
                    self.cursor.skip(session, most)?
                };
                assert_eq!(done, known, "{:?}", self.kind);
                match last.filter(|_| known == most) {
                    Some(path) => assert_eq!(self.cursor.node()?, at(root, &path)),
                    None if self.backwards => self.stand = Stand::BeforeFirst,
                    None => self.stand = Stand::AfterLast,
                }
            }
        }
        Ok(())
    }
}

fn planted(session: &mut Session, root: &Node, chance: &mut Chance) -> Model {
    let mut model = Model::new();
    for _ in 0..2_500 {
        write(session, root, &mut model, chance).expect("nobody else is there");
    }
    model
}

/// Walks a while, and writes every now and then by whom `writer` chooses; how much was taken at once.
fn walk(
    session: &mut Session,
    model: &mut Model,
    chance: &mut Chance,
    root: &Node,
    mut write: impl FnMut(&mut Session, &mut Model, &mut Chance) -> Result<()>,
) -> Result<usize> {
    let (mut walk, mut taken) = (Walk::new(root, chance), 0);
    let calm = [3, 30, 1_000][chance.below(3)];
    for _ in 0..150 {
        if chance.below(30) == 0 {
            walk.jump(session, model, chance, root)?;
        }
        if !walk.step(session, model, root)? && chance.below(3) > 0 {
            break;
        }
        if chance.below(4) == 0 {
            taken += walk.take(session, model, root, chance);
        }
        if chance.below(calm) == 0 {
            write(session, model, chance)?;
        }
    }
    Ok(taken)
}

#[test]
fn steps_see_what_is_there_then() -> Result<()> {
    let (scratch, mut chance) = (Scratch::new(), Chance::new(1));
    let (mut session, mut other) = (scratch.session(), scratch.session());
    for root in [node!("^m")?, node!("m")?] {
        let (mut model, mut taken) = (planted(&mut session, &root, &mut chance), 0);
        for _ in 0..150 {
            taken += walk(&mut session, &mut model, &mut chance, &root, |session, model, chance| {
                // What is local is this session's alone.
                let is_other = !root.is_local() && chance.below(2) == 0;
                write(if is_other { &mut other } else { session }, &root, model, chance)
            })?;
        }
        assert!(root.is_local() || taken > 50, "{taken}: what is local is not read ahead");
    }
    Ok(())
}

#[test]
fn transactions_see_one_state_and_their_own_writes() -> Result<()> {
    let (scratch, mut chance) = (Scratch::new(), Chance::new(2));
    let (mut session, mut other) = (scratch.session(), scratch.session());
    let root = node!("^m")?;
    let mut model = planted(&mut session, &root, &mut chance);
    for first_try in [FirstTry::Whole, FirstTry::OneShot] {
        for read_only in [false, true] {
            let options = TransactionOptions { first_try, read_only, ..TransactionOptions::default() };
            for _ in 0..40 {
                let keeps = chance.below(4) > 0;
                let mut own = model.clone();
                let outcome = session.transaction_with(&options, |t| {
                    own = model.clone();
                    for _ in 0..3 {
                        walk(t, &mut own, &mut chance, &root, |t, own, chance| match chance.below(4) {
                            0 => {
                                // What is set and deleted again changes leaves, but no answer.
                                let passing = at(&root, &path(chance)).child("passing")?;
                                other.set(&passing, 1)?;
                                other.delete_value(&passing).map(drop)
                            }
                            1 if !read_only => {
                                let before = own.clone();
                                let level = t.transaction(|t| {
                                    write(t, &root, own, chance)?;
                                    if chance.below(2) == 0 {
                                        Err(Error::Rollback)
                                    } else {
                                        Ok(())
                                    }
                                });
                                match level {
                                    Err(Error::Rollback) => *own = before,
                                    level => level?,
                                }
                                Ok(())
                            }
                            _ if read_only => Ok(()),
                            _ => write(t, &root, own, chance),
                        })?;
                    }
                    if keeps {
                        Ok(())
                    } else {
                        Err(Error::Rollback)
                    }
                });
                match outcome {
                    Ok(()) => model = own,
                    Err(Error::Rollback) => {}
                    Err(error) => return Err(error),
                }
            }
        }
    }
    assert_eq!(session.get_tree(&root)?.len(), model.len());
    Ok(())
}

#[test]
fn attempts_see_one_state_and_their_own_writes_or_fail() -> Result<()> {
    let (scratch, mut chance) = (Scratch::new(), Chance::new(3));
    let mut session = scratch.session();
    let root = node!("^m")?;
    let (mut model, mut done) = (planted(&mut session, &root, &mut chance), 0);
    for _ in 0..300 {
        let mut own = model.clone();
        let outcome = session.attempt(|session| {
            walk(session, &mut own, &mut chance, &root, |session, own, chance| {
                write(session, &root, own, chance)
            })
            .map(drop)
        });
        // What is beyond its means is no conflict with others, who are not there.
        match outcome {
            Ok(Some(())) => (model, done) = (own, done + 1),
            Ok(None) => assert!(!session.was_disturbed()),
            Err(error) => return Err(error),
        }
    }
    assert!(done > 50, "{done} of 300");
    assert_eq!(session.get_tree(&root)?.len(), model.len());
    Ok(())
}

#[test]
fn a_snapshot_shows_one_state() -> Result<()> {
    let (scratch, mut chance) = (Scratch::new(), Chance::new(4));
    let mut session = scratch.session();
    let root = node!("^m")?;
    let (mut model, mut taken, mut snapshots) = (planted(&mut session, &root, &mut chance), 0, 0);
    // More than ten where chance had most walks go backwards, or over what has no values.
    while snapshots < 10 || taken <= 50 {
        assert!(snapshots < 500, "{taken} entries were taken at once in 5,000 walks");
        snapshots += 1;
        let (mut snapshot, mut then) = (scratch.database.snapshot()?, model.clone());
        for _ in 0..10 {
            taken += walk(&mut snapshot, &mut then, &mut chance, &root, |_, _, chance| {
                write(&mut session, &root, &mut model, chance)
            })?;
        }
    }
    Ok(())
}
