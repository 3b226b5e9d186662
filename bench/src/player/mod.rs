//! A player: one process that plays one side, told by lines what to do. This is the player in Rust, for
//! all that is `Globals`; those in other languages (bench/players) understand the same lines.
//!
//! | line | does | answers behind `ok` |
//! |---|---|---|
//! | `set FIRST COUNT`, `get FIRST COUNT` | `cm(n)="Chris Munt"` for successive n | how many were right |
//! | `rset COUNT SEED KEYS`, `rget ...` | the same for random n of 1 to KEYS; values set differ at their end | how many were right |
//! | `bset FIRST COUNT PER` | as `set`, PER of them in a commit | how many |
//! | `collatz N` | 3n+1 up to N, with whoever else does | reads, updates |
//! | `result` | | longest and highest of 3n+1 |
//! | `steps N STRIDE` | | sum of the stored steps of 1, 1 + STRIDE, ... up to N |
//! | `accounts N`, `bank N` | makes N accounts with 1,000 each; their sum | N; the sum |
//! | `transfer COUNT SEED N` | transactions that move 1 between random accounts | how many |
//! | `load FILE PHASE` | reads the phase of a trace (`-`: all); order is wanted from now on | its length |
//! | `replay FROM COUNT` | replays operations | how many answered wrong |
//! | `dump FILE NAME` | writes all nodes of a global in order: subscripts, value | how many |
//! | `close` | leaves on disk what the class promises | - |
//!
//! Invariants
//! - A line is answered by one line, `ok ...` or `error TEXT`; before the first, `ready` is said.
//! - The player ends with its input.
//! - It looks at no clock: the suite does, for all sides alike.

mod collatz;
pub(crate) mod jobs;
pub(crate) mod replay;

use std::io::{BufRead, Write};

use crate::globals::Globals;
use crate::peers::subjects::{Side, Site};
use crate::player::replay::Replay;
use crate::subject::Result;

/// What nodes of the sequences hold at first.
pub(crate) const VALUE: &[u8] = b"Chris Munt";

/// The generator of all players (Park and Miller 1988), which every language can compute exactly.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Random(u64);

impl Random {
    /// A sequence for a seed from 1 on.
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed % 2_147_483_646 + 1)
    }

    /// A number from 1 to `limit`.
    #[inline]
    pub(crate) fn upto(&mut self, limit: u64) -> u64 {
        self.0 = self.0 * 16_807 % 2_147_483_647;
        self.0 % limit + 1
    }
}

/// Serves lines of the standard input with `side` until they end.
///
/// # Errors
/// The side does not open, or the suite is gone.
pub(crate) fn serve(side: &Side, site: &Site) -> Result<()> {
    let mut output = std::io::stdout().lock();
    let mut globals = match (side.open)(site) {
        Ok(globals) => globals,
        Err(error) => return Ok(writeln!(output, "error {error}")?),
    };
    writeln!(output, "ready")?;
    output.flush()?;
    let mut replay = Replay::default();
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let words: Vec<&str> = line.split(' ').collect();
        match job(&mut *globals, &mut replay, &words) {
            Ok(answer) => writeln!(output, "ok {answer}")?,
            Err(error) => writeln!(output, "error {}", error.to_string().replace('\n', " "))?,
        }
        output.flush()?;
    }
    Ok(())
}

fn job(globals: &mut dyn Globals, replay: &mut Replay, words: &[&str]) -> Result<String> {
    let number = |index: usize| -> Result<u64> {
        let word = words.get(index).ok_or("the line is too short")?;
        word.parse().map_err(|_| format!("`{word}` is no number").into())
    };
    let one = |count: u64| Ok(count.to_string());
    match words[0] {
        "set" => one(jobs::set(globals, number(1)?, number(2)?)?),
        "get" => one(jobs::get(globals, number(1)?, number(2)?)?),
        "rset" => one(jobs::random_set(globals, number(1)?, number(2)?, number(3)?)?),
        "rget" => one(jobs::random_get(globals, number(1)?, number(2)?, number(3)?)?),
        "bset" => one(jobs::batch_set(globals, number(1)?, number(2)?, number(3)?)?),
        "accounts" => one(jobs::accounts(globals, number(1)?)?),
        "bank" => one(jobs::bank(globals, number(1)?)?),
        "transfer" => one(jobs::transfer(globals, number(1)?, number(2)?, number(3)?)?),
        "collatz" => collatz::solve(globals, number(1)?).map(|(reads, updates)| format!("{reads} {updates}")),
        "result" => collatz::result(globals),
        "steps" => one(collatz::sample(globals, number(1)?, number(2)?)?),
        "load" if words.len() == 3 => {
            globals.plan(true);
            *replay = Replay::load(words[1], words[2])?;
            Ok(replay.len().to_string())
        }
        "replay" => one(replay.run(globals, number(1)? as usize, number(2)? as usize)?),
        "dump" if words.len() == 3 => one(replay::dump(globals, words[1], words[2])?),
        "close" => globals.close().map(|()| String::new()),
        other => Err(format!("no such job: {other}").into()),
    }
}
