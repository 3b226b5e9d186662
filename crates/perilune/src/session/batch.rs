//! Many nodes in one operation: all reads of one moment, all writes or none; and batches, for loading.

use std::fmt;

use perilune_key::Value;
use perilune_store::Session as StoreSession;

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

/// Appends bytes, without a call for the few that most keys have.
#[inline(always)]
fn append(to: &mut Vec<u8>, from: &[u8]) {
    match (from.first_chunk::<8>(), from.last_chunk::<8>()) {
        (Some(first), Some(last)) if from.len() <= 16 => {
            let end = to.len() + from.len();
            let mut both = [0; 16];
            both[..8].copy_from_slice(first);
            both[from.len() - 8..from.len()].copy_from_slice(last);
            to.extend_from_slice(&both);
            to.truncate(end);
        }
        _ => to.extend_from_slice(from),
    }
}

impl Batch {
    /// A batch without nodes.
    #[must_use]
    pub fn new() -> Batch {
        Batch::default()
    }

    /// The same with room for so many nodes whose keys and values take so many bytes.
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
            return Err(Error::invalid("a batch is for nodes of the database: their names begin with ^"));
        }
        let start = self.bytes.len();
        append(&mut self.bytes, node.encoded());
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
        let key = |entry: &Entry| &self.bytes[entry.start..entry.key_end()];
        // NB: what is loaded is sorted as a rule; then this is one look at it.
        if !self.entries.is_sorted_by(|a, b| key(a) <= key(b)) {
            self.entries.sort_by(|a, b| key(a).cmp(key(b)));
        }
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

    fn pair(&self, entry: &Entry) -> (&[u8], &[u8]) {
        self.bytes[entry.start..entry.end()].split_at(entry.key_len as usize)
    }
}

impl fmt::Debug for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch").field("len", &self.len()).field("bytes", &self.bytes()).finish()
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

    /// Sets the nodes of `batch`, all or none and at one moment, if each of them has a value or no descendants: as
    /// [`Session::set_if_alone`] of many. Of a node that is in it twice the last value counts. False: nothing was
    /// written, since that is not so, or cannot be told in one operation, as with more than some dozen nodes: then
    /// ask in a transaction. The batch is sorted then.
    ///
    /// # Errors
    /// As [`Session::set`].
    pub fn set_all_if_alone(&mut self, batch: &mut Batch) -> Result<bool> {
        batch.sort();
        let mut pairs: Vec<(&[u8], &[u8])> = Vec::with_capacity(batch.len());
        for pair in batch.entries.iter().map(|entry| batch.pair(entry)) {
            match pairs.last_mut() {
                Some(last) if last.0 == pair.0 => *last = pair,
                _ => pairs.push(pair),
            }
        }
        Ok(self.trees.database.set_all_if_alone(&pairs)?)
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
