//! Transactions beside a model: what they read of a tree and of their own writes, level by level, and what they leave.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use super::writes::ALIKE;
use super::Transaction;
use crate::access::Access;
use crate::image::Image;
use crate::limits::INLINE_MAX;
use crate::session::Seat;
use crate::tree::tests::scratch;
use crate::tree::{Neighbour, Seek, Wanted, Which};

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

/// Of the same numbers for the same seed.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (self.0 >> 33) as usize % end
    }

    /// A key of a few, or what several begin with.
    fn key(&mut self) -> Vec<u8> {
        let number = self.below(60);
        let text = match self.below(8) {
            0 => format!("key{:02}", number / 10),
            1 => format!("key{number:02}longer than eight bytes"),
            2 => format!("key{:02}longer than eight bytes, and {number}", number / 3),
            _ => format!("key{number:02}"),
        };
        text.into_bytes()
    }

    /// Most are short; with the others the tree has several leaves, and some values lie in pages of their own.
    fn value(&mut self) -> Vec<u8> {
        let length = match self.below(40) {
            0 => INLINE_MAX + self.below(10_000),
            1..10 => self.below(800),
            _ => self.below(30),
        };
        vec![b'a' + self.below(20) as u8; length]
    }
}

fn neighbour(map: &Map, from: &[u8], side: Neighbour, bound: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    let found = match side {
        Neighbour::Next => map.range::<[u8], _>((Bound::Excluded(from), Bound::Unbounded)).next(),
        Neighbour::AtOrNext => map.range::<[u8], _>((Bound::Included(from), Bound::Unbounded)).next(),
        Neighbour::Previous => map.range::<[u8], _>((Bound::Unbounded, Bound::Excluded(from))).next_back(),
    };
    found.filter(|(key, _)| side.is_within(key, bound)).map(|(key, value)| (key.clone(), value.clone()))
}

/// Everything in the tree.
fn content(image: &Arc<Image>) -> Map {
    let access = Access::new(Seat::new(image.clone(), 3));
    let (mut map, mut from) = (Map::new(), Vec::new());
    loop {
        let (mut key, mut value) = (Vec::new(), Vec::new());
        let side = Neighbour::Next;
        if !access
            .neighbour(
                Which::Main,
                Seek { from: &from, side, bound: &[] },
                &mut key,
                Some(Wanted::whole(&mut value)),
                &mut (),
            )
            .unwrap()
        {
            return map;
        }
        from.clone_from(&key);
        map.insert(key, value);
    }
}

/// One transaction of so many steps.
fn play(image: &Arc<Image>, random: &mut Random, steps: usize) {
    let access = Access::new(Seat::new(image.clone(), 1));
    let mut txn = Transaction::new();
    let mut levels = vec![content(image)];
    for _ in 0..steps {
        let key = random.key();
        let depth = levels.len();
        let map = levels.last_mut().unwrap();
        match random.below(20) {
            0..6 => {
                let value = random.value();
                txn.set(Which::Main, &key, &value);
                map.insert(key, value);
            }
            6..8 => {
                txn.remove(Which::Main, &key);
                map.remove(&key);
            }
            8 => {
                let prefix = &key[..key.len().min(4 + random.below(2))];
                txn.remove_prefix(Which::Main, prefix);
                map.retain(|key, _| !key.starts_with(prefix));
            }
            9 if depth < 4 => {
                txn.overlay.push();
                let inner = map.clone();
                levels.push(inner);
            }
            10 if depth > 1 => {
                txn.overlay.merge_level();
                let inner = levels.pop().unwrap();
                *levels.last_mut().unwrap() = inner;
            }
            11 if depth > 1 => {
                txn.drop_level();
                levels.pop();
            }
            _ => look(&access, &mut txn, map, random),
        }
    }
    let expected = levels.pop().unwrap();
    access.commit(&mut txn, None).unwrap();
    assert_eq!(content(image), expected);
}

/// Asks for some things; for the same ones often.
fn look(access: &Access, txn: &mut Transaction, map: &Map, random: &mut Random) {
    let key = random.key();
    let (mut found, mut value) = (Vec::new(), Vec::new());
    let is_there = access.txn_get(txn, Which::Main, &key, &mut value).unwrap();
    assert_eq!(is_there.then_some(&value), map.get(&key));
    let sides = [Neighbour::AtOrNext, Neighbour::AtOrNext, Neighbour::Next, Neighbour::Previous];
    for _ in 0..6 {
        let side = sides[random.below(sides.len())];
        let from = [&b"key1"[..], b"key2", b"key25", b"key25longer"][random.below(4)];
        let bound: &[u8] = match side {
            _ if random.below(3) == 0 => b"",
            Neighbour::Previous => b"key10",
            _ => b"key26\xff",
        };
        let wants_value = random.below(2) == 0;
        let into = wants_value.then_some(&mut value);
        let is_there = access
            .txn_neighbour(txn, Which::Main, Seek { from, side, bound }, &mut found, into.map(Wanted::whole))
            .unwrap();
        let expected = neighbour(map, from, side, bound);
        assert_eq!(is_there, expected.is_some(), "{side:?} {from:?} {bound:?}");
        if let Some((key, bytes)) = expected {
            assert_eq!(found, key, "{side:?} {from:?} {bound:?}");
            assert!(!wants_value || value == bytes, "{side:?} {from:?} {bound:?}");
        }
    }
}

fn play_many(rounds: u64, steps: usize) {
    let image = scratch(4_000);
    for round in 0..rounds {
        play(&image, &mut Random(round), steps);
    }
}

#[test]
fn transactions_do_what_the_model_does() {
    play_many(150, 12);
    play_many(60, 300);
}

#[test]
fn keys_of_one_digest_are_told_apart() {
    for bits in [0, 1, 7] {
        ALIKE.set(bits);
        play_many(30, 200);
    }
}
