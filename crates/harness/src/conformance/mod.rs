//! What every back end must do, as tests that bring no store of their own.
//!
//! Each area is a function that takes the maker of new, empty stores; a back end calls them one by one
//! from its own tests, or all by [`run`]. They panic at the first thing that is not as promised. An area about a facet answers
//! whether the back end has it ([`Verdict`]), so that what it lacks is said, and not passed over.
//!
//! Invariants
//! - Threads meet by barriers and channels. A time limit only bounds how long a lost wake-up is waited
//!   for; no order of events rests on it.
//! - What the contract leaves open (spurious wake-ups, false conflicts) is not asserted.
//!
//! Deliberately absent: the death of processes and machines (see the kill storm and crash simulator).

mod bounds;
mod deferral;
mod isolation;
mod limits;
mod locks;
mod map;
mod messages;
mod optimistic;
mod pages;
mod pieces;
mod rendezvous;
mod transactions;
mod update;
mod watches;

use std::fmt;
use std::time::Duration;

use perilune_store::{Result, Session, Store, TransactionOptions};

pub use bounds::bounds;
pub use deferral::{deferral, read_sets};
pub use isolation::{exclusive_mode, isolation};
pub use limits::limits;
pub use locks::{locks, shared_owners};
pub use map::map;
pub use messages::messages;
pub use optimistic::optimistic;
pub use pages::pages;
pub use pieces::pieces;
pub use transactions::transactions;
pub use update::update;
pub use watches::watches;

/// A wait that lasts longer than this has been forgotten.
const PATIENCE: Duration = Duration::from_secs(30);

/// What became of an area that is about a facet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "an area that a back end lacks must not pass silently"]
pub enum Verdict {
    /// The back end has the facet, and keeps what it promises.
    Kept,
    /// It has no such facet: nothing was tried.
    Missing,
}

/// What [`run`] has found: every area, in the order in which they were tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report(pub Vec<(&'static str, Verdict)>);

impl Report {
    /// The facets that the back end lacks.
    #[must_use]
    pub fn missing(&self) -> Vec<&'static str> {
        self.0.iter().filter(|(_, verdict)| *verdict == Verdict::Missing).map(|(area, _)| *area).collect()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|(area, verdict)| match verdict {
            Verdict::Kept => writeln!(f, "{area}: kept"),
            Verdict::Missing => writeln!(f, "{area}: MISSING, not tried"),
        })
    }
}

/// Runs every area, and says which the back end lacks.
///
/// # Panics
/// When a store of `make` does not keep the contract.
pub fn run<S: Store>(make: impl Fn() -> S) -> Report {
    map(&make);
    pages(&make);
    pieces(&make);
    update(&make);
    transactions(&make);
    isolation(&make);
    limits(&make);
    let core = ["map", "pages", "pieces", "update", "transactions", "isolation", "limits"];
    let facets = [
        ("locks", locks(&make)),
        ("watches", watches(&make)),
        ("messages", messages(&make)),
        ("deferral", deferral(&make)),
        ("optimistic", optimistic(&make)),
        ("read sets", read_sets(&make)),
        ("bounds", bounds(&make)),
        ("exclusive mode", exclusive_mode(&make)),
        ("shared owners", shared_owners(&make)),
    ];
    Report(core.into_iter().map(|area| (area, Verdict::Kept)).chain(facets).collect())
}

/// A facet of a back end that has it.
fn has<T>(facet: Option<&mut T>) -> &mut T {
    facet.expect("a session has a facet for all of its life")
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
