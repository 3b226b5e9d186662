//! Conditional writes: values set in one operation, each under a condition on its own place. No transaction is needed, since
//! all conditions can be checked while the leaves are latched.
//!
//! All leaves and places are found before the first leaf is latched, and are true if it is latched with the word under
//! which it was met. So latches are held only while the record is applied, and whoever writes beside it in the same leaves
//! makes it wait for that leaf, not fail.
//!
//! What if we are killed? As in a commit.

use perilune_shm::platform;
use perilune_store::Result;

use super::latched::Latched;
use crate::access::Access;
use crate::error::{Attempt, Stop};
use crate::limits::{CONDITIONAL_WRITES, HELD, INLINE_MAX, LATCH_PAUSES, RECORD_INLINE_MAX};
use crate::page;
use crate::repair::Patience;
use crate::session::record::{record_bytes, Kind, Op};
use crate::session::Counter;
use crate::tree::{self, Beside, Descents, Pairs, Seen, Which};

/// Why an attempt has failed, and at which operation.
type Failed = (Stop, usize);

/// Whether one key is below the other: neighbours begin alike, in words that are compared without a call.
#[inline]
fn precedes(one: &[u8], other: &[u8]) -> bool {
    let words = one.as_chunks::<8>().0.iter().zip(other.as_chunks::<8>().0);
    for (one, other) in words {
        if one != other {
            return u64::from_be_bytes(*one) < u64::from_be_bytes(*other);
        }
    }
    match (one.last_chunk::<8>(), other.last_chunk::<8>()) {
        // What stands before these is equal.
        (Some(one_end), Some(other_end)) if one.len() == other.len() => {
            u64::from_be_bytes(*one_end) < u64::from_be_bytes(*other_end)
        }
        _ => one < other,
    }
}

/// The leaf of a key, once whoever has latched it has gone on; no latch is held, and he mostly does soon.
#[inline]
fn meet(from: &Descents<'_>, key: &[u8]) -> Attempt<Seen> {
    for _ in 0..LATCH_PAUSES {
        match from.leaf_of(key) {
            Err(Stop::Busy(_)) => platform::spin_pause(),
            answer => return answer,
        }
    }
    from.leaf_of(key)
}

impl Access {
    /// Sets all pairs, if at each key there is a value or no key behind it begins with it; false: that is not so, or
    /// cannot be told from the leaf of the key, or there are many pairs or long ones, or they do not ascend; then
    /// nothing was written.
    ///
    /// # Errors
    /// As [`Access::set`].
    pub(crate) fn set_all_unless_parents(&self, pairs: &Pairs<'_>) -> Result<bool> {
        let ascend = pairs.windows(2).all(|two| precedes(two[0].0, two[1].0));
        if !ascend
            || pairs.len() > CONDITIONAL_WRITES
            || pairs.iter().any(|(_, value)| value.len() > INLINE_MAX)
        {
            return Ok(false);
        }
        let set = |&(key, value)| Op { kind: Kind::Set, volatile: false, big: false, key, value };
        let ops: Vec<Op<'_>> = pairs.iter().map(set).collect();
        let bytes = record_bytes(&ops);
        if bytes >= RECORD_INLINE_MAX {
            return Ok(false);
        }
        self.make_room(bytes)?;
        // NB: most are few, and should not pay for the memory of many.
        match ops.len() <= HELD {
            true => self.set_all::<HELD>(&ops),
            false => self.set_all::<CONDITIONAL_WRITES>(&ops),
        }
    }

    /// Publishes these operations, up to `N` in the order of their keys, for which there is room in the ring; see
    /// [`Access::set_all_unless_parents`].
    fn set_all<const N: usize>(&self, ops: &[Op<'_>]) -> Result<bool> {
        let _operation = self.operation();
        let mut patience = Patience::new();
        // NB: each leaf may have to be split or copied, and what is above it.
        for _ in 0..4 * N {
            let mut held = Latched::<N>::new(&self.seat);
            let (stop, at) = match self.try_all(ops, &mut held) {
                Ok(true) => {
                    self.seat.count(Counter::Commits);
                    return Ok(true);
                }
                Ok(false) => {
                    held.release_unchanged();
                    return Ok(false);
                }
                Err(failed) => failed,
            };
            held.release_unchanged();
            let stop = match stop {
                Stop::Split => {
                    let ahead = |at: usize| ops.get(at).and_then(Op::coming);
                    let beside = Beside::Operations(at, &ahead);
                    tree::split(&self.seat, Which::Main, ops[at].key, 0, beside).err()
                }
                stop => Some(stop),
            };
            if let Some(stop) = stop {
                self.overcome(stop, Which::Main, ops[at].key, &mut patience)?;
            }
        }
        Ok(false)
    }

    /// One attempt; if it does not answer true, latches are still held and nothing has happened.
    fn try_all<const N: usize>(
        &self,
        ops: &[Op<'_>],
        held: &mut Latched<'_, N>,
    ) -> std::result::Result<bool, Failed> {
        let image = &self.seat.image;
        let keys = || ops.iter().map(|op| op.key).enumerate();
        let from = Descents::new(image, &self.fingers).map_err(|stop| (stop, 0))?;
        for (at, key) in keys() {
            let leaf = meet(&from, key).map_err(|stop| (stop, at))?;
            page::expect(image.page(leaf.number));
            held.meet(at, leaf);
        }
        // NB: what takes time is done before the latches are taken, for which others wait.
        for (at, key) in keys() {
            let leaf = held.leaf_of(at);
            held.put(at, page::find(image.page(leaf), key));
        }
        let len = self.seat.write_ops(ops);
        held.latch_met(ops).map_err(|stop| (stop, 0))?;
        let epoch = held.epoch().map_err(|stop| (stop, self.first_foreign(ops.len(), held)))?;
        if let Some(at) = held.short_of_room(ops) {
            return Err((Stop::Split, at));
        }
        for (at, key) in keys() {
            let (leaf, found) = (held.leaf_of(at), held.place_of(at));
            if !found.equal && page::leads(image.page(leaf), found.index, key) != Some(false) {
                return Ok(false);
            }
        }
        held.publish(ops, len, epoch).map_err(|stop| (stop, self.first_foreign(ops.len(), held)))?;
        Ok(true)
    }

    /// The first operation whose leaf belongs to another generation, if there is one.
    fn first_foreign<const N: usize>(&self, count: usize, held: &Latched<'_, N>) -> usize {
        let generation = crate::session::Epoch::read(&self.seat.image).generation;
        let foreign = |at: &usize| self.seat.image.life(held.leaf_of(*at)).born != generation;
        (0..count).find(foreign).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::precedes;

    #[test]
    fn words_put_keys_in_the_order_of_their_bytes() {
        let mut keys: Vec<Vec<u8>> = (0..30).map(|length| vec![b'k'; length]).collect();
        for at in 0..24 {
            for byte in [0, 1, b'j', b'l', 0xff] {
                for length in at + 1..26 {
                    let mut key = vec![b'k'; length];
                    key[at] = byte;
                    keys.push(key);
                }
            }
        }
        for one in &keys {
            for other in &keys {
                assert_eq!(precedes(one, other), one < other, "{one:?} {other:?}");
            }
        }
    }
}
