//! What can be wrong with a key.
//!
//! Building a key fails because of the user's input; decoding fails because stored bytes are damaged. Reading a key
//! from text has an error of its own, with the position in the text: see `text.rs`.

use std::fmt;

/// Why a key cannot be built or decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyError {
    /// The name is empty, too long, or has a character a name cannot have.
    InvalidName,
    /// A subscript is longer than [`crate::MAX_SUBSCRIPT`] bytes.
    SubscriptTooLong,
    /// The encoded key would be longer than this limit in bytes.
    KeyTooLong {
        /// The limit of this kind of key in bytes.
        limit: usize,
    },
    /// The key has more than [`crate::MAX_SUBSCRIPTS`] subscripts.
    TooManySubscripts,
    /// Stored bytes are not an encoded key.
    Malformed {
        /// The offset of the damaged part in bytes, from where decoding began.
        at: usize,
        /// What is wrong there.
        what: &'static str,
    },
}

impl KeyError {
    pub(crate) fn malformed(at: usize, what: &'static str) -> KeyError {
        KeyError::Malformed { at, what }
    }

    /// This error for bytes that begin `offset` bytes earlier.
    pub(crate) fn shifted(self, offset: usize) -> KeyError {
        match self {
            KeyError::Malformed { at, what } => KeyError::malformed(at + offset, what),
            other => other,
        }
    }
}

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeyError::InvalidName => f.write_str(
                "invalid name: use a letter, % or _, then letters, digits, %, _ or ., at most 255 bytes",
            ),
            KeyError::SubscriptTooLong => {
                f.write_str("a subscript is longer than 1 MiB; store long data as a value")
            }
            KeyError::KeyTooLong { limit } => {
                write!(f, "the key is longer than {limit} bytes encoded; shorten its subscripts")
            }
            KeyError::TooManySubscripts => {
                f.write_str("more than 255 subscripts; join some of them into one")
            }
            KeyError::Malformed { at, what } => {
                write!(f, "malformed key at byte {at}: {what}; verify the database")
            }
        }
    }
}

impl std::error::Error for KeyError {}
