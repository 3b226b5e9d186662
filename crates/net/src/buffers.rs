//! Buffers of a thread: one that it reads into, and some for replies, so that an idle connection keeps none.
//!
//! ```
//! use perilune_net::buffers::Buffers;
//!
//! let mut lent = Buffers::default();
//! let input = lent.take_input();
//! assert!(!input.is_empty() && lent.lacks_input(), "it is with a connection now");
//! lent.give_input(input);
//! ```
//!
//! Invariant: no more are kept than the connections of a round need, and none is larger than one read.

use crate::limits::{READ_BYTES, SAID};

/// Those of one thread, lent to the connection that is being served, and to those that have something to say.
#[derive(Debug)]
pub struct Buffers {
    input: Vec<u8>,
    /// For replies.
    outputs: Vec<Vec<u8>>,
    /// Bytes that connections have read, until they are counted.
    pub came: u64,
    /// Bytes that they have written.
    pub went: u64,
}

impl Default for Buffers {
    fn default() -> Buffers {
        Buffers { input: vec![0; READ_BYTES], outputs: Vec::new(), came: 0, went: 0 }
    }
}

impl Buffers {
    /// The one to read into; empty if it is lent.
    #[inline]
    pub fn take_input(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.input)
    }

    /// Whether it is lent.
    #[inline]
    pub fn lacks_input(&self) -> bool {
        self.input.is_empty()
    }

    /// It is back, or another one is in its place.
    #[inline]
    pub fn give_input(&mut self, input: Vec<u8>) {
        self.input = input;
    }

    /// One for replies.
    #[inline]
    pub fn take_output(&mut self) -> Vec<u8> {
        self.outputs.pop().unwrap_or_default()
    }

    /// One for replies is back, empty.
    #[inline]
    pub fn give_output(&mut self, mut output: Vec<u8>) {
        if self.outputs.len() < SAID {
            output.shrink_to(READ_BYTES);
            self.outputs.push(output);
        }
    }
}
