//! 3n+1 by 32 Lua clients, as in the article "Lua API and benchmark design using 3n+1 sequences", and as a script
//! in the server.
//!
//! The clients run the article's program (`crates/redis/clients/collatz.lua`) in Lua 5.1 with redis-lua, one
//! program for all sides. In the server, Redis runs the article's script; ours runs it with the flag `non-atomic`
//! in two clients at once, each with half of the numbers and its own maxima: the counts of both are added.

use std::path::Path;
use std::process::Command;

use crate::clock;
use crate::subject::Result;
use crate::workload::expected;

use super::conversation::Conversation;
use super::row::Row;
use super::sides::{Serving, Side, ALL, TWO};
use super::{turned, Run};

/// The names of the sections, which are those of their only workload, too.
pub(super) const BY_CLIENTS: &str = "clients";
pub(super) const INSIDE: &str = "inside";

/// Client processes, as many as the article has at most.
pub(super) const WORKERS: usize = 32;
/// Numbers in a block that a client takes.
const BLOCK: u64 = 10;

/// The article's script, over a part of the numbers and with maxima of its own.
const SCRIPT: &str = include_str!("collatz.lua");

/// 3n+1 by 32 clients.
pub(super) fn by_clients(run: &mut Run<'_>) -> Result<()> {
    let (n, workers) = run.wish.quick((1_000, 4), (10_000, WORKERS));
    let rounds = run.wish.rounds.min(3);
    let mut servings = run.start_all(&ALL)?;
    for round in 0..rounds {
        for serving in turned(&mut servings, round) {
            run.announce(round, rounds, format!("3n+1 by {workers} clients: {}", serving.side.name()));
            let row = clients(serving, n, workers)?;
            run.push(Row { round, ..row });
        }
    }
    Ok(())
}

fn clients(serving: &Serving, n: u64, workers: usize) -> Result<Row> {
    let side = serving.side;
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/redis/clients");
    let numbers = [u64::from(serving.port), workers as u64, n, BLOCK].map(|number| number.to_string());
    let cpu = serving.cpu();
    let output = Command::new("lua5.1")
        .args(["collatz.lua", "127.0.0.1"])
        .args(numbers)
        .current_dir(program)
        .output()
        .map_err(|error| format!("install lua5.1, lua-redis and lua-socket: {error}"))?;
    let cpu = serving.cpu() - cpu;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let field = |name: &str| -> Result<f64> {
        let word = text.split_whitespace().find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
        let word = word.ok_or_else(|| format!("{text}{}", String::from_utf8_lossy(&output.stderr)))?;
        Ok(word.parse()?)
    };
    let wanted = expected(n).ok_or("3n+1 has no known results for this many numbers")?;
    let found = [field("longest")?, field("highest")?, field("stored")?];
    if found != [wanted.longest as f64, wanted.highest as f64, wanted.stored as f64] {
        return Err(format!("{}: 3n+1 found {text}, not {wanted:?}", side.name()).into());
    }
    let (reads, updates, seconds) = (field("reads")?, field("updates")?, field("seconds")?);
    if reads < wanted.reads as f64 || updates < wanted.updates as f64 {
        return Err(format!("{}: too few operations: {text}", side.name()).into());
    }
    let operations = (reads + updates) as u64;
    Ok(Row {
        operations,
        wall_seconds: seconds,
        server_cpu_seconds: cpu,
        connections: workers,
        ..Row::figure(BY_CLIENTS, "3n+1", side, "op/s", operations as f64 / seconds)
    })
}

/// 3n+1 in the server.
pub(super) fn inside(run: &mut Run<'_>) -> Result<()> {
    let n = run.wish.quick(1_000, 100_000);
    let rounds = run.wish.rounds.min(3);
    let mut servings = run.start_all(&[Side::Redis, TWO])?;
    for round in 0..rounds {
        for serving in turned(&mut servings, round) {
            run.announce(round, rounds, format!("3n+1 inside: {}", serving.side.name()));
            let row = script(serving, n)?;
            run.push(Row { round, ..row });
        }
    }
    Ok(())
}

fn script(serving: &Serving, n: u64) -> Result<Row> {
    let side = serving.side;
    Conversation::connect(serving.port)?.ask(&["FLUSHALL"])?;
    let (parts, header) = match side {
        Side::Redis => (1, ""),
        Side::Perilune { threads } => (threads as u64, "#!lua flags=non-atomic\n"),
    };
    let source = format!("{header}{SCRIPT}");
    let mut conversations =
        (0..parts).map(|_| Conversation::connect(serving.port)).collect::<Result<Vec<_>>>()?;
    let (begun, cpu) = (clock::now(), serving.cpu());
    let answers: Vec<std::result::Result<Vec<String>, String>> = std::thread::scope(|scope| {
        let source = &source;
        let ask = |(part, conversation): (u64, &mut Conversation)| {
            let (first, last) = (part * n / parts + 1, (part + 1) * n / parts);
            let words = [part, first, last].map(|number| number.to_string());
            let answer = conversation.ask(&["EVAL", source, "0", &words[0], &words[1], &words[2]]);
            answer.map_err(|error| error.to_string())
        };
        let running: Vec<_> =
            (0..).zip(&mut conversations).map(|pair| scope.spawn(move || ask(pair))).collect();
        let join = |thread: std::thread::ScopedJoinHandle<'_, _>| {
            thread.join().unwrap_or_else(|_| Err("a thread panicked".to_owned()))
        };
        running.into_iter().map(join).collect()
    });
    let (wall, cpu) = ((clock::now() - begun) as f64 / 1e9, serving.cpu() - cpu);
    let mut found = [0; 4];
    for answer in answers {
        let numbers =
            answer?.iter().map(|word| word.parse()).collect::<std::result::Result<Vec<u64>, _>>()?;
        let [longest, highest, reads, updates] = numbers[..] else {
            return Err(format!("the script answered {numbers:?}").into());
        };
        found = [found[0].max(longest), found[1].max(highest), found[2] + reads, found[3] + updates];
    }
    let wanted = expected(n).ok_or("3n+1 has no known results for this many numbers")?;
    let stored = Conversation::connect(serving.port)?.ask(&["HLEN", "step"])?;
    let stored_all = stored == [wanted.stored.to_string()] && found[3] >= wanted.stored;
    let right = (found[0] as i64, found[1] as i64) == (wanted.longest, wanted.highest) && stored_all;
    // In another order other numbers are known already, so only one script has the known counts.
    let exact = (found[2], found[3]) == (wanted.reads, wanted.updates);
    if !right || (parts == 1 && !exact) {
        return Err(format!("{}: 3n+1 found {found:?} and {stored:?}, not {wanted:?}", side.name()).into());
    }
    // What counts is the time for the whole: work that both halves have done is no merit.
    Ok(Row {
        operations: wanted.reads + wanted.updates,
        wall_seconds: wall,
        server_cpu_seconds: cpu,
        connections: parts as usize,
        ..Row::figure(INSIDE, "3n+1", side, "s", wall)
    })
}
