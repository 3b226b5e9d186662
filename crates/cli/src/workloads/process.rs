//! The process of a Lua that runs the workloads: a line to it begins a round, lines from it are the values.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use perilune_luahost::Host;

use crate::failure::{doing, environment, Result};
use crate::module_paths;
use crate::scratch::Scratch;
use crate::script;

const WORKLOADS: &str = include_str!("workloads.lua");
const SHA512: &str = include_str!("sha512.lua");

/// The process.
pub(crate) struct LuaSide {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    lua: String,
    left_out: BTreeMap<String, String>,
}

impl LuaSide {
    /// Starts `lua`, or the embedded one, and waits until it has its data.
    pub(crate) fn start(lua: Option<&Path>, scratch: &Scratch) -> Result<LuaSide> {
        let mut command = match lua {
            None => {
                let mut command = Command::new(script::program());
                command.args(["bench", "worker-of-lua"]);
                command
            }
            Some(lua) => {
                scratch.write("workloads.lua", WORKLOADS)?;
                scratch.write("sha512.lua", SHA512)?;
                let mut command = Command::new(lua);
                command.arg(scratch.path().join("workloads.lua"));
                command.envs(module_paths::module_paths(lua, scratch.path()));
                command
            }
        };
        command.arg(scratch.path().join("workloads.db"));
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| environment(format!("cannot start {:?}: {error}", command.get_program())))?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let Some(output) = output.map(BufReader::new) else {
            return Err(environment("the process has no output"));
        };
        let mut side = LuaSide { child, input, output, lua: String::new(), left_out: BTreeMap::new() };
        side.read()?;
        Ok(side)
    }

    /// One round: each workload's value in its unit.
    pub(crate) fn round(&mut self) -> Result<Vec<(String, f64)>> {
        if let Some(input) = &mut self.input {
            input.write_all(b"\n").map_err(doing("write to the process"))?;
        }
        self.read()
    }

    /// Ends the process and says which Lua it was.
    pub(crate) fn end(&mut self) -> Result<String> {
        self.input = None;
        let status = self.child.wait().map_err(doing("wait for the process"))?;
        if !status.success() {
            return Err(environment(format!("the process failed ({status})")));
        }
        Ok(self.lua.clone())
    }

    /// What this Lua cannot do, and why.
    pub(crate) fn left_out(&self) -> impl Iterator<Item = (&String, &String)> {
        self.left_out.iter()
    }

    fn read(&mut self) -> Result<Vec<(String, f64)>> {
        let mut rows = Vec::new();
        loop {
            let mut line = String::new();
            self.output.read_line(&mut line).map_err(doing("read from the process"))?;
            let words: Vec<&str> = line.trim_end_matches('\n').split('\t').collect();
            match words[..] {
                ["ready"] => return Ok(rows),
                ["lua", name] => self.lua = name.to_owned(),
                ["out", name, why] => {
                    self.left_out.insert(name.to_owned(), why.to_owned());
                }
                ["row", name, value] => match value.parse() {
                    Ok(value) => rows.push((name.to_owned(), value)),
                    Err(_) => return Err(environment(format!("the process said {line:?}"))),
                },
                _ => {
                    return Err(environment(
                        "the process that runs the workloads failed; what it said is above",
                    ))
                }
            }
        }
    }
}

impl Drop for LuaSide {
    fn drop(&mut self) {
        // After `end` there is nothing to kill; else the process may be in the middle of a round.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What the process does in the embedded LuaJIT.
pub(crate) fn work(db: &Path) -> Result<()> {
    let host = Host::new()?;
    host.preload("sha512", SHA512)?;
    host.lua().globals().set("PERILUNE_HOST", true).map_err(perilune_luahost::HostError::from)?;
    host.run_code(WORKLOADS, "=workloads", &[PathBuf::from(db).into_os_string()])?;
    Ok(())
}
