//! One database, several servers and programs: data by node from outside, and what servers share.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use crate::peer::{Client, Ours, Place, Text};
use perilune::{node, Error, Session};
use perilune_redis::{Running, Settings};
use perilune_resp::Answer;

fn settings() -> Settings {
    Settings { threads: 1, ..Settings::default() }
}

fn bulk(text: &str) -> Answer {
    Answer::Bulk(text.as_bytes().to_vec())
}

fn bulks(texts: &[&str]) -> Answer {
    Answer::Array(texts.iter().map(|text| bulk(text)).collect())
}

/// The scheme of docs/format/redis.md, read and written by node.
#[test]
fn programs_and_clients_see_the_same() -> perilune::Result<()> {
    let place = Place::new();
    let ours = Ours::start(&place, settings());
    let mut client = Client::connect(&ours.socket);
    let mut session = ours.database.session()?;

    client.line("set greeting hello");
    assert_eq!(session.get_str(&node!("^redis", 0, "greeting")?)?, Some("hello"));
    session.set(&node!("^redis", 0, "greeting")?, 42)?;
    assert_eq!(client.line("incr greeting"), Answer::Integer(43));

    client.line("hset user name Ada born 1815");
    assert_eq!(session.get_str(&node!("^redis", 0, "user", "hash", "name")?)?, Some("Ada"));
    session.set(&node!("^redis", 0, "user", "hash", "died")?, 1852)?;
    session.increment(&node!("^redis", 0, "user", "hash")?, 1)?;
    assert_eq!(client.line("hlen user"), Answer::Integer(3));
    assert_eq!(client.line("hget user died"), bulk("1852"));

    for (number, job) in (5..).zip(["one", "two", "three"]) {
        session.set(&node!("^redis", 0, "jobs", "list", number)?, job)?;
    }
    assert_eq!(client.line("lrange jobs 0 -1"), bulks(&["one", "two", "three"]));
    assert_eq!(client.line("lpush jobs zero"), Answer::Integer(4));
    assert_eq!(session.get_str(&node!("^redis", 0, "jobs", "list", 4)?)?, Some("zero"));

    // A count that a program has left out is made by counting.
    session.set(&node!("^redis", 0, "colours", "set", "red")?, true)?;
    session.set(&node!("^redis", 0, "colours", "set", "blue")?, true)?;
    assert_eq!(client.line("sadd colours red green"), Answer::Integer(1));
    assert_eq!(client.line("scard colours"), Answer::Integer(3));

    client.line("zadd board 1.5 ann 3 ben");
    assert_eq!(
        session.get(&node!("^redis", 0, "board", "zset", "ann")?)?,
        Some(perilune::Value::Double(1.5))
    );
    Ok(())
}

/// The last element of a list takes the key along, with all that lies below it.
#[test]
fn a_list_goes_with_its_last_element() -> perilune::Result<()> {
    let place = Place::new();
    let ours = Ours::start(&place, settings());
    let mut client = Client::connect(&ours.socket);
    let mut session = ours.database.session()?;
    let long = "k".repeat(1_200);
    for pop in ["lpop", "rpop"] {
        for (name, more) in [("plain", ""), ("expiring", "expire expiring 1000"), ("beside", ""), (&long, "")]
        {
            client.line(&format!("rpush {name} one two"));
            let jobs = node!("^redis", 0, "beside")?;
            if name == "beside" {
                session.set(&jobs.child("notes")?, "a program's")?;
            }
            if !more.is_empty() {
                client.line(more);
            }
            let order = if pop == "lpop" { ["one", "two"] } else { ["two", "one"] };
            for element in order {
                assert_eq!(client.line("dbsize"), Answer::Integer(1), "{pop} {name}");
                assert_eq!(client.line(&format!("{pop} {name}")), bulk(element), "{name}");
            }
            assert_eq!(client.line(&format!("{pop} {name}")), Answer::Null, "{name}");
            assert_eq!(client.line("dbsize"), Answer::Integer(0), "{pop} {name}");
            assert_eq!(session.data(&jobs)?, perilune::Data::Nothing);
        }
    }
    Ok(())
}

/// MSET replaces whatever lies at its keys, whether or not that can be done in one operation.
#[test]
fn many_keys_are_set_over_anything() {
    let place = Place::new();
    let ours = Ours::start(&place, settings());
    let mut client = Client::connect(&ours.socket);
    let long = "k".repeat(1_200);
    for before in ["ping", "rpush a x y", "hset b f v", "set c v ex 100", &format!("set {long} v")] {
        client.line("mset a 0 c 0");
        client.line("del a");
        client.line(before);
        assert_eq!(client.line(&format!("mset a 1 b 2 c 3 {long} 4 a 5")), Answer::Simple(b"OK".to_vec()));
        assert_eq!(client.line(&format!("mget a b c {long}")), bulks(&["5", "2", "3", "4"]), "{before}");
        assert_eq!(client.line("ttl c"), Answer::Integer(-1), "{before}");
        client.line("mset a 6 b 7");
        client.line("mset b 8 d 9 a 10 b 11");
        assert_eq!(client.line("mget a b d"), bulks(&["10", "11", "9"]), "{before}");
        client.line("flushdb");
    }
}

/// Names of all the lengths around every limit, as keys, fields and members.
#[test]
fn names_have_any_length() {
    let place = Place::new();
    let ours = Ours::start(&place, settings());
    let mut client = Client::connect(&ours.socket);
    for length in [1, 499, 500, 501, 1_000, 1_001, 1_900, 65_536, 1 << 20] {
        for byte in [b'n', 0] {
            let name = vec![byte; length];
            let longer = [&name[..], b"+"].concat();
            let name = &name[..];
            assert_eq!(client.line("flushall"), Answer::Simple(b"OK".to_vec()));
            for key in [name, &longer] {
                assert_eq!(client.call([b"SET", key, key]), Answer::Simple(b"OK".to_vec()));
            }
            assert_eq!(client.call([b"GET", name]), Answer::Bulk(name.to_vec()));
            assert_eq!(client.call([&b"EXPIRE"[..], name, b"1000"]), Answer::Integer(1));
            assert_eq!(client.call([&b"PERSIST"[..], name]), Answer::Integer(1));
            assert_eq!(client.call([b"GET", name]), Answer::Bulk(name.to_vec()));
            let Answer::Array(keys) = client.line("keys *") else { panic!("an array") };
            assert!(keys.len() == 2 && keys.contains(&Answer::Bulk(name.to_vec())), "{length}");
            assert_eq!(client.call([b"DEL", name]), Answer::Integer(1));
            for command in ["HSET", "SADD", "ZADD"] {
                assert_eq!(client.call([b"DEL", name]), Answer::Integer(i64::from(command != "HSET")));
                let mut words = vec![command.as_bytes(), name];
                match command {
                    "HSET" => words.extend([name, b"value", &longer, name]),
                    "SADD" => words.extend([name, &longer]),
                    _ => words.extend([&b"2"[..], name, b"1", &longer]),
                }
                assert_eq!(client.call(words), Answer::Integer(2), "{command} {length}");
            }
            assert_eq!(
                client.call([b"ZRANGE", name, b"0", b"-1"]),
                Answer::Array(vec![Answer::Bulk(longer.clone()), Answer::Bulk(name.to_vec())])
            );
            assert_eq!(client.call([b"ZREM", name, name]), Answer::Integer(1));
            assert_eq!(client.call([b"ZCARD", name]), Answer::Integer(1));
        }
    }
}

#[test]
fn servers_of_one_database_are_one() -> perilune::Result<()> {
    let place = Place::new();
    let ours = Ours::start(&place, settings());
    let socket = place.path().join("second.sock");
    let second = Running::start(
        &ours.database,
        Settings { port: ours.port, unix_socket: Some(socket.clone()), ..settings() },
    )
    .expect("a second server at the same port");
    let (mut here, mut there) = (Client::connect(&ours.socket), Client::connect(&socket));
    assert_ne!(here.line("client id"), there.line("client id"));
    here.line("set k 1");
    assert_eq!(there.line("incr k"), Answer::Integer(2));
    // WATCH sees what the other server does, and a scan that goes on there begins again: it misses nothing.
    here.line("watch k");
    there.line("set k 9");
    here.line("multi");
    here.line("get k");
    assert_eq!(here.line("exec"), Answer::Null);
    for number in 0..25 {
        here.line(&format!("set key{number} x"));
    }
    let (mut cursor, mut seen, mut steps) = (b"0".to_vec(), BTreeSet::new(), 0);
    loop {
        let client = if steps % 2 == 0 { &mut here } else { &mut there };
        let Answer::Array(parts) = client.call([&b"SCAN"[..], &cursor]) else { panic!("an array") };
        let [Answer::Bulk(next), Answer::Array(names)] = &parts[..] else { panic!("two parts") };
        seen.extend(names.iter().map(Text::to_text));
        steps += 1;
        cursor.clone_from(next);
        if cursor == b"0" {
            break;
        }
    }
    assert_eq!(seen.len(), 26);
    second.stopper().stop();
    second.wait();
    Ok(())
}

/// A command whose words may have blanks inside, written as ones that do not break, and one of which may be a key.
fn say(client: &mut Client, line: &str, key: &[u8]) -> Answer {
    let word =
        |word: &str| if word == "KEY" { key.to_vec() } else { word.replace('\u{a0}', " ").into_bytes() };
    client.call(line.split(' ').map(word))
}

/// A key that is changed and changed back between WATCH and EXEC: who was told of what was between must not go on.
#[test]
fn what_is_read_under_watch_is_what_exec_finds() -> perilune::Result<()> {
    let place = Place::new();
    let ours = Ours::start(&place, settings());
    let (mut one, mut other) = (Client::connect(&ours.socket), Client::connect(&ours.socket));
    let node = node!("^redis", 0, "k")?;
    let mut ways =
        vec!["get k", "mget k other", "eval return(redis.call('get','k')) 0", "exists k", "sort l by nosort"];
    ways.extend([
        "perilune.get KEY",
        "perilune.commit 0 0 1000 + KEY",
        "eval #!lua\u{a0}flags=non-atomic\nreturn(perilune.node('^redis',0,'k').__) 0",
    ]);
    ways.extend(["eval #!lua\u{a0}flags=non-atomic\nreturn(redis.call('get','k')) 0", "set k 9"]);
    for way in ways {
        for set in ["set k 1", "del l", "rpush l 1"] {
            other.line(set);
        }
        one.line("watch k l");
        for set in ["set k 9", "rpush l 2"] {
            other.line(set);
        }
        let answer = say(&mut one, way, node.encoded());
        assert!(!answer.is_error(), "{way}: {answer:?}");
        for set in ["set k 1", "rpop l"] {
            other.line(set);
        }
        one.line("multi");
        one.line("incr k");
        assert_eq!(one.line("exec"), Answer::Null, "{way}");
        // The next watch begins anew.
        one.line("watch k l");
        if way != "set k 9" {
            say(&mut one, way, node.encoded());
        }
        one.line("multi");
        one.line("incr k");
        assert_eq!(one.line("exec"), Answer::Array(vec![Answer::Integer(2)]), "{way}");
        for unwatch in ["unwatch", "discard", "reset"] {
            one.line("watch k");
            other.line("set k 9");
            one.line("get k");
            one.line(if unwatch == "discard" { "multi" } else { "ping" });
            one.line(unwatch);
            one.line("multi");
            one.line("get k");
            assert_eq!(one.line("exec"), Answer::Array(vec![Answer::Bulk(b"9".to_vec())]), "{unwatch}");
        }
    }
    Ok(())
}

/// Expired keys are gone at once for clients, and from the tree soon after, without anybody asking.
#[test]
fn expired_keys_are_swept() -> perilune::Result<()> {
    let place = Place::new();
    let ours = Ours::start(&place, settings());
    let mut client = Client::connect(&ours.socket);
    for number in 0..200 {
        client.line(&format!("set key{number} x px 1"));
    }
    client.line("set kept x px 1");
    client.line("set kept y");
    let mut session: Session = ours.database.session()?;
    let start = Instant::now();
    while session.count_children(&node!("^redis", 0)?)? > 1 {
        assert!(start.elapsed() < Duration::from_secs(20), "nobody sweeps");
        std::thread::yield_now();
    }
    assert_eq!(session.count_children(&node!("^redis", "expiry")?)?, 0);
    assert_eq!(client.line("get kept"), bulk("y"));
    Ok(())
}

/// Adds one to what has been read, unless somebody has changed it meanwhile.
fn count_up(client: &mut Client, key: &str) -> bool {
    client.line(&format!("watch {key}"));
    let count = match client.line(&format!("get {key}")) {
        Answer::Bulk(text) => String::from_utf8_lossy(&text).parse().unwrap(),
        _ => 0,
    };
    client.line("multi");
    client.line(&format!("set {key} {}", count + 1));
    let answer = client.line("exec");
    if answer != Answer::Null {
        assert_eq!(answer, Answer::Array(vec![Answer::Simple("OK".into())]));
    }
    answer != Answer::Null
}

/// Two clients on two threads add to the same keys: every command is atomic.
#[test]
fn counters_lose_nothing() -> Result<(), Error> {
    let place = Place::new();
    let ours = Ours::start(&place, Settings { threads: 2, ..Settings::default() });
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut client = Client::connect(&ours.socket);
                for number in 0..250 {
                    client.line("incr n");
                    client.line(&format!("hincrby h f{} 1", number % 3));
                    client.line("rpush l x");
                    client.send(b"multi\r\nincr a\r\nincr b\r\nexec\r\n");
                    for _ in 0..4 {
                        assert!(client.receive().is_some_and(|answer| !answer.is_error()));
                    }
                    while !count_up(&mut client, "c") {}
                }
            });
        }
    });
    let mut client = Client::connect(&ours.socket);
    assert_eq!(client.line("mget n a b c"), bulks(&["1000", "1000", "1000", "1000"]));
    assert_eq!(client.line("llen l"), Answer::Integer(1_000));
    assert_eq!(client.line("hvals h"), bulks(&["336", "332", "332"]));
    Ok(())
}
