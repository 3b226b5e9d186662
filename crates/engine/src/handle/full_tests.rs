//! A log that could not grow: writing goes on soon after there is space, although nothing rings then.

use std::sync::atomic::Ordering::Acquire;
use std::sync::Arc;
use std::time::{Duration, Instant};

use perilune_disk::{Fault, FaultyDisk};
use perilune_store::{Durability, Error, Session as _, Store};

use super::durability_tests::{content, crashed, key, options, Scratch};
use super::Database;
use crate::image::layout::{control, FLAG_FULL};
use crate::image::wakeup;
use crate::limits::IDLE_REST;

fn until(what: &str, mut is_done: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_done() {
        assert!(begun.elapsed() < Duration::from_secs(20), "{what}");
        std::thread::yield_now();
    }
}

/// The maintenance threads went to rest, since nothing was written, and looked again a minute later.
#[test]
fn a_log_that_could_not_grow_does_soon_after_there_is_space() {
    let scratch = Scratch::new();
    let disk = FaultyDisk::new(Fault::NoSpace);
    let level = options(Durability::Periodic);
    let database = Database::open_on(&scratch.db(), &level, Arc::new(disk.clone())).unwrap();
    let image = database.image();
    let mut session = database.session().unwrap();
    disk.fail_from_call(1);
    crate::control::raise_flag(&image, FLAG_FULL);
    until("it is not quiet", || wakeup::is_quiet(&image));
    let calls = disk.calls();
    until("nobody looks for space", || disk.calls() > calls + 20);
    assert!(matches!(session.set(b"a", b"1"), Err(Error::NoSpace { .. })));
    disk.fail_call(0);
    let begun = Instant::now();
    while let Err(error) = session.set(b"a", b"1") {
        assert!(matches!(error, Error::NoSpace { .. }), "{error}");
        assert!(begun.elapsed() < IDLE_REST / 4, "nobody has noticed that there is space");
        std::thread::yield_now();
    }
    assert_eq!(image.control(control::FLAGS).load(Acquire) & FLAG_FULL, 0);
}

#[test]
fn nothing_is_lost_of_a_log_that_could_not_grow() {
    let scratch = Scratch::new();
    let disk = FaultyDisk::new(Fault::NoSpace);
    let level = options(Durability::Fsync);
    let database = Database::open_on(&scratch.db(), &level, Arc::new(disk.clone())).unwrap();
    let image = database.image();
    let mut session = database.session().unwrap();
    session.set(&key(0), b"0").unwrap();
    for round in 1..20 {
        crate::control::raise_flag(&image, FLAG_FULL);
        until("it stays full", || session.set(&key(round), b"1").is_ok());
    }
    let copy = crashed(&scratch);
    let again = copy.open(Durability::Fsync);
    assert!(content(&mut again.session().unwrap()) == content(&mut session));
}
