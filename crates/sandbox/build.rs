//! Builds LuaJIT with Lua 5.2 compatibility, and the C sources of the sandboxes on it, under names that are nobody else's.
//!
//! The problem: this crate is to be in libperilune.a, which programs link that have a Lua of their own, and C sources of their own.
//! The Lua module for Lua 5.4 must call its host's `lua_pushnil` and never the one in here; nobody expects a library of databases
//! to define `settle`. The idea: once compiled, every global symbol of C gets the prefix `perilune_private_`. Whoever compiles C
//! for this LuaJIT has a header put in front, which renames what the sources call: `private_luajit.h`, or `private.h` if they call
//! the sandboxes' functions as well. Who needs the plain names, as modules that a program loads do, makes them of the list
//! `luajit.names`, as luahost does.
//!
//! Who only checks the sources in Rust, as clippy does, needs none of this: it is left out with `PERILUNE_WITHOUT_C` set, here and
//! in the crates that build C on this one.
//!
//! Example: `lua_pushnil` of lj_api.o becomes `perilune_private_lua_pushnil`; so does the call of it in json.o.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

const PREFIX: &str = "perilune_private_";

/// What objcopy reads, headers for C with and without the sandboxes' names, and the names of Lua's API: files in OUT_DIR.
const MAP: &str = "private.map";
const LUAJIT_HEADER: &str = "private_luajit.h";
const HEADER: &str = "private.h";
const NAMES: &str = "luajit.names";

/// What begins the names of Lua's C API.
const API: [&str; 4] = ["lua_", "luaL_", "luaopen_", "luaJIT_"];

fn main() {
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    let sandbox = root.join("c");
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed={}", sandbox.display());
    let header = root.join("../../include/perilune.h");
    println!("cargo:rerun-if-changed={}", header.display());
    println!("cargo:rerun-if-env-changed=NM");
    println!("cargo:rerun-if-env-changed=OBJCOPY");
    println!("cargo:rerun-if-env-changed=PERILUNE_WITHOUT_C");
    if env::var_os("PERILUNE_WITHOUT_C").is_some() {
        return;
    }

    // Compiled loops look whether a hook is set: otherwise nothing stops one (c/stop.c). Names are changed in machine code.
    let flags = format!("{} -fno-lto -DLUAJIT_ENABLE_CHECKHOOK", env::var("CFLAGS").unwrap_or_default());
    env::set_var("CFLAGS", flags);
    let luajit = luajit_src::Build::new().lua52compat(true).debug(false).build();
    for name in ["documents", "json", "literals", "nodes", "script_globals", "shipped", "shipped_environment"]
    {
        let lua = fs::read(sandbox.join(name).with_extension("lua")).expect("a part in Lua");
        let bytes: Vec<_> = lua.iter().map(u8::to_string).collect();
        fs::write(out.join(name).with_extension("inc"), bytes.join(",")).expect("OUT_DIR is writable");
    }
    let header = fs::read_to_string(&header).expect("the header of the C interface");
    fs::write(out.join("statuses.inc"), statuses(&header)).expect("OUT_DIR is writable");
    let plain = out.join("plain");
    let mut build = cc::Build::new();
    build
        .files(sources(&sandbox))
        .include(&out)
        .include(luajit.include_dir())
        .std("gnu11")
        .opt_level(2)
        .flag("-fvisibility=hidden")
        .warnings(true)
        .extra_warnings(true)
        .cargo_metadata(false)
        .out_dir(&plain)
        .compile("perilune_sandbox");

    let mut archives = vec![(archive(&plain, "perilune_sandbox"), "perilune_sandbox".to_owned())];
    let own = globals(&build, &archives[0].0);
    for name in luajit.libs() {
        archives.push((archive(luajit.lib_dir(), name), format!("perilune_{name}")));
    }
    let of_luajit: BTreeSet<_> =
        archives[1..].iter().flat_map(|(archive, _)| globals(&build, archive)).collect();
    write_lists(&out, &of_luajit, &own);

    println!("cargo:rustc-link-search=native={}", out.display());
    for (archive, name) in &archives {
        let renamed = out.join(format!("lib{name}.a"));
        let _ = fs::remove_file(&renamed);
        let mut objcopy = tool(&build, "objcopy");
        run(objcopy.arg(format!("--redefine-syms={}", out.join(MAP).display())).arg(archive).arg(&renamed));
        println!("cargo:rustc-link-lib=static={name}");
    }

    // For C of those who use this crate: where the headers are, and what goes in front of their sources.
    println!("cargo:sandbox={}", sandbox.display());
    println!("cargo:luajit={}", luajit.include_dir().display());
    println!("cargo:private={}", out.join(HEADER).display());
    println!("cargo:private_luajit={}", out.join(LUAJIT_HEADER).display());
    println!("cargo:names={}", out.join(NAMES).display());
}

/// Writes what objcopy reads, the header for C, and the names of the API.
fn write_lists(out: &Path, of_luajit: &BTreeSet<String>, own: &BTreeSet<String>) {
    let api = |name: &&String| API.iter().any(|begin| name.starts_with(begin));
    let (mut map, mut header, mut names) = (String::new(), String::new(), String::new());
    for name in of_luajit.iter().chain(own) {
        writeln!(map, "{name} {PREFIX}{name}").expect("a string grows");
    }
    for name in of_luajit.iter().filter(api) {
        writeln!(header, "#define {name} {PREFIX}{name}").expect("a string grows");
        writeln!(names, "{name}").expect("a string grows");
    }
    let of_luajit = header.clone();
    for name in own {
        writeln!(header, "#define {name} {PREFIX}{name}").expect("a string grows");
    }
    for (file, text) in [(MAP, map), (LUAJIT_HEADER, of_luajit), (HEADER, header), (NAMES, names)] {
        fs::write(out.join(file), text).expect("OUT_DIR is writable");
    }
}

/// The errors of the C interface, each as its name and its number in C.
fn statuses(header: &str) -> String {
    let (_, behind) = header.split_once("enum perilune_status {").expect("the header has its statuses");
    let (inside, _) = behind.split_once("};").expect("the enum ends");
    let mut list = String::new();
    for line in inside.lines() {
        let Some((name, behind)) = line.trim().split_once(" = ") else { continue };
        let Some(name) = name.strip_prefix("PERILUNE_") else { continue };
        let number = behind.split([',', ' ', '/']).next().unwrap_or_default();
        if !number.starts_with('-') {
            continue;
        }
        writeln!(list, "{{\"{name}\", {number}}},").expect("a string grows");
    }
    assert!(list.lines().count() > 30, "the reader of the header has lost its way: {list}");
    list
}

/// The global symbols that an archive defines.
fn globals(build: &cc::Build, archive: &Path) -> BTreeSet<String> {
    let mut nm = tool(build, "nm");
    let said = run(nm.args(["--extern-only", "--defined-only", "--format=posix"]).arg(archive));
    let name = |line: &str| line.split_once(' ').map(|(name, _)| name.to_owned());
    let found: BTreeSet<_> = said.lines().filter_map(name).collect();
    assert!(!found.is_empty(), "nm finds no symbols in {}", archive.display());
    found
}

/// A program that stands beside the archiver: `aarch64-linux-gnu-nm` beside `aarch64-linux-gnu-ar`.
fn tool(build: &cc::Build, name: &str) -> Command {
    if let Some(given) = env::var_os(name.to_uppercase()) {
        return Command::new(given);
    }
    let archiver = build.get_archiver();
    let archiver = archiver.get_program().to_str().expect("the archiver's name is text");
    let beside = archiver.strip_suffix("ar").unwrap_or_default();
    Command::new(format!("{beside}{name}"))
}

fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}; install binutils"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("symbols are text")
}

fn archive(directory: &Path, name: &str) -> PathBuf {
    directory.join(format!("lib{name}.a"))
}

/// The C files of a directory, in order.
fn sources(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).expect("the sources are there");
    let paths = entries.map(|entry| entry.expect("a readable directory").path());
    let mut found: Vec<_> = paths.filter(|path| path.extension() == Some(OsStr::new("c"))).collect();
    found.sort();
    found
}
