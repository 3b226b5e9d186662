//! Ranges of encoded keys: subtrees, children, siblings.
//!
//! With P an encoded key: its subtree is exactly the keys that start with P, that is `P ..= x < P FF`.
//! Children and siblings are found by seeking:
//!
//! | wanted | seek | then |
//! |---|---|---|
//! | first child of P | first key > P and < P FF | [`child_of`] |
//! | last child of P | last key < P FF, unless it is P | [`child_of`] |
//! | sibling after C | first key >= C FF and < P FF | [`child_of`] |
//! | sibling before C | last key < C, if it starts with P and is not P | [`child_of`] |
//! | next name | first key >= name 00 FF | [`name_of`] |
//!
//! None of the keys sought from need exist. The functions with `out` clear it first, so that one
//! buffer serves a whole walk.

use crate::decode::{code_len, split_name};
use crate::encode::TAG_EMPTY;
use crate::error::KeyError;

pub use crate::key::RANGE_END;

/// Writes the exclusive end of the subtree of `key`, also the inclusive start for the sibling after
/// it.
pub fn subtree_end(key: &[u8], out: &mut Vec<u8>) {
    out.clear();
    out.reserve(key.len() + 1);
    out.extend_from_slice(key);
    out.push(RANGE_END);
}

/// Writes the inclusive start of what follows child `child` and its subtree.
pub fn after_child(child: &[u8], out: &mut Vec<u8>) {
    subtree_end(child, out);
}

/// Writes the inclusive start of the children of `parent` other than `""` and its subtree, where
/// M's `$ORDER` begins.
pub fn after_empty_child(parent: &[u8], out: &mut Vec<u8>) {
    out.clear();
    out.reserve(parent.len() + 2);
    out.extend_from_slice(parent);
    out.extend_from_slice(&[TAG_EMPTY, RANGE_END]);
}

/// Whether `key` is `root` or a descendant of it.
#[inline]
pub fn in_subtree(root: &[u8], key: &[u8]) -> bool {
    key.starts_with(root)
}

/// The child of `parent` on the way to `key`, as a prefix of `key`; `None` if `key` is no
/// descendant of `parent`.
///
/// # Errors
/// `Malformed` if the subscript after `parent` is damaged.
#[inline]
pub fn child_of<'a>(parent: &[u8], key: &'a [u8]) -> Result<Option<&'a [u8]>, KeyError> {
    if key.len() <= parent.len() || !in_subtree(parent, key) {
        return Ok(None);
    }
    let length = code_len(&key[parent.len()..]).map_err(|error| error.shifted(parent.len()))?;
    Ok(Some(&key[..parent.len() + length]))
}

/// The unsubscripted key `key` belongs to, as a prefix of it (name and 0x00).
///
/// # Errors
/// `Malformed` if there is no name.
pub fn name_of(key: &[u8]) -> Result<&[u8], KeyError> {
    let (name, _) = split_name(key)?;
    Ok(&key[..=name.len()])
}
