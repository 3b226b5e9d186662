//! What arrives: read into a buffer of the thread, and kept by the connection only as far as it cannot be run yet.
//!
//! Nearly every request comes whole, with one read: then it is run where it has been read to, and nothing is copied. The rest of
//! one that has come in part is kept, and what is read next is appended to it.
//!
//! Invariants
//! - An idle connection keeps no buffer, and one that waits for the end of a request no more room than is missing of it.
//! - The thread has its buffer back when a connection has been served, whatever came of that.

use std::io;
use std::ops::Range;

use super::Connection;
use crate::buffers::Buffers;
use crate::limits::{READ_BYTES, ROOM_BYTES};
use crate::protocol::{Client, Protocol};

impl<P: Protocol> Connection<P> {
    /// Reads into the thread's buffer, or behind what the connection has kept, and answers that and where
    /// what has come ends; none when nothing came.
    pub(super) fn receive(
        &mut self,
        mut kept: Vec<u8>,
        lent: &mut Buffers,
    ) -> io::Result<Option<(Vec<u8>, usize)>> {
        let (mut buffer, start) = if kept.is_empty() {
            (lent.take_input(), 0)
        } else {
            let start = kept.len();
            // NB: the room is filled with zeros for each read, so it is no more than a read may fill.
            let missing = P::missing(&self.reader, start);
            let room = missing.clamp(READ_BYTES, ROOM_BYTES);
            if kept.capacity() - start < room {
                // Twice as much as before, but no more than is missing: what nothing will come into counts as well.
                kept.reserve_exact(room.max(missing.min(start)));
            }
            kept.resize(start + room, 0);
            (kept, start)
        };
        let outcome = loop {
            match self.stream.read(&mut buffer[start..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                outcome => break outcome,
            }
        };
        let came = match outcome {
            Ok(0) => {
                self.readable = false;
                // What was asked before the end is answered first.
                self.client.close();
                0
            }
            Ok(came) => {
                // Edge-triggered: a read that did not fill its buffer has emptied the socket, unless the
                // end has come, too: that is told once, with the bytes before it.
                let has_ended = self.hung_up || self.stream.has_ended();
                self.readable = start + came == buffer.len() || has_ended;
                lent.came += came as u64;
                came
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.readable = false;
                0
            }
            Err(error) => {
                // The buffer is the thread's: without it the next connection would seem to have ended.
                self.keep(&mut buffer, 0..start, lent);
                return Err(error);
            }
        };
        if came > 0 {
            return Ok(Some((buffer, start + came)));
        }
        self.keep(&mut buffer, 0..start, lent);
        Ok(None)
    }

    /// Keeps what is left in `bytes`, and gives the thread its buffer back.
    pub(super) fn keep(&mut self, bytes: &mut Vec<u8>, left: Range<usize>, lent: &mut Buffers) {
        if left.is_empty() {
            let bytes = std::mem::take(bytes);
            if lent.lacks_input() {
                lent.give_input(bytes);
            }
            P::shrink(&mut self.reader);
            return;
        }
        if lent.lacks_input() {
            self.input = bytes[left].to_vec();
            // NB: it stays as long as it is; to fill it with zeros each time would cost more than a command.
            lent.give_input(std::mem::take(bytes));
        } else {
            bytes.truncate(left.end);
            bytes.drain(..left.start);
            self.input = std::mem::take(bytes);
        }
    }
}
