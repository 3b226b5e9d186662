//! Builds LuaJIT with Lua 5.2 compatibility, and the C sources of `bindings/lua` against its headers.
//!
//! LuaJIT is built here and not by mlua, which tells nobody where its headers are.

use std::path::PathBuf;
use std::{env, fs};

fn main() {
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("../..");
    let luajit = luajit_src::Build::new().lua52compat(true).debug(false).build();
    let module = root.join("bindings/lua/src");
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed={}", module.display());
    println!("cargo:rerun-if-changed={}", root.join("include/perilune.h").display());

    let mut sources: Vec<PathBuf> = fs::read_dir(&module)
        .expect("bindings/lua/src is part of the project")
        .map(|entry| entry.expect("a readable directory").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "c"))
        .collect();
    sources.sort();
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

    // All of it: C modules made for Lua 5.1 may call functions that nothing here calls, and mlua, whose
    // crate the linker meets later, calls others.
    println!("cargo:rustc-link-search=native={}", luajit.lib_dir().display());
    for library in luajit.libs() {
        println!("cargo:rustc-link-lib=static:+whole-archive={library}");
    }
}
