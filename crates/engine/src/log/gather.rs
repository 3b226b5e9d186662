//! From a session's ring into a batch of the log.
//!
//! A batch has an interval of flush numbers. A record of the ring goes into it if its flush number lies in that
//! interval and it lies below the place where the session's head was frozen.
//!
//! Most records are copied as they lie. The others are written anew, since the log has to stand without the file's
//! pages and outlive `-shm`:
//! - operations of the volatile tree (locks, messages) are left out;
//! - a long value, of which the ring has only a list of runs, is written with its bytes;
//! - a patch, which is bytes written over a part of a long value, is written without the list of runs in which they
//!   were stored.

use perilune_store::{Error, Result};

use super::batch::BatchWriter;
use super::record::{heading, LOG_HEADING};
use crate::session::extent;
use crate::session::patch::Parts;
use crate::session::record::{Kind, Op};
use crate::session::Seat;

/// Writes a session's records of the interval `(after, until]` that lie below `head`, and answers the
/// position up to which nothing of its ring is needed any more.
///
/// # Errors
/// `Corrupt` when a record contradicts its format; what writing answers.
pub(super) fn session(
    seat: &Seat,
    head: u64,
    after: u64,
    until: u64,
    out: &mut BatchWriter<'_>,
) -> Result<u64> {
    let mut at = seat.tail();
    // Plain records from here to `at` are still to be copied: all at once, for they lie as the log has them.
    let mut copied = at;
    while at < head {
        let found = seat.record_heading(at, head)?;
        if found.flush > until {
            break;
        }
        if found.flush > after && found.is_plain() {
            out.note_generation(found.generation);
        } else {
            copy_ring(seat, copied, (at - copied) as usize, out)?;
            if found.flush > after {
                mixed(seat, at, found.flush, out)?;
            }
            copied = at + found.bytes;
        }
        at += found.bytes;
    }
    copy_ring(seat, copied, (at - copied) as usize, out)?;
    Ok(at)
}

/// Copies bytes of a ring.
fn copy_ring(seat: &Seat, mut at: u64, mut len: usize, out: &mut BatchWriter<'_>) -> Result<()> {
    while len > 0 {
        let (buffer, room) = out.room()?;
        // NB: a chunk's body may end anywhere; the ring is read from multiples of 8 as long as possible.
        let count = len.min(room);
        seat.append_ring(at, count, buffer);
        at += count as u64;
        len -= count;
    }
    Ok(())
}

/// Writes a record that is long, or that has operations to be left out or values to be fetched.
fn mixed(seat: &Seat, at: u64, flush: u64, out: &mut BatchWriter<'_>) -> Result<()> {
    let record = seat.read_record(at)?;
    let ops = record.ops()?;
    let logged = || ops.iter().filter(|op| !op.volatile);
    let count = logged().count();
    if count == 0 {
        return Ok(());
    }
    let mut bytes = LOG_HEADING as u64;
    for op in logged() {
        bytes += (8 + (op.key.len() + value_len(seat, op)?).next_multiple_of(8)) as u64;
    }
    out.note_generation(record.generation);
    out.write(&heading(bytes, flush, record.seq, record.generation, count as u32))?;
    let mut scratch = Vec::new();
    for op in logged() {
        scratch.clear();
        let value = if op.kind == Kind::Patch {
            patches(seat, op)?
        } else if op.big {
            let (len, runs) = list(seat, op)?;
            extent::append(&seat.image, &runs, len, &mut scratch);
            &scratch[..]
        } else {
            op.value
        };
        let plain = Op { big: false, value, ..*op };
        plain.encode_to(|bytes| out.write(bytes))?;
    }
    Ok(())
}

fn value_len(seat: &Seat, op: &Op<'_>) -> Result<usize> {
    if op.kind == Kind::Patch {
        patches(seat, op).map(<[u8]>::len)
    } else if op.big {
        list(seat, op).map(|(len, _)| len)
    } else {
        Ok(op.value.len())
    }
}

/// What the log has of an operation that patches a value: all but where that lies.
fn patches<'a>(seat: &Seat, op: &Op<'a>) -> Result<&'a [u8]> {
    let parts = Parts::of(op.value).ok_or_else(|| Error::Corrupt {
        place: format!("redo ring of session {}: an operation that patches a value is wrong", seat.id),
    })?;
    Ok(parts.patches)
}

fn list(seat: &Seat, op: &Op<'_>) -> Result<(usize, Vec<crate::image::layout::Run>)> {
    extent::parse(&seat.image, op.value).ok_or_else(|| Error::Corrupt {
        place: format!("redo ring of session {}: a long value's list of runs is wrong", seat.id),
    })
}
