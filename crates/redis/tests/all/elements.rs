//! Elements of hashes, lists, sets and sorted sets: what is done with one by one operation is what a transaction does, and
//! whoever works at the same key loses nothing.

use crate::peer::{Client, Ours, Place};
use perilune::{node, Cursor, Value};
use perilune_redis::Settings;
use perilune_resp::Answer;

fn settings() -> Settings {
    Settings { threads: 1, ..Settings::default() }
}

fn bulk(text: &str) -> Answer {
    Answer::Bulk(text.as_bytes().to_vec())
}

/// Numbers that look random and can be had again.
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }

    fn pick<'t>(&mut self, from: &[&'t str]) -> &'t str {
        from[self.below(from.len())]
    }
}

/// Commands, whose words are drawn: `<k>` a key, `<e>` an element, `<n>` an integer or something like it, `<s>` a score.
const COMMANDS: &[&str] = &[
    "hset <k> <e> <n>",
    "hset <k> <e> <e>",
    "hset <k> <e> <n> <e> <e>",
    "hset <k> <e> <n> <e>",
    "hset <k> <e> 1 <e> 2 <e> 3 <e> 4 <e> 5 <e> 6 <e> 7 <e> 8 <e> 9 <e> 10 <e> 11 <e> 12 <e> 13 <e> 14 <e> 15 <e> 16",
    "hset <k> <e> 1 <e> 2 <e> 3 <e> 4 <e> 5 <e> 6 <e> 7 <e> 8 <e> 9 <e> 10 <e> 11 <e> 12 <e> 13 <e> 14 <e> 15 <e> 16 <e> 17",
    "hsetnx <k> <e> <n>",
    "hincrby <k> <e> <n>",
    "hdel <k> <e>",
    "hdel <k> <e> <e>",
    "hget <k> <e>",
    "hexists <k> <e>",
    "hlen <k>",
    "sadd <k> <e>",
    "sadd <k> <e> <e>",
    "sadd <k> <e> <e> <e> <e> <e> <e> <e> <e> <e> <e> <e> <e> <e> <e> <e> <e>",
    "srem <k> <e>",
    "sismember <k> <e>",
    "scard <k>",
    "lpush <k> <e>",
    "rpush <k> <e>",
    "lpush <k> <e> <n> <e>",
    "rpush <k> <e> <n> <e>",
    "rpush <k> <n> <e> <e> <e> <e> <e> <e> <e> <e> <e> <e> <e> <e> <e> <e> <e> <e>",
    "lpushx <k> <e>",
    "rpushx <k> <n> <e>",
    "LPOP <k>",
    "rpop <k>",
    "rpop <k> 1",
    "llen <k>",
    "zadd <k> <s> <e>",
    "zadd <k> <s> <e>",
    "zadd <k> nx <s> <e>",
    "zincrby <k> <s> <e>",
    "zscore <k> <e>",
    "zrem <k> <e>",
    "zcard <k>",
    "zrange <k> 0 -1 withscores",
    "pexpire <k> 1000000",
    "persist <k>",
    "set <k> <n>",
    "del <k>",
];

fn command(chance: &mut Chance, long: &str) -> String {
    let words = chance.pick(COMMANDS).split(' ').map(|word| match word {
        // Of each kind some, which grow, and some that are used as any.
        "<k>" if chance.below(4) == 0 => format!("any{}", chance.below(3)),
        "<k>" if chance.below(40) == 0 => long.to_owned(),
        "<k>" => format!("k{}", chance.below(2)),
        "<e>" if chance.below(60) == 0 => long.repeat(1 + chance.below(3)),
        "<e>" => format!("e{}", chance.below(40)),
        "<n>" => chance.pick(&["1", "-7", "9223372036854775807", "12", "x", "1.5", "-0"]).to_owned(),
        "<s>" => chance.pick(&["0", "-0", "1", "2.5", "-1", "inf", "-inf", "nan", "x", "1e3"]).to_owned(),
        word => word.to_owned(),
    });
    words.collect::<Vec<_>>().join(" ")
}

/// All nodes of a database with their values, without the numbers of the database and of the time of expiries.
fn content(session: &mut perilune::Session, database: i64) -> perilune::Result<Vec<(Vec<u8>, Value)>> {
    let root = node!("^redis", database)?;
    let mut cursor = Cursor::subtree(&root);
    let mut all = Vec::new();
    while cursor.next(session)? {
        let node = cursor.node()?;
        let name = node.encoded()[root.encoded().len()..].to_vec();
        let expires = node.last()?.is_some_and(|last| last.is_empty());
        let value = cursor.value()?.map_or(Value::Null, |value| value.to_owned_value());
        all.push((name, if expires { Value::Null } else { value }));
    }
    Ok(all)
}

/// A command by itself may be one operation; behind MULTI it is part of a transaction, a one-shot one or, with what has no
/// keys, a whole one. Replies and nodes are the same.
#[test]
fn by_itself_and_in_a_transaction_a_command_does_the_same() -> perilune::Result<()> {
    let place = Place::new();
    let ours = Ours::start(&place, settings());
    let (mut alone, mut queued) = (Client::connect(&ours.socket), Client::connect(&ours.socket));
    queued.line("select 1");
    let mut session = ours.database.session()?;
    let long = "n".repeat(700);
    for seed in 1..=12 {
        let mut chance = Chance(seed);
        alone.line("flushdb");
        queued.line("flushdb");
        if seed % 3 == 0 {
            by_hand(&mut session)?;
        }
        for step in 0..1_500 {
            let line = command(&mut chance, &long);
            let reply = alone.line(&line);
            queued.line("multi");
            queued.line(&line);
            let is_whole = step % 2 == 1;
            if is_whole {
                queued.line("ping");
            }
            let Answer::Array(mut replies) = queued.line("exec") else { panic!("EXEC answers an array") };
            replies.truncate(1);
            assert_eq!(vec![reply], replies, "seed {seed}, step {step}: {line}");
            if step % 250 == 249 {
                let (left, right) = (content(&mut session, 0)?, content(&mut session, 1)?);
                assert!(left == right, "seed {seed}, after step {step}: the nodes differ");
            }
        }
    }
    Ok(())
}

/// Keys as programs may write them: uncounted, with numbers as values, with an expiry, with nodes below elements.
fn by_hand(session: &mut perilune::Session) -> perilune::Result<()> {
    for database in 0..2 {
        let key = |name: &str| node!("^redis", database, name);
        session.set(&key("any0")?.with("hash")?.with("e1")?, 5)?;
        session.set(&key("any1")?.with("list")?.with(-3)?, 1.5)?;
        session.set(&key("any1")?.with("list")?.with(-2)?.with("note")?, "a program's")?;
        session.set(&key("any2")?.with("zset")?, 1)?;
        session.set(&key("any2")?.with("zset")?.with("e1")?, 4)?;
        let place = [&0xC010_0000_0000_0000_u64.to_be_bytes()[..], b":e1"].concat();
        session.set(&key("any2")?.with("zset order")?.with(&*place)?, 4)?;
        session.set(&key("k0")?.with("set")?, 2)?;
        session.set(&key("k0")?.with("set")?.with("e1")?, true)?;
        session.set(&key("k0")?.with("set")?.with("e2")?, true)?;
        session.set(&key("k0")?.with("set")?.with("e2")?.with("below")?, 1)?;
    }
    Ok(())
}

/// The words of a command that writes `count` elements, those from `first` on.
fn many(name: &str, first: usize, count: usize) -> Vec<String> {
    let key = if name == "mset" { None } else { Some(format!("of {name}")) };
    let elements = (first..first + count).flat_map(|number| {
        // Their order is not that of the tree.
        let element = format!("e{}", number * 7_919 % 10_007);
        match name {
            "hset" | "mset" => vec![element, format!("value {number}")],
            "zadd" => vec![(number % 100).to_string(), element],
            _ => vec![element],
        }
    });
    [name.to_owned()].into_iter().chain(key).chain(elements).collect()
}

/// What a command of many elements writes: as one-shot transactions up to some thousand, as whole ones beyond; new ones,
/// then half of them again, in keys that grow over many leaves.
#[test]
fn many_elements_of_one_command_are_written() -> perilune::Result<()> {
    let place = Place::new();
    let ours = Ours::start(&place, settings());
    let mut client = Client::connect(&ours.socket);
    let mut session = ours.database.session()?;
    for (name, is_list) in
        [("hset", false), ("sadd", false), ("zadd", false), ("mset", false), ("rpush", true), ("lpush", true)]
    {
        let (mut end, mut length) = (0, 0);
        for count in [17, 100, 700, 1_024, 1_100, 3_000] {
            for (first, new) in [(end, count), (end + count / 2, count / 2)] {
                let reply = client.call(many(name, first, count));
                length += if is_list { count } else { new };
                let expected = match name {
                    "mset" => Answer::Simple(b"OK".to_vec()),
                    _ => Answer::Integer(if is_list { length } else { new } as i64),
                };
                assert_eq!(reply, expected, "{name} of {count} from {first}");
            }
            end += count + count / 2;
        }
        let (read, found) = match name {
            "hset" => ("hget|of hset|e7919", "value 1"),
            "sadd" => ("sismember|of sadd|e7919", "1"),
            "zadd" => ("zscore|of zadd|e7919", "1"),
            "mset" => ("get|e7919", "value 1"),
            "rpush" => ("lindex|of rpush|1", "e7919"),
            _ => ("lindex|of lpush|-2", "e7919"),
        };
        let answer = client.call(read.split('|'));
        let is_it = answer == bulk(found) || answer == Answer::Integer(1) && name == "sadd";
        assert!(is_it, "{read}: {answer:?}");
        if name != "mset" {
            let root = node!("^redis", 0, format!("of {name}"))?;
            let children = Cursor::subtree(&root).skip(&mut session, u64::MAX)?;
            let counts = u64::from(!is_list);
            let each = if name == "zadd" { 2 } else { 1 };
            assert_eq!(children, counts + each * length as u64, "{name}");
        }
    }
    Ok(())
}

/// Others see all elements of a command or none, though it writes many in several leaves.
#[test]
fn many_elements_of_one_command_appear_at_once() {
    let place = Place::new();
    let ours = Ours::start(&place, settings());
    let second = ours.beside(&place);
    let mut writer = Client::connect(&ours.socket);
    let fields = |round: usize| {
        let pairs =
            (0..400).flat_map(move |field| [format!("field {field:04}"), format!("of round {round:05}")]);
        ["hset", "h"].map(str::to_owned).into_iter().chain(pairs).collect::<Vec<_>>()
    };
    writer.call(fields(0));
    let is_over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut reader = Client::connect(&second.socket);
            let mut rounds = std::collections::BTreeSet::new();
            while !is_over.load(std::sync::atomic::Ordering::SeqCst) || rounds.len() < 2 {
                let Answer::Array(values) = reader.line("hvals h") else { panic!("HVALS answers an array") };
                assert!(
                    values.len() == 400 && values.iter().all(|value| *value == values[0]),
                    "halves of two states"
                );
                rounds.insert(format!("{:?}", values[0]));
            }
        });
        for round in 1..300 {
            assert_eq!(writer.call(fields(round)), Answer::Integer(0));
        }
        is_over.store(true, std::sync::atomic::Ordering::SeqCst);
    });
}

/// Clients of two servers add elements to the same keys and take them away: what is counted is what is there.
#[test]
fn elements_are_counted_whoever_adds_them() -> perilune::Result<()> {
    let place = Place::new();
    let ours = Ours::start(&place, settings());
    let second = ours.beside(&place);
    let sockets = [&ours.socket, &second.socket];
    let mut client = Client::connect(&ours.socket);
    // So that none of the keys goes.
    for seed in ["hset h seed 0", "sadd s seed", "zadd z 0 seed", "rpush l seed seed"] {
        client.line(seed);
    }
    let sums: Vec<[i64; 4]> = std::thread::scope(|scope| {
        let work = |thread: usize| {
            let mut client = Client::connect(sockets[thread % 2]);
            // How many fields, members, members and elements this one has added, less what it has taken away.
            let mut sums = [0; 4];
            for round in 0..400 {
                // NB: they meet at the same elements.
                let element = (round * 7 + thread * 3) % 60;
                let lines = [
                    (0, 1, format!("hset h f{element} {round}")),
                    (1, 1, format!("sadd s m{element}")),
                    (2, 1, format!("zadd z {} m{element}", round % 9)),
                    (0, -1, format!("hdel h f{}", (element + 30) % 60)),
                    (1, -1, format!("srem s m{}", (element + 30) % 60)),
                    (4, 1, format!("hincrby n f{} 1", element % 3)),
                    (4, 1, "zincrby z 1 seed".to_owned()),
                ];
                for (sum, sign, line) in lines {
                    match client.line(&line) {
                        Answer::Integer(count) if sum < 4 => sums[sum] += sign * count,
                        answer => assert!(!answer.is_error(), "{line}: {answer:?}"),
                    }
                }
                let end = if round % 3 == 0 { "l" } else { "r" };
                client.line(&format!("{end}push l x y"));
                assert!(matches!(client.line(&format!("{end}pop l")), Answer::Bulk(_)));
                sums[3] += 1;
            }
            sums
        };
        let threads: Vec<_> = (0..4).map(|thread| scope.spawn(move || work(thread))).collect();
        threads.into_iter().map(|thread| thread.join().expect("a client ends")).collect()
    });
    let added = |kind: usize| sums.iter().map(|sums| sums[kind]).sum::<i64>();
    for (line, list, kind, seeds) in [
        ("hlen h", "hkeys h", 0, 1),
        ("scard s", "smembers s", 1, 1),
        ("zcard z", "zrange z 0 -1", 2, 1),
        ("llen l", "lrange l 0 -1", 3, 2),
    ] {
        let count = added(kind) + seeds;
        assert_eq!(client.line(line), Answer::Integer(count), "{line}");
        let elements = match client.line(list) {
            Answer::Array(elements) | Answer::Set(elements) => elements.len(),
            other => panic!("{list}: {other:?}"),
        };
        assert_eq!(elements as i64, count, "{list}");
    }
    assert_eq!(client.line("zscore z seed"), bulk("1600"));
    let counted: i64 = match client.line("hvals n") {
        Answer::Array(values) => values.iter().map(number).sum(),
        other => panic!("hvals: {other:?}"),
    };
    assert_eq!(counted, 1_600);
    // Each member has one place in the order, with its score.
    assert_eq!(client.line("zcount z -inf +inf"), client.line("zcard z"));
    Ok(())
}

fn number(answer: &Answer) -> i64 {
    match answer {
        Answer::Bulk(text) => String::from_utf8_lossy(text).parse().expect("a number"),
        other => panic!("{other:?} is no number"),
    }
}
