//! Names of nodes: the one below which all of the server lies, and names of any length as subscripts.
//!
//! A name whose subscript would take too many bytes is cut: as many of its first bytes as fit, and the
//! SHA-256 of all of it. Whoever holds the subscript can tell: whole ones take at most the limit, cut
//! ones always more. The whole of a cut name is kept in a value.
//!
//! Invariant: a key with its parts and a member of any bytes fit the longest key of the engine
//! (a test of `keyspace` counts the worst case).

use std::borrow::Cow;

use sha2::{Digest, Sha256};

/// The name of all nodes of the server.
pub(crate) const NAME: &str = "^redis";
/// Bytes of the digest behind a cut name.
pub(crate) const DIGEST_BYTES: usize = 32;

/// `name` as a subscript, cut if its escaped form takes more than `most` bytes.
pub(crate) fn subscript(name: &[u8], most: usize) -> Cow<'_, [u8]> {
    if is_whole(name, most) {
        return Cow::Borrowed(name);
    }
    let mut taken = 0;
    let kept = name.iter().take_while(|byte| {
        taken += width(**byte);
        taken <= most
    });
    let mut cut = name[..kept.count()].to_vec();
    cut.extend_from_slice(&Sha256::digest(name));
    Cow::Owned(cut)
}

/// Whether `name` is its own subscript, not cut.
#[inline]
pub(crate) fn is_whole(name: &[u8], most: usize) -> bool {
    // What is no longer than half of it cannot be too long, whatever is escaped.
    name.len() <= most / 2 || escaped(name) <= most
}

/// Whether `subscript` is a cut name.
pub(crate) fn is_cut(subscript: &[u8], most: usize) -> bool {
    subscript.len() > most / 2 && escaped(subscript) > most
}

/// Bytes of `name` between tag and end of its code.
fn escaped(name: &[u8]) -> usize {
    name.iter().map(|byte| width(*byte)).sum()
}

fn width(byte: u8) -> usize {
    1 + usize::from(byte <= 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::MEMBER_BYTES;

    #[test]
    fn cut_names_differ_from_whole_ones_and_from_each_other() {
        for byte in [0, 1, b'x', 0xFF] {
            for length in [1, 499, 500, 501, 1_000, 1_001, 1_900, 65_536, 1 << 20] {
                let name = vec![byte; length];
                let place = subscript(&name, MEMBER_BYTES);
                let whole = escaped(&name) <= MEMBER_BYTES;
                assert_eq!((place == name, is_cut(&place, MEMBER_BYTES)), (whole, !whole), "{byte} {length}");
                // What looks like a cut name is itself cut.
                assert_eq!(subscript(&place, MEMBER_BYTES) == place, whole);
                let other = [&name[..], b"y"].concat();
                assert_ne!(subscript(&other, MEMBER_BYTES), place);
            }
        }
    }
}
