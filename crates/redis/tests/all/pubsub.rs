//! Messages: what subscribers of two servers get, in both protocols, and what a transaction sends.

use crate::peer::{Client, Ours, Place, Redis};
use perilune_redis::{Running, Settings};
use perilune_resp::Answer;

fn settings() -> Settings {
    Settings { threads: 2, ..Settings::default() }
}

fn bulk(text: &str) -> Answer {
    if text == "-" {
        return Answer::Null;
    }
    text.parse().map_or_else(|_| Answer::Bulk(text.as_bytes().to_vec()), Answer::Integer)
}

/// Words; a number is an integer, `-` is null.
fn words(line: &str) -> Vec<Answer> {
    line.split(' ').map(bulk).collect()
}

fn array(line: &str) -> Option<Answer> {
    Some(Answer::Array(words(line)))
}

fn second(place: &Place, ours: &Ours) -> (Running, std::path::PathBuf) {
    let socket = place.path().join("second.sock");
    let settings = Settings { port: ours.port, unix_socket: Some(socket.clone()), ..settings() };
    (Running::start(&ours.database, settings).expect("a second server"), socket)
}

#[test]
fn messages_reach_subscribers_of_all_servers() {
    let place = Place::new();
    let ours = Ours::start(&place, settings());
    let (running, socket) = second(&place, &ours);
    let mut subscribers: Vec<_> =
        (0..6).map(|n| Client::connect(if n % 2 == 0 { &ours.socket } else { &socket })).collect();
    for client in &mut subscribers {
        assert_eq!(Some(client.line("subscribe news")), array("subscribe news 1"));
        assert_eq!(Some(client.line("psubscribe n?ws")), array("psubscribe n?ws 2"));
    }
    let long = "x".repeat(700);
    subscribers[5].line(&format!("subscribe {long}"));
    for from in [&ours.socket, &socket] {
        let mut publisher = Client::connect(from);
        assert_eq!(publisher.line("publish news hello"), Answer::Integer(12));
        assert_eq!(publisher.line("publish nobody hello"), Answer::Integer(0));
        assert_eq!(publisher.line(&format!("publish {long} there")), Answer::Integer(1));
        assert_eq!(publisher.line("pubsub numsub news none"), Answer::Array(words("news 6 none 0")));
        assert_eq!(publisher.line("pubsub numpat"), Answer::Integer(1));
        assert_eq!(Some(publisher.line("pubsub channels n*")), array("news"));
        let Answer::Array(channels) = publisher.line("pubsub channels") else { panic!("an array") };
        assert_eq!(channels.len(), 2);
        for client in &mut subscribers {
            assert_eq!(client.receive(), array("message news hello"));
            assert_eq!(client.receive(), array("pmessage n?ws news hello"));
        }
        assert_eq!(subscribers[5].receive(), array(&format!("message {long} there")));
    }
    // More than one message of the engine holds.
    let mut publisher = Client::connect(&socket);
    let big = vec![b'b'; 3 << 20];
    assert_eq!(publisher.call([&b"publish"[..], b"news", &big]), Answer::Integer(12));
    for client in &mut subscribers {
        let Some(Answer::Array(parts)) = client.receive() else { panic!("a message") };
        assert_eq!(parts[2], Answer::Bulk(big.clone()));
    }
    // Who leaves is counted no more, and neither is a server that has ended.
    drop(subscribers.drain(..4));
    let count = |client: &mut Client, wanted: i64| {
        let start = std::time::Instant::now();
        while client.line("pubsub numsub news") != Answer::Array(vec![bulk("news"), Answer::Integer(wanted)])
        {
            assert!(start.elapsed().as_secs() < 20, "not {wanted} subscribers");
            std::thread::yield_now();
        }
    };
    count(&mut publisher, 2);
    running.stopper().stop();
    running.wait();
    count(&mut Client::connect(&ours.socket), 1);
}

/// A transaction's messages leave with its commit, and those of one that is dropped never.
#[test]
fn transactions_send_when_they_commit() {
    let place = Place::new();
    let ours = Ours::start(&place, settings());
    let mut subscriber = Client::connect(&ours.socket);
    assert!(matches!(subscriber.line("hello 3"), Answer::Map(_)));
    assert_eq!(subscriber.line("subscribe a b"), Answer::Push(words("subscribe a 1")));
    assert_eq!(subscriber.receive(), Some(Answer::Push(words("subscribe b 2"))));
    let mut client = Client::connect(&ours.socket);
    client.send(b"multi\r\npublish a dropped\r\ndiscard\r\n");
    client.send(b"multi\r\npublish a one\r\nlpush s x\r\nincr s\r\npublish b two\r\nexec\r\n");
    for _ in 0..8 {
        client.receive();
    }
    assert!(matches!(client.receive(), Some(Answer::Array(_))));
    // With pushes a subscriber may do anything.
    assert_eq!(subscriber.receive(), Some(Answer::Push(words("message a one"))));
    assert_eq!(subscriber.receive(), Some(Answer::Push(words("message b two"))));
    assert_eq!(subscriber.line("llen s"), Answer::Integer(1));
    assert_eq!(subscriber.line("reset"), Answer::Simple(b"RESET".to_vec()));
    assert_eq!(client.line("publish a three"), Answer::Integer(0));
}

/// A redis-server answers these lines as ours does, in both protocols.
#[test]
fn subscribed_clients_are_answered_as_by_redis() {
    const LINES: &[&str] = &[
        "unsubscribe",
        "punsubscribe x",
        "sunsubscribe",
        "subscribe",
        "subscribe c c",
        "receive",
        "get k",
        "publish c m",
        "multi",
        "hello 2",
        "ping",
        "ping me",
        "ping me now",
        "client id",
        "psubscribe p* q*",
        "receive",
        "ssubscribe s",
        "spublish s m",
        "unsubscribe nothing",
        "punsubscribe q*",
        "unsubscribe",
        "punsubscribe",
        "sunsubscribe",
        "ping",
        "ping me",
        "pubsub channels",
        "pubsub numsub",
        "pubsub numpat x",
        "pubsub help x",
        "pubsub CHANNELS a b",
        "pubsub nosuch",
        "pubsub channels a b",
        "subscribe z",
        "reset",
        "ping",
        "multi",
        "subscribe in",
        "exec",
        "unsubscribe",
    ];
    let place = Place::new();
    let (ours, redis) = (Ours::start(&place, settings()), Redis::start(&place));
    for protocol in ["2", "3"] {
        let (mut here, mut there) = (Client::connect(&ours.socket), Client::connect(&redis.socket));
        assert!(!here.line(&format!("hello {protocol}")).is_error());
        there.line(&format!("hello {protocol}"));
        for line in LINES {
            // What a client with pushes may do besides is compared elsewhere, and its own messages may
            // come before or after its replies.
            if protocol == "3" && matches!(*line, "hello 2" | "publish c m" | "spublish s m" | "client id") {
                continue;
            }
            if protocol == "3" && *line == "multi" {
                break;
            }
            let (mine, theirs) = match *line {
                "receive" => (here.receive(), there.receive()),
                line => (Some(here.line(line)), Some(there.line(line))),
            };
            assert_eq!(mine, theirs, "{line} in {protocol}");
        }
    }
}

/// A subscriber that does not read is cut off; the others get everything.
#[test]
fn a_subscriber_that_does_not_read_is_cut_off() {
    let place = Place::new();
    let ours = Ours::start(&place, settings());
    let (mut slow, mut quick) = (Client::connect(&ours.socket), Client::connect(&ours.socket));
    for client in [&mut slow, &mut quick] {
        client.line("subscribe flood");
    }
    let mut publisher = Client::connect(&ours.socket);
    let payload = vec![b'x'; 1 << 20];
    for _ in 0..80 {
        assert!(matches!(publisher.call([&b"publish"[..], b"flood", &payload]), Answer::Integer(1 | 2)));
        let Some(Answer::Array(parts)) = quick.receive() else { panic!("a message") };
        assert_eq!(parts[2], Answer::Bulk(payload.clone()));
    }
    let start = std::time::Instant::now();
    while publisher.line("pubsub numsub flood") != Answer::Array(words("flood 1")) {
        assert!(start.elapsed().as_secs() < 20, "the slow one is still there");
        std::thread::yield_now();
    }
}
