//! One child of a node by chance, without a walk through all of them.
//!
//! A way down the bytes of the keys: where the first and the last one part, a byte between theirs is drawn,
//! or one of those that there are, as the dice fall, and leads on. So a pick takes some dozens of searches, however
//! many children there are. The chances are not equal: a name that stands alone is picked more often than one of many
//! that begin alike; but each has one.

use std::ops::Bound;

use perilune::{Node, NodeRef, RangeEnds, Session, SubscriptBuf};

use crate::failure::Result;
use crate::random;

/// Bytes that are looked for behind a common beginning: where there are more, drawing one is fair enough.
const BRANCHES: u64 = 24;

/// The subscript of any child of `parent`; none if it has none.
pub(crate) fn pick(session: &mut Session, parent: &Node) -> Result<Option<SubscriptBuf>> {
    let within = NodeRef::from(parent);
    let Some(mut first) = first_key(session, within, Bound::Excluded(within))? else { return Ok(None) };
    let Some(mut last) = last_key(session, within, Bound::Unbounded)? else { return Ok(None) };
    loop {
        let child =
            perilune::key::range::child_of(within.encoded(), &first).map_err(perilune::Error::from)?;
        let Some(child) = child else { return Ok(None) };
        if last.starts_with(child) {
            return Ok(NodeRef::from_encoded(child, false).last()?.map(|subscript| subscript.into_owned()));
        }
        let same = first.iter().zip(&last).take_while(|(one, other)| one == other).count();
        let (low, high) = (first.get(same).copied().unwrap_or(0), last.get(same).copied().unwrap_or(0));
        if high <= low {
            // Somebody has changed what lies between.
            last.clone_from(&first);
            continue;
        }
        let mut edge = last[..same].to_vec();
        // NB: others may take keys away meanwhile, where this is no transaction; then what is left is taken.
        let drawn = if random::below(2) == 0 {
            low + random::below(u64::from(high - low) + 1) as u8
        } else {
            branch(session, within, &edge, (low, high))?
        };
        edge.push(drawn);
        if drawn > low {
            if let Some(key) =
                first_key(session, within, Bound::Included(NodeRef::from_encoded(&edge, false)))?
            {
                first = key;
            }
        }
        let met = first.get(same).copied().unwrap_or(high);
        if met < high {
            edge.truncate(same);
            edge.push(met + 1);
            match last_key(session, within, Bound::Excluded(NodeRef::from_encoded(&edge, false)))? {
                Some(key) if key >= first => last = key,
                _ => last.clone_from(&first),
            }
        } else if first > last {
            last.clone_from(&first);
        }
    }
}

/// One of the bytes that stand behind `edge`, from the lowest to the highest, each as likely as the others.
fn branch(session: &mut Session, within: NodeRef<'_>, edge: &[u8], (low, high): (u8, u8)) -> Result<u8> {
    let (mut chosen, mut met, mut byte) = (low, 1, low);
    let mut from = edge.to_vec();
    while byte < high && met < BRANCHES {
        from.truncate(edge.len());
        from.push(byte + 1);
        let next = first_key(session, within, Bound::Included(NodeRef::from_encoded(&from, false)))?;
        let Some(next) = next.and_then(|key| key.get(edge.len()).copied()).filter(|next| *next > byte) else {
            break;
        };
        byte = next;
        met += 1;
        if random::below(met) == 0 {
            chosen = byte;
        }
    }
    Ok(chosen.min(high))
}

fn first_key(
    session: &mut Session,
    within: NodeRef<'_>,
    from: Bound<NodeRef<'_>>,
) -> Result<Option<Vec<u8>>> {
    Ok(session.first_entry(within, from)?.map(|(node, _)| node.encoded().to_vec()))
}

fn last_key(session: &mut Session, within: NodeRef<'_>, to: Bound<NodeRef<'_>>) -> Result<Option<Vec<u8>>> {
    Ok(session.last_entry(within, to)?.map(|(node, _)| node.encoded().to_vec()))
}
