//! Rows of lists.

use crate::command::access;
use crate::command::*;
use crate::commands::{blocking, elements, elements_together, lists};
use crate::handler::{on_connection, on_keys};
use crate::notify::LIST;

#[rustfmt::skip]
pub(super) const ROWS: &[Command] = &[
    on_connection("blmove", 6, WRITE | GROWS | NOSCRIPT | BLOCKING, "list", blocking::take, "Moves an element, or waits for one").at(TWO)
        .accesses(access::moves),
    on_connection("blmpop", -5, WRITE | BLOCKING, "list", blocking::take, "Takes elements off the first list that has any, or waits")
        .counted(2)
        .accesses(access::both),
    on_connection("blpop", -3, WRITE | NOSCRIPT | BLOCKING, "list", blocking::take, "Takes an element off the left end, or waits for one")
        .at(ALL_BUT_LAST)
        .accesses(access::both),
    on_connection("brpop", -3, WRITE | NOSCRIPT | BLOCKING, "list", blocking::take, "Takes an element off the right end, or waits for one")
        .at(ALL_BUT_LAST)
        .accesses(access::both),
    on_connection("brpoplpush", 4, WRITE | GROWS | NOSCRIPT | BLOCKING, "list", blocking::take,
        "Moves an element, or waits for one").at(TWO)
        .accesses(access::moves),
    on_keys("lindex", 3, READ, ONE, "list", lists::lindex, "Reads an element"),
    on_keys("linsert", 5, WRITE | GROWS | WHOLE, ONE, "list", lists::linsert, "Inserts an element beside another"),
    on_keys("llen", 2, READ | FAST, ONE, "list", lists::llen, "Says how many elements there are")
        .accesses(access::nothing),
    on_keys("lmove", 5, WRITE | GROWS, TWO, "list", lists::lmove, "Moves an element from one list to another")
        .accesses(access::moves),
    on_keys("lmpop", -4, WRITE, NONE, "list", lists::lmpop, "Takes elements off the first list that has any")
        .counted(1)
        .accesses(access::both),
    on_keys("lpop", -2, WRITE | FAST, ONE, "list", lists::pop, "Takes elements off the left end")
        .quick_unless(LIST, elements::pop)
        .accesses(access::both),
    on_keys("lpos", -3, READ | WHOLE, ONE, "list", lists::lpos, "Finds elements"),
    on_keys("lpush", -3, WRITE | GROWS | FAST, ONE, "list", lists::push, "Adds elements at the left end")
        .quick_unless(LIST, elements_together::push)
        .together(elements_together::push_together),
    on_keys("lpushx", -3, WRITE | GROWS | FAST, ONE, "list", lists::push, "Adds elements at the left end of a list that exists")
        .quick_unless(LIST, elements_together::push)
        .together(elements_together::push_together),
    on_keys("lrange", 4, READ, ONE, "list", lists::lrange, "Reads elements"),
    on_keys("lrem", 4, WRITE | WHOLE, ONE, "list", lists::lrem, "Removes elements by value"),
    on_keys("lset", 4, WRITE | GROWS, ONE, "list", lists::lset, "Replaces an element"),
    on_keys("ltrim", 4, WRITE | WHOLE, ONE, "list", lists::ltrim, "Removes all elements outside a range"),
    on_keys("rpop", -2, WRITE | FAST, ONE, "list", lists::pop, "Takes elements off the right end")
        .quick_unless(LIST, elements::pop)
        .accesses(access::both),
    on_keys("rpoplpush", 3, WRITE | GROWS, TWO, "list", lists::lmove, "Moves an element from one list to another")
        .accesses(access::moves),
    on_keys("rpush", -3, WRITE | GROWS | FAST, ONE, "list", lists::push, "Adds elements at the right end")
        .quick_unless(LIST, elements_together::push)
        .together(elements_together::push_together),
    on_keys("rpushx", -3, WRITE | GROWS | FAST, ONE, "list", lists::push, "Adds elements at the right end of a list that exists")
        .quick_unless(LIST, elements_together::push)
        .together(elements_together::push_together),
];
