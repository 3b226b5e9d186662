//! Builds a Lua interpreter from the sources in the crate `lua-src`, for the specs of `bindings/lua`.
//!
//! `perilune-interpreters VERSION DIRECTORY [checked]` leaves `bin/lua`, `lib` and `include` in DIRECTORY.
//! There is no package of Lua 5.5 yet; and a *checked* Lua of any version, compiled with the address and
//! undefined behaviour sanitizers and with Lua's own checks of how its C API is used, is in no package.
//!
//! Deliberately absent: the interactive interpreter; `bin/lua` runs a file (`runner.c`).

#![forbid(unsafe_code)]

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use lua_src::{Lua51, Lua52, Lua53, Lua54, Lua55, Version};

const USAGE: &str = "Usage: perilune-interpreters 5.1|5.2|5.3|5.4|5.5 DIRECTORY [checked]";

/// What a checked interpreter, and what it loads, is compiled with.
const CHECKS: &[&str] =
    &["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined", "-fno-omit-frame-pointer", "-g"];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (version, directory, checked) = match words.as_slice() {
        [version, directory] => (version_of(version), directory, false),
        [version, directory, "checked"] => (version_of(version), directory, true),
        _ => (None, &"", false),
    };
    let Some(version) = version else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    match build(version, Path::new(directory), checked) {
        Ok(program) => {
            println!("{}", program.display());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("perilune-interpreters: {error}");
            ExitCode::FAILURE
        }
    }
}

fn version_of(text: &str) -> Option<Version> {
    Some(match text {
        "5.1" => Lua51,
        "5.2" => Lua52,
        "5.3" => Lua53,
        "5.4" => Lua54,
        "5.5" => Lua55,
        _ => return None,
    })
}

/// Builds and links; the program appears under its name when it is whole.
fn build(version: Version, directory: &Path, checked: bool) -> Result<PathBuf, Box<dyn Error>> {
    let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    if checked {
        std::env::set_var("CFLAGS", CHECKS.join(" "));
    }
    let mut lua = lua_src::Build::new();
    let artifacts =
        lua.out_dir(directory).target(&target).opt_level("2").debug(checked).try_build(version)?;
    let runner = directory.join("runner.c");
    let programs = directory.join("bin");
    fs::create_dir_all(&programs)?;
    fs::write(&runner, include_str!("runner.c"))?;
    let (unfinished, program) = (programs.join("lua.new"), programs.join("lua"));
    let mut compiler = cc::Build::new()
        .target(&target)
        .host(&target)
        .opt_level(2)
        .cargo_metadata(false)
        .try_get_compiler()?
        .to_command();
    compiler.arg(&runner).arg("-I").arg(artifacts.include_dir()).arg("-o").arg(&unfinished);
    compiler.arg("-L").arg(artifacts.lib_dir()).arg("-rdynamic").arg("-Wl,--whole-archive");
    compiler.args(artifacts.libs().iter().map(|library| format!("-l{library}")));
    compiler.args(["-Wl,--no-whole-archive", "-lm", "-ldl"]);
    run(&mut compiler)?;
    fs::rename(&unfinished, &program)?;
    Ok(program)
}

fn run(command: &mut Command) -> Result<(), Box<dyn Error>> {
    let status = command.status().map_err(|error| format!("{command:?}: {error}"))?;
    if status.success() {
        return Ok(());
    }
    Err(format!("{command:?}: {status}").into())
}
