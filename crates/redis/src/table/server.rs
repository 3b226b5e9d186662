//! Rows of the server and its databases.

use crate::command::access;
use crate::command::*;
use crate::commands::{acl, clients, config, debug, diagnosis, info, keys, listing, server};
use crate::handler::{on_connection, on_keys};

#[rustfmt::skip]
pub(super) const ROWS: &[Command] = &[
    on_connection("acl", -2, NOSCRIPT | GOVERNS, "server", acl::acl, "Says and changes who may do what")
        .with(&["cat", "deluser", "dryrun", "genpass", "getuser", "help", "list", "load", "log", "save", "setuser", "users", "whoami"])
        .for_operators(&["deluser", "dryrun", "getuser", "list", "load", "log", "save", "setuser", "users"]).secrets(2),
    on_connection("bgrewriteaof", 1, ADMIN | NOSCRIPT, "server", server::save_behind, "Takes a checkpoint, without waiting for it"),
    on_connection("bgsave", -1, ADMIN | NOSCRIPT, "server", server::save_behind, "Takes a checkpoint, without waiting for it"),
    on_connection("command", -1, CONNECTION, "server", listing::command, "Says which commands there are")
        .with(&["count", "docs", "getkeys", "getkeysandflags", "help", "info", "list"]),
    on_connection("config", -2, ADMIN | NOSCRIPT | GOVERNS, "server", config::config, "Says and changes what is configured")
        .with(&["get", "help", "resetstat", "rewrite", "set"])
        .secrets(2),
    on_keys("dbsize", 1, READ | FAST | KEYSPACE, NONE, "server", keys::dbsize, "Counts the keys of the database, a page at a time")
        .quick(keys::keys_quick),
    on_connection("debug", -2, ADMIN | NOSCRIPT, "server", debug::debug, "What suites of tests ask for")
        .with(&["change-repl-id", "error", "help", "jmap", "listpack", "loadaof", "loops", "object", "panic", "protocol",
            "quicklist-packed-threshold", "reload", "replicate", "set-active-expire", "set-disable-deny-scripts", "sleep",
            "stringmatch-len"]),
    on_keys("flushall", -1, WRITE | DANGEROUS | KEYSPACE, NONE, "server", keys::flush, "Removes the keys of all databases"),
    on_keys("flushdb", -1, WRITE | DANGEROUS | KEYSPACE, NONE, "server", keys::flush, "Removes the keys of the database"),
    on_connection("info", -1, DANGEROUS, "server", info::info, "Says what there is to know of the server"),
    on_connection("lastsave", 1, ADMIN | FAST, "server", server::lastsave, "Says when the last checkpoint was taken"),
    on_connection("latency", -2, ADMIN | NOSCRIPT, "server", diagnosis::latency, "Says which delays there were on this server")
        .with(&["doctor", "graph", "help", "histogram", "history", "latest", "reset"]),
    on_connection("lolwut", -1, READ | FAST, "server", server::lolwut, "Draws something, and says the version"),
    on_connection("memory", -2, READ, "server", diagnosis::memory, "Says what memory is used for")
        .finder(|arguments| Some(if arguments[1].eq_ignore_ascii_case(b"usage") { vec![2] } else { Vec::new() }))
        .with(&["doctor", "help", "malloc-stats", "purge", "stats", "usage"])
        .accesses(access::nothing),
    on_connection("role", 1, ADMIN | NOSCRIPT | FAST, "server", server::role, "Says that this server is a master"),
    on_connection("save", 1, ADMIN | NOSCRIPT | NO_MULTI, "server", server::save, "Takes a checkpoint"),
    on_connection("shutdown", -1, ADMIN | NOSCRIPT | NO_MULTI, "server", server::shutdown, "Ends this server"),
    on_connection("slowlog", -2, ADMIN, "server", diagnosis::slow, "Says which commands were slow on any server")
        .with(&["get", "help", "len", "reset"]),
    on_connection("time", 1, FAST, "server", server::time, "Says what time it is"),
    on_keys("swapdb", 3, WRITE | FAST | DANGEROUS | KEYSPACE, NONE, "server", keys::swap, "Exchanges two databases, by copying"),
    on_connection("monitor", 1, ADMIN | NOSCRIPT, "server", clients::monitor, "Shows all that this server runs"),
];
