//! Rows of strings and bitmaps.

use crate::command::access;
use crate::command::*;
use crate::commands::{bitfields, bits, counters, lcs, strings};
use crate::handler::on_keys;

#[rustfmt::skip]
pub(super) const ROWS: &[Command] = &[
    on_keys("append", 3, WRITE | GROWS | FAST, ONE, "string", strings::append, "Appends to a string"),
    on_keys("bitcount", -2, READ, ONE, "bitmap", bits::bitcount, "Counts the bits that are set"),
    on_keys("bitfield", -2, WRITE | GROWS, ONE, "bitmap", bitfields::bitfield, "Reads and changes integers inside a string")
        .accesses(access::of_bitfield),
    on_keys("bitfield_ro", -2, READ | FAST, ONE, "bitmap", bitfields::bitfield, "Reads integers inside a string"),
    on_keys("bitop", -4, WRITE | GROWS, (2, -1, 1), "bitmap", bits::bitop, "Combines strings bit by bit")
        .accesses(access::stores),
    on_keys("bitpos", -3, READ, ONE, "bitmap", bits::bitpos, "Finds the first bit that is set or not"),
    on_keys("decr", 2, WRITE | GROWS | FAST, ONE, "string", counters::decr, "Takes 1 from an integer")
        .quick(counters::decr_quick)
        .accesses(access::both),
    on_keys("decrby", 3, WRITE | GROWS | FAST, ONE, "string", counters::decrby, "Takes a number from an integer")
        .accesses(access::both),
    on_keys("get", 2, READ | FAST, ONE, "string", strings::get, "Reads a string").quick(strings::get_quick),
    on_keys("getbit", 3, READ | FAST, ONE, "bitmap", bits::getbit, "Reads a bit"),
    on_keys("getdel", 2, WRITE | FAST, ONE, "string", strings::getdel, "Reads a string and removes it")
        .accesses(access::both),
    on_keys("getex", -2, WRITE | FAST, ONE, "string", strings::getex, "Reads a string and sets when it expires")
        .accesses(access::both),
    on_keys("getrange", 4, READ, ONE, "string", strings::getrange, "Reads a part of a string"),
    on_keys("getset", 3, WRITE | GROWS | FAST, ONE, "string", strings::getset, "Sets a string and answers the old one")
        .accesses(access::both),
    on_keys("incr", 2, WRITE | GROWS | FAST, ONE, "string", counters::incr, "Adds 1 to an integer")
        .quick(counters::incr_quick)
        .accesses(access::both),
    on_keys("incrby", 3, WRITE | GROWS | FAST, ONE, "string", counters::incrby, "Adds a number to an integer")
        .quick(counters::incrby_quick)
        .accesses(access::both),
    on_keys("incrbyfloat", 3, WRITE | GROWS | FAST, ONE, "string", counters::incrbyfloat, "Adds a number to a number")
        .accesses(access::both),
    on_keys("lcs", -3, READ, TWO, "string", lcs::lcs, "Finds the longest common subsequence"),
    on_keys("mget", -2, READ | FAST, ALL, "string", strings::mget, "Reads strings"),
    on_keys("mset", -3, WRITE | GROWS, PAIRS, "string", strings::mset, "Sets strings")
        .quick(strings::mset_quick),
    on_keys("msetnx", -3, WRITE | GROWS, PAIRS, "string", strings::mset, "Sets strings if none of the keys exists"),
    on_keys("psetex", 4, WRITE | GROWS, ONE, "string", strings::setex, "Sets a string that expires, in milliseconds"),
    on_keys("set", -3, WRITE | GROWS, ONE, "string", strings::set, "Sets a string")
        .quick(strings::set_quick)
        .together(strings::set_together)
        .accesses(access::of_set),
    on_keys("setbit", 4, WRITE | GROWS, ONE, "bitmap", bits::setbit, "Changes a bit")
        .accesses(access::both),
    on_keys("setex", 4, WRITE | GROWS, ONE, "string", strings::setex, "Sets a string that expires, in seconds"),
    on_keys("setnx", 3, WRITE | GROWS | FAST, ONE, "string", strings::setnx, "Sets a string if the key is absent"),
    on_keys("setrange", 4, WRITE | GROWS, ONE, "string", strings::setrange, "Overwrites a part of a string"),
    on_keys("strlen", 2, READ | FAST, ONE, "string", strings::strlen, "Says how long a string is")
        .accesses(access::nothing),
    on_keys("substr", 4, READ, ONE, "string", strings::getrange, "Reads a part of a string"),
];
