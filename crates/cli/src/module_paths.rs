//! Where a Lua that is not the embedded one (`--lua lua5.4`) finds the module `perilune`: its search paths, for
//! benchmarks that run in it.

use std::env;
use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

/// `LUA_PATH` and `LUA_CPATH` for `lua`: files in `scratch`, what the user has set, then where `make` puts the
/// module of its version.
pub(crate) fn module_paths(lua: &Path, scratch: &Path) -> [(&'static str, OsString); 2] {
    let question = "io.write(rawget(_G, 'jit') and 'jit' or _VERSION:match '%d.%d')";
    let output = Command::new(lua).args(["-e", question]).output();
    let version =
        output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    let built = env::current_dir().unwrap_or_default().join("build/lua").join(version);
    let set = |variable: &str, first: String, pattern: &str| {
        let mut path = OsString::from(first);
        path.push(env::var_os(variable).unwrap_or_default());
        path.push(format!(";{}/{pattern};;", built.display()));
        path
    };
    [
        ("LUA_PATH", set("LUA_PATH", format!("{}/?.lua;", scratch.display()), "?.lua")),
        ("LUA_CPATH", set("LUA_CPATH", String::new(), "?.so")),
    ]
}
