//! Requests as they arrive: arrays of byte strings, or words on a line.
//!
//! Bytes come in pieces of any size. The parser is shown all that has come of a request and says whether that is the whole
//! of it.
//!
//! Example: shown `*1\r\n$4\r\nPI` it answers [`Progress::Incomplete`]; shown `NG\r\n` behind that, [`Progress::Complete`],
//! and [`RequestParser::arguments`] are one, `PING`.
//!
//! Invariants
//! - The parser remembers how far it has looked, so that a request in a million pieces is looked at once.
//! - It keeps spans, not bytes: the caller keeps what has arrived of a request until it is complete.
//! - Who has not said who he is may send little.

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

/// Arguments for which memory is kept between requests.
const SPANS_KEPT: usize = 16;
/// Arguments of a request that is looked at as a whole.
const FEW: usize = 64;

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
        if matches!(self.state, State::Start) {
            if let Some(progress) = self.whole(bytes, trusted) {
                return Ok(progress);
            }
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
                State::Count => match self.count_line(bytes, trusted)? {
                    None => return Ok(Progress::Incomplete),
                    Some(0) => return Ok(self.complete()),
                    Some(missing) => State::Length { missing },
                },
                State::Length { missing } => {
                    if let Some(byte) = bytes.get(self.at).filter(|byte| **byte != b'$') {
                        return Err(ProtocolError(format!("expected '$', got '{}'", shown(*byte)).into()));
                    }
                    let Some(bytes) = self.length_line(bytes, trusted)? else {
                        return Ok(Progress::Incomplete);
                    };
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
                    self.spans.push([self.at, end]);
                    self.at = end + 2;
                    if missing == 1 {
                        return Ok(self.complete());
                    }
                    State::Length { missing: missing - 1 }
                }
            };
        }
    }

    /// Reads a request of the usual kind: it has come as a whole, and has few and short arguments. None: the general
    /// reader decides.
    #[inline]
    fn whole(&mut self, bytes: &[u8], trusted: bool) -> Option<Progress> {
        let (count, mut at) = bytes.first().filter(|byte| **byte == b'*').and_then(|_| small(bytes, 1))?;
        if count == 0 || count > if trusted { FEW } else { limits::ARGUMENTS_STRANGER } {
            return None;
        }
        let most = self.bulk_bytes.min(limits::BULK_BYTES_STRANGER);
        for _ in 0..count {
            let line = bytes.get(at).filter(|byte| **byte == b'$').and_then(|_| small(bytes, at + 1));
            let Some((start, end)) = line
                .filter(|(length, start)| *length <= most && start + length + 2 <= bytes.len())
                .map(|(length, start)| (start, start + length))
            else {
                self.spans.clear();
                return None;
            };
            self.spans.push([start, end]);
            at = end + 2;
        }
        self.at = at;
        Some(self.complete())
    }

    /// The arguments of the request that was found last; `bytes` as given to [`RequestParser::parse`].
    #[inline]
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
    #[inline]
    pub fn shrink(&mut self) {
        if self.spans.capacity() > SPANS_KEPT || self.text.capacity() > 0 {
            self.spans.shrink_to(SPANS_KEPT);
            self.text.shrink_to(0);
        }
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

    /// How many arguments the line says that begins here, if all of it has come.
    #[inline]
    fn count_line(&mut self, bytes: &[u8], trusted: bool) -> Result<Option<usize>, ProtocolError> {
        if let Some((number, behind)) = small(bytes, self.at + 1) {
            self.at = behind;
            return counted(number, trusted).map(Some);
        }
        let line = self.line(bytes, b"\r\n", "too big mbulk count string")?;
        line.map(|line| count(&line[1..], trusted)).transpose()
    }

    /// How long the line says that the argument behind it is, if all of it has come.
    #[inline]
    fn length_line(&mut self, bytes: &[u8], trusted: bool) -> Result<Option<usize>, ProtocolError> {
        let most = self.bulk_bytes;
        if let Some((number, behind)) = small(bytes, self.at + 1) {
            self.at = behind;
            return allowed(number, most, trusted).map(Some);
        }
        let line = self.line(bytes, b"\r\n", "too big bulk count string")?;
        line.map(|line| length(line.get(1..).unwrap_or(&[]), most, trusted)).transpose()
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

/// A number of up to eight digits at `at` with the end of its line, and where that is behind it: nearly all lines are
/// like that. None says nothing.
#[inline]
fn small(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    let digits = bytes.get(at..)?;
    match *digits {
        [digit @ b'0'..=b'9', b'\r', _, ..] => return Some((usize::from(digit - b'0'), at + 3)),
        [tens @ b'1'..=b'9', ones @ b'0'..=b'9', b'\r', _, ..] => {
            return Some((10 * usize::from(tens - b'0') + usize::from(ones - b'0'), at + 4));
        }
        _ => {}
    }
    let mut number = usize::from(digits.first()?.wrapping_sub(b'0'));
    // The digit that a longer number does not begin with, and what is none.
    let most = if number == 0 { 1 } else { 8 };
    if number > 9 {
        return None;
    }
    for (place, byte) in digits.iter().enumerate().skip(1).take(most) {
        match byte {
            b'0'..=b'9' => number = number * 10 + usize::from(byte - b'0'),
            b'\r' if digits.len() > place + 1 => return Some((number, at + place + 2)),
            _ => return None,
        }
    }
    None
}

fn count(text: &[u8], trusted: bool) -> Result<usize, ProtocolError> {
    match parse_integer(text) {
        Some(count) => counted(usize::try_from(count).unwrap_or(0), trusted),
        None => error("invalid multibulk length"),
    }
}

/// A number of arguments, if the client may send so many.
fn counted(count: usize, trusted: bool) -> Result<usize, ProtocolError> {
    match count {
        count if count > limits::ARGUMENTS => error("invalid multibulk length"),
        count if count > limits::ARGUMENTS_STRANGER && !trusted => error("unauthenticated multibulk length"),
        count => Ok(count),
    }
}

fn length(text: &[u8], most: usize, trusted: bool) -> Result<usize, ProtocolError> {
    match parse_integer(text).and_then(|length| usize::try_from(length).ok()) {
        Some(length) => allowed(length, most, trusted),
        None => error("invalid bulk length"),
    }
}

/// The length of an argument, if the client may send one so long.
fn allowed(length: usize, most: usize, trusted: bool) -> Result<usize, ProtocolError> {
    match length {
        length if length > most => error("invalid bulk length"),
        length if length > limits::BULK_BYTES_STRANGER && !trusted => error("unauthenticated bulk length"),
        length => Ok(length),
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
