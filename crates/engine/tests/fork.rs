//! A forked child that inherited an open database: it is a process of its own, and what it drops is
//! not its parent's.
//!
//! The child uses a handle that was opened before the fork, as a preforking server does. It ends by
//! `_exit` and says by its status whether all was well.

mod party;

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use perilune_engine::{Database, OpenOptions};
use perilune_store::{
    Error, LockMode, LockOwner, LockRequest, Locks, Reports, Session, Store, TransactionOptions, Transactions,
};

fn get(database: &Database, key: &str) -> Option<Vec<u8>> {
    let mut value = Vec::new();
    let mut session = database.session().unwrap();
    session.get(key.as_bytes(), &mut value).unwrap().then_some(value)
}

fn set(database: &Database, key: &str, value: &str) {
    database.session().unwrap().set(key.as_bytes(), value.as_bytes()).unwrap();
}

/// While one test forks, no thread of another holds a lock that the child would need.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
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
    let _alone = alone();
    let scratch = party::Scratch::new("fork");
    let path = scratch.database();
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
    std::fs::remove_file(path.with_file_name("test.db-shm")).unwrap();
    let database = Database::open(&path, &options).unwrap();
    assert_eq!(get(&database, "child 2"), Some(b"2".to_vec()));
    assert_eq!(get(&database, "after"), Some(b"4".to_vec()));
    drop(database);
}

fn lock(session: &mut (impl Session + Locks), owner: LockOwner, timeout: Duration) -> bool {
    let request = LockRequest { name: b"l\0", ancestors: &[], mode: LockMode::Exclusive };
    session.lock(owner, &[request], Some(timeout)).unwrap()
}

#[test]
fn a_child_has_no_locks_and_no_transaction_of_its_parent() {
    let _alone = alone();
    let scratch = party::Scratch::new("fork");
    let path = scratch.database();
    let options = OpenOptions { max_size: 1 << 30, ..OpenOptions::default() };
    let database = Database::open(&path, &options).unwrap();
    let mut session = database.session().unwrap();
    let owner = session.new_lock_owner();
    assert!(lock(&mut session, owner, Duration::ZERO));
    session.begin(&TransactionOptions::default()).unwrap();
    session.set(b"x\0", b"parent's").unwrap();
    // NB: the child works on its copy of the session; nothing of it comes back.
    assert!(in_child(|| {
        let forked = |result: Result<(), Error>| matches!(result, Err(Error::Forked));
        let refused = forked(session.set(b"x\0", b"child's")) && forked(session.commit());
        session.rollback().unwrap();
        session.give_up();
        session.set(b"y\0", b"child's").unwrap();
        let mine = session.new_lock_owner();
        refused
            && session.depth() == 0
            && session.lock_count(owner, b"l\0").unwrap() == 0
            && !lock(&mut session, mine, Duration::ZERO)
    }));
    assert_eq!(session.lock_count(owner, b"l\0").unwrap(), 1);
    session.commit().unwrap();
    assert_eq!(get(&database, "x\0"), Some(b"parent's".to_vec()));
    assert_eq!(get(&database, "y\0"), Some(b"child's".to_vec()));
    drop(session);
    database.verify().unwrap();
    database.close().unwrap();
}

#[test]
fn a_process_that_closes_all_descriptors_lives_on() {
    let _alone = alone();
    let scratch = party::Scratch::new("fork");
    let path = scratch.database();
    let options = OpenOptions { max_size: 1 << 30, ..OpenOptions::default() };
    let database = Database::open(&path, &options).unwrap();
    let mut session = database.session().unwrap();
    assert!(in_child(|| {
        // The child has a database of its own, and a child to whom it must not look dead.
        let own = Database::open(&path, &options).unwrap();
        let mut session = own.session().unwrap();
        let owner = session.new_lock_owner();
        let locked = lock(&mut session, owner, Duration::ZERO);
        // SAFETY: what is closed is used by nobody afterwards: files of this child that its parent does
        // not see.
        unsafe { libc::close_range(3, libc::c_uint::MAX, 0) };
        session.set(b"closed\0", b"1").unwrap();
        let refused = in_child(|| {
            let begun = Instant::now();
            let other = Database::open(&path, &options).unwrap();
            let mut session = other.session().unwrap();
            let owner = session.new_lock_owner();
            // Longer than the warden needs to sweep the dead.
            let free = lock(&mut session, owner, Duration::from_millis(300));
            !free && begun.elapsed() >= Duration::from_millis(300)
        });
        session.set(b"closed\0", b"2").unwrap();
        locked && refused && session.unlock(owner, b"l\0").unwrap()
    }));
    let owner = session.new_lock_owner();
    assert!(lock(&mut session, owner, Duration::from_secs(10)));
    assert_eq!(get(&database, "closed\0"), Some(b"2".to_vec()));
    drop(session);
    database.verify().unwrap();
    database.close().unwrap();
}

/// The first use of what it has inherited attaches a child: by the name, which was another database's by then.
#[test]
fn a_child_is_not_attached_to_another_database_of_the_name() {
    let _alone = alone();
    let scratch = party::Scratch::new("fork-replaced");
    let path = scratch.database();
    let options = OpenOptions { max_size: 1 << 30, ..OpenOptions::default() };
    let database = Database::open(&path, &options).unwrap();
    set(&database, "parent", "1");
    std::fs::rename(&path, path.with_file_name("moved.db")).unwrap();
    let inherited = database.clone();
    let is_told = |database: &Database| matches!(database.session(), Err(Error::Replaced { .. }));
    assert!(in_child(|| is_told(&inherited) && !path.exists()), "nothing is made by the name");
    let other = Database::open(&path, &options).unwrap();
    set(&other, "other", "2");
    assert!(in_child(|| is_told(&inherited)));
    assert_eq!(other.processes().unwrap().len(), 1);
    drop(inherited);
    assert!(matches!(database.close(), Err(Error::Replaced { .. })));
    other.verify().unwrap();
    other.close().unwrap();
    let database = Database::open(&path, &options).unwrap();
    assert_eq!((get(&database, "other"), get(&database, "parent")), (Some(b"2".to_vec()), None));
}
