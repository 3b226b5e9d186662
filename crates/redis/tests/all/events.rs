//! Events of keys: what subscribers of a redis-server are told, ours are told, in the same order.

use crate::peer::changes::LINES;
use crate::peer::{Client, Ours, Place, Redis};
use perilune_redis::Settings;
use perilune_resp::Answer;

fn texts(answer: &Answer) -> Vec<String> {
    let Answer::Array(parts) = answer else { panic!("{answer:?} is no message") };
    parts
        .iter()
        .map(
            |part| {
                if let Answer::Bulk(text) = part {
                    String::from_utf8_lossy(text).into()
                } else {
                    String::new()
                }
            },
        )
        .collect()
}

#[test]
fn events_are_those_of_redis() {
    let place = Place::new();
    let ours = Ours::start(&place, Settings { threads: 2, ..Settings::default() });
    let redis = Redis::start(&place);
    for classes in ["KEA", "Kg$", "Elshz", "Kx", "KEn", "KEm", ""] {
        let mut told = Vec::new();
        for server in [&ours.socket, &redis.socket] {
            let (mut client, mut subscriber) = (Client::connect(server), Client::connect(server));
            assert!(!client.call(["config", "set", "notify-keyspace-events", classes]).is_error());
            client.line("flushall");
            subscriber.line("psubscribe __key* end");
            subscriber.receive();
            for line in LINES {
                if classes == "KEm" && !matches!(*line, "get nosuch" | "exists nosuch") {
                    continue;
                }
                client.line(line);
                if line.starts_with("set gone") {
                    while client.line("exists gone") == Answer::Integer(1) {}
                    // Ours is swept a little later than it is gone.
                    std::thread::yield_now();
                }
            }
            let mut events: Vec<String> = Vec::new();
            let expires = classes.contains('A') || classes.contains('x');
            let wanted = if expires { classes.matches(['K', 'E']).count() } else { 0 };
            loop {
                // Those of the key that expires come by themselves.
                let come = events.iter().filter(|event| event.contains("gone") && event.contains("expired"));
                if come.count() >= wanted {
                    client.line("publish end -");
                }
                let message = subscriber.receive().expect("a message");
                let parts = texts(&message);
                if parts[2] == "end" {
                    break;
                }
                events.push(parts[2..].join(" "));
            }
            told.push(events);
        }
        assert_eq!(told[0], told[1], "{classes}");
        assert_eq!(told[0].is_empty(), classes.is_empty());
    }
}
