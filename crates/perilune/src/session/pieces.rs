//! Pieces of strings: a part of a long one takes no more time than the part.
//!
//! Invariant: what is told of one string in one call, its length and its bytes, is of one moment.
//!
//! Deliberately absent: values that are no strings, which are short.

use std::ops::Range;

use perilune_key::ValueRef;
use perilune_store::Bulk;

use crate::value::type_name;
use crate::{Error, NodeRef, Result, Session};

/// Bytes of a stored string before its own: its tag.
const TAG: usize = 1;

/// A piece of a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece<'s> {
    /// Its bytes, as far as the string has such.
    pub bytes: &'s [u8],
    /// How many bytes the whole string has.
    pub length: usize,
}

impl Session {
    /// The bytes `range` of the string at `node`, as far as it has such, and how long it is; `None` if the node has no
    /// value. They last until the next operation.
    ///
    /// ```
    /// # let directory = std::env::temp_dir().join(format!("perilune-doc-pieces-{}", std::process::id()));
    /// # std::fs::create_dir_all(&directory).unwrap();
    /// # let mut session = perilune::Database::open(directory.join("t.db"))?.session()?;
    /// let book = perilune::node!("^book", 1)?;
    /// session.set(&book, "x".repeat(100_000) + "the end")?;
    /// let piece = session.get_piece(&book, 100_004..200_000)?.unwrap();
    /// assert_eq!((piece.bytes, piece.length), (&b"end"[..], 100_007));
    /// # let _ = std::fs::remove_dir_all(&directory);
    /// # Ok::<(), perilune::Error>(())
    /// ```
    ///
    /// # Errors
    /// `WrongType` if the value is no string; else as [`Session::get`].
    pub fn get_piece<'n>(
        &mut self,
        node: impl Into<NodeRef<'n>>,
        range: Range<usize>,
    ) -> Result<Option<Piece<'_>>> {
        let node = node.into();
        let own = range.start.saturating_add(TAG)..range.end.saturating_add(TAG);
        let tree = self.trees.of(node.is_local());
        let Some(length) = tree.get_pieces(node.encoded(), &[0..TAG, own], &mut self.value)? else {
            return Ok(None);
        };
        if !matches!(ValueRef::decode(&self.value[..TAG.min(self.value.len())]), Ok(ValueRef::String(_))) {
            return self.no_string(node);
        }
        Ok(Some(Piece { bytes: &self.value[TAG..], length: length - TAG }))
    }

    /// How many bytes the string at `node` has; `None` if the node has no value.
    ///
    /// # Errors
    /// As [`Session::get_piece`].
    pub fn get_length<'n>(&mut self, node: impl Into<NodeRef<'n>>) -> Result<Option<usize>> {
        Ok(self.get_piece(node, 0..0)?.map(|piece| piece.length))
    }

    /// Writes `bytes` over the string at `node` from `offset` on, and returns how many bytes it has then. A shorter string grows,
    /// with zeros up to `offset`; a node without a value becomes a string.
    ///
    /// ```
    /// # let directory = std::env::temp_dir().join(format!("perilune-doc-patch-{}", std::process::id()));
    /// # std::fs::create_dir_all(&directory).unwrap();
    /// # let mut session = perilune::Database::open(directory.join("t.db"))?.session()?;
    /// let book = perilune::node!("^book", 1)?;
    /// session.set(&book, "x".repeat(100_000))?;
    /// assert_eq!(session.set_piece(&book, 50_000, "here")?, 100_000);
    /// assert_eq!(session.get_piece(&book, 49_999..50_005)?.unwrap().bytes, b"xherex");
    /// # let _ = std::fs::remove_dir_all(&directory);
    /// # Ok::<(), perilune::Error>(())
    /// ```
    ///
    /// # Errors
    /// `WrongType` if the value is no string; else as [`Session::set`].
    pub fn set_piece<'n>(
        &mut self,
        node: impl Into<NodeRef<'n>>,
        offset: usize,
        bytes: impl AsRef<[u8]>,
    ) -> Result<usize> {
        let (node, bytes) = (node.into(), bytes.as_ref());
        if self.depth() > 0 {
            return self.put_piece(node, offset, bytes);
        }
        if !node.is_local() && self.trees.database.is_far() {
            // One request does it, if there is a string.
            let length = self.trees.database.set_piece(node.encoded(), offset.saturating_add(TAG), bytes)?;
            if let Some(length) = length {
                return Ok(length - TAG);
            }
        }
        self.transaction(|session| session.put_piece(node, offset, bytes))
    }

    fn put_piece(&mut self, node: NodeRef<'_>, offset: usize, bytes: &[u8]) -> Result<usize> {
        let Some(length) = self.get_length(node)? else {
            let end = offset.saturating_add(bytes.len());
            if end > crate::limits::VALUE_BYTES {
                let limit = crate::limits::VALUE_BYTES;
                return Err(perilune_store::Error::ValueTooLong { bytes: end, limit }.into());
            }
            let mut whole = vec![0; offset];
            whole.extend_from_slice(bytes);
            self.set(node, &whole[..])?;
            return Ok(end);
        };
        if bytes.is_empty() {
            return Ok(length);
        }
        let offset = offset.saturating_add(TAG);
        let length = self.trees.of(node.is_local()).set_piece(node.encoded(), offset, bytes)?;
        Ok(length.map_or(0, |length| length - TAG))
    }

    /// The error for a value that is no string.
    fn no_string<T>(&mut self, node: NodeRef<'_>) -> Result<T> {
        let found = self.get_ref(node)?;
        Err(Error::WrongType {
            wanted: "a string",
            found: found.map_or("nothing", |value| type_name(&value)),
        })
    }
}
