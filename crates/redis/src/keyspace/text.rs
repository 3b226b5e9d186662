//! Values of nodes as the byte strings that clients see. What other programs wrote has its type.

use std::borrow::Cow;

use perilune::ValueRef;
use perilune_resp::{format_double, write_integer, Replies};

/// The bytes of `value`.
pub(crate) fn bytes_of(value: ValueRef<'_>) -> Cow<'_, [u8]> {
    match value {
        ValueRef::String(bytes) => Cow::Borrowed(bytes),
        ValueRef::Int(integer) => {
            let mut text = Vec::with_capacity(20);
            write_integer(integer, &mut text);
            Cow::Owned(text)
        }
        ValueRef::Double(double) => Cow::Owned(format_double(double).into_bytes()),
        ValueRef::Bool(truth) => Cow::Borrowed(if truth { b"1" } else { b"0" }),
        ValueRef::Null | ValueRef::EmptyList | ValueRef::EmptyMap => Cow::Borrowed(b""),
        ValueRef::Decimal(_) | ValueRef::Record(_) => {
            let mut text = Vec::new();
            value.write_text(&mut text);
            Cow::Owned(text)
        }
    }
}

/// Replies the bytes of `value`.
pub(crate) fn reply(value: ValueRef<'_>, replies: &mut Replies<'_>) {
    match value {
        ValueRef::String(bytes) => replies.bulk(bytes),
        ValueRef::Int(integer) => replies.bulk_integer(integer),
        other => replies.bulk(&bytes_of(other)),
    }
}
