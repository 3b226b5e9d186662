//! Lua values as bytes: what functions of libraries are given and answer, and what scripts return.
//!
//! The form is told in c/values.c. Both sides are one program, so that it is as the machine has numbers, and no part
//! of any protocol.
//!
//! ```
//! use perilune_sandbox::{Part, Parts, Value, Values};
//! let mut bytes = Vec::new();
//! let mut values = Values::new(&mut bytes);
//! values.list(2);
//! values.integer(7);
//! values.text(b"seven");
//! let parts: Vec<Part<'_>> = Parts::new(&bytes).collect();
//! assert_eq!(parts, [Part::List(2), Part::Value(Value::Integer(7)), Part::Value(Value::Text(b"seven"))]);
//! ```
//!
//! Deliberately absent: a tree of values in memory; who wants one builds it from the parts.

/// Whole numbers up to here are integers.
pub(super) const EXACT: u64 = 1 << 53;

/// A value that is no table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// nil.
    Nothing,
    /// true or false.
    Truth(bool),
    /// A whole number of up to 2^53.
    Integer(i64),
    /// Another number.
    Double(f64),
    /// A string.
    Text(&'a [u8]),
}

impl<'a> Value<'a> {
    /// The one that an argument of a function is; nothing if it is none.
    #[must_use]
    pub fn of(argument: &'a [u8]) -> Value<'a> {
        match Parts::new(argument).next() {
            Some(Part::Value(value)) => value,
            _ => Value::Nothing,
        }
    }
}

/// What a value is made of, one behind the other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Part<'a> {
    /// One that is no table.
    Value(Value<'a>),
    /// So many values follow, the elements of a list.
    List(usize),
    /// So many keys follow, each before its value.
    Table(usize),
    /// No value, but what has been raised.
    Error(&'a [u8]),
}

/// Reads the parts of values.
#[derive(Clone, Debug)]
pub struct Parts<'a> {
    bytes: &'a [u8],
}

impl<'a> Parts<'a> {
    /// The parts of these bytes, up to the first that are none.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Parts<'a> {
        Parts { bytes }
    }

    fn word(&mut self) -> Option<[u8; 8]> {
        let (word, rest) = self.bytes.split_first_chunk::<8>()?;
        self.bytes = rest;
        Some(*word)
    }

    fn count(&mut self) -> Option<usize> {
        usize::try_from(u64::from_ne_bytes(self.word()?)).ok()
    }

    fn text(&mut self) -> Option<&'a [u8]> {
        let length = self.count()?;
        let (text, rest) = self.bytes.split_at_checked(length)?;
        self.bytes = rest;
        Some(text)
    }
}

impl<'a> Iterator for Parts<'a> {
    type Item = Part<'a>;

    fn next(&mut self) -> Option<Part<'a>> {
        let (kind, rest) = self.bytes.split_first()?;
        self.bytes = rest;
        Some(match kind {
            b'n' => Part::Value(Value::Nothing),
            b't' => Part::Value(Value::Truth(true)),
            b'f' => Part::Value(Value::Truth(false)),
            b'i' => Part::Value(Value::Integer(i64::from_ne_bytes(self.word()?))),
            b'd' => Part::Value(Value::Double(f64::from_ne_bytes(self.word()?))),
            b's' => Part::Value(Value::Text(self.text()?)),
            b'l' => Part::List(self.count()?),
            b'm' => Part::Table(self.count()?),
            b'e' => Part::Error(self.text()?),
            _ => return None,
        })
    }
}

/// Appends the answer of a function: one value, of parts one behind the other, or an error.
#[derive(Debug)]
pub struct Values<'a> {
    out: &'a mut Vec<u8>,
}

impl<'a> Values<'a> {
    /// Appends to `out`.
    pub fn new(out: &'a mut Vec<u8>) -> Values<'a> {
        Values { out }
    }

    fn word(&mut self, kind: u8, word: [u8; 8]) {
        self.out.push(kind);
        self.out.extend_from_slice(&word);
    }

    fn bytes(&mut self, kind: u8, bytes: &[u8]) {
        self.word(kind, (bytes.len() as u64).to_ne_bytes());
        self.out.extend_from_slice(bytes);
    }

    /// nil.
    pub fn nothing(&mut self) {
        self.out.push(b'n');
    }

    /// true or false.
    pub fn truth(&mut self, truth: bool) {
        self.out.push(if truth { b't' } else { b'f' });
    }

    /// A number; beyond 2^53 it becomes the nearest double.
    pub fn integer(&mut self, integer: i64) {
        self.word(b'i', integer.to_ne_bytes());
    }

    /// A number.
    pub fn double(&mut self, double: f64) {
        self.word(b'd', double.to_ne_bytes());
    }

    /// A string.
    pub fn text(&mut self, bytes: &[u8]) {
        self.bytes(b's', bytes);
    }

    /// A list: its `count` values follow.
    pub fn list(&mut self, count: usize) {
        self.word(b'l', (count as u64).to_ne_bytes());
    }

    /// A table: `count` keys follow, each before its value.
    pub fn table(&mut self, count: usize) {
        self.word(b'm', (count as u64).to_ne_bytes());
    }

    /// Raises this in the script, instead of a value.
    pub fn error(&mut self, message: &[u8]) {
        self.bytes(b'e', message);
    }
}
