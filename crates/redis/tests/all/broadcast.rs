//! CLIENT TRACKING with BCAST: who wants to be told of all keys is told of each change, whoever has read them.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use crate::peer::changes::LINES;
use crate::peer::{Client, Ours, Place, Redis, Text};
use perilune::node;
use perilune_redis::Settings;
use perilune_resp::{Answer, ArgumentsBuf};

fn settings() -> Settings {
    Settings { threads: 2, ..Settings::default() }
}

/// A notice that all is to be forgotten.
const ALL: &str = "(all)";

/// The keys that a notice is about; none if it is a reply.
fn noticed(answer: &Answer) -> Option<Vec<String>> {
    let Answer::Push(parts) = answer else { return None };
    assert_eq!(parts[0].to_text(), "invalidate");
    Some(keys(&parts[1]))
}

fn keys(list: &Answer) -> Vec<String> {
    match list {
        Answer::Array(keys) => keys.iter().map(Text::to_text).collect(),
        all => {
            assert_eq!(*all, Answer::Null);
            vec![ALL.to_owned()]
        }
    }
}

fn tracker(socket: &Path, options: &str) -> Client {
    let mut client = Client::connect(socket);
    client.line("hello 3");
    assert_eq!(client.line(format!("client tracking on bcast {options}").trim()).to_text(), "OK");
    client
}

/// The keys of the notice that comes next.
fn next(client: &mut Client) -> Vec<String> {
    let answer = client.receive().expect("a notice");
    noticed(&answer).unwrap_or_else(|| panic!("no notice: {answer:?}"))
}

/// All keys that a client is told of until it is told of `last`.
fn until(client: &mut Client, last: &str) -> BTreeSet<String> {
    let mut told = BTreeSet::new();
    while !told.contains(last) {
        told.extend(next(client));
    }
    told.remove(last);
    told
}

fn send(client: &mut Client, words: &[&str]) {
    let mut request = Vec::new();
    words.iter().collect::<ArgumentsBuf>().write_request(&mut request);
    client.send(&request);
}

fn set(keys: &[&str]) -> BTreeSet<String> {
    keys.iter().map(|key| (*key).to_owned()).collect()
}

#[test]
fn options_are_answered_as_by_redis() {
    let place = Place::new();
    let (ours, redis) = (Ours::start(&place, settings()), Redis::start(&place));
    let (mut ours, mut theirs) = (Client::connect(&ours.socket), Client::connect(&redis.socket));
    for line in [
        "client tracking on bcast prefix",
        "client tracking on prefix a",
        "client tracking off prefix a",
        "client tracking on bcast optin",
        "client tracking on optout bcast optin",
        "client tracking on bcast prefix a prefix b prefix aa",
        "client tracking on bcast prefix b prefix b",
        "client trackinginfo",
        "client tracking on bcast prefix foo prefix bar noloop",
        "client trackinginfo",
        "client tracking on bcast prefix foobar",
        "client tracking on bcast prefix fo",
        "client tracking on bcast prefix baz",
        "client caching yes",
        "client tracking on",
        "client tracking on optin",
        "client tracking on prefix x",
        "client trackinginfo",
        "client getredir",
        "client tracking on bcast",
        "client tracking on bcast prefix a",
        "client trackinginfo",
        "client tracking off",
        "client trackinginfo",
        "client tracking on",
        "client tracking on bcast",
        "client tracking off",
        "client tracking on bcast redirect 123456789",
        "client trackinginfo",
        "client tracking on bcast",
        "client trackinginfo",
        "reset",
        "client trackinginfo",
    ] {
        assert_eq!(ours.line(line), theirs.line(line), "{line}");
    }
    let mut other = tracker(&redis.socket, "");
    assert!(other.line("client info").to_text().contains(" flags=tBU "));
}

/// After each command the keys are compared that it is told of, by ours and by a redis-server.
#[test]
fn every_command_tells_what_that_of_redis_tells() {
    let place = Place::new();
    let (ours, redis) = (Ours::start(&place, settings()), Redis::start(&place));
    // What goes by itself is told at any time.
    let goes_not = |line: &&str| !line.starts_with("set gone");
    let mut told = [&ours.socket, &redis.socket].map(|socket| {
        let (mut client, mut listening) = (Client::connect(socket), tracker(socket, ""));
        // One that is not in MULTI.
        let mut other = Client::connect(socket);
        let mut told = Vec::new();
        let others = [
            "flushall",
            "set s 1 px 1000000",
            "restore s 1 x",
            "setrange s 0 xy",
            "eval \"redis.call('incr',KEYS[1])\" 1 k",
        ];
        for line in others.into_iter().chain(LINES.iter().copied().filter(goes_not)) {
            client.line(line);
            // A notice of all keys may be one of those that come with it, too.
            let all = if line == "flushall" { until(&mut listening, ALL) } else { BTreeSet::new() };
            other.line("set end 1");
            let mut keys = until(&mut listening, "end");
            keys.extend(all);
            told.push((line, keys));
        }
        told
    });
    let [ours, theirs] = &mut told;
    for (ours, theirs) in ours.iter().zip(theirs.iter()) {
        assert_eq!(ours, theirs);
    }
    assert!(ours.iter().any(|(_, keys)| keys.len() > 1) && ours.iter().any(|(_, keys)| keys.is_empty()));
}

#[test]
fn prefixes_are_told_one_notice_each() {
    let place = Place::new();
    let ours = Ours::start(&place, settings());
    let mut other = Client::connect(&ours.socket);
    let mut some = tracker(&ours.socket, "prefix a: prefix b:");
    let (mut own, mut all) = (tracker(&ours.socket, "noloop"), tracker(&ours.socket, ""));
    other.line("mset b:2 x a:2 x b:1 x c x a:1 x");
    assert_eq!(next(&mut all), ["a:1", "a:2", "b:1", "b:2", "c"]);
    assert_eq!(next(&mut some), ["a:1", "a:2"]);
    assert_eq!(next(&mut some), ["b:1", "b:2"]);
    assert_eq!(next(&mut own).len(), 5);
    // Further prefixes; what it changes itself comes behind the reply.
    assert_eq!(some.line("client tracking on bcast prefix c noloop").to_text(), "OK");
    assert_eq!(some.line("set a:1 y").to_text(), "OK");
    other.line("set c y");
    assert_eq!(next(&mut some), ["c"]);
    // With NOLOOP what others change, but not what it has changed itself: by commands, in EXEC, by scripts, in any order.
    let mut told = BTreeSet::new();
    for line in ["set a:1 z", "multi", "incr n", "lpush l 1", "exec", "eval redis.call('incr','n') 1 n"] {
        send(&mut own, &line.split(' ').collect::<Vec<_>>());
        while let Some(keys) = noticed(&own.receive().expect("a reply")) {
            told.extend(keys);
        }
    }
    other.line("set last 1");
    told.extend(until(&mut own, "last"));
    assert_eq!(told, set(&["a:1", "c"]), "what others have changed");
    assert_eq!(until(&mut all, "last"), set(&["a:1", "c", "l", "n"]));
    // Off; and other clients go on.
    for off in ["client tracking off", "reset"] {
        assert!(noticed(&own.line(off)).is_none(), "{off}");
    }
    other.line("set a:1 w");
    assert_eq!(next(&mut all), ["a:1"]);
    assert_eq!(own.line("ping"), Answer::Simple(b"PONG".to_vec()));
    let listed = other.line("client list").to_text();
    assert!(listed.contains(" flags=tBU "), "{listed}");
}

/// What is no single command, of both servers.
#[test]
fn changes_of_every_kind_reach_clients_of_all_servers() {
    let place = Place::new();
    let ours = Ours::start(&place, settings());
    let beside = ours.beside(&place);
    let mut listening = [tracker(&ours.socket, ""), tracker(&beside.socket, "")];
    for socket in [&ours.socket, &beside.socket] {
        let mut client = Client::connect(socket);
        let mut told = |lines: &[&str], wanted: &[&str]| {
            for line in lines {
                assert!(!client.line(line).is_error(), "{line}");
            }
            if wanted == [ALL] {
                // It may be one of keys that come with it, too.
                listening
                    .iter_mut()
                    .for_each(|listening| assert_eq!(until(listening, ALL), set(&[]), "{lines:?}"));
                return;
            }
            client.line("set end 1");
            for listening in &mut listening {
                assert_eq!(until(listening, "end"), set(wanted), "{lines:?}");
            }
        };
        told(&["set a 1", "get a", "get nothing", "del nothing"], &["a"]);
        told(&["multi", "incr a", "hset h f 1", "del nothing", "exec"], &["a", "h"]);
        told(&["eval redis.call('set','b',1) 0", "eval_ro redis.call('get','b') 0"], &["b"]);
        told(&["eval return(redis.pcall('lpush','b',1)) 0"].map(|_| "get b"), &[]);
        told(&["rename a c", "copy c d", "move d 1", "expire c 1000"], &["a", "c", "d"]);
        told(&["select 1", "flushdb", "select 0"], &[ALL]);
        told(&["swapdb 0 1"], &[ALL]);
        told(&["flushall"], &[ALL]);
    }
    // A script that is no transaction, and one that fails, of which is kept what it has done.
    let mut client = Client::connect(&beside.socket);
    client.call(["eval", "#!lua flags=non-atomic\nredis.call('set','x',1) redis.call('set','y',1)", "0"]);
    client.call(["eval", "redis.call('set','z',1) error('no')", "0"]);
    client.line("set end 1");
    for listening in &mut listening {
        assert_eq!(until(listening, "end"), set(&["x", "y", "z"]));
    }
    // One that waits takes what is pushed: its own client is told as well, since it does not know that of the push.
    let mut waiting = Client::connect(&beside.socket);
    waiting.send(b"blpop queue 0\r\n");
    let start = Instant::now();
    while !client.line("client list").to_text().contains(" cmd=blpop ") {
        assert!(start.elapsed() < Duration::from_secs(20), "nobody waits");
    }
    let mut pusher = tracker(&ours.socket, "noloop");
    pusher.send(b"rpush queue 1\r\n");
    let mut answers = [pusher.receive().expect("an answer"), pusher.receive().expect("an answer")];
    answers.sort_by_key(|answer| noticed(answer).is_some());
    assert_eq!((&answers[0], noticed(&answers[1])), (&Answer::Integer(1), Some(vec!["queue".to_owned()])));
}

/// Whatever a client reads of a key that expires, it is told when that is not so any more.
#[test]
fn keys_that_go_by_themselves_are_told() {
    let place = Place::new();
    let ours = Ours::start(&place, settings());
    let mut listening = tracker(&ours.socket, "noloop");
    let mut other = Client::connect(&ours.socket);
    // Of its own key it is told nothing else.
    assert_eq!(listening.line("set own x px 300").to_text(), "OK");
    other.line("set theirs x px 300");
    let mut gone = BTreeSet::new();
    while gone.len() < 2 {
        for key in next(&mut listening) {
            if other.line(&format!("exists {key}")) == Answer::Integer(0) {
                gone.insert(key);
            }
        }
    }
    // By the policy of maxmemory.
    other.line("set filler x");
    until(&mut listening, "filler");
    assert_eq!(other.line("config set maxmemory-policy allkeys-random maxmemory 1").to_text(), "OK");
    other.line("set more x");
    while !next(&mut listening).contains(&"filler".to_owned()) {}
}

#[test]
fn notices_go_to_another_client_wherever_it_is() {
    let place = Place::new();
    let ours = Ours::start(&place, settings());
    let beside = ours.beside(&place);
    let mut other = Client::connect(&beside.socket);
    for socket in [&ours.socket, &beside.socket] {
        for protocol in [2, 3] {
            let mut target = Client::connect(socket);
            target.line(&format!("hello {protocol}"));
            let Answer::Integer(id) = target.line("client id") else { panic!("a number") };
            if protocol == 2 {
                target.line("subscribe __redis__:invalidate");
            }
            let mut client = Client::connect(&ours.socket);
            let chosen = client.line(&format!("client tracking on bcast prefix k redirect {id}"));
            assert_eq!(chosen.to_text(), "OK");
            other.line("mset k1 1 x 1 k2 1");
            let heard = match target.receive().expect("a message") {
                Answer::Array(parts) => {
                    assert_eq!(parts[1].to_text(), "__redis__:invalidate");
                    keys(&parts[2])
                }
                push => noticed(&push).expect("a notice"),
            };
            assert_eq!(heard, ["k1", "k2"]);
            assert_eq!(client.line("echo x").to_text(), "x");
            drop(target);
            while other.line("client list").to_text().contains(&format!("id={id} ")) {}
            client.line("hello 3");
            other.line("set k1 2");
            let Answer::Push(parts) = client.receive().expect("a push") else { panic!("no push") };
            assert_eq!(parts[..2], [Answer::Bulk(b"tracking-redir-broken".to_vec()), Answer::Integer(id)]);
            assert!(client.line("client info").to_text().contains(" flags=tRBU "));
        }
    }
}

/// A client whose command takes long is told of what others change meanwhile, behind the reply.
#[test]
fn who_is_away_is_told_behind_the_reply() {
    let place = Place::new();
    let ours = Ours::start(&place, settings());
    let mut other = Client::connect(&ours.socket);
    let mut client = tracker(&ours.socket, "");
    let script = "#!lua flags=non-atomic\nredis.call('set','began',1) while not redis.call('get','go') do end return 'done'";
    send(&mut client, &["eval", script, "0"]);
    let start = Instant::now();
    while other.line("exists began") == Answer::Integer(0) {
        assert!(start.elapsed() < Duration::from_secs(20), "the script does not begin");
    }
    other.line("set k 1");
    other.line("set go 1");
    assert_eq!(client.receive().expect("a reply").to_text(), "done");
    assert_eq!(until(&mut client, "go"), set(&["began", "k"]));
}

/// What a dead server may not have told is told as all keys, and what it has noted goes.
#[test]
fn a_dead_server_makes_all_forget() -> perilune::Result<()> {
    let place = Place::new();
    let ours = Ours::start(&place, settings());
    let mut session = ours.database.session()?;
    let mut client = tracker(&ours.socket, "prefix nothing");
    session.transaction(|session| {
        session.set(&node!("^redis", "broadcast", 999, 0)?, true)?;
        session.set(&node!("^redis", "server", 999)?, 1)
    })?;
    assert_eq!(next(&mut client), [ALL]);
    // As long as a server of the database is there, what it notes is there, and goes with its last client.
    let loops = node!("^redis", "broadcast")?;
    let wait = |session: &mut perilune::Session, wanted: u64| -> perilune::Result<()> {
        let start = Instant::now();
        while session.count_children(&loops)? != wanted {
            assert!(start.elapsed() < Duration::from_secs(20), "not {wanted} servers are noted");
        }
        Ok(())
    };
    wait(&mut session, 1)?;
    let beside = ours.beside(&place);
    let mut other = tracker(&beside.socket, "");
    wait(&mut session, 2)?;
    drop(beside);
    assert!(other.receive().is_none());
    wait(&mut session, 1)?;
    drop(client);
    wait(&mut session, 0)?;
    // Who comes when nobody is told any more is told again.
    let mut plain = Client::connect(&ours.socket);
    plain.line("set k 1");
    let mut client = tracker(&ours.socket, "");
    plain.line("set k 2");
    assert_eq!(next(&mut client), ["k"]);
    Ok(())
}

#[test]
fn info_counts_prefixes() {
    let place = Place::new();
    let ours = Ours::start(&place, Settings { threads: 1, ..settings() });
    let mut other = Client::connect(&ours.socket);
    let mut until = |wanted: [&str; 2]| {
        let start = Instant::now();
        loop {
            let info = other.line("info").to_text();
            if wanted.iter().all(|line| info.lines().any(|found| found == *line)) {
                return;
            }
            assert!(start.elapsed() < Duration::from_secs(20), "{wanted:?} is not in {info}");
        }
    };
    until(["tracking_clients:0", "tracking_total_prefixes:0"]);
    let one = tracker(&ours.socket, "prefix a prefix b");
    let mut two = tracker(&ours.socket, "prefix b prefix c");
    until(["tracking_clients:2", "tracking_total_prefixes:3"]);
    two.line("client tracking off");
    until(["tracking_clients:1", "tracking_total_prefixes:2"]);
    drop(one);
    until(["tracking_clients:0", "tracking_total_prefixes:0"]);
}

const ROUNDS: usize = 40;
const KEYS: usize = 8;

/// Changes keys in each round, by one command after another, EXEC or a script.
fn write(socket: &Path, barrier: &Barrier, seed: usize) {
    let mut client = Client::connect(socket);
    for round in 0..ROUNDS {
        barrier.wait();
        for number in 0..30 {
            let key = format!("key:{}", (number * 5 + seed) % KEYS);
            match (round + number) % 4 {
                0 => client.line(&format!("append {key} x")),
                1 => client.call(["eval", "return redis.call('append', KEYS[1], 'y')", "1", &key]),
                2 => {
                    let script = "#!lua flags=non-atomic\nreturn redis.call('append', KEYS[1], 'z')";
                    client.call(["eval", script, "1", &key])
                }
                _ => {
                    client.send(format!("multi\r\nappend {key} v\r\nexec\r\n").as_bytes());
                    client.receive();
                    client.receive();
                    client.receive().expect("a reply")
                }
            };
        }
        barrier.wait();
    }
}

/// In each round a client enters while others write, reads, and forgets what it is told of: when all is quiet, it keeps
/// nothing that is not so. Between rounds nobody listens, so that commands begin without gathering what they change.
#[test]
fn nothing_is_lost_for_who_enters_while_others_write() {
    let place = Place::new();
    let ours = Ours::start(&place, settings());
    let beside = ours.beside(&place);
    let barrier = Barrier::new(3);
    thread::scope(|scope| {
        for (seed, socket) in [&ours.socket, &beside.socket].into_iter().enumerate() {
            let barrier = &barrier;
            scope.spawn(move || write(socket, barrier, seed));
        }
        let mut plain = Client::connect(&ours.socket);
        for round in 0..ROUNDS {
            barrier.wait();
            let mut client =
                tracker(if round % 2 == 0 { &ours.socket } else { &beside.socket }, "prefix key:");
            let mut kept = vec![None; KEYS];
            for number in 0..KEYS {
                client.send(format!("get key:{number}\r\n").as_bytes());
                // What is told before the reply is of what was kept before.
                while kept[number].is_none() {
                    let answer = client.receive().expect("a reply");
                    match noticed(&answer) {
                        None => kept[number] = Some(answer.to_text()),
                        Some(keys) => forget(&mut kept[..number], &keys),
                    }
                }
            }
            barrier.wait();
            let so: Vec<_> =
                (0..KEYS).map(|number| plain.line(&format!("get key:{number}")).to_text()).collect();
            let is_so = |kept: &[Option<String>]| {
                kept.iter().zip(&so).all(|(kept, so)| kept.as_ref().is_none_or(|kept| kept == so))
            };
            while !is_so(&kept) {
                // The test ends by the limit of a read, if nothing comes any more.
                forget(&mut kept, &next(&mut client));
            }
        }
    });
}

fn forget(kept: &mut [Option<String>], told: &[String]) {
    for (number, kept) in kept.iter_mut().enumerate() {
        if told.iter().any(|key| key == ALL || *key == format!("key:{number}")) {
            *kept = None;
        }
    }
}
