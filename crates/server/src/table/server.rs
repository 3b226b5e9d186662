//! Rows of the server and its databases.

use super::row::*;
use crate::commands::{acl, config, keys, listing, server};

#[rustfmt::skip]
pub(super) const ROWS: &[Command] = &[
    on_connection("acl", -2, NOSCRIPT, "server", acl::acl, "Says and changes who may do what")
        .with(&["cat", "deluser", "dryrun", "genpass", "getuser", "help", "list", "load", "log", "save", "setuser", "users", "whoami"]),
    on_connection("command", -1, 0, "server", listing::command, "Says which commands there are")
        .with(&["count", "docs", "getkeys", "info", "list"]),
    on_connection("config", -2, ADMIN | NOSCRIPT, "server", config::config, "Says and changes what is configured")
        .with(&["get", "help", "resetstat", "rewrite", "set"]),
    on_keys("dbsize", 1, READ | FAST | KEYSPACE, NONE, "server", keys::dbsize, "Counts the keys of the database, one by one"),
    on_keys("flushall", -1, WRITE | DANGEROUS | KEYSPACE, NONE, "server", keys::flush, "Removes the keys of all databases"),
    on_keys("flushdb", -1, WRITE | DANGEROUS | KEYSPACE, NONE, "server", keys::flush, "Removes the keys of the database"),
    on_connection("info", -1, DANGEROUS, "server", server::info, "Says what there is to know of the server"),
    on_connection("shutdown", -1, ADMIN | NOSCRIPT | NO_MULTI, "server", server::shutdown, "Ends this server"),
    on_connection("time", 1, FAST, "server", server::time, "Says what time it is"),
    on_keys("swapdb", 3, WRITE | FAST | DANGEROUS | KEYSPACE, NONE, "server", keys::swap, "Exchanges two databases, by copying"),
];
