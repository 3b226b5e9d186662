//! Entries of a cursor: one at a time, or many in one call.
//!
//! Invariants
//! - While a batch grows its entries hold offsets; they become addresses when it is complete, since
//!   the memory may move until then.
//! - A batch ends early at `BATCH_BYTES`, so that large values do not pile up.

use perilune::key::{code_len, decode_int, decode_subscript, prefix_ends};
use perilune::{Cursor, NodeRef};

use crate::node::{Block, Head, Parts};
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
    /// Where its name ends, and each of its subscripts.
    ends: Vec<usize>,
    /// There was an entry.
    begun: bool,
}

/// The last subscript of the entry at which `walk` stands, or its name.
#[inline(never)]
pub(super) fn subscript(walk: &Cursor, text: &mut Text) -> Result<Value, Failure> {
    // A cursor over children knows where the last subscript begins; only a name has none.
    if let Ok(subscript) = walk.subscript() {
        return Ok(Value::subscript(subscript, text));
    }
    let node = walk.node_ref()?;
    Ok(Value::string(text.name(node.name()?, node.is_local())))
}

/// The value of the entry at which `walk` stands.
#[inline(never)]
pub(super) fn value(walk: &Cursor, text: &mut Text) -> Result<Value, Failure> {
    Ok(walk.value()?.map_or(Value::absent(), |value| Value::view(value, text)))
}

/// How many bytes two keys begin with in common; eight are compared at a time.
fn common_length(one: &[u8], other: &[u8]) -> usize {
    let (words, rest) = one.as_chunks::<8>();
    let (other_words, _) = other.as_chunks::<8>();
    let equal = words.iter().zip(other_words).take_while(|(a, b)| a == b).count();
    let from = 8 * equal;
    let one = words.get(equal).map_or(rest, |word| &word[..]);
    from + one.iter().zip(&other[from..]).take_while(|(a, b)| a == b).count()
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
        values: bool,
        nodes: bool,
        data: i32,
    ) -> Result<(), Failure> {
        let node = walk.node_ref()?;
        let mut text = Text::new();
        let (depth, shared, parent, subscript) = match children {
            Some(depth) => {
                let shared = if self.begun { depth - 1 } else { 0 };
                let subscript = match walk.integer() {
                    Some(int) => Value::int(int),
                    None => subscript(walk, &mut text)?,
                };
                (depth, shared, None, subscript)
            }
            None => {
                let (depth, shared) = self.place(node.encoded())?;
                let parent = self.ends.iter().rev().nth(1).copied();
                (depth, shared, parent, self.last_subscript(walk, node, &mut text)?)
            }
        };
        self.begun = true;
        let subscript = self.collect(subscript);
        let value = match walk.integer_value() {
            _ if !values => Value::absent(),
            Some(int) => Value::int(int),
            None => {
                let value = value(walk, &mut text)?;
                self.collect(value)
            }
        };
        let place = if nodes { self.copy_node(node, usize::from(depth), parent)? } else { 0 };
        // An offset for now; `write` makes it an address.
        let node = std::ptr::without_provenance(place);
        self.entries.push(Entry { subscript, value, data, depth, shared, node });
        Ok(())
    }

    /// The depth of `key` and how many subscripts it shares with the key before, which it becomes.
    fn place(&mut self, key: &[u8]) -> Result<(u16, u16), Failure> {
        let common = common_length(key, &self.last);
        self.last.clear();
        // A code ends by what it says itself: those within what both keys begin with end where they did.
        let kept = self.ends.iter().take_while(|end| **end <= common).count();
        self.ends.truncate(kept);
        let mut end = match self.ends.last() {
            Some(end) => *end,
            None => {
                let name = prefix_ends(key)?.next().transpose()?.unwrap_or(key.len());
                self.ends.push(name);
                name
            }
        };
        while end < key.len() {
            end += code_len(&key[end..])?;
            self.ends.push(end);
        }
        self.last.extend_from_slice(key);
        // The name is the first end, and is none of the subscripts.
        Ok((self.ends.len() as u16 - 1, kept.saturating_sub(1) as u16))
    }

    /// The last subscript of a node that was placed just now, or its name.
    fn last_subscript(&self, walk: &Cursor, node: NodeRef<'_>, text: &mut Text) -> Result<Value, Failure> {
        let [.., start, _] = self.ends[..] else { return subscript(walk, text) };
        let code = &node.encoded()[start..];
        match decode_int(code) {
            Some(int) => Ok(Value::int(int)),
            None => Ok(Value::subscript(decode_subscript(code)?.0, text)),
        }
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

    /// Copies a node to the batch; returns where it lies, in words, plus one. `parent` is where its parent's key ends, if that
    /// is known.
    fn copy_node(
        &mut self,
        node: NodeRef<'_>,
        depth: usize,
        parent: Option<usize>,
    ) -> Result<usize, Failure> {
        let start = self.nodes.len();
        let words = (size_of::<Head>() + node.encoded().len()).div_ceil(8);
        self.nodes.resize(start + words, 0);
        let block = Block {
            buffer: self.nodes[start..].as_mut_ptr().cast(),
            capacity: 8 * words,
            size: std::ptr::null_mut(),
        };
        // SAFETY: the block is ours, aligned to words, and has that capacity; the key lies in the cursor.
        unsafe {
            match parent.map(|end| node.encoded().split_at(end)) {
                Some((front, last)) => block.write(Parts { front, last, depth, private: node.is_local() })?,
                None => block.write_key(node.encoded(), depth, node.is_local())?,
            }
        };
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

#[cfg(test)]
mod tests {
    use super::common_length;

    #[test]
    fn what_keys_have_in_common_is_counted_to_the_byte() {
        let key: Vec<u8> = (0..40).collect();
        for length in 0..40 {
            for other in 0..40 {
                assert_eq!(common_length(&key[..length], &key[..other]), length.min(other));
            }
            for at in 0..length {
                let mut other = key[..length].to_vec();
                other[at] ^= 1;
                assert_eq!(common_length(&key[..length], &other), at);
            }
        }
    }
}
