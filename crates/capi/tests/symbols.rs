//! The header and the library agree: every function declared is exported, nothing else is, and the
//! structs have one layout.

mod support;

use std::collections::BTreeSet;
use std::fs;
use std::mem::offset_of;
use std::process::Command;

use perilune_capi::graph::walk as graph_walk;
use perilune_capi::{channel, cursor, database, lock, node, transaction, watch};
use support::{artefact, compiler, root, run, Directory};

fn declared(header: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for declaration in header.split("\nPERILUNE_API ").skip(1) {
        let (before, _) = declaration.split_once('(').expect("a declaration has its arguments");
        let name = before.rsplit([' ', '*']).next().expect("a function has a name");
        assert!(names.insert(name.to_owned()), "{name} is declared twice");
    }
    names
}

fn exported(library: &str) -> BTreeSet<String> {
    let output =
        run(Command::new("nm").args(["-D", "--defined-only", "--format=posix"]).arg(artefact(library)));
    let symbols = String::from_utf8_lossy(&output.stdout);
    symbols.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect()
}

#[test]
fn the_library_exports_what_the_header_declares() {
    let header = fs::read_to_string(root().join("include/perilune.h")).expect("the header is there");
    let declared = declared(&header);
    assert!(declared.len() > 80, "the reader of the header has lost its way: {declared:?}");
    let exported = exported("libperilune_capi.so");
    let missing: Vec<_> = declared.difference(&exported).collect();
    let undeclared: Vec<_> = exported.difference(&declared).collect();
    assert!(missing.is_empty(), "declared, but not exported: {missing:?}");
    assert!(undeclared.is_empty(), "exported, but not declared: {undeclared:?}");
}

/// The Lua module for Lua 5.4 calls its host's `lua_pushnil`: the archive that it is linked with must have none. Nor may it define
/// what a program may call a function of its own.
#[test]
fn the_archive_defines_no_names_of_lua_and_none_of_everyday() {
    let archive = artefact("libperilune_capi.a");
    let output = run(Command::new("nm")
        .args(["--extern-only", "--defined-only", "--format=posix", "--no-sort"])
        .arg(archive));
    let symbols = String::from_utf8_lossy(&output.stdout);
    let named = |line| match str::split(line, ' ').collect::<Vec<_>>()[..] {
        [name, kind, ..] if kind.len() == 1 => Some((name, kind)),
        _ => None,
    };
    let symbols: Vec<_> = symbols.lines().filter_map(named).collect();
    let private = symbols.iter().filter(|(name, _)| name.starts_with("perilune_private_")).count();
    assert!(private > 300, "the archive has a LuaJIT: {private} symbols");
    let is_weak = |kind: &str| kind.starts_with(['W', 'V', 'u']);
    // Of Rust, of ours, of SQLite, which docs/guide/c.md tells, and of ring, whose names have its version.
    let begins = ["_", "perilune_", "sqlite3", "rust_", "ring_core_", "anon."];
    let strange = |(name, kind): &&(&str, &str)| {
        !is_weak(kind) && !begins.iter().any(|begin| name.starts_with(begin)) && !name.starts_with("DW.ref.")
    };
    let strange: Vec<_> = symbols.iter().filter(strange).map(|(name, _)| *name).collect();
    assert!(strange.is_empty(), "{strange:?}");
}

#[test]
fn the_reference_names_every_function() {
    let header = fs::read_to_string(root().join("include/perilune.h")).expect("the header is there");
    let reference = fs::read_to_string(root().join("docs/reference/c.md")).expect("the reference is there");
    let forgotten: Vec<_> =
        declared(&header).into_iter().filter(|name| !reference.contains(&format!("`{name}`"))).collect();
    assert!(forgotten.is_empty(), "docs/reference/c.md lacks {forgotten:?}");
}

/// The header said 1 MiB of private keys where the code had 4 MiB.
#[test]
fn the_numbers_of_the_header_are_those_of_the_code() {
    use perilune::limits;
    let header = fs::read_to_string(root().join("include/perilune.h")).expect("the header is there");
    let text: String =
        header.lines().map(|line| line.trim().trim_start_matches("* ").trim()).collect::<Vec<_>>().join(" ");
    let thousands = |number: usize| match number {
        1_000.. => format!("{},{:03}", number / 1_000, number % 1_000),
        _ => number.to_string(),
    };
    for sentence in [
        format!("up to {} bytes. Keys in the database", limits::NAME_BYTES),
        format!("Keys in the database take up to {} encoded bytes", thousands(limits::KEY_BYTES)),
        format!("private ones up to {} MiB.", limits::LOCAL_KEY_BYTES >> 20),
        format!("A subscript takes up to {} MiB.", limits::SUBSCRIPT_BYTES >> 20),
        format!("any bytes, up to {} MiB", limits::VALUE_BYTES >> 20),
        format!("/* {} at most */", limits::SUBSCRIPTS),
        format!("(1 to {} bytes, none of them zero)", limits::CHANNEL_NAME_BYTES),
        format!("locks, at most {}, or none", thousands(limits::LOCKS_PER_CALL)),
        format!("places, at most {}, and", thousands(limits::WATCH_PLACES)),
        format!("what the first {} of them are", thousands(limits::FAULTS_REPORTED)),
        format!("UTF-8 of up to {} MiB", perilune_sql::limits::STATEMENT_BYTES >> 20),
        format!("what it answers, up to {} MiB", perilune_sql::limits::BUFFER_BYTES >> 20),
    ] {
        assert!(text.contains(&sentence), "the header does not say: {sentence}");
    }
    let room = header.split("PERILUNE_NODE_BYTES_MAX PERILUNE_NODE_BYTES(").nth(1).expect("room for a node");
    let room: usize = room.split(')').next().and_then(|text| text.parse().ok()).expect("a number");
    assert!(room >= limits::KEY_BYTES, "{room} bytes are no room for every key");
}

#[test]
fn the_shared_library_has_its_soname() {
    let output = run(Command::new("readelf").arg("-d").arg(artefact("libperilune_capi.so")));
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("[libperilune.so.0]"), "no soname libperilune.so.0 in\n{said}");
}

#[test]
fn every_status_has_its_name_in_both() {
    let header = fs::read_to_string(root().join("include/perilune.h")).expect("the header is there");
    let (_, statuses) = header.split_once("enum perilune_status {").expect("the header has its statuses");
    let (statuses, _) = statuses.split_once("};").expect("the enum ends");
    let mut checked = 0;
    for line in statuses.lines() {
        let Some((name, rest)) = line.trim().split_once(" = ") else { continue };
        let code = rest.split([',', ' ', '/']).next().and_then(|code| code.parse().ok());
        let code: i32 = code.unwrap_or_else(|| panic!("{line} gives a number"));
        let said = perilune_capi::session::perilune_status_name(code);
        // SAFETY: perilune_status_name gives a static string.
        let said = unsafe { std::ffi::CStr::from_ptr(said) };
        assert_eq!(said.to_str(), Ok(name), "of {code}");
        checked += 1;
    }
    assert!(checked > 30, "the reader of the header has lost its way: {checked} statuses");
}

/// The assertions for a C compiler that a struct has the layout of its Rust twin.
macro_rules! layout {
    ($name:literal, $type:ty, $($field:ident)*) => {{
        let mut lines = assertion(format!("sizeof({}) == {}", $name, size_of::<$type>()));
        $(lines += &assertion(format!(
            "offsetof({}, {}) == {}", $name, stringify!($field), offset_of!($type, $field)
        ));)*
        lines
    }};
}

fn assertion(text: String) -> String {
    format!("    _Static_assert({text}, \"{text}\");\n")
}

fn layouts() -> String {
    [
        layout!("perilune_node", node::Head, key_size parent_size depth flags reserved hint),
        layout!("perilune_options", database::Options,
            create read_only durability max_size timeout file_mode any_filesystem shm_dir
            accept_lost_commits reserved wait_limit),
        layout!("perilune_limits", database::Limits,
            subscripts key_bytes private_key_bytes value_bytes transaction_depth),
        layout!("perilune_cursor_options", cursor::Options, kind flags from to from_node to_node),
        layout!("perilune_entry", cursor::entries::Entry, subscript value data depth shared node),
        layout!("perilune_transaction_options", transaction::Options, read_only durability exclusive timeout),
        layout!("perilune_lock_request", lock::Request, node mode),
        layout!("perilune_watch_request", watch::Request, node scope),
        layout!("perilune_channel_options", channel::Options, when_full messages bytes),
        layout!("perilune_received", channel::Received, number missed body body_size),
        layout!("perilune_graph_step", graph_walk::Step, vertex source target weight edge depth cost),
        layout!("perilune_graph_lead", graph_walk::GivenLead, edge cost rank),
        assertion("sizeof(perilune_value) == 24".to_owned()),
        assertion("offsetof(perilune_value, as) == 8".to_owned()),
    ]
    .concat()
}

#[test]
fn structs_have_one_layout() {
    let lines = layouts();
    let directory = Directory::new("layout");
    let source = directory.0.join("layout.c");
    fs::write(&source, format!("#include \"perilune.h\"\nint main(void) {{\n{lines}    return 0;\n}}\n"))
        .expect("the directory takes files");
    run(compiler("cc", "-std=c11").arg("-c").arg(&source).arg("-o").arg(directory.0.join("layout.o")));
}
