//! Replies: one place that knows how RESP2 and RESP3 say a thing.
//!
//! A command answers *that there is nothing*, or *a map of two pairs*; how its client hears that depends on the protocol
//! that the client has chosen by HELLO.
//!
//! Example: `null()` is `$-1` in RESP2 and `_` in RESP3; `map(2)` is an array of four there, and a map here.
//!
//! Invariants
//! - Replies are appended: those before them stay as they are.
//! - A reply that would be longer than its client may leave unread is not kept ([`Replies::up_to`]), whatever a command
//!   answers.

use std::ops::Range;

use crate::decimal::{format_double, integer_text, write_integer};

/// Byte strings up to so long are copied without a call.
const SHORT: usize = 32;
/// One of those with its head and its end, and room for copies of constant size.
const BLOCK: usize = 40;

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

/// A reply of replies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Many {
    /// In an order.
    Array,
    /// Each once; in RESP2 an array.
    Set,
    /// Pairs; in RESP2 an array.
    Map,
}

/// Where a reply of replies began whose length is known by hearsay only.
#[derive(Clone, Debug)]
#[must_use]
pub struct Begun {
    many: Many,
    expected: usize,
    head: Range<usize>,
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
        if bytes.len() <= SHORT && self.out.len() + BLOCK < self.end {
            return self.short_bulk(bytes);
        }
        self.long_bulk(bytes);
    }

    fn long_bulk(&mut self, bytes: &[u8]) {
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
        self.bulk(integer_text(integer, &mut [0; 20]));
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

    /// Begins a reply of replies, of which there will be so many (of a map: pairs), as far as is known: they follow, then
    /// [`Replies::end`], which moves nothing if that was so.
    pub fn begin(&mut self, many: Many, expected: usize) -> Begun {
        let start = self.out.len();
        self.head(many, expected);
        Begun { many, expected, head: start..self.out.len() }
    }

    /// Ends what was begun, of which there are so many.
    pub fn end(&mut self, begun: Begun, count: usize) {
        // NB: with a shorter head what is full would have room again, and be sent.
        if count == begun.expected || self.is_full() {
            return;
        }
        let mut head = Vec::new();
        Replies { out: &mut head, protocol: self.protocol, end: usize::MAX }.head(begun.many, count);
        self.out.splice(begun.head, head);
    }

    fn head(&mut self, many: Many, count: usize) {
        match many {
            Many::Array => self.array(count),
            Many::Set => self.set(count),
            Many::Map => self.map(count),
        }
    }

    /// Replies that were written elsewhere, in the same protocol.
    pub fn raw(&mut self, replies: &[u8]) {
        self.append(replies);
    }

    /// Appends a short byte string by copies of constant size into memory that is asked for once: most names and values are
    /// short, and five calls take longer than what they do.
    #[inline(always)]
    fn short_bulk(&mut self, bytes: &[u8]) {
        let (start, length) = (self.out.len(), bytes.len());
        self.out.extend_from_slice(&[0; BLOCK]);
        let Some(block) = self.out.last_chunk_mut::<BLOCK>() else { return };
        let (tens, ones) = (length as u8 / 10, length as u8 % 10);
        let text = if tens == 0 {
            block[..4].copy_from_slice(&[b'$', b'0' + ones, b'\r', b'\n']);
            4
        } else {
            block[..5].copy_from_slice(&[b'$', b'0' + tens, b'0' + ones, b'\r', b'\n']);
            5
        };
        copy_short(bytes, &mut block[text..]);
        let end = text + length;
        if let Some(crlf) = block[end..].first_chunk_mut() {
            *crlf = *b"\r\n";
        }
        self.out.truncate(start + end + 2);
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

/// Copies at most [`SHORT`] bytes, those of 4 and more as two pieces that may overlap.
#[inline]
fn copy_short(from: &[u8], to: &mut [u8]) {
    match from.len() {
        16.. => ends::<16>(from, to),
        8.. => ends::<8>(from, to),
        4.. => ends::<4>(from, to),
        _ => from.iter().zip(to).for_each(|(from, to)| *to = *from),
    }
}

#[inline]
fn ends<const N: usize>(from: &[u8], to: &mut [u8]) {
    let Some(to) = to.get_mut(..from.len()) else { return };
    if let (Some(from), Some(to)) = (from.first_chunk::<N>(), to.first_chunk_mut::<N>()) {
        *to = *from;
    }
    if let (Some(from), Some(to)) = (from.last_chunk::<N>(), to.last_chunk_mut::<N>()) {
        *to = *from;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn byte_strings_of_any_length_are_whole() {
        for length in 0..200_usize {
            let bytes: Vec<u8> = (0..length).map(|at| at as u8).collect();
            let (mut out, mut cut) = (b"before".to_vec(), b"before".to_vec());
            Replies::new(&mut out, Protocol::Resp2).bulk(&bytes);
            let expected = [format!("before${length}\r\n").as_bytes(), &bytes, b"\r\n"].concat();
            assert_eq!(out, expected, "{length}");
            for end in [0, 6, 7, 12, 40, expected.len() - 1, expected.len(), expected.len() + 1] {
                cut.truncate(6);
                let mut replies = Replies::new(&mut cut, Protocol::Resp2).up_to(end);
                replies.bulk(&bytes);
                let is_full = replies.is_full();
                assert_eq!(is_full, cut.len() >= end);
                assert!(is_full || cut == expected, "{length} {end}");
                assert!(cut.len() <= end.max(6) + 8, "{length} {end}: a head at most");
            }
        }
    }

    #[test]
    fn what_was_begun_has_as_many_as_there_are() {
        for (many, resp2, resp3) in
            [(Many::Array, "*3", "*3"), (Many::Set, "*3", "~3"), (Many::Map, "*6", "%3")]
        {
            for expected in [0, 3, 1_000] {
                for (protocol, head) in [(Protocol::Resp2, resp2), (Protocol::Resp3, resp3)] {
                    let mut out = b"before".to_vec();
                    let mut replies = Replies::new(&mut out, protocol);
                    let begun = replies.begin(many, expected);
                    replies.bulk(b"x");
                    replies.end(begun, 3);
                    assert_eq!(String::from_utf8_lossy(&out), format!("before{head}\r\n$1\r\nx\r\n"));
                }
            }
        }
    }
}
