//! The wall clock, in the milliseconds that expiries, timeouts and pauses are told in.
//!
//! Invariant: it answers something, whatever the machine's clock says: before 1970 it is 0.

use std::time::{SystemTime, UNIX_EPOCH};

/// Milliseconds since 1970.
pub fn clock() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
