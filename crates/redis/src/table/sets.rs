//! Rows of sets.

use crate::command::access;
use crate::command::*;
use crate::commands::{elements, elements_together, sets};
use crate::handler::on_keys;
use crate::notify::SET;

#[rustfmt::skip]
pub(super) const ROWS: &[Command] = &[
    on_keys("sadd", -3, WRITE | GROWS | FAST, ONE, "set", sets::sadd, "Adds members")
        .quick_unless(SET, elements::sadd)
        .together(elements_together::sadd_together),
    on_keys("scard", 2, READ | FAST, ONE, "set", sets::scard, "Says how many members there are")
        .accesses(access::nothing),
    on_keys("sdiff", -2, READ | WHOLE, ALL, "set", sets::combined, "Subtracts sets from the first"),
    on_keys("sdiffstore", -3, WRITE | GROWS | WHOLE, ALL, "set", sets::store, "Subtracts sets and stores the result")
        .accesses(access::stores),
    on_keys("sinter", -2, READ | WHOLE, ALL, "set", sets::combined, "Intersects sets"),
    on_keys("sintercard", -3, READ | WHOLE, NONE, "set", sets::sintercard, "Counts the intersection of sets")
        .counted(1),
    on_keys("sinterstore", -3, WRITE | GROWS | WHOLE, ALL, "set", sets::store, "Intersects sets and stores the result")
        .accesses(access::stores),
    on_keys("sismember", 3, READ | FAST, ONE, "set", sets::sismember, "Says whether a member is in a set")
        .quick_unless(0, elements::sismember)
        .accesses(access::nothing),
    on_keys("smembers", 2, READ | WHOLE, ONE, "set", sets::smembers, "Reads all members"),
    on_keys("smismember", -3, READ | FAST, ONE, "set", sets::smismember, "Says which members are in a set"),
    on_keys("smove", 4, WRITE | FAST, TWO, "set", sets::smove, "Moves a member from one set to another")
        .accesses(access::moves),
    on_keys("spop", -2, WRITE | FAST, ONE, "set", sets::spop, "Takes any members out")
        .accesses(access::both),
    on_keys("srandmember", -2, READ, ONE, "set", sets::srandmember, "Answers any members"),
    on_keys("srem", -3, WRITE | FAST, ONE, "set", sets::srem, "Removes members")
        .quick_unless(SET, elements::srem),
    on_keys("sscan", -3, READ, ONE, "set", sets::sscan, "Goes through the members in pieces"),
    on_keys("sunion", -2, READ | WHOLE, ALL, "set", sets::combined, "Unites sets"),
    on_keys("sunionstore", -3, WRITE | GROWS | WHOLE, ALL, "set", sets::store, "Unites sets and stores the result")
        .accesses(access::stores),
];
