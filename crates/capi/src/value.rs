//! `perilune_value`: typed values and subscripts as C sees them.
//!
//! Invariants
//! - Bytes that a value given to C refers to lie in the tree's buffer or in a [`Text`] of the session,
//!   the cursor or the thread, which stays until that one's next call.
//! - A value taken from C is checked for its type before its union is read, so that only the member
//!   that the type names is ever read.

use std::ffi::{c_char, c_int};

use perilune::key::{parse_literal, LiteralError, MAX_NUMBER_TEXT};
use perilune::limits::VALUE_BYTES;
use perilune::{Decimal, Number, Subscript, ValueRef};

use crate::edge::bytes;
use crate::status::{Failure, NOT_A_NUMBER, VALUE_TOO_LONG};

pub(crate) const ABSENT: i32 = 0;
pub(crate) const STRING: i32 = 1;
pub(crate) const INT: i32 = 2;
pub(crate) const DECIMAL: i32 = 3;
pub(crate) const DOUBLE: i32 = 4;
pub(crate) const BOOL: i32 = 5;
pub(crate) const NULL: i32 = 6;
pub(crate) const EMPTY_LIST: i32 = 7;
pub(crate) const EMPTY_MAP: i32 = 8;
/// Of SQL alone: no node has such a value.
pub(crate) const BLOB: i32 = 9;

/// A view of bytes.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Bytes {
    /// The first byte; may be NULL if there is none.
    pub p: *const c_char,
    /// How many.
    pub n: usize,
}

/// What a value holds, by its type.
#[repr(C)]
#[derive(Clone, Copy)]
pub union Content {
    /// Integers and truth values.
    pub i: i64,
    /// Doubles.
    pub d: f64,
    /// Strings and decimals.
    pub s: Bytes,
}

/// `perilune_value`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Value {
    /// `enum perilune_type`.
    pub kind: i32,
    /// Reserved for later versions: 0.
    pub reserved: u32,
    /// What is in it, as `kind` says.
    pub content: Content,
}

const _: () = assert!(size_of::<Value>() == 24 && align_of::<Value>() == 8);

/// Where the text of a number or of unescaped bytes stays after the call.
pub(crate) struct Text {
    bytes: Vec<u8>,
}

impl Text {
    pub(crate) const fn new() -> Text {
        Text { bytes: Vec::new() }
    }

    /// Keeps `bytes` and returns a view of them.
    pub(crate) fn keep(&mut self, bytes: Vec<u8>) -> Bytes {
        self.bytes = bytes;
        view(&self.bytes)
    }

    /// Copies `bytes` and returns a view of the copy.
    pub(crate) fn copy(&mut self, bytes: &[u8]) -> Bytes {
        self.bytes.clear();
        self.bytes.extend_from_slice(bytes);
        view(&self.bytes)
    }

    /// Keeps a name, with its `^` unless it is private.
    pub(crate) fn name(&mut self, name: &[u8], private: bool) -> Bytes {
        self.bytes.clear();
        if !private {
            self.bytes.push(b'^');
        }
        self.bytes.extend_from_slice(name);
        view(&self.bytes)
    }

    fn number(&mut self, number: Number) -> Bytes {
        let mut text = [0; MAX_NUMBER_TEXT];
        let length = number.write_text(&mut text);
        self.copy(&text[..length])
    }
}

fn view(bytes: &[u8]) -> Bytes {
    Bytes { p: bytes.as_ptr().cast(), n: bytes.len() }
}

impl Value {
    /// No value.
    pub(crate) const fn absent() -> Value {
        Value::of(ABSENT)
    }

    const fn of(kind: i32) -> Value {
        Value { kind, reserved: 0, content: Content { s: Bytes { p: std::ptr::null(), n: 0 } } }
    }

    pub(crate) const fn int(int: i64) -> Value {
        Value { kind: INT, reserved: 0, content: Content { i: int } }
    }

    pub(crate) const fn null() -> Value {
        Value::of(NULL)
    }

    pub(crate) const fn double(double: f64) -> Value {
        Value { kind: DOUBLE, reserved: 0, content: Content { d: double } }
    }

    pub(crate) const fn bool(truth: bool) -> Value {
        Value { kind: BOOL, reserved: 0, content: Content { i: truth as i64 } }
    }

    pub(crate) fn string(s: Bytes) -> Value {
        Value { kind: STRING, reserved: 0, content: Content { s } }
    }

    /// A string that stays where it lies.
    pub(crate) fn bytes(bytes: &[u8]) -> Value {
        Value::string(view(bytes))
    }

    /// `value`, whose string stays where it lies.
    #[inline]
    pub(crate) fn view(value: ValueRef<'_>, text: &mut Text) -> Value {
        match value {
            ValueRef::Int(int) => Value::int(int),
            ValueRef::String(bytes) => Value::string(view(bytes)),
            ValueRef::Double(d) => Value { kind: DOUBLE, reserved: 0, content: Content { d } },
            ValueRef::Decimal(decimal) => Value::number(Number::from(decimal), text),
            ValueRef::Bool(truth) => Value::bool(truth),
            ValueRef::Null => Value::of(NULL),
            ValueRef::EmptyList => Value::of(EMPTY_LIST),
            ValueRef::EmptyMap => Value::of(EMPTY_MAP),
            // C has no type for it: its text.
            ValueRef::Record(_) => Value::string(text.keep(value.to_string().into_bytes())),
        }
    }

    /// A number; a decimal's text goes to `text`.
    #[inline]
    pub(crate) fn number(number: Number, text: &mut Text) -> Value {
        match number.as_i64() {
            Some(int) => Value::int(int),
            None => Value { kind: DECIMAL, reserved: 0, content: Content { s: text.number(number) } },
        }
    }

    /// A subscript; bytes that lie unescaped in the key stay there, others go to `text`.
    pub(crate) fn subscript(subscript: Subscript<'_>, text: &mut Text) -> Value {
        match subscript {
            Subscript::Number(number) => Value::number(number, text),
            Subscript::Bytes(bytes) => Value::string(match bytes {
                std::borrow::Cow::Borrowed(bytes) => view(bytes),
                std::borrow::Cow::Owned(bytes) => text.keep(bytes),
            }),
        }
    }

    /// The value as the tree takes it; `None` for `PERILUNE_ABSENT`.
    ///
    /// # Safety
    /// The bytes of a string or decimal are good for reading for `'a`.
    #[inline]
    pub(crate) unsafe fn given<'a>(&self) -> Result<Option<ValueRef<'a>>, Failure> {
        // SAFETY: `kind` says which member is meant, and the caller promises its bytes.
        let content = unsafe {
            match self.kind {
                INT => ValueRef::Int(self.content.i),
                STRING if self.content.s.n > VALUE_BYTES => return Err(TOO_LONG),
                STRING => ValueRef::String(bytes(self.content.s.p, self.content.s.n)?),
                ABSENT => return Ok(None),
                DOUBLE => ValueRef::Double(self.content.d),
                DECIMAL => number_value(decimal(bytes(self.content.s.p, self.content.s.n)?)?),
                BOOL => ValueRef::Bool(self.content.i != 0),
                NULL => ValueRef::Null,
                EMPTY_LIST => ValueRef::EmptyList,
                EMPTY_MAP => ValueRef::EmptyMap,
                _ => return Err(UNKNOWN),
            }
        };
        Ok(Some(content))
    }

    /// The value as a number.
    ///
    /// # Safety
    /// As [`Value::given`].
    pub(crate) unsafe fn as_number(&self) -> Result<Number, Failure> {
        // SAFETY: the caller's promise.
        match unsafe { self.given() }? {
            Some(value) => Ok(value.as_number()?),
            None => Err(NO_NUMBER),
        }
    }

    /// The value as a subscript.
    ///
    /// # Safety
    /// As [`Value::given`].
    #[inline]
    pub(crate) unsafe fn as_subscript<'a>(&self) -> Result<Given<'a>, Failure> {
        // SAFETY: `kind` says which member is meant, and the caller promises its bytes.
        unsafe {
            match self.kind {
                INT => Ok(Given::Int(self.content.i)),
                STRING => Ok(Given::Bytes(bytes(self.content.s.p, self.content.s.n)?)),
                DECIMAL => Ok(Given::Number(decimal(bytes(self.content.s.p, self.content.s.n)?)?)),
                DOUBLE => Ok(Given::Number(Number::from_f64(self.content.d)?)),
                _ => Err(Failure::invalid(c"a subscript is a PERILUNE_STRING, _INT, _DECIMAL or _DOUBLE")),
            }
        }
    }
}

/// A subscript from C.
#[derive(Clone, Copy)]
pub(crate) enum Given<'a> {
    Int(i64),
    Bytes(&'a [u8]),
    Number(Number),
}

const UNKNOWN: Failure = Failure::invalid(c"a value's type is none of enum perilune_type");
/// Refused before it is copied anywhere, since nobody holds such a value.
const TOO_LONG: Failure =
    Failure::fixed(VALUE_TOO_LONG, c"a value has 512 MiB at most: store it in several nodes");
const NO_NUMBER: Failure =
    Failure::fixed(NOT_A_NUMBER, c"PERILUNE_ABSENT is not a number: give an integer, a decimal or a double");

/// The number that the text of a decimal is.
pub(crate) fn decimal(text: &[u8]) -> Result<Number, Failure> {
    match parse_literal(text) {
        Ok(number) => Ok(number),
        Err(LiteralError::Range(error)) => Err(error.into()),
        Err(LiteralError::Syntax(_)) => Err(Failure::fixed(
            NOT_A_NUMBER,
            c"the text given as a decimal is no number: digits with an optional sign, point and exponent",
        )),
    }
}

fn number_value<'a>(number: Number) -> ValueRef<'a> {
    match number {
        Number::Int(int) => ValueRef::Int(int),
        Number::Decimal(decimal) => decimal_value(decimal),
    }
}

fn decimal_value<'a>(decimal: Decimal) -> ValueRef<'a> {
    match decimal.to_i64() {
        Some(int) => ValueRef::Int(int),
        None => ValueRef::Decimal(decimal),
    }
}

/// The text of `value` for `perilune_value_text`.
pub(crate) fn text_of(value: Option<ValueRef<'_>>) -> Vec<u8> {
    match value {
        None => Vec::new(),
        Some(ValueRef::String(bytes)) => bytes.to_vec(),
        Some(ValueRef::Bool(truth)) => truth.to_string().into_bytes(),
        Some(ValueRef::Null) => b"null".to_vec(),
        Some(ValueRef::EmptyList) => b"[]".to_vec(),
        Some(ValueRef::EmptyMap) => b"{}".to_vec(),
        Some(record @ ValueRef::Record(_)) => record.to_string().into_bytes(),
        Some(number) => match (number.as_number(), number) {
            (Ok(number), _) => number.to_string().into_bytes(),
            (Err(_), ValueRef::Double(double)) => double.to_string().into_bytes(),
            (Err(_), _) => Vec::new(),
        },
    }
}

/// 1 or 0, as C has its truth values.
pub(crate) fn truth(value: bool) -> c_int {
    c_int::from(value)
}
