//! SORT and SORT_RO.

use std::cmp::Ordering;

use perilune_resp::{Arguments, Replies};

use super::sets::Set;
use crate::failure::{refuse, Result, SYNTAX, WRONG_TYPE};
use crate::keyspace::{text, Contents, Keys, Kind, Names};
use crate::notify;
use crate::numbers::{double_of, integer, lower};

/// The options.
#[derive(Default)]
struct Query<'a> {
    by: Option<&'a [u8]>,
    gets: Vec<&'a [u8]>,
    limit: Option<(i64, i64)>,
    descending: bool,
    alpha: bool,
    store: Option<&'a [u8]>,
}

impl<'a> Query<'a> {
    fn parse(arguments: Arguments<'a>, stores: bool) -> Result<Query<'a>> {
        let mut query = Query::default();
        let mut words = arguments.iter();
        while let Some(word) = words.next() {
            let left = words.len();
            let mut next = || words.next().unwrap_or_default();
            match &*lower(word) {
                b"asc" => query.descending = false,
                b"desc" => query.descending = true,
                b"alpha" => query.alpha = true,
                b"limit" if left >= 2 => query.limit = Some((integer(next())?, integer(next())?)),
                b"store" if stores && left >= 1 => query.store = Some(next()),
                b"by" if left >= 1 => query.by = Some(next()),
                b"get" if left >= 1 => query.gets.push(next()),
                _ => return refuse(SYNTAX),
            }
        }
        Ok(query)
    }

    /// A pattern without a star: the elements stay as they are.
    fn is_unsorted(&self) -> bool {
        self.by.is_some_and(|by| !by.contains(&b'*'))
    }

    fn limited<T>(&self, mut sorted: Vec<T>) -> Vec<T> {
        let Some((start, count)) = self.limit else { return sorted };
        let start = usize::try_from(start).unwrap_or(0).min(sorted.len());
        sorted.drain(..start);
        if let Ok(count) = usize::try_from(count) {
            sorted.truncate(count);
        }
        sorted
    }
}

/// What an element is compared by.
enum Weight {
    Number(f64),
    Bytes(Option<Vec<u8>>),
}

/// The elements of a list, set or sorted set, before they are sorted.
fn elements(keys: &mut Keys<'_>, name: &[u8], query: &Query<'_>) -> Result<Vec<Vec<u8>>> {
    let key = keys.key(name)?;
    let Some(entry) = keys.open(&key)? else { return Ok(Vec::new()) };
    Ok(match entry.kind {
        Kind::Set => {
            let mut members = Set::open(keys, name)?.all(keys)?;
            if query.is_unsorted() {
                // They have no order of their own: this one is the same each time.
                members.sort_unstable();
            }
            members
        }
        Kind::List | Kind::Zset => match Contents::read(keys, &key, &entry)? {
            Contents::Zset(members) => {
                let mut members: Vec<_> = members.into_iter().map(|scored| scored.member).collect();
                if query.is_unsorted() && query.descending {
                    members.reverse();
                }
                members
            }
            Contents::List(elements) => elements,
            _ => Vec::new(),
        },
        Kind::String | Kind::Hash => return refuse(WRONG_TYPE),
    })
}

/// What the pattern of BY or GET stands for: the value of a string, or of a field behind `->`.
fn look_up(keys: &mut Keys<'_>, pattern: &[u8], element: &[u8]) -> Result<Option<Vec<u8>>> {
    if pattern == b"#" {
        return Ok(Some(element.to_vec()));
    }
    let Some(star) = pattern.iter().position(|byte| *byte == b'*') else { return Ok(None) };
    let behind = &pattern[star + 1..];
    let arrow = behind.windows(2).position(|pair| pair == b"->").filter(|at| at + 2 < behind.len());
    let (rest, field) = match arrow {
        Some(at) => (&behind[..at], Some(&behind[at + 2..])),
        None => (behind, None),
    };
    let name = [&pattern[..star], element, rest].concat();
    let key = keys.key(&name)?;
    match (keys.open(&key)?, field) {
        (Some(entry), None) if entry.kind == Kind::String => {
            Ok(Some(text::bytes_of(keys.string(&key, &entry)?).into_owned()))
        }
        (Some(entry), Some(field)) if entry.kind == Kind::Hash => {
            let value = Names::below(key.part(Kind::Hash)?);
            Ok({ value }.get(keys.session, field)?.map(|value| text::bytes_of(value).into_owned()))
        }
        _ => Ok(None),
    }
}

/// What an element counts as: as C reads numbers, up to a zero byte; nothing is 0.
fn number(bytes: &[u8]) -> Result<f64> {
    let bytes = bytes.split(|byte| *byte == 0).next().unwrap_or_default().trim_ascii_start();
    match if bytes.is_empty() { Some(0.0) } else { double_of(bytes) } {
        Some(number) => Ok(number),
        None => refuse("ERR One or more scores can't be converted into double"),
    }
}

fn sorted(keys: &mut Keys<'_>, elements: Vec<Vec<u8>>, query: &Query<'_>) -> Result<Vec<Vec<u8>>> {
    if query.is_unsorted() {
        return Ok(elements);
    }
    let mut weighed = Vec::with_capacity(elements.len());
    for element in elements {
        let by = match query.by {
            Some(pattern) => look_up(keys, pattern, &element)?,
            None => Some(element.clone()),
        };
        let weight = match (query.alpha, by) {
            (true, by) => Weight::Bytes(by),
            (false, Some(by)) => Weight::Number(number(&by)?),
            (false, None) => Weight::Number(0.0),
        };
        weighed.push((weight, element));
    }
    weighed.sort_by(|(left, element), (right, other)| {
        let order = match (left, right) {
            (Weight::Number(left), Weight::Number(right)) => {
                left.partial_cmp(right).unwrap_or(Ordering::Equal).then_with(|| element.cmp(other))
            }
            (Weight::Bytes(left), Weight::Bytes(right)) => left.cmp(right),
            _ => Ordering::Equal,
        };
        if query.descending {
            order.reverse()
        } else {
            order
        }
    });
    Ok(weighed.into_iter().map(|(_, element)| element).collect())
}

/// SORT, SORT_RO.
pub(crate) fn sort(keys: &mut Keys<'_>, arguments: Arguments<'_>, replies: &mut Replies<'_>) -> Result<()> {
    let query = Query::parse(arguments.from(2), lower(&arguments[0]) == &b"sort"[..])?;
    let elements = elements(keys, &arguments[1], &query)?;
    let sorted = query.limited(sorted(keys, elements, &query)?);
    let mut found = Vec::with_capacity(sorted.len() * query.gets.len().max(1));
    for element in sorted {
        if query.gets.is_empty() {
            found.push(Some(element));
            continue;
        }
        for get in &query.gets {
            found.push(look_up(keys, get, &element)?);
        }
    }
    let Some(target) = query.store else {
        replies.array(found.len());
        for element in &found {
            replies.bulk_or_null(element.as_deref());
        }
        return Ok(());
    };
    let list: Vec<Vec<u8>> = found.into_iter().map(Option::unwrap_or_default).collect();
    let count = list.len();
    if count > 0 {
        Contents::List(list).write(keys, target, None)?;
        keys.notify(notify::LIST, "sortstore", target);
    } else {
        let key = keys.key(target)?;
        if let Some(old) = keys.open(&key)? {
            keys.empty(&key, &old)?;
        }
    }
    replies.count(count);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An element that begins with a zero byte, which is 0 to Redis, was refused as no number.
    #[test]
    fn elements_are_numbers_up_to_a_zero_byte() {
        for (bytes, is) in [(&b"\0\0x"[..], 0.0), (b"", 0.0), (b" ", 0.0), (b" 12\0x", 12.0), (b"-1.5", -1.5)]
        {
            assert_eq!(number(bytes).ok(), Some(is), "{}", bytes.escape_ascii());
        }
        for bytes in [&b"x\0"[..], b"1x", b"nan"] {
            assert!(number(bytes).is_err(), "{}", bytes.escape_ascii());
        }
    }
}
