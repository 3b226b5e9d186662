//! Clients that would take too much memory are cut off: by replies that are too long, by requests that are.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use crate::peer::{Client, Ours, Place, Text};
use perilune_redis::Settings;
use perilune_resp::{Answer, ArgumentsBuf};

fn settings() -> Settings {
    Settings { threads: 2, ..Settings::default() }
}

fn ok() -> Answer {
    Answer::Simple(b"OK".to_vec())
}

fn set(client: &mut Client, name: &str, value: &str) {
    assert_eq!(client.call(["config", "set", name, value]), ok());
}

fn request(words: &[&str]) -> Vec<u8> {
    let mut bytes = Vec::new();
    words.iter().collect::<ArgumentsBuf>().write_request(&mut bytes);
    bytes
}

/// What comes until the server ends the connection.
fn sent_until_the_end(ours: &Ours, bytes: &[u8]) -> Vec<u8> {
    let mut stream = UnixStream::connect(&ours.socket).expect("a connection");
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a limit");
    // It may be over before all is written.
    let _ = stream.write_all(bytes);
    let (mut came, mut buffer) = (Vec::new(), vec![0; 1 << 16]);
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => return came,
            Ok(count) => came.extend_from_slice(&buffer[..count]),
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => return came,
            Err(error) => panic!("the server does not end it: {error}"),
        }
    }
}

/// Nothing is sent of a reply beyond the hard limit, by whatever way it is made; what is within it is sent whole.
#[test]
fn nothing_is_sent_of_what_is_too_long() {
    let place = Place::new();
    let ours = Ours::start(&place, settings());
    let mut client = Client::connect(&ours.socket);
    let item = "x".repeat(1_000);
    for at in 0..150 {
        client.call(["rpush", "list", &item]);
        client.call(["hset", "hash", &at.to_string(), &item]);
        client.call(["sadd", "set", &format!("{at}{item}")]);
        client.call(["set", &format!("key{at}{}", &item[..900]), ""]);
    }
    client.call(["set", "value", &"v".repeat(200_000)]);
    set(&mut client, "client-output-buffer-limit", "normal 100000 0 0");
    for words in [
        &["get", "value"][..],
        &["lrange", "list", "0", "-1"],
        &["hgetall", "hash"],
        &["hvals", "hash"],
        &["smembers", "set"],
        &["keys", "*"],
        &["hrandfield", "hash", "-10000", "withvalues"],
        &["eval", "return redis.call('get', 'value')", "0"],
        &["eval", "return redis.error_reply(redis.call('get', 'value'))", "0"],
        &["echo", &"e".repeat(100_000)],
    ] {
        let came = sent_until_the_end(&ours, &request(words));
        assert!(came.is_empty(), "{words:?}: {} bytes", came.len());
    }
    // What is within the limit comes as ever, before and after.
    assert_eq!(client.call(["lrange", "list", "0", "89"]).to_text().matches("120").count(), 90 * 1_000);
    let echo = "e".repeat(99_000);
    assert_eq!(client.call(["echo", &echo]), Answer::Bulk(echo.into_bytes()));
}

/// Commands of a pipeline behind the one that was too long do not run; a transaction runs whole.
#[test]
fn a_transaction_is_whole_and_a_pipeline_ends() {
    let place = Place::new();
    let ours = Ours::start(&place, settings());
    let mut client = Client::connect(&ours.socket);
    client.call(["set", "value", &"v".repeat(200_000)]);
    set(&mut client, "client-output-buffer-limit", "normal 100000 0 0");
    let lines = |lines: &[&[&str]]| lines.iter().flat_map(|words| request(words)).collect::<Vec<u8>>();
    let came = sent_until_the_end(
        &ours,
        &lines(&[&["multi"], &["set", "a", "1"], &["get", "value"], &["set", "b", "2"], &["exec"]]),
    );
    // What was answered before is sent if it was a request of its own.
    assert!(came.len() < 100, "{} bytes", came.len());
    assert_eq!(
        client.line("mget a b"),
        Answer::Array(vec![Answer::Bulk(b"1".into()), Answer::Bulk(b"2".into())])
    );
    let came =
        sent_until_the_end(&ours, &lines(&[&["set", "c", "3"], &["get", "value"], &["set", "d", "4"]]));
    assert!(came.is_empty(), "{} bytes", came.len());
    assert_eq!(client.line("mget c d"), Answer::Array(vec![Answer::Bulk(b"3".into()), Answer::Null]));
}

/// CONFIG SET of one class leaves the others as they are, and says in Redis's words what is wrong.
#[test]
fn limits_of_classes_are_set_one_by_one() {
    let place = Place::new();
    let ours = Ours::start(&place, settings());
    let mut client = Client::connect(&ours.socket);
    set(&mut client, "client-output-buffer-limit", "normal 1mb 2mb 60 replica 3mb 4mb 70");
    set(&mut client, "client-output-buffer-limit", "pubsub 5mb 6mb 80 normal 70000 80000 90");
    let told = client.line("config get client-output-buffer-limit");
    let expected = "normal 70000 80000 90 slave 3145728 4194304 70 pubsub 5242880 6291456 80";
    assert_eq!(
        told,
        Answer::Array(vec![
            Answer::Bulk(b"client-output-buffer-limit".into()),
            Answer::Bulk(expected.as_bytes().to_vec())
        ])
    );
    for (wrong, why) in [
        ("wrong number", "Wrong number of arguments in buffer limit configuration."),
        ("master 1 1 1", "Invalid client class specified in buffer limit configuration."),
        ("normal 10mbs 1 1", "Error in hard, soft or soft_seconds setting in buffer limit configuration."),
        ("pubsub 1 1 60s", "Error in hard, soft or soft_seconds setting in buffer limit configuration."),
    ] {
        let refused = client.call(["config", "set", "client-output-buffer-limit", wrong]);
        assert!(refused.is_error() && refused.to_text().ends_with(why), "{wrong}: {refused:?}");
    }
}

/// A client beyond its soft limit is cut off when its seconds are over, though nothing comes or goes.
#[test]
fn the_soft_limit_ends_who_gets_nothing_more() {
    let place = Place::new();
    let ours = Ours::start(&place, settings());
    let mut client = Client::connect(&ours.socket);
    set(&mut client, "client-output-buffer-limit", "pubsub 0 100000 2");
    let mut listener = Client::connect(&ours.socket);
    listener.line("client setname listener");
    listener.line("subscribe news");
    let news = "n".repeat(4 << 20);
    let start = Instant::now();
    assert_eq!(client.call(["publish", "news", &news]), Answer::Integer(1));
    while client.line("client list").to_text().contains("name=listener") {
        assert!(start.elapsed() < Duration::from_secs(20), "it is still there");
        std::thread::yield_now();
    }
    assert!(start.elapsed() >= Duration::from_secs(2), "it is gone after {:?}", start.elapsed());
}

/// A request that does not end is kept up to client-query-buffer-limit.
#[test]
fn who_asks_too_much_is_cut_off() {
    let place = Place::new();
    let ours = Ours::start(&place, settings());
    let mut client = Client::connect(&ours.socket);
    assert!(client.line("config set client-query-buffer-limit 1000").is_error());
    set(&mut client, "client-query-buffer-limit", "1mb");
    let value = "v".repeat(2 << 20);
    assert!(sent_until_the_end(&ours, &request(&["set", "key", &value])).is_empty());
    let many = request(&vec!["word"; 200_000]);
    assert!(sent_until_the_end(&ours, &many).is_empty());
    assert_eq!(client.line("exists key"), Answer::Integer(0));
    // What is shorter, and many requests at once that are short, are served.
    assert_eq!(client.call(["set", "key", &value[..1_000_000]]), ok());
    let ping = request(&["ping"]);
    client.send(&ping.repeat(100_000));
    for at in 0..100_000 {
        assert_eq!(client.receive(), Some(Answer::Simple(b"PONG".to_vec())), "{at}");
    }
}

fn figure(client: &mut Client, name: &str) -> u64 {
    let info = client.line("info").to_text();
    let line = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':').map(str::to_owned));
    line.expect("a figure").trim().parse().expect("a number")
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(20), "{what}");
        std::thread::yield_now();
    }
}

/// A client that has begun a request of so many bytes; the server has them.
fn holding(ours: &Ours, control: &mut Client, name: &str, bytes: usize) -> Client {
    let mut client = Client::connect(&ours.socket);
    client.call(["client", "setname", name]);
    client.send(format!("*1\r\n${}\r\n", 2 * bytes).as_bytes());
    client.send(&vec![b'x'; bytes]);
    until("the server reads", || {
        let list = control.line("client list").to_text();
        let line = list.lines().find(|line| line.contains(&format!("name={name} "))).unwrap_or_default();
        let held = line.split(' ').find_map(|field| field.strip_prefix("qbuf=")).map(str::parse::<usize>);
        matches!(held, Some(Ok(held)) if held >= bytes) || line.is_empty()
    });
    client
}

/// With `maxmemory-clients` the largest go, whatever loop they are in, and no more of them than must; not those that may stay.
#[test]
fn the_largest_clients_are_cut_off() {
    let place = Place::new();
    let ours = Ours::start(&place, settings());
    let mut control = Client::connect(&ours.socket);
    control.line("client no-evict on");
    let small: Vec<Client> =
        (0..4).map(|at| holding(&ours, &mut control, &format!("small{at}"), 200_000)).collect();
    let large: Vec<Client> =
        (0..4).map(|at| holding(&ours, &mut control, &format!("large{at}"), 3_000_000)).collect();
    let mut kept = Client::connect(&ours.socket);
    kept.line("client setname kept");
    kept.line("client no-evict on");
    kept.send(format!("*1\r\n${}\r\n", 9_000_000).as_bytes());
    kept.send(&vec![b'x'; 5_000_000]);
    let there = |control: &mut Client, name: &str| {
        control.line("client list").to_text().matches(&format!("name={name}")).count()
    };
    assert_eq!(figure(&mut control, "mem_clients_normal"), 0, "nothing is counted without a limit");
    set(&mut control, "maxmemory-clients", "16mb");
    until("some of the large ones go", || there(&mut control, "large") < 4);
    until("there is room", || figure(&mut control, "mem_clients_normal") < 16 << 20);
    let left = there(&mut control, "large");
    assert_eq!((there(&mut control, "small"), there(&mut control, "kept")), (4, 1));
    assert!((1..4).contains(&left), "{left} large ones are left");
    assert_eq!(figure(&mut control, "evicted_clients"), 4 - left as u64);
    // Percent of maxmemory: all go that may.
    set(&mut control, "maxmemory", "100mb");
    set(&mut control, "maxmemory-clients", "1%");
    until("all go that may", || there(&mut control, "small") + there(&mut control, "large") == 0);
    assert_eq!((there(&mut control, "kept"), control.line("ping")), (1, Answer::Simple(b"PONG".to_vec())));
    // Without it they may stay.
    set(&mut control, "maxmemory-clients", "0");
    drop(holding(&ours, &mut control, "free", 2_000_000));
    assert!(control.line("config set maxmemory-clients 101%").is_error());
    drop((small, large));
}

/// Whatever a client makes the server keep counts: what it queues, watches, is subscribed to, does not read.
#[test]
fn all_that_a_client_takes_counts() {
    let place = Place::new();
    let ours = Ours::start(&place, settings());
    let mut control = Client::connect(&ours.socket);
    control.line("client no-evict on");
    set(&mut control, "maxmemory-clients", "100000");
    let mut ends = |what: &str, begin: &[&str], next: &dyn Fn(usize) -> Vec<String>| {
        let mut stream = UnixStream::connect(&ours.socket).expect("a connection");
        stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a limit");
        let (before, start) = (figure(&mut control, "evicted_clients"), Instant::now());
        stream.write_all(&request(begin)).expect("the server reads");
        for at in 0.. {
            assert!(start.elapsed() < Duration::from_secs(20), "{what} does not count");
            let words = next(at);
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            if stream.write_all(&request(&words)).is_err() || !matches!(stream.read(&mut [0; 4_096]), Ok(1..))
            {
                break;
            }
        }
        assert_eq!(figure(&mut control, "evicted_clients"), before + 1, "{what}");
    };
    ends("MULTI", &["multi"], &|_| vec!["set".into(), "k".into(), "v".repeat(10_000)]);
    ends("WATCH", &["ping"], &|at| vec!["watch".into(), at.to_string()]);
    ends("SUBSCRIBE", &["ping"], &|at| vec!["subscribe".into(), at.to_string()]);
    ends("PSUBSCRIBE", &["ping"], &|at| vec!["psubscribe".into(), at.to_string()]);
    ends("SSUBSCRIBE", &["ping"], &|at| vec!["ssubscribe".into(), at.to_string()]);
}
