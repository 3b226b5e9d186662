//! The 3n+1 program on globals, after the article "Lua API and benchmark design using 3n+1 sequences": `step(n)`
//! are the remembered steps, `record(1)` the longest path, `record(2)` the highest number, `taken(block)` how often
//! a block was asked for.
//!
//! Reads and updates are counted as there; with one player the counts are exact.

use crate::globals::{Globals, Path};
use crate::subject::Result;

struct Solver<'a> {
    globals: &'a mut dyn Globals,
    at: Path,
    records: [Path; 2],
    path: Vec<u64>,
    reads: u64,
    updates: u64,
}

fn records() -> [Path; 2] {
    [Path::number("record", 1), Path::number("record", 2)]
}

/// Works on blocks of 1..=n that nobody else has taken; reads and updates.
pub(super) fn solve(globals: &mut dyn Globals, n: u64) -> Result<(u64, u64)> {
    let block = (n / 100).max(1);
    let (at, records) = (Path::number("step", 0), records());
    let mut solver = Solver { globals, at, records, path: Vec::new(), reads: 0, updates: 0 };
    let mut taken = Path::number("taken", 0);
    for index in 0..n.div_ceil(block) {
        taken.turn(index + 1);
        if solver.globals.increment(&taken, 1)? == 1 {
            for start in index * block + 1..=(index * block + block).min(n) {
                solver.sequence(start)?;
            }
        }
    }
    Ok((solver.reads, solver.updates))
}

/// The longest path and the highest number.
pub(super) fn result(globals: &mut dyn Globals) -> Result<String> {
    let mut found = [0; 2];
    globals.update_pair(&records(), &mut |now| {
        found = now.map(|value| value.unwrap_or(0));
        [None, None]
    })?;
    Ok(format!("{} {}", found[0], found[1]))
}

/// The sum of the steps that are stored for 1, 1 + stride and so on up to n.
pub(super) fn sample(globals: &mut dyn Globals, n: u64, stride: u64) -> Result<u64> {
    let (mut at, mut sum) = (Path::number("step", 0), 0);
    for number in (1..=n).step_by(stride.max(1) as usize) {
        at.turn(number);
        sum += globals.get_integer(&at)?.unwrap_or(0) as u64;
    }
    Ok(sum)
}

impl Solver<'_> {
    fn step(&mut self, n: u64) -> Result<Option<i64>> {
        self.reads += 1;
        self.at.turn(n);
        self.globals.get_integer(&self.at)
    }

    fn sequence(&mut self, start: u64) -> Result<()> {
        let (mut n, mut highest) = (start, 0);
        self.path.clear();
        let mut known = self.step(n)?;
        while known.is_none() && n > 1 {
            self.path.push(n);
            n = if n % 2 == 1 { 3 * n + 1 } else { n / 2 };
            highest = highest.max(n);
            known = self.step(n)?;
        }
        if self.path.is_empty() {
            return Ok(());
        }
        let mut steps = self.path.len() as i64;
        if n > 1 {
            // Read again, as the article's program does.
            steps += self.step(n)?.ok_or("a step is missing")?;
        }
        self.raise(steps, highest as i64)?;
        for index in 0..self.path.len() {
            self.at.turn(self.path[index]);
            self.globals.set_integer(&self.at, steps - index as i64)?;
        }
        self.updates += self.path.len() as u64;
        Ok(())
    }

    /// Raises the longest and the highest, in one transaction.
    fn raise(&mut self, steps: i64, highest: i64) -> Result<()> {
        let (reads, updates) = (&mut self.reads, &mut self.updates);
        self.globals.update_pair(&self.records, &mut |now| {
            let raised = [steps, highest];
            let new = [0, 1].map(|index| Some(raised[index]).filter(|new| *new > now[index].unwrap_or(0)));
            *reads += 2;
            *updates += new.iter().flatten().count() as u64;
            new
        })
    }
}
