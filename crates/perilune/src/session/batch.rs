//! Many nodes in one operation.
//!
//! `get_many` reads several nodes as of one moment; `set_many` writes several, all or none. A [`Batch`] is for loading:
//! `set_each` writes its nodes several times as fast as `set` does, but each by itself, so that others may see the work
//! half done. `set_all_if_alone` writes a batch of some dozen nodes at one moment.

use std::fmt;

use perilune_key::{append, Value};
use perilune_store::Bulk;

use crate::{Error, IntoValue, Node, NodeRef, Result, Session};

/// Nodes and their values, gathered to be set by [`Session::set_each`].
///
/// ```
/// # let directory = std::env::temp_dir().join(format!("perilune-doc-batch-{}", std::process::id()));
/// # std::fs::create_dir_all(&directory).unwrap();
/// # let mut session = perilune::Database::open(directory.join("t.db"))?.session()?;
/// use perilune::{node, Batch};
///
/// let mut batch = Batch::new();
/// for number in 0..1000 {
///     batch.push(&node!("^square", number)?, number * number)?;
/// }
/// session.set_each(&batch)?;
/// assert_eq!(session.get_int(&node!("^square", 31)?)?, Some(961));
/// # let _ = std::fs::remove_dir_all(&directory);
/// # Ok::<(), perilune::Error>(())
/// ```
#[derive(Clone, Default)]
pub struct Batch {
    /// Key and value of each entry, one behind the other.
    bytes: Vec<u8>,
    entries: Vec<Entry>,
}

#[derive(Clone, Copy)]
struct Entry {
    start: usize,
    key_len: u32,
    value_len: u32,
}

impl Entry {
    fn key_end(self) -> usize {
        self.start + self.key_len as usize
    }

    fn end(self) -> usize {
        self.key_end() + self.value_len as usize
    }
}

/// So many nodes are brought into order by counting.
const COUNTED_MAX: usize = 24;

/// What a key goes on with behind its first `alike` bytes, up to eight bytes as a number, zeros behind those of fewer: of two
/// keys that are alike so far the one with the smaller is the smaller.
#[inline]
fn head(key: &[u8], alike: usize) -> u64 {
    let rest = &key[alike..];
    match (rest.first_chunk::<8>(), key.last_chunk::<8>()) {
        (Some(first), _) => u64::from_be_bytes(*first),
        // The rest is what these end with.
        (None, Some(last)) if !rest.is_empty() => u64::from_be_bytes(*last) << (64 - 8 * rest.len()),
        _ => rest.iter().enumerate().fold(0, |head, (at, byte)| head | u64::from(*byte) << (56 - 8 * at)),
    }
}

/// Whether two keys are the same one: neighbours in their order mostly differ at their ends.
#[inline]
fn is_same(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len() && one.last_chunk::<8>() == other.last_chunk::<8>() && one == other
}

#[cold]
fn not_local() -> Error {
    Error::invalid("a batch is for nodes of the database: their names begin with ^")
}

impl Batch {
    /// A batch without nodes.
    #[must_use]
    pub fn new() -> Batch {
        Batch::default()
    }

    /// A batch without nodes that has room for so many, whose keys and values take so many bytes.
    #[must_use]
    pub fn with_capacity(nodes: usize, bytes: usize) -> Batch {
        Batch { bytes: Vec::with_capacity(bytes), entries: Vec::with_capacity(nodes) }
    }

    /// Adds a node of the database and its value.
    ///
    /// # Errors
    /// `Invalid` for a local node and a value of 4 GiB; `Number` as [`IntoValue::encode_to`]. The batch is as it was.
    #[inline]
    pub fn push<'n>(&mut self, node: impl Into<NodeRef<'n>>, value: impl IntoValue) -> Result<()> {
        let node = node.into();
        if node.is_local() {
            return Err(not_local());
        }
        let start = self.bytes.len();
        append(&mut self.bytes, node.encoded());
        self.finish(start, value)
    }

    /// Adds the child of a node of the database that these bytes name as its subscript, and its value: as
    /// [`Batch::push`] of the node, which need not be made.
    ///
    /// # Errors
    /// As [`Batch::push`] and [`Node::child`]. The batch is as it was.
    #[inline]
    pub fn push_child(&mut self, parent: &Node, subscript: &[u8], value: impl IntoValue) -> Result<()> {
        if parent.is_local() {
            return Err(not_local());
        }
        let start = self.bytes.len();
        parent.key().append_child(subscript, &mut self.bytes)?;
        self.finish(start, value)
    }

    /// Adds the value of the node whose key begins at `start`.
    #[inline]
    fn finish(&mut self, start: usize, value: impl IntoValue) -> Result<()> {
        let key_end = self.bytes.len();
        if let Err(error) = value.encode_to(&mut self.bytes) {
            self.bytes.truncate(start);
            return Err(error);
        }
        let value_len = self.bytes.len() - key_end;
        match (u32::try_from(key_end - start), u32::try_from(value_len)) {
            (Ok(key_len), Ok(value_len)) => self.entries.push(Entry { start, key_len, value_len }),
            _ => {
                self.bytes.truncate(start);
                return Err(Error::invalid("a value of 4 GiB or more: the longest is 512 MiB"));
            }
        }
        Ok(())
    }

    /// Brings the nodes into the order of keys; of equal ones the one added last stays last.
    pub fn sort(&mut self) {
        // NB: what is loaded is sorted as a rule; then this is one look at it.
        let is_sorted = self.entries.is_sorted_by(|a, b| self.key(a) <= self.key(b));
        if is_sorted || self.entries.len() <= COUNTED_MAX && self.sort_by_counting() {
            return;
        }
        let key = |entry: &Entry| &self.bytes[entry.start..entry.key_end()];
        self.entries.sort_by(|a, b| key(a).cmp(key(b)));
    }

    /// Orders a few nodes, if what their keys go on with behind what all begin with tells them apart: then the place of each
    /// is the number of smaller ones, which no branch has to guess. False: the order is as it was.
    fn sort_by_counting(&mut self) -> bool {
        let alike = self.alike();
        let mut heads = [0; COUNTED_MAX];
        for (head, entry) in heads.iter_mut().zip(&self.entries) {
            *head = self::head(self.key(entry), alike);
        }
        let count = self.entries.len().min(COUNTED_MAX);
        let mut sorted = [Entry { start: 0, key_len: 0, value_len: 0 }; COUNTED_MAX];
        let mut places = 0;
        for (head, entry) in heads.iter().zip(&self.entries) {
            let smaller: usize = heads[..count].iter().map(|other| usize::from(other < head)).sum();
            sorted[smaller] = *entry;
            places += smaller;
        }
        // Of equal ones all have the same place.
        let differ = places == count * (count - 1) / 2;
        if differ {
            self.entries.copy_from_slice(&sorted[..count]);
        }
        differ
    }

    /// With how many bytes all keys begin alike; whole words that all of them have are looked at.
    fn alike(&self) -> usize {
        let Some(first) = self.entries.first() else { return 0 };
        let shortest = self.entries.iter().map(|entry| entry.key_len).min().unwrap_or(0) as usize;
        let word = |entry: &Entry, at: usize| {
            self.bytes[entry.start + at..].first_chunk().map_or(0, |word| u64::from_le_bytes(*word))
        };
        for at in (0..shortest / 8).map(|index| 8 * index) {
            let own = word(first, at);
            let differ = self.entries.iter().fold(0, |differ, entry| differ | own ^ word(entry, at));
            if differ != 0 {
                return at + differ.trailing_zeros() as usize / 8;
            }
        }
        shortest & !7
    }

    /// How many nodes it holds.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether it holds none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Bytes of the encoded keys and values.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Takes all nodes out; keeps the memory for the next.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.entries.clear();
    }

    fn key(&self, entry: &Entry) -> &[u8] {
        &self.bytes[entry.start..entry.key_end()]
    }

    fn pair(&self, entry: &Entry) -> (&[u8], &[u8]) {
        self.bytes[entry.start..entry.end()].split_at(entry.key_len as usize)
    }
}

impl fmt::Debug for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch").field("len", &self.len()).field("bytes", &self.bytes()).finish()
    }
}

impl Batch {
    /// Keys and values in the order of keys; of a key that is there twice the last.
    pub(super) fn distinct_pairs(&mut self) -> Vec<(&[u8], &[u8])> {
        self.sort();
        let mut pairs: Vec<(&[u8], &[u8])> = Vec::with_capacity(self.len());
        for pair in self.entries.iter().map(|entry| self.pair(entry)) {
            match pairs.last_mut() {
                Some(last) if is_same(last.0, pair.0) => *last = pair,
                _ => pairs.push(pair),
            }
        }
        pairs
    }
}

impl Session {
    /// The values of `nodes`, in their order, as of one moment.
    ///
    /// # Errors
    /// As [`Session::transaction`].
    pub fn get_many<'n, I>(&mut self, nodes: I) -> Result<Vec<Option<Value>>>
    where
        I: IntoIterator,
        I::Item: Into<NodeRef<'n>>,
    {
        let nodes: Vec<NodeRef<'n>> = nodes.into_iter().map(Into::into).collect();
        let local = nodes.iter().all(|node| node.is_local());
        self.at_one_moment(local, |session| nodes.iter().map(|node| session.get(*node)).collect())
    }

    /// Sets the values of many nodes, all or none; of a node named twice the last value stays.
    ///
    /// # Errors
    /// As [`Session::transaction`].
    pub fn set_many<'n, N, V>(&mut self, pairs: impl IntoIterator<Item = (N, V)>) -> Result<()>
    where
        N: Into<NodeRef<'n>>,
        V: IntoValue,
    {
        let mut nodes = Vec::new();
        let mut values = Vec::new();
        for (node, value) in pairs {
            value.encode_to(&mut values)?;
            nodes.push((node.into(), values.len()));
        }
        self.transaction(|session| {
            let mut start = 0;
            for (node, end) in &nodes {
                session.trees.of(node.is_local()).set(node.encoded(), &values[start..*end])?;
                start = *end;
            }
            Ok(())
        })
    }

    /// Sets the nodes of `batch`, each by itself and in their order: for loading. Nodes that ascend are
    /// written several times as fast as by [`Session::set`]; some thousand at a time are enough. Others
    /// may see the work half done; of a node that is in it twice the last value stays.
    ///
    /// # Errors
    /// As [`Session::set`]; nodes before the one that failed are set, so that it can be done again.
    pub fn set_each(&mut self, batch: &Batch) -> Result<()> {
        let pairs: Vec<(&[u8], &[u8])> = batch.entries.iter().map(|entry| batch.pair(entry)).collect();
        Ok(self.trees.database.set_each(&pairs)?)
    }

    /// The nodes with a value in the subtree of `node` (itself included), as of one moment: for
    /// trees that fit in memory. A [`crate::Cursor`] goes through larger ones.
    ///
    /// # Errors
    /// As [`Session::transaction`].
    pub fn get_tree<'n>(&mut self, node: impl Into<NodeRef<'n>>) -> Result<Vec<(Node, Value)>> {
        let node = node.into();
        self.at_one_moment(node.is_local(), |session| session.subtree(node).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node;

    fn keys(batch: &Batch) -> Vec<(Vec<u8>, Vec<u8>)> {
        batch
            .entries
            .iter()
            .map(|entry| batch.pair(entry))
            .map(|(key, value)| (key.into(), value.into()))
            .collect()
    }

    #[test]
    fn nodes_are_brought_into_order_as_by_comparing_their_keys() -> Result<()> {
        let root = node!("^redis", 0)?;
        let names = [
            "",
            "k",
            "key:",
            "key:00000",
            "key:000000000000",
            "a name that is longer than what is looked at",
        ];
        let mut state = 1_u64;
        let mut random = |below: usize| {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            (state >> 33) as usize % below
        };
        for round in 0..2_000 {
            let (count, shared) = (random(2 * COUNTED_MAX), names[random(names.len())]);
            let mut batch = Batch::new();
            for number in 0..count {
                let shared = if round % 3 == 0 { names[random(names.len())] } else { shared };
                let end = ["", "\0", "\0\u{1}", "x", "behind it more than eight bytes"][random(5)];
                let name = format!("{shared}{}{end}", random(if round % 2 == 0 { 1_000_000 } else { 20 }));
                batch.push_child(&root, name.as_bytes(), number as i64)?;
            }
            let mut expected = keys(&batch);
            expected.sort_by(|one, other| one.0.cmp(&other.0));
            batch.sort();
            assert_eq!(keys(&batch), expected, "round {round}");
        }
        Ok(())
    }

    #[test]
    fn a_child_is_the_node_that_is_made_of_its_parent() -> Result<()> {
        let long = "x".repeat(100);
        let deep = (0..30).try_fold(node!("^deep")?, |node, _| node.with(12_345_678_901_i64))?;
        for parent in [node!("^t")?, node!("^redis", 0)?, node!("^redis", 1, "a list")?, deep] {
            for name in ["", "a", "7", "-1.5", "007", "key:000000001234", "a\0b", "\u{1}", &long] {
                let (mut one, mut other) = (Batch::new(), Batch::new());
                for value in [&b""[..], b"v", b"four", b"value of more bytes than thirty-two"] {
                    one.push_child(&parent, name.as_bytes(), value)?;
                    other.push(&parent.child(name)?, value)?;
                }
                assert_eq!(keys(&one), keys(&other), "{parent} {name:?}");
            }
            let mut batch = Batch::new();
            assert!(batch.push_child(&parent, &[b'x'; 2_000], 1).is_err(), "too long a key");
            assert!(batch.is_empty() && batch.bytes() == 0);
        }
        assert!(Batch::new().push_child(&node!("local")?, b"x", 1).is_err());
        Ok(())
    }
}
