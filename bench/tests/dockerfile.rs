//! What can be known of the Dockerfile in a second: its steps are those that `bench/check-dockerfile` runs, its packages
//! are those of the Makefile, and Debian has them. `make check-dockerfile` runs the steps themselves in a clean root.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(name: &str) -> String {
    fs::read_to_string(root().join(name)).unwrap()
}

/// The steps: their words and what is behind them.
fn steps() -> Vec<(String, String)> {
    let text = read("bench/Dockerfile");
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| line.split_once(' ').map(|(word, rest)| (word.to_owned(), rest.to_owned())).unwrap())
        .collect()
}

/// The packages that the Dockerfile installs.
fn packages() -> Vec<String> {
    let install = "--no-install-recommends ";
    let found =
        steps().into_iter().find_map(|(_, rest)| Some(rest.split_once(install)?.1.to_owned())).unwrap();
    found.split(' ').map(str::to_owned).collect()
}

#[test]
fn every_step_is_one_that_the_check_runs() {
    let check = read("bench/check-dockerfile");
    let steps = steps();
    assert!(steps[0].0 == "FROM" && steps[0].1.starts_with("debian:"), "{steps:?}");
    for (word, rest) in &steps {
        assert!(check.contains(&format!("    {word})")) || word == "FROM", "{word} is not understood");
        if word == "RUN" {
            // A pipe would hide what fails before it.
            assert!(!rest.contains(" | ") && !rest.contains(';'), "{rest}");
            let parsed = Command::new("sh").args(["-nc", rest]).status().unwrap();
            assert!(parsed.success(), "{rest}");
        }
    }
    let (word, rest) = steps.last().unwrap();
    assert_eq!((word.as_str(), rest.as_str()), ("CMD", "[\"make\", \"bench\"]"));
    for (_, rest) in steps.iter().filter(|(_, rest)| rest.starts_with("make ")) {
        let target = rest.trim_start_matches("make ");
        assert!(read("Makefile").contains(&format!("\n{target}:")), "no target {target}");
    }
    let parsed = Command::new("sh").arg("-n").arg(root().join("bench/check-dockerfile")).status().unwrap();
    assert!(parsed.success(), "bench/check-dockerfile is no script of sh");
}

#[test]
fn packages_are_those_of_the_makefile_and_of_ci() {
    let (makefile, ci, packages) = (read("Makefile"), read(".ci/packages.txt"), packages());
    let peers = makefile.lines().find_map(|line| line.strip_prefix("PEERS := ")).unwrap();
    for peer in peers.split(' ') {
        assert!(packages.iter().any(|package| package == peer), "{peer} is not in the Dockerfile");
        assert!(ci.lines().any(|line| line == peer), "{peer} is not in .ci/packages.txt");
    }
}

#[test]
fn debian_has_the_packages() {
    let output =
        Command::new("apt-get").args(["-s", "-o", "Debug::NoLocking=1", "install"]).args(packages()).output();
    let output = output.expect("apt-get: the Dockerfile is for Debian");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
