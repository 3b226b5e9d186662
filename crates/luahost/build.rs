//! Builds LuaJIT with Lua 5.2 compatibility, and the C sources of `bindings/lua` against its headers.
//!
//! LuaJIT is built here and not by mlua, which tells nobody where its headers are.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("../..");
    // Compiled loops look whether a hook is set: otherwise nothing stops one (sandbox/stop.c).
    env::set_var("CFLAGS", format!("{} -DLUAJIT_ENABLE_CHECKHOOK", env::var("CFLAGS").unwrap_or_default()));
    let luajit = luajit_src::Build::new().lua52compat(true).debug(false).build();
    let module = root.join("bindings/lua/src");
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed={}", module.display());
    println!("cargo:rerun-if-changed={}", root.join("include/perilune.h").display());

    write_modules(&root.join("bindings/lua"));
    let sources = files(&module, "c");
    cc::Build::new()
        .files(&sources)
        .include(luajit.include_dir())
        .include(root.join("include"))
        .std("gnu99")
        .opt_level(2)
        .flag("-fvisibility=hidden")
        .warnings(true)
        .extra_warnings(true)
        .flag("-Wno-unused-parameter")
        .compile("perilune_lua");

    let sandbox = root.join("crates/luahost/sandbox");
    println!("cargo:rerun-if-changed={}", sandbox.display());
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    for name in ["documents", "json", "literals", "nodes", "script_globals", "shipped", "shipped_environment"]
    {
        let lua = fs::read(sandbox.join(name).with_extension("lua")).expect("a part in Lua");
        let bytes: Vec<_> = lua.iter().map(u8::to_string).collect();
        fs::write(out.join(name).with_extension("inc"), bytes.join(",")).expect("OUT_DIR is writable");
    }
    cc::Build::new()
        .files(files(&sandbox, "c"))
        .include(&out)
        .include(root.join("include"))
        .include(luajit.include_dir())
        .std("gnu11")
        .opt_level(2)
        .flag("-fvisibility=hidden")
        .warnings(true)
        .extra_warnings(true)
        .compile("perilune_sandbox");

    // For libraries in C of those who use this crate: where the headers are.
    println!("cargo:sandbox={}", sandbox.display());
    println!("cargo:luajit={}", luajit.include_dir().display());

    // All of it: C modules made for Lua 5.1 may call functions that nothing here calls, and mlua, whose
    // crate the linker meets later, calls others.
    println!("cargo:rustc-link-search=native={}", luajit.lib_dir().display());
    for library in luajit.libs() {
        println!("cargo:rustc-link-lib=static:+whole-archive={library}");
    }
}

/// The files in `directory` and below it with `extension`, in order.
fn files(directory: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).expect("a directory of bindings/lua") {
        let path = entry.expect("a readable directory").path();
        if path.is_dir() {
            found.extend(files(&path, extension));
        } else if path.extension().is_some_and(|found| found == extension) {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Writes the list of Lua files that `host.rs` includes: the name each is required by, and its text.
fn write_modules(lua: &Path) {
    println!("cargo:rerun-if-changed={}", lua.join("perilune").display());
    let mut paths = files(&lua.join("perilune"), "lua");
    paths.push(lua.join("perilune.lua"));
    let mut list = String::from("&[\n");
    for path in paths {
        println!("cargo:rerun-if-changed={}", path.display());
        let name = path.strip_prefix(lua).expect("it lies there").with_extension("");
        let name = name.to_str().expect("names are ASCII").replace('/', ".");
        writeln!(list, "({name:?}, include_str!({path:?})),").expect("a string grows");
    }
    list.push_str("]\n");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it")).join("modules.rs");
    fs::write(out, list).expect("OUT_DIR is writable");
}
