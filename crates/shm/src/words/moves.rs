//! Bytes that move inside a block or from one block to another, word by word.

use std::sync::atomic::Ordering::Relaxed;

use super::{load, store, Block};

/// Moves `len` bytes from `from` to `to` inside the block; all three are multiples of 8.
#[inline]
pub fn shift<const N: usize>(block: &Block<N>, from: usize, to: usize, len: usize) {
    let (from, to, words) = (from >> 3, to >> 3, len >> 3);
    // Slices, so that no word is masked; what leaves the block wraps word by word.
    match (block.get(from..from + words), block.get(to..to + words)) {
        (Some(source), Some(target)) if to < from => {
            source
                .iter()
                .zip(target)
                .for_each(|(source, target)| target.store(source.load(Relaxed), Relaxed));
        }
        (Some(source), Some(target)) => {
            let pairs = source.iter().zip(target).rev();
            pairs.for_each(|(source, target)| target.store(source.load(Relaxed), Relaxed));
        }
        _ if to < from => (0..words).for_each(|index| store(block, to + index, load(block, from + index))),
        _ => (0..words).rev().for_each(|index| store(block, to + index, load(block, from + index))),
    }
}

/// Copies `len` bytes at `from` of one block to `to` of another; all three are multiples of 8.
#[inline]
pub fn copy_part<const N: usize, const M: usize>(
    source: &Block<N>,
    from: usize,
    target: &Block<M>,
    to: usize,
    len: usize,
) {
    let (from, to, words) = (from >> 3, to >> 3, len >> 3);
    match (source.get(from..from + words), target.get(to..to + words)) {
        (Some(source), Some(target)) => {
            source
                .iter()
                .zip(target)
                .for_each(|(source, target)| target.store(source.load(Relaxed), Relaxed));
        }
        _ => (0..words).for_each(|index| store(target, to + index, load(source, from + index))),
    }
}

/// Copies a whole block.
#[inline]
pub fn copy<const N: usize>(from: &Block<N>, to: &Block<N>) {
    for (source, target) in from.iter().zip(to) {
        target.store(source.load(Relaxed), Relaxed);
    }
}
