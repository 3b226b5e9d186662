//! Streams in a dump: passed over, since there are none here yet.
//!
//! Invariant: exactly the bytes of the value are taken, whatever groups and consumers it has; nothing of them is kept.

use std::io::Read;

use super::reader::{Reader, Result};

/// The encodings: what Redis 5, 7.0 and 7.2 have written, each a little more than the one before.
const FIRST: u8 = 15;
const SECOND: u8 = 19;
const THIRD: u8 = 21;

/// Whether values of this kind are streams.
pub(super) fn is_one(kind: u8) -> bool {
    [FIRST, SECOND, THIRD].contains(&kind)
}

/// Passes over the stream in this encoding that comes next.
pub(super) fn pass<R: Read>(reader: &mut Reader<R>, kind: u8) -> Result<()> {
    // Entries: the first identity of each block, and the block.
    each(reader, |reader| {
        reader.string()?;
        reader.string().map(drop)
    })?;
    // How many, and the last identity; later the first one, the greatest that was deleted, how many were added.
    lengths(reader, if kind == FIRST { 3 } else { 8 })?;
    each(reader, |reader| {
        reader.string()?;
        // The last identity that the group was given, later how many it has read.
        lengths(reader, if kind == FIRST { 2 } else { 3 })?;
        // What it has not acknowledged: identity, when it was delivered, how often.
        each(reader, |reader| {
            reader.array::<24>()?;
            reader.length().map(drop)
        })?;
        // Its consumers: when they were seen, and later when they were active, and what each has not acknowledged.
        each(reader, |reader| {
            reader.string()?;
            reader.array::<8>()?;
            if kind == THIRD {
                reader.array::<8>()?;
            }
            each(reader, |reader| reader.array::<16>().map(drop))
        })
    })
}

/// So many of something, as the length before them says.
fn each<R: Read>(reader: &mut Reader<R>, mut pass: impl FnMut(&mut Reader<R>) -> Result<()>) -> Result<()> {
    let count = reader.length()?;
    (0..count).try_for_each(|_| pass(reader))
}

fn lengths<R: Read>(reader: &mut Reader<R>, count: usize) -> Result<()> {
    (0..count).try_for_each(|_| reader.length().map(drop))
}
