//! Exports the functions of Lua from the program, for C modules made for Lua 5.1.

use std::env;
use std::path::Path;

fn main() {
    let root = env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it");
    let list = Path::new(&root).join("exported.list");
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed={}", list.display());
    println!("cargo:rustc-link-arg-bins=-Wl,--dynamic-list={}", list.display());
}
