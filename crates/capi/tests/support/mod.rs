//! Finding what cargo built, and running compilers over it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The root of the project.
pub(crate) fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).expect("the crate lies in crates/").to_owned()
}

/// The newest file called `name` that cargo built with this test: beside it, or one directory up.
pub(crate) fn artefact(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("a test knows where it is");
    let places = test.ancestors().skip(1).take(2).map(|directory| directory.join(name));
    let built = places.filter_map(|path| Some((fs::metadata(&path).ok()?.modified().ok()?, path)));
    let newest = built.max().map(|(_, path)| path);
    newest.unwrap_or_else(|| panic!("cargo test builds {name} beside {}: it is not there", test.display()))
}

/// A new directory for one test, removed when it is dropped.
pub(crate) struct Directory(pub(crate) PathBuf);

impl Directory {
    pub(crate) fn new(name: &str) -> Directory {
        let path = std::env::temp_dir().join(format!("perilune-capi-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).expect("the directory for temporary files takes new ones");
        Directory(path)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        // What a failed removal leaves lies in the directory for temporary files.
        // It fails where a file is made meanwhile, as a database that is still being closed makes.
        let _gone = (0..1_000).any(|_| fs::remove_dir_all(&self.0).is_ok() || !self.0.exists());
    }
}

/// Runs a command that must succeed.
pub(crate) fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}: install it"));
    assert!(
        output.status.success(),
        "{command:?}: {}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    output
}

/// The C compiler with the flags that the project's own C is held to.
pub(crate) fn compiler(name: &str, standard: &str) -> Command {
    let mut command = Command::new(name);
    command.args([standard, "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-O1", "-g"]);
    command.arg("-I").arg(root().join("include"));
    command
}
