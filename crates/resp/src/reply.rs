//! Replies: one place that knows how RESP2 and RESP3 say a thing.

use crate::decimal::{format_double, write_integer};

/// What a connection speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// Before `HELLO 3`.
    #[default]
    Resp2,
    /// After it.
    Resp3,
}

impl Protocol {
    /// 2 or 3.
    #[must_use]
    pub fn number(self) -> i64 {
        match self {
            Protocol::Resp2 => 2,
            Protocol::Resp3 => 3,
        }
    }
}

/// Appends replies to a buffer, up to a bound: what would go beyond it is cut, and makes the buffer full. What is full
/// is of no use to anybody, and takes no more memory.
#[derive(Debug)]
pub struct Replies<'a> {
    out: &'a mut Vec<u8>,
    protocol: Protocol,
    /// The buffer is full when it is as long.
    end: usize,
}

/// Where an array began whose length is not known yet.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct ArrayMark(usize);

impl<'a> Replies<'a> {
    /// Replies in `protocol`, appended to `out`.
    pub fn new(out: &'a mut Vec<u8>, protocol: Protocol) -> Replies<'a> {
        Replies { out, protocol, end: usize::MAX }
    }

    /// These replies, of which the buffer is full when it has `end` bytes.
    #[must_use]
    pub fn up_to(self, end: usize) -> Replies<'a> {
        Replies { end, ..self }
    }

    /// Whether the buffer is full: nothing more is of use.
    #[inline]
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.out.len() >= self.end
    }

    /// Replies that go to `out` first and behind these later, within the same bound.
    pub fn beside<'b>(&self, out: &'b mut Vec<u8>) -> Replies<'b> {
        let end = self.end.saturating_sub(self.out.len()).saturating_add(out.len());
        Replies { out, protocol: self.protocol, end }
    }

    /// Speaks `protocol` from now on.
    pub fn speak(&mut self, protocol: Protocol) {
        self.protocol = protocol;
    }

    /// What it speaks.
    #[must_use]
    pub fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// Bytes in the buffer.
    #[must_use]
    pub fn position(&self) -> usize {
        self.out.len()
    }

    /// What was written behind `position`.
    #[must_use]
    pub fn since(&self, position: usize) -> &[u8] {
        self.out.get(position..).unwrap_or_default()
    }

    /// Takes back what was written behind `position`.
    pub fn rewind(&mut self, position: usize) {
        self.out.truncate(position);
    }

    /// A status, such as `OK`.
    pub fn simple(&mut self, text: &str) {
        self.line(b'+', text.as_bytes());
    }

    /// An error; `text` begins with its code. What would end the line becomes a blank.
    pub fn error(&mut self, text: &str) {
        if self.is_full() {
            return;
        }
        self.out.push(b'-');
        self.out.extend(text.bytes().map(|byte| if matches!(byte, b'\r' | b'\n') { b' ' } else { byte }));
        self.out.extend_from_slice(b"\r\n");
    }

    /// An integer.
    pub fn integer(&mut self, integer: i64) {
        self.header(b':', integer);
    }

    /// A count.
    pub fn count(&mut self, count: usize) {
        self.header(b':', count as i64);
    }

    /// A truth value: 1 or 0 in both protocols, as most commands of Redis answer it.
    pub fn truth(&mut self, truth: bool) {
        self.header(b':', i64::from(truth));
    }

    /// A byte string.
    #[inline]
    pub fn bulk(&mut self, bytes: &[u8]) {
        self.header(b'$', bytes.len() as i64);
        self.append(bytes);
        self.append(b"\r\n");
    }

    /// A byte string, or nothing.
    pub fn bulk_or_null(&mut self, bytes: Option<&[u8]>) {
        match bytes {
            Some(bytes) => self.bulk(bytes),
            None => self.null(),
        }
    }

    /// An integer as a byte string.
    pub fn bulk_integer(&mut self, integer: i64) {
        let mut text = Vec::with_capacity(20);
        write_integer(integer, &mut text);
        self.bulk(&text);
    }

    /// A double: in RESP2 a byte string.
    pub fn double(&mut self, double: f64) {
        let text = format_double(double);
        match self.protocol {
            Protocol::Resp2 => self.bulk(text.as_bytes()),
            Protocol::Resp3 => self.line(b',', text.as_bytes()),
        }
    }

    /// Text for people: in RESP2 a byte string.
    pub fn verbatim(&mut self, text: &[u8]) {
        match self.protocol {
            Protocol::Resp2 => self.bulk(text),
            Protocol::Resp3 => {
                self.header(b'=', text.len() as i64 + 4);
                self.append(b"txt:");
                self.append(text);
                self.append(b"\r\n");
            }
        }
    }

    /// Nothing, in place of a byte string.
    pub fn null(&mut self) {
        self.append(match self.protocol {
            Protocol::Resp2 => b"$-1\r\n",
            Protocol::Resp3 => b"_\r\n",
        });
    }

    /// Nothing, in place of an array.
    pub fn null_array(&mut self) {
        self.append(match self.protocol {
            Protocol::Resp2 => b"*-1\r\n",
            Protocol::Resp3 => b"_\r\n",
        });
    }

    /// The head of an array: `length` replies follow.
    pub fn array(&mut self, length: usize) {
        self.header(b'*', length as i64);
    }

    /// The head of what belongs to no request: `length` replies follow; in RESP2 an array.
    pub fn push(&mut self, length: usize) {
        self.header(if self.protocol == Protocol::Resp3 { b'>' } else { b'*' }, length as i64);
    }

    /// The head of a set: `length` replies follow; in RESP2 an array.
    pub fn set(&mut self, length: usize) {
        self.header(if self.protocol == Protocol::Resp3 { b'~' } else { b'*' }, length as i64);
    }

    /// The head of a map: `length` pairs of replies follow; in RESP2 an array.
    pub fn map(&mut self, length: usize) {
        match self.protocol {
            Protocol::Resp2 => self.header(b'*', 2 * length as i64),
            Protocol::Resp3 => self.header(b'%', length as i64),
        }
    }

    /// Begins an array of unknown length: its elements follow, then [`Replies::end_array`].
    pub fn begin_array(&mut self) -> ArrayMark {
        ArrayMark(self.out.len())
    }

    /// Puts the head of an array of `length` where it was begun.
    pub fn end_array(&mut self, mark: ArrayMark, length: usize) {
        let mut head = vec![b'*'];
        write_integer(length as i64, &mut head);
        head.extend_from_slice(b"\r\n");
        self.out.splice(mark.0..mark.0, head);
    }

    /// Replies that were written elsewhere, in the same protocol.
    pub fn raw(&mut self, replies: &[u8]) {
        self.append(replies);
    }

    #[inline]
    fn append(&mut self, bytes: &[u8]) {
        if bytes.len() < self.end.saturating_sub(self.out.len()) {
            self.out.extend_from_slice(bytes);
        } else {
            self.fill(bytes);
        }
    }

    /// Appends what there is room for.
    #[cold]
    fn fill(&mut self, bytes: &[u8]) {
        let room = self.end.saturating_sub(self.out.len());
        self.out.extend_from_slice(&bytes[..room.min(bytes.len())]);
    }

    /// NB: it may go a few bytes beyond the end.
    #[inline]
    fn header(&mut self, kind: u8, number: i64) {
        if self.is_full() {
            return;
        }
        match number {
            0..=9 => return self.out.extend_from_slice(&[kind, b'0' + number as u8, b'\r', b'\n']),
            10..=99 => {
                let (tens, ones) = (number as u8 / 10, number as u8 % 10);
                return self.out.extend_from_slice(&[kind, b'0' + tens, b'0' + ones, b'\r', b'\n']);
            }
            _ => {}
        }
        self.out.push(kind);
        write_integer(number, self.out);
        self.out.extend_from_slice(b"\r\n");
    }

    fn line(&mut self, kind: u8, text: &[u8]) {
        self.append(&[kind]);
        self.append(text);
        self.append(b"\r\n");
    }
}
