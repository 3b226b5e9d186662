//! Perilune's shared memory: mappings, words, latches, futexes and process liveness.
//!
//! The one crate with inner unsafe code. Everything it exports is safe to call, so that the engine
//! can forbid unsafe altogether.
//!
//! # Orderings
//!
//! Memory shared with other processes is only ever touched through atomic words, so a race yields
//! a value to be rejected, never undefined behaviour. The one protocol all page accesses follow:
//!
//! | who | steps, in this order |
//! |---|---|
//! | writer | acquire CAS on the latch word; **release fence**; relaxed word stores; release store of the latch word |
//! | reader | acquire load of the latch word; relaxed word loads; **acquire fence**; relaxed re-load of the latch word |
//!
//! The writer's fence pairs with the reader's: a reader that saw one of the writer's words sees the
//! latch word at least locked when it re-loads it. Without either fence torn reads are accepted;
//! `tests/loom_latch.rs` shows both.
//!
//! # Invariants
//!
//! - A word of a region is accessed with one size, 8 bytes, but for futex words (4 bytes).
//! - No reference into a region is ever a `&[u8]`, and none outlives the [`region::Region`].
//! - The kernel, not a pid, says who lives: a lock on a byte of the database file, owned by a
//!   mapping ([`anchor::Anchor`]).
//! - No state of this crate is trusted across `fork` unless [`fork::ForkMark`] says so.
//!
//! # What it does not do
//!
//! It knows no page, no slot and no file format, retries nothing, and never waits longer than it
//! is told to, except in the two blocking locks of [`lockbyte`].

#[cfg(not(all(target_os = "linux", target_pointer_width = "64", target_endian = "little")))]
compile_error!("Perilune runs on 64-bit little-endian Linux (x86-64, arm64) only");

pub mod sync;

pub mod region;
pub mod words;

pub mod latch;

pub mod futex;

pub mod lockbyte;

pub mod fork;

pub mod anchor;

pub mod event;
mod files;
pub mod platform;
pub mod slices;
pub mod stopped;

pub mod sigbus;

mod descriptor;

pub use descriptor::Identity;
