//! Entries that are read many at once, against a map in memory: by themselves, in transactions that write, in snapshots and in
//! one-shot ones, forwards and backwards, while other sessions write.

mod place;

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Arc, Weak};
use std::time::Duration;

use perilune_engine::Session;
use perilune_store::{
    Bulk, Entries, Error, Optimistic, Origin, Result, Scan, Session as _, Store, TransactionOptions,
    Transactions,
};
use place::Place;

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// Numbers that look random, from a seed that is told.
struct Chance(u64);

impl Chance {
    fn new() -> Chance {
        let seed = std::env::var("PERILUNE_SEED").ok().and_then(|seed| seed.parse().ok());
        let seed = seed.unwrap_or_else(|| u64::from(std::process::id()) << 20 | 1);
        println!("PERILUNE_SEED={seed}");
        Chance(seed)
    }

    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }

    /// Of a few subtrees, some with long names, of which several leaves are made.
    fn key(&mut self) -> Vec<u8> {
        let names = ["a", "about", "m/a name that is longer than sixteen bytes/", "m/b", "z"];
        let number = self.below(3_000);
        let end = ["", "x", "yyyyyyyyyy"][self.below(3)];
        format!("{}{number:04}{end}", names[self.below(names.len())]).into_bytes()
    }

    fn value(&mut self) -> Vec<u8> {
        let length = if self.below(50) == 0 { 2_500 } else { self.below(60) };
        vec![self.below(256) as u8; length]
    }

    fn is_heads(&mut self) -> bool {
        self.below(2) == 0
    }
}

/// Writes one key, to a session and to what it should hold.
fn write(session: &mut Session, model: &mut Model, chance: &mut Chance) -> Result<()> {
    let key = chance.key();
    if chance.below(3) == 0 {
        session.remove(&key)?;
        model.remove(&key);
    } else {
        let value = chance.value();
        session.set(&key, &value)?;
        model.insert(key, value);
    }
    Ok(())
}

/// Whoever goes over entries as a cursor does.
struct Walker {
    low: Vec<u8>,
    high: Vec<u8>,
    backwards: bool,
    values: bool,
    at: Option<Vec<u8>>,
    entries: Entries,
    spare: Entries,
}

impl Walker {
    fn new(chance: &mut Chance) -> Walker {
        let (one, other) = (chance.key(), chance.key());
        let (low, high) = if chance.below(4) == 0 { (vec![1], vec![0xfe]) } else { (one, other) };
        let (backwards, values) = (chance.is_heads(), chance.is_heads());
        let (entries, spare) = (Entries::default(), Entries::default());
        Walker { low, high, backwards, values, at: None, entries, spare }
    }

    /// Steps; what it comes to.
    fn step(&mut self, session: &mut Session, chance: &mut Chance) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        if !(session.are_current(&self.entries) && self.entries.advance()) {
            let after = if self.entries.ahead() == 0 { *self.entries.origin() } else { Origin::default() };
            let (edge, bound) =
                if self.backwards { (&self.high, &self.low) } else { (&self.low, &self.high) };
            let scan = Scan {
                from: self.at.as_ref().unwrap_or(edge),
                inclusive: self.at.is_none(),
                bound,
                backwards: self.backwards,
                values: self.values,
                most: [1, 2, 7, 10_000][chance.below(4)],
                after,
            };
            if !session.entries(&scan, &mut self.spare)? {
                return Ok(None);
            }
            std::mem::swap(&mut self.entries, &mut self.spare);
        }
        let key = self.entries.key().to_vec();
        self.at = Some(key.clone());
        Ok(Some((key, if self.values { self.entries.value().to_vec() } else { Vec::new() })))
    }

    /// What the next step is to come to.
    fn expected(&self, model: &Model) -> Option<(Vec<u8>, Vec<u8>)> {
        let (low, high) = (Bound::Included(self.low.clone()), Bound::Excluded(self.high.clone()));
        let (low, high) = match (&self.at, self.backwards) {
            (None, _) => (low, high),
            (Some(at), false) => (Bound::Excluded(at.clone()), high),
            (Some(at), true) => (low, Bound::Excluded(at.clone())),
        };
        let is_empty = matches!((&low, &high), (Bound::Included(low) | Bound::Excluded(low), Bound::Excluded(high)) if low >= high);
        let mut range = (!is_empty).then(|| model.range((low, high)))?;
        let found = if self.backwards { range.next_back() } else { range.next() };
        found.map(|(key, value)| (key.clone(), if self.values { value.clone() } else { Vec::new() }))
    }

    fn check_step(&mut self, session: &mut Session, model: &Model, chance: &mut Chance) -> Result<bool> {
        let expected = self.expected(model);
        let found = self.step(session, chance)?;
        assert_eq!(found, expected, "of {:?} to {:?}", self.low, self.high);
        Ok(found.is_some())
    }
}

/// A database that holds what the model does.
fn planted(place: &Place, chance: &mut Chance) -> (perilune_engine::Database, Session, Model) {
    let database = place.fresh();
    let (mut session, mut model) = (database.session().unwrap(), Model::new());
    for _ in 0..4_000 {
        write(&mut session, &mut model, chance).unwrap();
    }
    (database, session, model)
}

#[test]
fn each_step_sees_what_the_tree_holds_then() {
    let (place, mut chance) = (Place::default(), Chance::new());
    let (database, mut session, mut model) = planted(&place, &mut chance);
    let mut other = database.session().unwrap();
    for _ in 0..60 {
        let mut walker = Walker::new(&mut chance);
        // Every so many steps somebody writes, this session or another.
        let calm = [2, 30, 1_000][chance.below(3)];
        while walker.check_step(&mut session, &model, &mut chance).unwrap() {
            if chance.below(calm) == 0 {
                let writer = if chance.is_heads() { &mut session } else { &mut other };
                write(writer, &mut model, &mut chance).unwrap();
            }
        }
    }
}

#[test]
fn a_snapshot_shows_what_was_there_when_it_was_taken() {
    let (place, mut chance) = (Place::default(), Chance::new());
    let (database, mut session, mut model) = planted(&place, &mut chance);
    for _ in 0..8 {
        let (mut snapshot, then) = (database.snapshot().unwrap(), model.clone());
        for _ in 0..8 {
            let mut walker = Walker::new(&mut chance);
            while walker.check_step(&mut snapshot, &then, &mut chance).unwrap() {
                if chance.below(10) == 0 {
                    write(&mut session, &mut model, &mut chance).unwrap();
                }
            }
        }
    }
}

/// Walks in a transaction that writes, too, beside another session that does; what it commits, if it does, is in the model then.
fn walk_and_write(
    session: &mut Session,
    model: &mut Model,
    chance: &mut Chance,
    other: &mut Session,
) -> Result<()> {
    let mut own = model.clone();
    let calm = [3, 40, 1_000][chance.below(3)];
    for _ in 0..3 {
        let mut walker = Walker::new(chance);
        while walker.check_step(session, &own, chance)? {
            match chance.below(calm) {
                0 => write(session, &mut own, chance)?,
                1 => {
                    session.begin(&TransactionOptions::default())?;
                    let mut inner = own.clone();
                    write(session, &mut inner, chance)?;
                    walker.check_step(session, &inner, chance)?;
                    if chance.is_heads() {
                        session.commit()?;
                        own = inner;
                    } else {
                        session.rollback()?;
                    }
                }
                2 if chance.below(8) == 0 => {
                    session.remove_prefix(b"m/b")?;
                    own.retain(|key, _| !key.starts_with(b"m/b"));
                }
                3 if chance.below(8) == 0 => {
                    // What is set and removed again changes leaves, but no answer.
                    let key = [&chance.key()[..], b"-other"].concat();
                    other.set(&key, b"passing").unwrap();
                    other.remove(&key).unwrap();
                }
                _ => {}
            }
        }
    }
    session.commit()?;
    *model = own;
    Ok(())
}

#[test]
fn a_transaction_sees_one_state_and_its_own_writes() {
    let (place, mut chance) = (Place::default(), Chance::new());
    let (database, mut session, mut model) = planted(&place, &mut chance);
    let mut other = database.session().unwrap();
    // Each write of the other has all questions about its leaf asked again.
    let options = TransactionOptions { timeout: Duration::from_secs(600), ..TransactionOptions::default() };
    // With small pages there are more leaves, and questions: a round takes fifteen times as long.
    for _ in 0..if cfg!(feature = "page-4k") { 2 } else { 12 } {
        session.begin(&options).unwrap();
        walk_and_write(&mut session, &mut model, &mut chance, &mut other).unwrap();
    }
    let mut walker = Walker { low: vec![1], high: vec![0xfe], backwards: false, ..Walker::new(&mut chance) };
    while walker.check_step(&mut session, &model, &mut chance).unwrap() {}
}

#[test]
fn a_transaction_notices_what_others_change_within_what_it_has_read_and_only_that() {
    let (place, mut chance) = (Place::default(), Chance::new());
    let database = place.fresh();
    let (mut session, mut other) = (database.session().unwrap(), database.session().unwrap());
    for number in 0..100 {
        session.set(format!("k{number:03}").as_bytes(), b"value").unwrap();
    }
    for backwards in [false, true] {
        // A value, a new key, a removal; and beyond either end of what was read.
        let changes: [(&[u8], bool, bool); 6] = [
            (b"k050", true, true),
            (b"k050x", true, true),
            (b"k051", false, true),
            (b"k019", true, false),
            (b"k090", false, false),
            (b"k090y", true, false),
        ];
        for (key, is_set, is_conflict) in changes {
            session.begin(&TransactionOptions::default()).unwrap();
            let mut walker = Walker {
                low: b"k020".to_vec(),
                high: b"k080".to_vec(),
                backwards,
                values: true,
                ..Walker::new(&mut chance)
            };
            let mut steps = 0;
            while walker.step(&mut session, &mut chance).unwrap().is_some() {
                steps += 1;
            }
            assert!((59..62).contains(&steps), "{steps}");
            if is_set {
                other.set(key, b"other").unwrap();
            } else {
                other.remove(key).unwrap();
            }
            session.set(b"written", b"1").unwrap();
            let outcome = session.commit();
            assert_eq!(matches!(outcome, Err(Error::Conflict)), is_conflict, "{key:?}: {outcome:?}");
            session.give_up();
            other.set(key, b"value").unwrap();
        }
    }
}

#[test]
fn a_one_shot_transaction_sees_its_own_writes_or_fails() {
    let (place, mut chance) = (Place::default(), Chance::new());
    let (_database, mut session, model) = planted(&place, &mut chance);
    let mut seen = 0;
    for _ in 0..200 {
        assert!(session.begin_attempt().unwrap());
        let (mut own, mut walker) = (model.clone(), Walker::new(&mut chance));
        let failed = loop {
            let expected = walker.expected(&own);
            match walker.step(&mut session, &mut chance) {
                Ok(found) => assert_eq!(found, expected),
                Err(Error::Conflict) => break true,
                Err(error) => panic!("{error}"),
            }
            seen += 1;
            if expected.is_none() || chance.below(200) == 0 {
                break false;
            }
            if chance.below(20) == 0 && write(&mut session, &mut own, &mut chance).is_err() {
                break true;
            }
        };
        assert!(!session.end_attempt(false).unwrap() || !failed);
    }
    assert!(seen > 1_000, "{seen} steps");
}

const STAYING: u64 = 3_000;

fn number_key(number: u64) -> Vec<u8> {
    [b"numbers/".as_slice(), &number.to_be_bytes()].concat()
}

/// Sets and removes odd numbers, whose values say which they are, as long as `going_on` lives.
fn disturb(session: &mut Session, mut chance: Chance, going_on: &Weak<()>) {
    while going_on.strong_count() > 0 {
        let number = 2 * chance.below(STAYING as usize) as u64 + 1;
        let key = number_key(number);
        if chance.is_heads() {
            session.set(&key, format!("{number}").as_bytes()).unwrap();
        } else {
            session.remove(&key).unwrap();
        }
    }
}

/// Goes over all numbers: those that stay are met once each, in order, and nothing that never was.
fn pass(session: &mut Session, chance: &mut Chance, backwards: bool) -> Result<()> {
    let whole = Walker::new(chance);
    let mut walker = Walker { low: vec![1], high: vec![0xfe], backwards, values: true, ..whole };
    let (mut met, mut last) = (0, None);
    while let Some((key, value)) = walker.step(session, chance)? {
        let number = u64::from_be_bytes(key[8..].try_into().unwrap());
        assert_eq!((&key[..8], value), (b"numbers/".as_slice(), format!("{number}").into_bytes()));
        let is_next = last.is_none_or(|last| if backwards { number < last } else { number > last });
        assert!(is_next, "{number} after {last:?}");
        last = Some(number);
        met += u64::from(number % 2 == 0);
    }
    assert_eq!(met, STAYING, "some that stayed were not met");
    Ok(())
}

#[test]
fn what_stays_is_met_once_while_others_write() {
    let (place, mut chance) = (Place::default(), Chance::new());
    let database = place.fresh();
    let mut session = database.session().unwrap();
    for number in 0..STAYING {
        session.set(&number_key(2 * number), format!("{}", 2 * number).as_bytes()).unwrap();
    }
    std::thread::scope(|scope| {
        // Gone at the end of this block, by a failure too: then the writers end.
        let going_on = Arc::new(());
        for writer in 1..3 {
            let (mut session, seed, going_on) =
                (database.session().unwrap(), chance.0, Arc::downgrade(&going_on));
            scope.spawn(move || disturb(&mut session, Chance(seed ^ writer << 32), &going_on));
        }
        let read_only = TransactionOptions { read_only: true, ..TransactionOptions::default() };
        for round in 0..12 {
            let backwards = round % 2 == 1;
            pass(&mut session, &mut chance, backwards).unwrap();
            pass(&mut database.snapshot().unwrap(), &mut chance, backwards).unwrap();
            perilune_store::transact(&mut session, &read_only, |session| {
                pass(session, &mut chance, backwards)
            })
            .unwrap();
        }
    });
}
