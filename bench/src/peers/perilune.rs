//! Perilune by its Rust API: a node for each tree, the number as its subscript.

use std::path::Path;

use perilune::{
    Batch, Cursor, Database as Store, Durability, KeyMark, LockMode, Neighbour, Node, OpenOptions,
    PlainSubscript, Session as StoreSession, TransactionOptions,
};

use crate::data::essence;
use crate::subject::{missing, Abilities, Class, Database, Pair, Passage, Peer, Result, Session, Tree};

/// The database in a directory of the suite.
pub(crate) const FILE: &str = "bench.db";

/// Nodes of a batch when loading.
const BATCH: usize = 16_384;

const NONE: Peer = Peer {
    name: super::OURS,
    class: Class::D4,
    settings: "durability none, file mapping",
    abilities: Abilities { processes: true, threads: true, locks: true },
    version: || Ok(env!("CARGO_PKG_VERSION").to_owned()),
    open: |directory, _processes| open(directory, Durability::None),
    compact,
};

pub(crate) const PEERS: &[Peer] = &[
    NONE,
    Peer {
        class: Class::D3,
        settings: "durability periodic: a prefix, at most 50 ms old",
        open: |directory, _processes| open(directory, Durability::Periodic),
        ..NONE
    },
    Peer {
        class: Class::D1,
        settings: "durability fsync, group commit",
        open: |directory, _processes| open(directory, Durability::Fsync),
        ..NONE
    },
];

/// Options for a directory on any file system; the report says which.
pub(crate) fn options() -> OpenOptions {
    OpenOptions::default().allow_any_filesystem(true)
}

fn open(directory: &Path, durability: Durability) -> Result<Box<dyn Database>> {
    Ok(Box::new(Opened(options().durability(durability).open(directory.join(FILE))?)))
}

fn compact(directory: &Path) -> Result<()> {
    options().compact(directory.join(FILE), |_, _| ())?;
    Ok(())
}

struct Opened(Store);

impl Database for Opened {
    fn session(&self) -> Result<Box<dyn Session + '_>> {
        let mut trees = Vec::new();
        for tree in Tree::ALL {
            let node = Node::new(&format!("^{}", format!("{tree:?}").to_lowercase()))?;
            trees.push((node.mark(), node));
        }
        let pair = [Node::new("^pair")?, Node::new("^pair")?];
        Ok(Box::new(Open { session: self.0.session()?, trees, pair, lock: Node::new("^lock")?.child(0)? }))
    }
}

struct Open {
    session: StoreSession,
    /// The node of each tree, with whatever subscript it had last, and where to cut it.
    trees: Vec<(KeyMark, Node)>,
    pair: [Node; 2],
    lock: Node,
}

/// The node of `number`, in place.
#[inline]
fn node(trees: &mut [(KeyMark, Node)], tree: Tree, number: u64) -> Result<&Node> {
    let (mark, node) = &mut trees[tree as usize];
    node.truncate(*mark);
    node.push(number as i64)?;
    Ok(node)
}

impl Open {
    fn parent(&mut self, tree: Tree) -> &Node {
        let (mark, node) = &mut self.trees[tree as usize];
        node.truncate(*mark);
        node
    }
}

impl Session for Open {
    #[inline]
    fn get(&mut self, tree: Tree, number: u64) -> Result<Option<i64>> {
        Ok(self.session.get_int(node(&mut self.trees, tree, number)?)?)
    }

    #[inline]
    fn set(&mut self, tree: Tree, number: u64, value: i64) -> Result<()> {
        Ok(self.session.set(node(&mut self.trees, tree, number)?, value)?)
    }

    #[inline]
    fn increment(&mut self, tree: Tree, number: u64, by: i64) -> Result<i64> {
        let sum = self.session.increment(node(&mut self.trees, tree, number)?, by)?;
        sum.as_i64().ok_or_else(|| "a counter is no integer".into())
    }

    fn update_pair(
        &mut self,
        tree: Tree,
        numbers: [u64; 2],
        change: &mut dyn FnMut(Pair) -> Pair,
    ) -> Result<()> {
        for (place, number) in self.pair.iter_mut().zip(numbers) {
            place.clone_from(node(&mut self.trees, tree, number)?);
        }
        let [first, second] = &self.pair;
        Ok(self.session.transaction(|session| {
            let new = change([session.get_int(first)?, session.get_int(second)?]);
            for (node, value) in [first, second].into_iter().zip(new) {
                if let Some(value) = value {
                    session.set(node, value)?;
                }
            }
            Ok(())
        })?)
    }

    fn get_snapshot(&mut self, tree: Tree, numbers: &[u64]) -> Result<u64> {
        let (mark, node) = &mut self.trees[tree as usize];
        let options = TransactionOptions { read_only: true, ..TransactionOptions::default() };
        let sum = self.session.transaction_with(&options, |session| {
            let mut sum = 0u64;
            for number in numbers {
                node.truncate(*mark);
                node.push(*number as i64)?;
                match session.get_int(&*node)? {
                    Some(value) => sum = sum.wrapping_add(essence(value)),
                    None => return Ok(None),
                }
            }
            Ok(Some(sum))
        })?;
        sum.ok_or_else(|| missing(numbers[0]))
    }

    fn walk(&mut self, tree: Tree, limit: u64) -> Result<Passage> {
        let mut passage = Passage::default();
        let mut node = self.parent(tree).child("")?;
        while passage.entries < limit && self.session.move_to(Neighbour::Next, &mut node)? {
            passage.entries += 1;
        }
        Ok(passage)
    }

    fn scan(&mut self, tree: Tree, limit: u64) -> Result<Passage> {
        let mut passage = Passage::default();
        let mut pass = |number: i64, value: i64| {
            passage.entries += 1;
            passage.numbers = passage.numbers.wrapping_add(number as u64);
            passage.values = passage.values.wrapping_add(essence(value));
            passage.entries < limit
        };
        let mut goes_on = limit > 0;
        let mut cursor = Cursor::children(self.parent(tree));
        while goes_on && cursor.next(&mut self.session)? {
            let number = cursor.integer().ok_or("a subscript is no integer")?;
            goes_on = pass(number, cursor.integer_value().ok_or("a value is no integer")?);
            cursor.take_while(&self.session, |child| match (child.subscript(), child.integer_value()) {
                (PlainSubscript::Int(number), Some(value)) if goes_on => {
                    goes_on = pass(number, value);
                    true
                }
                _ => false,
            });
        }
        Ok(passage)
    }

    fn fill(&mut self, tree: Tree, pairs: &mut dyn Iterator<Item = (u64, i64)>) -> Result<()> {
        let mut batch = Batch::new();
        for (number, value) in pairs {
            batch.push(node(&mut self.trees, tree, number)?, value)?;
            if batch.len() == BATCH {
                batch.sort();
                self.session.set_each(&batch)?;
                batch.clear();
            }
        }
        batch.sort();
        Ok(self.session.set_each(&batch)?)
    }

    fn lock_unlock(&mut self, _number: u64) -> Result<()> {
        let taken = self.session.lock(&self.lock, LockMode::Exclusive, None)?;
        let held = self.session.unlock(&self.lock)?;
        if taken && held {
            Ok(())
        } else {
            Err("a lock was not to be had though it was waited for".into())
        }
    }
}
