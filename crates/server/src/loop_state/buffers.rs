//! The buffers of a thread.

use crate::limits::READ_BYTES;
use crate::statistics::Traffic;

/// Buffers of a thread, lent to the connection that is being served, and to those that have something to say.
#[derive(Debug)]
pub(crate) struct Buffers {
    pub(crate) input: Vec<u8>,
    /// For replies.
    pub(crate) outputs: Vec<Vec<u8>>,
    /// What connections have read and written, until it is counted.
    pub(crate) traffic: Traffic,
}

impl Buffers {
    pub(crate) fn new() -> Buffers {
        Buffers { input: vec![0; READ_BYTES], outputs: Vec::new(), traffic: Traffic::default() }
    }
}
