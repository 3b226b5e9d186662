//! Perilune's collating keys: names, subscripts, decimal numbers, text form; and typed values.
//!
//! A key is a name and up to 255 subscripts, each a number or a byte string. Encoded, keys sort
//! under memcmp as M (MUMPS, the language of GT.M and YottaDB) orders nodes: numbers by value, then strings by bytes,
//! a node before its descendants. A subtree is exactly the keys with one byte prefix. The codes are described in
//! `encode.rs` and `docs/format/keys.md`.
//!
//! ```
//! use perilune_key::{subscripts, KeyBuf, Subscript};
//!
//! let mut key = KeyBuf::global("person")?;
//! key.push_int(7)?;
//! key.push_str("name")?;
//! assert_eq!(format!("^{key:?}"), "^person(7,\"name\")");
//! let first = subscripts(key.as_bytes())?.next().unwrap()?;
//! assert_eq!(first, Subscript::from_bytes(b"7"));
//! # Ok::<(), perilune_key::KeyError>(())
//! ```
//!
//! This crate has no storage, no state and no unsafe code. Decoders accept hostile bytes.
#![forbid(unsafe_code)]

mod append;

mod decimal;
mod number;
mod numeral;

mod double;

mod error;
mod name;
mod subscript;

mod decode;
mod encode;
mod key;
mod plain;
pub mod range;

mod quoted;
mod text;

mod increment;
mod value;

mod record;

mod literal;
mod zwr;

pub use append::append;
pub use decimal::{ArithmeticError, Decimal, MAX_DIGITS, MAX_MAGNITUDE, MIN_MAGNITUDE};
pub use decode::{
    code_len, decode_int, decode_subscript, parent_end, prefix_ends, split_name, subscripts, validate,
    PrefixEnds, Subscripts,
};
pub use encode::{encode_bytes, encode_int, encode_number, MAX_NUMBER_CODE};
pub use error::KeyError;
pub use increment::{increment, increment_truncating};
pub use key::{KeyBuf, KeyMark, MAX_ENCODED, MAX_ENCODED_LOCAL, MAX_SUBSCRIPT};
pub use literal::{parse_value, read_value, write_value};
pub use name::{is_m_name, is_name, MAX_M_NAME, MAX_NAME};
pub use number::{Number, MAX_NUMBER_TEXT};
pub use numeral::{is_canonical, parse_canonical, parse_lenient, parse_literal, LiteralError};
pub use plain::{decode_plain, unescape, PlainSubscript};
pub use quoted::{parse_quoted, write_quoted, Codes};
pub use record::{Field, Record};
pub use subscript::{Subscript, SubscriptBuf, MAX_SUBSCRIPTS};
pub use text::{key_text, parse_key, read_key, write_key, KeyText, ParseError, ParseProblem, Space};
pub use value::{encode_int_value, Value, ValueError, ValueRef};
pub use zwr::{read_zwr, write_zwr, write_zwr_key, Charset};
