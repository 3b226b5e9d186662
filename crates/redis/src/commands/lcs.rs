//! LCS: the longest common subsequence of two strings.

use perilune_resp::{Arguments, Replies};

use super::strings::load;
use crate::failure::{refuse, Failure, Result, SYNTAX};
use crate::keyspace::{Keys, Kind};
use crate::limits::VALUE_BYTES;
use crate::numbers::{integer, lower};

/// The options.
#[derive(Default)]
struct Options {
    only_length: bool,
    indexes: bool,
    /// Matches shorter than this are not told.
    least: i64,
    with_lengths: bool,
}

impl Options {
    fn parse(arguments: Arguments<'_>) -> Result<Options> {
        let mut options = Options::default();
        let mut words = arguments.iter();
        while let Some(word) = words.next() {
            match (&*lower(word), words.len()) {
                (b"idx", _) => options.indexes = true,
                (b"len", _) => options.only_length = true,
                (b"withmatchlen", _) => options.with_lengths = true,
                (b"minmatchlen", 1..) => options.least = integer(words.next().unwrap_or_default())?.max(0),
                _ => return refuse(SYNTAX),
            }
        }
        if options.indexes && options.only_length {
            return refuse("ERR If you want both the length and indexes, please just use IDX.");
        }
        Ok(options)
    }
}

pub(crate) fn lcs(keys: &mut Keys<'_>, arguments: Arguments<'_>, replies: &mut Replies<'_>) -> Result<()> {
    let mut strings = [Vec::new(), Vec::new()];
    for (string, name) in strings.iter_mut().zip(arguments.from(1).iter()) {
        let (key, entry) = match keys.find(name, Kind::String) {
            Ok(found) => found,
            Err(Failure::Reply(_)) => return refuse("ERR The specified keys must contain string values"),
            Err(other) => return Err(other),
        };
        *string = load(keys, &key, entry.as_ref())?;
    }
    let options = Options::parse(arguments.from(3))?;
    let table = Lengths::of(&strings[0], &strings[1])?;
    if options.only_length {
        replies.integer(i64::from(table.total()));
        return Ok(());
    }
    let (common, matches) = table.trace(&strings[0], &strings[1]);
    if !options.indexes {
        replies.bulk(&common);
        return Ok(());
    }
    replies.map(2);
    replies.bulk(b"matches");
    let told: Vec<&Match> = matches.iter().filter(|found| found.length as i64 >= options.least).collect();
    replies.array(told.len());
    for found in told {
        replies.array(2 + usize::from(options.with_lengths));
        for start in [found.left, found.right] {
            replies.array(2);
            replies.count(start);
            replies.count(start + found.length - 1);
        }
        if options.with_lengths {
            replies.count(found.length);
        }
    }
    replies.bulk(b"len");
    replies.integer(i64::from(table.total()));
    Ok(())
}

/// A run that is in both strings: where it begins in each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Match {
    left: usize,
    right: usize,
    length: usize,
}

/// The length of the longest common subsequence of each pair of beginnings.
struct Lengths {
    lengths: Vec<u32>,
    width: usize,
}

impl Lengths {
    fn of(left: &[u8], right: &[u8]) -> Result<Lengths> {
        let width = right.len() + 1;
        if (left.len() + 1).saturating_mul(width) > VALUE_BYTES / 4 {
            return refuse("ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len");
        }
        let mut lengths = vec![0_u32; (left.len() + 1) * width];
        for (row, byte) in left.iter().enumerate() {
            for (column, other) in right.iter().enumerate() {
                let at = (row + 1) * width + column + 1;
                lengths[at] = if byte == other {
                    lengths[at - width - 1] + 1
                } else {
                    lengths[at - width].max(lengths[at - 1])
                };
            }
        }
        Ok(Lengths { lengths, width })
    }

    fn total(&self) -> u32 {
        self.lengths.last().copied().unwrap_or(0)
    }

    /// The subsequence, and its runs from the last one on.
    fn trace(&self, left: &[u8], right: &[u8]) -> (Vec<u8>, Vec<Match>) {
        let (mut row, mut column) = (left.len(), right.len());
        let (mut common, mut matches): (Vec<u8>, Vec<Match>) = (Vec::new(), Vec::new());
        let mut open = false;
        while row > 0 && column > 0 {
            let at = row * self.width + column;
            if left[row - 1] == right[column - 1] {
                common.push(left[row - 1]);
                row -= 1;
                column -= 1;
                match matches.last_mut().filter(|_| open) {
                    Some(last) => *last = Match { left: row, right: column, length: last.length + 1 },
                    None => matches.push(Match { left: row, right: column, length: 1 }),
                }
                open = true;
            } else {
                open = false;
                if self.lengths[at - self.width] > self.lengths[at - 1] {
                    row -= 1;
                } else {
                    column -= 1;
                }
            }
        }
        common.reverse();
        (common, matches)
    }
}
