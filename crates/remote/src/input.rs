//! What has arrived of answers: filled from behind, taken from the front.
//!
//! The problem: a read needs room that is initialized, most answers are a few bytes, and to fill 64 KiB with zeros for each of
//! them takes longer than to read it. The idea: room keeps what it last held, and so is filled once.
//!
//! ```text
//! bytes   taken | held: an answer, perhaps more | room of an earlier read
//!         0     start                           end                      bytes.len()
//! ```
//!
//! Invariant: `start <= end <= bytes.len()`.

use perilune_resp::Answer;

/// Bytes read at a time of an answer, and of a long one.
const PIECE: usize = 64 << 10;
const LONG_PIECE: usize = 256 << 10;

/// Room that is kept at most while nothing is held.
const KEPT: usize = 1 << 20;

#[derive(Debug, Default)]
pub(crate) struct Input {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

impl Input {
    /// What has arrived and is not taken.
    pub(crate) fn held(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    /// Takes the first `count` bytes of what is held.
    pub(crate) fn take(&mut self, count: usize) {
        self.start += count;
        debug_assert!(self.start <= self.end);
        if self.start == self.end {
            self.clear();
        }
    }

    /// Takes the content of a long byte string, if all that is held is one: it is not copied.
    pub(crate) fn take_long(&mut self) -> Option<Vec<u8>> {
        if self.start > 0 || self.end <= LONG_PIECE {
            return None;
        }
        let content = Answer::whole_bulk(self.held())?;
        let mut bytes = std::mem::take(&mut self.bytes);
        self.clear();
        bytes.truncate(content.end);
        bytes.drain(..content.start);
        Some(bytes)
    }

    /// Room for what arrives next: tell how much of it came by [`Input::add`].
    pub(crate) fn room(&mut self) -> &mut [u8] {
        if self.start > 0 {
            self.bytes.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        let least = self.end + if self.end < PIECE { PIECE } else { LONG_PIECE };
        if self.bytes.len() < least {
            self.bytes.resize(least, 0);
        }
        &mut self.bytes[self.end..]
    }

    /// The first `count` bytes of the room have come.
    pub(crate) fn add(&mut self, count: usize) {
        self.end += count;
        debug_assert!(self.end <= self.bytes.len());
    }

    /// Forgets what is held.
    pub(crate) fn clear(&mut self) {
        (self.start, self.end) = (0, 0);
        self.bytes.truncate(KEPT);
        self.bytes.shrink_to(KEPT);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrive(input: &mut Input, bytes: &[u8]) {
        for piece in bytes.chunks(1_000) {
            input.room()[..piece.len()].copy_from_slice(piece);
            input.add(piece.len());
        }
    }

    #[test]
    fn what_arrives_in_pieces_is_taken_in_others() {
        let mut input = Input::default();
        let all: Vec<u8> = (0..500_000_u32).map(|number| number as u8).collect();
        let (mut came, mut taken) = (0, 0);
        for step in 1..2_000 {
            let next = all.len().min(came + 500 * (step % 3));
            arrive(&mut input, &all[came..next]);
            came = next;
            assert_eq!(input.held(), &all[taken..came]);
            let count = input.held().len() * (step % 4) / 3;
            let count = count.min(input.held().len());
            input.take(count);
            taken += count;
        }
        assert!(came == all.len() && taken > came / 2, "{taken} of {came}");
        input.clear();
        assert_eq!(input.held(), b"");
    }

    #[test]
    fn a_long_byte_string_is_given_whole_and_nothing_else_is() {
        let answer =
            |length: usize| [format!("${length}\r\n").as_bytes(), &vec![b'x'; length], b"\r\n"].concat();
        let mut input = Input::default();
        arrive(&mut input, &answer(LONG_PIECE));
        assert_eq!(input.take_long(), Some(vec![b'x'; LONG_PIECE]));
        assert_eq!(input.held(), b"");
        for bytes in [
            answer(5),
            answer(LONG_PIECE)[..LONG_PIECE + 5].to_vec(),
            [answer(LONG_PIECE), answer(5)].concat(),
        ] {
            arrive(&mut input, &bytes);
            assert_eq!(input.take_long(), None);
            assert_eq!(input.held(), bytes);
            input.take(bytes.len());
        }
    }

    #[test]
    fn little_room_is_kept() {
        let mut input = Input::default();
        arrive(&mut input, &vec![0; 3 * KEPT]);
        input.take(3 * KEPT);
        assert!(input.bytes.capacity() <= KEPT, "{}", input.bytes.capacity());
    }
}
