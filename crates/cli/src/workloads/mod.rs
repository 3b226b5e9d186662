//! `bench lua`: the workloads of lua-yottadb's benchmarks and those of the project's targets, in one Lua.
//!
//! Invariants
//! - The Lua side is a process of its own, in the embedded LuaJIT or another Lua; it runs all workloads once for
//!   each line that it is sent, and sleeps while this side measures the engine and the host.
//! - The first round warms up and does not count.
//! - Time is CPU time of the process that works, as in the programs whose workloads these are.

mod host;
mod process;
mod published;
mod table;

use std::fs::OpenOptions;
use std::io::Write;

use indicatif::{ProgressBar, ProgressDrawTarget};
use serde_json::json;

use crate::arguments::LuaOptions;
use crate::chart;
use crate::failure::{doing, wrong_use, Result};
use crate::scratch::Scratch;
use crate::workloads::host::HostSide;
use crate::workloads::process::LuaSide;
use crate::workloads::table::Results;

pub(crate) use crate::workloads::process::work;

/// Runs all rounds and prints the table.
pub(crate) fn run(options: &LuaOptions) -> Result<()> {
    if let Some(file) = options.chart.iter().find(|file| file.extension().is_none_or(|name| name != "svg")) {
        return Err(wrong_use(format!("{}: drawings are FILE.svg", file.display())));
    }
    let scratch = Scratch::new("lua")?;
    let mut host = HostSide::new(&scratch.path().join("host.db"), options.lua.is_none())?;
    let mut process = LuaSide::start(options.lua.as_deref(), &scratch)?;
    let bar =
        ProgressBar::with_draw_target(Some(u64::from(options.rounds) + 1), ProgressDrawTarget::stderr());
    let mut results = Results::default();
    for round in 0..=options.rounds {
        bar.set_message("round");
        let mut rows = process.round()?;
        rows.extend(host.round()?);
        if round > 0 {
            rows.into_iter().for_each(|(name, value)| results.add(&name, value));
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    let lua = process.end()?;
    println!(
        "{lua}, {} rounds; medians of CPU time, spread: half the distance of the quartiles",
        options.rounds
    );
    println!("{}", published::HARDWARE);
    print!("{}", results.table());
    for (name, why) in process.left_out() {
        println!("left out: {name}: {why}");
    }
    if let Some(file) = &options.json {
        let named = || format!("write {}", file.display());
        let mut out = OpenOptions::new().create(true).append(true).open(file).map_err(doing(named()))?;
        for (workload, round, value) in results.rows() {
            let row = json!({
                "suite": "lua", "workload": workload.name, "class": "D4", "backend": "perilune", "lua": lua,
                "round": round, "unit": workload.unit, "value": value,
            });
            writeln!(out, "{row}").map_err(doing(named()))?;
        }
    }
    if let Some(file) = &options.chart {
        chart::write(file, &results.chart(&lua))?;
    }
    Ok(())
}
