//! Nobody is held up: what one client leaves, enters or asks for in great numbers is done in slices, and the others are served
//! between them.

use std::time::{Duration, Instant};

use crate::peer::{Client, Ours, Place, Text};
use perilune::node;
use perilune_redis::Settings;
use perilune_resp::{Answer, ArgumentsBuf};

const NAMES: usize = 20_000;

fn settings() -> Settings {
    Settings { threads: 1, ..Settings::default() }
}

fn ok() -> Answer {
    Answer::Simple(b"OK".to_vec())
}

fn name(number: usize) -> String {
    format!("channel:{number:06}")
}

fn request<T: AsRef<[u8]>>(words: impl IntoIterator<Item = T>) -> Vec<u8> {
    let mut request = Vec::new();
    words.into_iter().collect::<ArgumentsBuf>().write_request(&mut request);
    request
}

/// A command about the first `count` names.
fn about(word: &str, count: usize) -> Vec<u8> {
    request(std::iter::once(word.to_owned()).chain((0..count).map(name)))
}

/// The subscribers of the first and of the last of the names, as another client is told.
fn ends(client: &mut Client) -> [i64; 2] {
    let Answer::Array(parts) = client.call(["pubsub", "numsub", &name(0), &name(NAMES - 1)]) else {
        panic!("an array")
    };
    [1, 3].map(|place| match parts[place] {
        Answer::Integer(count) => count,
        ref other => panic!("{other:?}"),
    })
}

/// Asks until the ends are `wanted`: how often they were in between.
fn watched(client: &mut Client, wanted: [i64; 2], between: [i64; 2]) -> usize {
    let (begun, mut seen) = (Instant::now(), 0);
    loop {
        let now = ends(client);
        if now == wanted {
            return seen;
        }
        seen += usize::from(now == between);
        assert!(begun.elapsed() < Duration::from_secs(60), "still {now:?}");
    }
}

/// SUBSCRIBE of 100,000 channels, and a client's end, were one transaction each, and half a second long: nobody else was
/// answered meanwhile, so that nobody ever saw a part of them done.
#[test]
fn many_names_are_entered_and_left_in_slices() {
    let place = Place::new();
    let ours = Ours::start(&place, settings());
    let mut other = Client::connect(&ours.socket);
    for word in ["unsubscribe", "names", "reset", "end"] {
        let mut client = Client::connect(&ours.socket);
        client.send(&about("subscribe", NAMES));
        assert!(watched(&mut other, [1, 1], [1, 0]) > 0, "SUBSCRIBE was done at once");
        for number in 0..NAMES {
            let Some(Answer::Array(parts)) = client.receive() else { panic!("a reply for each") };
            assert_eq!(parts[1..], [Answer::Bulk(name(number).into()), Answer::Integer(number as i64 + 1)]);
        }
        match word {
            "end" => drop(client),
            "names" => client.send(&[about("unsubscribe", NAMES), request(["ping"])].concat()),
            word => client.send(&request([word])),
        }
        assert!(watched(&mut other, [0, 0], [0, 1]) > 0, "{word} was done at once");
    }
    assert_eq!(other.line("pubsub channels"), Answer::Array(Vec::new()));
    assert_eq!(other.line("client list type pubsub").to_text(), "");
}

/// Replies of a command that is done in slices come before those of the next ones, and are true when they come.
#[test]
fn replies_keep_their_order_and_are_true() {
    let place = Place::new();
    let ours = Ours::start(&place, settings());
    let mut other = Client::connect(&ours.socket);
    let mut client = Client::connect(&ours.socket);
    let count = 1_000;
    client.send(&[about("subscribe", count), about("unsubscribe", count - 1), request(["ping"])].concat());
    for (word, numbers) in [("subscribe", 1..=count), ("unsubscribe", 1..=count - 1)] {
        for number in numbers {
            let Some(Answer::Array(parts)) = client.receive() else { panic!("a reply for each") };
            let left = if word == "subscribe" { number } else { count - number };
            assert_eq!(parts[0], Answer::Bulk(word.into()));
            assert_eq!(parts[2], Answer::Integer(left as i64));
        }
    }
    assert_eq!(
        client.receive(),
        Some(Answer::Array(vec![Answer::Bulk(b"pong".into()), Answer::Bulk(b"".into())]))
    );
    assert_eq!(other.call(["publish", &name(count - 1), "x"]), Answer::Integer(1));
    assert!(client.receive().is_some());
    // RESET is answered when nothing is published to it any more.
    client.send(&about("psubscribe", count));
    (0..count).for_each(|_| drop(client.receive()));
    assert_eq!(client.line("reset"), Answer::Simple(b"RESET".to_vec()));
    assert_eq!(other.line("pubsub numpat"), Answer::Integer(0));
    // EXEC is one reply, behind which all of it is so.
    client.send(&[request(["multi"]), about("subscribe", count), request(["exec"])].concat());
    assert_eq!([client.receive(), client.receive()], [Some(ok()), Some(Answer::Simple(b"QUEUED".to_vec()))]);
    assert!(matches!(client.receive(), Some(Answer::Array(_))));
    assert_eq!(other.call(["publish", &name(count - 1), "x"]), Answer::Integer(1));
}

/// The place of a connection that has gone is taken by another one only when nothing can be published to it any more.
#[test]
fn who_comes_next_gets_nothing_of_who_has_gone() {
    let place = Place::new();
    let ours = Ours::start(&place, settings());
    let mut other = Client::connect(&ours.socket);
    let mut client = Client::connect(&ours.socket);
    client.send(&about("subscribe", NAMES));
    (0..NAMES).for_each(|_| drop(client.receive()));
    drop(client);
    let mut next: Vec<_> = (0..8).map(|_| Client::connect(&ours.socket)).collect();
    while ends(&mut other) != [0, 0] {
        other.call(["publish", &name(NAMES - 1), "for nobody else"]);
        for client in &mut next {
            assert_eq!(client.line("ping"), Answer::Simple(b"PONG".to_vec()));
        }
    }
}

/// A client could be subscribed to as many names as 64 MiB hold.
#[test]
fn subscriptions_have_a_limit() {
    let place = Place::new();
    let ours = Ours::start(&place, settings());
    let mut client = Client::connect(&ours.socket);
    assert!(matches!(client.line("hello 3"), Answer::Map(_)));
    assert_eq!(client.line("config set client-subscriptions-limit 100"), ok());
    client.send(&about("subscribe", 100));
    (0..100).for_each(|_| drop(client.receive()));
    client.send(&about("subscribe", 101));
    let told = client.receive().expect("an error").to_text();
    assert!(told.starts_with("ERR a client may be subscribed to 100 names: "), "{told}");
    assert!(client.line("psubscribe p*").is_error());
    // What it has it may have again, and none of what was refused.
    client.send(&about("subscribe", 100));
    (0..100).for_each(|_| assert!(matches!(client.receive(), Some(Answer::Push(_)))));
    assert_eq!(client.call(["publish", &name(100), "x"]), Answer::Integer(0));
}

/// All requests that had come were run in one go, however long they took: a second for a hundred of ten milliseconds.
#[test]
fn a_pipeline_of_long_commands_lets_others_in() {
    let place = Place::new();
    let ours = Ours::start(&place, settings());
    let (mut client, mut other) = (Client::connect(&ours.socket), Client::connect(&ours.socket));
    other.line("ping");
    let mut pipeline = request(["incr", "begun"]);
    (0..100).for_each(|_| pipeline.extend(request(["debug", "sleep", ".01"])));
    pipeline.extend(request(["set", "ended", "1"]));
    client.send(&pipeline);
    let mut session = ours.database.session().expect("a session");
    let mut is_set = |key| session.get(&node!("^redis", 0, key).expect("a node")).expect("a value").is_some();
    while !is_set("begun") {
        std::thread::yield_now();
    }
    assert_eq!(other.line("ping"), Answer::Simple(b"PONG".to_vec()));
    assert!(!is_set("ended"), "the other one has waited for all of them");
    (0..102).for_each(|_| assert!(client.receive().is_some()));
}

/// EXEC of a million commands held its loop for seconds.
#[test]
fn a_long_exec_lets_others_in() {
    let place = Place::new();
    let ours = Ours::start(&place, settings());
    let (mut client, mut other) = (Client::connect(&ours.socket), Client::connect(&ours.socket));
    client.send(&request(["multi"]));
    client.receive();
    for chunk in 0..20 {
        let mut pipeline = Vec::new();
        (0..1_000).for_each(|number| pipeline.extend(request(["set", &format!("{chunk}:{number}"), "x"])));
        client.send(&pipeline);
        (0..1_000).for_each(|_| drop(client.receive()));
    }
    client.send(&request(["exec"]));
    let mut session = ours.database.session().expect("a session");
    let last = node!("^redis", 0, "19:999").expect("a node");
    loop {
        let has_begun = other.line("client list").to_text().contains("cmd=exec");
        let has_ended = session.get(&last).expect("a value").is_some();
        if has_begun && !has_ended {
            break;
        }
        assert!(!has_ended, "nobody was answered while it ran");
    }
    let Some(Answer::Array(replies)) = client.receive() else { panic!("an array") };
    assert_eq!(replies.len(), 20_000);
    assert_eq!(other.line("dbsize"), Answer::Integer(20_000));
}

/// What takes all of a large key, or a long range, or names many things, ran in its loop: SUNIONSTORE of two sets of 200,000
/// members held it for two seconds.
#[test]
fn what_takes_large_keys_lets_others_in() {
    const MEMBERS: usize = 20_000;
    let place = Place::new();
    let ours = Ours::start(&place, settings());
    let (mut client, mut other) = (Client::connect(&ours.socket), Client::connect(&ours.socket));
    let mut session = ours.database.session().expect("a session");
    let words = |line: &str, each: &dyn Fn(usize) -> String| -> Vec<String> {
        line.split(' ').map(str::to_owned).chain((0..MEMBERS).map(each)).collect()
    };
    for (line, answer) in [("sadd s", MEMBERS), ("sadd t", MEMBERS), ("rpush l", MEMBERS)] {
        assert_eq!(
            client.call(words(line, &|number| format!("{line}{number:06}"))),
            Answer::Integer(answer as i64)
        );
    }
    let mut monitor = Client::connect(&ours.socket);
    assert_eq!(monitor.line("monitor"), ok());
    let long = [
        ("sunionstore u s t", Answer::Integer(2 * MEMBERS as i64), "u"),
        ("copy u v", Answer::Integer(1), "v"),
        ("zunionstore z 2 s t", Answer::Integer(2 * MEMBERS as i64), "z"),
        ("sort l by nosort store w", Answer::Integer(MEMBERS as i64), "w"),
        ("zrangestore y z 0 -1", Answer::Integer(2 * MEMBERS as i64), "y"),
    ];
    for (line, answer, key) in long {
        let name = line.split(' ').next().expect("a name");
        client.send(&request(line.split(' ')));
        let target = node!("^redis", 0, key).expect("a node");
        let mut has = || session.count_children(&target).expect("a count") > 0;
        loop {
            let has_begun = other.line("client list").to_text().contains(&format!("cmd={name} "));
            let has_ended = has();
            if has_begun && !has_ended {
                break;
            }
            assert!(!has_ended, "{line}: nobody was answered while it ran");
        }
        assert_eq!(client.receive(), Some(answer), "{line}");
    }
    for (line, count) in [
        ("smembers u", 2 * MEMBERS),
        ("lrange l 0 -1", MEMBERS),
        ("zrange z 0 -1", 2 * MEMBERS),
        ("keys *", 8),
    ] {
        let Answer::Array(all) = client.line(line) else { panic!("{line}") };
        assert_eq!(all.len(), count, "{line}");
        // Inside a transaction and a script nobody can leave.
        client.send(&[request(["multi"]), request(line.split(' ')), request(["exec"])].concat());
        let Some(Answer::Array(replies)) = (0..3).filter_map(|_| client.receive()).last() else {
            panic!("{line}")
        };
        assert_eq!(replies, [Answer::Array(all)], "{line}");
    }
    assert_eq!(client.line("lrange l 10 11").to_text().matches("Bulk").count(), 2);
    client.line("echo ended");
    let mut shown = 0;
    loop {
        let line = monitor.receive().expect("what was asked").to_text();
        shown += usize::from(line.contains("\"sunionstore\" \"u\""));
        if line.contains("\"ended\"") {
            break;
        }
    }
    assert_eq!(shown, 1, "what runs again is shown once");
    assert!(client.line("info commandstats").to_text().contains("cmdstat_sunionstore:calls=1,"));
}

/// Each rule was compared with each other one: 100,000 patterns of a user held the loop for minutes.
#[test]
fn rules_of_users_have_a_limit() {
    let place = Place::new();
    let ours = Ours::start(&place, settings());
    let mut client = Client::connect(&ours.socket);
    let mut set = |sign: &str, count: usize| {
        let rules = (0..count).map(|number| format!("{sign}{number}"));
        client.call(["acl", "setuser", "ada"].map(str::to_owned).into_iter().chain(rules))
    };
    for sign in ["~", "&", "+get|"] {
        assert_eq!(set(sign, 4_096), ok());
        let told = set(sign, 4_097).to_text();
        assert!(told.contains("Too many rules: there may be 4096"), "{told}");
    }
}

/// CLIENT KILL of many ends them all, and is answered with how many there were.
#[test]
fn many_are_ended() {
    let place = Place::new();
    let ours = Ours::start(&place, settings());
    let mut other = Client::connect(&ours.socket);
    let mut clients: Vec<_> = (0..300).map(|_| Client::connect(&ours.socket)).collect();
    clients.iter_mut().for_each(|client| drop(client.line("ping")));
    assert_eq!(other.line("client kill type normal skipme yes"), Answer::Integer(300));
    assert_eq!(other.line("client list").to_text().lines().count(), 1);
    clients.iter_mut().for_each(|client| assert_eq!(client.receive(), None));
}
