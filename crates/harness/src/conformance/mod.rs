//! What every back end must do, as tests that bring no store of their own.
//!
//! Each area is a function that takes the maker of new, empty stores; a back end calls them one by one
//! from its own tests, or all by [`run`]. They panic at the first thing that is not as promised.
//!
//! Invariants
//! - Threads meet by barriers and channels. A time limit only bounds how long a lost wake-up is waited
//!   for; no order of events rests on it.
//! - What the contract leaves open (spurious wake-ups, false conflicts) is not asserted.
//!
//! Deliberately absent: the death of processes and machines (see the kill storm and crash simulator).

mod few;
mod isolation;
mod limits;
mod locks;
mod map;
mod messages;
mod pieces;
mod rendezvous;
mod transactions;
mod update;
mod watches;

use std::time::Duration;

use perilune_store::{Locks, Messages, Result, Session, Store, TransactionOptions, Watch};

pub use few::few;
pub use isolation::isolation;
pub use limits::limits;
pub use locks::locks;
pub use map::map;
pub use messages::messages;
pub use pieces::pieces;
pub use transactions::transactions;
pub use update::update;
pub use watches::watches;

/// A wait that lasts longer than this has been forgotten.
const PATIENCE: Duration = Duration::from_secs(30);

/// Runs every area.
///
/// # Panics
/// When a store of `make` does not keep the contract.
pub fn run<S: Store>(make: impl Fn() -> S)
where
    S::Session: Locks + Watch + Messages,
{
    map(&make);
    pieces(&make);
    update(&make);
    few(&make);
    transactions(&make);
    isolation(&make);
    limits(&make);
    locks(&make);
    watches(&make);
    messages(&make);
}

fn session<S: Store>(store: &S) -> S::Session {
    store.session().expect("a session is to be had")
}

/// The value at `key`.
fn value(session: &mut impl Session, key: &[u8]) -> Option<Vec<u8>> {
    let mut value = b"stale".to_vec();
    let found = session.get(key, &mut value);
    found.unwrap_or_else(|error| panic!("get \"{}\": {error}", key.escape_ascii())).then_some(value)
}

/// All keys from the first to the last.
fn keys(session: &mut impl Session) -> Result<Vec<Vec<u8>>> {
    let (mut keys, mut from, mut key) = (Vec::new(), Vec::new(), Vec::new());
    while session.next(&from, false, &mut key, None)? {
        assert!(key > from, "next after \"{}\" went back to \"{}\"", from.escape_ascii(), key.escape_ascii());
        keys.push(key.clone());
        std::mem::swap(&mut from, &mut key);
    }
    Ok(keys)
}

fn begin(session: &mut impl Session) {
    session.begin(&TransactionOptions::default()).expect("a transaction begins");
}

/// Asserts that an operation answered an error of this kind.
macro_rules! assert_error {
    ($result:expr, $pattern:pat, $what:literal) => {
        match $result {
            Err($pattern) => {}
            other => panic!("{}: expected {}, got {other:?}", $what, stringify!($pattern)),
        }
    };
}
use assert_error;
