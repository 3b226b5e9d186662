//! Scores of sorted sets as bytes that sort as they do.
//!
//! The eight bytes of a double, most significant first: with its first bit turned if it is positive,
//! with all of them turned if it is negative. Minus zero is zero. Behind them stand a colon, so that the
//! subscript can never be a number, and the member: equal scores sort by the bytes of the member.

/// Bytes of a score and the colon.
pub(crate) const WIDTH: usize = 9;

/// The eight bytes of `score`, which is not a NaN.
pub(crate) fn bytes(score: f64) -> [u8; 8] {
    // NB: -0.0 + 0.0 is 0.0.
    let bits = (score + 0.0).to_bits();
    let turned = if bits >> 63 == 0 { bits | 1 << 63 } else { !bits };
    turned.to_be_bytes()
}

/// The subscript of `member` (cut, if it has to be) with `score` in the order of a sorted set.
pub(crate) fn place(score: f64, member: &[u8]) -> Vec<u8> {
    let mut place = Vec::with_capacity(WIDTH + member.len());
    place.extend_from_slice(&bytes(score));
    place.push(b':');
    place.extend_from_slice(member);
    place
}

#[cfg(test)]
mod tests {
    use perilune::Node;

    use super::*;
    use crate::limits::{KEY_BYTES, MEMBER_BYTES};
    use crate::name::{self, NAME};

    #[test]
    fn bytes_sort_as_scores_do() {
        let scores = [
            f64::NEG_INFINITY,
            f64::MIN,
            -1e300,
            -2.5,
            -1.0,
            -f64::MIN_POSITIVE,
            -5e-324,
            0.0,
            5e-324,
            1.0,
            1.5,
            2.0,
            1e15,
            f64::MAX,
            f64::INFINITY,
        ];
        for pair in scores.windows(2) {
            assert!(bytes(pair[0]) < bytes(pair[1]), "{pair:?}");
        }
        assert_eq!(bytes(-0.0), bytes(0.0));
        assert!(place(1.0, b"b") < place(1.0, b"c") && place(1.0, b"c") < place(1.5, b"a"));
        // Eight digits would be a number, and sort as one.
        let digits = f64::from_bits(!u64::from_be_bytes(*b"12345678"));
        assert!(perilune::Subscript::from_bytes(&place(digits, b"9")).as_number().is_none());
    }

    #[test]
    fn the_longest_names_fit_a_key() -> perilune::Result<()> {
        for byte in [0, b'x'] {
            let long = vec![byte; 1 << 20];
            let member = name::subscript(&long, MEMBER_BYTES);
            let mut node = Node::new(NAME)?;
            node.push(15)?;
            node.push(&*name::subscript(&long, KEY_BYTES))?;
            let key = node.mark();
            node.push(super::super::ORDER)?;
            node.push(&place(-f64::MIN_POSITIVE, &member))?;
            node.truncate(key);
            node.push("string")?;
            node.push(&*member)?;
            node.push("")?;
        }
        Ok(())
    }
}
