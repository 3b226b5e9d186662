//! Appending short byte strings without a call of `memcpy`.
//!
//! Most keys and values have a few bytes, and for those the call takes longer than the copy. A copy of a size that
//! is known when compiling is one or two instructions. So a string of 4 to 32 bytes is copied as two pieces of such
//! a size, its first bytes and its last, which may overlap.
//!
//! Example: of 11 bytes the first 8 are written, then the last 8 over them: bytes 3 to 7 are written twice, with
//! the same content.

/// Appends bytes.
#[inline(always)]
pub fn append(to: &mut Vec<u8>, from: &[u8]) {
    // Of two pieces of constant size the second overwrites what both have.
    let end = to.len() + from.len();
    match from.len() {
        17..=32 => {
            if let (Some(first), Some(last)) = (from.first_chunk::<16>(), from.last_chunk::<16>()) {
                to.extend_from_slice(first);
                to.truncate(end - 16);
                to.extend_from_slice(last);
            }
        }
        8..=16 => {
            if let (Some(first), Some(last)) = (from.first_chunk::<8>(), from.last_chunk::<8>()) {
                to.extend_from_slice(first);
                to.truncate(end - 8);
                to.extend_from_slice(last);
            }
        }
        4..=7 => {
            if let (Some(first), Some(last)) = (from.first_chunk::<4>(), from.last_chunk::<4>()) {
                to.extend_from_slice(first);
                to.truncate(end - 4);
                to.extend_from_slice(last);
            }
        }
        1..=3 => from.iter().for_each(|byte| to.push(*byte)),
        _ => to.extend_from_slice(from),
    }
}

/// Copies at most 32 bytes to `at`, where they fit.
#[inline(always)]
pub(crate) fn put<const N: usize>(to: &mut [u8; N], at: usize, from: &[u8]) {
    let Some(to) = to.get_mut(at..at + from.len()) else { return };
    match from.len() {
        8..=16 => ends::<8>(to, from),
        17..=32 => ends::<16>(to, from),
        4..=7 => ends::<4>(to, from),
        _ => to.iter_mut().zip(from).take(3).for_each(|(to, from)| *to = *from),
    }
}

/// Copies the first and the last bytes.
#[inline(always)]
fn ends<const N: usize>(to: &mut [u8], from: &[u8]) {
    if let (Some(to), Some(from)) = (to.first_chunk_mut::<N>(), from.first_chunk::<N>()) {
        *to = *from;
    }
    if let (Some(to), Some(from)) = (to.last_chunk_mut::<N>(), from.last_chunk::<N>()) {
        *to = *from;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_put_where_they_belong() {
        let bytes: Vec<u8> = (1..=80).collect();
        for at in 0..20 {
            for count in 0..=32 {
                let mut to = [0xff; 64];
                put(&mut to, at, &bytes[..count]);
                let mut expected = [0xff; 64];
                expected[at..at + count].copy_from_slice(&bytes[..count]);
                assert_eq!(to, expected, "{count} at {at}");
            }
        }
    }

    #[test]
    fn bytes_of_any_number_stand_behind_what_was_there() {
        let bytes: Vec<u8> = (1..=80).collect();
        for before in 0..40 {
            for count in 0..40 {
                let mut to = bytes[..before].to_vec();
                append(&mut to, &bytes[before..before + count]);
                assert_eq!(to, bytes[..before + count], "{count} behind {before}");
            }
        }
    }
}
