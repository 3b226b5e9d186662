//! `BTreeMap` of the standard library, for scale: byte strings as keys and values, one thread, nothing
//! kept. No database has less to do.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::data::essence;
use crate::subject::{Abilities, Class, Database, Pair, Passage, Peer, Result, Session, Tree};

pub(crate) const PEERS: &[Peer] = &[Peer {
    name: "btreemap",
    class: Class::D4,
    settings: "BTreeMap<Vec<u8>, Vec<u8>> in the memory of one process, not shared, not kept",
    abilities: Abilities { processes: false, threads: false, locks: false },
    version: || Ok("of the standard library".to_owned()),
    open: |_directory, _processes| Ok(Box::new(Map::default())),
    compact: |_directory| Err("it has no files".into()),
}];

type Pairs = BTreeMap<Vec<u8>, Vec<u8>>;

#[derive(Default)]
struct Map(Mutex<Pairs>);

impl Database for Map {
    fn session(&self) -> Result<Box<dyn Session + '_>> {
        // Held as long as the session: its operations lock nothing.
        Ok(Box::new(Held(self.0.lock().unwrap_or_else(PoisonError::into_inner))))
    }
}

struct Held<'a>(MutexGuard<'a, Pairs>);

/// Integers as bytes that sort as they do; values in the same form.
fn bytes(tree: Tree, number: u64) -> [u8; 8] {
    tree.key(number).to_be_bytes()
}

#[inline]
fn integer(bytes: &[u8]) -> Result<u64> {
    Ok(u64::from_be_bytes(bytes.try_into()?))
}

impl Session for Held<'_> {
    #[inline]
    fn get(&mut self, tree: Tree, number: u64) -> Result<Option<i64>> {
        match self.0.get(bytes(tree, number).as_slice()) {
            Some(value) => Ok(Some(integer(value)? as i64)),
            None => Ok(None),
        }
    }

    #[inline]
    fn set(&mut self, tree: Tree, number: u64, value: i64) -> Result<()> {
        let key = bytes(tree, number);
        match self.0.get_mut(key.as_slice()) {
            Some(place) => {
                place.clear();
                place.extend_from_slice(&value.to_be_bytes());
            }
            None => {
                self.0.insert(key.to_vec(), value.to_be_bytes().to_vec());
            }
        }
        Ok(())
    }

    fn increment(&mut self, tree: Tree, number: u64, by: i64) -> Result<i64> {
        let sum = self.get(tree, number)?.unwrap_or(0) + by;
        self.set(tree, number, sum)?;
        Ok(sum)
    }

    fn update_pair(
        &mut self,
        tree: Tree,
        numbers: [u64; 2],
        change: &mut dyn FnMut(Pair) -> Pair,
    ) -> Result<()> {
        let new = change([self.get(tree, numbers[0])?, self.get(tree, numbers[1])?]);
        for (number, value) in numbers.into_iter().zip(new) {
            if let Some(value) = value {
                self.set(tree, number, value)?;
            }
        }
        Ok(())
    }

    fn get_snapshot(&mut self, tree: Tree, numbers: &[u64]) -> Result<u64> {
        self.get_each(tree, numbers)
    }

    fn walk(&mut self, tree: Tree, limit: u64) -> Result<Passage> {
        let (low, high) = tree.bounds();
        let (high, mut passage) = (high.to_be_bytes(), Passage::default());
        let mut from = Bound::Included(low.to_be_bytes());
        while passage.entries < limit {
            let from_bytes = from.as_ref().map(|key| key.as_slice());
            let mut range = self.0.range::<[u8], _>((from_bytes, Bound::Excluded(high.as_slice())));
            let Some((key, _)) = range.next() else { break };
            passage.entries += 1;
            from = Bound::Excluded(integer(key)?.to_be_bytes());
        }
        Ok(passage)
    }

    fn scan(&mut self, tree: Tree, limit: u64) -> Result<Passage> {
        let (low, high) = tree.bounds();
        let (low, high) = (low.to_be_bytes().to_vec(), high.to_be_bytes().to_vec());
        let mut passage = Passage::default();
        for (key, value) in self.0.range(low..high).take(limit as usize) {
            passage.entries += 1;
            passage.numbers = passage.numbers.wrapping_add(Tree::number(integer(key)?));
            passage.values = passage.values.wrapping_add(essence(integer(value)? as i64));
        }
        Ok(passage)
    }

    fn fill(&mut self, tree: Tree, pairs: &mut dyn Iterator<Item = (u64, i64)>) -> Result<()> {
        for (number, value) in pairs {
            self.set(tree, number, value)?;
        }
        Ok(())
    }
}
