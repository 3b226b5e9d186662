//! Builds the C sources of `bindings/lua` for the LuaJIT of the sandboxes, which `crates/sandbox` builds, and gives that its plain
//! names: mlua calls them, and C modules that a script loads.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("../..");
    let module = root.join("bindings/lua/src");
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed={}", module.display());
    println!("cargo:rerun-if-changed={}", root.join("include/perilune.h").display());

    write_modules(&root.join("bindings/lua"));
    // See perilune-sandbox, which has built nothing either.
    println!("cargo:rerun-if-env-changed=PERILUNE_WITHOUT_C");
    if env::var_os("PERILUNE_WITHOUT_C").is_some() {
        return;
    }
    let sources = files(&module, "c");
    cc::Build::new()
        .files(&sources)
        .include(told("LUAJIT"))
        .include(root.join("include"))
        .flag("-include")
        .flag(told("PRIVATE_LUAJIT"))
        .std("gnu99")
        .opt_level(2)
        .flag("-fvisibility=hidden")
        .warnings(true)
        .extra_warnings(true)
        .flag("-Wno-unused-parameter")
        .compile("perilune_lua");

    write_plain_names(&told("NAMES"));
    println!("cargo:rustc-link-search=native={}", env::var("OUT_DIR").expect("cargo sets it"));
    // All of it: C modules made for Lua 5.1 may call functions that nothing here calls, and mlua, whose crate the linker meets later,
    // calls others.
    println!("cargo:rustc-link-lib=static:+whole-archive=perilune_plain_lua");
}

/// What perilune-sandbox says of the LuaJIT that it has built.
fn told(what: &str) -> PathBuf {
    let name = format!("DEP_PERILUNE_SANDBOX_{what}");
    println!("cargo:rerun-if-env-changed={name}");
    PathBuf::from(env::var_os(&name).expect("perilune-sandbox tells it"))
}

/// Gives Lua's C API its plain names, which are private to the sandboxes' crate: each jumps to the function.
fn write_plain_names(names: &Path) {
    println!("cargo:rerun-if-changed={}", names.display());
    let jump = match &*env::var("CARGO_CFG_TARGET_ARCH").expect("cargo sets it") {
        "x86_64" => "jmp",
        "aarch64" => "b",
        other => panic!("how does a function jump to another on {other}?"),
    };
    let mut source = String::from(".text\n");
    for name in fs::read_to_string(names).expect("the names are there").lines() {
        writeln!(
            source,
            ".globl {name}\n.type {name}, %function\n{name}:\n    {jump} perilune_private_{name}\n.size {name}, .-{name}"
        )
        .expect("a string grows");
    }
    source.push_str(".section .note.GNU-stack, \"\", %progbits\n");
    let file = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it")).join("plain_lua.s");
    fs::write(&file, source).expect("OUT_DIR is writable");
    cc::Build::new().file(&file).cargo_metadata(false).compile("perilune_plain_lua");
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
