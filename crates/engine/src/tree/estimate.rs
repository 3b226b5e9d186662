//! About how many keys lie in a range, for planners: told from the pages on the way to its two ends, whatever lies between.
//!
//! Where the two ways part, the children between them are counted by the slots of that page, and each of them holds as much
//! as those that the ways go through: the number of children of the pages met at each level, and of records in the two
//! leaves, multiplied. Example: 200 children between, leaves of 90 and 110 records below them: about 20,000 keys.
//!
//! Invariants
//! - In a range that lies in one leaf the answer is exact, as of the moment at which that was read.
//! - As many pages are read as the tree is high, twice, however large the range is.
//!
//! Deliberately absent: an answer of one moment, or one that counts as read (`count`).

use super::{meet_child, meet_root, Which};
use crate::error::{Attempt, Stop};
use crate::image::Image;
use crate::limits::HEIGHT_MAX;
use crate::page::{find, find_child, inner_count, kind, leaf_count, INNER, LEAF};

/// A page on the way to a key: which of its children, or records, the key lies at, and how many there are.
#[derive(Clone, Copy)]
struct Step {
    index: usize,
    of: usize,
}

/// About how many keys lie from `low` on and before `high`. One attempt.
pub(crate) fn estimate(image: &Image, which: Which, low: &[u8], high: &[u8]) -> Attempt<u64> {
    if low >= high {
        return Ok(0);
    }
    let (low, high) = (way(image, which, low)?, way(image, which, high)?);
    if low.len() != high.len() {
        return Err(Stop::Restart);
    }
    Ok(between(&low, &high) as u64)
}

/// The pages from the root to the leaf that covers `key`.
fn way(image: &Image, which: Which, key: &[u8]) -> Attempt<Vec<Step>> {
    let mut at = meet_root(image, which, 0)?;
    let mut steps = Vec::with_capacity(4);
    for _ in 0..HEIGHT_MAX {
        let page = image.page(at.number);
        match kind(page) {
            LEAF => {
                steps.push(Step { index: find(page, key).index, of: leaf_count(page) });
                at.check(image)?;
                return Ok(steps);
            }
            INNER => {
                let (index, child) = find_child(page, key);
                steps.push(Step { index, of: inner_count(page) + 1 });
                at = meet_child(image, at, child, 0)?;
            }
            _ => return Err(Stop::Restart),
        }
    }
    Err(Stop::Restart)
}

/// About how many keys lie between the ends of two ways of one length.
fn between(low: &[Step], high: &[Step]) -> f64 {
    let last = low.len() - 1;
    let parted = (0..last).find(|at| low[*at].index != high[*at].index);
    let Some(parted) = parted else {
        return high[last].index.saturating_sub(low[last].index) as f64;
    };
    // About so many keys lie below a page of each step.
    let mut sizes = vec![0.0; low.len()];
    let mut size = 1.0;
    for at in (0..low.len()).rev() {
        size *= (low[at].of + high[at].of) as f64 / 2.0;
        sizes[at] = size;
    }
    let size_below = |at: usize| if at == last { 1.0 } else { sizes[at + 1] };
    let gap = high[parted].index.saturating_sub(low[parted].index + 1) as f64 * size_below(parted);
    let sides = (parted + 1..low.len()).map(|at| {
        // Behind the way to the low end, and before the way to the high one; the child on the way itself is a step of its own.
        let own = usize::from(at < last);
        let behind = low[at].of.saturating_sub(low[at].index + own);
        (behind + high[at].index) as f64 * size_below(at)
    });
    gap + sides.sum::<f64>()
}
