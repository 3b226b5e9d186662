//! What each workload is, its unit, the project's target, and what was published of lua-yottadb.
//!
//! The published figures are those of the article "MLua Benchmarks", of lua-yottadb 2.1 on another machine: they
//! are for orientation, not a comparison.

/// Where the published figures were measured.
pub(crate) const HARDWARE: &str =
    "published: lua-yottadb 2.1, Lua 5.4.4, YottaDB, Intel i7-8565U at 1.8 GHz, minimum of its rounds";

/// What the median should be at most.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Target {
    None,
    AtMost(f64),
    /// So much more than another workload.
    Above(&'static str, f64),
    /// So many times another workload.
    Times(&'static str, f64),
}

/// A workload.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Workload {
    pub(crate) name: &'static str,
    pub(crate) unit: &'static str,
    pub(crate) what: &'static str,
    pub(crate) target: Target,
    pub(crate) published: Option<f64>,
}

const fn row(name: &'static str, unit: &'static str, what: &'static str) -> Workload {
    Workload { name, unit, what, target: Target::None, published: None }
}

impl Workload {
    const fn published(mut self, value: f64) -> Workload {
        self.published = Some(value);
        self
    }

    const fn target(mut self, target: Target) -> Workload {
        self.target = target;
        self
    }
}

/// Every workload, in the order of the table.
pub(crate) const WORKLOADS: &[Workload] = &[
    row("node-26", "us", "a chain of 26 nodes").published(4.9).target(Target::AtMost(2.5)),
    row("dots-memory", "B", "memory taken by n.name.first").target(Target::AtMost(0.0)),
    row("engine-get", "ns", "the engine's own get, from Rust"),
    row("get", "ns", "n.__").target(Target::Above("engine-get", 100.0)),
    row("get-method", "ns", "n:get()").target(Target::Times("get", 1.5)),
    row("set", "ns", "n.__ = integer"),
    row("get-child", "ns", "Step[i].__"),
    row("set-child", "ns", "Step[i].__ = integer"),
    row("^BCAT-subscripts", "ms", "subscripts of 10,000 nodes").published(4.0).target(Target::AtMost(1.0)),
    row("^BCAT-pairs", "ms", "pairs of 10,000 nodes").published(7.5).target(Target::AtMost(1.5)),
    row("LBCAT-subscripts", "ms", "the same, private").published(3.2),
    row("LBCAT-pairs", "ms", "").published(5.6),
    row("^var-subscripts", "ms", "10,000 nodes below 10 subscripts").published(5.3),
    row("^var-pairs", "ms", "").published(10.2),
    row("lvar-subscripts", "ms", "the same, private").published(4.3),
    row("lvar-pairs", "ms", "").published(7.9),
    row("^tree-filter", "ms", "gettree of 3,905 records, counted by a filter")
        .published(6.1)
        .target(Target::AtMost(2.0)),
    row("^tree-gettree", "ms", "the same as a table").target(Target::AtMost(2.0)),
    row("ltree-filter", "ms", "a filter, private").published(4.7),
    row("ltree-gettree", "ms", "a table, private"),
    row("settree", "ms", "settree of 3,905 records"),
    row("strip-10", "us", "blanks stripped of 10 bytes, private"),
    row("strip-1000", "us", ""),
    row("strip-1000000", "us", ""),
    row("^strip-10", "us", "the same in the database"),
    row("^strip-1000", "us", ""),
    row("^strip-1000000", "us", ""),
    row("sha512-lua-10", "us", "SHA-512 in Lua of 10 bytes, read each time"),
    row("sha512-lua-1000", "us", ""),
    row("sha512-lua-1000000", "us", ""),
    row("sha512-c-10", "us", "the same by libcrypto"),
    row("sha512-c-1000", "us", ""),
    row("sha512-c-1000000", "us", ""),
    row("host-call", "us", "an empty Lua function called by the host").published(1.7),
    row("signals", "us", "blocking of signals for a call: there are none")
        .published(1.4)
        .target(Target::AtMost(0.0)),
];
