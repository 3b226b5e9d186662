//! The engine keeps the contract of `perilune_store`: the harness's suite and model on real files.

mod place;

use perilune_harness::conformance;
use perilune_harness::model::check_model;
use place::{clean, fresh};

#[test]
fn a_session_alone_does_what_the_model_does() {
    check_model(fresh, 60, 300);
    clean();
}

#[test]
fn conformance_map() {
    conformance::map(&fresh);
}

#[test]
fn conformance_update() {
    conformance::update(&fresh);
}

#[test]
fn conformance_few() {
    conformance::few(&fresh);
}

#[test]
fn conformance_transactions() {
    conformance::transactions(&fresh);
}

#[test]
fn conformance_isolation() {
    conformance::isolation(&fresh);
}

#[test]
fn conformance_limits() {
    conformance::limits(&fresh);
}

#[test]
fn conformance_locks() {
    conformance::locks(&fresh);
}

#[test]
fn conformance_watches() {
    conformance::watches(&fresh);
}

#[test]
fn conformance_messages() {
    conformance::messages(&fresh);
}

#[test]
fn golden_scripts() {
    perilune_harness::script::check_dir(perilune_harness::script::scripts(), fresh);
}
