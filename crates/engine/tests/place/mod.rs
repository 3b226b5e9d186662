//! A directory of its own for each test database, removed at the end.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Mutex;

use perilune_engine::{Database, OpenOptions};

static NEXT: AtomicU64 = AtomicU64::new(0);

/// What a test has made, gone with it.
#[derive(Default)]
pub(crate) struct Place {
    made: Mutex<Vec<PathBuf>>,
}

impl Place {
    /// A new database in a directory of its own.
    pub(crate) fn fresh(&self) -> Database {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("perilune-test-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        self.made.lock().unwrap().push(path.clone());
        Database::open(&path.join("test.db"), &OpenOptions::default()).unwrap()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        for path in self.made.get_mut().into_iter().flat_map(|made| made.drain(..)) {
            // It fails where a file is made meanwhile, as a database that is still being closed makes.
            let _gone = (0..1_000).any(|_| std::fs::remove_dir_all(&path).is_ok() || !path.exists());
        }
    }
}
