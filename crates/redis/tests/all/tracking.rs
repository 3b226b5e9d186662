//! CLIENT TRACKING: who keeps what it has read is told of every change.

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::peer::{Client, Ours, Place, Redis, Text};
use perilune::node;
use perilune_redis::Settings;
use perilune_resp::Answer;

fn settings() -> Settings {
    Settings { threads: 2, ..Settings::default() }
}

/// A notice that all is to be forgotten.
const ALL: &str = "(all)";

/// The key that a notice is about; none if it is a reply.
fn noticed(answer: &Answer) -> Option<String> {
    let Answer::Push(parts) = answer else { return None };
    assert_eq!(parts[0].to_text(), "invalidate");
    if parts[1] == Answer::Null {
        return Some(ALL.to_owned());
    }
    let Answer::Array(keys) = &parts[1] else { panic!("no keys: {answer:?}") };
    assert_eq!(keys.len(), 1);
    Some(keys[0].to_text())
}

fn tracker(ours: &Ours, options: &str) -> Client {
    let mut client = Client::connect(&ours.socket);
    client.line("hello 3");
    assert_eq!(client.line(format!("client tracking on {options}").trim()), Answer::Simple(b"OK".to_vec()));
    client
}

/// The notice that comes next.
fn next(client: &mut Client) -> String {
    let answer = client.receive().expect("a notice");
    noticed(&answer).unwrap_or_else(|| panic!("no notice: {answer:?}"))
}

#[test]
fn options_are_answered_as_by_redis() {
    let place = Place::new();
    let (ours, redis) = (Ours::start(&place, settings()), Redis::start(&place));
    let (mut ours, mut theirs) = (Client::connect(&ours.socket), Client::connect(&redis.socket));
    for line in [
        "client trackinginfo",
        "client getredir",
        "client tracking",
        "client tracking on foo",
        "client tracking maybe",
        "client tracking on optin optout",
        "client tracking on prefix a",
        "client caching yes",
        "client tracking on optin noloop",
        "client caching no",
        "client caching maybe",
        "client caching yes",
        "client trackinginfo",
        "client tracking on optout",
        "client getredir",
        "get k",
        "client trackinginfo",
        "client tracking off",
        "client tracking on optout",
        "client caching no",
        "client trackinginfo",
        "reset",
        "client trackinginfo",
    ] {
        assert_eq!(ours.line(line), theirs.line(line), "{line}");
    }
}

#[test]
fn every_way_to_change_a_key_is_told_once() -> perilune::Result<()> {
    let place = Place::new();
    let ours = Ours::start(&place, settings());
    let beside = ours.beside(&place);
    let (mut other, mut remote) = (Client::connect(&ours.socket), Client::connect(&beside.socket));
    let mut session = ours.database.session()?;
    let mut client = tracker(&ours, "");
    let read = |client: &mut Client, line: &str| {
        assert!(noticed(&client.line(line)).is_none(), "{line}");
    };
    for line in ["set k 1", "hset h f 1", "rpush l a", "sadd s a", "zadd z 1 a", "set gone 1"] {
        other.line(line);
    }
    // By commands, here and at another server; of what was absent, too.
    for (reads, changes, key) in [
        ("get k", "incr k", "k"),
        ("get new", "set new 1", "new"),
        ("hget h f", "hset h g 2", "h"),
        ("lrange l 0 -1", "rpush l b", "l"),
        ("smembers s", "srem s a", "s"),
        ("zscore z a", "zincrby z 1 a", "z"),
        ("ttl k", "pexpire k 1000000", "k"),
        ("exists gone", "del gone", "gone"),
        ("strlen k", "rename k moved", "k"),
        ("eval_ro return(redis.call('get','moved')) 1 moved", "set moved 2", "moved"),
    ] {
        read(&mut client, reads);
        remote.line(changes);
        assert_eq!(next(&mut client), key, "{reads}, {changes}");
    }
    // By node, in whatever database.
    session.set(&node!("^redis", 0, "by node")?, 1)?;
    read(&mut client, "select 3");
    session.set(&node!("^redis", 3, "k")?, 1)?;
    read(&mut client, "get k");
    session.set(&node!("^redis", 3, "k")?, 2)?;
    assert_eq!(next(&mut client), "k");
    // By time.
    read(&mut client, "set short 1 px 30");
    read(&mut client, "get short");
    assert_eq!(next(&mut client), "short");
    // What is read in EXEC; and once told, it is forgotten.
    for line in ["multi", "select 0", "mget a b", "exec"] {
        read(&mut client, line);
    }
    other.line("mset a 1 b 1 c 1");
    let mut keys = [next(&mut client), next(&mut client)];
    keys.sort();
    assert_eq!(keys, ["a", "b"]);
    other.line("mset a 2 b 2");
    read(&mut client, "get d");
    other.line("set d 1");
    assert_eq!(next(&mut client), "d");
    Ok(())
}

/// A key that is changed back before anybody looks: who has read it meanwhile keeps what is not so.
#[test]
fn what_was_read_between_two_changes_is_told() {
    let place = Place::new();
    let ours = Ours::start(&place, settings());
    let mut client = tracker(&ours, "");
    client.line("set k 1");
    for read in ["get k", "eval_ro \"return redis.call('get', KEYS[1])\" 1 k"] {
        // In one piece, so that all is run in one round of the loop, but for the script.
        client.send(format!("get k\r\nset k 2\r\n{read}\r\nset k 1\r\n").as_bytes());
        let (mut replies, mut told) = (Vec::new(), false);
        while replies.len() < 4 || !told {
            let answer = client.receive().expect("an answer");
            match noticed(&answer) {
                Some(key) => told = key == "k",
                None => replies.push(answer.to_text()),
            }
        }
        assert_eq!((&*replies[0], &*replies[2]), ("1", "2"));
    }
}

#[test]
fn clients_choose_what_is_tracked() {
    let place = Place::new();
    let ours = Ours::start(&place, settings());
    let mut other = Client::connect(&ours.socket);
    let (mut opt_in, mut opt_out) = (tracker(&ours, "optin"), tracker(&ours, "optout noloop"));
    for line in ["get a", "client caching yes", "get b", "get c"] {
        opt_in.line(line);
    }
    for line in ["client caching no", "get a", "get b"] {
        opt_out.line(line);
    }
    other.line("mset a 1 b 1 c 1");
    assert_eq!((next(&mut opt_in), next(&mut opt_out)), ("b".to_owned(), "b".to_owned()));
    for (off, line) in [("client tracking off", "ping"), ("reset", "hello 3")] {
        opt_out.line("get k");
        opt_out.line(off);
        opt_in.line("client caching yes");
        opt_in.line("get k");
        other.line("incr k");
        assert_eq!(next(&mut opt_in), "k");
        assert!(noticed(&opt_out.line(line)).is_none(), "{off}");
        opt_out.line("client tracking on");
    }
    // What is chosen inside EXEC would come too late for what is read there.
    opt_in.line("multi");
    opt_in.line("client caching yes");
    let Answer::Array(replies) = opt_in.line("exec") else { panic!("an array") };
    assert!(replies[0].is_error(), "{replies:?}");
    let listed = other.line("client list").to_text();
    assert!(listed.contains(" flags=tU ") && listed.contains(" redir=0 "), "{listed}");
}

#[test]
fn what_is_flushed_is_told_at_once() {
    let place = Place::new();
    let ours = Ours::start(&place, settings());
    let beside = ours.beside(&place);
    let (mut client, mut other) = (tracker(&ours, ""), Client::connect(&beside.socket));
    for flush in ["flushall", "flushdb", "flushall async"] {
        other.line("mset a 1 b 2");
        client.line("mget a b c");
        other.line(flush);
        assert_eq!(next(&mut client), ALL, "{flush}");
        client.line("get a");
        other.line("set a 1");
        assert_eq!(next(&mut client), "a", "{flush}");
    }
    // In a transaction, and behind its reply.
    client.line("get a");
    for line in ["multi", "flushdb", "exec"] {
        assert!(noticed(&client.line(line)).is_none(), "{line}");
    }
    assert_eq!(next(&mut client), ALL);
}

/// With NOLOOP nobody is told of its own changes, but of what others change before, between and behind them.
#[test]
fn own_changes_are_not_told_with_noloop() {
    let place = Place::new();
    let ours = Ours::start(&place, settings());
    let mut client = tracker(&ours, "noloop");
    let mut other = Client::connect(&ours.socket);
    let mut script = vec!["eval", "return redis.call('append', KEYS[1], 'x')", "1", "k"];
    for own in ["set k 1", "incr k", "getset k 5", "del k", "hset k f 1", "del k"] {
        client.line("get k");
        assert!(noticed(&client.line(own)).is_none(), "{own}");
        client.line("get last");
        other.line("incr last");
        assert_eq!(next(&mut client), "last", "{own} was told");
    }
    client.line("get k");
    client.call(script.drain(..));
    for line in ["multi", "append k 1", "select 0", "append k 2", "exec"] {
        client.line(line);
    }
    other.line("append k 3");
    assert_eq!(next(&mut client), "k");
    // It knows nothing of what others have done before it changes the key, so that it is told.
    client.line("hgetall h");
    ours.database.session().and_then(|mut session| session.set(&node!("^redis", 0, "k")?, 7)).expect("a set");
    client.send(b"get k\r\n");
    while noticed(&client.receive().expect("a reply")).is_some() {}
    for round in 0..200 {
        client.line("hgetall h");
        // In any order: whoever is second has changed what the first one left.
        other.send(format!("hset h theirs {round}\r\n").as_bytes());
        client.send(format!("hset h own {round}\r\n").as_bytes());
        other.receive();
        let mut told = false;
        while let Some(answer) = client.receive() {
            match noticed(&answer) {
                Some(key) => told |= key == "h",
                None => break,
            }
        }
        if !told {
            assert_eq!(next(&mut client), "h", "{round}");
        }
    }
}

/// A client, subscribed to notices in RESP2 or not in RESP3, and its number.
fn listener(socket: &Path, protocol: i64) -> (Client, i64) {
    let mut client = Client::connect(socket);
    client.line(&format!("hello {protocol}"));
    let Answer::Integer(id) = client.line("client id") else { panic!("a number") };
    if protocol == 2 {
        client.line("subscribe __redis__:invalidate");
    }
    (client, id)
}

/// The keys of the message that comes next, or of the push.
fn heard(client: &mut Client) -> String {
    match client.receive().expect("a message") {
        Answer::Array(parts) => {
            assert_eq!(
                parts[..2].iter().map(Text::to_text).collect::<Vec<_>>(),
                ["message", "__redis__:invalidate"]
            );
            match &parts[2] {
                Answer::Array(keys) => keys.iter().map(Text::to_text).collect::<Vec<_>>().join(" "),
                all => {
                    assert_eq!(*all, Answer::Null);
                    ALL.to_owned()
                }
            }
        }
        push => noticed(&push).expect("a notice"),
    }
}

#[test]
fn notices_go_to_another_client_wherever_it_is() {
    let place = Place::new();
    let ours = Ours::start(&place, settings());
    let beside = ours.beside(&place);
    let mut other = Client::connect(&ours.socket);
    // Two of each, so that both threads of a server have some.
    for socket in [&ours.socket, &ours.socket, &beside.socket, &beside.socket] {
        for (protocol, own) in [(2, 2), (3, 2), (2, 3), (3, 3)] {
            let (mut target, id) = listener(socket, protocol);
            let mut client = Client::connect(&ours.socket);
            client.line(&format!("hello {own}"));
            assert_eq!(client.line(&format!("client tracking on redirect {id}")).to_text(), "OK");
            assert_eq!(client.line("client getredir"), Answer::Integer(id));
            assert!(client.line("client info").to_text().contains(&format!(" redir={id} ")));
            client.line("mget a b");
            other.line("incr a");
            assert_eq!(heard(&mut target), "a");
            other.line("del b");
            other.line("incr b");
            assert_eq!(heard(&mut target), "b");
            client.line("get a");
            other.line("flushall");
            assert_eq!(heard(&mut target), ALL);
            // Nothing else, and nothing here.
            assert_eq!(client.line("echo x").to_text(), "x");
            let ping = target.line("ping").to_text();
            assert!(ping.contains("PONG") || ping.contains("[112, 111, 110, 103]"), "{ping}");
        }
    }
    let no_such = other.line("client tracking on redirect 123456789").to_text();
    assert_eq!(no_such, "ERR The client ID you want redirect to does not exist");
    assert_eq!(other.line("client getredir"), Answer::Integer(-1));
}

/// Who redirects to a client that goes is told, wherever that was, and shows it until it chooses another one.
#[test]
fn a_target_that_has_gone_is_told_of() {
    let place = Place::new();
    let ours = Ours::start(&place, settings());
    let mut other = Client::connect(&ours.socket);
    let broken = |client: &mut Client, id: i64| {
        let answer = client.receive().expect("a push");
        let Answer::Push(parts) = answer else { panic!("{answer:?}") };
        assert_eq!(parts[0].to_text(), "tracking-redir-broken");
        assert_eq!(parts[1], Answer::Integer(id));
        let info = format!("{:?}", client.line("client trackinginfo"));
        let flag = format!("{:?}", Answer::Bulk(b"broken_redirect".to_vec()));
        assert!(info.contains(&flag), "{info}");
        assert!(client.line("client info").to_text().contains(" flags=tRU "));
    };
    for is_beside in [false, true] {
        let beside = ours.beside(&place);
        let (target, id) = listener(if is_beside { &beside.socket } else { &ours.socket }, 2);
        let mut client = tracker(&ours, &format!("redirect {id}"));
        for _ in 0..3 {
            client.line("get k");
        }
        drop(target);
        // Its server may not have noticed yet.
        while other.line("client list").to_text().contains(&format!("id={id} ")) {}
        other.line("incr k");
        broken(&mut client, id);
        client.line("get k");
        other.line("incr k");
        broken(&mut client, id);
        // A server that ends.
        let (_target, id) = listener(&beside.socket, 3);
        client.line(&format!("client tracking on redirect {id}"));
        let info = client.line("client info").to_text();
        assert!(info.contains(" flags=tU "), "{info}");
        client.line("get k");
        drop(beside);
        other.line("incr k");
        broken(&mut client, id);
    }
}

/// What a server was killed with comes back to those whose keys it is about: they are told that their target has gone.
#[test]
fn notices_that_a_dead_server_has_not_taken_come_back() -> perilune::Result<()> {
    let place = Place::new();
    let ours = Ours::start(&place, Settings { threads: 1, ..settings() });
    let mut session = ours.database.session()?;
    // The first connection of the first thread of the first server.
    let mut client = tracker(&ours, "");
    let Answer::Integer(id) = client.line("client id") else { panic!("a number") };
    let (_target, target) = listener(&ours.socket, 3);
    client.line(&format!("client tracking on redirect {target}"));
    let (dead, target) = (999, target.to_string());
    let words = [&dead.to_string(), "0", "1", &target, "1", "0", "0", &id.to_string(), "names", "k"];
    let mut record = Vec::new();
    words.iter().collect::<perilune_resp::ArgumentsBuf>().write_request(&mut record);
    session.transaction(|session| {
        session.set(&node!("^redis", "server", dead)?, 1)?;
        session.set(&node!("^redis", "server", dead, "notices", 1, 0, 1)?, &record[..])
    })?;
    let Answer::Push(parts) = client.receive().expect("a push") else { panic!("no push") };
    assert_eq!(
        (parts[0].to_text(), &parts[1]),
        ("tracking-redir-broken".to_owned(), &Answer::Integer(target.parse().expect("a number")))
    );
    let start = Instant::now();
    while !session.get_tree(&node!("^redis", "server", dead)?)?.is_empty() {
        assert!(start.elapsed() < Duration::from_secs(20), "the dead server is still there");
    }
    Ok(())
}

#[test]
fn info_counts_what_is_tracked() {
    let place = Place::new();
    let ours = Ours::start(&place, settings());
    let mut other = Client::connect(&ours.socket);
    let mut until = |wanted: [u64; 3]| {
        let start = Instant::now();
        loop {
            let info = other.line("info").to_text();
            let of = |name: &str| {
                let line = info.lines().find_map(|line| line.strip_prefix(name)).expect("a field");
                line[1..].trim().parse::<u64>().expect("a number")
            };
            let found = ["tracking_clients", "tracking_total_keys", "tracking_total_items"].map(of);
            if found == wanted {
                return;
            }
            assert!(start.elapsed() < Duration::from_secs(20), "{found:?} instead of {wanted:?}");
        }
    };
    until([0, 0, 0]);
    let (mut one, mut two) = (tracker(&ours, ""), tracker(&ours, ""));
    until([2, 0, 0]);
    one.line("mget a b");
    two.line("mget b c");
    two.line("client tracking off");
    until([1, 2, 2]);
    drop(two);
    one.line("incr a");
    until([1, 1, 1]);
    drop(one);
    until([0, 0, 0]);
}

/// More keys than are remembered: those that are given up are told as changed.
#[test]
fn what_is_too_much_to_remember_is_told() {
    let place = Place::new();
    let ours = Ours::start(&place, Settings { threads: 1, ..settings() });
    let mut client = tracker(&ours, "");
    let mut told = 0;
    for number in 0..10_100 {
        let mut reply = client.line(&format!("get key:{number}"));
        while noticed(&reply).is_some() {
            told += 1;
            reply = client.receive().expect("a reply");
        }
    }
    while told < 100 {
        next(&mut client);
        told += 1;
    }
}

const KEYS: u64 = 24;

fn write(socket: &Path, seed: u64) {
    let mut client = Client::connect(socket);
    for round in 0..1_500_u64 {
        let key = (round * 7 + seed * 5) % KEYS;
        if round % 5 == 0 {
            client.line(&format!("del key:{key}"));
        } else {
            client.line(&format!("incrby key:{key} {}", seed + 1));
        }
    }
}

fn write_nodes(ours: &Ours) -> perilune::Result<()> {
    let mut session = ours.database.session()?;
    for round in 0..1_500_u64 {
        session.set(&node!("^redis", 0, format!("key:{}", round % KEYS))?, round as i64)?;
    }
    Ok(())
}

/// Keeps what it reads until it is told; once `ended`, until all that it keeps is so.
fn keep(socket: &Path, by_script: bool, ended: &AtomicBool) {
    let mut client = Client::connect(socket);
    client.line("hello 3");
    client.line("client tracking on");
    let (mut kept, start, mut round) = (HashMap::<String, Answer>::new(), Instant::now(), 0);
    loop {
        let was_over = ended.load(Ordering::Acquire);
        let key = format!("key:{}", round % KEYS);
        round += 1;
        let reads = !kept.contains_key(&key);
        let request = match (reads, by_script) {
            (true, true) => format!("eval \"return redis.call('get', KEYS[1])\" 1 {key}\r\n"),
            (true, false) => format!("get {key}\r\n"),
            (false, _) => "echo x\r\n".to_owned(),
        };
        client.send(request.as_bytes());
        // Notices that come before the reply are of what was kept before.
        let reply = loop {
            let answer = client.receive().expect("a reply");
            match noticed(&answer) {
                Some(changed) => drop(kept.remove(&changed)),
                None => break answer,
            }
        };
        if reads {
            kept.insert(key, reply);
        }
        if was_over && round % KEYS == 0 {
            let mut plain = Client::connect(socket);
            let is_so = |(key, value): (&String, &Answer)| plain.line(&format!("get {key}")) == *value;
            if kept.len() as u64 == KEYS && kept.iter().all(is_so) {
                return;
            }
            assert!(start.elapsed() < Duration::from_secs(60), "{kept:?} is kept");
        }
    }
}

/// Readers that keep what they read, while clients of two servers and a program write: when all is quiet, nobody keeps
/// what is not so, though each notice may come late.
#[test]
fn nobody_keeps_what_is_not_so() -> perilune::Result<()> {
    let place = Place::new();
    let ours = Ours::start(&place, settings());
    let beside = ours.beside(&place);
    let ended = AtomicBool::new(false);
    thread::scope(|scope| {
        let readers = [(&ours, false), (&beside, false), (&ours, true)].map(|(server, by_script)| {
            scope.spawn({
                let ended = &ended;
                move || keep(&server.socket, by_script, ended)
            })
        });
        let writers =
            [(&ours, 0), (&beside, 1)].map(|(server, seed)| scope.spawn(move || write(&server.socket, seed)));
        let program = scope.spawn(|| write_nodes(&ours));
        writers.into_iter().for_each(|writer| writer.join().expect("a writer"));
        let written = program.join().expect("the program");
        ended.store(true, Ordering::Release);
        readers.into_iter().for_each(|reader| reader.join().expect("a reader"));
        written
    })
}
