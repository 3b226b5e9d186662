//! A directory of its own for each test database, removed at the end.

// Each test program uses a part of it.
#![allow(dead_code)]

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Mutex;

use perilune_engine::{Database, OpenOptions};

/// Directories made by [`fresh`], removed when the test program ends its use of them.
static MADE: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());
static NEXT: AtomicU64 = AtomicU64::new(0);

/// A new directory.
pub(crate) fn directory() -> PathBuf {
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let path = std::env::temp_dir().join(format!("perilune-test-{}-{number}", std::process::id()));
    std::fs::create_dir_all(&path).unwrap();
    MADE.lock().unwrap().push(path.clone());
    path
}

/// A new database in a directory of its own.
pub(crate) fn fresh() -> Database {
    Database::open(&directory().join("test.db"), &OpenOptions::default()).unwrap()
}

/// Removes all directories made so far.
pub(crate) fn clean() {
    for path in MADE.lock().unwrap().drain(..) {
        let _ = std::fs::remove_dir_all(path);
    }
}
