//! Names of globals and locals: which byte strings are names.
//!
//! Perilune's own rule is wider than that of M (MUMPS, the language of YottaDB); the YottaDB layer checks M's with
//! [`is_m_name`]. Example: `_x` and `a.b` are names here and not in M.
//!
//! Names hold no byte below 0x25 and none above 0x7A. So the 0x00 that ends a name in a key sorts the name before
//! longer ones that begin with it (`a` 00 before `ab` 00), and first bytes outside that range are free for internal
//! keys.

/// The longest name in bytes.
pub const MAX_NAME: usize = 255;
/// The longest name M allows in bytes.
pub const MAX_M_NAME: usize = 31;

const FIRST: u8 = 1;
const LATER: u8 = 2;

const CLASS: [u8; 256] = {
    let mut class = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let character = byte as u8;
        if character.is_ascii_alphabetic() || character == b'%' || character == b'_' {
            class[byte] = FIRST | LATER;
        } else if character.is_ascii_digit() || character == b'.' {
            class[byte] = LATER;
        }
        byte += 1;
    }
    class
};

/// Whether `name`, without `^`, can name a global or local: a letter, `%` or `_`, then letters,
/// digits, `%`, `_` or `.`; at most [`MAX_NAME`] bytes.
#[inline]
pub fn is_name(name: &[u8]) -> bool {
    match name {
        [first, rest @ ..] => {
            CLASS[usize::from(*first)] & FIRST != 0
                && name.len() <= MAX_NAME
                && rest.iter().all(|&byte| CLASS[usize::from(byte)] != 0)
        }
        [] => false,
    }
}

/// Whether `name`, without `^`, is a name in M: `%` or a letter, then letters and digits; at most
/// [`MAX_M_NAME`] bytes.
pub fn is_m_name(name: &[u8]) -> bool {
    match name {
        [first, rest @ ..] => {
            (*first == b'%' || first.is_ascii_alphabetic())
                && name.len() <= MAX_M_NAME
                && rest.iter().all(u8::is_ascii_alphanumeric)
        }
        [] => false,
    }
}

/// Whether `byte` can occur in a name after its first byte.
pub(crate) fn is_name_byte(byte: u8) -> bool {
    CLASS[usize::from(byte)] != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_their_rules() {
        for name in ["a", "%", "_x", "a.b", "A1", "%1", "a_b%"] {
            assert!(is_name(name.as_bytes()), "{name}");
        }
        for name in ["", "1a", ".a", "a-b", "a b", "é", "^a", "a\0"] {
            assert!(!is_name(name.as_bytes()), "{name}");
        }
        assert!(is_name(&[b'a'; MAX_NAME]) && !is_name(&[b'a'; MAX_NAME + 1]));
        assert!(is_m_name(b"%Y1") && is_m_name(&[b'a'; 31]));
        assert!(!is_m_name(b"a_b") && !is_m_name(&[b'a'; 32]) && !is_m_name(b"a%"));
    }
}
