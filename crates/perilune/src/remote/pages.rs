//! Walks of a client over many nodes, answered a page at a time.
//!
//! Problem: a walk of a thousand steps would be a thousand round trips. Idea: one request asks for many steps, and
//! one reply holds as many as fit.
//!
//! Invariant: a page has at least one step if there is any. It ends with the step that reaches [`PAGE_BYTES`], or
//! before a later one that is longer than that by itself.

use perilune_remote::wire::{child_of, step_behind};
use perilune_resp::Replies;
use perilune_store::Session as StoreSession;

use super::fence;

use super::serve::{integer, invalid, truth, Peer};
use crate::{Result, Session};

/// Bytes of keys and values behind which a page ends.
const PAGE_BYTES: usize = 64 << 10;
/// Steps of a page at most, whatever is asked for.
const PAGE_STEPS: u64 = 4_096;

/// Answers a page: whether there is no more behind it (1 or 0), then keys and values (null: not asked for, or of a
/// key below the child that is looked for; backward it is then the child's own, or if no values are asked for empty: it has
/// one). Its arguments: 1 for forward, where it begins, 1 if the key there counts,
/// the bound, 1 for values, the length of the parent's key whose children are walked over or nothing, steps.
pub(super) fn walk(
    session: &mut Session,
    peer: &Peer,
    given: &[&[u8]],
    replies: &mut Replies<'_>,
) -> Result<()> {
    let [forward, from, inclusive, bound, with_value, parent, count] = given else {
        return Err(invalid("a walk has seven arguments"));
    };
    let (forward, with_value) = (truth(forward)?, truth(with_value)?);
    let (mut from, mut inclusive, bound) =
        (peer.sought(from)?.to_vec(), truth(inclusive)?, peer.sought(bound)?);
    let parent = if parent.is_empty() { None } else { Some(integer(parent)? as usize) };
    let count = integer(count)?.clamp(1, PAGE_STEPS) as usize;
    let mut found = Vec::<(Vec<u8>, Option<Vec<u8>>)>::new();
    let (mut bytes, mut is_all) = (0, false);
    while found.len() < count && bytes < PAGE_BYTES {
        let Session { trees, found: key, value, .. } = &mut *session;
        let out = with_value.then_some(&mut *value);
        let database = &mut trees.database;
        let is_there = if forward {
            fence::next(database, peer.fence(), fence::bound(&from, inclusive), bound, key, out)?
        } else {
            fence::previous(database, peer.fence(), &from, bound, key, out)?
        };
        if !is_there {
            is_all = true;
            break;
        }
        let is_looked_at = match parent {
            None => true,
            Some(parent) => match child_of(key, parent) {
                Some(child) => child.len() == key.len(),
                // The parent itself, which lies before its children.
                None if key.len() <= parent => true,
                None => return Err(invalid("a walk over children is over none")),
            },
        };
        let value = match (is_looked_at, parent.and_then(|parent| child_of(key, parent))) {
            (false, Some(child)) if !forward => {
                let has_own = database.get(peer.read(child)?, value)?;
                has_own.then(|| if with_value { value.clone() } else { Vec::new() })
            }
            _ => (with_value && is_looked_at).then(|| value.clone()),
        };
        let more = key.len() + value.as_ref().map_or(0, Vec::len);
        if !found.is_empty() && more > PAGE_BYTES {
            // What may never be looked at is not sent.
            break;
        }
        bytes += more;
        (from, inclusive) = (step_behind(key, forward, parent), true);
        found.push((key.clone(), value));
    }
    replies.array(1 + 2 * found.len());
    replies.truth(is_all);
    for (key, value) in &found {
        replies.bulk(key);
        replies.bulk_or_null(value.as_deref());
    }
    Ok(())
}
