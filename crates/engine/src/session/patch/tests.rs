//! Layouts of patched values against a list of pages.

use std::collections::HashSet;

use super::*;
use crate::limits::FREED;

/// Numbers that look random, from a seed that is told.
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }
}

fn numbers(runs: &[Run]) -> Vec<u32> {
    runs.iter().flat_map(|run| run.first..run.first + run.pages).collect()
}

/// The layout with its new runs at `next` and behind it.
fn placed(layout: &Layout, next: &mut u32) -> (Vec<Run>, Vec<Run>) {
    let (mut runs, mut fresh) = (Vec::new(), Vec::new());
    for part in &layout.parts {
        match part {
            Part::Kept(run) => runs.push(*run),
            Part::Fresh(pages) => {
                let run = Run { first: *next, pages: *pages };
                *next += pages + 1;
                runs.push(run);
                fresh.push(run);
            }
        }
    }
    (runs, fresh)
}

#[test]
fn a_patch_moves_the_pages_that_it_touches_and_few_others() {
    let seed = std::env::var("PERILUNE_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or_else(|| u64::from(std::process::id()) << 20 | 1);
    println!("PERILUNE_SEED={seed}");
    let mut chance = Chance(seed);
    for round in 0..60 {
        let mut len = chance.below(400 * PAGE) + PAGE / 2;
        let mut next = 1_000_000;
        let mut runs = vec![Run { first: 1000, pages: len.div_ceil(PAGE) as u32 }];
        let mut private: HashSet<u32> = HashSet::new();
        for step in 0..300 {
            if chance.below(40) == 0 {
                // A checkpoint: nothing is this generation's.
                private.clear();
            }
            let bytes = vec![1; [1, 8, 100, 3 * PAGE][chance.below(4)]];
            let mut patches = Vec::new();
            for _ in 0..[1, 1, 3, 90][chance.below(4)] {
                let offset = if chance.below(8) == 0 { len + chance.below(20) } else { chance.below(len) };
                patches.push(Patch { offset, bytes: &bytes });
            }
            let layout = lay_out(len, &runs, &patches, |number| private.contains(&number));
            let place = format!("round {round}, step {step}");
            let (new, fresh) = placed(&layout, &mut next);
            assert!(new.len() <= VALUE_RUNS, "{place}: {} runs", new.len());
            let end = patches.iter().map(Patch::end).max().unwrap_or(0);
            assert_eq!(layout.length, len.max(end), "{place}");
            let (before, after) = (numbers(&runs), numbers(&new));
            let need = layout.length.div_ceil(PAGE);
            assert!(
                after.len() >= need && after.len() <= need + PATCH_SLACK,
                "{place}: {} pages",
                after.len()
            );
            assert!(after.len() >= before.len(), "{place}");
            let new_numbers: HashSet<u32> = numbers(&fresh).into_iter().collect();
            for (page, number) in after.iter().enumerate() {
                let is_new = new_numbers.contains(number);
                assert!(is_new || before.get(page) == Some(number), "{place}: page {page} has moved");
                let at = page * PAGE..(page + 1) * PAGE;
                let is_written = patches.iter().any(|patch| patch.offset < at.end && patch.end() > at.start)
                    || layout.length > len && at.end > len && at.start < layout.length;
                assert!(is_new || !is_written || private.contains(number), "{place}: page {page} in place");
            }
            let cut = without(&runs, &new);
            assert!(cut.len() < FREED, "{place}: {} stretches are cut off", cut.len());
            let kept: HashSet<u32> = after.into_iter().collect();
            let mut gone: Vec<u32> = before.into_iter().filter(|number| !kept.contains(number)).collect();
            gone.sort_unstable();
            let mut cut = numbers(&cut);
            cut.sort_unstable();
            assert_eq!(cut, gone, "{place}");
            private.extend(new_numbers);
            (runs, len) = (new, layout.length);
        }
    }
}

#[test]
fn patches_come_back_from_their_bytes() {
    let patches = [Patch { offset: 5, bytes: b"five" }, Patch { offset: 0, bytes: b"" }];
    let mut bytes = Vec::new();
    encode(patches.clone(), &mut bytes);
    assert_eq!(decode(&bytes), Some(patches.to_vec()));
    for end in [1, 15, 19, bytes.len() - 1] {
        assert_eq!(decode(&bytes[..end]), None, "{end}");
    }
    bytes[4] = 1;
    assert_eq!(decode(&bytes), None, "beyond the longest value");
    let mut value = b"ab".to_vec();
    apply_to_bytes(&[Patch { offset: 4, bytes: b"cd" }, Patch { offset: 1, bytes: b"x" }], &mut value);
    assert_eq!(value, b"ax\0\0cd");
}
