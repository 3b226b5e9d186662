//! Settings of Redis that say of this server what is always so: CONFIG GET tells them, and CONFIG SET changes none.

/// Names and values, in the order of names.
pub(crate) const FIXED: &[(&str, &str)] = &[
    ("cluster-enabled", "no"),
    ("daemonize", "no"),
    ("replicaof", ""),
    ("slaveof", ""),
    ("supervised", "no"),
];

/// The value of the one called `name`, in any case.
pub(crate) fn fixed(name: &str) -> Option<&'static str> {
    FIXED.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| *value)
}
