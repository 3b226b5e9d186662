//! Bounds that an operator sets: unread replies, databases, bytes of an argument; and what is told of all servers.

use std::io::Read;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use crate::peer::{Client, Ours, Place, Text};
use perilune_redis::Settings;
use perilune_resp::{Answer, ArgumentsBuf};

fn settings() -> Settings {
    Settings { threads: 1, ..Settings::default() }
}

fn ok() -> Answer {
    Answer::Simple(b"OK".to_vec())
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(20), "{what}");
        std::thread::yield_now();
    }
}

/// A client that asks and does not read.
fn silent(ours: &Ours, name: &str, words: &[&str]) -> UnixStream {
    use std::io::Write;
    let mut stream = UnixStream::connect(&ours.socket).expect("a connection");
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a limit");
    let mut request = Vec::new();
    ["client", "setname", name].iter().collect::<ArgumentsBuf>().write_request(&mut request);
    words.iter().collect::<ArgumentsBuf>().write_request(&mut request);
    stream.write_all(&request).expect("the server reads");
    stream
}

/// How many clients have come, and how many there are.
fn clients(client: &mut Client) -> (u64, u64) {
    let info = client.line("info").to_text();
    let figure = |name: &str| -> u64 {
        let line = info.lines().find_map(|line| line.strip_prefix(name)).expect("a figure");
        line.trim().parse().expect("a number")
    };
    (figure("total_connections_received:"), figure("connected_clients:"))
}

/// Bytes that still come.
fn drain(mut stream: UnixStream) -> usize {
    let (mut total, mut buffer) = (0, vec![0; 1 << 16]);
    while let Ok(came @ 1..) = stream.read(&mut buffer) {
        total += came;
    }
    total
}

/// Who does not read is cut off: beyond the hard limit at once, beyond the soft one after its seconds.
#[test]
fn who_does_not_read_is_cut_off() {
    const BIG: usize = 20 << 20;
    let place = Place::new();
    let ours = Ours::start(&place, settings());
    let mut client = Client::connect(&ours.socket);
    client.call([&b"SET"[..], b"big", &vec![b'x'; BIG]]);
    let limit = |client: &mut Client, limits: &str| {
        assert_eq!(client.call(["config", "set", "client-output-buffer-limit", limits]), ok());
    };
    let there = |client: &mut Client, name: &str| client.line("client list").to_text().contains(name);
    // Without a limit it may take its time.
    let patient = silent(&ours, "patient", &["get", "big"]);
    // NB: its name comes first, its GET may run in a later round, and its reply may come behind that: then under the next limit.
    let waits = |one: &str| {
        let bytes = one.split(" omem=").nth(1).and_then(|rest| rest.split(' ').next()?.parse::<usize>().ok());
        one.contains("name=patient") && bytes.is_some_and(|bytes| bytes > BIG / 2)
    };
    until("the patient one has its reply", || client.line("client list").to_text().lines().any(waits));
    limit(&mut client, "normal 3000000 0 0");
    let (come, there_are) = clients(&mut client);
    let hasty = silent(&ours, "hasty", &["get", "big"]);
    // NB: one that reads while it is served may keep up with the server.
    until("the hasty one is cut off", || clients(&mut client) == (come + 1, there_are));
    assert!(drain(hasty) < BIG, "a client beyond the hard limit has got it all");
    limit(&mut client, "normal 0 1000000 1 pubsub 0 1000000 1");
    let start = Instant::now();
    let slow = silent(&ours, "slow", &["get", "big"]);
    let listener = silent(&ours, "listener", &["subscribe", "news"]);
    until("somebody listens", || client.line("publish news first") == Answer::Integer(1));
    let news = "n".repeat(2 << 20);
    assert_eq!(client.call(["publish", "news", &news]), Answer::Integer(1));
    assert!(there(&mut client, "name=listener"), "beyond the soft limit there are seconds left");
    until("both are cut off", || !there(&mut client, "name=slow") && !there(&mut client, "name=listener"));
    assert!(start.elapsed() > Duration::from_secs(1), "cut off after {:?}", start.elapsed());
    assert!(drain(slow) < BIG && drain(listener) < news.len());
    limit(&mut client, "normal 0 0 0 pubsub 33554432 8388608 60");
    drop(patient);
}

#[test]
fn databases_are_as_many_as_the_settings_say() {
    let place = Place::new();
    let refused = Answer::Error(b"ERR DB index is out of range".to_vec());
    {
        let ours = Ours::start(&place, settings().with("databases", "100").expect("a setting"));
        let mut client = Client::connect(&ours.socket);
        assert_eq!(client.line("select 99"), ok());
        assert_eq!(client.line("set k v ex 1000"), ok());
        assert_eq!(client.line("set l v"), ok());
        assert_eq!(client.line("move l 100"), refused);
        assert_eq!(client.line("copy l l2 db 98"), Answer::Integer(1));
        let info = client.line("info keyspace").to_text();
        assert!(
            info.contains("db98:keys=1,expires=0") && info.contains("db99:keys=2,expires=1,avg_ttl="),
            "{info}"
        );
        let average = info.split("db99:keys=2,expires=1,avg_ttl=").nth(1).expect("an average");
        let average: u64 = average.trim().parse().expect("a number");
        assert!((900_000..=1_000_000).contains(&average), "{info}");
        assert_eq!(client.line("swapdb 0 99"), ok());
        assert_eq!(client.line("dbsize"), Answer::Integer(0));
    }
    let ours = Ours::start(&place, settings().with("databases", "2").expect("a setting"));
    let mut client = Client::connect(&ours.socket);
    assert_eq!(client.line("select 2"), refused);
    assert_eq!(client.line("dbsize"), Answer::Integer(2));
    assert_eq!(client.line("config get databases").to_text().matches("50").count(), 1, "\"2\" as bytes");
    assert_eq!(client.line("flushall"), ok());
    // All of them are gone, those too that this server cannot select.
    assert_eq!(client.line("info keyspace").to_text().trim(), "# Keyspace");
}

#[test]
fn arguments_are_as_long_as_the_settings_say() {
    let place = Place::new();
    let ours = Ours::start(&place, settings().with("proto-max-bulk-len", "1mb").expect("a setting"));
    let mut client = Client::connect(&ours.socket);
    assert_eq!(client.call([&b"SET"[..], b"k", &vec![b'x'; 1 << 20]]), ok());
    // It is refused when it is announced.
    client.send(b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1048577\r\n");
    let refused = client.receive().expect("a refusal").to_text();
    assert!(refused.contains("invalid bulk length"), "{refused}");
    assert!(settings().with("proto-max-bulk-len", "1gb").is_err());
}

/// What any server has refused, any server tells, and drops for all.
#[test]
fn acl_log_is_of_all_servers() {
    let place = Place::new();
    let ours = Ours::start(&place, settings());
    let beside = ours.beside(&place);
    let (mut here, mut there) = (Client::connect(&ours.socket), Client::connect(&beside.socket));
    assert!(here.line("auth nobody wrong").is_error());
    assert!(there.line("auth somebody wrong").is_error());
    for client in [&mut here, &mut there] {
        let told = format!("{:?}", client.line("acl log"));
        let names = ["nobody", "somebody"].map(|name| format!("{:?}", Answer::Bulk(name.into())));
        assert!(names.iter().all(|name| told.contains(name)), "{told}");
        let Answer::Array(one) = client.line("acl log 1") else { panic!("an array") };
        assert_eq!(one.len(), 1);
    }
    assert_eq!(there.line("acl log reset"), ok());
    assert_eq!(here.line("acl log"), Answer::Array(Vec::new()));
}

/// CONFIG SET in a transaction that does not commit has changed nothing, on this server either.
#[test]
fn settings_in_a_transaction_are_those_of_its_commit() {
    let place = Place::new();
    let ours = Ours::start(&place, settings());
    let (mut client, mut other) = (Client::connect(&ours.socket), Client::connect(&ours.socket));
    let timeout = |client: &mut Client| format!("{:?}", client.line("config get timeout"));
    let before = timeout(&mut other);
    for fails in [true, false] {
        client.line("watch k");
        client.line("multi");
        client.line("config set timeout 77");
        client.line("acl setuser new on");
        assert_eq!(timeout(&mut other), before);
        if fails {
            other.line("incr k");
            assert_eq!(client.line("exec"), Answer::Null);
            assert_eq!(timeout(&mut other), before);
            assert_eq!(other.line("acl getuser new"), Answer::Null);
        } else {
            assert_eq!(client.line("exec"), Answer::Array(vec![ok(), ok()]));
            assert_ne!(timeout(&mut other), before);
            assert_ne!(other.line("acl getuser new"), Answer::Null);
        }
    }
}

/// Keys whose time had come when they were flushed, and that nobody had swept, have expired.
#[test]
fn flushing_tells_what_had_expired() {
    for flush in ["flushall", "flushdb"] {
        let place = Place::new();
        let ours = Ours::start(&place, settings());
        let mut client = Client::connect(&ours.socket);
        client.line("debug set-active-expire 0");
        client.line("config set notify-keyspace-events Ex");
        let mut listener = Client::connect(&ours.socket);
        listener.line("psubscribe *");
        client.line("set later v ex 1000");
        client.line("set soon v px 1");
        until("it expires", || client.line("exists soon") == Answer::Integer(0));
        assert_eq!(client.line(flush), ok());
        client.line("publish end end");
        let told: Vec<String> = (0..2).map(|_| format!("{:?}", listener.receive())).collect();
        let (expired, name) =
            (Answer::Bulk(b"__keyevent@0__:expired".to_vec()), Answer::Bulk(b"soon".to_vec()));
        assert!(
            told[0].contains(&format!("{expired:?}")) && told[0].contains(&format!("{name:?}")),
            "{told:?}"
        );
        assert!(told[1].contains(&format!("{:?}", Answer::Bulk(b"end".to_vec()))), "{told:?}");
        assert_eq!(client.line("dbsize"), Answer::Integer(0));
    }
}

/// A few of many are drawn, not looked for; they are different ones, or any, and those that are taken are gone.
#[test]
fn a_few_of_many_are_drawn() {
    const MANY: i64 = 10_000;
    let place = Place::new();
    let ours = Ours::start(&place, settings());
    let mut client = Client::connect(&ours.socket);
    for first in (0..MANY).step_by(1_000) {
        let names: Vec<String> =
            (first..first + 1_000).map(|number| format!("m{}", number * 7_919)).collect();
        client.call(["sadd", "set"].into_iter().chain(names.iter().map(String::as_str)));
        client.call(["hset", "hash"].into_iter().chain(names.iter().flat_map(|name| [&**name, &name[1..]])));
        client.call(["zadd", "zset"].into_iter().chain(names.iter().flat_map(|name| [&name[1..], &**name])));
    }
    let names = |answer: Answer| -> Vec<String> {
        let (Answer::Array(names) | Answer::Set(names)) = answer else { panic!("{answer:?}") };
        names.iter().map(Text::to_text).collect()
    };
    let different = |names: &[String]| {
        let mut sorted = names.to_vec();
        sorted.sort();
        sorted.dedup();
        sorted.len()
    };
    for (command, each) in [
        ("srandmember set", 1),
        ("hrandfield hash", 1),
        ("zrandmember zset", 1),
        ("hrandfield hash {} withvalues", 2),
        ("zrandmember zset {} withscores", 2),
    ] {
        let asked = |count: i64| match command.contains("{}") {
            true => command.replace("{}", &count.to_string()),
            false => format!("{command} {count}"),
        };
        let drawn = names(client.line(&asked(50)));
        assert_eq!(drawn.len(), 50 * each, "{command}");
        let keys: Vec<String> = drawn.iter().step_by(each).cloned().collect();
        assert_eq!(different(&keys), 50, "{command}");
        if each == 2 {
            assert!(drawn.chunks(2).all(|pair| pair[0][1..] == pair[1]), "{drawn:?}");
        }
        assert_eq!(names(client.line(&asked(-50))).len(), 50 * each, "{command}");
        assert_eq!(names(client.line(&asked(9_000))).len(), 9_000 * each, "{command}");
    }
    let taken = names(client.line("spop set 50"));
    assert_eq!((different(&taken), client.line("scard set")), (50, Answer::Integer(MANY - 50)));
    for name in &taken {
        assert_eq!(client.line(&format!("sismember set {name}")), Answer::Integer(0));
    }
}
