//! What `maxmemory-policy` says.

/// Which keys are evicted, in the order of the table's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Policy {
    NoEviction,
    AllKeysLru,
    AllKeysLfu,
    AllKeysRandom,
    VolatileLru,
    VolatileLfu,
    VolatileRandom,
    VolatileTtl,
}

/// The policies by the places of their words.
pub(super) const POLICIES: [(&str, Policy); 8] = [
    ("noeviction", Policy::NoEviction),
    ("allkeys-lru", Policy::AllKeysLru),
    ("allkeys-lfu", Policy::AllKeysLfu),
    ("allkeys-random", Policy::AllKeysRandom),
    ("volatile-lru", Policy::VolatileLru),
    ("volatile-lfu", Policy::VolatileLfu),
    ("volatile-random", Policy::VolatileRandom),
    ("volatile-ttl", Policy::VolatileTtl),
];

impl Policy {
    /// The one whose word has this place in the table; else none is evicted.
    pub(crate) fn of(place: i64) -> Policy {
        let found = usize::try_from(place).ok().and_then(|place| POLICIES.get(place));
        found.map_or(Policy::NoEviction, |(_, policy)| *policy)
    }

    /// Whether only keys with an expiry may go.
    pub(crate) fn is_volatile(self) -> bool {
        matches!(
            self,
            Policy::VolatileLru | Policy::VolatileLfu | Policy::VolatileRandom | Policy::VolatileTtl
        )
    }

    /// Whether those go first that were used longest ago.
    pub(crate) fn is_lru(self) -> bool {
        matches!(self, Policy::AllKeysLru | Policy::VolatileLru)
    }

    /// Whether those go first that are used most rarely.
    pub(crate) fn is_lfu(self) -> bool {
        matches!(self, Policy::AllKeysLfu | Policy::VolatileLfu)
    }

    /// Whether uses of keys count.
    pub(crate) fn counts_uses(self) -> bool {
        self.is_lru() || self.is_lfu()
    }
}
