//! Commands that wait: as Redis answers them, first come, first served over several servers, woken by programs.

use std::time::{Duration, Instant};

use crate::peer::{Client, Ours, Place, Redis, Text as _};
use perilune::{node, Session};
use perilune_redis::{Running, Settings};
use perilune_resp::Answer;

fn settings() -> Settings {
    Settings { threads: 2, ..Settings::default() }
}

fn bulk(text: &str) -> Answer {
    Answer::Bulk(text.as_bytes().to_vec())
}

fn pair(key: &str, element: &str) -> Option<Answer> {
    Some(Answer::Array(vec![bulk(key), bulk(element)]))
}

/// Waits until so many clients are in the queue of a key.
fn until_blocked(session: &mut Session, key: &str, clients: u64) {
    let start = Instant::now();
    let queue = node!("^redis", "blocked", 0, key).unwrap();
    while session.count_children(&queue).unwrap() != clients {
        assert!(start.elapsed() < Duration::from_secs(20), "not {clients} clients wait for {key}");
        std::thread::yield_now();
    }
}

/// `a` waits, `b` acts: equal replies, and then equal contents. A line for `a` that begins with `!` waits
/// until it is answered.
#[test]
fn waiting_is_answered_as_by_redis() {
    const CASES: &[(&str, &[&str])] = &[
        ("blpop k 0", &["rpush k 1 2 3"]),
        ("brpop k 0", &["rpush k 1 2 3"]),
        ("blpop x k 0", &["rpush k 1", "rpush x 2"]),
        ("blpop x k k 0", &["multi", "rpush k 1", "rpush x 2", "exec"]),
        ("blpop k 0", &["multi", "rpush k 1", "lpop k", "rpush k 2 3", "exec"]),
        ("blpop k 0", &["multi", "rpush k 1", "del k", "exec", "rpush k 2"]),
        ("blpop k 0", &["set k s", "del k", "zadd k 1 m", "del k", "rpush k 1"]),
        ("blpop k 0", &["rpush other 1 2", "rename other k"]),
        ("blpop k 0", &["rpush other 1 2", "copy other k"]),
        ("blpop k 0", &["select 1", "rpush k 1", "move k 0", "select 0"]),
        ("blpop k 0", &["rpush other b a", "sort other alpha store k"]),
        ("blmove k to left right 0", &["rpush k 1 2"]),
        ("blmove k k right left 0", &["rpush k 1 2 3"]),
        ("brpoplpush k to 0", &["rpush to 0", "rpush k 1 2"]),
        ("brpoplpush k to 0", &["set to s", "rpush k 1 2"]),
        ("blmpop 0 2 x k left count 2", &["rpush k 1 2 3"]),
        ("blmpop 0 2 x k right", &["rpush k 1 2 3"]),
        ("bzpopmin k 0", &["zadd k 2 b 1 a"]),
        ("bzpopmax x k 0", &["zadd k 2 b 1.5 a"]),
        ("bzmpop 0 2 x k max count 3", &["zadd k 2 b 1 a"]),
        ("bzpopmin k 0", &["rpush k 1", "del k", "zadd k 1 m"]),
        ("bzpopmin k 0", &["zadd o 1 m", "zunionstore k 1 o"]),
        ("bzpopmin k 0", &["zadd o 1 m", "zrangestore k o 0 -1"]),
        ("blpop k 0.05", &[]),
        ("blmove k to left right 0.05", &["lpush to 1"]),
        ("bzmpop 0.05 1 k min", &[]),
    ];
    let place = Place::new();
    let (ours, redis) = (Ours::start(&place, settings()), Redis::start(&place));
    let mut session = ours.database.session().unwrap();
    for protocol in ["2", "3"] {
        for (waits, acts) in CASES {
            let mut answers = Vec::new();
            for server in [&ours.socket, &redis.socket] {
                let (mut a, mut b) = (Client::connect(server), Client::connect(server));
                a.line(&format!("hello {protocol}"));
                b.line("flushall");
                a.send(format!("{waits}\r\n").as_bytes());
                if server == &ours.socket && !acts.is_empty() {
                    until_blocked(&mut session, "k", 1);
                } else if !acts.is_empty() {
                    while !b.line("info clients").to_text().contains("blocked_clients:1") {}
                }
                let mut got: Vec<_> = acts.iter().map(|line| Some(b.line(line))).collect();
                got.push(a.receive());
                for line in
                    ["type k", "lrange k 0 -1", "zrange k 0 -1", "lrange to 0 -1", "exists x", "dbsize"]
                {
                    got.push(Some(b.line(line)));
                }
                answers.push(got);
            }
            assert_eq!(answers[0], answers[1], "{waits} {acts:?} in {protocol}");
        }
    }
    assert_eq!(session.count_children(&node!("^redis", "blocked").unwrap()).unwrap(), 0);
}

/// What is refused, and what is answered at once.
#[test]
fn arguments_are_refused_as_by_redis() {
    const LINES: &[&str] = &[
        "blpop k x",
        "blpop k -1",
        "blpop k inf",
        "blpop k 1e400",
        "blpop k nan",
        "blpop k 99999999999999999",
        "blpop k",
        "blmpop x 1 k left",
        "blmpop 0 0 k left",
        "blmpop x 0 k left",
        "blmpop 0 1 k up",
        "blmpop 0 5 k left",
        "blmpop 0 1 k left count 0",
        "blmpop 0 1 k left count",
        "bzmpop 0 1 k left",
        "bzmpop x 1 k min count 1 2",
        "blmove k k up left 0",
        "blmove k k left left x",
        "brpoplpush k k x",
        "set s text",
        "blpop s 0",
        "blpop k s 0",
        "bzpopmin k s 0",
        "rpush l 1 2 3",
        "blpop s l 0",
        "blpop k l 0",
        "bzpopmin l 0",
        "blmove l s left left 0",
        "brpoplpush l m 0",
        "multi",
        "blpop k 0",
        "blmove k f left left 0",
        "brpoplpush k f 0",
        "blmpop 0 1 k left",
        "bzpopmin k 0",
        "bzmpop 0 1 k min",
        "blpop l 0",
        "exec",
    ];
    let place = Place::new();
    let (ours, redis) = (Ours::start(&place, settings()), Redis::start(&place));
    for protocol in ["2", "3"] {
        let (mut here, mut there) = (Client::connect(&ours.socket), Client::connect(&redis.socket));
        for client in [&mut here, &mut there] {
            client.line(&format!("hello {protocol}"));
            client.line("flushall");
        }
        for line in LINES {
            assert_eq!(here.line(line), there.line(line), "{line} in {protocol}");
        }
    }
}

/// Six clients on two servers, woken by a client, by a program and by a transaction, in the order they came.
#[test]
fn first_come_first_served_over_servers() -> perilune::Result<()> {
    let place = Place::new();
    let ours = Ours::start(&place, settings());
    let socket = place.path().join("second.sock");
    let second = Running::start(
        &ours.database,
        Settings { port: ours.port, unix_socket: Some(socket.clone()), ..settings() },
    )
    .expect("a second server");
    let mut session = ours.database.session()?;
    let long = "long".repeat(300);
    for key in ["jobs", &long] {
        let mut waiting = Vec::new();
        for number in 0..6 {
            let mut client = Client::connect(if number % 2 == 0 { &socket } else { &ours.socket });
            client.send(format!("blpop other {key} 0\r\n").as_bytes());
            waiting.push(client);
            until_blocked(&mut session, "other", number + 1);
        }
        let mut pusher = Client::connect(&ours.socket);
        assert_eq!(pusher.line(&format!("rpush {key} 1 2")), Answer::Integer(2));
        // The push has served them before it was answered.
        assert_eq!(pusher.line(&format!("exists {key}")), Answer::Integer(0));
        assert_eq!(waiting[0].receive(), pair(key, "1"));
        assert_eq!(waiting[1].receive(), pair(key, "2"));
        if key == "jobs" {
            session.set(&node!("^redis", 0, "jobs", "list", 100)?, "by node")?;
        } else {
            pusher.line(&format!("rpush {key} by%node"));
        }
        let Some(Answer::Array(parts)) = waiting[2].receive() else { panic!("an element") };
        assert_eq!(parts[0], bulk(key));
        // One that has left is passed over.
        drop(waiting.remove(3));
        until_blocked(&mut session, "other", 2);
        pusher
            .send(format!("multi\r\nrpush {key} x\r\nlpush {key} w\r\nrpush other y\r\nexec\r\n").as_bytes());
        for _ in 0..5 {
            pusher.receive();
        }
        assert_eq!(waiting[3].receive(), pair(key, "w"));
        assert_eq!(waiting[4].receive(), pair(key, "x"));
        assert_eq!(pusher.line("lpop other"), bulk("y"));
    }
    // A server that ends takes its clients out of the queues.
    let mut gone = Client::connect(&socket);
    gone.send(b"blpop jobs 0\r\n");
    until_blocked(&mut session, "jobs", 1);
    let mut stays = Client::connect(&ours.socket);
    stays.send(b"blpop jobs 0\r\n");
    until_blocked(&mut session, "jobs", 2);
    second.stopper().stop();
    second.wait();
    let mut pusher = Client::connect(&ours.socket);
    pusher.line("rpush jobs last");
    assert_eq!(stays.receive(), pair("jobs", "last"));
    assert_eq!(gone.receive(), None);
    Ok(())
}

/// Producers and consumers on two servers and by node: every element arrives once.
#[test]
fn nothing_is_lost_and_nobody_hangs() -> perilune::Result<()> {
    let place = Place::new();
    let ours = Ours::start(&place, settings());
    let socket = place.path().join("second.sock");
    let second = Running::start(
        &ours.database,
        Settings { port: ours.port, unix_socket: Some(socket.clone()), ..settings() },
    )
    .expect("a second server");
    let each = 200;
    let mut all = std::thread::scope(|scope| {
        let sockets = [&ours.socket, &socket];
        let consumers: Vec<_> = (0..4)
            .map(|number| {
                scope.spawn(move || {
                    let mut client = Client::connect(sockets[number % 2]);
                    let mut got = Vec::new();
                    loop {
                        match client.line("blpop queue 0") {
                            Answer::Array(parts) if parts[1] == bulk("end") => return got,
                            Answer::Array(parts) => got.push(parts[1].to_text()),
                            other => panic!("{other:?}"),
                        }
                    }
                })
            })
            .collect();
        let producers: Vec<_> = (0..2)
            .map(|number| {
                scope.spawn(move || {
                    let mut client = Client::connect(sockets[number]);
                    for element in 0..each {
                        client.line(&format!("rpush queue {number}-{element}"));
                    }
                })
            })
            .collect();
        let mut session = ours.database.session().unwrap();
        for element in 0..each {
            let list = node!("^redis", 0, "queue", "list").unwrap();
            let pushed = session.transaction(|session| {
                let last = match session.last_child(&list)? {
                    Some(last) => last.last()?.and_then(|index| index.as_i64()).unwrap_or(0),
                    None => 0,
                };
                session.set(&list.child(last + 1)?, format!("2-{element}"))
            });
            pushed.unwrap();
        }
        producers.into_iter().for_each(|producer| producer.join().unwrap());
        let mut client = Client::connect(&socket);
        for _ in 0..4 {
            client.line("rpush queue end");
        }
        consumers.into_iter().flat_map(|consumer| consumer.join().unwrap()).collect::<Vec<_>>()
    });
    all.sort();
    all.dedup();
    assert_eq!(all.len(), 3 * each);
    second.stopper().stop();
    second.wait();
    Ok(())
}

/// Timers are not taken back, and know a connection by its place; the next one there is not theirs.
#[test]
fn a_client_that_left_ends_nobody_elses_waiting() {
    let place = Place::new();
    let ours = Ours::start(&place, Settings { threads: 1, ..Settings::default() });
    let mut session = ours.database.session().unwrap();
    let mut pusher = Client::connect(&ours.socket);
    for round in 0..3 {
        let mut first = Client::connect(&ours.socket);
        first.send(b"blpop k 0.2\r\n");
        until_blocked(&mut session, "k", 1);
        let left = Instant::now();
        drop(first);
        until_blocked(&mut session, "k", 0);
        let mut second = Client::connect(&ours.socket);
        second.send(b"blpop k 0\r\n");
        until_blocked(&mut session, "k", 1);
        // The timer of the first one has rung when a later one has.
        let mut third = Client::connect(&ours.socket);
        assert_eq!(third.line("blpop other 0.4"), Answer::Null);
        assert!(left.elapsed() >= Duration::from_millis(400));
        assert_eq!(pusher.line(&format!("rpush k {round}")), Answer::Integer(1));
        assert_eq!(second.receive(), pair("k", &round.to_string()));
    }
}
