//! Rows of hashes.

use crate::command::access;
use crate::command::*;
use crate::commands::{elements, elements_together, hashes};
use crate::handler::on_keys;
use crate::notify::HASH;

#[rustfmt::skip]
pub(super) const ROWS: &[Command] = &[
    on_keys("hdel", -3, WRITE | FAST, ONE, "hash", hashes::hdel, "Removes fields")
        .quick_unless(HASH, elements::hdel),
    on_keys("hexists", 3, READ | FAST, ONE, "hash", hashes::hexists, "Says whether a field exists")
        .quick_unless(0, elements::hexists)
        .accesses(access::nothing),
    on_keys("hget", 3, READ | FAST, ONE, "hash", hashes::hget, "Reads a field")
        .quick_unless(0, elements::hget),
    on_keys("hgetall", 2, READ | WHOLE, ONE, "hash", hashes::hgetall, "Reads all fields with their values"),
    on_keys("hincrby", 4, WRITE | GROWS | FAST, ONE, "hash", hashes::hincrby, "Adds a number to an integer in a field")
        .quick_unless(HASH, elements::hincrby)
        .accesses(access::both),
    on_keys("hincrbyfloat", 4, WRITE | GROWS | FAST, ONE, "hash", hashes::hincrbyfloat, "Adds a number to a number in a field")
        .accesses(access::both),
    on_keys("hkeys", 2, READ | WHOLE, ONE, "hash", hashes::hgetall, "Reads all fields"),
    on_keys("hlen", 2, READ | FAST, ONE, "hash", hashes::hlen, "Says how many fields there are")
        .accesses(access::nothing),
    on_keys("hmget", -3, READ | FAST, ONE, "hash", hashes::hmget, "Reads fields"),
    on_keys("hmset", -4, WRITE | GROWS | FAST, ONE, "hash", hashes::hset, "Sets fields"),
    on_keys("hrandfield", -2, READ, ONE, "hash", hashes::hrandfield, "Answers any fields"),
    on_keys("hscan", -3, READ, ONE, "hash", hashes::hscan, "Goes through the fields in pieces"),
    on_keys("hset", -4, WRITE | GROWS | FAST, ONE, "hash", hashes::hset, "Sets fields")
        .quick_unless(HASH, elements::hset)
        .together(elements_together::hset_together),
    on_keys("hsetnx", 4, WRITE | GROWS | FAST, ONE, "hash", hashes::hsetnx, "Sets a field if it is absent")
        .quick_unless(HASH, elements::hsetnx),
    on_keys("hstrlen", 3, READ | FAST, ONE, "hash", hashes::hstrlen, "Says how long the value of a field is")
        .accesses(access::nothing),
    on_keys("hvals", 2, READ | WHOLE, ONE, "hash", hashes::hgetall, "Reads all values"),
];
