//! `perilune_node`: the address of a node as a flat block of the caller's memory.
//!
//! Invariants
//! - The block is a [`Head`] and the encoded key right behind it; `key_size` bytes of it are a whole
//!   key, whose first `parent_size` bytes are the parent's.
//! - A block is written only when all of it fits; a failure leaves it as it was.
//! - Nothing here touches a database or allocates for a key of up to 128 bytes.

pub mod build;
pub mod inspect;

use std::ffi::c_void;

use perilune::key::{prefix_ends, KeyBuf, MAX_SUBSCRIPTS};

use crate::edge::{place, store, TOO_SMALL};
use crate::status::{Answer, Failure, OK};
use crate::value::Given;

/// Longest key in the database and in private names.
pub(crate) const KEY_BYTES: usize = perilune::limits::KEY_BYTES;
pub(crate) const PRIVATE_KEY_BYTES: usize = perilune::limits::LOCAL_KEY_BYTES;

/// The flag of a name without `^`.
const PRIVATE: u16 = 1;

/// `perilune_node`, without the key that follows it.
#[repr(C, align(8))]
#[derive(Clone, Copy)]
pub struct Head {
    /// Bytes of the encoded key that follow.
    pub key_size: u32,
    /// Bytes of the parent's key.
    pub parent_size: u32,
    /// Number of subscripts.
    pub depth: u16,
    /// `PERILUNE_NODE_PRIVATE`.
    pub flags: u16,
    /// Reserved for later versions: 0.
    pub reserved: u32,
    /// For the library's own use; today 0.
    pub hint: [u64; 2],
}

const _: () = assert!(size_of::<Head>() == 32 && align_of::<Head>() == 8);

/// What a node of the caller says.
#[derive(Clone, Copy)]
pub(crate) struct View<'a> {
    pub(crate) key: &'a [u8],
    pub(crate) depth: usize,
    pub(crate) private: bool,
    parent_size: usize,
}

impl<'a> View<'a> {
    /// The node at `node`.
    ///
    /// # Safety
    /// `node` is NULL, or a block that a function of this library built and that stays for `'a`.
    #[inline]
    pub(crate) unsafe fn of(node: *const Head) -> Result<View<'a>, Failure> {
        // SAFETY: the caller's promise: a head is there.
        let head = unsafe { crate::edge::given(node)? };
        let size = head.key_size as usize;
        // No key is shorter than a name of one letter and its end.
        if !(2..=PRIVATE_KEY_BYTES).contains(&size)
            || head.parent_size as usize > size
            || usize::from(head.depth) > MAX_SUBSCRIPTS
        {
            return Err(NO_NODE);
        }
        // SAFETY: the caller's promise: the key follows the head in the same block.
        let key = unsafe { std::slice::from_raw_parts(node.add(1).cast::<u8>(), size) };
        Ok(View {
            key,
            depth: usize::from(head.depth),
            private: head.flags & PRIVATE != 0,
            parent_size: head.parent_size as usize,
        })
    }

    /// The key of the parent; of a name, nothing.
    pub(crate) fn parent_key(&self) -> &'a [u8] {
        &self.key[..self.parent_size]
    }

    pub(crate) fn limit(&self) -> usize {
        if self.private {
            PRIVATE_KEY_BYTES
        } else {
            KEY_BYTES
        }
    }

    /// The key, ready to grow.
    pub(crate) fn to_key(self) -> Result<KeyBuf, Failure> {
        Ok(KeyBuf::from_parts(self.key, self.depth, self.limit())?)
    }

    /// The parent's key, ready to grow.
    fn to_parent_key(self) -> Result<KeyBuf, Failure> {
        if self.depth == 0 {
            return Err(Failure::invalid(c"a name without subscripts has no last subscript"));
        }
        Ok(KeyBuf::from_parts(self.parent_key(), self.depth - 1, self.limit())?)
    }
}

const NO_NODE: Failure =
    Failure::invalid(c"the block is no node: build it with perilune_node_root and _child");

/// Appends a subscript from C.
pub(crate) fn push(key: &mut KeyBuf, subscript: Given<'_>) -> Result<(), Failure> {
    match subscript {
        Given::Int(int) => key.push_int(int)?,
        Given::Bytes(bytes) => key.push_bytes(bytes)?,
        Given::Number(number) => key.push_number(number)?,
    }
    Ok(())
}

/// A block of the caller's to build a node in.
#[derive(Clone, Copy)]
pub(crate) struct Block {
    pub(crate) buffer: *mut c_void,
    pub(crate) capacity: usize,
    pub(crate) size: *mut usize,
}

/// The key of a node about to be written.
#[derive(Clone, Copy)]
pub(crate) struct Parts<'a> {
    /// The parent's key, or the name's own with `last` empty.
    pub(crate) front: &'a [u8],
    /// The code of the last subscript.
    pub(crate) last: &'a [u8],
    pub(crate) depth: usize,
    pub(crate) private: bool,
}

impl Block {
    /// Writes a node, whose parent is the front unless `parts` is a name.
    ///
    /// # Safety
    /// `buffer` is NULL or good for writing `capacity` bytes, and overlaps `parts` not at all or, with
    /// the front, exactly where the front is written to; `size` is NULL or good for writing.
    #[inline]
    pub(crate) unsafe fn write(self, parts: Parts<'_>) -> Answer {
        let Parts { front, last, depth, private } = parts;
        let key_size = front.len() + last.len();
        let need = size_of::<Head>() + key_size;
        // SAFETY: the caller's promise.
        unsafe { store(self.size, need) };
        if self.buffer.is_null() || need > self.capacity {
            return Err(TOO_SMALL);
        }
        let head = place(self.buffer.cast::<Head>())?;
        if !head.is_aligned() {
            return Err(Failure::invalid(c"the buffer of a node must be aligned to 8 bytes"));
        }
        let parent_size = if depth == 0 { 0 } else { front.len() };
        let content = Head {
            // No key is longer than PRIVATE_KEY_BYTES, and no node deeper than MAX_SUBSCRIPTS.
            key_size: key_size as u32,
            parent_size: parent_size as u32,
            depth: depth as u16,
            flags: if private { PRIVATE } else { 0 },
            reserved: 0,
            hint: [0; 2],
        };
        // SAFETY: the block has room for head and key, is aligned, and overlaps only as `copy` allows.
        unsafe {
            let key = head.add(1).cast::<u8>();
            std::ptr::copy(front.as_ptr(), key, front.len());
            std::ptr::copy_nonoverlapping(last.as_ptr(), key.add(front.len()), last.len());
            head.write(content);
        }
        Ok(OK)
    }

    /// Writes the node of a key of any depth.
    ///
    /// # Safety
    /// As [`Block::write`].
    pub(crate) unsafe fn write_key(self, key: &[u8], depth: usize, private: bool) -> Answer {
        let parent = parent_size(key, depth)?;
        let (front, last) = if depth == 0 { (key, &key[..0]) } else { key.split_at(parent) };
        // SAFETY: the caller's promise.
        unsafe { self.write(Parts { front, last, depth, private }) }
    }
}

/// Where the parent of a key with `depth` subscripts ends.
fn parent_size(key: &[u8], depth: usize) -> Result<usize, Failure> {
    if depth == 0 {
        return Ok(0);
    }
    let end = prefix_ends(key)?.nth(depth - 1);
    Ok(end.transpose()?.unwrap_or(0))
}

/// The number of subscripts of a key.
pub(crate) fn depth_of(key: &[u8]) -> Result<usize, Failure> {
    let mut ends = 0;
    for end in prefix_ends(key)? {
        end?;
        ends += 1;
    }
    Ok(ends - 1)
}
