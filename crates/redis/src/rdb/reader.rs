//! The bytes of a dump one after the other: lengths, strings, and the checksum over all.
//!
//! Invariant: memory is taken as bytes arrive, never because a length promises them.

use std::io::{self, Read};

use crate::limits::VALUE_BYTES;
use crate::numbers::double_of;

/// Why the bytes cannot be used.
#[derive(Debug)]
pub(super) enum Wrong {
    Damaged(&'static str),
    Unsupported(String),
    Io(io::Error),
    Other(Box<super::ImportError>),
}

impl From<io::Error> for Wrong {
    fn from(error: io::Error) -> Wrong {
        Wrong::Io(error)
    }
}

pub(super) type Result<T> = std::result::Result<T, Wrong>;

/// The newest version of the format that is known.
const NEWEST: u32 = 12;

/// A table for the CRC-64 of Redis (Jones), eight bits at a time.
static TABLE: [u64; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u64;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ 0x95AC_9329_AC4B_C9B5 } else { crc >> 1 };
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
};

fn crc64(crc: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(crc, |crc, byte| TABLE[usize::from(crc as u8 ^ byte)] ^ crc >> 8)
}

/// What a length can stand for.
enum Length {
    Bytes(u64),
    /// A string in a special form.
    Special(u8),
}

/// Reads a dump.
pub(super) struct Reader<R> {
    input: R,
    crc: u64,
    place: u64,
}

impl<R: Read> Reader<R> {
    pub(super) fn new(input: R) -> Reader<R> {
        Reader { input, crc: 0, place: 0 }
    }

    /// Bytes read so far.
    pub(super) fn place(&self) -> u64 {
        self.place
    }

    fn fill(&mut self, bytes: &mut [u8]) -> Result<()> {
        self.input.read_exact(bytes)?;
        self.crc = crc64(self.crc, bytes);
        self.place += bytes.len() as u64;
        Ok(())
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut bytes = [0; N];
        self.fill(&mut bytes)?;
        Ok(bytes)
    }

    pub(super) fn byte(&mut self) -> Result<u8> {
        Ok(self.array::<1>()?[0])
    }

    fn bytes(&mut self, count: u64) -> Result<Vec<u8>> {
        if count > VALUE_BYTES as u64 {
            return Err(Wrong::Damaged("a string of more than 512 MiB"));
        }
        let mut bytes = Vec::new();
        let read = self.input.by_ref().take(count).read_to_end(&mut bytes)?;
        if (read as u64) < count {
            return Err(Wrong::Io(io::ErrorKind::UnexpectedEof.into()));
        }
        self.crc = crc64(self.crc, &bytes);
        self.place += count;
        Ok(bytes)
    }

    /// `REDIS` and four digits; the version.
    pub(super) fn header(&mut self) -> Result<u32> {
        let header = self.array::<9>().map_err(|_| Wrong::Damaged("this is no dump of Redis"))?;
        let version = header
            .strip_prefix(b"REDIS")
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| digits.parse().ok());
        match version {
            Some(version @ 1..=NEWEST) => Ok(version),
            Some(version) => Err(Wrong::Unsupported(format!("a dump of version {version}"))),
            None => Err(Wrong::Damaged("this is no dump of Redis")),
        }
    }

    /// Compares the checksum behind the end; one of zero was not made.
    pub(super) fn end(&mut self, version: u32) -> Result<()> {
        let crc = self.crc;
        if version >= 5 {
            let stored = u64::from_le_bytes(self.array()?);
            if stored != 0 && stored != crc {
                return Err(Wrong::Damaged("the checksum is wrong"));
            }
        }
        Ok(())
    }

    fn length_or_form(&mut self) -> Result<Length> {
        let first = self.byte()?;
        Ok(match first >> 6 {
            0 => Length::Bytes(u64::from(first & 0x3F)),
            1 => Length::Bytes(u64::from(first & 0x3F) << 8 | u64::from(self.byte()?)),
            2 if first == 0x80 => Length::Bytes(u64::from(u32::from_be_bytes(self.array()?))),
            2 if first == 0x81 => Length::Bytes(u64::from_be_bytes(self.array()?)),
            2 => return Err(Wrong::Damaged("a length in an unknown form")),
            _ => Length::Special(first & 0x3F),
        })
    }

    pub(super) fn length(&mut self) -> Result<u64> {
        match self.length_or_form()? {
            Length::Bytes(length) => Ok(length),
            Length::Special(_) => Err(Wrong::Damaged("a string where a length belongs")),
        }
    }

    /// So many of something, as the length before them says.
    pub(super) fn many<T>(&mut self, mut one: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        let count = self.length()?;
        let mut all = Vec::new();
        for _ in 0..count {
            all.push(one(self)?);
        }
        Ok(all)
    }

    pub(super) fn string(&mut self) -> Result<Vec<u8>> {
        let number = match self.length_or_form()? {
            Length::Bytes(count) => return self.bytes(count),
            Length::Special(0) => i32::from(i8::from_le_bytes(self.array()?)),
            Length::Special(1) => i32::from(i16::from_le_bytes(self.array()?)),
            Length::Special(2) => i32::from_le_bytes(self.array()?),
            Length::Special(3) => {
                let (packed, whole) = (self.length()?, self.length()?);
                if whole > VALUE_BYTES as u64 {
                    return Err(Wrong::Damaged("a string of more than 512 MiB"));
                }
                let packed = self.bytes(packed)?;
                return unpacked(&packed, whole as usize)
                    .ok_or(Wrong::Damaged("a compressed string is damaged"));
            }
            Length::Special(_) => return Err(Wrong::Damaged("a string in an unknown form")),
        };
        Ok(number.to_string().into_bytes())
    }

    /// A score as it was written before version 8: text, or a sign.
    pub(super) fn old_double(&mut self) -> Result<f64> {
        match self.byte()? {
            253 => Err(Wrong::Damaged("a score that is no number")),
            254 => Ok(f64::INFINITY),
            255 => Ok(f64::NEG_INFINITY),
            length => {
                let text = self.bytes(u64::from(length))?;
                double_of(&text).ok_or(Wrong::Damaged("a score that is no number"))
            }
        }
    }
}

/// Undoes LZF: runs of bytes, and pieces of what came before.
fn unpacked(packed: &[u8], whole: usize) -> Option<Vec<u8>> {
    // A byte of it stands for some 130 at most.
    let mut out = Vec::with_capacity(whole.min(packed.len().saturating_mul(132)));
    let mut bytes = packed.iter().copied();
    while let Some(control) = bytes.next() {
        if control < 32 {
            for _ in 0..=control {
                out.push(bytes.next()?);
            }
        } else {
            let mut length = usize::from(control >> 5) + 2;
            if length == 9 {
                length += usize::from(bytes.next()?);
            }
            let back = (usize::from(control & 0x1F) << 8 | usize::from(bytes.next()?)) + 1;
            let start = out.len().checked_sub(back)?;
            for at in start..start + length {
                out.push(out[at]);
            }
        }
        if out.len() > whole {
            return None;
        }
    }
    (out.len() == whole).then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_that_of_redis() {
        assert_eq!(crc64(0, b"123456789"), 0xE9C6_D914_C4B8_D9CA);
    }

    #[test]
    fn lzf_is_undone_or_refused() {
        assert_eq!(unpacked(&[2, b'a', b'b', b'c'], 3).as_deref(), Some(&b"abc"[..]));
        // "a", then 9 + 0 bytes from one byte back.
        assert_eq!(unpacked(&[0, b'a', 0xE0, 0, 0], 10).as_deref(), Some(&b"aaaaaaaaaa"[..]));
        for wrong in [&[2, b'a'][..], &[0x20, 0], &[0, b'a', 0x20, 5], &[0, b'a', 0xE0]] {
            assert_eq!(unpacked(wrong, 3), None);
        }
        assert_eq!(unpacked(&[0, b'a'], 2), None);
    }
}
