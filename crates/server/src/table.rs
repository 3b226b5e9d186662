//! The one table of commands: name, arity, flags, where the keys are, and what runs.
//!
//! Invariant: names are in ascending order, which the test below checks, so that one is found by halving.
//! A command that is not here is unknown; none is here that does nothing.

use perilune_resp::{Arguments, Replies};

use crate::commands::{
    bits, connection, expiry, hashes, keys, listing, lists, scan, server, sets, strings, transactions,
    zranges, zsets,
};
use crate::failure::Result;
use crate::gate::Context;
use crate::keyspace::Keys;

/// Changes keys: runs in a transaction that may write.
pub(crate) const WRITE: u16 = 1;
/// Reads keys and changes none.
pub(crate) const READ: u16 = 2;
/// May need more memory.
pub(crate) const GROWS: u16 = 4;
/// Takes the same time whatever is stored.
pub(crate) const FAST: u16 = 8;
/// For whoever operates the server.
pub(crate) const ADMIN: u16 = 16;
/// Runs before the client has authenticated.
pub(crate) const ADMITTED: u16 = 32;
/// Runs at once behind MULTI.
pub(crate) const IMMEDIATE: u16 = 64;

const FLAG_NAMES: [(u16, &str); 6] = [
    (WRITE, "write"),
    (READ, "readonly"),
    (GROWS, "denyoom"),
    (ADMIN, "admin"),
    (FAST, "fast"),
    (ADMITTED, "no_auth"),
];

/// A command that works with keys, inside a transaction.
pub(crate) type Handler = fn(&mut Keys<'_>, Arguments<'_>, &mut Replies<'_>) -> Result<()>;
/// The same outside a transaction, by one operation; false if that cannot answer.
pub(crate) type Quick = fn(&mut Keys<'_>, Arguments<'_>, &mut Replies<'_>) -> Result<bool>;
/// A command that works with the connection or the server.
pub(crate) type ConnectionHandler = fn(&mut Context<'_>, Arguments<'_>, &mut Replies<'_>) -> Result<()>;

/// What runs.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Run {
    Keys(Handler),
    Connection(ConnectionHandler),
}

/// One command.
#[derive(Debug)]
pub(crate) struct Command {
    pub(crate) name: &'static str,
    /// Arguments with the name; negative: at least so many.
    pub(crate) arity: i64,
    flags: u16,
    /// Where the first and the last key are (-1: the last argument), and their distance; 0: no keys.
    pub(crate) keys: (i64, i64, i64),
    pub(crate) group: &'static str,
    pub(crate) summary: &'static str,
    pub(crate) run: Run,
    pub(crate) quick: Option<Quick>,
    /// The words that may follow it, if it is a container of commands.
    pub(crate) words: &'static [&'static str],
}

impl Command {
    pub(crate) fn is(&self, flag: u16) -> bool {
        self.flags & flag != 0
    }

    /// Whether it takes so many arguments.
    pub(crate) fn takes(&self, count: usize) -> bool {
        let count = count as i64;
        count == self.arity || self.arity < 0 && count >= -self.arity
    }

    /// Its flags, as COMMAND INFO names them.
    pub(crate) fn flag_names(&self) -> impl Iterator<Item = &'static str> + '_ {
        FLAG_NAMES.iter().filter(|(flag, _)| self.is(*flag)).map(|(_, name)| *name)
    }

    const fn with(mut self, words: &'static [&'static str]) -> Command {
        self.words = words;
        self
    }

    const fn quick(mut self, quick: Quick) -> Command {
        self.quick = Some(quick);
        self
    }
}

const fn on_keys(
    name: &'static str,
    arity: i64,
    flags: u16,
    keys: (i64, i64, i64),
    group: &'static str,
    handler: Handler,
    summary: &'static str,
) -> Command {
    Command { name, arity, flags, keys, group, summary, run: Run::Keys(handler), quick: None, words: &[] }
}

const fn on_connection(
    name: &'static str,
    arity: i64,
    flags: u16,
    group: &'static str,
    handler: ConnectionHandler,
    summary: &'static str,
) -> Command {
    Command {
        name,
        arity,
        flags,
        keys: (0, 0, 0),
        group,
        summary,
        run: Run::Connection(handler),
        quick: None,
        words: &[],
    }
}

const NONE: (i64, i64, i64) = (0, 0, 0);
const ONE: (i64, i64, i64) = (1, 1, 1);
const TWO: (i64, i64, i64) = (1, 2, 1);
const ALL: (i64, i64, i64) = (1, -1, 1);
const PAIRS: (i64, i64, i64) = (1, -1, 2);

/// The command called `name`, in any case.
pub(crate) fn find(name: &[u8]) -> Option<&'static Command> {
    let mut lower = [0; 32];
    let lower = lower.get_mut(..name.len())?;
    lower.copy_from_slice(name);
    lower.make_ascii_lowercase();
    let at = COMMANDS.binary_search_by(|command| command.name.as_bytes().cmp(lower)).ok()?;
    COMMANDS.get(at)
}

/// Every command, by name.
#[rustfmt::skip]
pub(crate) static COMMANDS: &[Command] = &[
    on_keys("append", 3, WRITE | GROWS | FAST, ONE, "string", strings::append, "Appends to a string"),
    on_connection("auth", -2, ADMITTED | FAST | IMMEDIATE, "connection", connection::auth, "Gives the password"),
    on_keys("bitcount", -2, READ, ONE, "bitmap", bits::bitcount, "Counts the bits that are set"),
    on_keys("bitfield", -2, WRITE | GROWS, ONE, "bitmap", bits::bitfield, "Reads and changes integers inside a string"),
    on_keys("bitfield_ro", -2, READ | FAST, ONE, "bitmap", bits::bitfield, "Reads integers inside a string"),
    on_keys("bitop", -4, WRITE | GROWS, (2, -1, 1), "bitmap", bits::bitop, "Combines strings bit by bit"),
    on_keys("bitpos", -3, READ, ONE, "bitmap", bits::bitpos, "Finds the first bit that is set or not"),
    on_connection("client", -2, 0, "connection", connection::client, "ID, GETNAME, SETNAME and INFO of the connection")
        .with(&["id", "getname", "setname", "info"]),
    on_connection("command", -1, 0, "server", listing::command, "Says which commands there are")
        .with(&["count", "docs", "getkeys", "info", "list"]),
    on_connection("config", -2, ADMIN, "server", server::config, "GET: says what is configured").with(&["get"]),
    on_keys("copy", -3, WRITE | GROWS, TWO, "generic", keys::copy, "Copies a key"),
    on_keys("dbsize", 1, READ, NONE, "server", keys::dbsize, "Counts the keys of the database, one by one"),
    on_keys("decr", 2, WRITE | GROWS | FAST, ONE, "string", strings::decr, "Takes 1 from an integer"),
    on_keys("decrby", 3, WRITE | GROWS | FAST, ONE, "string", strings::decrby, "Takes a number from an integer"),
    on_keys("del", -2, WRITE, ALL, "generic", keys::del, "Removes keys"),
    on_connection("discard", 1, FAST | IMMEDIATE, "transactions", transactions::discard, "Drops what MULTI has queued"),
    on_connection("echo", 2, FAST, "connection", connection::echo, "Answers what it is told"),
    on_connection("exec", 1, IMMEDIATE, "transactions", transactions::exec, "Runs what MULTI has queued, as one transaction"),
    on_keys("exists", -2, READ | FAST, ALL, "generic", keys::exists, "Counts which of the keys exist"),
    on_keys("expire", -3, WRITE | FAST, ONE, "generic", expiry::expire, "Sets in how many seconds a key expires"),
    on_keys("expireat", -3, WRITE | FAST, ONE, "generic", expiry::expire, "Sets at which second a key expires"),
    on_keys("expiretime", 2, READ | FAST, ONE, "generic", expiry::ttl, "Says at which second a key expires"),
    on_keys("flushall", -1, WRITE, NONE, "server", keys::flush, "Removes the keys of all databases"),
    on_keys("flushdb", -1, WRITE, NONE, "server", keys::flush, "Removes the keys of the database"),
    on_keys("get", 2, READ | FAST, ONE, "string", strings::get, "Reads a string").quick(strings::get_quick),
    on_keys("getbit", 3, READ | FAST, ONE, "bitmap", bits::getbit, "Reads a bit"),
    on_keys("getdel", 2, WRITE | FAST, ONE, "string", strings::getdel, "Reads a string and removes it"),
    on_keys("getex", -2, WRITE | FAST, ONE, "string", strings::getex, "Reads a string and sets when it expires"),
    on_keys("getrange", 4, READ, ONE, "string", strings::getrange, "Reads a part of a string"),
    on_keys("getset", 3, WRITE | GROWS | FAST, ONE, "string", strings::getset, "Sets a string and answers the old one"),
    on_keys("hdel", -3, WRITE | FAST, ONE, "hash", hashes::hdel, "Removes fields"),
    on_connection("hello", -1, ADMITTED | FAST | IMMEDIATE, "connection", connection::hello, "Chooses the protocol"),
    on_keys("hexists", 3, READ | FAST, ONE, "hash", hashes::hexists, "Says whether a field exists"),
    on_keys("hget", 3, READ | FAST, ONE, "hash", hashes::hget, "Reads a field"),
    on_keys("hgetall", 2, READ, ONE, "hash", hashes::hgetall, "Reads all fields with their values"),
    on_keys("hincrby", 4, WRITE | GROWS | FAST, ONE, "hash", hashes::hincrby, "Adds a number to an integer in a field"),
    on_keys("hincrbyfloat", 4, WRITE | GROWS | FAST, ONE, "hash", hashes::hincrbyfloat, "Adds a number to a number in a field"),
    on_keys("hkeys", 2, READ, ONE, "hash", hashes::hgetall, "Reads all fields"),
    on_keys("hlen", 2, READ | FAST, ONE, "hash", hashes::hlen, "Says how many fields there are"),
    on_keys("hmget", -3, READ | FAST, ONE, "hash", hashes::hmget, "Reads fields"),
    on_keys("hmset", -4, WRITE | GROWS | FAST, ONE, "hash", hashes::hset, "Sets fields"),
    on_keys("hrandfield", -2, READ, ONE, "hash", hashes::hrandfield, "Answers any fields"),
    on_keys("hscan", -3, WRITE, ONE, "hash", hashes::hscan, "Goes through the fields in pieces"),
    on_keys("hset", -4, WRITE | GROWS | FAST, ONE, "hash", hashes::hset, "Sets fields"),
    on_keys("hsetnx", 4, WRITE | GROWS | FAST, ONE, "hash", hashes::hsetnx, "Sets a field if it is absent"),
    on_keys("hstrlen", 3, READ | FAST, ONE, "hash", hashes::hstrlen, "Says how long the value of a field is"),
    on_keys("hvals", 2, READ, ONE, "hash", hashes::hgetall, "Reads all values"),
    on_keys("incr", 2, WRITE | GROWS | FAST, ONE, "string", strings::incr, "Adds 1 to an integer"),
    on_keys("incrby", 3, WRITE | GROWS | FAST, ONE, "string", strings::incrby, "Adds a number to an integer"),
    on_keys("incrbyfloat", 3, WRITE | GROWS | FAST, ONE, "string", strings::incrbyfloat, "Adds a number to a number"),
    on_connection("info", -1, 0, "server", server::info, "Says what there is to know of the server"),
    on_keys("keys", 2, READ, NONE, "generic", keys::keys, "Lists keys by a pattern"),
    on_keys("lcs", -3, READ, TWO, "string", strings::lcs, "Finds the longest common subsequence"),
    on_keys("lindex", 3, READ, ONE, "list", lists::lindex, "Reads an element"),
    on_keys("linsert", 5, WRITE | GROWS, ONE, "list", lists::linsert, "Inserts an element beside another"),
    on_keys("llen", 2, READ | FAST, ONE, "list", lists::llen, "Says how many elements there are"),
    on_keys("lmove", 5, WRITE | GROWS, TWO, "list", lists::lmove, "Moves an element from one list to another"),
    on_keys("lmpop", -4, WRITE, NONE, "list", lists::lmpop, "Takes elements off the first list that has any"),
    on_keys("lpop", -2, WRITE | FAST, ONE, "list", lists::pop, "Takes elements off the left end"),
    on_keys("lpos", -3, READ, ONE, "list", lists::lpos, "Finds elements"),
    on_keys("lpush", -3, WRITE | GROWS | FAST, ONE, "list", lists::push, "Adds elements at the left end"),
    on_keys("lpushx", -3, WRITE | GROWS | FAST, ONE, "list", lists::push, "Adds elements at the left end of a list that exists"),
    on_keys("lrange", 4, READ, ONE, "list", lists::lrange, "Reads elements"),
    on_keys("lrem", 4, WRITE, ONE, "list", lists::lrem, "Removes elements by value"),
    on_keys("lset", 4, WRITE | GROWS, ONE, "list", lists::lset, "Replaces an element"),
    on_keys("ltrim", 4, WRITE, ONE, "list", lists::ltrim, "Removes all elements outside a range"),
    on_keys("mget", -2, READ | FAST, ALL, "string", strings::mget, "Reads strings"),
    on_keys("move", 3, WRITE | FAST, ONE, "generic", keys::shift, "Moves a key to another database"),
    on_keys("mset", -3, WRITE | GROWS, PAIRS, "string", strings::mset, "Sets strings"),
    on_keys("msetnx", -3, WRITE | GROWS, PAIRS, "string", strings::mset, "Sets strings if none of the keys exists"),
    on_connection("multi", 1, FAST | IMMEDIATE, "transactions", transactions::multi, "Queues commands for EXEC"),
    on_keys("persist", 2, WRITE | FAST, ONE, "generic", expiry::persist, "Makes a key live for ever"),
    on_keys("pexpire", -3, WRITE | FAST, ONE, "generic", expiry::expire, "Sets in how many milliseconds a key expires"),
    on_keys("pexpireat", -3, WRITE | FAST, ONE, "generic", expiry::expire, "Sets at which millisecond a key expires"),
    on_keys("pexpiretime", 2, READ | FAST, ONE, "generic", expiry::ttl, "Says at which millisecond a key expires"),
    on_connection("ping", -1, FAST, "connection", connection::ping, "Answers PONG, or what it is told"),
    on_keys("psetex", 4, WRITE | GROWS, ONE, "string", strings::setex, "Sets a string that expires, in milliseconds"),
    on_keys("pttl", 2, READ | FAST, ONE, "generic", expiry::ttl, "Says in how many milliseconds a key expires"),
    on_connection("quit", -1, ADMITTED | FAST | IMMEDIATE, "connection", connection::quit, "Ends the connection"),
    on_keys("randomkey", 1, READ, NONE, "generic", keys::randomkey, "Answers any key"),
    on_keys("rename", 3, WRITE, TWO, "generic", keys::rename, "Renames a key"),
    on_keys("renamenx", 3, WRITE | FAST, TWO, "generic", keys::rename, "Renames a key if the new name is free"),
    on_connection("reset", 1, ADMITTED | FAST | IMMEDIATE, "connection", connection::reset, "As if the client had just connected"),
    on_keys("rpop", -2, WRITE | FAST, ONE, "list", lists::pop, "Takes elements off the right end"),
    on_keys("rpoplpush", 3, WRITE | GROWS, TWO, "list", lists::lmove, "Moves an element from one list to another"),
    on_keys("rpush", -3, WRITE | GROWS | FAST, ONE, "list", lists::push, "Adds elements at the right end"),
    on_keys("rpushx", -3, WRITE | GROWS | FAST, ONE, "list", lists::push, "Adds elements at the right end of a list that exists"),
    on_keys("sadd", -3, WRITE | GROWS | FAST, ONE, "set", sets::sadd, "Adds members"),
    on_keys("scan", -2, WRITE, NONE, "generic", scan::scan, "Goes through the keys in pieces"),
    on_keys("scard", 2, READ | FAST, ONE, "set", sets::scard, "Says how many members there are"),
    on_keys("sdiff", -2, READ, ALL, "set", sets::combined, "Subtracts sets from the first"),
    on_keys("sdiffstore", -3, WRITE | GROWS, ALL, "set", sets::store, "Subtracts sets and stores the result"),
    on_connection("select", 2, FAST, "connection", connection::select, "Chooses the database"),
    on_keys("set", -3, WRITE | GROWS, ONE, "string", strings::set, "Sets a string"),
    on_keys("setbit", 4, WRITE | GROWS, ONE, "bitmap", bits::setbit, "Changes a bit"),
    on_keys("setex", 4, WRITE | GROWS, ONE, "string", strings::setex, "Sets a string that expires, in seconds"),
    on_keys("setnx", 3, WRITE | GROWS | FAST, ONE, "string", strings::setnx, "Sets a string if the key is absent"),
    on_keys("setrange", 4, WRITE | GROWS, ONE, "string", strings::setrange, "Overwrites a part of a string"),
    on_connection("shutdown", -1, ADMIN, "server", server::shutdown, "Ends this server"),
    on_keys("sinter", -2, READ, ALL, "set", sets::combined, "Intersects sets"),
    on_keys("sintercard", -3, READ, NONE, "set", sets::sintercard, "Counts the intersection of sets"),
    on_keys("sinterstore", -3, WRITE | GROWS, ALL, "set", sets::store, "Intersects sets and stores the result"),
    on_keys("sismember", 3, READ | FAST, ONE, "set", sets::sismember, "Says whether a member is in a set"),
    on_keys("smembers", 2, READ, ONE, "set", sets::smembers, "Reads all members"),
    on_keys("smismember", -3, READ | FAST, ONE, "set", sets::smismember, "Says which members are in a set"),
    on_keys("smove", 4, WRITE | FAST, TWO, "set", sets::smove, "Moves a member from one set to another"),
    on_keys("spop", -2, WRITE | FAST, ONE, "set", sets::spop, "Takes any members out"),
    on_keys("srandmember", -2, READ, ONE, "set", sets::srandmember, "Answers any members"),
    on_keys("srem", -3, WRITE | FAST, ONE, "set", sets::srem, "Removes members"),
    on_keys("sscan", -3, WRITE, ONE, "set", sets::sscan, "Goes through the members in pieces"),
    on_keys("strlen", 2, READ | FAST, ONE, "string", strings::strlen, "Says how long a string is"),
    on_keys("substr", 4, READ, ONE, "string", strings::getrange, "Reads a part of a string"),
    on_keys("sunion", -2, READ, ALL, "set", sets::combined, "Unites sets"),
    on_keys("sunionstore", -3, WRITE | GROWS, ALL, "set", sets::store, "Unites sets and stores the result"),
    on_connection("time", 1, FAST, "server", server::time, "Says what time it is"),
    on_keys("touch", -2, READ | FAST, ALL, "generic", keys::exists, "Counts which of the keys exist"),
    on_keys("ttl", 2, READ | FAST, ONE, "generic", expiry::ttl, "Says in how many seconds a key expires"),
    on_keys("type", 2, READ | FAST, ONE, "generic", keys::kind, "Says what a key holds"),
    on_keys("unlink", -2, WRITE | FAST, ALL, "generic", keys::del, "Removes keys"),
    on_connection("unwatch", 1, FAST, "transactions", transactions::unwatch, "Forgets the keys of WATCH"),
    on_connection("watch", -2, FAST | IMMEDIATE, "transactions", transactions::watch, "Makes EXEC depend on keys"),
    on_keys("zadd", -4, WRITE | GROWS | FAST, ONE, "sorted-set", zsets::zadd, "Adds members, or changes their scores"),
    on_keys("zcard", 2, READ | FAST, ONE, "sorted-set", zsets::zcard, "Says how many members there are"),
    on_keys("zcount", 4, READ | FAST, ONE, "sorted-set", zranges::zcount, "Counts members by score"),
    on_keys("zincrby", 4, WRITE | GROWS | FAST, ONE, "sorted-set", zsets::zincrby, "Adds to a member's score"),
    on_keys("zlexcount", 4, READ | FAST, ONE, "sorted-set", zranges::zcount, "Counts members by their bytes"),
    on_keys("zmpop", -4, WRITE, NONE, "sorted-set", zsets::zmpop, "Takes members off the first sorted set that has any"),
    on_keys("zmscore", -3, READ | FAST, ONE, "sorted-set", zsets::zmscore, "Reads the scores of members"),
    on_keys("zpopmax", -2, WRITE | FAST, ONE, "sorted-set", zsets::zpop, "Takes off the members with the highest scores"),
    on_keys("zpopmin", -2, WRITE | FAST, ONE, "sorted-set", zsets::zpop, "Takes off the members with the lowest scores"),
    on_keys("zrandmember", -2, READ, ONE, "sorted-set", zsets::zrandmember, "Answers any members"),
    on_keys("zrange", -4, READ, ONE, "sorted-set", zranges::zrange, "Reads members by rank, score or bytes"),
    on_keys("zrangebylex", -4, READ, ONE, "sorted-set", zranges::zrange_old, "Reads members by their bytes"),
    on_keys("zrangebyscore", -4, READ, ONE, "sorted-set", zranges::zrange_old, "Reads members by score"),
    on_keys("zrangestore", -5, WRITE | GROWS, TWO, "sorted-set", zranges::zrangestore, "Stores a range of members"),
    on_keys("zrank", 3, READ | FAST, ONE, "sorted-set", zsets::zrank, "Says the rank of a member, by counting"),
    on_keys("zrem", -3, WRITE | FAST, ONE, "sorted-set", zsets::zrem, "Removes members"),
    on_keys("zremrangebylex", 4, WRITE, ONE, "sorted-set", zranges::zremrange, "Removes members by their bytes"),
    on_keys("zremrangebyrank", 4, WRITE, ONE, "sorted-set", zranges::zremrange, "Removes members by rank"),
    on_keys("zremrangebyscore", 4, WRITE, ONE, "sorted-set", zranges::zremrange, "Removes members by score"),
    on_keys("zrevrange", -4, READ, ONE, "sorted-set", zranges::zrange_old, "Reads members by rank, from the highest"),
    on_keys("zrevrangebylex", -4, READ, ONE, "sorted-set", zranges::zrange_old, "Reads members by their bytes, from the highest"),
    on_keys("zrevrangebyscore", -4, READ, ONE, "sorted-set", zranges::zrange_old, "Reads members by score, from the highest"),
    on_keys("zrevrank", 3, READ | FAST, ONE, "sorted-set", zsets::zrank, "Says the rank of a member from the highest, by counting"),
    on_keys("zscan", -3, WRITE, ONE, "sorted-set", zsets::zscan, "Goes through the members in pieces"),
    on_keys("zscore", 3, READ | FAST, ONE, "sorted-set", zsets::zscore, "Reads a member's score"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_found_by_its_name() {
        for pair in COMMANDS.windows(2) {
            assert!(pair[0].name < pair[1].name, "{} before {}", pair[0].name, pair[1].name);
        }
        for command in COMMANDS {
            let found = find(command.name.to_ascii_uppercase().as_bytes());
            assert_eq!(found.map(|found| found.name), Some(command.name));
            let reads = matches!(command.run, Run::Keys(_));
            assert_eq!(command.is(WRITE) || command.is(READ), reads, "{}", command.name);
        }
        assert!(find(b"").is_none() && find(&[b'x'; 100]).is_none());
    }
}
