//! Building encoded keys.
//!
//! A [`KeyBuf`] grows and shrinks at its end: the key of `^person(7)` is that of `^person` with the code of 7
//! behind it.
//!
//! Invariants
//! - It always holds a valid encoded key: a name, a 0x00 and whole subscript codes. A push that fails leaves it as
//!   it was.
//! - Keys of up to 128 bytes need no heap.
//! - Whether the name is that of a global or of a local does not show in the bytes. It only decides how long the
//!   key may get.

use crate::append::{append, put};
use crate::decode::{prefix_ends, validate};
use crate::encode::{
    encode_int, encode_number, is_plain_string, string_code_len, write_plain_string, write_string,
    MAX_NUMBER_CODE, STRING_END, TAG_STRING,
};
use crate::error::KeyError;
use crate::name::is_name;
use crate::number::Number;
use crate::numeral::parse_canonical;
use crate::subscript::{Subscript, MAX_SUBSCRIPTS};

/// The longest encoded key of a global in bytes.
pub const MAX_ENCODED: usize = 1900;
/// The longest encoded key of a local in bytes: subscripts of 1 MiB, even if all bytes are escaped.
pub const MAX_ENCODED_LOCAL: usize = 4 << 20;
/// The longest subscript in bytes, before encoding.
pub const MAX_SUBSCRIPT: usize = 1 << 20;

const INLINE: usize = 128;
/// A key and a subscript of so many bytes each are put together before they are copied.
const SHORT: usize = 24;
/// What precedes every end of a range: no tag is 0xFF.
pub const RANGE_END: u8 = 0xFF;

/// An encoded key that grows and shrinks at its end.
#[derive(Clone)]
pub struct KeyBuf {
    length: usize,
    limit: usize,
    depth: usize,
    inline: [u8; INLINE],
    /// Holds the key instead of `inline` once it is not empty.
    spill: Vec<u8>,
}

/// A place in a key to return to; see [`KeyBuf::mark`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyMark {
    length: usize,
    depth: usize,
}

impl KeyBuf {
    /// The key of a global without subscripts. `name` is without `^`.
    ///
    /// # Errors
    /// `InvalidName`.
    #[inline]
    pub fn global(name: impl AsRef<[u8]>) -> Result<KeyBuf, KeyError> {
        Self::with_limit(name, MAX_ENCODED)
    }

    /// The key of a local without subscripts.
    ///
    /// # Errors
    /// `InvalidName`.
    #[inline]
    pub fn local(name: impl AsRef<[u8]>) -> Result<KeyBuf, KeyError> {
        Self::with_limit(name, MAX_ENCODED_LOCAL)
    }

    /// A key without subscripts that may grow to `limit` encoded bytes.
    ///
    /// # Errors
    /// `InvalidName`; `KeyTooLong` if the name alone is longer than the limit.
    #[inline]
    pub fn with_limit(name: impl AsRef<[u8]>, limit: usize) -> Result<KeyBuf, KeyError> {
        let mut key = KeyBuf::empty(limit);
        key.set_name(name.as_ref())?;
        Ok(key)
    }

    /// Makes this the key of `name` without subscripts, keeping buffer and limit: cheaper than a
    /// new key where one is built after another. After an error the key is unchanged.
    ///
    /// # Errors
    /// As [`KeyBuf::with_limit`].
    #[inline]
    pub fn set_name(&mut self, name: &[u8]) -> Result<(), KeyError> {
        if !is_name(name) {
            return Err(KeyError::InvalidName);
        }
        if name.len() + 1 > self.limit {
            return Err(KeyError::KeyTooLong { limit: self.limit });
        }
        self.length = 0;
        self.depth = 0;
        let room = self.extend(name.len() + 1)?;
        room[..name.len()].copy_from_slice(name);
        room[name.len()] = 0;
        Ok(())
    }

    /// Takes encoded bytes from outside after checking all of them.
    ///
    /// # Errors
    /// `Malformed`, `TooManySubscripts`, `KeyTooLong`.
    pub fn from_encoded(encoded: &[u8], limit: usize) -> Result<KeyBuf, KeyError> {
        let depth = validate(encoded)?;
        Self::from_parts(encoded, depth, limit)
    }

    /// Takes bytes of a key that this crate encoded before, with its number of subscripts, without
    /// decoding them. Wrong bytes make a key that decoders refuse.
    ///
    /// # Errors
    /// `KeyTooLong`, `TooManySubscripts`.
    #[inline]
    pub fn from_parts(encoded: &[u8], depth: usize, limit: usize) -> Result<KeyBuf, KeyError> {
        let mut key = KeyBuf::empty(limit);
        key.assign(encoded, depth)?;
        Ok(key)
    }

    /// Becomes the key that [`KeyBuf::from_parts`] makes, keeping buffer and limit. After an error the
    /// key is unchanged.
    ///
    /// # Errors
    /// As [`KeyBuf::from_parts`].
    #[inline]
    pub fn assign(&mut self, encoded: &[u8], depth: usize) -> Result<(), KeyError> {
        if depth > MAX_SUBSCRIPTS {
            return Err(KeyError::TooManySubscripts);
        }
        if encoded.len() > self.limit {
            return Err(KeyError::KeyTooLong { limit: self.limit });
        }
        self.length = 0;
        self.extend(encoded.len())?.copy_from_slice(encoded);
        self.depth = depth;
        Ok(())
    }

    #[inline]
    fn empty(limit: usize) -> KeyBuf {
        KeyBuf { length: 0, limit, depth: 0, inline: [0; INLINE], spill: Vec::new() }
    }

    /// The encoded key.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        if self.spill.is_empty() {
            &self.inline[..self.length]
        } else {
            &self.spill[..self.length]
        }
    }

    /// The number of subscripts.
    #[inline]
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// The longest this key may grow in encoded bytes.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// The name, without `^`.
    pub fn name(&self) -> &[u8] {
        self.as_bytes().split(|&byte| byte == 0).next().unwrap_or(&[])
    }

    /// Appends an integer subscript.
    ///
    /// # Errors
    /// `KeyTooLong`, `TooManySubscripts`.
    #[inline]
    pub fn push_int(&mut self, int: i64) -> Result<(), KeyError> {
        let mut code = [0; 16];
        let length = encode_int(int, &mut code);
        let start = self.length;
        let deeper = self.next_depth()?;
        // A copy of constant size beats one of 1 to 9 bytes; the bytes after the code are ours.
        if self.spill.is_empty() && start + 16 <= INLINE && start + length <= self.limit {
            self.inline[start..start + 16].copy_from_slice(&code);
            self.length = start + length;
        } else {
            self.extend(length)?.copy_from_slice(&code[..length]);
        }
        self.depth = deeper;
        Ok(())
    }

    /// Appends a byte string as subscript; it is a number if it is canonical.
    ///
    /// # Errors
    /// `KeyTooLong`, `SubscriptTooLong`, `TooManySubscripts`.
    #[inline]
    pub fn push_bytes(&mut self, bytes: &[u8]) -> Result<(), KeyError> {
        if let Some(number) = parse_canonical(bytes) {
            return self.push_number(number);
        }
        if bytes.len() > MAX_SUBSCRIPT {
            return Err(KeyError::SubscriptTooLong);
        }
        let deeper = self.next_depth()?;
        let (start, length) = (self.length, bytes.len() + 2);
        let room = self.inline.get_mut(start..start + length);
        match (is_plain_string(bytes), room) {
            (true, Some(room)) if self.spill.is_empty() && start + length <= self.limit => {
                write_plain_string(bytes, room);
                self.length = start + length;
            }
            _ => write_string(bytes, self.extend(string_code_len(bytes))?),
        }
        self.depth = deeper;
        Ok(())
    }

    /// Appends to `out` the key that [`KeyBuf::push_bytes`] makes of this one; after an error `out` is unchanged.
    ///
    /// # Errors
    /// As [`KeyBuf::push_bytes`].
    #[inline]
    pub fn append_child(&self, bytes: &[u8], out: &mut Vec<u8>) -> Result<(), KeyError> {
        let fits = bytes.len() <= MAX_SUBSCRIPT && self.length + bytes.len() + 2 <= self.limit;
        if !fits
            || self.depth >= MAX_SUBSCRIPTS
            || !is_plain_string(bytes)
            || parse_canonical(bytes).is_some()
        {
            return self.append_any_child(bytes, out);
        }
        let (key, end) = (self.as_bytes(), out.len() + self.length + bytes.len() + 2);
        if self.length > SHORT || bytes.len() > SHORT {
            append(out, key);
            out.push(TAG_STRING);
            append(out, bytes);
            out.push(STRING_END);
            return Ok(());
        }
        // Put together first, and copied by one copy of constant size; behind the bytes are zeros, which end the code.
        const { assert!(STRING_END == 0) };
        let mut code = [0; 2 * SHORT + 2];
        put(&mut code, 0, key);
        code[key.len()] = TAG_STRING;
        put(&mut code, key.len() + 1, bytes);
        out.extend_from_slice(&code);
        out.truncate(end);
        Ok(())
    }

    #[inline(never)]
    fn append_any_child(&self, bytes: &[u8], out: &mut Vec<u8>) -> Result<(), KeyError> {
        let mut child = self.clone();
        child.push_bytes(bytes)?;
        out.extend_from_slice(child.as_bytes());
        Ok(())
    }

    /// Appends text as subscript, as [`KeyBuf::push_bytes`].
    ///
    /// # Errors
    /// As [`KeyBuf::push_bytes`].
    pub fn push_str(&mut self, text: &str) -> Result<(), KeyError> {
        self.push_bytes(text.as_bytes())
    }

    /// Appends a number as subscript.
    ///
    /// # Errors
    /// `KeyTooLong`, `TooManySubscripts`.
    #[inline]
    pub fn push_number(&mut self, number: Number) -> Result<(), KeyError> {
        if let Some(int) = number.as_i64() {
            return self.push_int(int);
        }
        let mut code = [0; MAX_NUMBER_CODE];
        let length = encode_number(number, &mut code);
        let deeper = self.next_depth()?;
        self.extend(length)?.copy_from_slice(&code[..length]);
        self.depth = deeper;
        Ok(())
    }

    /// Appends a subscript.
    ///
    /// # Errors
    /// As [`KeyBuf::push_bytes`].
    pub fn push_subscript(&mut self, subscript: &Subscript<'_>) -> Result<(), KeyError> {
        match subscript {
            Subscript::Number(number) => self.push_number(*number),
            Subscript::Bytes(bytes) => self.push_bytes(bytes),
        }
    }

    /// Appends the code of one subscript that this crate encoded before, unchecked.
    ///
    /// # Errors
    /// `KeyTooLong`, `TooManySubscripts`.
    #[inline]
    pub fn push_code(&mut self, code: &[u8]) -> Result<(), KeyError> {
        let deeper = self.next_depth()?;
        self.extend(code.len())?.copy_from_slice(code);
        self.depth = deeper;
        Ok(())
    }

    /// Removes the last subscript; `false` if there is none.
    pub fn pop(&mut self) -> bool {
        self.depth > 0 && self.truncate_depth(self.depth - 1)
    }

    /// Keeps the first `depth` subscripts; `false`, changing nothing, if there are fewer.
    pub fn truncate_depth(&mut self, depth: usize) -> bool {
        let end = prefix_ends(self.as_bytes()).ok().and_then(|mut ends| ends.nth(depth)).and_then(Result::ok);
        match end {
            Some(end) if depth <= self.depth => {
                self.length = end;
                self.depth = depth;
                true
            }
            _ => false,
        }
    }

    /// Remembers the present end, to return to it without decoding.
    #[inline]
    pub fn mark(&self) -> KeyMark {
        KeyMark { length: self.length, depth: self.depth }
    }

    /// Returns to a mark taken of this key when it was a prefix of the present one.
    ///
    /// # Panics
    /// If the key has become shorter than the mark.
    #[inline]
    pub fn truncate(&mut self, mark: KeyMark) {
        assert!(
            mark.length <= self.length && mark.depth <= self.depth,
            "a mark must be of a prefix of the key"
        );
        self.length = mark.length;
        self.depth = mark.depth;
    }

    /// Calls `use_end` with the end (exclusive) of the subtree of this key: the least byte string
    /// above the key and all its descendants.
    #[inline]
    pub fn with_subtree_end<R>(&mut self, use_end: impl FnOnce(&[u8]) -> R) -> R {
        let length = self.length;
        if self.spill.is_empty() && length < INLINE {
            self.inline[length] = RANGE_END;
            return use_end(&self.inline[..=length]);
        }
        if self.spill.is_empty() {
            self.spill.extend_from_slice(&self.inline[..length]);
        }
        self.spill.resize(self.spill.len().max(length + 1), 0);
        self.spill[length] = RANGE_END;
        use_end(&self.spill[..=length])
    }

    #[inline]
    fn next_depth(&self) -> Result<usize, KeyError> {
        if self.depth >= MAX_SUBSCRIPTS {
            return Err(KeyError::TooManySubscripts);
        }
        Ok(self.depth + 1)
    }

    /// Lengthens the key by `count` bytes and returns them for writing.
    #[inline]
    fn extend(&mut self, count: usize) -> Result<&mut [u8], KeyError> {
        let start = self.length;
        let end = start + count;
        if end > self.limit {
            return Err(KeyError::KeyTooLong { limit: self.limit });
        }
        self.length = end;
        if self.spill.is_empty() {
            if end <= INLINE {
                return Ok(&mut self.inline[start..end]);
            }
            self.spill.reserve(end.max(2 * INLINE));
            self.spill.extend_from_slice(&self.inline[..start]);
        }
        if self.spill.len() < end {
            self.spill.resize(end, 0);
        }
        Ok(&mut self.spill[start..end])
    }
}

impl AsRef<[u8]> for KeyBuf {
    fn as_ref(&self) -> &[u8] {
        self.as_bytes()
    }
}

impl PartialEq for KeyBuf {
    fn eq(&self, other: &Self) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl Eq for KeyBuf {}

impl PartialOrd for KeyBuf {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for KeyBuf {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.as_bytes().cmp(other.as_bytes())
    }
}

impl std::hash::Hash for KeyBuf {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.as_bytes().hash(state);
    }
}
