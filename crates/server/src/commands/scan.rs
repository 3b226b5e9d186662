//! SCAN, and what the scans of a key's elements share with it.

use perilune_resp::{parse_integer, Arguments, Replies};

use crate::failure::{refuse, Result, NOT_INTEGER, SYNTAX};
use crate::keyspace::{scan, Keys, Kind, Names};
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

fn cursor(argument: &[u8]) -> Result<i64> {
    match parse_integer(argument) {
        Some(cursor) if cursor >= 0 => Ok(cursor),
        _ => refuse("ERR invalid cursor"),
    }
}

/// The head of every scan's reply: where to go on.
fn reply_cursor(keys: &mut Keys<'_>, behind: Option<&[u8]>, replies: &mut Replies<'_>) -> Result<()> {
    let cursor = match behind {
        None => 0,
        Some(name) => scan::keep(keys.session, keys.now, name)?,
    };
    replies.array(2);
    replies.bulk_integer(cursor);
    Ok(())
}

pub(crate) fn scan(keys: &mut Keys<'_>, arguments: Arguments<'_>, replies: &mut Replies<'_>) -> Result<()> {
    let from = cursor(&arguments[1])?;
    let options = Options::parse(arguments.from(2))?;
    let wanted = options.kind.map(lower);
    let mut walk = keys.walk()?;
    if let Some(name) = scan::resume(keys.session, from)? {
        walk.seek_past(keys, &name)?;
    }
    let (mut found, mut last, mut seen) = (Vec::new(), None, 0);
    while seen < options.count {
        let Some((name, kind)) = walk.next_with_kind(keys)? else {
            last = None;
            break;
        };
        seen += 1;
        last = Some(name.to_vec());
        if options.takes(name) && wanted.as_deref().is_none_or(|wanted| wanted == kind.name().as_bytes()) {
            found.push(name.to_vec());
        }
    }
    reply_cursor(keys, last.as_deref(), replies)?;
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
    let options = Options::parse(arguments.from(3))?;
    if options.kind.is_some() {
        return refuse(SYNTAX);
    }
    let (key, entry) = keys.find(&arguments[1], kind)?;
    let mut names = Names::below(key.part(kind)?);
    let mut walk = names.walk();
    if let Some(name) = scan::resume(keys.session, from)? {
        walk.seek_past(&mut names, &name)?;
    }
    let mut out = Vec::new();
    let mut found = Replies::new(&mut out, replies.protocol());
    let (mut count, mut last, mut seen) = (0, None, 0);
    while entry.is_some() && seen < options.count {
        if !walk.next(keys.session)? {
            last = None;
            break;
        }
        seen += 1;
        last = Some(walk.name().to_vec());
        if options.takes(walk.name()) {
            element(walk.name(), walk.value()?, &mut found);
            count += each;
        }
    }
    reply_cursor(keys, last.as_deref(), replies)?;
    replies.array(count);
    replies.raw(&out);
    Ok(())
}
