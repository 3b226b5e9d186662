//! Dumps that a real redis-server has written, imported: every encoding, and every byte of damage.

use std::fs;
use std::io::Cursor;
use std::time::{Duration, Instant};

use crate::peer::{Client, Ours, Place, Redis};
use perilune_redis::{import_rdb, ImportError, Settings, Streams};
use perilune_resp::Answer;

/// Commands that make the same key in as many encodings as there are.
fn fill(client: &mut Client, large: bool) {
    let sizes: &[usize] = if large { &[3, 700] } else { &[3] };
    let long = "long".repeat(if large { 5_000 } else { 10 });
    for &size in sizes {
        let numbers = (0..size).map(|number| (number * 7_919 % 100_003).to_string());
        let words = (0..size).map(|number| match number % 7 {
            0 => format!("-{number}"),
            1 => format!("{}", 1_i64 << (number % 63)),
            2 => format!("word {number}").repeat(1 + number % 30),
            3 => String::new(),
            _ => format!("element:{number}"),
        });
        let (numbers, words): (Vec<String>, Vec<String>) = (numbers.collect(), words.collect());
        let call = |client: &mut Client, command: &str, key: String, rest: &[String]| {
            let head = [command.to_owned(), key];
            let answer = client.call(head.iter().chain(rest));
            assert!(!answer.is_error(), "{command}: {answer:?}");
        };
        call(client, "RPUSH", format!("list:{size}"), &words);
        call(client, "RPUSH", format!("list:long:{size}"), &[words.clone(), vec![long.clone()]].concat());
        call(client, "SADD", format!("intset:{size}"), &numbers);
        call(client, "SADD", format!("set:{size}"), &words);
        let pairs: Vec<String> =
            numbers.iter().zip(&words).flat_map(|(number, word)| [number.clone(), word.clone()]).collect();
        call(client, "HSET", format!("hash:{size}"), &pairs);
        let scored = numbers.iter().flat_map(|number| [format!("{number}.25"), format!("member {number}")]);
        call(client, "ZADD", format!("zset:{size}"), &scored.collect::<Vec<_>>());
    }
    client.line("zadd infinite -inf low inf high 3 three");
    client.line("sadd wide 70000 -9000000000000000000 1");
    for text in ["0", "-129", "40000", "-2147483648", "9223372036854775807", "", "text"] {
        client.call(["SET", &format!("string:{text}"), text]);
    }
    client.call(["SET", "compressed", &long]);
    client.call(["SET", "expires", "later", "EX", "100000"]);
    client.call([b"SET", &b"\0\x01\xff"[..], b"\r\n\0"]);
    client.line("hset expiring f v");
    client.line("pexpire expiring 100000000");
    client.line("set gone x px 1");
    client.line("select 5");
    client.line("set elsewhere 5");
    client.line("select 0");
}

/// The dump that the server writes.
fn dump(redis: &Redis, place: &Place) -> Vec<u8> {
    let mut client = Client::connect(&redis.socket);
    assert_eq!(client.line("save"), Answer::Simple(b"OK".to_vec()));
    fs::read(place.path().join("dump.rdb")).expect("a dump")
}

fn sorted(answer: Answer) -> Answer {
    match answer {
        Answer::Array(mut elements) => {
            elements.sort_by_key(|element| format!("{element:?}"));
            Answer::Array(elements)
        }
        other => other,
    }
}

/// All that a key holds.
fn contents(client: &mut Client, key: &[u8]) -> Answer {
    let Answer::Simple(kind) = client.call([&b"TYPE"[..], key]) else { panic!("a type") };
    match &*kind {
        b"string" => client.call([&b"GET"[..], key]),
        b"list" => client.call([&b"LRANGE"[..], key, b"0", b"-1"]),
        b"set" => sorted(client.call([&b"SMEMBERS"[..], key])),
        b"zset" => client.call([&b"ZRANGE"[..], key, b"0", b"-1", b"WITHSCORES"]),
        b"hash" => {
            let fields = client.call([&b"HKEYS"[..], key]);
            Answer::Array(vec![sorted(fields), sorted(client.call([&b"HVALS"[..], key]))])
        }
        other => panic!("{}", other.escape_ascii()),
    }
}

#[test]
fn dumps_of_redis_become_the_same_keys() {
    let place = Place::new();
    let (ours, redis) =
        (Ours::start(&place, Settings { threads: 1, ..Settings::default() }), Redis::start(&place));
    let (mut here, mut there) = (Client::connect(&ours.socket), Client::connect(&redis.socket));
    // What lies there is replaced.
    here.line("rpush string:0 old");
    for encoding in ["compact", "large", "uncompressed"] {
        let limit = if encoding == "large" { "0" } else { "128" };
        for name in ["hash-max-listpack-entries", "zset-max-listpack-entries", "set-max-intset-entries"] {
            there.line(&format!("config set {name} {limit}"));
        }
        there.line(&format!(
            "config set rdbcompression {}",
            if encoding == "uncompressed" { "no" } else { "yes" }
        ));
        there.line("flushall");
        fill(&mut there, true);
        let bytes = dump(&redis, &place);
        // All of it may have taken less than the millisecond that the key `gone` has to live.
        let expired = Instant::now() + Duration::from_millis(5);
        while Instant::now() < expired {
            std::thread::yield_now();
        }
        let mut reports = 0;
        let done = import_rdb(&ours.database, Cursor::new(&bytes), Streams::Refused, |_| reports += 1)
            .expect("a good dump");
        assert_eq!(done.bytes, bytes.len() as u64);
        let Answer::Array(keys) = there.line("keys *") else { panic!("keys") };
        assert_eq!(done.keys, keys.len() as u64 + 1, "{encoding}");
        for key in keys {
            let Answer::Bulk(key) = key else { panic!("a key") };
            assert_eq!(contents(&mut here, &key), contents(&mut there, &key), "{}", key.escape_ascii());
        }
        assert_eq!(here.line("exists gone"), Answer::Integer(0));
        for key in ["expires", "expiring"] {
            let line = format!("pexpiretime {key}");
            assert_eq!(here.line(&line), there.line(&line));
        }
        here.line("select 5");
        assert_eq!(here.line("get elsewhere"), Answer::Bulk(b"5".to_vec()));
        here.line("select 0");
        assert_eq!(here.line("dbsize"), Answer::Integer(done.keys as i64 - 1));
    }
}

/// Cut anywhere or with any byte changed, a dump is imported or refused, and no key is half there.
#[test]
fn damaged_dumps_are_refused() {
    let place = Place::new();
    let (ours, redis) =
        (Ours::start(&place, Settings { threads: 1, ..Settings::default() }), Redis::start(&place));
    fill(&mut Client::connect(&redis.socket), false);
    let bytes = dump(&redis, &place);
    for end in 0..bytes.len() {
        let outcome = import_rdb(&ours.database, Cursor::new(&bytes[..end]), Streams::Refused, |_| {});
        let Err(ImportError::Damaged { at, .. }) = outcome else { panic!("cut at {end}: {outcome:?}") };
        assert!(at <= end as u64);
    }
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x81;
        // The checksum sees every change, if nothing does before.
        assert!(
            import_rdb(&ours.database, Cursor::new(&damaged), Streams::Refused, |_| {}).is_err(),
            "byte {at}"
        );
    }
    // What claims much gets no memory for it.
    for claim in [
        &b"\x00\x01k\x81\xff\xff\xff\xff\xff\xff\xff\xff"[..],
        b"\x01\x01k\x81\x7f\xff\xff\xff\xff\xff\xff\xff",
    ] {
        let hostile = [b"REDIS0010", claim].concat();
        assert!(import_rdb(&ours.database, Cursor::new(&hostile), Streams::Refused, |_| {}).is_err());
    }
    let text = import_rdb(&ours.database, Cursor::new(b"not a dump"), Streams::Refused, |_| {})
        .expect_err("no dump")
        .to_string();
    assert!(text.contains("no dump of Redis"), "{text}");
}

#[test]
fn streams_are_refused_or_left_out() {
    let place = Place::new();
    let (ours, redis) =
        (Ours::start(&place, Settings { threads: 1, ..Settings::default() }), Redis::start(&place));
    let (mut here, mut there) = (Client::connect(&ours.socket), Client::connect(&redis.socket));
    let lines = [
        "set before 1",
        "xadd empty 1-1 f v",
        "xdel empty 1-1",
        "xadd read 1-1 f v g w",
        "xadd read 2-1 f other",
        "xgroup create read readers 0",
        "xgroup create read nobody $",
        "xreadgroup group readers ada count 1 streams read >",
        "xreadgroup group readers bob streams read >",
        "xreadgroup group readers bob streams read 0",
        "xack read readers 1-1",
        "pexpire read 100000000",
        "rpush behind 2 3",
    ];
    for line in lines {
        assert!(!there.line(line).is_error(), "{line}");
    }
    for number in 0..500 {
        there.call(["XADD", "long", &format!("{}-0", number + 1), "number", &number.to_string()]);
    }
    let bytes = dump(&redis, &place);
    let refused = import_rdb(&ours.database, Cursor::new(&bytes), Streams::Refused, |_| {});
    let text = refused.expect_err("a stream").to_string();
    assert!(text.contains("holds a stream (--without-streams"), "{text}");
    let done = import_rdb(&ours.database, Cursor::new(&bytes), Streams::LeftOut, |_| {}).expect("the rest");
    assert_eq!((done.keys, done.streams, done.bytes), (2, 3, bytes.len() as u64));
    assert_eq!(here.line("get before"), Answer::Bulk(b"1".to_vec()));
    assert_eq!(here.line("llen behind"), Answer::Integer(2));
    assert_eq!(here.line("dbsize"), Answer::Integer(2));
    // The key behind a stream that expires does not.
    assert_eq!(
        (here.line("ttl before"), here.line("ttl behind")),
        (Answer::Integer(-1), Answer::Integer(-1))
    );
    for end in 0..bytes.len() {
        let outcome = import_rdb(&ours.database, Cursor::new(&bytes[..end]), Streams::LeftOut, |_| {});
        assert!(matches!(outcome, Err(ImportError::Damaged { .. })), "cut at {end}: {outcome:?}");
    }
}
