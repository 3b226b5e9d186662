//! The C examples compile without a warning and run, against the static and the shared library; the
//! header is C99 and C++17.

mod support;

use std::fs;
use std::path::Path;
use std::process::Command;

use support::{artefact, compiler, root, run, Directory};

/// What a static library of Rust needs of the system.
const SYSTEM: [&str; 4] = ["-lpthread", "-ldl", "-lm", "-lrt"];

fn examples() -> Vec<String> {
    let mut names = Vec::new();
    for entry in fs::read_dir(root().join("examples/c")).expect("examples/c is there") {
        let path = entry.expect("its entries can be read").path();
        if path.extension().is_some_and(|extension| extension == "c") {
            names.push(path.file_stem().expect("files have names").to_string_lossy().into_owned());
        }
    }
    names.sort();
    assert!(names.len() >= 3, "examples/c has at least the tour, nodes and transactions: {names:?}");
    names
}

fn compile_and_run(name: &str, directory: &Path, library: &[&str]) {
    let program = directory.join(name);
    let mut cc = compiler("cc", "-std=c99");
    cc.arg(root().join("examples/c").join(format!("{name}.c"))).arg("-o").arg(&program);
    run(cc.args(library));
    let database = directory.join(format!("{name}.db"));
    // Twice: who tries an example tries it again, and its database is still there.
    for _ in 0..2 {
        let output = run(Command::new(&program).arg(&database));
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(said.ends_with(&format!("{name}: good\n")), "{name} ends by saying so: {said}");
    }
}

#[test]
fn examples_run_with_the_static_library() {
    let directory = Directory::new("static");
    let library = artefact("libperilune_capi.a");
    let mut flags = vec![library.to_str().expect("the target directory has a name in UTF-8")];
    flags.extend(SYSTEM);
    for name in examples() {
        compile_and_run(&name, &directory.0, &flags);
    }
}

#[test]
fn examples_run_with_the_shared_library() {
    let directory = Directory::new("shared");
    // As installed: the file that the soname names, and the link that the linker looks for.
    let installed = directory.0.join("libperilune.so.0");
    fs::copy(artefact("libperilune_capi.so"), &installed).expect("the library can be copied");
    std::os::unix::fs::symlink("libperilune.so.0", directory.0.join("libperilune.so"))
        .expect("a link can be made");
    let place = directory.0.to_str().expect("the directory has a name in UTF-8");
    let (search, rpath) = (format!("-L{place}"), format!("-Wl,-rpath,{place}"));
    for name in examples() {
        compile_and_run(&name, &directory.0, &[&search, "-lperilune", &rpath]);
    }
}

#[test]
fn the_header_is_c_and_cpp() {
    let directory = Directory::new("header");
    let library = artefact("libperilune_capi.a");
    let source = r#"
        #include "perilune.h"
        int main() {
            perilune_options options = PERILUNE_OPTIONS_INIT;
            perilune_cursor_options cursor = PERILUNE_CURSOR_OPTIONS_INIT;
            perilune_transaction_options transaction = PERILUNE_TRANSACTION_OPTIONS_INIT;
            perilune_channel_options channel = PERILUNE_CHANNEL_OPTIONS_INIT;
            perilune_value value = perilune_string("x", 1);
            (void)options; (void)cursor; (void)transaction; (void)channel; (void)value;
            return perilune_version()[0] == 0 || perilune_number_is_canonical("1", 1) != 1;
        }
    "#;
    for (compiler_name, standard, file) in
        [("cc", "-std=c99", "one.c"), ("cc", "-std=c11", "two.c"), ("c++", "-std=c++17", "three.cpp")]
    {
        let (path, program) = (directory.0.join(file), directory.0.join(format!("{file}.program")));
        fs::write(&path, source).expect("the directory takes files");
        run(compiler(compiler_name, standard).arg(&path).arg(&library).args(SYSTEM).arg("-o").arg(&program));
        run(&mut Command::new(&program));
    }
}

/// See `two_copies.c`.
#[test]
fn two_copies_of_the_library_in_one_process_are_two_processes() {
    let directory = Directory::new("copies");
    let library = artefact("libperilune_capi.so");
    let copy = directory.0.join("another.so");
    fs::copy(&library, &copy).expect("the library can be copied");
    let program = directory.0.join("two_copies");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/two_copies.c");
    run(compiler("cc", "-std=gnu99").arg(source).arg("-o").arg(&program).arg("-ldl"));
    let output = run(Command::new(&program).arg(&library).arg(&copy).arg(directory.0.join("copies.db")));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "two copies: good\n");
}
