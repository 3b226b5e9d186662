//! Cursors of the SCAN family: where an iteration is, kept in the tree under a number.
//!
//! `^redis("scan",cursor)` holds the name that was answered last, so that every server of the database
//! can go on from it, and what was there all the time is found once whatever happens in between. A
//! cursor is remembered for an hour.

use perilune::{Node, Session};

use super::NAME;
use crate::failure::{refuse, Result};
use crate::limits::CURSOR_MS;

/// Numbers that fit into a millisecond.
const PER_MS: i64 = 1 << 16;

fn place(cursor: i64) -> Result<Node> {
    Ok(Node::new(NAME)?.with("scan")?.with(cursor)?)
}

/// Keeps the place behind `name`, and answers its number; old ones go.
pub(crate) fn keep(session: &mut Session, now: i64, name: &[u8]) -> Result<i64> {
    let all = Node::new(NAME)?.with("scan")?;
    for _ in 0..2 {
        let Some(oldest) = session.first_child(&all)? else { break };
        let cursor = oldest.last()?.and_then(|number| number.as_i64()).unwrap_or(0);
        if cursor / PER_MS > now - CURSOR_MS {
            break;
        }
        session.delete_value(&oldest)?;
    }
    let mut cursor = now * PER_MS;
    if let Some(newest) = session.last_child(&all)? {
        let newest = newest.last()?.and_then(|number| number.as_i64()).unwrap_or(0);
        cursor = cursor.max(newest + 1);
    }
    session.set(&place(cursor)?, name)?;
    Ok(cursor)
}

/// The name kept under `cursor`; none for 0, which begins.
pub(crate) fn resume(session: &mut Session, cursor: i64) -> Result<Option<Vec<u8>>> {
    if cursor == 0 {
        return Ok(None);
    }
    match session.get_ref(&place(cursor)?)? {
        Some(perilune::ValueRef::String(name)) => Ok(Some(name.to_vec())),
        _ => refuse("ERR invalid cursor"),
    }
}
