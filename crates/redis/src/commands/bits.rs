//! Strings as rows of bits, the first of a byte being its highest.

use std::ops::Range;

use perilune_resp::{parse_integer, Arguments, Replies};

use super::bitfields::Fields;
use super::strings::load;
use crate::failure::{refuse, Result, SYNTAX};
use crate::keyspace::{Entry, Held, Key, Keys, Kind};
use crate::limits::VALUE_BYTES;
use crate::notify;
use crate::numbers::{integer, lower, span};

pub(super) const OFFSET: &str = "ERR bit offset is not an integer or out of range";

fn offset(argument: &[u8]) -> Result<usize> {
    match parse_integer(argument).and_then(|offset| usize::try_from(offset).ok()) {
        Some(offset) if offset / 8 < VALUE_BYTES => Ok(offset),
        _ => refuse(OFFSET),
    }
}

pub(super) fn bit_at(bytes: &[u8], offset: usize) -> bool {
    bytes.get(offset / 8).is_some_and(|byte| byte >> (7 - offset % 8) & 1 == 1)
}

pub(super) fn put_bit(bytes: &mut [u8], offset: usize, bit: bool) {
    let mask = 0x80 >> (offset % 8);
    if bit {
        bytes[offset / 8] |= mask;
    } else {
        bytes[offset / 8] &= !mask;
    }
}

pub(crate) fn setbit(keys: &mut Keys<'_>, arguments: Arguments<'_>, replies: &mut Replies<'_>) -> Result<()> {
    let offset = offset(&arguments[2])?;
    let bit = match &arguments[3] {
        b"0" => false,
        b"1" => true,
        _ => return refuse("ERR bit is not an integer or out of range"),
    };
    let (key, entry) = keys.find(&arguments[1], Kind::String)?;
    let mut field = Fields::of(keys, &key, entry.as_ref())?;
    field.grow(keys, offset / 8 + 1)?;
    let old = field.change(keys, offset..offset + 1, |bytes, at| {
        let old = bit_at(bytes, at);
        put_bit(bytes, at, bit);
        old
    })?;
    field.store(keys)?;
    keys.notify(notify::STRING, "setbit", key.name);
    replies.truth(old);
    Ok(())
}

pub(crate) fn getbit(keys: &mut Keys<'_>, arguments: Arguments<'_>, replies: &mut Replies<'_>) -> Result<()> {
    let offset = offset(&arguments[2])?;
    let (key, entry) = keys.find(&arguments[1], Kind::String)?;
    let bit = match &entry {
        None => false,
        Some(entry) => match keys.held(&key, entry)? {
            Held::Short(bytes) => bit_at(&bytes, offset),
            Held::Long(_) => bit_at(keys.piece(&key, entry, offset / 8..offset / 8 + 1)?, offset % 8),
        },
    };
    replies.truth(bit);
    Ok(())
}

/// Whether the last word asks for bits, not for bytes.
fn in_bits(word: Option<&[u8]>) -> Result<bool> {
    match word.map(lower).as_deref() {
        None | Some(b"byte") => Ok(false),
        Some(b"bit") => Ok(true),
        _ => refuse(SYNTAX),
    }
}

pub(crate) fn bitcount(
    keys: &mut Keys<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies<'_>,
) -> Result<()> {
    let (key, entry) = keys.find(&arguments[1], Kind::String)?;
    let Some(entry) = entry else {
        replies.integer(0);
        return Ok(());
    };
    let range = match (arguments.get(2), arguments.get(3)) {
        (None, _) => None,
        (Some(start), Some(last)) if arguments.len() <= 5 => {
            let range = (integer(start)?, integer(last)?);
            Some((range, in_bits(arguments.get(4))?))
        }
        _ => return refuse(SYNTAX),
    };
    let row = Row::of(keys, &key, &entry)?;
    let length = row.length() as i64;
    let (start, end) = match range {
        None => (0, 8 * length),
        Some(((start, last), _)) if start < 0 && last < 0 && start > last => (0, 0),
        Some(((start, last), in_bits)) => {
            let unit = if in_bits { 1 } else { 8 };
            let units = 8 * length / unit;
            let (start, end) = span(start, last.max(-units), units);
            (start * unit, end * unit)
        }
    };
    let mut count = 0;
    row.look(keys, start as usize..end as usize, |bytes, _, bits| {
        count += ones(bytes, bits);
        true
    })?;
    replies.count(count);
    Ok(())
}

/// How many of the bits `bits` of these bytes are set.
fn ones(bytes: &[u8], bits: Range<usize>) -> usize {
    let (first, last) = (bits.start.div_ceil(8), bits.end / 8);
    if first > last {
        return bits.filter(|at| bit_at(bytes, *at)).count();
    }
    let edges = (bits.start..8 * first).chain(8 * last..bits.end).filter(|at| bit_at(bytes, *at)).count();
    let (words, rest) = bytes[first..last].as_chunks::<8>();
    let words: usize = words.iter().map(|word| u64::from_le_bytes(*word).count_ones() as usize).sum();
    edges + words + rest.iter().map(|byte| byte.count_ones() as usize).sum::<usize>()
}

/// The first of the bits `bits` of these bytes that is `wanted`.
fn first(bytes: &[u8], bits: Range<usize>, wanted: bool) -> Option<usize> {
    let other = if wanted { 0 } else { 0xFF };
    let mut at = bits.start;
    while at < bits.end {
        if at.is_multiple_of(8) {
            let tail = &bytes[at / 8..bits.end / 8];
            at += 8 * tail.iter().position(|byte| *byte != other).unwrap_or(tail.len());
        }
        let end = (at + 8 - at % 8).min(bits.end);
        if let Some(found) = (at..end).find(|at| bit_at(bytes, *at) == wanted) {
            return Some(found);
        }
        at = end;
    }
    None
}

/// A string that is looked at bit by bit, of which no more is read at once than need be.
struct Row<'k> {
    key: &'k Key<'k>,
    entry: &'k Entry,
    held: Held,
}

impl<'k> Row<'k> {
    fn of(keys: &mut Keys<'_>, key: &'k Key<'k>, entry: &'k Entry) -> Result<Row<'k>> {
        Ok(Row { key, entry, held: keys.held(key, entry)? })
    }

    fn length(&self) -> usize {
        self.held.length()
    }

    /// Shows bytes, which of the string's bits their first one is, and which of their bits are among `bits` of the string, one
    /// piece after the other, until `look` answers false.
    fn look(
        &self,
        keys: &mut Keys<'_>,
        bits: Range<usize>,
        mut look: impl FnMut(&[u8], usize, Range<usize>) -> bool,
    ) -> Result<()> {
        match &self.held {
            Held::Short(bytes) => drop(look(bytes, 0, bits)),
            Held::Long(_) => {
                let mut at = bits.start / 8;
                keys.each_piece(self.key, self.entry, at..bits.end.div_ceil(8), |bytes| {
                    let begin = 8 * at;
                    at += bytes.len();
                    look(bytes, begin, bits.start.max(begin) - begin..bits.end.min(8 * at) - begin)
                })?;
            }
        }
        Ok(())
    }
}

pub(crate) fn bitpos(keys: &mut Keys<'_>, arguments: Arguments<'_>, replies: &mut Replies<'_>) -> Result<()> {
    let wanted = match integer(&arguments[2])? {
        0 => false,
        1 => true,
        _ => return refuse("ERR The bit argument must be 1 or 0."),
    };
    let (key, entry) = keys.find(&arguments[1], Kind::String)?;
    let Some(entry) = entry else {
        replies.integer(if wanted { -1 } else { 0 });
        return Ok(());
    };
    if arguments.len() > 6 {
        return refuse(SYNTAX);
    }
    let start = arguments.get(3).map(integer).transpose()?.unwrap_or(0);
    let bits = in_bits(arguments.get(5))?;
    let last = arguments.get(4).map(integer).transpose()?;
    let row = Row::of(keys, &key, &entry)?;
    let unit = if bits { 1 } else { 8 };
    let length = row.length() as i64 * 8 / unit;
    let (from, to) = span(start, last.unwrap_or(-1).max(-length), length);
    let mut found = None;
    row.look(keys, (from * unit) as usize..(to * unit) as usize, |bytes, begin, bits| {
        found = first(bytes, bits, wanted).map(|at| begin + at);
        found.is_none()
    })?;
    replies.integer(match found {
        Some(at) => at as i64,
        // Without an end the string goes on in zeros.
        None if !wanted && last.is_none() && from < to => row.length() as i64 * 8,
        None => -1,
    });
    Ok(())
}

pub(crate) fn bitop(keys: &mut Keys<'_>, arguments: Arguments<'_>, replies: &mut Replies<'_>) -> Result<()> {
    let operation = lower(&arguments[1]);
    match &*operation {
        b"and" | b"or" | b"xor" => {}
        b"not" if arguments.len() == 4 => {}
        b"not" => return refuse("ERR BITOP NOT must be called with a single source key."),
        _ => return refuse(SYNTAX),
    }
    let mut sources = Vec::new();
    for name in arguments.from(3).iter() {
        let (key, entry) = keys.find(name, Kind::String)?;
        sources.push(load(keys, &key, entry.as_ref())?);
    }
    let length = sources.iter().map(Vec::len).max().unwrap_or(0);
    let mut sources = sources.into_iter();
    let mut result = sources.next().unwrap_or_default();
    result.resize(length, 0);
    for source in sources {
        match &*operation {
            b"and" => combine(&mut result, &source, |left, right| left & right),
            b"or" => combine(&mut result, &source, |left, right| left | right),
            _ => combine(&mut result, &source, |left, right| left ^ right),
        }
    }
    if &*operation == b"not" {
        result.iter_mut().for_each(|byte| *byte = !*byte);
    }
    let target = keys.key(&arguments[2])?;
    match (keys.open(&target)?, result.is_empty()) {
        (Some(entry), true) => {
            keys.erase(&target, &entry)?;
            keys.notify(notify::GENERIC, "del", target.name);
        }
        (None, true) => {}
        (entry, false) => {
            keys.put_string(&target, entry.as_ref(), &result, None)?;
            keys.notify(notify::STRING, "set", target.name);
        }
    }
    replies.count(length);
    Ok(())
}

/// Combines bytes with those of another string, behind whose end zeros follow.
fn combine(bytes: &mut [u8], others: &[u8], combine: impl Fn(u8, u8) -> u8) {
    let (beside, behind) = bytes.split_at_mut(others.len().min(bytes.len()));
    beside.iter_mut().zip(others).for_each(|(byte, other)| *byte = combine(*byte, *other));
    behind.iter_mut().for_each(|byte| *byte = combine(*byte, 0));
}
