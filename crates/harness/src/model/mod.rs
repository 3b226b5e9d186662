//! The model: what an ordered map with nested transactions has to answer to one session alone.
//!
//! Invariants
//! - Each level is a whole copy of the map, so commit replaces the parent and rollback forgets; there
//!   is nothing to get wrong in merging.
//! - A session that is alone never meets a conflict: one is reported as a failure.
//!
//! Deliberately absent: concurrency (see `conformance` and `script`), locks, watches, messages.

mod command;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::rc::Rc;

use perilune_store::{Bulk, Decision, Error, Presence, Result, Span, Store, TransactionOptions};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

pub use command::{arb_commands, Bytes, Command, Edit, Expected};

/// Levels of transactions the generated commands open at most.
const DEPTH: usize = 4;

/// The map as it has to be, one copy per open level.
#[derive(Clone, Debug)]
pub struct Model {
    levels: Vec<BTreeMap<Vec<u8>, Rc<[u8]>>>,
}

impl Default for Model {
    fn default() -> Self {
        Model { levels: vec![BTreeMap::new()] }
    }
}

/// What a command answers.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    Done,
    Flag(bool),
    Value(Option<Bytes>),
    Entry(Option<(Bytes, Option<Bytes>)>),
    Presence(Presence),
    /// How many, and the last one if there were as many as were wanted.
    Count(u64, Option<Bytes>),
    /// The change function refused, or no transaction is open.
    Refused,
    NoTransaction,
}

impl Model {
    fn map(&mut self) -> &mut BTreeMap<Vec<u8>, Rc<[u8]>> {
        self.levels.last_mut().expect("the model has a lowest level")
    }

    fn depth(&self) -> usize {
        self.levels.len() - 1
    }

    fn put(&mut self, key: &Bytes, value: Option<&[u8]>) {
        match value {
            Some(value) => self.map().insert(key.0.clone(), value.into()),
            None => self.map().remove(&key.0),
        };
    }

    /// Does the command and says what the session has to answer.
    fn run(&mut self, command: &Command) -> Outcome {
        let entry = |found: Option<(&Vec<u8>, &Rc<[u8]>)>, with_value: bool| {
            Outcome::Entry(found.map(|(k, v)| (Bytes(k.clone()), with_value.then(|| Bytes(v.to_vec())))))
        };
        match command {
            Command::Get(key) => Outcome::Value(self.map().get(&key.0).map(|v| Bytes(v.to_vec()))),
            Command::Presence(key) => Outcome::Presence(Presence {
                value: self.map().contains_key(&key.0),
                descendants: self.map().keys().any(|k| k.starts_with(&key.0) && k.len() > key.0.len()),
            }),
            Command::Next { from, inclusive, with_value } => {
                let from = if *inclusive { Bound::Included(&from.0) } else { Bound::Excluded(&from.0) };
                entry(self.map().range::<Vec<u8>, _>((from, Bound::Unbounded)).next(), *with_value)
            }
            Command::Previous { from, with_value } => {
                entry(self.map().range(..from.0.clone()).next_back(), *with_value)
            }
            Command::Count { low, high, backwards, most } => {
                let within: Vec<_> =
                    self.map().keys().filter(|key| **key >= low.0 && **key < high.0).collect();
                let count = (within.len() as u64).min(*most);
                let last = match count.checked_sub(1).filter(|_| count == *most) {
                    None => None,
                    Some(at) if *backwards => within.iter().nth_back(at as usize),
                    Some(at) => within.get(at as usize),
                };
                Outcome::Count(count, last.map(|key| Bytes((*key).clone())))
            }
            Command::Set(key, value) => {
                self.put(key, Some(&value.0));
                Outcome::Done
            }
            Command::Remove(key) => Outcome::Flag(self.map().remove(&key.0).is_some()),
            Command::RemovePrefix(prefix) => {
                self.map().retain(|key, _| !key.starts_with(&prefix.0));
                Outcome::Done
            }
            Command::Update(key, edit) => self.update(key, *edit),
            Command::CompareAndSet { key, expected, new } => {
                let current = self.map().get(&key.0).cloned();
                let matches = expected.resolve(current.as_deref()) == current.as_deref();
                if matches {
                    self.put(key, new.as_ref().map(|new| &new.0[..]));
                }
                Outcome::Flag(matches)
            }
            Command::Begin | Command::Commit | Command::Rollback => self.turn(command),
        }
    }

    fn update(&mut self, key: &Bytes, edit: Edit) -> Outcome {
        let current = self.map().get(&key.0).cloned();
        let mut buffer = [0; 64];
        match edit.apply(current.as_deref(), &mut buffer) {
            Ok(Decision::Keep) => {}
            Ok(Decision::Remove) => self.put(key, None),
            Ok(Decision::Write(bytes)) => self.put(key, Some(&buffer[..bytes])),
            Err(_) => return Outcome::Refused,
        }
        Outcome::Done
    }

    fn turn(&mut self, command: &Command) -> Outcome {
        if matches!(command, Command::Begin) {
            let copy = self.map().clone();
            self.levels.push(copy);
            return Outcome::Done;
        }
        if self.depth() == 0 {
            return Outcome::NoTransaction;
        }
        let level = self.levels.pop().expect("the depth is more than none");
        if matches!(command, Command::Commit) {
            *self.map() = level;
        }
        Outcome::Done
    }
}

/// Does the command in `session`. `current` is the value that the model has at the command's key.
fn run<S: Bulk>(session: &mut S, command: &Command, current: Option<&[u8]>) -> Result<Outcome> {
    // Filled with what no answer holds, so that a buffer left alone shows.
    let (mut found_key, mut found_value) = (b"stale key".to_vec(), b"stale value".to_vec());
    let outcome = match command {
        Command::Get(key) => {
            Outcome::Value(session.get(&key.0, &mut found_value)?.then_some(Bytes(found_value)))
        }
        Command::Presence(key) => Outcome::Presence(session.presence(&key.0)?),
        Command::Next { from, inclusive, with_value } => {
            let value = with_value.then_some(&mut found_value);
            let found = session.next(&from.0, *inclusive, &mut found_key, value)?;
            Outcome::Entry(found.then(|| (Bytes(found_key), with_value.then_some(Bytes(found_value)))))
        }
        Command::Previous { from, with_value } => {
            let value = with_value.then_some(&mut found_value);
            let found = session.previous(&from.0, &mut found_key, value)?;
            Outcome::Entry(found.then(|| (Bytes(found_key), with_value.then_some(Bytes(found_value)))))
        }
        Command::Count { low, high, backwards, most } => {
            let span = Span { low: &low.0, high: &high.0, backwards: *backwards, most: *most };
            let count = session.count(&span, &mut found_key)?;
            Outcome::Count(count, (count > 0 && count == *most).then_some(Bytes(found_key)))
        }
        Command::Set(key, value) => session.set(&key.0, &value.0).map(|()| Outcome::Done)?,
        Command::Remove(key) => Outcome::Flag(session.remove(&key.0)?),
        Command::RemovePrefix(prefix) => session.remove_prefix(&prefix.0).map(|()| Outcome::Done)?,
        Command::Update(key, edit) => {
            match session.update(&key.0, &mut |value, buffer| edit.apply(value, buffer)) {
                Err(Error::Refused(_)) => Outcome::Refused,
                other => other.map(|()| Outcome::Done)?,
            }
        }
        Command::CompareAndSet { key, expected, new } => {
            let new = new.as_ref().map(|new| &new.0[..]);
            Outcome::Flag(session.compare_and_set(&key.0, expected.resolve(current), new)?)
        }
        Command::Begin => session.begin(&TransactionOptions::default()).map(|()| Outcome::Done)?,
        Command::Commit => state(session.commit())?,
        Command::Rollback => state(session.rollback())?,
    };
    Ok(outcome)
}

fn state(result: Result<()>) -> Result<Outcome> {
    match result {
        Err(Error::TransactionState(_)) => Ok(Outcome::NoTransaction),
        other => other.map(|()| Outcome::Done),
    }
}

/// Does `commands` in `session`, whose store is empty and used by nobody else, and compares every
/// answer with the model's; then commits what is open and compares the whole map, forward and backward.
///
/// # Errors
/// The text names the command by its place, the model's answer and the session's.
pub fn run_against_model(session: &mut impl Bulk, commands: &[Command]) -> std::result::Result<(), String> {
    let mut model = Model::default();
    for (index, command) in commands.iter().enumerate() {
        if matches!(command, Command::Begin) && model.depth() == DEPTH {
            continue;
        }
        one(&mut model, session, command, &format!("command {index}"))?;
    }
    while model.depth() > 0 {
        one(&mut model, session, &Command::Commit, "the last commits")?;
    }
    scan(&mut model, session)
}

fn one(
    model: &mut Model,
    session: &mut impl Bulk,
    command: &Command,
    place: &str,
) -> std::result::Result<(), String> {
    let depth = model.depth();
    let current = command.key().and_then(|key| model.map().get(&key.0).cloned());
    let expected = model.run(command);
    let failure = match run(session, command, current.as_deref()) {
        Ok(actual) if actual == expected && session.depth() == model.depth() => return Ok(()),
        Ok(actual) if actual == expected => format!("depth {}", session.depth()),
        Ok(actual) => format!("{actual:?}"),
        Err(error) => format!("the error {error:?}"),
    };
    Err(format!(
        "{place}, {command:?} at depth {depth}: the model answers {expected:?} (then depth {}), the session {failure}",
        model.depth()
    ))
}

fn scan(model: &mut Model, session: &mut impl Bulk) -> std::result::Result<(), String> {
    let first = Command::Next { from: Bytes(Vec::new()), inclusive: true, with_value: true };
    one(model, session, &first, "the scan forward")?;
    let keys: Vec<Vec<u8>> = model.map().keys().cloned().collect();
    for key in &keys {
        let step = Command::Next { from: Bytes(key.clone()), inclusive: false, with_value: true };
        one(model, session, &step, "the scan forward")?;
    }
    let last = Command::Previous { from: Bytes(vec![0xFF]), with_value: true };
    one(model, session, &last, "the scan backward")?;
    for key in keys.iter().rev() {
        let step = Command::Previous { from: Bytes(key.clone()), with_value: true };
        one(model, session, &step, "the scan backward")?;
    }
    Ok(())
}

/// Runs `cases` random lists of up to `commands` commands, each in a new store from `make`. The seed is
/// that of the environment variable `PERILUNE_SEED` (a number), or a new one.
///
/// # Panics
/// At the first difference, with the smallest list of commands found that shows it, and the seed.
pub fn check_model<S: Store>(make: impl Fn() -> S, cases: u32, commands: usize) {
    let seed = crate::seed();
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let random = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let count = Cell::new(0);
    let longest = make().limits().key_bytes;
    let lists = arb_commands(1..commands + 1, longest);
    let result = TestRunner::new_with_rng(config, random).run(&lists, |commands| {
        count.set(count.get() + 1);
        let store = make();
        let mut session = store.session().expect("a new store has a session");
        run_against_model(&mut session, &commands).map_err(proptest::test_runner::TestCaseError::fail)
    });
    if let Err(error) = result {
        panic!("model: {error}\nafter {} lists; run again with PERILUNE_SEED={seed}", count.get());
    }
}
