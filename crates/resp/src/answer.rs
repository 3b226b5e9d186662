//! Replies as a client reads them: for tests that compare servers, and for clients of ours.
//!
//! ```
//! use perilune_resp::Answer;
//!
//! let (answer, used) = Answer::parse(b"*2\r\n:7\r\n$1\r\nx\r\n+OK\r\n").unwrap().expect("all of it is there");
//! assert_eq!((answer, used), (Answer::Array(vec![Answer::Integer(7), Answer::Bulk(b"x".to_vec())]), 15));
//! ```
//!
//! Invariants
//! - A reply that has not come whole is no error; a reply that can be none is.
//! - Depth and length are bounded ([`crate::limits`]): a hostile server costs no more than what it sends.
//!
//! Deliberately absent: reading from a socket.

use std::fmt;
use std::ops::Range;

use crate::decimal::parse_integer;
use crate::limits;

/// A reply, whole.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// A status.
    Simple(Vec<u8>),
    /// An error, its code first.
    Error(Vec<u8>),
    /// An integer.
    Integer(i64),
    /// A byte string (in RESP3 also one marked as text, without its mark).
    Bulk(Vec<u8>),
    /// Nothing, in any of its three forms.
    Null,
    /// An array.
    Array(Vec<Answer>),
    /// A map, key and value in turn.
    Map(Vec<Answer>),
    /// A set.
    Set(Vec<Answer>),
    /// Something that nobody asked for.
    Push(Vec<Answer>),
    /// A double.
    Double(f64),
    /// A truth value.
    Boolean(bool),
    /// A number of any length, as digits.
    Big(Vec<u8>),
}

/// The bytes are no reply; the text says where it was noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnswerError(&'static str);

impl fmt::Display for AnswerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no reply of Redis: {}", self.0)
    }
}

impl std::error::Error for AnswerError {}

type Parsed<T> = Result<Option<(T, usize)>, AnswerError>;

impl Answer {
    /// Reads the reply at the start of `bytes`, and how many it takes; `None` if more are needed.
    ///
    /// # Errors
    /// The bytes are no reply.
    pub fn parse(bytes: &[u8]) -> Parsed<Answer> {
        parse(bytes, 0)
    }

    /// Where the content of the byte string lies that these bytes are and nothing else; none if they are not.
    #[must_use]
    pub fn whole_bulk(bytes: &[u8]) -> Option<Range<usize>> {
        let (line, start) = line(bytes).ok()??;
        let length = length(line.strip_prefix(b"$")?, limits::ANSWER_BYTES).ok()??;
        let end = start + length;
        (bytes.len() == end + 2 && bytes.ends_with(b"\r\n")).then_some(start..end)
    }

    /// Whether it is an error.
    #[must_use]
    pub fn is_error(&self) -> bool {
        matches!(self, Answer::Error(_))
    }
}

fn parse(bytes: &[u8], depth: usize) -> Parsed<Answer> {
    if depth > limits::ANSWER_DEPTH {
        return Err(AnswerError("too many levels"));
    }
    let Some((line, used)) = line(bytes)? else { return Ok(None) };
    let (kind, text) = (line[0], &line[1..]);
    let whole = match kind {
        b'+' => Answer::Simple(text.to_vec()),
        b'-' => Answer::Error(text.to_vec()),
        b':' => Answer::Integer(parse_integer(text).ok_or(AnswerError("an integer is none"))?),
        b'_' => Answer::Null,
        b'#' => Answer::Boolean(text == b"t"),
        b'(' => Answer::Big(text.to_vec()),
        b',' => Answer::Double(double(text)?),
        b'$' | b'=' | b'!' => return bulk(kind, text, bytes, used),
        b'*' | b'%' | b'~' | b'>' => return aggregate(kind, text, bytes, used, depth),
        _ => return Err(AnswerError("an unknown kind")),
    };
    Ok(Some((whole, used)))
}

fn line(bytes: &[u8]) -> Parsed<&[u8]> {
    let window = &bytes[..bytes.len().min(limits::LINE_BYTES)];
    match window.iter().position(|byte| *byte == b'\r') {
        Some(0) => Err(AnswerError("an empty line")),
        Some(end) => match bytes.get(end + 1) {
            None => Ok(None),
            Some(b'\n') => Ok(Some((&bytes[..end], end + 2))),
            Some(_) => Err(AnswerError("a line does not end")),
        },
        None if bytes.len() > limits::LINE_BYTES => Err(AnswerError("a line is too long")),
        None => Ok(None),
    }
}

fn double(text: &[u8]) -> Result<f64, AnswerError> {
    let text = std::str::from_utf8(text).ok();
    text.and_then(|text| text.parse().ok()).ok_or(AnswerError("a double is none"))
}

fn length(text: &[u8], most: usize) -> Result<Option<usize>, AnswerError> {
    match parse_integer(text) {
        Some(-1) => Ok(None),
        Some(length) => match usize::try_from(length) {
            Ok(length) if length <= most => Ok(Some(length)),
            _ => Err(AnswerError("a length is out of range")),
        },
        None => Err(AnswerError("a length is none")),
    }
}

fn bulk(kind: u8, text: &[u8], bytes: &[u8], used: usize) -> Parsed<Answer> {
    let Some(length) = length(text, limits::ANSWER_BYTES)? else { return Ok(Some((Answer::Null, used))) };
    let Some(content) = bytes.get(used..used + length + 2) else { return Ok(None) };
    let content = content.strip_suffix(b"\r\n").ok_or(AnswerError("a byte string does not end"))?;
    let whole = match kind {
        b'!' => Answer::Error(content.to_vec()),
        b'=' => Answer::Bulk(content.get(4..).unwrap_or(&[]).to_vec()),
        _ => Answer::Bulk(content.to_vec()),
    };
    Ok(Some((whole, used + length + 2)))
}

fn aggregate(kind: u8, text: &[u8], bytes: &[u8], mut used: usize, depth: usize) -> Parsed<Answer> {
    let Some(length) = length(text, usize::MAX >> 2)? else { return Ok(Some((Answer::Null, used))) };
    let mut elements = Vec::new();
    for _ in 0..if kind == b'%' { 2 * length } else { length } {
        match parse(&bytes[used..], depth + 1)? {
            None => return Ok(None),
            Some((element, more)) => {
                elements.push(element);
                used += more;
            }
        }
    }
    let whole = match kind {
        b'%' => Answer::Map(elements),
        b'~' => Answer::Set(elements),
        b'>' => Answer::Push(elements),
        _ => Answer::Array(elements),
    };
    Ok(Some((whole, used)))
}
