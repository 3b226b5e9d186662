//! Builds the library that scripts have as `redis`, which is C on the headers of the sandboxes.

use std::env;
use std::path::PathBuf;

fn main() {
    let place =
        PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("src/scripts/redis");
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed={}", place.display());
    // See perilune-sandbox, which has built nothing either.
    println!("cargo:rerun-if-env-changed=PERILUNE_WITHOUT_C");
    if env::var_os("PERILUNE_WITHOUT_C").is_some() {
        return;
    }
    let header = |name: &str| PathBuf::from(env::var_os(name).expect("perilune-sandbox tells it"));
    cc::Build::new()
        .files(["calls.c", "replies.c"].map(|name| place.join(name)))
        .include(header("DEP_PERILUNE_SANDBOX_SANDBOX"))
        .include(header("DEP_PERILUNE_SANDBOX_LUAJIT"))
        .flag("-include")
        .flag(header("DEP_PERILUNE_SANDBOX_PRIVATE"))
        .std("gnu11")
        .opt_level(2)
        .flag("-fvisibility=hidden")
        .warnings(true)
        .extra_warnings(true)
        .compile("perilune_redis");
}
