//! What a script costs that only computes, in both servers, and how much of it is the price of our way to stop
//! runaways.
//!
//! Our LuaJIT is built so that compiled loops look whether they are to stop (design note 0022). Beside it
//! the system's `luajit` is started with the same program, which cannot be stopped so, and with `-joff`, which is
//! how scripts would run if only the interpreter could be stopped.

use std::process::Command;

use crate::clock;
use crate::subject::Result;

use super::conversation::Conversation;
use super::row::Row;
use super::sides::{Side, ONE};
use super::{turned, Run};

/// The name of the section, and of the workloads.
pub(super) const SECTION: &str = "computing";
/// Short loops, which have the more to look at, and numbers and tables.
const PROGRAMS: [(&str, &str); 2] = [
    ("empty loops", "local x = 0 for i = 1, N do for j = 1, 10 do x = x + 1 end end return tostring(x)"),
    (
        "a sieve",
        "local count = 0 for round = 1, N / 1000 do local sieve = {} for i = 2, 10000 do if not sieve[i] then \
         count = count + 1 for j = i * i, 10000, i do sieve[j] = true end end end end return tostring(count)",
    ),
];
/// Programs beside the servers: name, arguments.
const OTHERS: [(&str, &[&str]); 2] = [("luajit, not stoppable", &[]), ("luajit -joff", &["-joff"])];

/// Measures all sides.
pub(super) fn run(run: &mut Run<'_>) -> Result<()> {
    let n = run.wish.quick(20_000, 1_000_000);
    let rounds = run.wish.rounds;
    let mut servings = run.start_all(&[Side::Redis, ONE])?;
    for round in 0..rounds {
        for (name, program) in PROGRAMS {
            run.announce(round, rounds, name.to_owned());
            let program = program.replace('N', &n.to_string());
            let mut told: Option<String> = None;
            let mut same = |found: String| match told.get_or_insert(found.clone()) {
                first if *first == found => Ok(()),
                first => Err(format!("{name}: {found}, and {first} elsewhere")),
            };
            for serving in turned(&mut servings, round) {
                let mut conversation = Conversation::connect(serving.port)?;
                let (begun, cpu) = (clock::now(), serving.cpu());
                let answer = conversation.ask(&["EVAL", &program, "0"])?;
                let seconds = (clock::now() - begun) as f64 / 1e9;
                same(answer.concat())?;
                let row = Row::figure(SECTION, name, serving.side, "s", seconds);
                let server_cpu_seconds = serving.cpu() - cpu;
                run.push(Row { wall_seconds: seconds, server_cpu_seconds, operations: 1, round, ..row });
            }
            for (backend, arguments) in OTHERS {
                let Some((seconds, answer)) = alone(&program, arguments)? else { continue };
                same(answer)?;
                let row = Row::figure(SECTION, name, ONE, "s", seconds);
                run.push(Row { backend, wall_seconds: seconds, operations: 1, round, ..row });
            }
        }
    }
    Ok(())
}

/// Seconds and result of a program in the system's LuaJIT, which takes the time itself; None without one.
fn alone(program: &str, arguments: &[&str]) -> Result<Option<(f64, String)>> {
    let source = format!(
        "local f = function() {program} end local c = os.clock local begun = c() local x = f() \
         io.write(string.format('%.6f %s', c() - begun, x))"
    );
    let output = Command::new("luajit").args(arguments).args(["-e", &source]).output();
    let output = match output {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        output => output?,
    };
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let (seconds, answer) =
        text.split_once(' ').ok_or_else(|| format!("luajit: {}", String::from_utf8_lossy(&output.stderr)))?;
    Ok(Some((seconds.parse()?, answer.to_owned())))
}
