//! Rows of sorted sets.

use crate::command::access;
use crate::command::*;
use crate::commands::{blocking, combine, elements, zranges, zsets};
use crate::handler::{on_connection, on_keys};
use crate::notify::ZSET;

#[rustfmt::skip]
pub(super) const ROWS: &[Command] = &[
    on_connection("bzmpop", -5, WRITE | BLOCKING, "sorted-set", blocking::take,
        "Takes members off the first sorted set that has any, or waits")
        .counted(2)
        .accesses(access::both),
    on_connection("bzpopmax", -3, WRITE | NOSCRIPT | BLOCKING | FAST, "sorted-set", blocking::take,
        "Takes off the member with the highest score, or waits for one")
        .at(ALL_BUT_LAST)
        .accesses(access::both),
    on_connection("bzpopmin", -3, WRITE | NOSCRIPT | BLOCKING | FAST, "sorted-set", blocking::take,
        "Takes off the member with the lowest score, or waits for one")
        .at(ALL_BUT_LAST)
        .accesses(access::both),
    on_keys("zadd", -4, WRITE | GROWS | FAST, ONE, "sorted-set", zsets::zadd, "Adds members, or changes their scores")
        .quick_unless(ZSET, elements::zadd),
    on_keys("zcard", 2, READ | FAST, ONE, "sorted-set", zsets::zcard, "Says how many members there are")
        .accesses(access::nothing),
    on_keys("zcount", 4, READ | FAST, ONE, "sorted-set", zranges::zcount, "Counts members by score"),
    on_keys("zincrby", 4, WRITE | GROWS | FAST, ONE, "sorted-set", zsets::zincrby, "Adds to a member's score")
        .quick_unless(ZSET, elements::zincrby)
        .accesses(access::both),
    on_keys("zlexcount", 4, READ | FAST, ONE, "sorted-set", zranges::zcount, "Counts members by their bytes"),
    on_keys("zmpop", -4, WRITE, NONE, "sorted-set", zsets::zmpop, "Takes members off the first sorted set that has any")
        .counted(1)
        .accesses(access::both),
    on_keys("zmscore", -3, READ | FAST, ONE, "sorted-set", zsets::zmscore, "Reads the scores of members"),
    on_keys("zpopmax", -2, WRITE | FAST, ONE, "sorted-set", zsets::zpop, "Takes off the members with the highest scores")
        .accesses(access::both),
    on_keys("zpopmin", -2, WRITE | FAST, ONE, "sorted-set", zsets::zpop, "Takes off the members with the lowest scores")
        .accesses(access::both),
    on_keys("zrandmember", -2, READ, ONE, "sorted-set", zsets::zrandmember, "Answers any members"),
    on_keys("zrange", -4, READ, ONE, "sorted-set", zranges::zrange, "Reads members by rank, score or bytes"),
    on_keys("zrangebylex", -4, READ, ONE, "sorted-set", zranges::zrange_old, "Reads members by their bytes"),
    on_keys("zrangebyscore", -4, READ, ONE, "sorted-set", zranges::zrange_old, "Reads members by score"),
    on_keys("zrangestore", -5, WRITE | GROWS, TWO, "sorted-set", zranges::zrangestore, "Stores a range of members")
        .accesses(access::stores),
    on_keys("zrank", 3, READ | FAST, ONE, "sorted-set", zsets::zrank, "Says the rank of a member, by counting"),
    on_keys("zrem", -3, WRITE | FAST, ONE, "sorted-set", zsets::zrem, "Removes members"),
    on_keys("zremrangebylex", 4, WRITE, ONE, "sorted-set", zranges::zremrange, "Removes members by their bytes"),
    on_keys("zremrangebyrank", 4, WRITE, ONE, "sorted-set", zranges::zremrange, "Removes members by rank"),
    on_keys("zremrangebyscore", 4, WRITE, ONE, "sorted-set", zranges::zremrange, "Removes members by score"),
    on_keys("zrevrange", -4, READ, ONE, "sorted-set", zranges::zrange_old, "Reads members by rank, from the highest"),
    on_keys("zrevrangebylex", -4, READ, ONE, "sorted-set", zranges::zrange_old, "Reads members by their bytes, from the highest"),
    on_keys("zrevrangebyscore", -4, READ, ONE, "sorted-set", zranges::zrange_old, "Reads members by score, from the highest"),
    on_keys("zrevrank", 3, READ | FAST, ONE, "sorted-set", zsets::zrank, "Says the rank of a member from the highest, by counting"),
    on_keys("zscan", -3, READ, ONE, "sorted-set", zsets::zscan, "Goes through the members in pieces"),
    on_keys("zscore", 3, READ | FAST, ONE, "sorted-set", zsets::zscore, "Reads a member's score")
        .quick_unless(0, elements::zscore),
    on_keys("zdiff", -3, READ | WHOLE, NONE, "sorted-set", combine::combined, "Subtracts sorted sets from the first")
        .counted(1),
    on_keys("zdiffstore", -4, WRITE | GROWS | WHOLE, ONE, "sorted-set", combine::store, "Subtracts sorted sets and stores the result")
        .counted(2)
        .accesses(access::stores),
    on_keys("zinter", -3, READ | WHOLE, NONE, "sorted-set", combine::combined, "Intersects sorted sets")
        .counted(1),
    on_keys("zintercard", -3, READ | WHOLE, NONE, "sorted-set", combine::zintercard, "Counts the intersection of sorted sets")
        .counted(1),
    on_keys("zinterstore", -4, WRITE | GROWS | WHOLE, ONE, "sorted-set", combine::store, "Intersects sorted sets and stores the result")
        .counted(2)
        .accesses(access::stores),
    on_keys("zunion", -3, READ | WHOLE, NONE, "sorted-set", combine::combined, "Unites sorted sets")
        .counted(1),
    on_keys("zunionstore", -4, WRITE | GROWS | WHOLE, ONE, "sorted-set", combine::store, "Unites sorted sets and stores the result")
        .counted(2)
        .accesses(access::stores),
];
