//! BITFIELD: numbers of any width inside a string.
//!
//! A string that is changed here is held in one of two ways: a short one as its bytes, written back at the end; of a long one
//! only the pieces in which something lies, changed in their place.
//!
//! Invariant: what is refused changes nothing: all steps are read before the first one is done.

use std::ops::Range;

use perilune_resp::{parse_integer, Arguments, Replies};

use super::bits::{bit_at, put_bit, OFFSET};
use super::strings::{check_length, held};
use crate::failure::{refuse, refuse_with, Result, SYNTAX, TOO_LONG};
use crate::keyspace::{Entry, Held, Key, Keys, Kind};
use crate::limits::VALUE_BYTES;
use crate::notify;
use crate::numbers::{integer, lower};

/// A string in which bits are changed: a short one whole, a long one in its place.
pub(super) struct Fields<'k> {
    key: &'k Key<'k>,
    entry: Option<&'k Entry>,
    held: Held,
}

impl<'k> Fields<'k> {
    pub(super) fn of(keys: &mut Keys<'_>, key: &'k Key<'k>, entry: Option<&'k Entry>) -> Result<Fields<'k>> {
        Ok(Fields { key, entry, held: held(keys, key, entry)? })
    }

    /// Makes sure that the string will have so many bytes.
    pub(super) fn grow(&mut self, keys: &mut Keys<'_>, length: usize) -> Result<()> {
        keys.check_growth(self.held.length(), length)?;
        match (&mut self.held, self.entry) {
            (Held::Short(bytes), _) => bytes.resize(bytes.len().max(length), 0),
            (Held::Long(long), Some(entry)) if length > *long => {
                keys.patch(self.key, entry, length - 1, &[0])?;
                *long = length;
            }
            _ => {}
        }
        Ok(())
    }

    /// Shows the bytes that hold `bits`, zeros behind the end, and where the bits begin in them.
    fn look<T>(
        &self,
        keys: &mut Keys<'_>,
        bits: Range<usize>,
        look: impl FnOnce(&[u8], usize) -> T,
    ) -> Result<T> {
        match (&self.held, self.entry) {
            (Held::Long(_), Some(entry)) => {
                let bytes = keys.piece(self.key, entry, bits.start / 8..bits.end.div_ceil(8))?;
                Ok(look(bytes, bits.start % 8))
            }
            (Held::Long(_), None) => Ok(look(&[], 0)),
            (Held::Short(bytes), _) => Ok(look(bytes, bits.start)),
        }
    }

    /// Has `change` work on these bits of the string, which has grown as far as need be.
    pub(super) fn change<T>(
        &mut self,
        keys: &mut Keys<'_>,
        bits: Range<usize>,
        change: impl FnOnce(&mut [u8], usize) -> T,
    ) -> Result<T> {
        match (&mut self.held, self.entry) {
            (Held::Long(_), Some(entry)) => {
                let (first, end) = (bits.start / 8, bits.end.div_ceil(8));
                let mut bytes = keys.piece(self.key, entry, first..end)?.to_vec();
                bytes.resize(end - first, 0);
                let answer = change(&mut bytes, bits.start % 8);
                keys.patch(self.key, entry, first, &bytes)?;
                Ok(answer)
            }
            (Held::Long(_), None) => Ok(change(&mut [], 0)),
            (Held::Short(bytes), _) => Ok(change(bytes, bits.start)),
        }
    }

    /// Keeps what has been changed.
    pub(super) fn store(self, keys: &mut Keys<'_>) -> Result<()> {
        match self.held {
            Held::Short(bytes) => keys.change_string(self.key, self.entry, &bytes),
            Held::Long(_) => Ok(()),
        }
    }
}

/// A row of bits inside a string, read as a number.
#[derive(Clone, Copy, Debug)]
struct Field {
    signed: bool,
    width: u32,
    offset: usize,
}

/// What happens to a sum that a field cannot hold.
#[derive(Clone, Copy, Debug)]
enum Overflow {
    Wrap,
    Saturate,
    Fail,
}

impl Field {
    fn parse(kind: &[u8], at: &[u8]) -> Result<Field> {
        const KIND: &str = "ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is.";
        let (signed, digits) = match kind {
            [b'i', digits @ ..] => (true, digits),
            [b'u', digits @ ..] => (false, digits),
            _ => return refuse(KIND),
        };
        let width = match parse_integer(digits) {
            Some(width @ 1..=64) if signed || width < 64 => width as u32,
            _ => return refuse(KIND),
        };
        let (factor, at) = match at {
            [b'#', at @ ..] => (width as usize, at),
            at => (1, at),
        };
        let offset = parse_integer(at).and_then(|at| usize::try_from(at).ok()?.checked_mul(factor));
        match offset {
            Some(offset) if (offset.saturating_add(width as usize) - 1) / 8 < VALUE_BYTES => {
                Ok(Field { signed, width, offset })
            }
            _ => refuse(OFFSET),
        }
    }

    fn range(self) -> (i128, i128) {
        let top = 1_i128 << (self.width - u32::from(self.signed));
        (if self.signed { -top } else { 0 }, top - 1)
    }

    /// The bits that it is.
    fn bits(self) -> Range<usize> {
        self.offset..self.offset + self.width as usize
    }

    /// Its number, where its bits begin at `from`.
    fn read(self, bytes: &[u8], from: usize) -> i64 {
        let bits = (0..self.width as usize)
            .fold(0_u64, |number, at| number << 1 | u64::from(bit_at(bytes, from + at)));
        self.folded(i128::from(bits)) as i64
    }

    fn write(self, bytes: &mut [u8], from: usize, number: i64) {
        for at in 0..self.width {
            put_bit(bytes, from + at as usize, number >> (self.width - 1 - at) & 1 == 1);
        }
    }

    /// The low bits of `number`, as the field reads them.
    fn folded(self, number: i128) -> i128 {
        let (low, high) = self.range();
        let bits = number & ((1_i128 << self.width) - 1);
        if bits > high {
            bits - (1_i128 << self.width)
        } else {
            bits.max(low)
        }
    }

    /// What is stored for `number`; none if it is refused.
    fn fit(self, number: i128, overflow: Overflow) -> Option<i64> {
        let (low, high) = self.range();
        if (low..=high).contains(&number) {
            return i64::try_from(number).ok();
        }
        let fitted = match overflow {
            Overflow::Wrap => self.folded(number),
            Overflow::Saturate => number.clamp(low, high),
            Overflow::Fail => return None,
        };
        i64::try_from(fitted).ok()
    }
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Get(Field),
    Set(Field, i64, Overflow),
    Add(Field, i64, Overflow),
}

fn steps(arguments: Arguments<'_>, only_get: bool) -> Result<Vec<Step>> {
    let (mut steps, mut overflow) = (Vec::new(), Overflow::Wrap);
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let word = lower(word);
        match (&*word, words.len()) {
            (b"overflow", 1..) => {
                overflow = match &*lower(words.next().unwrap_or_default()) {
                    b"wrap" => Overflow::Wrap,
                    b"sat" => Overflow::Saturate,
                    b"fail" => Overflow::Fail,
                    _ => return refuse("ERR Invalid OVERFLOW type specified"),
                };
                continue;
            }
            (b"get", 2..) | (b"set" | b"incrby", 3..) => {}
            _ => return refuse(SYNTAX),
        }
        let field = Field::parse(words.next().unwrap_or_default(), words.next().unwrap_or_default())?;
        if &*word == b"get" {
            steps.push(Step::Get(field));
            continue;
        }
        if only_get {
            return refuse("ERR BITFIELD_RO only supports the GET subcommand");
        }
        let number = integer(words.next().unwrap_or_default())?;
        steps.push(match &*word {
            b"set" => Step::Set(field, number, overflow),
            _ => Step::Add(field, number, overflow),
        });
    }
    Ok(steps)
}

/// BITFIELD, BITFIELD_RO.
pub(crate) fn bitfield(
    keys: &mut Keys<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies<'_>,
) -> Result<()> {
    let only_get = lower(&arguments[0]) == &b"bitfield_ro"[..];
    let steps = steps(arguments.from(2), only_get)?;
    let (key, entry) = keys.find(&arguments[1], Kind::String)?;
    let mut fields = Fields::of(keys, &key, entry.as_ref())?;
    let mut longest = 0;
    for step in &steps {
        if let Step::Set(field, ..) | Step::Add(field, ..) = step {
            longest = longest.max((field.offset + field.width as usize).div_ceil(8));
        }
    }
    if longest > VALUE_BYTES {
        return refuse_with(TOO_LONG.to_owned());
    }
    check_length(longest)?;
    let writes = longest > 0;
    fields.grow(keys, longest)?;
    replies.array(steps.len());
    for step in steps {
        let (field, answer, stored) = match step {
            Step::Get(field) => {
                replies.integer(fields.look(keys, field.bits(), |bytes, at| field.read(bytes, at))?);
                continue;
            }
            Step::Set(field, number, overflow) => {
                let stored = field.fit(i128::from(number), overflow);
                let old = fields.look(keys, field.bits(), |bytes, at| field.read(bytes, at))?;
                (field, stored.map(|_| old), stored)
            }
            Step::Add(field, by, overflow) => {
                let old = fields.look(keys, field.bits(), |bytes, at| field.read(bytes, at))?;
                let stored = field.fit(i128::from(old) + i128::from(by), overflow);
                (field, stored, stored)
            }
        };
        if let Some(stored) = stored {
            fields.change(keys, field.bits(), |bytes, at| field.write(bytes, at, stored))?;
        }
        match answer {
            Some(answer) => replies.integer(answer),
            None => replies.null(),
        }
    }
    if writes {
        fields.store(keys)?;
        keys.notify(notify::STRING, "setbit", key.name);
    }
    Ok(())
}
