//! Keys as wholes: DUMP and RESTORE, SWAPDB, and what COMMAND says of each command beside redis-server.

use std::time::{Duration, Instant};

use crate::peer::{Client, Ours, Place, Redis};
use perilune::node;
use perilune_redis::Settings;
use perilune_resp::Answer;

fn settings() -> Settings {
    Settings { threads: 1, ..Settings::default() }
}

fn ok() -> Answer {
    Answer::Simple(b"OK".to_vec())
}

/// A key of each kind, with names around every limit.
fn fill(client: &mut Client, length: usize) {
    let name = vec![b'n'; length];
    client.line("flushall");
    client.call([b"SET", &b"s"[..], &name]);
    client.call([b"RPUSH", &b"l"[..], &name, b"", b"x", &name]);
    client.call([b"HSET", &b"h"[..], &name, &name, b"7", b"seven", b"", b"empty"]);
    client.call([b"SADD", &b"S"[..], &name, b"7", b"", b"007"]);
    client.call([b"ZADD", &b"z"[..], b"-inf", &name, b"2.5", b"7", b"-1", b"", b"inf", b"last"]);
}

const READS: [&str; 6] =
    ["get s", "lrange l 0 -1", "hgetall h", "smembers S", "zrange z 0 -1 withscores", "zscore z 7"];

#[test]
fn what_is_dumped_is_restored() {
    let place = Place::new();
    let ours = Ours::start(&place, settings());
    let mut client = Client::connect(&ours.socket);
    for length in [1, 1_000, 1_900, 65_536] {
        fill(&mut client, length);
        let before = READS.map(|read| client.line(read));
        let long = vec![b'k'; length];
        for key in ["s", "l", "h", "S", "z"] {
            let Answer::Bulk(payload) = client.call([&b"DUMP"[..], key.as_bytes()]) else {
                panic!("a payload")
            };
            let refused = client.call([&b"RESTORE"[..], key.as_bytes(), b"0", &payload]);
            assert_eq!(refused, Answer::Error(b"BUSYKEY Target key name already exists.".to_vec()));
            let expires: &[&[u8]] = &[b"RESTORE", &long, b"100000", &payload, b"REPLACE", b"IDLETIME", b"5"];
            assert_eq!(client.call(expires), ok());
            assert!(matches!(client.call([&b"PTTL"[..], &long[..]]), Answer::Integer(1..=100_000)));
            assert_eq!(client.call([&b"RESTORE"[..], key.as_bytes(), b"0", &payload, b"REPLACE"]), ok());
            assert_eq!(client.call([&b"TTL"[..], key.as_bytes()]), Answer::Integer(-1));
            // Past its time a key is not made, and what was there is gone.
            assert_eq!(client.call([&b"RESTORE"[..], &long, b"1", &payload, b"REPLACE", b"ABSTTL"]), ok());
            assert_eq!(client.call([&b"EXISTS"[..], &long[..]]), Answer::Integer(0));
            let mut damaged = payload.clone();
            *damaged.last_mut().expect("bytes") ^= 1;
            assert!(client.call([&b"RESTORE"[..], b"new", b"0", &damaged]).is_error());
        }
        assert_eq!(READS.map(|read| client.line(read)), before, "{length}");
    }
}

/// The databases are exchanged, and keys expire where they are now.
#[test]
fn databases_are_swapped_with_their_expiries() -> perilune::Result<()> {
    let place = Place::new();
    let ours = Ours::start(&place, settings());
    let mut client = Client::connect(&ours.socket);
    fill(&mut client, 1_900);
    let before = READS.map(|read| client.line(read));
    client.line("set soon x px 300");
    client.line("select 3");
    client.line("set here 1");
    client.line("set later x ex 1000");
    assert_eq!(client.line("swapdb 0 3"), ok());
    assert_eq!(READS.map(|read| client.line(read)), before);
    client.line("select 0");
    let there = [Answer::Bulk(b"1".to_vec()), Answer::Bulk(b"x".to_vec()), Answer::Null];
    assert_eq!(client.line("mget here later s"), Answer::Array(there.to_vec()));
    assert!(matches!(client.line("ttl later"), Answer::Integer(990..=1_000)));
    // `soon` is swept from database 3 without anybody asking for it.
    let mut session = ours.database.session()?;
    let start = Instant::now();
    while session.data(&node!("^redis", 3, "soon")?)? != perilune::Data::Nothing {
        assert!(start.elapsed() < Duration::from_secs(20), "nobody sweeps");
        std::thread::yield_now();
    }
    Ok(())
}

fn rows(answer: &Answer) -> &[Answer] {
    match answer {
        Answer::Array(rows) => rows,
        other => panic!("{other:?}"),
    }
}

fn name_of(row: &[Answer]) -> &[u8] {
    match &row[0] {
        Answer::Bulk(name) => name,
        other => panic!("{other:?}"),
    }
}

/// Flags or categories, but what is said of loading, replicas and clusters, which means nothing here.
fn words(part: &Answer) -> Vec<String> {
    const OTHER: [&str; 9] = [
        "loading",
        "stale",
        "skip_monitor",
        "skip_slowlog",
        "asking",
        "sort_for_script",
        "allow_busy",
        "no_async_loading",
        "may_replicate",
    ];
    let (Answer::Array(words) | Answer::Set(words)) = part else { panic!("{part:?}") };
    let text = |word: &Answer| match word {
        Answer::Simple(text) => String::from_utf8_lossy(text).into_owned(),
        other => format!("{other:?}"),
    };
    let mut words: Vec<_> = words.iter().map(text).filter(|word| !OTHER.contains(&&**word)).collect();
    words.sort();
    words
}

/// Where key specifications find keys; what is done with them is told by words of our own.
fn places(part: &Answer) -> Vec<Vec<Answer>> {
    let is_place =
        |field: &&[Answer]| matches!(&field[0], Answer::Bulk(name) if name != b"flags" && name != b"notes");
    let places = |one: &Answer| match one {
        Answer::Array(fields) | Answer::Map(fields) => {
            fields.chunks(2).filter(is_place).map(|field| field[1].clone()).collect()
        }
        other => panic!("{other:?}"),
    };
    rows(part).iter().map(places).collect()
}

/// What belongs to an operator, or writes, does so among the words of a container as well.
fn compare_words(row: &[Answer], there: &mut Client) {
    for word in rows(&row[9]) {
        let word = rows(word);
        let theirs = there.call([&b"COMMAND"[..], b"INFO", name_of(word)]);
        let Answer::Array(theirs) = &rows(&theirs)[0] else { continue };
        let name = String::from_utf8_lossy(name_of(word));
        for matter in ["@admin", "@dangerous", "@write"] {
            let has = |row: &[Answer]| words(&row[6]).iter().any(|category| category == matter);
            // HELP harms nobody, and may belong to what its container does.
            assert!(name.ends_with("|help") || has(word) == has(theirs), "{matter} of {name}");
        }
    }
}

/// Of the commands that both have: where keys are; of those with keys also arity, flags, categories.
#[test]
fn command_says_what_redis_says() {
    let place = Place::new();
    let (ours, redis) = (Ours::start(&place, settings()), Redis::start(&place));
    let (mut here, mut there) = (Client::connect(&ours.socket), Client::connect(&redis.socket));
    let mut compared = 0;
    for row in rows(&here.line("command")) {
        let row = rows(row);
        let theirs = there.call([&b"COMMAND"[..], b"INFO", name_of(row)]);
        let Answer::Array(theirs) = &rows(&theirs)[0] else { continue };
        compare_words(row, &mut there);
        let (name, categories) = (String::from_utf8_lossy(name_of(row)), words(&row[6]));
        let is = |wanted: &str| categories.iter().any(|category| category == wanted);
        // Of containers Redis says it all of the words that follow.
        let contains = !rows(&theirs[9]).is_empty();
        // Even where the rest differs on purpose, ACL rules depend on where the keys are.
        if !contains && !is("@pubsub") && *name != *"object" && *name != *"memory" {
            assert_eq!(row[3..6], theirs[3..6], "keys of {name}");
            if *name != *"sort" && *name != *"sort_ro" {
                assert_eq!(places(&row[8]), places(&theirs[8]), "key specifications of {name}");
            }
        }
        if contains || !is("@read") && !is("@write") {
            continue;
        }
        compared += 1;
        assert_eq!(row[1], theirs[1], "arity of {name}");
        assert_eq!(words(&row[2]), words(&theirs[2]), "flags of {name}");
        assert_eq!(categories, words(&theirs[6]), "categories of {name}");
    }
    assert!(compared > 130, "only {compared} commands compared");
}

/// What is picked by chance is there, and everything is picked some time: also among names that crowd together.
#[test]
fn picks_find_everything() {
    let place = Place::new();
    let ours = Ours::start(&place, settings());
    let mut client = Client::connect(&ours.socket);
    let mut names: Vec<Vec<u8>> = (0..60).map(|number| format!("crowd:{number:07}").into_bytes()).collect();
    names.extend((0..20).map(|number| number.to_string().into_bytes()));
    names.extend([
        b"".to_vec(),
        b"alone".to_vec(),
        vec![0],
        vec![0xFF; 3],
        vec![b'x'; 1_900],
        vec![b'x'; 1_901],
    ]);
    for name in &names {
        client.call([&b"SADD"[..], b"set", name]);
        client.call([&b"HSET"[..], b"hash", name, b"v"]);
        client.call([&b"ZADD"[..], b"zset", b"1", name]);
        client.call([&b"SET"[..], name, b"v"]);
    }
    let keys: [&[u8]; 3] = [b"set", b"hash", b"zset"];
    for command in ["srandmember set", "hrandfield hash", "zrandmember zset", "randomkey"] {
        let mut missing: std::collections::BTreeSet<Vec<u8>> = names.iter().cloned().collect();
        for _ in 0..50_000 {
            let Answer::Bulk(name) = client.line(command) else { panic!("{command}") };
            assert!(names.contains(&name) || keys.contains(&&name[..]), "{command}: {}", name.escape_ascii());
            missing.remove(&name);
            if missing.is_empty() {
                break;
            }
        }
        assert!(
            missing.is_empty(),
            "{command} never answers {:?}",
            missing.iter().map(|name| name.escape_ascii().to_string()).collect::<Vec<_>>()
        );
    }
    let mut left: std::collections::BTreeSet<Vec<u8>> = names.iter().cloned().collect();
    while let Answer::Bulk(name) = client.line("spop set") {
        assert!(left.remove(&name), "{}", name.escape_ascii());
    }
    assert!(left.is_empty());
    assert_eq!(client.line("exists set"), Answer::Integer(0));
    assert_eq!(client.line("dbsize"), Answer::Integer(names.len() as i64 + 2));
}

#[test]
fn no_count_is_too_much_to_be_answered() {
    let place = Place::new();
    let (ours, redis) = (Ours::start(&place, settings()), Redis::start(&place));
    let (mut here, mut there) = (Client::connect(&ours.socket), Client::connect(&redis.socket));
    for client in [&mut here, &mut there] {
        for line in ["sadd set a", "hset hash f v", "zadd zset 1 m"] {
            assert_eq!(client.line(line), Answer::Integer(1));
        }
    }
    for (command, values) in
        [("srandmember set", ""), ("hrandfield hash", "withvalues"), ("zrandmember zset", "withscores")]
    {
        let counts = ["-9223372036854775808", "9223372036854775807", "9223372036854775808", "-2", "x"];
        for line in counts.map(|count| format!("{command} {count}")) {
            assert_eq!(here.line(&line), there.line(&line), "{line}");
        }
        // Redis begins with such an answer, and ends when memory does.
        for count in ["-9223372036854775807", "-4611686018427387904", "-16777217"] {
            assert!(here.line(&format!("{command} {count}")).is_error(), "{command} {count}");
        }
        if !values.is_empty() {
            let line = format!("{command} 9223372036854775807 {values}");
            assert_eq!(here.line(&line), there.line(&line), "{line}");
        }
    }
}
