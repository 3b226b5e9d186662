//! One run: a thread that controls, the processes that work, and this thread, which learns of both.
//!
//! Invariants
//! - A process that ends badly ends the run: the others are killed, and the controlling thread, which may
//!   be waiting for the lost process, ends with the program.
//! - Nothing polls: each process is waited for at the end of its standard output.

use std::fs;
use std::io::Read;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::Instant;

use perilune_luahost::{mlua, HostError};

use crate::collatz::progress::Progress;
use crate::collatz::row::Row;
use crate::collatz::{DRIVER, EXAMPLE};
use crate::failure::{doing, environment, found, Failure, Result};
use crate::module_paths;
use crate::script;

/// The script of a process: path, durability and its number are its arguments.
pub(crate) const WORKER: &str = "local path, durability, id = ...\n\
                                 require 'driver'.work(path, durability, tonumber(id))\n";

/// One run.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) db: PathBuf,
    pub(crate) durability: String,
    pub(crate) n: u64,
    pub(crate) block: u64,
    pub(crate) procs: u32,
    pub(crate) round: u32,
    /// The Lua of the processes; None: the embedded one.
    pub(crate) lua: Option<PathBuf>,
    /// A directory for what another Lua reads.
    pub(crate) scratch: PathBuf,
}

enum Event {
    Started(Vec<Child>),
    /// All that a process printed; it has ended, or is about to.
    Said(usize, String),
    Controlled(Result<Control>),
}

/// What the controlling side measured.
struct Control {
    longest: Option<u64>,
    highest: Option<u64>,
    stored: u64,
    reads: u64,
    updates: u64,
    seconds: f64,
}

/// Runs `plan`.
pub(crate) fn run(plan: &Plan) -> Result<Row> {
    let (sender, events) = mpsc::channel();
    if plan.lua.is_some() {
        write_for_other_lua(plan)?;
    }
    let controller = {
        let (plan, sender) = (plan.clone(), sender);
        thread::spawn(move || {
            let result = control(&plan, &sender);
            // Without a receiver the run has failed already.
            let _ = sender.send(Event::Controlled(result));
        })
    };
    let progress = Progress::start(plan);
    let mut children = Vec::new();
    let outcome = supervise(plan, &events, &mut children);
    progress.end();
    match outcome {
        Ok(row) => {
            // It has sent its result: it ends at once, and its database is closed then.
            let _ = controller.join();
            Ok(row)
        }
        Err(failure) => {
            for child in &mut children {
                let _ = child.kill();
                let _ = child.wait();
            }
            Err(failure)
        }
    }
}

fn supervise(plan: &Plan, events: &Receiver<Event>, children: &mut Vec<Child>) -> Result<Row> {
    let (mut ended, mut cpu_seconds, mut lua, mut control) = (0, 0.0, String::new(), None);
    while control.is_none() || ended < plan.procs {
        let event = events.recv().map_err(|_| found("the controlling thread ended; this is a bug"))?;
        match event {
            Event::Started(started) => *children = started,
            Event::Controlled(result) => control = Some(result?),
            Event::Said(index, text) => {
                let status = children[index].wait().map_err(doing("wait for a process"))?;
                let words = text.trim().split_once(' ').and_then(|(cpu, lua)| Some((cpu.parse().ok()?, lua)));
                let Some((cpu, name)): Option<(f64, &str)> = words.filter(|_| status.success()) else {
                    return Err(environment(format!(
                        "process {} of {} failed ({status}); what it said is above",
                        index + 1,
                        plan.procs
                    )));
                };
                cpu_seconds += cpu;
                lua = name.to_owned();
                ended += 1;
            }
        }
    }
    let control = control.expect("the loop ends when it is there");
    Ok(Row {
        lua,
        durability: plan.durability.clone(),
        procs: plan.procs,
        round: plan.round,
        n: plan.n,
        longest: control.longest,
        highest: control.highest,
        stored: control.stored,
        reads: control.reads,
        updates: control.updates,
        seconds: control.seconds,
        cpu_seconds,
    })
}

/// The controlling side: the embedded LuaJIT, whatever the processes run in.
fn control(plan: &Plan, events: &Sender<Event>) -> Result<Control> {
    let host = super::host()?;
    let lua = host.lua();
    let (start, sender, for_spawn) = (Instant::now(), events.clone(), plan.clone());
    let clock =
        lua.create_function(move |_, ()| Ok(start.elapsed().as_secs_f64())).map_err(HostError::from)?;
    let spawn = lua
        .create_function(move |_, ()| {
            spawn(&for_spawn, &sender).map_err(|failure| {
                let _ = sender.send(Event::Controlled(Err(failure)));
                mlua::Error::runtime("the processes cannot be started")
            })
        })
        .map_err(HostError::from)?;
    let loader = lua.load("return require('driver').control").set_name("=driver");
    let function: mlua::Function = loader.eval().map_err(HostError::from)?;
    let path = plan.db.to_string_lossy().into_owned();
    let arguments = (path, plan.durability.as_str(), plan.n, plan.block, plan.procs, spawn, clock);
    let results = host.call(&function, arguments)?;
    let Some(mlua::Value::Table(table)) = results.front() else {
        return Err(found("driver.lua answered no table; this is a bug"));
    };
    let read = || -> mlua::Result<Control> {
        Ok(Control {
            longest: table.get("longest")?,
            highest: table.get("highest")?,
            stored: table.get("stored")?,
            reads: table.get("reads")?,
            updates: table.get("updates")?,
            seconds: table.get("seconds")?,
        })
    };
    read().map_err(|error| Failure::from(HostError::from(error)))
}

/// Starts the processes, and a thread for each that reads what it prints.
fn spawn(plan: &Plan, events: &Sender<Event>) -> Result<()> {
    let (mut children, mut outputs) = (Vec::new(), Vec::new());
    for id in 1..=plan.procs {
        let mut command = command(plan, id);
        match command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn() {
            Ok(mut child) => {
                outputs.extend(child.stdout.take());
                children.push(child);
            }
            Err(error) => {
                // Those that run must be known, so that they are ended.
                let _ = events.send(Event::Started(children));
                return Err(environment(format!("cannot start {:?}: {error}", command.get_program())));
            }
        }
    }
    let _ = events.send(Event::Started(children));
    for (index, mut output) in outputs.into_iter().enumerate() {
        let events = events.clone();
        thread::spawn(move || {
            let mut text = String::new();
            // What cannot be read is missing from `text`, and that is a failure.
            let _ = output.read_to_string(&mut text);
            let _ = events.send(Event::Said(index, text));
        });
    }
    Ok(())
}

fn command(plan: &Plan, id: u32) -> Command {
    let mut command = match &plan.lua {
        None => {
            let mut command = Command::new(script::program());
            command.args(["bench", "worker-of-3n1"]);
            command
        }
        Some(lua) => {
            let mut command = Command::new(lua);
            command.arg(plan.scratch.join("worker.lua"));
            command.envs(module_paths::module_paths(lua, &plan.scratch));
            command
        }
    };
    command.arg(&plan.db).arg(&plan.durability).arg(id.to_string());
    command
}

fn write_for_other_lua(plan: &Plan) -> Result<()> {
    for (name, text) in [("collatz.lua", EXAMPLE), ("driver.lua", DRIVER), ("worker.lua", WORKER)] {
        let file = plan.scratch.join(name);
        fs::write(&file, text).map_err(doing(format!("write {}", file.display())))?;
    }
    Ok(())
}
