//! Clients that know of each other, over several servers: LIST, KILL, UNBLOCK, PAUSE, REPLY, MONITOR.

use std::time::{Duration, Instant};

use crate::peer::{Client, Ours, Place, Redis, Text as _};
use perilune::node;
use perilune_redis::{Running, Settings};
use perilune_resp::Answer;

fn settings() -> Settings {
    Settings { threads: 2, ..Settings::default() }
}

fn ok() -> Answer {
    Answer::Simple(b"OK".to_vec())
}

fn id(client: &mut Client) -> i64 {
    match client.line("client id") {
        Answer::Integer(id) => id,
        other => panic!("{other:?}"),
    }
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(20), "{what}");
        std::thread::yield_now();
    }
}

#[test]
fn clients_of_all_servers_are_seen_and_ended() {
    let place = Place::new();
    let ours = Ours::start(&place, settings());
    let socket = place.path().join("second.sock");
    let second = Running::start(
        &ours.database,
        Settings { port: ours.port, unix_socket: Some(socket.clone()), ..settings() },
    )
    .expect("a second server");
    let mut here = Client::connect(&ours.socket);
    let mut others: Vec<_> =
        (0..6).map(|n| Client::connect(if n % 2 == 0 { &ours.socket } else { &socket })).collect();
    let mut ids = vec![id(&mut here)];
    for (number, client) in others.iter_mut().enumerate() {
        assert_eq!(client.line(&format!("client setname c{number}")), ok());
        ids.push(id(client));
    }
    others[1].line("subscribe news");
    let list = here.line("client list").to_text();
    let seen: Vec<i64> =
        list.lines().map(|line| line["id=".len()..line.find(' ').unwrap()].parse().unwrap()).collect();
    let mut sorted = ids.clone();
    sorted.sort_unstable();
    assert_eq!(seen, sorted, "{list}");
    assert!(list.contains(" name=c5 ") && list.contains(" cmd=client|list "), "{list}");
    assert_eq!(here.line("client list type pubsub").to_text().lines().count(), 1);
    let some = here.line(&format!("client list id {} {} 99999", ids[1], ids[2])).to_text();
    assert_eq!(some.lines().count(), 2);
    // Killed by number, by class, by address; not itself unless it says so.
    assert_eq!(here.line(&format!("client kill id {}", ids[3])), Answer::Integer(1));
    assert_eq!(others[2].receive(), None);
    assert_eq!(here.line("client kill type pubsub"), Answer::Integer(1));
    assert_eq!(others[1].receive(), None);
    assert_eq!(here.line(&format!("client kill id {}", ids[0])), Answer::Integer(0));
    let address = socket.display();
    assert_eq!(here.line(&format!("client kill addr {address}:0")), Answer::Integer(2));
    assert_eq!(others[3].receive(), None);
    assert_eq!(here.line("client kill addr nowhere:1 skipme no"), Answer::Integer(0));
    assert_eq!(here.line("client kill skipme no"), Answer::Integer(3));
    assert_eq!(here.receive(), None);
    second.stopper().stop();
    second.wait();
}

#[test]
fn waiting_clients_are_unblocked_from_anywhere() -> perilune::Result<()> {
    let place = Place::new();
    let ours = Ours::start(&place, settings());
    let socket = place.path().join("second.sock");
    let second = Running::start(
        &ours.database,
        Settings { port: ours.port, unix_socket: Some(socket.clone()), ..settings() },
    )
    .expect("a second server");
    let mut session = ours.database.session()?;
    let queue = node!("^redis", "blocked", 0, "k")?;
    let mut here = Client::connect(&ours.socket);
    for server in [&ours.socket, &socket] {
        let mut waiting = Client::connect(server);
        let number = id(&mut waiting);
        assert_eq!(here.line(&format!("client unblock {number}")), Answer::Integer(0));
        for reason in ["", " timeout", " error"] {
            waiting.send(b"blpop k 0\r\n");
            until("it does not wait", || session.count_children(&queue).unwrap() == 1);
            assert_eq!(here.line(&format!("client unblock {number}{reason}")), Answer::Integer(1));
            let answer = waiting.receive().expect("an answer");
            match reason {
                " error" => assert_eq!(answer.to_text(), "UNBLOCKED client unblocked via CLIENT UNBLOCK"),
                _ => assert_eq!(answer, Answer::Null),
            }
            assert_eq!(session.count_children(&queue)?, 0);
        }
    }
    second.stopper().stop();
    second.wait();
    Ok(())
}

#[test]
fn a_pause_holds_commands_back() {
    let place = Place::new();
    let ours = Ours::start(&place, settings());
    let (mut client, mut other) = (Client::connect(&ours.socket), Client::connect(&ours.socket));
    let library =
        &b"#!lua name=l\nredis.register_function{function_name='reads', callback=function() return 5 end, \
        flags={'no-writes'}}"[..];
    client.call([&b"function"[..], b"load", library]);
    assert_eq!(client.line("client pause 60000 write"), ok());
    other.send(b"get k\r\nset k 1\r\nget k\r\n");
    assert_eq!(other.receive(), Some(Answer::Null));
    assert_eq!(client.line("get k"), Answer::Null);
    let blocked = |client: &mut Client| {
        let clients = client.line("info clients").to_text();
        clients.lines().find_map(|line| line.strip_prefix("blocked_clients:")).expect("a field").to_owned()
    };
    assert_eq!(blocked(&mut client), "1");
    let mut third = Client::connect(&ours.socket);
    third.send(b"eval 'return 3' 0\r\n");
    let start = Instant::now();
    while blocked(&mut client) != "2" {
        assert!(start.elapsed() < Duration::from_secs(20), "a script may write, and is not held back");
    }
    assert!(client.line("set k").is_error());
    // One that says that it writes nothing is not.
    let source = &b"#!lua flags=no-writes\nreturn 4"[..];
    let sha = client.call([&b"script"[..], b"load", source]).to_text();
    assert_eq!(client.call([&b"eval"[..], source, b"0"]), Answer::Integer(4));
    assert_eq!(client.line(&format!("evalsha {sha} 0")), Answer::Integer(4));
    assert_eq!(client.line("fcall reads 0"), Answer::Integer(5));
    for line in ["multi", "fcall reads 0"] {
        client.line(line);
    }
    assert_eq!(client.line("exec"), Answer::Array(vec![Answer::Integer(5)]));
    assert_eq!(client.line("client unpause"), ok());
    assert_eq!(other.receive(), Some(ok()));
    assert_eq!(other.receive(), Some(Answer::Bulk(b"1".to_vec())));
    assert_eq!(third.receive(), Some(Answer::Integer(3)));
    assert_eq!(blocked(&mut client), "0");
    let start = Instant::now();
    assert_eq!(client.line("client pause 200"), ok());
    assert_eq!(other.line("get k"), Answer::Bulk(b"1".to_vec()));
    assert!(start.elapsed() >= Duration::from_millis(200));
}

#[test]
fn monitors_see_what_runs() {
    let place = Place::new();
    let ours = Ours::start(&place, settings());
    let (mut monitor, mut client) = (Client::connect(&ours.socket), Client::connect(&ours.socket));
    assert_eq!(monitor.line("monitor"), ok());
    client.call([&b"set"[..], b"k\n\"", b"\x00\xff"]);
    client.send(b"multi\r\nincr n\r\nexec\r\n");
    let mut shown = Vec::new();
    for _ in 0..4 {
        let line = monitor.receive().expect("a line").to_text();
        let (time, rest) = line.split_once(' ').expect("a time");
        assert!(time.parse::<f64>().is_ok(), "{line}");
        shown.push(rest[rest.find(']').expect("a client") + 2..].to_owned());
    }
    assert_eq!(shown[0], r#""set" "k\n\"" "\x00\xff""#);
    assert!(
        shown[1..].contains(&"\"multi\"".to_owned()) && shown[1..].contains(&"\"incr\" \"n\"".to_owned())
    );
    client.call([&b"eval"[..], b"redis.call('set', KEYS[1], ARGV[1])", b"1", b"foo", b"bar"]);
    let shown = [(); 2].map(|()| monitor.receive().expect("a line").to_text());
    assert!(shown[0].contains("\"eval\""), "{shown:?}");
    assert!(shown[1].ends_with("[0 lua] \"set\" \"foo\" \"bar\""), "{shown:?}");
    assert_eq!(monitor.line("reset"), Answer::Simple(b"RESET".to_vec()));
    client.line("get k");
    assert_eq!(monitor.line("ping"), Answer::Simple(b"PONG".to_vec()));
}

/// What ours answers to these lines, a redis-server answers.
#[test]
fn client_is_answered_as_by_redis() {
    const LINES: &[&str] = &[
        "client kill 1:1",
        "client kill id x",
        "client kill id 0",
        "client kill type x",
        "client kill user x",
        "client kill addr",
        "client kill skipme maybe",
        "client kill addr 1:1 skipme no",
        "client kill id 1 id",
        "client list type x",
        "client list id",
        "client list id x",
        "client list type pubsub",
        "client list foo",
        "client pause x",
        "client pause -1",
        "client pause 1 x",
        "client pause",
        "client unpause x",
        "client unpause",
        "client unblock x",
        "client unblock 99",
        "client unblock 99 foo",
        "client reply x",
        "client reply on",
        "client no-evict x",
        "client no-evict on",
        "client getredir",
        "client info x",
        "client setname",
        "client setname me",
        "client getname",
        "client kill",
        "client unblock",
        "client nosuch",
        "client reply skip|set a 1|get a",
        "client reply off|set a 1|get nosuch|client reply on",
        "client reply off|client reply skip|get a|client reply on",
        "client reply off|subscribe c|unsubscribe c|client reply on",
        "monitor|reset|ping",
        "quit",
    ];
    let place = Place::new();
    let (ours, redis) = (Ours::start(&place, settings()), Redis::start(&place));
    let (mut here, mut there) = (Client::connect(&ours.socket), Client::connect(&redis.socket));
    for line in LINES {
        let mut answers = Vec::new();
        for client in [&mut here, &mut there] {
            client.send(line.split('|').map(|part| format!("{part}\r\n")).collect::<String>().as_bytes());
            let mut got = vec![client.receive()];
            if line.starts_with("monitor") {
                loop {
                    let answer = client.receive();
                    // What a monitor sees of itself is for another test.
                    if !answer.as_ref().is_some_and(|answer| answer.to_text().contains('"')) {
                        got.push(answer);
                    }
                    if got.last() == Some(&Some(Answer::Simple(b"PONG".to_vec()))) {
                        break;
                    }
                }
            }
            answers.push(got);
        }
        assert_eq!(answers[0], answers[1], "{line}");
    }
    assert_eq!((here.receive(), there.receive()), (None, None));
}

/// What a client holds, in bytes: its requests, its queue, its replies.
#[test]
fn the_list_tells_what_clients_hold() {
    let place = Place::new();
    let ours = Ours::start(&place, settings());
    let (mut one, mut other) = (Client::connect(&ours.socket), Client::connect(&ours.socket));
    let field = |line: &str, name: &str| -> usize {
        let word = line.split(' ').find_map(|word| word.strip_prefix(&format!("{name}=")[..]));
        word.unwrap_or_else(|| panic!("no {name} in {line}")).trim().parse().unwrap()
    };
    for asked in ["client list", "client info"] {
        let line = one.line(asked).to_text();
        let line = line.lines().next().unwrap();
        assert_eq!(
            (field(line, "qbuf"), field(line, "omem"), field(line, "multi-mem")),
            (26, 0, 0),
            "{line}"
        );
        assert!(field(line, "argv-mem") > 0 && field(line, "tot-mem") > 26, "{line}");
    }
    let others = id(&mut other);
    let line = |one: &mut Client| one.line(&format!("client list id {others}")).to_text();
    let before = field(&line(&mut one), "tot-mem");
    other.line("multi");
    other.line("set k value");
    // A request that has not come whole, behind one that has.
    other.send(b"*1\r\n$4\r\nPING\r\n*2\r\n$4\r\nECHO\r\n$9\r\nhalf");
    assert_eq!(other.receive(), Some(Answer::Simple(b"QUEUED".to_vec())));
    let line = line(&mut one);
    assert_eq!(field(&line, "qbuf"), 22, "{line}");
    assert!(field(&line, "multi-mem") > 0 && field(&line, "tot-mem") > before + 22, "{line}");

    // So does what is noted of a transaction that a program has open over the wire, until that ends.
    let mut far = Client::connect(&ours.socket);
    let number = id(&mut far);
    let mut held = || field(&one.line(&format!("client list id {number}")).to_text(), "tot-mem");
    let before = held();
    assert_eq!(far.line("PERILUNE.SEE 0 0 GET a"), Answer::Null);
    for key in 0..100 {
        assert_eq!(far.line(&format!("PERILUNE.SEE 1 0 GET b{key}")), Answer::Null);
    }
    let during = held();
    far.line("PERILUNE.COMMIT 0 0 1000");
    let behind = held();
    assert!(during > before + 1_000 && behind < before + 1_000, "{before} {during} {behind}");
}
