//! Cursors of every kind, in every mode of a session, while other threads write where they walk.
//!
//! Even numbers stay: each is met exactly once. Odd ones come and go, and more below and beside even ones. What is met ascends,
//! or descends, and was there at some time: each value says which node it belongs to.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::chance::Chance;
use crate::fixture::Scratch;
use perilune::{node, Cursor, FirstTry, Node, Result, Serving, Session, TransactionOptions, Value};

/// Staying children. Every second of them has a value, the others only a node below them, which all of them have.
const STAYING: i64 = 1_200;

fn list() -> Node {
    node!("^list").expect("a name")
}

fn child(number: i64) -> Node {
    list().child(number).expect("a short node")
}

fn below(number: i64, name: &str) -> Node {
    child(number).child(name).expect("a short node")
}

/// Both say which node they belong to.
fn value_of(number: i64) -> String {
    format!("value of {number}")
}

fn plant(session: &mut Session) -> Result<()> {
    for number in (0..2 * STAYING).step_by(2) {
        if number % 4 == 0 {
            session.set(&child(number), value_of(number))?;
        }
        session.set(&below(number, "stays"), value_of(number))?;
    }
    Ok(())
}

/// Sets and removes what does not stay.
fn disturb(session: &mut Session, chance: &mut Chance) -> Result<()> {
    let number = chance.below(2 * STAYING as usize) as i64;
    let node = match chance.below(3) {
        // Before what stays below a child, and behind it.
        0 => below(number, "before"),
        1 => below(number, "then"),
        _ => child(number | 1),
    };
    let owner = if node.depth() == 1 { number | 1 } else { number };
    match chance.below(8) {
        0..=3 => session.set(&node, value_of(owner)),
        4 => session.delete_tree(&child(number | 1)),
        // Long ones make leaves split.
        5 => session.set(&node, value_of(owner) + &" ".repeat(700)),
        _ => session.delete_value(&node).map(drop),
    }
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Children,
    Subtree,
    Range,
}

#[derive(Clone, Copy, Debug)]
struct Pass {
    kind: Kind,
    backwards: bool,
    values: bool,
}

impl Pass {
    fn cursor(self) -> Cursor {
        let cursor = match self.kind {
            Kind::Children => Cursor::children(&list()),
            Kind::Subtree => Cursor::subtree(&list()),
            Kind::Range => Cursor::range(list()..=child(2 * STAYING)).expect("bounds"),
        };
        if self.values {
            cursor
        } else {
            cursor.without_values()
        }
    }

    /// Goes over all; what is wrong is told in words, since it may come of a transaction that fails anyway.
    fn run(self, session: &mut Session) -> Result<std::result::Result<(), String>> {
        let (mut cursor, mut last) = (self.cursor(), None::<Node>);
        let (mut children, mut stayed) = (0, 0);
        loop {
            let there = if self.backwards { cursor.previous(session)? } else { cursor.next(session)? };
            if !there {
                break;
            }
            let node = cursor.node()?;
            let in_order =
                last.as_ref().is_none_or(|last| if self.backwards { node < *last } else { node > *last });
            if !in_order {
                return Ok(Err(format!("{node} after {last:?}")));
            }
            let number = node.subscripts()?.first().and_then(|first| first.as_i64());
            let Some(number) = number.filter(|number| (0..=2 * STAYING).contains(number)) else {
                return Ok(Err(format!("{node} never was")));
            };
            let value = if self.values { cursor.value()?.map(|value| value.to_owned_value()) } else { None };
            let is_its = |text: &[u8]| text.trim_ascii_end() == value_of(number).as_bytes();
            let known =
                value.as_ref().is_none_or(|value| matches!(value, Value::String(text) if is_its(text)));
            if !known {
                return Ok(Err(format!("{node} never had {value:?}")));
            }
            let is_child = node.depth() == 1;
            children += i64::from(is_child && number % 2 == 0);
            if is_child && number % 4 == 0 && !cursor.has_value() {
                return Ok(Err(format!("{node} has lost its value")));
            }
            stayed += i64::from(node == below(number, "stays"));
            last = Some(node);
        }
        let wanted = match self.kind {
            Kind::Children => (STAYING, 0),
            _ => (STAYING / 2, STAYING),
        };
        if (children, stayed) != wanted {
            return Ok(Err(format!("{:?} of {wanted:?} were met", (children, stayed))));
        }
        Ok(Ok(()))
    }
}

/// Runs a test of passes of each kind while others write.
fn beside_writers(number: u64, test: impl Fn(&Scratch, &mut Session, Pass) -> Result<()>) -> Result<()> {
    let scratch = Scratch::new();
    let mut session = scratch.session();
    plant(&mut session)?;
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for writer in 0..2 {
            let (scratch, is_over, mut chance) = (&scratch, &is_over, Chance::new(10 * number + writer));
            scope.spawn(move || {
                let mut session = scratch.session();
                while !is_over.load(Ordering::Relaxed) {
                    disturb(&mut session, &mut chance).expect("a write");
                }
            });
        }
        let passes = [Kind::Children, Kind::Subtree, Kind::Range].into_iter().flat_map(|kind| {
            [(false, false), (false, true), (true, false), (true, true)].map(|(backwards, values)| Pass {
                kind,
                backwards,
                values,
            })
        });
        // NB: told to the writers in any case, so that a failure ends the test.
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            passes
                .into_iter()
                .try_for_each(|pass| (0..3).try_for_each(|_| test(&scratch, &mut session, pass)))
        }));
        is_over.store(true, Ordering::Relaxed);
        outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn expect(pass: Pass, told: std::result::Result<(), String>) {
    if let Err(wrong) = told {
        panic!("{pass:?}: {wrong}");
    }
}

#[test]
fn what_stays_is_met_once_in_the_present() -> Result<()> {
    beside_writers(1, |_, session, pass| {
        expect(pass, pass.run(session)?);
        Ok(())
    })
}

#[test]
fn what_stays_is_met_once_in_a_snapshot() -> Result<()> {
    beside_writers(2, |scratch, _, pass| {
        expect(pass, pass.run(&mut scratch.database.snapshot()?)?);
        Ok(())
    })
}

/// What a transaction that commits has seen was right; in a steady one even what one has seen that did not.
#[test]
fn what_stays_is_met_once_in_transactions() -> Result<()> {
    beside_writers(3, |_, session, pass| {
        for first_try in [FirstTry::Whole, FirstTry::OneShot] {
            for read_only in [false, true] {
                let options = TransactionOptions { first_try, read_only, ..TransactionOptions::default() };
                session.transaction_with(&options, |t| {
                    expect(pass, pass.run(t)?);
                    if read_only {
                        Ok(())
                    } else {
                        t.set(&node!("^passes")?, 1)
                    }
                })?;
            }
        }
        Ok(())
    })
}

/// An attempt is told at its end whether what it has seen was one state: only then it has to be right.
#[test]
fn what_stays_is_met_once_in_attempts_that_hold() -> Result<()> {
    let held = std::sync::atomic::AtomicU32::new(0);
    beside_writers(4, |_, session, pass| {
        for _ in 0..20 {
            if let Some(told) = session.attempt(|session| pass.run(session))? {
                expect(pass, told);
                held.fetch_add(1, Ordering::Relaxed);
            }
        }
        Ok(())
    })?;
    println!("{} attempts held", held.into_inner());
    Ok(())
}
