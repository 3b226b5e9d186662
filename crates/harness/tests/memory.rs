//! The instruments held against the memory store, which is trivial enough to be right.

use std::panic::{catch_unwind, AssertUnwindSafe};
use std::process::Stdio;

use perilune_harness::conformance::{self, Report, Verdict};
use perilune_harness::model::{check_model, run_against_model, Bytes, Command};
use perilune_harness::script::{self, run_script_with};
use perilune_memory::{Fault, MemoryStore};
use perilune_store::{facets_of, get_many, Error, Session, Store, TransactionOptions, Transactions};

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
    assert_eq!(get_many(&mut a, &[b"x", b"y"]).unwrap(), [Some(b"2".to_vec()), None]);
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
fn conformance_pages() {
    conformance::pages(&MemoryStore::new);
}

#[test]
fn conformance_pieces() {
    conformance::pieces(&MemoryStore::new);
}

#[test]
fn conformance_update() {
    conformance::update(&MemoryStore::new);
}

#[test]
fn conformance_optimistic() {
    assert_eq!(conformance::optimistic(&MemoryStore::new), Verdict::Kept);
}

/// What it lacks is said, and not passed over.
#[test]
fn conformance_names_what_is_missing() {
    assert_eq!(conformance::deferral(&MemoryStore::new), Verdict::Missing);
    assert_eq!(conformance::read_sets(&MemoryStore::new), Verdict::Missing);
    assert_eq!(conformance::bounds(&MemoryStore::new), Verdict::Missing);
    let mut session = MemoryStore::new().session().unwrap();
    assert_eq!(facets_of(&mut session), [true, true, true, false, true, false, false, false, false]);
    let report = Report(vec![("map", Verdict::Kept), ("bounds", Verdict::Missing)]);
    assert_eq!(report.to_string(), "map: kept\nbounds: MISSING, not tried\n");
    assert_eq!(report.missing(), ["bounds"]);
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
fn conformance_exclusive_mode_and_shared_owners() {
    assert_eq!(conformance::exclusive_mode(&MemoryStore::new), Verdict::Kept);
    assert_eq!(conformance::shared_owners(&MemoryStore::new), Verdict::Kept);
}

#[test]
fn conformance_limits() {
    conformance::limits(&MemoryStore::new);
}

#[test]
fn conformance_locks() {
    assert_eq!(conformance::locks(&MemoryStore::new), Verdict::Kept);
}

#[test]
fn conformance_watches() {
    assert_eq!(conformance::watches(&MemoryStore::new), Verdict::Kept);
}

#[test]
fn conformance_messages() {
    assert_eq!(conformance::messages(&MemoryStore::new), Verdict::Kept);
}

#[test]
fn golden_scripts() {
    script::check_dir(script::scripts(), MemoryStore::new);
}

#[test]
fn a_script_runs_with_processes() {
    let mut start = |_: char| {
        let (input, output) = (Stdio::piped(), Stdio::piped());
        std::process::Command::new(env!("CARGO_BIN_EXE_memory_steps")).stdin(input).stdout(output).spawn()
    };
    // Each process has a store of its own here, so B finds nothing of what A sets.
    let text = "A: set x/1 one\nA: scan x\nB: get x\nB: lock x exclusive\n";
    let output = run_script_with(&mut start, text).unwrap();
    let expected =
        "A: set x/1 one => ok\nA: scan x => x/1=one\nB: get x => none\nB: lock x exclusive => granted\n";
    assert_eq!(output, expected);
}

/// The instrument must be able to fail: here the session begins with a key that the model lacks.
#[test]
fn a_difference_from_the_model_is_found() {
    let mut session = MemoryStore::new().session().unwrap();
    session.set(b"a\0", b"1").unwrap();
    let commands = [Command::Begin, Command::Get(Bytes(b"a\0".to_vec()))];
    let failure = run_against_model(&mut session, &commands).unwrap_err();
    assert!(failure.starts_with("command 1, Get(\"a\\x00\") at depth 1"), "{failure}");
}

/// Asserts that `instrument`, given stores with `fault`, fails and says `why`.
fn assert_finds(fault: Fault, why: &str, instrument: impl Fn(&dyn Fn() -> MemoryStore)) {
    let make = || MemoryStore::with_fault(fault);
    let Err(panic) = catch_unwind(AssertUnwindSafe(|| instrument(&make))) else {
        panic!("{fault:?} was not found");
    };
    let text = panic.downcast_ref::<String>().map_or("", String::as_str);
    assert!(text.contains(why), "{fault:?} was found, but not as `{why}`: {text}");
}

#[test]
fn the_conformance_suite_finds_known_bugs() {
    assert_finds(Fault::BlindCommits, "expected Error::Conflict", |make| conformance::isolation(&make));
    assert_finds(Fault::MissedPhantoms, "expected Error::Conflict", |make| conformance::isolation(&make));
    assert_finds(Fault::KeptDescendants, "itself and all below", |make| conformance::map(&make));
    assert_finds(Fault::KeptLocks, "releases its own locks only", |make| {
        let _ = conformance::locks(&make);
    });
    assert_finds(Fault::KeptPosts, "before the commit", |make| {
        let _ = conformance::messages(&make);
    });
}

#[test]
fn the_scripts_find_known_bugs() {
    // NB: not by `check_dir`, which would write the faulty output down with UPDATE_SCRIPTS=1.
    let check = |make: &dyn Fn() -> MemoryStore| {
        let differences = script::differences(script::scripts(), |text| script::run_script(&make(), text));
        assert!(differences.is_empty(), "{differences}");
    };
    assert_finds(Fault::BlindCommits, "    - B: commit => conflict\n    + B: commit => ok", check);
    assert_finds(Fault::BlindReads, "    - A: get y => conflict\n    + A: get y => 0", check);
    assert_finds(Fault::MissedPhantoms, "anomaly_phantom.txt:", check);
}

#[test]
fn the_model_finds_known_bugs() {
    assert_finds(Fault::KeptDescendants, "the session", |make| check_model(make, 200, 200));
}
