//! `maxmemory`: what is refused beside redis-server, what is evicted by each policy, and that it stays within bounds.

use std::time::{Duration, Instant};

use crate::peer::{Client, Ours, Place, Redis, Text};
use perilune_redis::Settings;
use perilune_resp::Answer;

fn start(place: &Place) -> (Ours, Client) {
    let ours = Ours::start(place, Settings { threads: 1, ..Settings::default() });
    let client = Client::connect(&ours.socket);
    (ours, client)
}

fn ok() -> Answer {
    Answer::Simple(b"OK".to_vec())
}

fn figure(client: &mut Client, name: &str) -> u64 {
    let text = client.line("info").to_text();
    let found = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    found.and_then(|number| number.trim().parse().ok()).unwrap_or_else(|| panic!("{name} in {text}"))
}

/// Limits what is used to `room` bytes more than now.
fn limit(client: &mut Client, room: u64, policy: &str) -> u64 {
    let most = figure(client, "used_memory") + room;
    assert_eq!(client.line(&format!("config set maxmemory {most} maxmemory-policy {policy}")), ok());
    most
}

/// Sets keys to one value, a hundred in each pipeline.
fn set_all(client: &mut Client, keys: impl Iterator<Item = String>, value: &str) {
    let keys: Vec<String> = keys.collect();
    for some in keys.chunks(100) {
        let lines: String = some.iter().map(|key| format!("SET {key} {value}\r\n")).collect();
        client.send(lines.as_bytes());
        for key in some {
            assert_eq!(client.receive(), Some(ok()), "{key}");
        }
    }
}

/// What ours refuses without memory, a redis-server refuses.
#[test]
fn without_memory_is_refused_what_redis_refuses() {
    let place = Place::new();
    let (ours, mut here) = start(&place);
    let redis = Redis::start(&place);
    let mut there = Client::connect(&redis.socket);
    let (mut here_too, mut there_too) = (Client::connect(&ours.socket), Client::connect(&redis.socket));
    let scripts: [&[&[u8]]; 8] = [
        &[b"EVAL", b"return redis.call('set', KEYS[1], 'v')", b"1", b"k"],
        &[b"EVAL", b"return redis.pcall('set', KEYS[1], 'v').err", b"1", b"k"],
        &[b"EVAL", b"return redis.call('get', KEYS[1])", b"1", b"k"],
        // What has freed something may go on.
        &[b"EVAL", b"redis.call('del', 'x') return redis.call('set', KEYS[1], 'w')", b"1", b"k"],
        &[b"EVAL", b"#!lua\nreturn redis.call('get', KEYS[1])", b"1", b"k"],
        &[b"EVAL", b"#!lua flags=no-writes\nreturn redis.call('get', KEYS[1])", b"1", b"k"],
        &[b"EVAL", b"#!lua flags=allow-oom\nreturn redis.call('set', KEYS[1], 'x')", b"1", b"k"],
        &[b"GET", b"k"],
    ];
    let lines = [
        "set k v",
        "rpush l a",
        "multi",
        "set k w",
        "config set maxmemory 0",
        "set k v",
        "get k",
        "lpop l",
        "incr n",
        "del n",
        "multi",
        "set k w",
        "exec",
        "multi",
        "get k",
        "exec",
        "setrange k 1 x",
        "hset h f v",
        "expire k 100",
        "object freq k",
        "get k",
    ];
    for (at, line) in lines.iter().enumerate() {
        let own = |client: &mut Client, other: &mut Client| {
            // Behind MULTI the limit comes from another client.
            match at {
                4 => assert_eq!(other.line("config set maxmemory 1"), ok()),
                10 => assert_eq!(other.line("config set maxmemory 0"), ok()),
                12 => assert_eq!(other.line("config set maxmemory 1"), ok()),
                _ => {}
            }
            if at == 4 {
                return client.line("exec");
            }
            client.line(line)
        };
        let (ours, theirs) = (own(&mut here, &mut here_too), own(&mut there, &mut there_too));
        assert_eq!(ours, theirs, "{at}: {line}");
    }
    for script in scripts {
        let (ours, theirs) = (here.call(script).to_text(), there.call(script).to_text());
        // Which script and which line it was differs.
        let told = |text: &str| text.split(" script:").next().unwrap_or_default().to_owned();
        assert_eq!(told(&ours), told(&theirs), "{}", script[1].escape_ascii());
    }
}

/// Eight times as much is written as there is room for.
#[test]
fn keys_are_evicted_and_memory_stays_within_bounds() {
    const ROOM: u64 = 1 << 20;
    const KEYS: u64 = 8 * ROOM / 1_000;
    for policy in ["allkeys-random", "allkeys-lru", "allkeys-lfu"] {
        let place = Place::new();
        let (ours, mut client) = start(&place);
        let most = limit(&mut client, ROOM, policy);
        assert_eq!(client.line("config set notify-keyspace-events Ee"), ok());
        let mut listener = Client::connect(&ours.socket);
        listener.line("subscribe __keyevent@0__:evicted");
        let value = "x".repeat(1_000);
        set_all(&mut client, (0..KEYS).map(|number| format!("key:{number:06}")), &value);
        let (used, evicted) = (figure(&mut client, "used_memory"), figure(&mut client, "evicted_keys"));
        assert!(used < most + ROOM / 2, "{policy}: {used} of {most}");
        let Answer::Integer(left) = client.line("dbsize") else { panic!("a number") };
        assert_eq!(evicted + left as u64, KEYS, "{policy}");
        // Not all of it is gone either: a good half of the room is in use.
        assert!(left as u64 * 1_000 > ROOM / 3, "{policy}: {left} keys are left");
        let event = listener.receive().expect("an event");
        let Answer::Array(parts) = event else { panic!("a message") };
        assert_eq!(parts[1], Answer::Bulk(b"__keyevent@0__:evicted".to_vec()));
    }
}

/// FLUSHDB leaves entries of the index of expiries behind, and candidates in the pool: whoever wrote next was told that
/// there is no memory, though there were keys to evict.
#[test]
fn what_flushdb_has_left_is_no_reason_to_refuse() {
    for policy in ["volatile-ttl", "volatile-lru", "volatile-lfu", "volatile-random"] {
        let place = Place::new();
        let (_ours, mut client) = start(&place);
        let value = "x".repeat(500);
        let limited = format!("{value} EX 5000");
        set_all(&mut client, (0..3_000).map(|number| format!("old:{number}")), &limited);
        // Some are evicted, so that there is a pool.
        limit(&mut client, 0, policy);
        set_all(&mut client, (0..600).map(|number| format!("more:{number}")), &limited);
        let evicted = figure(&mut client, "evicted_keys");
        assert!(evicted > 0);
        assert_eq!(client.line("flushdb"), ok());
        assert_eq!(client.line("config set maxmemory 0"), ok());
        // They expire behind those that are gone; and nothing that is cleared is enough.
        set_all(&mut client, (0..500).map(|number| format!("new:{number}")), &format!("{value} EX 9000"));
        assert_eq!(client.line("config set maxmemory 1"), ok());
        set_all(&mut client, (0..50).map(|number| format!("last:{number}")), "v");
        assert!(figure(&mut client, "evicted_keys") > evicted);
    }
}

/// What is used often, or was a moment ago, stays; its neighbours go.
#[test]
fn a_lower_limit_evicts_at_once() {
    let place = Place::new();
    let (_ours, mut client) = start(&place);
    assert_eq!(client.line("set k v"), ok());
    assert_eq!(client.line("config set maxmemory-policy allkeys-lru maxmemory 1"), ok());
    assert_eq!(client.line("exists k"), Answer::Integer(0));
}

#[test]
fn what_is_used_stays() {
    const KEYS: usize = 1_000;
    for policy in ["allkeys-lru", "allkeys-lfu"] {
        let place = Place::new();
        let (_ours, mut client) = start(&place);
        assert_eq!(client.line(&format!("config set maxmemory-policy {policy}")), ok());
        let value = "x".repeat(1_000);
        let hot: Vec<String> = (0..KEYS).step_by(20).map(|number| format!("key:{number:06}")).collect();
        set_all(&mut client, (0..KEYS).map(|number| format!("key:{number:06}")), &value);
        let begun = Instant::now();
        if policy == "allkeys-lru" {
            while !matches!(client.line("object idletime key:000001"), Answer::Integer(2..)) {
                assert!(begun.elapsed() < Duration::from_secs(20), "the clock stands");
                std::thread::yield_now();
            }
        }
        let uses = if policy == "allkeys-lru" { 1 } else { 300 };
        for key in &hot {
            for _ in 0..uses {
                assert!(!client.line(&format!("get {key}")).is_error());
            }
        }
        let what = if policy == "allkeys-lru" { "object freq" } else { "object idletime" };
        assert!(client.line(&format!("{what} key:000000")).is_error());
        limit(&mut client, 0, policy);
        set_all(&mut client, (0..KEYS * 3 / 5).map(|number| format!("new:{number:06}")), &value);
        let there = |client: &mut Client, keys: &mut dyn Iterator<Item = String>| {
            keys.filter(|key| client.line(&format!("exists {key}")) == Answer::Integer(1)).count()
        };
        let stayed = there(&mut client, &mut hot.iter().cloned());
        let others = there(&mut client, &mut (0..KEYS).map(|number| format!("key:{number:06}")));
        assert!(others < KEYS * 9 / 10, "{policy}: {others} of {KEYS} are left");
        assert!(stayed > hot.len() * 9 / 10, "{policy}: {stayed} of {} are left", hot.len());
    }
}

/// Only what expires may go, with `volatile-ttl` what expires next; when there is no such key writes are refused.
/// What FLUSHDB has left in the index is not in the way.
#[test]
fn volatile_policies_evict_what_expires() {
    const KEYS: usize = 200;
    for policy in ["volatile-ttl", "volatile-lru", "volatile-lfu", "volatile-random"] {
        let place = Place::new();
        let (_ours, mut client) = start(&place);
        let value = "x".repeat(10_000);
        for number in 0..KEYS {
            client.line(&format!("set gone:{number} {value} ex 1000"));
        }
        client.line("flushdb");
        for number in 0..KEYS {
            let ttl = 10_000 + 100 * number;
            assert_eq!(client.line(&format!("set volatile:{number:06} {value} ex {ttl}")), ok());
            assert_eq!(client.line(&format!("set kept:{number:06} {value}")), ok());
        }
        limit(&mut client, 0, policy);
        let (mut written, mut compared) = (0, policy != "volatile-ttl");
        let refusal = loop {
            match client.line(&format!("set new:{written:06} {value}")) {
                answer if answer == ok() => written += 1,
                answer => break answer.to_text(),
            }
            assert!(written < 10 * KEYS, "{policy}: never full");
            if !compared && figure(&mut client, "evicted_keys") >= KEYS as u64 / 2 {
                let last = client.line(&format!("exists volatile:{:06}", KEYS - 1));
                let first = client.line("exists volatile:000000");
                assert_eq!((first, last), (Answer::Integer(0), Answer::Integer(1)));
                compared = true;
            }
        };
        assert!(compared, "what went first was not looked at");
        assert_eq!(refusal, "OOM command not allowed when used memory > 'maxmemory'.", "{policy}");
        assert_eq!(figure(&mut client, "evicted_keys"), KEYS as u64, "{policy}");
        assert_eq!(client.line("dbsize"), Answer::Integer((KEYS + written) as i64), "{policy}");
        // What is removed makes room at once.
        for number in 0..KEYS {
            client.line(&format!("del kept:{number:06}"));
        }
        assert_eq!(client.line("set new value"), ok(), "{policy}");
    }
}

/// As in Redis: of IDLETIME and FREQ counts what the policy counts.
#[test]
fn what_is_restored_may_have_been_used_before() {
    let place = Place::new();
    let ours = Ours::start(&place, Settings::default());
    let mut client = Client::connect(&ours.socket);
    client.line("set k v");
    let Answer::Bulk(dump) = client.line("dump k") else { panic!("no dump") };
    let restore = |client: &mut Client, option: &str, value: &str| {
        let words = [&b"restore"[..], b"k", b"0", &dump, b"replace", option.as_bytes(), value.as_bytes()];
        assert_eq!(client.call(words), Answer::Simple(b"OK".to_vec()), "{option}");
    };
    client.line("config set maxmemory-policy allkeys-lru");
    restore(&mut client, "idletime", "100000");
    assert!(matches!(client.line("object idletime k"), Answer::Integer(100_000..100_020)));
    restore(&mut client, "freq", "100");
    assert!(matches!(client.line("object idletime k"), Answer::Integer(0..20)));
    client.line("config set maxmemory-policy allkeys-lfu");
    restore(&mut client, "freq", "100");
    assert_eq!(client.line("object freq k"), Answer::Integer(100));
    // One that is refused changes nothing; in MULTI it is as alone.
    assert!(client.call([&b"restore"[..], b"k", b"0", &dump, b"freq", b"7"]).is_error());
    assert_eq!(client.line("object freq k"), Answer::Integer(100));
    client.line("multi");
    client.call([&b"restore"[..], b"k", b"0", &dump, b"replace", b"freq", b"50"]);
    client.line("exec");
    assert_eq!(client.line("object freq k"), Answer::Integer(50));
}
