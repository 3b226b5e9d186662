//! The atomics the latch is built from: std's, or loom's when its orderings are model-checked.
//!
//! Only code that loom runs uses this module. A [`crate::region::Region`] is memory the kernel
//! owns, so its words are std atomics in every build.

#[cfg(not(loom))]
pub use std::sync::atomic::{fence, AtomicU32, AtomicU64, Ordering};

#[cfg(loom)]
pub use loom::sync::atomic::{fence, AtomicU32, AtomicU64, Ordering};
