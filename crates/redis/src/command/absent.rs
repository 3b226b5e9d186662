//! Commands of Redis that there are none of here: what a client is told instead of "unknown command".
//!
//! They are no rows: COMMAND does not name them.

const LATER: &str =
    "ERR streams, geo and HyperLogLog are not supported yet: keep such data in a Redis server";
const REPLICATION: &str =
    "ERR there is no replication: all servers of a database are one, start another `perilune serve` on it";
const CLUSTER: &str = "ERR This instance has cluster support disabled";
const MIGRATE: &str =
    "ERR there is no MIGRATE: servers of a database share its keys, and `perilune import-rdb` takes those of a Redis server";
const MODULES: &str =
    "ERR there are no modules: write functions in Lua (FUNCTION LOAD), or a program that opens the database";

/// Groups of names, and what is said of each.
const GROUPS: [(&[&str], &str); 5] = [
    (
        &[
            "geoadd",
            "geodist",
            "geohash",
            "geopos",
            "georadius",
            "georadius_ro",
            "georadiusbymember",
            "georadiusbymember_ro",
            "geosearch",
            "geosearchstore",
            "pfadd",
            "pfcount",
            "pfdebug",
            "pfmerge",
            "pfselftest",
            "xack",
            "xadd",
            "xautoclaim",
            "xclaim",
            "xdel",
            "xgroup",
            "xinfo",
            "xlen",
            "xpending",
            "xrange",
            "xread",
            "xreadgroup",
            "xrevrange",
            "xsetid",
            "xtrim",
        ],
        LATER,
    ),
    (&["failover", "psync", "replconf", "replicaof", "slaveof", "sync"], REPLICATION),
    (&["asking", "cluster", "readonly", "readwrite", "restore-asking"], CLUSTER),
    (&["migrate"], MIGRATE),
    (&["module"], MODULES),
];

/// What a client is told that asks for `name`, in any case; none if no Redis has such a command.
pub(crate) fn reason(name: &[u8]) -> Option<&'static str> {
    let named = |names: &[&str]| names.iter().any(|known| known.as_bytes().eq_ignore_ascii_case(name));
    GROUPS.iter().find(|(names, _)| named(names)).map(|(_, reason)| *reason)
}
