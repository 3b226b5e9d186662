//! What clients choose with CLIENT TRACKING, and what is told of keys that have changed. Who finds out that they have, and
//! who carries it to its client, is `tracking`.
//!
//! Example: after `CLIENT TRACKING ON` and `GET a`, a change of `a` by anybody becomes `>2 invalidate [a]`.

pub(crate) mod change;
mod notice;
mod switch;

use std::collections::BTreeSet;
use std::sync::Arc;

pub(crate) use self::change::{Change, Changes};
pub(crate) use self::notice::{broken, published, pushed, Notice, Place};
pub(crate) use self::switch::{is_on, Switch};

/// Names of keys that have changed; none: any may have.
pub(crate) type Names = Option<Vec<Vec<u8>>>;
/// What the keys begin with that a client is told of.
pub(crate) type Prefixes = Arc<BTreeSet<Vec<u8>>>;

/// What a client has chosen.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tracking {
    /// BCAST: it is told of all keys with these, whatever it reads.
    pub(crate) prefixes: Option<Prefixes>,
    /// Only what it reads behind CLIENT CACHING YES.
    pub(crate) opt_in: bool,
    /// All but what it reads behind CLIENT CACHING NO.
    pub(crate) opt_out: bool,
    /// It has said so of the next command.
    pub(crate) caching: bool,
    /// It is not told of what it changes itself.
    pub(crate) no_loop: bool,
    /// The client that is told in its place.
    pub(crate) target: Option<Place>,
}

impl Tracking {
    /// Whether the keys of the command that comes are remembered.
    pub(crate) fn wants(&self) -> bool {
        if self.prefixes.is_some() {
            false
        } else if self.opt_in {
            self.caching
        } else {
            !(self.opt_out && self.caching)
        }
    }
}

/// To which client notices go: 0 is the one that reads, -1 none.
pub(crate) fn redirected(chosen: Option<&Tracking>) -> i64 {
    chosen.map_or(-1, |chosen| chosen.target.map_or(0, |target| target.seat.client))
}
