//! What a connection has to say: kept until the kernel takes it, and held back until what it tells is durable.
//!
//! Invariants
//! - The kernel has taken all before `sent`: that cannot be taken back. What lies behind `held` is not sent before
//!   [`Connection::release`].
//! - A buffer of replies that is empty is the thread's.

use std::io;
use std::time::Instant;

use super::{Connection, Outcome};
use crate::buffers::Buffers;
use crate::protocol::{Client, Output, Protocol};
use crate::stream::Stream;

impl<P: Protocol> Connection<P> {
    /// The end of what it has to say.
    pub fn said(&self) -> usize {
        self.output.len()
    }

    /// Replies that wait to be sent, in bytes.
    pub fn waiting(&self) -> usize {
        self.pending()
    }

    pub(super) fn pending(&self) -> usize {
        self.output.len() - self.sent + usize::from(self.stream.has_unsent())
    }

    /// Appends what is answered late; the buffer it is in becomes the connection's own, if that has none.
    pub fn append(&mut self, bytes: Vec<u8>) {
        if self.output.is_empty() {
            self.output = bytes;
        } else {
            self.output.extend_from_slice(&bytes);
        }
    }

    /// Appends what belongs to no request.
    pub fn push(&mut self, bytes: &[u8]) {
        self.output.extend_from_slice(bytes);
    }

    /// Takes one of the thread's buffers for replies, if it has none of its own.
    pub(super) fn borrow(&mut self, lent: &mut Buffers) {
        if self.output.capacity() == 0 {
            self.output = lent.take_output();
        }
    }

    /// Sends what the kernel takes.
    pub(super) fn send(&mut self) -> io::Result<()> {
        while self.writable && self.stream.has_unsent() {
            match self.stream.flush() {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.writable = false,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        while self.writable && self.sent < self.output.len() {
            match self.stream.write(&self.output[self.sent..]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(taken) => {
                    self.sent += taken;
                    self.went += taken as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.writable = false,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        if self.sent == self.output.len() {
            self.output.clear();
            self.sent = 0;
        }
        Ok(())
    }

    /// Sends what waits, when others do so, too.
    pub fn speak(&mut self) -> Outcome {
        if self.held.is_none() && self.send().is_err() {
            return Outcome::Ended;
        }
        Outcome::Waits
    }

    /// Sends what waits, before a command that takes long. If that fails, the next visit tells.
    pub fn flush(&mut self) {
        if self.held.is_none() {
            let _ = self.send();
        }
    }

    /// Gives the buffer of replies back when it is empty, and tells what has been sent.
    pub fn settle(&mut self, lent: &mut Buffers) {
        lent.went += std::mem::take(&mut self.went);
        if self.output.is_empty() && self.output.capacity() > 0 {
            lent.give_output(std::mem::take(&mut self.output));
        }
    }

    /// Holds back what it has to say from here on, until it is [`Connection::release`]d.
    pub fn hold(&mut self, said: usize) {
        self.held = Some(said);
    }

    /// Lets go what was held back until it was durable. If it is not, one error takes the place of what would have
    /// told that it is, and the connection ends.
    pub fn release(&mut self, failure: Option<&str>) -> Outcome {
        let Some(said) = self.held.take() else { return Outcome::Waits };
        if let Some(text) = failure {
            let mut output = Output { bytes: &mut self.output, sent: self.sent };
            output.rewind(said);
            P::refuse(&mut self.client, text, &mut output);
            self.client.close();
        }
        if self.send().is_err() {
            return Outcome::Ended;
        }
        let more = self.unrun || self.readable || self.hung_up || self.client.is_closing();
        if more {
            Outcome::Again
        } else {
            Outcome::Waits
        }
    }

    /// What its class may leave unread: whether that is within the limits. Beyond the soft one it may be for so many
    /// seconds; a limit of 0 is none.
    pub fn is_within(&mut self, [hard, soft, seconds]: [i64; 3]) -> bool {
        let waiting = self.pending() as i64;
        if soft == 0 || waiting < soft {
            self.slow_since = None;
        } else if self.slow_since.get_or_insert_with(Instant::now).elapsed().as_secs() as i64
            >= seconds.max(1)
        {
            return false;
        }
        hard == 0 || waiting < hard
    }

    /// Whether it is beyond its soft limit.
    pub fn is_slow(&self) -> bool {
        self.slow_since.is_some()
    }

    /// Lets go of all that waits to be sent: nobody is to get it.
    pub fn discard(&mut self) {
        self.output.truncate(self.sent);
        self.held = None;
    }

    /// Sends what waits, and nothing more.
    pub fn finish(&mut self) {
        if let Some(said) = self.held.take() {
            // Who ends now is not told what may yet be undone.
            self.output.truncate(said.max(self.sent));
        }
        self.writable = true;
        let _ = self.send();
        if let Stream::Tls(stream) = &mut self.stream {
            stream.close();
        }
    }
}
