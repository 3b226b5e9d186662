//! Other clients while one client runs a script of a second: within how many microseconds 99 % of their
//! requests are answered, beside the same server without the script.
//!
//! The requests come at a steady pace that no server is busy with, and count from when they were due.

use crate::subject::Result;

use super::client_process::Work;
use super::client_processes::ClientProcesses;
use super::conversation::Conversation;
use super::requests::Job;
use super::row::Row;
use super::sides::ALL;
use super::{turned, Run};

/// The name of the section, and its workloads: without the script and beside it.
pub(super) const SECTION: &str = "neighbours";
pub(super) const IDLE: &str = "GET, idle server";
pub(super) const BESIDE: &str = "GET beside a script";

const CONNECTIONS: usize = 16;
/// Nanoseconds from one request to the next: 5,000 a second.
const INTERVAL: u64 = 200_000;

/// Counts until so many microseconds are over: ten thousand additions between looks at the clock.
const SCRIPT: &str = "local function now() local t = redis.call('TIME') return t[1] * 1e6 + t[2] end \
    local sum, stop = 0, now() + ARGV[1] \
    repeat for i = 1, 10000 do sum = sum + i % 7 end until now() >= stop return tostring(sum)";

/// Measures each side idle and beside the script.
pub(super) fn run(run: &mut Run<'_>) -> Result<()> {
    let length = run.wish.quick(100_000_000, 1_000_000_000);
    let rounds = run.wish.rounds.min(3);
    let mut servings = run.start_all(&ALL)?;
    for round in 0..rounds {
        for serving in turned(&mut servings, round) {
            let side = serving.side;
            run.announce(round, rounds, format!("{SECTION} {}", side.name()));
            let mut clients = ClientProcesses::start(1, serving.port)?;
            clients.connect(CONNECTIONS)?;
            clients.load(Job::Fill, 1)?;
            clients.work(Job::Fill.whole())?;
            clients.load(Job::Get, 1)?;
            clients.work(1_000)?;
            let work =
                Work { operations: u64::MAX, nanoseconds: length, busy: CONNECTIONS, interval: INTERVAL };
            for (name, with_script) in [(IDLE, false), (BESIDE, true)] {
                let cpu = serving.cpu();
                let (port, microseconds) = (serving.port, (length / 1_000).to_string());
                let script = with_script.then(|| {
                    std::thread::spawn(move || {
                        let mut conversation =
                            Conversation::connect(port).map_err(|error| error.to_string())?;
                        let answer = conversation.ask(&["EVAL", SCRIPT, "0", &microseconds]);
                        answer.map_err(|error| error.to_string())
                    })
                });
                let done = clients.part(work)?;
                if let Some(script) = script {
                    script.join().map_err(|_| "a thread panicked")??;
                }
                let cpu = serving.cpu() - cpu;
                let row = Row::rate(SECTION, name, side, done.operations, &done, cpu);
                run.push(Row { connections: CONNECTIONS, round, ..row });
            }
        }
    }
    Ok(())
}
