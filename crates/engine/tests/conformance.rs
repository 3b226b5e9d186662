//! The engine keeps the contract of `perilune_store`: the harness's suite and model on real files.

mod place;

use perilune_engine::Database;
use perilune_harness::conformance::{self, Verdict};
use perilune_harness::model::check_model;
use place::Place;

/// Runs a check with what makes new databases.
fn with_place(check: impl FnOnce(&dyn Fn() -> Database)) {
    let place = Place::default();
    check(&|| place.fresh());
}

#[test]
fn a_session_alone_does_what_the_model_does() {
    with_place(|fresh| check_model(fresh, 60, 300));
}

#[test]
fn conformance_map() {
    with_place(|fresh| conformance::map(&fresh));
}

#[test]
fn conformance_pages() {
    with_place(|fresh| conformance::pages(&fresh));
}

#[test]
fn conformance_pieces() {
    with_place(|fresh| conformance::pieces(&fresh));
}

#[test]
fn conformance_update() {
    with_place(|fresh| conformance::update(&fresh));
}

#[test]
fn conformance_deferral() {
    with_place(|fresh| assert_eq!(conformance::deferral(&fresh), Verdict::Kept));
}

#[test]
fn conformance_optimistic() {
    with_place(|fresh| assert_eq!(conformance::optimistic(&fresh), Verdict::Kept));
}

#[test]
fn conformance_read_sets() {
    with_place(|fresh| assert_eq!(conformance::read_sets(&fresh), Verdict::Kept));
}

#[test]
fn conformance_bounds() {
    with_place(|fresh| assert_eq!(conformance::bounds(&fresh), Verdict::Kept));
}

#[test]
fn conformance_transactions() {
    with_place(|fresh| conformance::transactions(&fresh));
}

#[test]
fn conformance_isolation() {
    with_place(|fresh| conformance::isolation(&fresh));
}

#[test]
fn conformance_exclusive_mode() {
    with_place(|fresh| assert_eq!(conformance::exclusive_mode(&fresh), Verdict::Kept));
}

#[test]
fn conformance_shared_owners() {
    with_place(|fresh| assert_eq!(conformance::shared_owners(&fresh), Verdict::Kept));
}

#[test]
fn conformance_limits() {
    with_place(|fresh| conformance::limits(&fresh));
}

#[test]
fn conformance_locks() {
    with_place(|fresh| assert_eq!(conformance::locks(&fresh), Verdict::Kept));
}

#[test]
fn conformance_watches() {
    with_place(|fresh| assert_eq!(conformance::watches(&fresh), Verdict::Kept));
}

#[test]
fn conformance_messages() {
    with_place(|fresh| assert_eq!(conformance::messages(&fresh), Verdict::Kept));
}

#[test]
fn golden_scripts() {
    with_place(|fresh| perilune_harness::script::check_dir(perilune_harness::script::scripts(), fresh));
}
