//! Rows of keys, whatever they hold.

use crate::command::access;
use crate::command::*;
use crate::commands::{blocking, dump, expiry, keys, object, scan, sort};
use crate::handler::{on_connection, on_keys};

#[rustfmt::skip]
pub(super) const ROWS: &[Command] = &[
    on_keys("copy", -3, WRITE | GROWS | WHOLE, TWO, "generic", keys::copy, "Copies a key")
        .accesses(access::copies),
    on_keys("del", -2, WRITE, ALL, "generic", keys::del, "Removes keys"),
    on_keys("exists", -2, READ | FAST, ALL, "generic", keys::exists, "Counts which of the keys exist")
        .accesses(access::nothing),
    on_keys("expire", -3, WRITE | FAST, ONE, "generic", expiry::expire, "Sets in how many seconds a key expires"),
    on_keys("expireat", -3, WRITE | FAST, ONE, "generic", expiry::expire, "Sets at which second a key expires"),
    on_keys("expiretime", 2, READ | FAST, ONE, "generic", expiry::ttl, "Says at which second a key expires"),
    on_keys("keys", 2, READ | DANGEROUS, NONE, "generic", keys::keys, "Lists keys by a pattern")
        .quick(keys::keys_quick),
    on_keys("move", 3, WRITE | FAST | WHOLE, ONE, "generic", keys::shift, "Moves a key to another database")
        .accesses(access::both),
    on_keys("persist", 2, WRITE | FAST, ONE, "generic", expiry::persist, "Makes a key live for ever"),
    on_keys("pexpire", -3, WRITE | FAST, ONE, "generic", expiry::expire, "Sets in how many milliseconds a key expires"),
    on_keys("pexpireat", -3, WRITE | FAST, ONE, "generic", expiry::expire, "Sets at which millisecond a key expires"),
    on_keys("pexpiretime", 2, READ | FAST, ONE, "generic", expiry::ttl, "Says at which millisecond a key expires"),
    on_keys("pttl", 2, READ | FAST, ONE, "generic", expiry::ttl, "Says in how many milliseconds a key expires"),
    on_keys("randomkey", 1, READ, NONE, "generic", keys::randomkey, "Answers any key"),
    on_keys("rename", 3, WRITE | WHOLE, TWO, "generic", keys::rename, "Renames a key")
        .accesses(access::moves),
    on_keys("renamenx", 3, WRITE | FAST | WHOLE, TWO, "generic", keys::rename, "Renames a key if the new name is free")
        .accesses(access::moves),
    on_keys("scan", -2, READ, NONE, "generic", scan::scan, "Goes through the keys in pieces")
        .or_statement(statements::is_scan),
    on_keys("touch", -2, READ | FAST, ALL, "generic", keys::exists, "Counts which of the keys exist")
        .accesses(access::nothing),
    on_keys("ttl", 2, READ | FAST, ONE, "generic", expiry::ttl, "Says in how many seconds a key expires"),
    on_keys("type", 2, READ | FAST, ONE, "generic", keys::kind, "Says what a key holds")
        .accesses(access::nothing),
    on_keys("unlink", -2, WRITE | FAST, ALL, "generic", keys::del, "Removes keys"),
    on_connection("wait", 3, NOSCRIPT, "connection", blocking::wait, "Waits for replicas, of which there are none"),
    on_keys("dump", 2, READ | WHOLE, ONE, "generic", dump::dump, "Answers what a key holds, for RESTORE")
        .or_statement(statements::is_dump),
    on_connection("object", -2, READ | KEYLESS, "generic", object::object, "Says how a key lies in memory").at((2, 2, 1))
        .with(&["encoding", "freq", "help", "idletime", "refcount"])
        .accesses(access::nothing),
    on_connection("restore", -4, WRITE | GROWS | DANGEROUS, "generic", dump::restore, "Makes a key of what DUMP answered").at(ONE),
    on_keys("sort", -2, WRITE | GROWS | DANGEROUS | COLLECTIONS | WHOLE, ONE, "generic", sort::sort,
        "Sorts elements, and stores them if told to")
        .finder(sort_keys)
        .accesses(access::copies).reads_by_patterns(access::sort_patterns),
    on_keys("sort_ro", -2, READ | DANGEROUS | COLLECTIONS | WHOLE, ONE, "generic", sort::sort, "Sorts elements")
        .finder(sort_keys)
        .reads_by_patterns(access::sort_patterns),
];
