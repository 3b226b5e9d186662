//! A forked child that inherited an open database: it is a process of its own, and what it drops is
//! not its parent's.
//!
//! The child uses a handle that was opened before the fork, as a preforking server does. It ends by
//! `_exit` and says by its status whether all was well.

mod place;

use perilune_engine::{Database, OpenOptions};
use perilune_store::{Session, Store};

fn get(database: &Database, key: &str) -> Option<Vec<u8>> {
    let mut value = Vec::new();
    let mut session = database.session().unwrap();
    session.get(key.as_bytes(), &mut value).unwrap().then_some(value)
}

fn set(database: &Database, key: &str, value: &str) {
    database.session().unwrap().set(key.as_bytes(), value.as_bytes()).unwrap();
}

/// Runs `body` in a forked child; true if it neither panicked nor answered false.
fn in_child(body: impl FnOnce() -> bool) -> bool {
    // SAFETY: the child runs only `body` and leaves by `_exit`; with glibc it may allocate and start
    // threads, as other threads of the parent held no lock of ours.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0, "fork failed");
    if pid == 0 {
        let good = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body)).unwrap_or(false);
        // SAFETY: ends the child without running the exit handlers of its parent.
        unsafe { libc::_exit(i32::from(!good)) };
    }
    let mut status = 0;
    // SAFETY: `status` is writable, and nobody else waits for this child.
    assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, 0) }, pid);
    status == 0
}

#[test]
fn children_attach_themselves_and_leave_their_parent_attached() {
    let path = place::directory().join("x.db");
    let options = OpenOptions { max_size: 1 << 30, ..OpenOptions::default() };
    let database = Database::open(&path, &options).unwrap();
    set(&database, "parent", "1");
    for round in 0..3 {
        let inherited = database.clone();
        assert!(in_child(move || {
            let seen = get(&inherited, "parent") == Some(b"1".to_vec());
            set(&inherited, &format!("child {round}"), "2");
            // A grandchild inherits the handle from a child that is attached itself.
            let grandchild = in_child(|| {
                set(&inherited, &format!("grandchild {round}"), "3");
                get(&inherited, &format!("child {round}")) == Some(b"2".to_vec())
            });
            let still = get(&inherited, &format!("grandchild {round}")) == Some(b"3".to_vec());
            drop(inherited);
            seen && grandchild && still
        }));
        assert_eq!(get(&database, &format!("grandchild {round}")), Some(b"3".to_vec()));
    }
    // A child that only drops what it inherited: the parent goes on.
    let inherited = Database::open(&path, &options).unwrap();
    assert!(in_child(|| inherited.clone().close().is_ok()));
    set(&inherited, "after", "4");
    inherited.close().unwrap();
    database.verify().unwrap();
    database.close().unwrap();
    std::fs::remove_file(path.with_file_name("x.db-shm")).unwrap();
    let database = Database::open(&path, &options).unwrap();
    assert_eq!(get(&database, "child 2"), Some(b"2".to_vec()));
    assert_eq!(get(&database, "after"), Some(b"4".to_vec()));
    drop(database);
    place::clean();
}
