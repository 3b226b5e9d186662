//! Test instruments that every back end of Perilune is held against.
//!
//! - [`conformance`]: what the contract promises, as tests to call from a back end's own.
//! - [`bank`], [`counters`], [`appends`]: workloads with a checker each, for storms of deaths.
//! - [`script`]: golden scripts of several sessions, threads or processes.
//! - [`model`]: random commands of one session compared with an ordered map.
//!
//! The instruments themselves are tested against `perilune_memory`, which is trivial enough to be right.
//!
//! Deliberately absent: any knowledge of the engine. Back ends bring their own stores.

#![forbid(unsafe_code)]

use std::hash::{BuildHasher, Hasher, RandomState};

pub mod appends;
pub mod bank;
pub mod conformance;
pub mod counters;
pub mod model;
pub mod number;
pub mod script;

/// The seed of a random test: the number in the environment variable `PERILUNE_SEED`, or a new one.
///
/// # Panics
/// When the variable holds no number.
#[must_use]
pub fn seed() -> u64 {
    match std::env::var("PERILUNE_SEED") {
        Ok(text) => text.parse().expect("PERILUNE_SEED is a number"),
        Err(_) => RandomState::new().build_hasher().finish(),
    }
}
