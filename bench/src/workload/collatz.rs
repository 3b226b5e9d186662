//! The 3n+1 program of the engine suite, after the article "Lua API and benchmark design using 3n+1 sequences": for
//! every number of a range its steps to 1, all numbers on the way remembered, the longest path and the highest
//! number kept.
//!
//! Invariants
//! - Reads and updates are counted as in the article: every get of a step, of the longest and of the highest is a
//!   read, every set of them an update; what hands out blocks is not counted. With one worker and blocks in order
//!   both counts are exact; with more they may be higher, for two may compute the same stretch, while what is
//!   stored stays the same.
//! - A path is stored after its records, number by number, each its own operation.

use crate::subject::{missing, Result, Session, Tree};

/// The longest path so far, in the tree of records.
const LONGEST: u64 = 0;
/// The highest number so far.
const HIGHEST: u64 = 1;

/// Reads and updates of a worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) reads: u64,
    pub(crate) updates: u64,
}

/// What one worker alone must arrive at for 1..=n.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Expected {
    pub(crate) longest: i64,
    pub(crate) highest: i64,
    pub(crate) stored: u64,
    pub(crate) reads: u64,
    pub(crate) updates: u64,
}

/// The expected results for `n`, if they are known.
pub(crate) fn expected(n: u64) -> Option<Expected> {
    let table = include_str!("../../data/collatz-expected.tsv");
    table.lines().find_map(|line| {
        let row: Vec<u64> = line.split('\t').map_while(|field| field.parse().ok()).collect();
        match row[..] {
            [of, longest, _, highest, _, stored, reads, updates] if of == n => {
                let (longest, highest) = (longest as i64, highest as i64);
                Some(Expected { longest, highest, stored, reads, updates })
            }
            _ => None,
        }
    })
}

/// The boundaries of the blocks of 1..=n, numbered from 1: block i goes from after boundary i to
/// boundary i + 1.
pub(crate) fn boundaries(n: u64) -> impl Iterator<Item = (u64, i64)> {
    let block = (n / 100).max(1);
    let ends = (0..n.div_ceil(block)).map(move |index| index * block).chain([n]);
    (1..).zip(ends.map(|end| end as i64))
}

/// Works on blocks that nobody else has taken until there are none.
///
/// # Errors
/// The peer's.
pub(crate) fn solve(session: &mut dyn Session) -> Result<Counts> {
    let mut solver = Solver { session, counts: Counts::default(), path: Vec::new() };
    let mut block = 1;
    while let Some(last) = solver.session.get(Tree::Blocks, block + 1)? {
        if solver.session.increment(Tree::Taken, block, 1)? == 1 {
            let before = solver.session.get(Tree::Blocks, block)?.ok_or_else(|| missing(block))?;
            for n in before + 1..=last {
                solver.sequence(n as u64)?;
            }
        }
        block += 1;
    }
    Ok(solver.counts)
}

struct Solver<'a> {
    session: &'a mut dyn Session,
    counts: Counts,
    path: Vec<u64>,
}

impl Solver<'_> {
    fn step(&mut self, n: u64) -> Result<Option<i64>> {
        self.counts.reads += 1;
        self.session.get(Tree::Step, n)
    }

    fn sequence(&mut self, start: u64) -> Result<()> {
        let (mut n, mut highest) = (start, 0);
        self.path.clear();
        while self.step(n)?.is_none() && n > 1 {
            self.path.push(n);
            n = if n % 2 == 1 { 3 * n + 1 } else { n / 2 };
            highest = highest.max(n);
        }
        if self.path.is_empty() {
            return Ok(());
        }
        let mut steps = self.path.len() as i64;
        if n > 1 {
            steps += self.step(n)?.ok_or_else(|| missing(n))?;
        }
        self.record(steps, highest as i64)?;
        for (index, n) in self.path.iter().enumerate() {
            self.session.set(Tree::Step, *n, steps - index as i64)?;
        }
        self.counts.updates += self.path.len() as u64;
        Ok(())
    }

    /// Raises the longest and the highest, in one transaction.
    fn record(&mut self, steps: i64, highest: i64) -> Result<()> {
        let counts = &mut self.counts;
        self.session.update_pair(Tree::Record, [LONGEST, HIGHEST], &mut |now| {
            let raised = [steps, highest];
            let new = [0, 1].map(|index| Some(raised[index]).filter(|new| *new > now[index].unwrap_or(0)));
            // A body that runs again counts again, as in the article's program.
            counts.reads += 2;
            counts.updates += new.iter().flatten().count() as u64;
            new
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_read() {
        let found =
            expected(100_000).map(|row| (row.longest, row.highest, row.stored, row.reads, row.updates));
        assert_eq!(found, Some((350, 1_570_824_736, 217_211, 447_008, 217_263)));
        assert_eq!(expected(12), None);
    }

    #[test]
    fn blocks_cover_the_range() {
        let all = |n| boundaries(n).collect::<Vec<_>>();
        assert_eq!(all(3), [(1, 0), (2, 1), (3, 2), (4, 3)]);
        let blocks = all(1_050);
        assert_eq!((blocks.len(), blocks[0], blocks[105]), (106, (1, 0), (106, 1_050)));
        assert!(blocks.windows(2).all(|pair| pair[0].1 < pair[1].1));
    }
}
