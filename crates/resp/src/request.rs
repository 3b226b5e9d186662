//! Requests as they arrive: arrays of byte strings, or words on a line.
//!
//! Invariants
//! - The parser remembers how far it has looked, so that a request in a million pieces is looked at once.
//! - It keeps spans, not bytes: the caller keeps what has arrived of a request until it is complete.

use std::borrow::Cow;
use std::fmt;

use crate::arguments::{Arguments, Span};
use crate::decimal::parse_integer;
use crate::{inline, limits};

/// How far a request has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// More bytes are needed; call again with all of the request's bytes and what has come besides.
    Incomplete,
    /// The request takes the first `used` bytes. It may have no argument: then it asks for nothing.
    Complete {
        /// Bytes of the request.
        used: usize,
    },
}

/// The bytes are no request; nothing that follows them can be understood. The text is Redis's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProtocolError(Cow<'static, str>);

impl fmt::Display for ProtocolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Protocol error: {}", self.0)
    }
}

impl std::error::Error for ProtocolError {}

fn error<T>(text: &'static str) -> Result<T, ProtocolError> {
    Err(ProtocolError(Cow::Borrowed(text)))
}

/// Finds the requests in what a client sends.
///
/// ```
/// use perilune_resp::{Progress, RequestParser};
///
/// let mut parser = RequestParser::default();
/// let bytes = b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n";
/// assert_eq!(parser.parse(&bytes[..9], true)?, Progress::Incomplete);
/// assert_eq!(parser.parse(bytes, true)?, Progress::Complete { used: 20 });
/// assert_eq!(&parser.arguments(bytes)[1], b"k");
/// # Ok::<(), perilune_resp::ProtocolError>(())
/// ```
#[derive(Debug)]
pub struct RequestParser {
    /// The next byte to look at.
    at: usize,
    state: State,
    spans: Vec<Span>,
    /// The words of an inline request, unescaped.
    text: Vec<u8>,
    /// Bytes of an argument at most.
    bulk_bytes: usize,
}

#[derive(Clone, Copy, Debug, Default)]
enum State {
    /// At the first byte of a request.
    #[default]
    Start,
    /// In a line typed by hand.
    Inline,
    /// In the line that says how many arguments there are.
    Count,
    /// In the line before an argument; so many are missing.
    Length { missing: usize },
    /// In an argument of so many bytes.
    Bulk { missing: usize, bytes: usize },
    /// The last request was complete.
    Done,
}

impl Default for RequestParser {
    fn default() -> RequestParser {
        RequestParser::new(limits::BULK_BYTES)
    }
}

impl RequestParser {
    /// A parser that refuses arguments of more than `bulk_bytes`, and in any case of more than
    /// [`limits::BULK_BYTES`].
    #[must_use]
    pub fn new(bulk_bytes: usize) -> RequestParser {
        RequestParser {
            at: 0,
            state: State::Start,
            spans: Vec::new(),
            text: Vec::new(),
            bulk_bytes: bulk_bytes.min(limits::BULK_BYTES),
        }
    }

    /// Looks for a request at the start of `bytes`. `trusted` is false for a client that has yet to give
    /// the password, whose requests must be small.
    ///
    /// # Errors
    /// The client does not speak the protocol: tell it so, and close.
    pub fn parse(&mut self, bytes: &[u8], trusted: bool) -> Result<Progress, ProtocolError> {
        if matches!(self.state, State::Done) {
            self.start();
        }
        loop {
            self.state = match self.state {
                State::Start | State::Done => match bytes.first() {
                    None => return Ok(Progress::Incomplete),
                    Some(b'*') => State::Count,
                    Some(_) => State::Inline,
                },
                State::Inline => {
                    let Some(line) = self.line(bytes, b"\n", "too big inline request")? else {
                        return Ok(Progress::Incomplete);
                    };
                    let line = line.strip_suffix(b"\r").unwrap_or(line);
                    if inline::split(line, &mut self.text, &mut self.spans).is_err() {
                        return error("unbalanced quotes in request");
                    }
                    return Ok(self.complete());
                }
                State::Count => {
                    let Some(line) = self.line(bytes, b"\r\n", "too big mbulk count string")? else {
                        return Ok(Progress::Incomplete);
                    };
                    match count(&line[1..], trusted)? {
                        0 => return Ok(self.complete()),
                        missing => State::Length { missing },
                    }
                }
                State::Length { missing } => {
                    if let Some(byte) = bytes.get(self.at).filter(|byte| **byte != b'$') {
                        return Err(ProtocolError(format!("expected '$', got '{}'", shown(*byte)).into()));
                    }
                    let Some(line) = self.line(bytes, b"\r\n", "too big bulk count string")? else {
                        return Ok(Progress::Incomplete);
                    };
                    let bytes = length(line.get(1..).unwrap_or(&[]), self.bulk_bytes, trusted)?;
                    if self.at + bytes > limits::REQUEST_BYTES {
                        return error("too big request");
                    }
                    State::Bulk { missing, bytes }
                }
                State::Bulk { missing, bytes: size } => {
                    let end = self.at + size;
                    if bytes.len() < end + 2 {
                        return Ok(Progress::Incomplete);
                    }
                    self.spans.push((self.at, end));
                    self.at = end + 2;
                    if missing == 1 {
                        return Ok(self.complete());
                    }
                    State::Length { missing: missing - 1 }
                }
            };
        }
    }

    /// The arguments of the request that was found last; `bytes` as given to [`RequestParser::parse`].
    #[must_use]
    pub fn arguments<'a>(&'a self, bytes: &'a [u8]) -> Arguments<'a> {
        Arguments::new(if self.text.is_empty() { bytes } else { &self.text }, &self.spans)
    }

    /// Bytes of a request under way that are known to be missing.
    #[must_use]
    pub fn missing(&self, have: usize) -> usize {
        match self.state {
            State::Bulk { bytes, .. } => (self.at + bytes + 2).saturating_sub(have),
            _ => 0,
        }
    }

    /// Gives memory back that only large requests need.
    pub fn shrink(&mut self) {
        self.spans.shrink_to(16);
        self.text.shrink_to(0);
    }

    fn start(&mut self) {
        self.at = 0;
        self.state = State::Start;
        self.spans.clear();
        self.text.clear();
    }

    fn complete(&mut self) -> Progress {
        self.state = State::Done;
        Progress::Complete { used: self.at }
    }

    /// The line from the mark of the state on, without its end, if all of it has come. Lines are short,
    /// so that looking from their start again costs nothing worth a field.
    fn line<'a>(
        &mut self,
        bytes: &'a [u8],
        end: &[u8],
        too_long: &'static str,
    ) -> Result<Option<&'a [u8]>, ProtocolError> {
        let rest = bytes.get(self.at..).unwrap_or(&[]);
        let window = &rest[..rest.len().min(limits::LINE_BYTES)];
        let last = end.len() - 1;
        let found = window.iter().position(|byte| *byte == end[0]).filter(|at| at + last < rest.len());
        match found {
            Some(length) => {
                // As Redis: what stands in the place of the line feed is not looked at.
                self.at += length + end.len();
                Ok(Some(&rest[..length]))
            }
            None if rest.len() > limits::LINE_BYTES => error(too_long),
            None => Ok(None),
        }
    }
}

fn count(text: &[u8], trusted: bool) -> Result<usize, ProtocolError> {
    match parse_integer(text) {
        Some(count) if count > limits::ARGUMENTS as i64 => error("invalid multibulk length"),
        Some(count) if count > limits::ARGUMENTS_STRANGER as i64 && !trusted => {
            error("unauthenticated multibulk length")
        }
        Some(count) => Ok(usize::try_from(count).unwrap_or(0)),
        None => error("invalid multibulk length"),
    }
}

fn length(text: &[u8], most: usize, trusted: bool) -> Result<usize, ProtocolError> {
    match parse_integer(text).and_then(|length| usize::try_from(length).ok()) {
        Some(length) if length > most => error("invalid bulk length"),
        Some(length) if length > limits::BULK_BYTES_STRANGER && !trusted => {
            error("unauthenticated bulk length")
        }
        Some(length) => Ok(length),
        None => error("invalid bulk length"),
    }
}

/// A byte in a message: one that would end the line is not.
fn shown(byte: u8) -> char {
    if byte.is_ascii_graphic() || byte == b' ' {
        char::from(byte)
    } else {
        '?'
    }
}
