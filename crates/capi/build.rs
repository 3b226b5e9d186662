//! Gives the shared library its soname, which is the version of the C contract.

fn main() {
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libperilune.so.0");
    println!("cargo:rerun-if-changed=build.rs");
}
