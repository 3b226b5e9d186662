//! The embedded Lua: what it has, how errors come back.

use std::ffi::OsString;
use std::fs;
use std::path::Path;

use perilune_luahost::mlua::Value;
use perilune_luahost::{is_incomplete, Host, HostError};

fn first(host: &Host, code: &str) -> String {
    match host.evaluate(code, "=test").expect("it runs").front() {
        Some(Value::String(text)) => text.to_string_lossy(),
        Some(Value::Boolean(value)) => value.to_string(),
        Some(Value::Integer(value)) => value.to_string(),
        Some(Value::Number(value)) => value.to_string(),
        other => format!("{other:?}"),
    }
}

#[test]
fn the_module_is_there_and_lua_is_luajit_with_5_2() {
    let host = Host::new().expect("a state");
    assert_eq!(first(&host, "require('perilune').isnode(1)"), "false");
    assert_eq!(first(&host, "jit.version:match '^LuaJIT 2.1'"), "LuaJIT 2.1");
    assert_eq!(
        first(&host, "#setmetatable({}, {__len = function() return 7 end})"),
        "7",
        "5.2 compatibility"
    );
    assert_eq!(first(&host, "type(require('ffi').cdef)"), "function");
    assert_eq!(first(&host, "type(require('perilune.yottadb').node)"), "function");
    assert_eq!(first(&host, "require('perilune').extend == nil"), "true", "LuaJIT's part is in use");
}

#[test]
fn states_are_independent() {
    let (one, two) = (Host::new().expect("a state"), Host::new().expect("a state"));
    one.run_code("x = 1; require 'perilune'", "=test", &[]).expect("it runs");
    assert_eq!(first(&two, "tostring(x)"), "nil");
    drop(one);
    assert_eq!(first(&two, "type(require('perilune').open)"), "function");
}

#[test]
fn errors_come_back_with_text_traceback_and_code() {
    let host = Host::new().expect("a state");
    let failing = |code: &str| host.run_code(code, "=test", &[]).expect_err("it fails");
    let raised = |code: &str| match failing(code) {
        HostError::Raised { message, code } => (message, code),
        other => panic!("{code}: {other}"),
    };
    let (message, code) = raised("local function f() error 'broken' end f()");
    assert!(message.starts_with("test:1: broken\nstack traceback:"), "{message}");
    assert_eq!(code, None);
    let (message, code) = raised("require('perilune').open('/missing/directory/t.db')");
    assert!(message.contains("/missing/directory"), "{message}");
    assert!(code.is_some(), "{message}");
    let (message, _) = raised("error(setmetatable({}, {__tostring = function() error 'again' end}))");
    assert!(message.starts_with("an error whose __tostring raises"), "{message}");
    let (message, _) = raised("error {}");
    assert!(message.starts_with("(error object is a table value)"), "{message}");
    assert!(matches!(failing("x ="), HostError::Syntax { incomplete: true, .. }));
    assert!(matches!(failing("x = )"), HostError::Syntax { incomplete: false, .. }));
    assert!(matches!(host.run_file(Path::new("/missing.lua"), &[]), Err(HostError::Unreadable { .. })));
}

#[test]
fn a_script_has_arguments_that_are_bytes_and_finds_its_neighbours() {
    use std::os::unix::ffi::OsStringExt;
    let directory = std::env::temp_dir().join(format!("perilune-luahost-{}", std::process::id()));
    fs::create_dir_all(&directory).expect("a directory for the test");
    fs::write(directory.join("neighbour.lua"), "return 'near'").expect("a file");
    let script = directory.join("a.lua");
    fs::write(&script, "#!shebang\nresult = require 'neighbour' .. arg[1] .. ... error 'line 2'")
        .expect("a file");
    let host = Host::new().expect("a state");
    let arguments = [OsString::from_vec(b"\xff\xfe".to_vec())];
    host.set_arguments(Path::new("perilune"), &script, &arguments).expect("set");
    let error = host.run_file(&script, &arguments).expect_err("it raises").to_string();
    fs::remove_dir_all(&directory).expect("the test's own directory");
    assert!(error.contains("a.lua:2: line 2"), "{error}");
    assert_eq!(first(&host, "result == 'near\\255\\254\\255\\254'"), "true");
}

#[test]
fn chunks_that_go_on_are_known() {
    for begun in ["for i = 1, 2 do", "f(", "x = [[", "x =", "local t = {", "function f()"] {
        assert!(is_incomplete(begun), "{begun}");
    }
    for whole in ["", "x = 1", "1 + 1", "f()", "x = )", "end", "return 1"] {
        assert!(!is_incomplete(whole), "{whole}");
    }
}
