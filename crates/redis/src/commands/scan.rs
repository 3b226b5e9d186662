//! SCAN, and what the scans of a key's elements share with it.

use perilune_resp::{parse_integer, Arguments, Replies};

use crate::cursors::Scan;
use crate::failure::{refuse, Result, NOT_INTEGER, SYNTAX};
use crate::keyspace::{Keys, Kind, Names};
use crate::numbers::lower;
use crate::pattern;

/// The options of all scans.
pub(crate) struct Options<'a> {
    /// Names at most that are looked at in one call.
    pub(crate) count: usize,
    pub(crate) pattern: Option<&'a [u8]>,
    kind: Option<&'a [u8]>,
}

impl<'a> Options<'a> {
    fn parse(arguments: Arguments<'a>) -> Result<Options<'a>> {
        let mut options = Options { count: 10, pattern: None, kind: None };
        for index in (0..arguments.len()).step_by(2) {
            let Some(value) = arguments.get(index + 1) else { return refuse(SYNTAX) };
            match &*lower(&arguments[index]) {
                b"count" => match parse_integer(value) {
                    Some(count) if count >= 1 => options.count = usize::try_from(count).unwrap_or(usize::MAX),
                    Some(_) => return refuse(SYNTAX),
                    None => return refuse(NOT_INTEGER),
                },
                b"match" => options.pattern = Some(value),
                b"type" => options.kind = Some(value),
                _ => return refuse(SYNTAX),
            }
        }
        Ok(options)
    }

    pub(crate) fn takes(&self, name: &[u8]) -> bool {
        self.pattern.is_none_or(|pattern| pattern::matches(pattern, name))
    }
}

/// A cursor as Redis reads it: a number of 64 bits, whose sign may be written, or nothing.
fn cursor(argument: &[u8]) -> Result<u64> {
    let (minus, digits) = match argument {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    let is_number = digits.iter().all(u8::is_ascii_digit) && (argument.is_empty() || !digits.is_empty());
    let number = digits.iter().try_fold(0_u64, |number, digit| {
        number.checked_mul(10)?.checked_add(u64::from(digit.wrapping_sub(b'0')))
    });
    match number.filter(|_| is_number) {
        Some(number) => Ok(if minus { number.wrapping_neg() } else { number }),
        None => refuse("ERR invalid cursor"),
    }
}

/// The head of every scan's reply: where to go on.
fn reply_cursor(keys: &mut Keys<'_>, scan: &Scan, behind: Option<&[u8]>, replies: &mut Replies<'_>) {
    let cursor = behind.map_or(0, |place| keys.effects.cursors().give(scan, place));
    replies.array(2);
    replies.bulk_integer(cursor as i64);
}

pub(crate) fn scan(keys: &mut Keys<'_>, arguments: Arguments<'_>, replies: &mut Replies<'_>) -> Result<()> {
    let from = cursor(&arguments[1])?;
    let options = Options::parse(arguments.from(2))?;
    let wanted = options.kind.map(lower);
    let scan = keys.effects.cursors().resume(from);
    let most = scan.step(options.count);
    let mut walk = keys.walk()?;
    if let Some(place) = &scan.behind {
        walk.seek_past(keys, place)?;
    }
    let (mut found, mut last, mut seen, mut is_end) = (Vec::new(), Vec::new(), 0, true);
    while let Some((name, kind)) = walk.next_with_kind(keys)? {
        if seen == most {
            is_end = false;
            break;
        }
        seen += 1;
        if options.takes(name) && wanted.as_deref().is_none_or(|wanted| wanted == kind.name().as_bytes()) {
            found.push(name.to_vec());
        }
        walk.note_place(&mut last)?;
    }
    reply_cursor(keys, &scan, (!is_end).then_some(&last[..]), replies);
    replies.array(found.len());
    for name in &found {
        replies.bulk(name);
    }
    Ok(())
}

/// HSCAN, SSCAN, ZSCAN: `element` answers what is said of a name, as `each` replies a name.
pub(crate) fn scan_elements(
    keys: &mut Keys<'_>,
    arguments: Arguments<'_>,
    kind: Kind,
    each: usize,
    replies: &mut Replies<'_>,
    mut element: impl FnMut(&[u8], perilune::ValueRef<'_>, &mut Replies<'_>),
) -> Result<()> {
    let from = cursor(&arguments[2])?;
    let (key, entry) = keys.find(&arguments[1], kind)?;
    let scan = keys.effects.cursors().resume(from);
    if entry.is_none() {
        // Whatever else the client says, as in Redis.
        reply_cursor(keys, &scan, None, replies);
        replies.array(0);
        return Ok(());
    }
    let options = Options::parse(arguments.from(3))?;
    if options.kind.is_some() {
        return refuse(SYNTAX);
    }
    let most = scan.step(options.count);
    let mut names = Names::below(key.part(kind)?);
    let mut walk = names.walk();
    if let Some(place) = &scan.behind {
        walk.seek_past(&mut names, place)?;
    }
    let mut out = Vec::new();
    let mut found = Replies::new(&mut out, replies.protocol());
    let (mut count, mut last, mut seen, mut is_end) = (0, Vec::new(), 0, true);
    while walk.next(keys.session)? {
        if seen == most {
            is_end = false;
            break;
        }
        seen += 1;
        if options.takes(walk.name()) {
            element(walk.name(), walk.value()?, &mut found);
            count += each;
        }
        walk.note_place(&mut last)?;
    }
    reply_cursor(keys, &scan, (!is_end).then_some(&last[..]), replies);
    replies.array(count);
    replies.raw(&out);
    Ok(())
}
