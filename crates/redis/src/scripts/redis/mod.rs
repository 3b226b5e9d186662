//! What the server's sandboxes offer: Redis's library, in the C files beside, and the libraries of nodes and graphs.
//!
//! Invariants
//! - `Asked` has the numbers of redis.h.
//! - The C side knows sandboxes by their headers only, and no other part of the server.
//!
//! Deliberately absent: what is asked for, which `calls` does.
#![allow(unsafe_code)]

use std::sync::LazyLock;

use perilune_sandbox::graphs;
use perilune_sandbox::sql::library;
use perilune_sandbox::{Format, Library, Offer};

/// The numbers of the libraries.
pub(crate) const REDIS: usize = 0;
pub(crate) const NODES: usize = 1;
pub(crate) const GRAPHS: usize = 2;
/// Of functions of SQL alone.
pub(crate) const SQL: usize = 3;

/// What scripts ask by the library `redis`: the numbers of redis.h.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// Run a command; the answer is its reply in RESP2.
    Call,
    /// Run a command; the answer is its reply in RESP3.
    Call3,
    /// Log: the level 0 to 3 as a digit, the message.
    Log,
    /// The answer is the SHA-1 of the argument as 40 digits.
    Sha1,
    /// The answer is empty if there is no command called so.
    Command,
    /// May the client run this command? The answer is `1` or `0`; empty if there is no such command.
    Allowed,
    /// Define a function: the number of its code, name, description, flags. The answer is an error or empty.
    Register,
}

impl Asked {
    const ALL: [Asked; 7] =
        [Asked::Call, Asked::Call3, Asked::Log, Asked::Sha1, Asked::Command, Asked::Allowed, Asked::Register];

    /// The one with this number.
    #[inline]
    pub(crate) fn of(function: usize) -> Option<Asked> {
        Asked::ALL.get(function).copied()
    }
}

extern "C" {
    static redis_library: Library;
    static redis_format: Format;
    static redis_values_format: Format;
}

static OFFER: LazyLock<Offer> = LazyLock::new(|| {
    // SAFETY: constants of calls.c, of the types that sandbox.h has by these names.
    let (library, format) = unsafe { (&redis_library, &redis_format) };
    Offer::new(&[library, Library::nodes(), graphs::library()], format)
});

/// What each sandbox of a server offers.
pub(crate) fn offer() -> &'static Offer {
    &OFFER
}

static OFFER_TO_SQL: LazyLock<Offer> = LazyLock::new(|| {
    // SAFETY: constants of calls.c, of the types that sandbox.h has by these names.
    let (redis, format) = unsafe { (&redis_library, &redis_values_format) };
    Offer::new(&[redis, Library::nodes(), graphs::library(), library()], format)
});

/// What each sandbox for functions of SQL offers.
pub(crate) fn offer_to_sql() -> &'static Offer {
    &OFFER_TO_SQL
}

#[cfg(test)]
mod tests;
