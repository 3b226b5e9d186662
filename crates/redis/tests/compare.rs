//! Is it Redis? Generated sequences of commands by two clients at once, to ours and to a real
//! redis-server: the replies must be equal.
//!
//! `PERILUNE_SEQUENCES` says how many (`make compare SEQUENCES=...`), `PERILUNE_SEED` repeats a run: it is
//! printed. A template is a command: `<k>` and its kin stand for something random (`word`), `a|b|-` for one
//! of these words or none.
//!
//! Documented exceptions: the list `excused`; replies without an order are sorted; what is left to chance
//! and to the clock is asked so that there is one answer.

mod peer;

use std::env;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use peer::{Client, Ours, Place, Redis};
use perilune_redis::Settings;
use perilune_resp::Answer;

/// Numbers that look random and can be had again.
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.0;
        bits = (bits ^ bits >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ bits >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        (bits ^ bits >> 31) % end
    }

    fn pick<'t, T: ?Sized>(&mut self, from: &[&'t T]) -> &'t T {
        from[self.below(from.len() as u64) as usize]
    }
}

const STRINGS: &[&str] = &[
    "set <k> <v> nx|xx|-|-|- get|-|-",
    "set <k> <v> ex|px <ttl>",
    "set <k> <v> keepttl|exat <v>",
    "set <k> <n>",
    "get <k>",
    "setnx <k> <v>",
    "setex <k> <ttl> <v>",
    "psetex <k> <ttl> <v>",
    "getset <k> <v>",
    "getdel <k>",
    "getex <k>",
    "getex <k> persist|-",
    "getex <k> ex <ttl>",
    "mget <k> <k> <k>",
    "mset <k> <v> <k> <n>",
    "msetnx <k> <v> <k> <v>",
    "mset <k> <v> <k> <v> <k> <v> <k> <v> <k> <v>",
    "mset <k> <v> <k>",
    "incr <k>",
    "decr <k>",
    "incrby <k> <n>",
    "decrby <k> <n>",
    "incrbyfloat <k> <x>",
    "append <k> <v>",
    "strlen <k>",
    "getrange <k> <i> <i>",
    "substr <k> <i> <i>",
    "setrange <k> <o> <v>",
    "lcs <k> <k> len|-",
    "lcs <k> <k> idx withmatchlen|- len|-",
    "lcs <k> <k> idx minmatchlen 2|x withmatchlen|-",
    "setbit <k> <o> 0|1|2",
    "getbit <k> <o>",
    "bitcount <k>",
    "bitcount <k> <i> <i> bit|byte|-",
    "bitpos <k> 0|1",
    "bitpos <k> 0|1 <i>",
    "bitpos <k> 0|1 <i> <i> bit|byte|-",
    "bitop and|or|xor <k> <k> <k>",
    "bitop not <k> <k>",
    "bitfield <k> get <b> <o>",
    "bitfield <k> set <b> <o> <n> get <b> #1",
    "bitfield_ro <k> get <b> <o>",
    "bitfield <k> overflow wrap|sat|fail incrby <b> <o> <n> incrby <b> <o> 7",
];

const KEYS: &[&str] = &[
    "del <k> <k>",
    "unlink <k>",
    "exists <k> <k> <k>",
    "touch <k> <k>",
    "type <k>",
    "expire <k> <ttl> nx|xx|gt|lt|-|-",
    "pexpire <k> <ttl>",
    "expireat <k> 33177117420 gt|lt|-",
    "pexpireat <k> 33177117420123",
    "expire <k> -1",
    "ttl <k>",
    "pttl <k>",
    "expiretime <k>",
    "pexpiretime <k>",
    "persist <k>",
    "keys *",
    "keys <g>",
    "dbsize",
    "rename <k> <k>",
    "renamenx <k> <k>",
    "copy <k> <k> replace|-",
    "copy <k> <k> db 1",
    "move <k> 1",
    "select 1|0|0|0|16|x",
    "flushdb",
    "scan 0 count 1000 match|match <g>",
    "scan 0 count 1000 type <t>",
    "scan 0 count 1000",
    "ping",
    "ping <v>",
    "echo <v>",
    "get",
    "set <k>",
    "nosuchcommand <k> <v>",
    "object|client nosuchsubcommand <k>",
    "object refcount <k>",
    "object encoding|refcount nosuchkey",
    "restore <k> 0 <v>",
    "restore <k> <n> <v> replace|absttl|nosuch|-",
    "restore <k> 0 <v> replace idletime|freq -1|300|x",
    "dump nosuchkey",
    "swapdb 0 1",
    "swapdb 0|1|16|x 0|1|99|x",
    "sort <k> alpha desc|asc|-",
    "sort <k>",
    "sort_ro <k> limit <i> <i> alpha",
    "sort <k> by <k> get # get <k>",
    "sort <k> by w_* get # get *->m1 get w_* alpha|-",
    "sort <k> by *->f desc|- store <k>",
    "sort_ro <k> alpha store <k>",
    "sort <k> alpha store <k>",
    "sort <k> get nosuch* alpha store <k>",
    "mset w_v1 3 w_v2 1 w_v3 2 w_m1 7 w_m2 -1",
];

const HASHES: &[&str] = &[
    "hset <k> <m> <v>",
    "hset <k> <m> <n> <m> <v>",
    "hset <k> <m>",
    "hmset <k> <m> <v>",
    "hsetnx <k> <m> <v>",
    "hget <k> <m>",
    "hmget <k> <m> <m> <m>",
    "hdel <k> <m> <m>",
    "hlen <k>",
    "hstrlen <k> <m>",
    "hexists <k> <m>",
    "hkeys <k>",
    "hvals <k>",
    "hgetall <k>",
    "hincrby <k> <m> <n>",
    "hincrbyfloat <k> <m> <x>",
    "hscan <k> 0 count 1000",
    "hrandfield <k> 1000",
];

const LISTS: &[&str] = &[
    "lpush <k> <v> <v>",
    "rpush <k> <v> <v> <n>",
    "lpushx <k> <v>",
    "rpushx <k> <v> <v>",
    "lpop <k>",
    "rpop <k>",
    "lpop <k> <o>",
    "rpop <k> 2",
    "llen <k>",
    "lindex <k> <i>",
    "lset <k> <i> <v>",
    "lrange <k> <i> <i>",
    "lrange <k> 0 -1",
    "ltrim <k> <i> <i>",
    "linsert <k> before|after|beside <v> <v>",
    "lrem <k> <i> <v>",
    "lpos <k> <v>",
    "lpos <k> <v> rank <i> count <o>",
    "lpos <k> <v> maxlen 3 rank -1|1|2",
    "lmove <k> <k> left|right left|right",
    "rpoplpush <k> <k>",
    "lmpop 2 <k> <k> left|right count 2|-",
    "lmpop 2 <k> <k> left|right",
];

const SETS: &[&str] = &[
    "sadd <k> <m> <m> <m>",
    "srem <k> <m> <m>",
    "scard <k>",
    "sismember <k> <m>",
    "smismember <k> <m> <m>",
    "smembers <k>",
    "smove <k> <k> <m>",
    "sinter <k> <k>",
    "sunion <k> <k> <k>",
    "sdiff <k> <k> <k>",
    "sinterstore <k> <k> <k>",
    "sunionstore <k> <k> <k>",
    "sdiffstore <k> <k> <k>",
    "sintercard 2 <k> <k>",
    "sintercard 2 <k> <k> limit <o>",
    "srandmember <k> 1000",
    "spop <k> 1000",
    "sscan <k> 0 count 1000",
];

const ZSETS: &[&str] = &[
    "zadd lex 0 <z> 0 <z> 0 <z>",
    "zadd lex 0 <z> 0 <z>",
    "zadd <k> <s> <z> <s> <z>",
    "zadd <k> nx|xx|gt|lt|- ch|- <s> <z> <s> <z>",
    "zadd <k> nx|xx|gt|lt|- incr <s> <z>",
    "zadd <k> <s> <z> <s>",
    "zincrby <k> <s> <z>",
    "zrem <k> <z> <z>",
    "zcard <k>",
    "zscore <k> <z>",
    "zmscore <k> <z> <z>",
    "zrank|zrevrank <k> <z>",
    "zrange <k> <i> <i> rev|- withscores|-",
    "zrange <k> <e> <e> byscore rev|- withscores|-",
    "zrange <k> <e> <e> byscore limit <i> <i>",
    "zrange lex <l> <l> bylex rev|-",
    "zrange lex <l> <l> bylex limit 0|1 2|-1",
    "zrange <k> 0 -1 limit 0 1",
    "zrevrange <k> <i> <i> withscores|-",
    "zrangebyscore|zrevrangebyscore <k> <e> <e> withscores|-",
    "zrangebyscore|zrevrangebyscore <k> <e> <e> limit <i> <i>",
    "zrangebylex|zrevrangebylex lex <l> <l>",
    "zrangestore <k> <k> 0 -1 rev|-",
    "zrangestore <k> <k> <e> <e> byscore",
    "zcount <k> <e> <e>",
    "zlexcount lex <l> <l>",
    "zremrangebyrank <k> <i> <i>",
    "zremrangebyscore <k> <e> <e>",
    "zremrangebylex lex <l> <l>",
    "zpopmin|zpopmax <k>",
    "zpopmin|zpopmax <k> <o>",
    "zmpop 2 <k> <k> min|max count 2|-",
    "zunion|zinter 2 <k> <k> withscores|-",
    "zunion|zinter 3 <k> <k> <k> weights <s> <s> <s> withscores",
    "zunion|zinter 2 <k> <k> aggregate sum|min|max|avg withscores|-",
    "zdiff 2 <k> <k> withscores|weights|-",
    "zunionstore|zinterstore <k> 2 <k> <k> weights <s> <s> aggregate sum|min|max",
    "zunionstore|zinterstore|zdiffstore <k> 2 <k> <k> withscores|-|-|-",
    "zunion|zinter|zdiff|zintercard <o> <k>",
    "zunionstore <k> <o> <k>",
    "zintercard 2 <k> <k> limit <o>",
    "zintercard 2 <k> <k>",
    "zrandmember <k> 1000",
    "zscan <k> 0 count 1000",
];

const TRANSACTIONS: &[&str] =
    &["multi", "multi", "exec", "exec", "exec", "discard", "watch <k>", "watch <k> <k>", "unwatch"];

/// A random argument, as a template asks for it.
fn word(kind: &str, chance: &mut Chance) -> Vec<u8> {
    let long = |byte: u8, length| vec![byte; length];
    match kind {
        "<k>" => match chance.below(12) {
            0 => long(b'K', 501),
            1 => Vec::new(),
            2 => b"17".to_vec(),
            key => format!("key{}", key % 5).into_bytes(),
        },
        "<m>" => match chance.below(12) {
            0 => long(b'M', 1_001),
            1 => [long(b'M', 1_900), vec![b'0' + chance.below(3) as u8]].concat(),
            2 => long(0, 600),
            3 => chance.pick(&["", "0", "-1", "007", "1.5"]).as_bytes().to_vec(),
            member => format!("m{}", member % 6).into_bytes(),
        },
        // Of those that share their first 1,000 bytes only one: their order is an exception.
        "<z>" => match chance.below(10) {
            0 => long(b'M', 1_001),
            member => format!("m{}", member % 6).into_bytes(),
        },
        "<v>" => match chance.below(8) {
            0 => chance
                .pick(&["", "10", "-3", "3.25", "9223372036854775807", " 1", "abc\r\n\0def"])
                .as_bytes()
                .to_vec(),
            1 => long(b'v', 3_000),
            value => format!("v{value}").into_bytes(),
        },
        "<n>" => chance
            .pick(&[
                "0",
                "1",
                "-1",
                "7",
                "100",
                "9223372036854775807",
                "-9223372036854775808",
                "1.5",
                "x",
                "01",
            ])
            .as_bytes()
            .to_vec(),
        "<x>" => chance.pick(&["1", "0.5", "-0.25", "10.125", "3", "x", "inf", "1e2"]).as_bytes().to_vec(),
        "<i>" => chance.pick(&["0", "1", "2", "-1", "-2", "5", "-9", "100", "x"]).as_bytes().to_vec(),
        "<o>" => chance.pick(&["0", "1", "2", "3", "9", "-1", "40", "x"]).as_bytes().to_vec(),
        "<b>" => chance.pick(&["u8", "i8", "u4", "i5", "u63", "i64", "u64", "i65", "x"]).as_bytes().to_vec(),
        "<g>" => chance.pick(&["k*", "key?", "key[0-2]", "*1*", "[^k]*", "\\k*", "17"]).as_bytes().to_vec(),
        // Not `none`, which is what Redis finds of a key that has expired and is not yet removed.
        "<t>" => chance.pick(&["string", "hash", "list", "set", "zset", "nosuchtype"]).as_bytes().to_vec(),
        // Not minus zero, which Redis keeps or loses by the encoding of the set.
        "<s>" => chance
            .pick(&["1", "2", "2", "-1.5", "0", "3.25", "inf", "-inf", "1e300", "0.1", "x", "nan"])
            .as_bytes()
            .to_vec(),
        "<e>" => {
            chance.pick(&["-inf", "+inf", "0", "(1", "2", "(2", "-1.5", "(inf", "x"]).as_bytes().to_vec()
        }
        "<l>" => chance.pick(&["-", "+", "[m1", "(m1", "[m3", "(m4", "[", "(007", "m"]).as_bytes().to_vec(),
        "<ttl>" => chance
            .pick(&["100000", "200000", "300000000", "0", "-5", "x", "9223372036854775807"])
            .as_bytes()
            .to_vec(),
        other => other.as_bytes().to_vec(),
    }
}

fn command(template: &str, chance: &mut Chance) -> Vec<Vec<u8>> {
    let mut words = Vec::new();
    for part in template.split(' ') {
        let part = if part.contains('|') { chance.pick(&part.split('|').collect::<Vec<_>>()) } else { part };
        if part != "-" {
            words.push(word(part, chance));
        }
    }
    words
}

/// Without minus zero, which Redis keeps or loses by the encoding of the set.
fn without_minus_zero(answer: Answer) -> Answer {
    match answer {
        Answer::Bulk(text) if text == b"-0" => Answer::Bulk(b"0".to_vec()),
        Answer::Array(elements) => Answer::Array(elements.into_iter().map(without_minus_zero).collect()),
        other => other,
    }
}

/// The command's name, and for EXEC those of what was queued, tell how replies are compared.
fn normal(name: &str, answer: Answer) -> Answer {
    let sorted = |mut elements: Vec<Answer>| {
        elements.sort_by_key(|element| format!("{element:?}"));
        elements
    };
    let answer = if name.starts_with('z') { without_minus_zero(answer) } else { answer };
    match (name, answer) {
        (
            "keys" | "zrandmember" | "hkeys" | "hvals" | "smembers" | "sinter" | "sunion" | "sdiff"
            | "srandmember" | "spop" | "hrandfield",
            Answer::Array(elements),
        ) => Answer::Array(sorted(elements)),
        (_, Answer::Set(elements)) => Answer::Set(sorted(elements)),
        ("hgetall", Answer::Array(pairs) | Answer::Map(pairs)) => {
            let pairs = pairs.chunks(2).map(|pair| Answer::Array(pair.to_vec())).collect();
            Answer::Array(sorted(pairs))
        }
        ("scan" | "sscan", Answer::Array(mut parts)) => {
            if let Some(Answer::Array(elements)) = parts.pop() {
                parts.push(Answer::Array(sorted(elements)));
            }
            Answer::Array(parts)
        }
        ("hscan" | "zscan", Answer::Array(mut parts)) => {
            if let Some(Answer::Array(pairs)) = parts.pop() {
                let pairs = pairs.chunks(2).map(|pair| Answer::Array(pair.to_vec())).collect();
                parts.push(Answer::Array(sorted(pairs)));
            }
            Answer::Array(parts)
        }
        // The clock runs while both are asked.
        ("ttl", Answer::Integer(seconds)) if seconds > 0 => Answer::Integer((seconds + 50) / 100),
        ("pttl", Answer::Integer(ms)) if ms > 0 => Answer::Integer((ms + 50_000) / 100_000),
        ("expiretime", Answer::Integer(time)) if time > 0 => Answer::Integer((time + 500) / 1_000),
        ("pexpiretime", Answer::Integer(time)) if time > 0 => Answer::Integer((time + 500_000) / 1_000_000),
        (_, answer) => answer,
    }
}

/// Differences that are meant, by the command's name; each stands in docs/guide/from-redis.md.
fn excused(name: &str, is_queued: bool, ours: &Answer, theirs: &Answer) -> bool {
    match name {
        // Sums of decimals are exact here, those of Redis are rounded to a long double.
        "incrbyfloat" | "hincrbyfloat" => {
            matches!((ours, theirs), (Answer::Bulk(ours), Answer::Bulk(theirs)) if near(ours, theirs))
        }
        // In a transaction, where it cannot be asked again.
        "dbsize" if is_queued => {
            matches!((ours, theirs), (Answer::Integer(_), Answer::Integer(_)))
        }
        // Not counted, not noted: an error says so. No value is shared.
        "object" => matches!((ours, theirs), (Answer::Error(_) | Answer::Integer(1), Answer::Integer(_))),
        // What SORT leaves unsorted has the order of our tree, or of their hash table.
        "sort" | "sort_ro" => {
            matches!((ours, theirs), (Answer::Array(ours), Answer::Array(theirs)) if ours.len() == theirs.len())
        }
        _ => false,
    }
}

fn near(left: &[u8], right: &[u8]) -> bool {
    let number = |text: &[u8]| String::from_utf8_lossy(text).parse::<f64>().unwrap_or(f64::NAN);
    (number(left) - number(right)).abs() <= 1e-9 * number(right).abs()
}

/// A client of both servers.
struct Pair {
    ours: Client,
    theirs: Client,
    /// Names of the commands behind MULTI.
    queued: Vec<String>,
}

/// What came of one command.
enum Verdict {
    Equal,
    /// A documented exception: what follows need not be equal, so the sequence ends.
    Excused,
    Differs(Answer, Answer),
}

impl Pair {
    fn call(&mut self, words: &[Vec<u8>]) -> Verdict {
        let name = String::from_utf8_lossy(&words[0]).into_owned();
        let (ours, theirs) = (self.ours.call(words), self.theirs.call(words));
        if theirs == Answer::Simple(b"QUEUED".to_vec()) {
            self.queued.push(name.clone());
        }
        let queued =
            if matches!(&*name, "exec" | "discard") { std::mem::take(&mut self.queued) } else { Vec::new() };
        match (&*name, &ours, &theirs) {
            ("exec", Answer::Array(ours), Answer::Array(theirs)) if ours.len() == theirs.len() => {
                for (name, (ours, theirs)) in queued.iter().zip(ours.iter().zip(theirs)) {
                    match judge(name, true, ours.clone(), theirs.clone()) {
                        Verdict::Equal => {}
                        // What HVALS behind HINCRBYFLOAT answers need not be equal either.
                        Verdict::Excused if name.ends_with("incrbyfloat") => return Verdict::Excused,
                        Verdict::Excused => {}
                        differs => return differs,
                    }
                }
                Verdict::Equal
            }
            // WATCH looks at what keys hold here, and at who wrote to them there.
            ("exec", Answer::Array(_), Answer::Null) => Verdict::Excused,
            _ if name == "dbsize" => self.judge_size(ours, theirs),
            _ => judge(&name, false, ours, theirs),
        }
    }

    /// Keys that have expired count until they are removed, which both servers do in a moment of their own.
    fn judge_size(&mut self, mut ours: Answer, mut theirs: Answer) -> Verdict {
        let deadline = Instant::now() + Duration::from_secs(10);
        while ours != theirs && Instant::now() < deadline {
            (ours, theirs) = (self.ours.line("dbsize"), self.theirs.line("dbsize"));
        }
        judge("dbsize", false, ours, theirs)
    }
}

fn judge(name: &str, is_queued: bool, ours: Answer, theirs: Answer) -> Verdict {
    let (ours, theirs) = (normal(name, ours), normal(name, theirs));
    if ours == theirs {
        Verdict::Equal
    } else if excused(name, is_queued, &ours, &theirs) {
        Verdict::Excused
    } else {
        Verdict::Differs(ours, theirs)
    }
}

fn shown(words: &[Vec<u8>]) -> String {
    let short = |word: &Vec<u8>| {
        let text = word[..word.len().min(40)].escape_ascii().to_string();
        if word.len() > 40 {
            format!("{text}...({})", word.len())
        } else {
            format!("\"{text}\"")
        }
    };
    words.iter().map(short).collect::<Vec<_>>().join(" ")
}

/// A reply, for people.
fn told(answer: &Answer) -> String {
    let text = |bytes: &Vec<u8>| bytes[..bytes.len().min(120)].escape_ascii().to_string();
    match answer {
        Answer::Simple(bytes) => format!("+{}", text(bytes)),
        Answer::Error(bytes) => format!("-{}", text(bytes)),
        Answer::Bulk(bytes) => format!("\"{}\"", text(bytes)),
        Answer::Array(all) => format!("[{}]", all.iter().map(told).collect::<Vec<_>>().join(", ")),
        Answer::Set(all) => format!("{{{}}}", all.iter().map(told).collect::<Vec<_>>().join(", ")),
        other => format!("{other:?}"),
    }
}

/// One sequence; how many commands, or what differed.
fn sequence(ours: &Ours, redis: &Redis, seed: u64) -> Result<u64, String> {
    let mut chance = Chance(seed);
    let connect = || Pair {
        ours: Client::connect(&ours.socket),
        theirs: Client::connect(&redis.socket),
        queued: Vec::new(),
    };
    let mut pairs = [connect(), connect()];
    let mut setup: Vec<String> = vec!["flushall".to_owned()];
    if chance.below(2) == 0 {
        setup.push("hello 3".to_owned());
    }
    for pair in &mut pairs {
        for line in &setup {
            pair.ours.line(line);
            pair.theirs.line(line);
        }
    }
    // A few kinds at a time, so that keys live long enough to be changed in many ways.
    let groups: [&[&str]; 5] = [STRINGS, HASHES, LISTS, SETS, ZSETS];
    let favourite = groups[chance.below(groups.len() as u64) as usize];
    let (mut history, mut count) = (Vec::new(), 0);
    for _ in 0..80 {
        let group = match chance.below(20) {
            0..=11 => favourite,
            12..=15 => KEYS,
            16 => TRANSACTIONS,
            _ => groups[chance.below(groups.len() as u64) as usize],
        };
        let words = command(chance.pick(group), &mut chance);
        let client = usize::from(chance.below(4) == 0);
        history.push(format!("{client}: {}", shown(&words)));
        count += 1;
        match pairs[client].call(&words) {
            Verdict::Equal => {}
            Verdict::Excused => return Ok(count),
            Verdict::Differs(ours, theirs) => {
                let history = history.join("\n");
                // What is there then, since a command before it may have done something else than it said.
                let there = |client: &mut Client| told(&client.line("keys *"));
                let keys = [there(&mut pairs[client].ours), there(&mut pairs[client].theirs)];
                return Err(format!(
                    "PERILUNE_SEED={seed}\n{history}\nkeys of ours:   {}\nkeys of theirs: {}\nours:   {}\ntheirs: {}",
                    keys[0],
                    keys[1],
                    told(&ours),
                    told(&theirs)
                ));
            }
        }
    }
    Ok(count)
}

fn number(variable: &str, otherwise: u64) -> u64 {
    match env::var(variable) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{variable} is a number, not `{text}`")),
        Err(_) => otherwise,
    }
}

#[test]
fn replies_are_those_of_redis() {
    let place = Place::new();
    let (ours, redis) =
        (Ours::start(&place, Settings { threads: 2, ..Settings::default() }), Redis::start(&place));
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64);
    let seed = number("PERILUNE_SEED", now);
    let sequences = number("PERILUNE_SEQUENCES", 150);
    let (mut commands, mut differences) = (0, Vec::new());
    for index in 0..sequences {
        match sequence(&ours, &redis, seed.wrapping_add(index)) {
            Ok(count) => commands += count,
            Err(difference) => differences.push(difference),
        }
    }
    if let Some(first) = differences.first() {
        // The first in full; of the others the command and the two replies.
        let short = |text: &String| {
            let mut lines: Vec<_> = text.lines().rev().take(3).collect();
            lines.reverse();
            lines.join("\n")
        };
        let others: Vec<_> = differences.iter().skip(1).take(40).map(short).collect();
        panic!("{} of {sequences} sequences differ\n{first}\n\n{}", differences.len(), others.join("\n\n"));
    }
    println!("compare: {sequences} sequences, {commands} commands, no difference; seed {seed}");
}
