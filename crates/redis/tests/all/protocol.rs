//! Connections: pipelines in any pieces, clients that do not read, hostile bytes, passwords, limits, the end.

use std::io::{Read, Write};
use std::net::TcpStream;

use crate::peer::{Client, Ours, Place, Text};
use perilune_redis::Settings;
use perilune_resp::{Answer, ArgumentsBuf};

fn settings() -> Settings {
    Settings { threads: 2, ..Settings::default() }
}

fn request(words: &[&[u8]], out: &mut Vec<u8>) {
    words.iter().collect::<ArgumentsBuf>().write_request(out);
}

fn ok() -> Answer {
    Answer::Simple(b"OK".to_vec())
}

#[test]
fn a_pipeline_is_answered_in_order_however_it_is_cut() {
    let place = Place::new();
    let ours = Ours::start(&place, settings());
    let mut bytes = Vec::new();
    for number in 0..300 {
        request(&[b"SET", b"k", format!("{number}").as_bytes()], &mut bytes);
        bytes.extend_from_slice(b"get k\r\n");
    }
    for piece in [1, 7, 4_096, bytes.len()] {
        let mut client = Client::connect(&ours.socket);
        for part in bytes.chunks(piece) {
            client.send(part);
        }
        for number in 0..300 {
            assert_eq!(client.receive(), Some(ok()), "{piece}");
            assert_eq!(client.receive(), Some(Answer::Bulk(format!("{number}").into_bytes())), "{piece}");
        }
    }
}

/// A request of one kind of many, of those that are run together and of others.
fn line_of(kind: u64, key: u64, number: u64, below: &mut impl FnMut(u64) -> u64) -> String {
    let long = "x".repeat(3_000);
    match kind {
        0..=3 => format!("SET k{key} {}.{number}", below(1_000)),
        4 | 5 => format!("LPUSH k{key} {number}"),
        6 => format!("rpush k{key} {number} b"),
        7 => {
            format!("SET k{key} v{} {}", number, ["NX", "GET", "EX 100", "XX"][below(4) as usize])
        }
        8 => format!("RPUSHX k{key} {number}"),
        9 => format!("SET k{key} {}", if below(4) == 0 { long.as_str() } else { "short" }),
        10 => ["LPUSH", "SET k1", "HSET k2 f v", "DEL k0 k1", "lrange k0 0 -1"][below(5) as usize].to_owned(),
        11 => ["GET k0", "LLEN k1", "DEL k2", "EXPIRE k1 50", "TYPE k2"][below(5) as usize].to_owned(),
        // Of keys of their own, which are there, and now and then of those above, of whatever kind.
        12 | 13 => format!("INCR {}", ["n0", "n1", "n2", "k0"][below(4) as usize]),
        14 => format!("incrby n{key} {}", ["5", "-7", "9223372036854775807", "x"][below(4) as usize]),
        15 => format!("GET {}", ["n0", "k1", "none", "h0", "big"][below(5) as usize]),
        16 => format!("HSET h{key} f{} {number}", below(9)),
        // Some fields in some requests, now and then more than one operation puts.
        17 => {
            let count = if below(9) == 0 { 17 } else { 1 + below(6) };
            let fields = (0..count).map(|_| format!(" f{} {number}", below(9)));
            format!("HSET h{key}{}", fields.collect::<String>())
        }
        18 => ["HGET h0 f1", "HEXISTS h1 f2", "HGET k0 f", "HSET h0 a 1 b 2", "HDEL h1 f1", "SET big ok"]
            [below(6) as usize]
            .to_owned(),
        19 => format!("SADD s{key} m{}", below(12)),
        20 => format!("SADD s{key} m{} m{} m{}", below(12), below(12), below(12)),
        21 => ["SISMEMBER s0 m1", "SREM s1 m1", "SADD h1 m", "DEL s0 h0 z0 n0"][below(4) as usize].to_owned(),
        22 => {
            format!("ZADD z{key} {} m{}", ["1", "2.5", "-inf", "x"][below(4) as usize], below(9))
        }
        _ => ["ZSCORE z0 m1", "ZINCRBY z1 2 m1", "ZINCRBY k1 2 m", "HINCRBY h0 n 3", "LPOP k1"]
            [below(5) as usize]
            .to_owned(),
    }
}

/// Requests that arrive together are run as one operation where that can be: what each answers, what is there afterwards and
/// what is counted is as if each had come alone.
#[test]
fn what_arrives_together_is_as_if_each_had_come_alone() {
    let (place, other) = (Place::new(), Place::new());
    let (together, alone) = (Ours::start(&place, settings()), Ours::start(&other, settings()));
    let (mut one, mut each) = (Client::connect(&together.socket), Client::connect(&alone.socket));
    let mut chance = 0x9E37_79B9_97F4_A7C5_u64;
    let mut below = |end: u64| {
        chance ^= chance << 13;
        chance ^= chance >> 7;
        chance ^= chance << 17;
        chance % end
    };
    for round in 0..250 {
        let mut lines = Vec::new();
        while lines.len() < 60 {
            // Runs of one command, most of them on one key.
            let (kind, key, run) = (below(24), below(3), 1 + below(24));
            for number in 0..run {
                let key = if below(8) == 0 { below(3) } else { key };
                lines.push(line_of(kind, key, number, &mut below));
            }
        }
        let mut bytes = Vec::new();
        for line in &lines {
            request(&line.split(' ').map(str::as_bytes).collect::<Vec<_>>(), &mut bytes);
        }
        one.send(&bytes);
        for (place, line) in lines.iter().enumerate() {
            let got = one.receive().expect("an answer to each");
            assert_eq!(got, each.line(line), "round {round}, {place}: {line} of {lines:?}");
        }
    }
    let counts = |client: &mut Client| {
        let text = client.line("info commandstats").to_text();
        let calls = |line: &str| {
            let (name, rest) = line.split_once(":calls=").unwrap_or_default();
            let failed = rest.split_once("rejected_calls").map_or("", |(_, failed)| failed);
            format!("{name} {} {failed}", rest.split(',').next().unwrap_or_default())
        };
        text.lines().map(calls).collect::<Vec<_>>()
    };
    assert_eq!(counts(&mut one), counts(&mut each));
}

/// A client that sends a long pipeline and reads nothing must not make the server gather its replies:
/// the server stops reading, so the client's writes block; when it reads, all replies are there.
#[test]
fn a_client_that_does_not_read_stops_itself() {
    let place = Place::new();
    let ours = Ours::start(&place, settings());
    let mut client = Client::connect(&ours.socket);
    assert_eq!(client.call([&b"SET"[..], b"big", &vec![b'x'; 100_000]]), ok());
    let stream = std::os::unix::net::UnixStream::connect(&ours.socket).unwrap();
    let mut writer = stream.try_clone().unwrap();
    let mut reader = stream;
    // 400 MB of replies: far more than sockets and the server keep.
    let requests = 4_000;
    let sent = std::thread::spawn(move || writer.write_all(&b"get big\r\n".repeat(requests)));
    // Others are served meanwhile.
    for _ in 0..100 {
        assert_eq!(client.line("ping"), Answer::Simple(b"PONG".to_vec()));
    }
    let (mut came, mut buffer) = (0, vec![0; 1 << 20]);
    let each = "$100000\r\n".len() + 100_000 + 2;
    while came < requests * each {
        came += reader.read(&mut buffer).unwrap();
    }
    assert_eq!(came, requests * each);
    sent.join().unwrap().unwrap();
}

#[test]
fn large_values_come_and_go_in_pieces() {
    let place = Place::new();
    let ours = Ours::start(&place, settings());
    let mut client = Client::connect(&ours.socket);
    for size in [65_535, 65_536, 65_537, 1 << 20, 20 << 20] {
        let value: Vec<u8> = (0..size).map(|at: usize| (at % 251) as u8).collect();
        assert_eq!(client.call([&b"SET"[..], b"k", &value]), ok());
        assert_eq!(client.call([&b"GET"[..], b"k"]), Answer::Bulk(value));
    }
}

#[test]
fn hostile_bytes_end_their_connection_only() {
    let place = Place::new();
    let ours = Ours::start(&place, settings());
    let mut honest = Client::connect(&ours.socket);
    for bytes in
        [&b"*1\r\n+PING\r\n"[..], b"*x\r\n", b"*1\r\n$-5\r\n", b"*1\r\n$999999999999\r\n", b"\"open\r\n"]
    {
        let mut client = Client::connect(&ours.socket);
        // What came before is answered first.
        client.send(b"PING\r\n");
        client.send(bytes);
        assert_eq!(client.receive(), Some(Answer::Simple(b"PONG".to_vec())));
        assert!(client.receive().is_some_and(|answer| answer.is_error()), "{bytes:?}");
        assert_eq!(client.receive(), None);
        assert_eq!(honest.line("ping"), Answer::Simple(b"PONG".to_vec()));
    }
    // A promise of 512 MiB costs nothing.
    let mut promises: Vec<_> = (0..50).map(|_| Client::connect(&ours.socket)).collect();
    for client in &mut promises {
        client.send(b"*2\r\n$3\r\nGET\r\n$536870912\r\nabc");
    }
    assert_eq!(honest.line("ping"), Answer::Simple(b"PONG".to_vec()));
}

#[test]
fn connections_come_and_go() {
    let place = Place::new();
    let ours = Ours::start(&place, settings());
    for _ in 0..2_000 {
        let mut client = Client::connect(&ours.socket);
        client.send(b"PING\r\n");
    }
    let mut client = Client::connect(&ours.socket);
    assert_eq!(client.line("quit"), ok());
    assert_eq!(client.receive(), None);
    assert_eq!(Client::connect(&ours.socket).line("ping"), Answer::Simple(b"PONG".to_vec()));
}

#[test]
fn a_password_is_asked_for() {
    let place = Place::new();
    let ours = Ours::start(&place, settings().with("requirepass", "secret").unwrap());
    let mut client = Client::connect(&ours.socket);
    let text = |answer: Answer| match answer {
        Answer::Error(text) => String::from_utf8(text).unwrap(),
        other => panic!("{other:?} is no error"),
    };
    assert_eq!(text(client.line("get k")), "NOAUTH Authentication required.");
    assert!(text(client.line("hello 3")).starts_with("NOAUTH HELLO must be called"));
    assert!(text(client.line("auth wrong")).starts_with("WRONGPASS"));
    assert!(text(client.line("auth somebody secret")).starts_with("WRONGPASS"));
    assert_eq!(client.line("auth secret"), ok());
    assert_eq!(client.line("get k"), Answer::Null);
    assert_eq!(client.line("reset"), Answer::Simple(b"RESET".to_vec()));
    assert!(text(client.line("get k")).starts_with("NOAUTH"));
    assert!(matches!(client.line("hello 3 auth default secret"), Answer::Map(_)));
    assert_eq!(client.line("get k"), Answer::Null);
    let mut stranger = Client::connect(&ours.socket);
    stranger.send(b"*11\r\n");
    assert_eq!(text(stranger.receive().unwrap()), "ERR Protocol error: unauthenticated multibulk length");
}

#[test]
fn only_so_many_clients_are_taken() {
    let place = Place::new();
    let ours = Ours::start(&place, settings().with("maxclients", "2").unwrap());
    let mut first = Client::connect(&ours.socket);
    let mut second = Client::connect(&ours.socket);
    assert_eq!(first.line("ping"), second.line("ping"));
    let mut third = Client::connect(&ours.socket);
    assert_eq!(third.receive(), Some(Answer::Error(b"ERR max number of clients reached".to_vec())));
    assert_eq!(third.receive(), None);
}

/// Over TCP as well; and what was asked before SHUTDOWN is answered.
#[test]
fn shutdown_answers_what_was_asked() {
    let place = Place::new();
    let ours = Ours::start(&place, settings());
    let mut stream = TcpStream::connect(("127.0.0.1", ours.port)).unwrap();
    stream.write_all(b"SET k 1\r\nINCR k\r\nSHUTDOWN\r\n").unwrap();
    let mut replies = Vec::new();
    stream.read_to_end(&mut replies).unwrap();
    assert_eq!(replies, b"+OK\r\n:2\r\n");
    drop(ours);
}

/// A parked connection runs nothing, keeps the order of its replies, and goes on when its time is over.
#[test]
fn a_parked_connection_goes_on_in_order() {
    let place = Place::new();
    let ours = Ours::start(&place, settings());
    let mut client = Client::connect(&ours.socket);
    let start = std::time::Instant::now();
    client.send(b"SET k 1\r\nWAIT 1 150\r\nINCR k\r\n");
    // What comes while it is parked waits as well, in any amount.
    client.send(&b"GET k\r\n".repeat(20_000));
    let mut other = Client::connect(&ours.socket);
    assert_eq!(client.receive(), Some(ok()));
    assert_eq!(other.line("get k"), Answer::Bulk(b"1".to_vec()));
    assert_eq!(client.receive(), Some(Answer::Integer(0)));
    assert!(start.elapsed() >= std::time::Duration::from_millis(150));
    assert_eq!(client.receive(), Some(Answer::Integer(2)));
    for _ in 0..20_000 {
        assert_eq!(client.receive(), Some(Answer::Bulk(b"2".to_vec())));
    }
    // Inside EXEC nothing waits.
    client.send(b"MULTI\r\nWAIT 1 0\r\nEXEC\r\n");
    assert_eq!((client.receive(), client.receive()), (Some(ok()), Some(Answer::Simple(b"QUEUED".to_vec()))));
    assert_eq!(client.receive(), Some(Answer::Array(vec![Answer::Integer(0)])));
    // Who leaves while waiting is forgotten.
    let mut leaving = Client::connect(&ours.socket);
    leaving.send(b"WAIT 1 0\r\n");
    drop(leaving);
    let start = std::time::Instant::now();
    while connected(&mut other) != 2 {
        assert!(start.elapsed().as_secs() < 20, "a parked client that has left is still there");
        std::thread::yield_now();
    }
}

fn connected(client: &mut Client) -> usize {
    let Answer::Bulk(text) = client.line("info clients") else { panic!("a text") };
    let text = String::from_utf8(text).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("connected_clients:"));
    line.and_then(|number| number.parse().ok()).expect("a number of clients")
}
