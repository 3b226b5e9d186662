//! Databases as released formats left them open, and hold what they held. They lie in `formats/N`, N being the
//! format's number, as base64 of gzip; `cargo run --example fixture -- DIRECTORY` made them.

#[path = "../formats/content.rs"]
mod content;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use perilune::{Cursor, Database, Node, Result, Value};

/// The formats that this version reads.
const FORMATS: [&str; 2] = ["1", "2"];

/// A directory with the files of one fixture.
struct Unpacked(PathBuf);

impl Unpacked {
    fn new(format: &str, name: &str) -> Unpacked {
        let directory =
            std::env::temp_dir().join(format!("perilune-format-{format}-{name}-{}", std::process::id()));
        fs::create_dir_all(&directory).expect("a directory for the test");
        let packed = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/formats").join(format);
        let mut count = 0;
        for entry in fs::read_dir(&packed).expect("the fixtures") {
            let entry = entry.expect("a fixture");
            let file = entry.file_name().into_string().expect("a plain name");
            let Some(plain) = file.strip_suffix(".gz.txt").filter(|plain| plain.starts_with(name)) else {
                continue;
            };
            let input = fs::File::open(entry.path()).expect("a fixture");
            let output = fs::File::create(directory.join(plain)).expect("a file for the test");
            let unpack = ["-o", "pipefail", "-c", "base64 -d | gzip -dc"];
            let status = Command::new("bash").args(unpack).stdin(Stdio::from(input)).stdout(output).status();
            assert!(status.is_ok_and(|status| status.success()), "base64 and gzip are needed for {file}");
            count += 1;
        }
        assert!(count > 0, "no {name} in {}", packed.display());
        Unpacked(directory)
    }
}

impl Drop for Unpacked {
    fn drop(&mut self) {
        // It fails where a file is made meanwhile, as a database that is still being closed makes.
        let _gone = (0..1_000).any(|_| fs::remove_dir_all(&self.0).is_ok() || !self.0.exists());
    }
}

/// Compares all that the database holds with what it should.
fn compare(database: &Database, expected: Vec<(Node, Value)>) -> Result<()> {
    let mut session = database.session()?;
    for (node, value) in &expected {
        assert_eq!(session.get(node)?.as_ref(), Some(value), "{node}");
    }
    let mut cursor = Cursor::range(Node::new("^%")?..)?;
    let mut count = 0;
    while cursor.next(&mut session)? {
        count += 1;
    }
    assert_eq!(count, expected.len());
    let found = database.verify()?;
    assert!(found.is_sound(), "{found:?}");
    Ok(())
}

#[test]
fn closed_databases_of_released_formats_open() -> Result<()> {
    for format in FORMATS {
        let files = Unpacked::new(format, "closed.db");
        let database = Database::options().read_only(true).open(files.0.join("closed.db"))?;
        compare(&database, content::first()?)?;
        drop(database);
        let database = Database::options().create(false).open(files.0.join("closed.db"))?;
        assert!(database.recovery().is_none());
        content::then(&mut database.session()?)?;
        compare(&database, content::last()?)?;
    }
    Ok(())
}

#[test]
fn open_databases_of_released_formats_are_recovered_with_their_log() -> Result<()> {
    for format in FORMATS {
        let files = Unpacked::new(format, "open.db");
        let database = Database::options().create(false).open(files.0.join("open.db"))?;
        let report = database.recovery().expect("it was not closed");
        assert!(report.records > 0 && report.dropped.is_none(), "{report}");
        compare(&database, content::last()?)?;
    }
    Ok(())
}
