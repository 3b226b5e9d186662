//! Finding the leaf of a key and the key's place in it, before the leaf is latched. Who latches it with the word
//! noted here knows that the place is still right.
//!
//! Deliberately absent: the check of the word. Until the leaf is latched with it, an answer may come from torn bytes.

use perilune_store::{Probe, ProbeTarget};

use super::gaps::Aim;
use super::read::{key_beyond, Seek};
use super::{locate, Fingers, Neighbour, Seen, Which};
use crate::error::Attempt;
use crate::image::Image;
use crate::page::{find, leaf_count, Found};

/// Takes aim at a probe that is to be met.
#[inline]
pub(crate) fn aim_probe(image: &Image, fingers: &Fingers, probe: &Probe<'_>) -> Aim {
    match probe.target {
        // Keys that are looked at themselves come at random: there is no guess of their places.
        ProbeTarget::At => Aim::default(),
        ProbeTarget::AtOrNext | ProbeTarget::Previous => fingers.gaps.aim(image, probe.key),
    }
}

/// The leaf that covers the probe's key, at which `aim` was taken, and the place of that there; where a neighbour is looked
/// for, `equal` means nothing.
#[inline]
pub(crate) fn meet_probe(
    image: &Image,
    fingers: &Fingers,
    probe: &Probe<'_>,
    aim: Aim,
) -> Attempt<(Seen, Found)> {
    let which = Which::Main;
    if probe.target == ProbeTarget::At {
        let leaf = locate(image, fingers, which, probe.key, 0)?;
        return Ok((leaf, fingers.find(leaf.number, image.page(leaf.number), probe.key)));
    }
    // Mostly the head of a subtree, or its end, that has been asked for before.
    // NB: the fingers stay where they are: it is as a rule another leaf that is asked for next.
    if let Some((leaf, below)) = fingers.gaps.find(image, which, probe.key, aim) {
        return Ok((leaf, Found { index: below, equal: false }));
    }
    let leaf = locate(image, fingers, which, probe.key, 0)?;
    let found = find(image.page(leaf.number), probe.key);
    fingers.gaps.note(image, aim, leaf.number, found.index);
    Ok((leaf, found))
}

/// The leaf beside `leaf`, where no record is that a probe looks for, and the place of the nearest one there. None: that has
/// none, either, or the tree ends. `scratch` is overwritten.
#[cold]
pub(crate) fn meet_beside(
    image: &Image,
    fingers: &Fingers,
    leaf: Seen,
    target: ProbeTarget,
    scratch: &mut Vec<u8>,
) -> Attempt<Option<(Seen, usize)>> {
    let side = if target == ProbeTarget::Previous { Neighbour::Previous } else { Neighbour::Next };
    if !key_beyond(image, leaf, Seek { from: &[], side, bound: &[] }, scratch)? {
        return Ok(None);
    }
    let beside = locate(image, fingers, Which::Main, scratch, 0)?;
    let last = leaf_count(image.page(beside.number)).checked_sub(1);
    Ok(last.map(|last| (beside, if side == Neighbour::Previous { last } else { 0 })))
}
