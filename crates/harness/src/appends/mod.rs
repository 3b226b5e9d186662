//! Appends to lists: a load whose history shows whether it was serializable (after Elle, Kingsbury and
//! Alvaro 2020).
//!
//! Each transaction reads a few lists and appends its number to each of them. Every list, read in the end,
//! then tells the order of all its writers, and every read tells its place in that order; so the order of
//! transactions is known, and must have no circle.
//!
//! What was tried and what was reported done is kept in a [`Journal`], a file that survives the death of
//! its writer.
//!
//! Deliberately absent: real time. That a later transaction comes later in the order is not checked.

mod journal;

use std::collections::{BTreeMap, BTreeSet};

use perilune_store::{transact, Error, Result, Session, TransactionOptions};

use crate::bank::Random;

pub use journal::Journal;

/// Lists below one prefix.
#[derive(Clone, Debug)]
pub struct Lists {
    prefix: Vec<u8>,
    count: u64,
}

/// What a transaction saw of a list before it appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Which list.
    pub list: u64,
    /// How many were in it.
    pub length: usize,
    /// A sum of what was in it, sensitive to order.
    pub sum: u64,
}

/// A transaction: tried, and perhaps reported done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// Its number, not used by any other. It is what it appends.
    pub id: u64,
    /// The lists it appends to.
    pub lists: Vec<u64>,
    /// What it saw, if it was reported done.
    pub seen: Option<Vec<Seen>>,
}

impl Lists {
    /// `count` lists (at least 1), all empty in the beginning.
    #[must_use]
    pub fn new(prefix: &[u8], count: u64) -> Self {
        Lists { prefix: prefix.to_vec(), count }
    }

    /// One to three lists for a transaction to append to.
    pub fn choose(&self, random: &mut Random) -> Vec<u64> {
        let lists: BTreeSet<u64> = (0..=random.below(3)).map(|_| random.below(self.count)).collect();
        lists.into_iter().collect()
    }

    /// Appends `id` to `lists` in one transaction and says what was there before.
    ///
    /// # Errors
    /// As [`transact`].
    pub fn append(&self, session: &mut impl Session, id: u64, lists: &[u64]) -> Result<Vec<Seen>> {
        transact(session, &TransactionOptions::default(), |session| {
            let mut seen = Vec::new();
            for &list in lists {
                let mut ids = self.read(session, list)?;
                seen.push(Seen { list, length: ids.len(), sum: sum(&ids) });
                ids.push(id);
                let value: Vec<u8> = ids.iter().flat_map(|id| id.to_le_bytes()).collect();
                session.set(&self.key(list), &value)?;
            }
            Ok(seen)
        })
    }

    /// All lists, in one transaction.
    ///
    /// # Errors
    /// As [`transact`].
    pub fn read_all(&self, session: &mut impl Session) -> Result<Vec<Vec<u64>>> {
        let options = TransactionOptions { read_only: true, ..TransactionOptions::default() };
        transact(session, &options, |session| (0..self.count).map(|list| self.read(session, list)).collect())
    }

    fn key(&self, list: u64) -> Vec<u8> {
        [&self.prefix[..], &list.to_be_bytes()].concat()
    }

    fn read(&self, session: &mut impl Session, list: u64) -> Result<Vec<u64>> {
        let mut value = Vec::new();
        if !session.get(&self.key(list), &mut value)? {
            return Ok(Vec::new());
        }
        if value.len() % 8 != 0 {
            return Err(Error::Refused(format!("list {list} has {} bytes, no multiple of 8", value.len())));
        }
        let id = |bytes: &[u8]| bytes.iter().rev().fold(0, |id, &byte| id << 8 | u64::from(byte));
        Ok(value.chunks_exact(8).map(id).collect())
    }
}

fn sum(ids: &[u64]) -> u64 {
    ids.iter().fold(0xCBF2_9CE4_8422_2325, |sum, id| (sum ^ id).wrapping_mul(0x0000_0100_0000_01B3))
}

/// Compares the lists in the end with all attempts ever made on them.
///
/// # Errors
/// The text names the transaction, the list and what is wrong: an acknowledged append lost, one that came
/// twice or from nowhere, half a transaction, a read of what never was, or a circle.
pub fn check(lists: &[Vec<u64>], attempts: &[Attempt]) -> std::result::Result<(), String> {
    let places = places(lists)?;
    let known: BTreeSet<u64> = attempts.iter().map(|attempt| attempt.id).collect();
    if let Some((id, list)) = places.keys().find(|(id, _)| !known.contains(id)) {
        return Err(format!("list {list} holds {id:#x}, which nobody has tried to append"));
    }
    for attempt in attempts {
        check_attempt(lists, &places, attempt)?;
    }
    check_order(lists, attempts)
}

/// Where each number is in each list.
fn places(lists: &[Vec<u64>]) -> std::result::Result<BTreeMap<(u64, u64), usize>, String> {
    let mut places = BTreeMap::new();
    for (list, ids) in (0..).zip(lists) {
        for (place, &id) in ids.iter().enumerate() {
            if let Some(other) = places.insert((id, list), place) {
                return Err(format!("list {list} holds {id:#x} twice, at {other} and {place}"));
            }
        }
    }
    Ok(places)
}

fn check_attempt(
    lists: &[Vec<u64>],
    places: &BTreeMap<(u64, u64), usize>,
    attempt: &Attempt,
) -> std::result::Result<(), String> {
    let id = attempt.id;
    let present = attempt.lists.iter().filter(|&&list| places.contains_key(&(id, list))).count();
    if present != 0 && present != attempt.lists.len() {
        return Err(format!("half of {id:#x} was done: it is in {present} of its lists {:?}", attempt.lists));
    }
    let Some(seen) = &attempt.seen else {
        return Ok(());
    };
    if present == 0 {
        return Err(format!("{id:#x} was acknowledged and is lost from its lists {:?}", attempt.lists));
    }
    for Seen { list, length, sum: seen } in seen {
        let ids = usize::try_from(*list).ok().and_then(|list| lists.get(list));
        let before = ids.and_then(|ids| ids.get(..*length));
        if before.map(sum) != Some(*seen) {
            return Err(format!("{id:#x} saw {length} entries of list {list} that are not those before it"));
        }
        if places.get(&(id, *list)) != Some(length) {
            let place = places.get(&(id, *list));
            return Err(format!("{id:#x} appended to {length} entries of list {list}, but is at {place:?}"));
        }
    }
    Ok(())
}

/// Checks that the orders of all lists agree: no transaction is both before and after another one.
///
/// Each transaction appends to what it reads. So its reads and writes have the same place, and the order of
/// its neighbours in each list is all there is to know.
fn check_order(lists: &[Vec<u64>], attempts: &[Attempt]) -> std::result::Result<(), String> {
    let mut after: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    let mut before: BTreeMap<u64, usize> = attempts.iter().map(|attempt| (attempt.id, 0)).collect();
    for pair in lists.iter().flat_map(|ids| ids.windows(2)) {
        after.entry(pair[0]).or_default().push(pair[1]);
        *before.entry(pair[1]).or_default() += 1;
    }
    let mut first: Vec<u64> = before.iter().filter(|(_, count)| **count == 0).map(|(id, _)| *id).collect();
    while let Some(id) = first.pop() {
        before.remove(&id);
        for next in after.remove(&id).unwrap_or_default() {
            if let Some(count) = before.get_mut(&next) {
                *count -= 1;
                if *count == 0 {
                    first.push(next);
                }
            }
        }
    }
    if before.is_empty() {
        return Ok(());
    }
    let some: Vec<String> = before.keys().take(8).map(|id| format!("{id:#x}")).collect();
    Err(format!("{} transactions are in or behind a circle: {}", before.len(), some.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attempt(id: u64, lists: &[Vec<u64>], of: &[u64]) -> Attempt {
        let seen = |&list: &u64| {
            let ids = &lists[list as usize];
            let length = ids.iter().position(|&other| other == id).unwrap();
            Seen { list, length, sum: sum(&ids[..length]) }
        };
        Attempt { id, lists: of.to_vec(), seen: Some(of.iter().map(seen).collect()) }
    }

    #[test]
    fn a_serial_history_is_fine() {
        let lists = [vec![1, 2, 3], vec![2, 3]];
        let unknown = |id, lists: &[u64]| Attempt { id, lists: lists.to_vec(), seen: None };
        let attempts =
            [attempt(1, &lists, &[0]), attempt(2, &lists, &[0, 1]), unknown(3, &[0, 1]), unknown(4, &[1])];
        assert_eq!(check(&lists, &attempts), Ok(()));
    }

    #[test]
    fn each_wrong_history_is_found() {
        let good = [vec![1, 2], vec![2]];
        let attempts = [attempt(1, &good, &[0]), attempt(2, &good, &[0, 1])];
        let wrong = |lists: &[Vec<u64>], attempts: &[Attempt]| check(lists, attempts).unwrap_err();
        assert!(wrong(&[vec![1, 2, 2], vec![2]], &attempts).contains("twice"));
        assert!(wrong(&[vec![1, 2, 9], vec![2]], &attempts).contains("nobody has tried"));
        assert!(wrong(&[vec![1, 2], vec![]], &attempts).contains("half of 0x2"));
        assert!(wrong(&[vec![1], vec![]], &attempts).contains("0x2 was acknowledged and is lost"));
        assert!(wrong(&[vec![2, 1], vec![2]], &attempts).contains("0x1 appended to 0 entries"));
        let circle = [vec![1, 2], vec![2, 1]];
        let attempts = [attempt(1, &circle, &[0, 1]), attempt(2, &circle, &[0, 1])];
        assert!(wrong(&circle, &attempts).contains("circle"));
    }
}
