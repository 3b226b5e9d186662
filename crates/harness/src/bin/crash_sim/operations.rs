//! What the work does: each session's operations follow from a seed, so that a history need only count them.
//!
//! A session has keys of its own, whose state tells how many of its operations are in it; some operations
//! also write *cells*, which all sessions share, always after reading them. So each cell has one order of
//! writers, and whoever writes depends on all who wrote before.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use perilune_harness::bank::Random;
use perilune_store::Durability;

/// The name of the database file.
pub(crate) const DATABASE: &str = "crash.db";
/// Cells that all sessions write.
pub(crate) const CELLS: u64 = 5;
/// Sessions at most of one process, and of all.
pub(crate) const THREADS: usize = 3;
pub(crate) const SESSIONS: usize = 9;

/// Keys and values.
pub(crate) type State = BTreeMap<Vec<u8>, Vec<u8>>;

/// What a cell tells of its last writer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mark {
    /// The session, from 1 on; 0: nobody.
    pub(crate) session: u64,
    /// Which of its operations.
    pub(crate) number: u64,
    /// How often the cell has been written.
    pub(crate) count: u64,
}

/// One operation.
#[derive(Clone, Debug, Default)]
pub(crate) struct Operation {
    /// Keys set and removed, in one transaction if there is more than one change.
    pub(crate) sets: Vec<(Vec<u8>, Vec<u8>)>,
    pub(crate) removes: Vec<Vec<u8>>,
    pub(crate) killed: Option<Vec<u8>>,
    /// The session's counter is raised.
    pub(crate) counts: bool,
    /// Cells written, each after reading it.
    pub(crate) cells: Vec<u64>,
    /// A cell read before, outside the transaction.
    pub(crate) looks_at: Option<u64>,
    /// The level of the transaction, if there is one.
    pub(crate) level: Option<Durability>,
    pub(crate) is_transaction: bool,
}

pub(crate) fn cell_key(cell: u64) -> Vec<u8> {
    format!("c/{cell}").into_bytes()
}

/// What the keys of a session begin with.
pub(crate) fn prefix(session: usize) -> Vec<u8> {
    format!("p/{session}/").into_bytes()
}

pub(crate) fn counter_key(session: usize) -> Vec<u8> {
    format!("p/{session}/count").into_bytes()
}

pub(crate) fn count_of(value: Option<&[u8]>) -> u64 {
    value.and_then(|value| value.try_into().ok()).map_or(0, u64::from_le_bytes)
}

impl Mark {
    pub(crate) fn encode(self) -> [u8; 24] {
        let mut bytes = [0; 24];
        for (place, word) in bytes.chunks_exact_mut(8).zip([self.session, self.number, self.count]) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// What a cell's value says: nobody if it has none. None if it is none of ours.
    pub(crate) fn decode(value: Option<&[u8]>) -> Option<Mark> {
        let Some(value) = value else { return Some(Mark::default()) };
        let word = |at: usize| Some(u64::from_le_bytes(value.get(at..at + 8)?.try_into().ok()?));
        (value.len() == 24).then_some(())?;
        Some(Mark { session: word(0)?, number: word(8)?, count: word(16)? })
    }
}

/// A value that only operation `number` of this run writes.
fn value(random: &mut Random, number: u64) -> Vec<u8> {
    let length = match random.below(16) {
        0 => 3_000 + random.below(40_000),
        1..=3 => random.below(1_500),
        _ => random.below(100),
    };
    let mut value = number.to_le_bytes().to_vec();
    let mut word = random.below(u64::MAX);
    while value.len() < 8 + length as usize {
        word = word.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        value.extend_from_slice(&word.to_le_bytes());
    }
    value
}

/// Operation `number` of a session whose keys are `private`.
pub(crate) fn operation(seed: u64, session: usize, number: u64, private: &State) -> Operation {
    let mut random = Random::new(seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (session as u64) << 56);
    random.below(2);
    let random = &mut random;
    let mut operation = Operation::default();
    let own = |random: &mut Random| format!("p/{session}/key{:02}", random.below(24)).into_bytes();
    let tree = format!("p/{session}/tree{}/", random.below(3)).into_bytes();
    match random.below(100) {
        0..=24 => operation.sets.push((own(random), value(random, number))),
        25..=39 => operation.counts = true,
        40..=49 => {
            let key = own(random);
            match private.contains_key(&key) {
                true => operation.removes.push(key),
                false => operation.sets.push((key, value(random, number))),
            }
        }
        50..=57 if private.range(tree.clone()..).next().is_some_and(|(key, _)| key.starts_with(&tree)) => {
            operation.killed = Some(tree);
        }
        50..=69 => {
            operation.looks_at = Some(random.below(CELLS));
            operation.sets.push((own(random), value(random, number)));
        }
        choice => {
            operation.is_transaction = true;
            operation.counts = true;
            for _ in 0..random.below(4) {
                operation.sets.push((own(random), value(random, number)));
            }
            let grown = [&tree[..], format!("{number:09}").as_bytes()].concat();
            operation.sets.push((grown, value(random, number)));
            // The last of several values for one key counts, in a model as in a transaction.
            if choice < 90 {
                let first = random.below(CELLS);
                operation.cells = (first..(first + 1 + random.below(2)).min(CELLS)).collect();
            }
            operation.level = match random.below(10) {
                0 => Some(Durability::Fsync),
                1 => Some(Durability::Periodic),
                _ => None,
            };
        }
    }
    operation
}

/// Does to a session's keys what its operation does.
pub(crate) fn apply(operation: &Operation, session: usize, private: &mut State) {
    if let Some(tree) = &operation.killed {
        private.retain(|key, _| !key.starts_with(tree));
    }
    for key in &operation.removes {
        private.remove(key);
    }
    for (key, value) in &operation.sets {
        private.insert(key.clone(), value.clone());
    }
    if operation.counts {
        let key = counter_key(session);
        let count = count_of(private.get(&key).map(|value| &value[..])) + 1;
        private.insert(key, count.to_le_bytes().to_vec());
    }
}

/// The keys of a session in a state.
pub(crate) fn private_of(state: &State, session: usize) -> State {
    let prefix = prefix(session);
    let own = state.range(prefix.clone()..).take_while(|(key, _)| key.starts_with(&prefix));
    own.map(|(key, value)| (key.clone(), value.clone())).collect()
}

pub(crate) fn database_path(dir: &Path) -> PathBuf {
    dir.join(DATABASE)
}

pub(crate) fn trouble_path(dir: &Path, process: usize) -> PathBuf {
    dir.join(format!("trouble-{process}"))
}

pub(crate) fn recording_path(dir: &Path, process: usize) -> PathBuf {
    dir.join(format!("recording-{process}"))
}

/// Its presence is the order to end.
pub(crate) fn end_path(dir: &Path) -> PathBuf {
    dir.join("end")
}
