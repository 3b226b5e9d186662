//! Entries of a cursor: one at a time, or many in one call.
//!
//! Invariants
//! - While a batch grows its entries hold offsets; they become addresses when it is complete, since
//!   the memory may move until then.
//! - A batch ends early at `BATCH_BYTES`, so that large values do not pile up.

use perilune::key::prefix_ends;
use perilune::{Cursor, NodeRef};

use crate::node::{Block, Head};
use crate::status::Failure;
use crate::value::{Bytes, Content, Text, Value, DECIMAL, STRING};

/// Bytes of keys and values that one batch collects at most, the last entry aside.
const BATCH_BYTES: usize = 1 << 20;

/// `perilune_entry`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Entry {
    /// The last subscript, or the name.
    pub subscript: Value,
    /// The value, if asked for.
    pub value: Value,
    /// 1, 10 or 11, if asked for.
    pub data: i32,
    /// Number of subscripts.
    pub depth: u16,
    /// How many of them the entry before had, too.
    pub shared: u16,
    /// The node, if asked for.
    pub node: *const Head,
}

const _: () = assert!(size_of::<Entry>() == 64);

/// The entries of one call and the memory they lie in.
#[derive(Default)]
pub(super) struct Batch {
    entries: Vec<Entry>,
    bytes: Vec<u8>,
    /// Nodes, aligned; an entry's `node` is an offset in words, plus one.
    nodes: Vec<u64>,
    /// The key of the last entry of a subtree, also of the batch before.
    last: Vec<u8>,
    /// There was an entry.
    begun: bool,
}

/// The last subscript of the entry at which `walk` stands, or its name.
#[inline]
pub(super) fn subscript(walk: &Cursor, text: &mut Text) -> Result<Value, Failure> {
    match walk.integer() {
        Some(int) => Ok(Value::int(int)),
        None => any_subscript(walk, text),
    }
}

fn any_subscript(walk: &Cursor, text: &mut Text) -> Result<Value, Failure> {
    // A cursor over children knows where the last subscript begins; only a name has none.
    if let Ok(subscript) = walk.subscript() {
        return Ok(Value::subscript(subscript, text));
    }
    let node = walk.node_ref()?;
    Ok(Value::string(text.name(node.name()?, node.is_local())))
}

/// The value of the entry at which `walk` stands.
pub(super) fn value(walk: &Cursor, text: &mut Text) -> Result<Value, Failure> {
    Ok(walk.value()?.map_or(Value::absent(), |value| Value::view(value, text)))
}

impl Batch {
    pub(super) fn clear(&mut self) {
        self.entries.clear();
        self.bytes.clear();
        self.nodes.clear();
    }

    pub(super) fn takes_more(&self, capacity: usize) -> bool {
        self.entries.len() < capacity && self.bytes.len() + 8 * self.nodes.len() < BATCH_BYTES
    }

    /// Adds the entry at which `walk` stands; `children` is the depth of those that it goes over.
    pub(super) fn add(
        &mut self,
        walk: &Cursor,
        children: Option<u16>,
        (values, nodes): (bool, bool),
        data: i32,
    ) -> Result<(), Failure> {
        let node = walk.node_ref()?;
        let (depth, shared) = match children {
            Some(depth) => (depth, if self.begun { depth - 1 } else { 0 }),
            None => self.place(node.encoded())?,
        };
        self.begun = true;
        let mut text = Text::new();
        let subscript = subscript(walk, &mut text)?;
        let subscript = self.collect(subscript);
        let value = if values { value(walk, &mut text)? } else { Value::absent() };
        let value = self.collect(value);
        let place = if nodes { self.copy_node(node, usize::from(depth))? } else { 0 };
        // An offset for now; `write` makes it an address.
        let node = std::ptr::without_provenance(place);
        self.entries.push(Entry { subscript, value, data, depth, shared, node });
        Ok(())
    }

    /// The depth of `key` and how many subscripts it shares with the key before, which it becomes.
    fn place(&mut self, key: &[u8]) -> Result<(u16, u16), Failure> {
        let common = key.iter().zip(&self.last).take_while(|(a, b)| a == b).count();
        let (mut ends, mut shared) = (0u16, 0u16);
        for end in prefix_ends(key)? {
            shared += u16::from(end? <= common);
            ends += 1;
        }
        self.last.clear();
        self.last.extend_from_slice(key);
        // The name is the first end, and is none of the subscripts.
        Ok((ends - 1, shared.saturating_sub(1)))
    }

    /// Copies the bytes of a string or decimal to the batch and makes its pointer an offset.
    fn collect(&mut self, mut value: Value) -> Value {
        if value.kind == STRING || value.kind == DECIMAL {
            // SAFETY: of these types the bytes are meant, and they lie in the cursor or a living `Text`.
            let bytes = unsafe {
                let Bytes { p, n } = value.content.s;
                std::slice::from_raw_parts(p.cast::<u8>(), n)
            };
            let offset = self.bytes.len();
            self.bytes.extend_from_slice(bytes);
            value.content = Content { s: Bytes { p: std::ptr::without_provenance(offset), n: bytes.len() } };
        }
        value
    }

    /// Copies a node to the batch; returns where it lies, in words, plus one.
    fn copy_node(&mut self, node: NodeRef<'_>, depth: usize) -> Result<usize, Failure> {
        let start = self.nodes.len();
        let words = (size_of::<Head>() + node.encoded().len()).div_ceil(8);
        self.nodes.resize(start + words, 0);
        let block = Block {
            buffer: self.nodes[start..].as_mut_ptr().cast(),
            capacity: 8 * words,
            size: std::ptr::null_mut(),
        };
        // SAFETY: the block is ours, aligned to words, and has that capacity; the key lies in the cursor.
        unsafe { block.write_key(node.encoded(), depth, node.is_local())? };
        Ok(start + 1)
    }

    /// Writes the entries with their addresses to the caller's array; returns how many.
    ///
    /// # Safety
    /// `to` is good for writing as many entries as [`Batch::takes_more`] let in.
    pub(super) unsafe fn write(&self, to: *mut Entry) -> usize {
        for (index, entry) in self.entries.iter().enumerate() {
            let mut entry = *entry;
            self.settle(&mut entry.subscript);
            self.settle(&mut entry.value);
            entry.node = match entry.node.addr() {
                0 => std::ptr::null(),
                place => self.nodes[place - 1..].as_ptr().cast(),
            };
            // SAFETY: the caller's promise.
            unsafe { to.add(index).write(entry) };
        }
        self.entries.len()
    }

    /// Makes the offset in `value` an address.
    fn settle(&self, value: &mut Value) {
        if value.kind == STRING || value.kind == DECIMAL {
            // SAFETY: of these types the bytes are meant; `collect` put an offset there.
            let Bytes { p, n } = unsafe { value.content.s };
            value.content = Content { s: Bytes { p: self.bytes[p.addr()..].as_ptr().cast(), n } };
        }
    }
}
