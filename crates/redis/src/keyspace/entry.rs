//! What lies at a key, as the first node of its subtree tells it: kind, expiry, how many elements.
//!
//! Invariant: an entry is read with one search, whatever the key holds.

use perilune::ValueRef;

/// The subscript below a key's that its expiry has, encoded: an empty text.
pub(super) const EXPIRY: [u8; 2] = [0xF0, 0];

/// Stands for a count that is not there.
pub(super) const UNCOUNTED: i64 = -1;

/// What a key holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    String,
    Hash,
    List,
    Set,
    Zset,
}

impl Kind {
    /// What TYPE answers, and the subscript it lies below.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::String => "string",
            Kind::Hash => "hash",
            Kind::List => "list",
            Kind::Set => "set",
            Kind::Zset => "zset",
        }
    }

    const ALL: [Kind; 5] = [Kind::Hash, Kind::List, Kind::Set, Kind::String, Kind::Zset];
}

/// What lies at a key that exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) kind: Kind,
    /// When it expires, in milliseconds since 1970.
    pub(crate) expires: Option<i64>,
    /// Hash, set, sorted set: how many elements. List: the index of the first.
    pub(crate) figure: i64,
    /// A string that is the value of the key's own node.
    pub(super) plain: bool,
}

/// What the first entry below a key tells, `codes` being the subscripts behind the key's.
pub(super) fn entry(codes: &[u8], value: Option<ValueRef<'_>>) -> Option<Entry> {
    for kind in Kind::ALL {
        let Some(rest) =
            codes.strip_prefix(&[0xF0]).and_then(|codes| codes.strip_prefix(kind.name().as_bytes()))
        else {
            continue;
        };
        let Some(rest) = rest.strip_prefix(&[0]) else { continue };
        let figure = match kind {
            Kind::String => 0,
            Kind::List => perilune::key::decode_int(rest)?,
            _ if rest.is_empty() => value?.as_i64()?.max(0),
            _ => UNCOUNTED,
        };
        return Some(Entry { kind, expires: None, figure, plain: false });
    }
    None
}
