//! The instruments held against the memory store, which is trivial enough to be right.

use perilune_harness::conformance;
use perilune_harness::memory::MemoryStore;
use perilune_harness::model::check_model;
use perilune_store::{Error, Session, Store, TransactionOptions};

#[test]
fn a_lost_update_is_a_conflict() {
    let store = MemoryStore::new();
    let (mut a, mut b) = (store.session().unwrap(), store.session().unwrap());
    a.set(b"x", b"1").unwrap();
    a.begin(&TransactionOptions::default()).unwrap();
    assert!(a.get(b"x", &mut Vec::new()).unwrap());
    b.set(b"x", b"2").unwrap();
    a.set(b"x", b"3").unwrap();
    assert!(matches!(a.commit(), Err(Error::Conflict)));
    assert_eq!(a.get_many(&[b"x", b"y"]).unwrap(), [Some(b"2".to_vec()), None]);
}

#[test]
fn a_session_alone_does_what_the_model_does() {
    check_model(MemoryStore::new, 100, 200);
}

#[test]
fn conformance_map() {
    conformance::map(&MemoryStore::new);
}

#[test]
fn conformance_update() {
    conformance::update(&MemoryStore::new);
}

#[test]
fn conformance_transactions() {
    conformance::transactions(&MemoryStore::new);
}

#[test]
fn conformance_isolation() {
    conformance::isolation(&MemoryStore::new);
}

#[test]
fn conformance_limits() {
    conformance::limits(&MemoryStore::new);
}

#[test]
fn conformance_locks() {
    conformance::locks(&MemoryStore::new);
}

#[test]
fn conformance_watches() {
    conformance::watches(&MemoryStore::new);
}

#[test]
fn conformance_messages() {
    conformance::messages(&MemoryStore::new);
}
