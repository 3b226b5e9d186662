//! Clients that go from one event loop to another and back notice nothing, whatever they are at.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::peer::loops::{loops, settled};
use crate::peer::{Client, Ours, Place, Text};
use perilune_redis::Settings;
use perilune_resp::Answer;

fn settings() -> Settings {
    Settings { threads: 3, ..Settings::default() }
}

#[test]
fn idle_clients_move_with_what_they_have_chosen() {
    let place = Place::new();
    let ours = Ours::start(&place, settings());
    let mut admin = Client::connect(&ours.socket);
    let mut clients: Vec<Client> = (0..30).map(|_| Client::connect(&ours.socket)).collect();
    for (number, client) in clients.iter_mut().enumerate() {
        match number % 5 {
            0 => drop(client.line(&format!("client setname n{number}"))),
            1 => drop(client.line("select 3")),
            2 => drop((client.line("multi"), client.line(&format!("incr in-multi-{number}")))),
            3 => drop((client.line("set watched 1"), client.line("watch watched"))),
            // Half a request.
            _ => client.send(b"*2\r\n$3\r\nGET\r\n$10\r\nhalf-a-req"),
        }
    }
    admin.line("set half-a-key 7");
    settled(&mut admin, |loads| loads.iter().sum::<i64>() == 31 && loads.iter().all(|load| *load >= 10));
    for (count, spread) in [(1, [31, 0, 0]), (3, [0; 3]), (2, [0; 3]), (1, [31, 0, 0]), (3, [0; 3])] {
        loops(&mut admin, &format!("debug loops {count}"));
        let as_wanted = |loads: &[i64]| match count {
            1 => loads == spread,
            _ => loads[..count].iter().all(|load| *load > 6) && loads[count..].iter().all(|load| *load == 0),
        };
        settled(&mut admin, as_wanted);
    }
    for (number, client) in clients.iter_mut().enumerate() {
        match number % 5 {
            0 => assert_eq!(client.line("client getname").to_text(), format!("n{number}")),
            1 => assert!(client.line("client info").to_text().contains(" db=3 ")),
            2 => assert_eq!(client.line("exec"), Answer::Array(vec![Answer::Integer(1)])),
            3 if number == 3 => {
                admin.line("set watched 2");
                client.line("multi");
                assert_eq!(client.line("exec"), Answer::Null, "the key it watches has changed");
            }
            3 => {}
            _ => {
                client.send(b"\r\n");
                assert_eq!(client.receive(), Some(Answer::Null));
            }
        }
    }
}

/// Those who wait or are to be told something stay, are told, and can move afterwards.
#[test]
fn who_waits_is_found() {
    let place = Place::new();
    let ours = Ours::start(&place, settings());
    let mut admin = Client::connect(&ours.socket);
    let connect = || -> Vec<Client> { (0..6).map(|_| Client::connect(&ours.socket)).collect() };
    let (mut blocked, mut subscribed, mut tracking) = (connect(), connect(), connect());
    let (mut targets, mut redirecting) = (connect(), connect());
    blocked.iter_mut().for_each(|client| client.send(b"BLPOP jobs 0\r\n"));
    for client in &mut subscribed {
        client.line("subscribe news");
    }
    for client in &mut tracking {
        client.line("hello 3");
        assert_eq!(client.line("client tracking on").to_text(), "OK");
        client.line("get tracked");
    }
    for (target, client) in targets.iter_mut().zip(&mut redirecting) {
        target.line("hello 3");
        let Answer::Integer(id) = target.line("client id") else { panic!("no number") };
        assert_eq!(client.line(&format!("client tracking on redirect {id}")).to_text(), "OK");
        client.line("get tracked");
    }
    let begun = Instant::now();
    while !admin.line("info clients").to_text().contains("blocked_clients:6\r\n") {
        assert!(begun.elapsed() < Duration::from_secs(20), "they do not wait");
    }
    for count in [1, 2, 1, 3, 1] {
        loops(&mut admin, &format!("debug loops {count}"));
        assert_eq!(loops(&mut admin, "debug loops")[1..].iter().sum::<i64>(), 31);
    }
    assert_eq!(admin.line("rpush jobs 1 2 3 4 5 6"), Answer::Integer(6));
    for client in &mut blocked {
        assert!(matches!(client.receive(), Some(Answer::Array(pair)) if pair.len() == 2));
    }
    assert_eq!(admin.line("publish news x"), Answer::Integer(6));
    for client in &mut subscribed {
        assert!(matches!(client.receive(), Some(Answer::Array(words)) if words.len() == 3));
    }
    admin.line("set tracked 2");
    for client in tracking.iter_mut().chain(&mut targets) {
        let push = client.receive();
        assert!(matches!(&push, Some(Answer::Push(words)) if words[0].to_text() == "invalidate"), "{push:?}");
    }
    // What they have waited for has come, so the blocked ones can move at last; and so can those who end what they have.
    for client in &mut subscribed {
        client.line("unsubscribe news");
    }
    for client in tracking.iter_mut().chain(&mut redirecting) {
        assert_eq!(client.line("client tracking off").to_text(), "OK");
    }
    settled(&mut admin, |loads| loads[1] + loads[2] <= 6);
    for client in &mut blocked {
        assert_eq!(client.line("ping").to_text(), "PONG");
    }
}

/// Ends the others when it is dropped, by a failure too.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// What one client does, all replies looked at.
fn work(ours: &Ours, number: usize) {
    const ROUNDS: i64 = 300;
    let mut client = Client::connect(&ours.socket);
    let name = format!("counter-{number}");
    for round in 0..ROUNDS {
        match round % 3 {
            0 => {
                let request = format!("INCR {name}\r\n").repeat(20).into_bytes();
                let half = request.len() / 2 + 3;
                client.send(&request[..half]);
                client.send(&request[half..]);
                for step in 1..=20 {
                    assert_eq!(client.receive(), Some(Answer::Integer(round / 3 * 41 + step)));
                }
            }
            1 => {
                client.line("multi");
                for _ in 0..20 {
                    client.line(&format!("incr {name}"));
                }
                assert!(matches!(client.line("exec"), Answer::Array(replies) if replies.len() == 20));
            }
            _ => {
                let reply = client.call(["EVAL", "return redis.call('INCR', KEYS[1])", "1", &name]);
                assert_eq!(reply, Answer::Integer((round / 3 + 1) * 41));
            }
        }
    }
}

/// While clients move all the time, each gets its own replies in order, and each question meets all of them once.
#[test]
fn nothing_is_lost_on_the_way() {
    let place = Place::new();
    let ours = Ours::start(&place, settings());
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let (ours, ends) = (&ours, Ends(&done));
        let workers: Vec<_> = (0..8).map(|number| scope.spawn(move || work(ours, number))).collect();
        let mover = scope.spawn(|| {
            let mut admin = Client::connect(&ours.socket);
            let mut moves = 0;
            while !done.load(Ordering::Relaxed) {
                loops(&mut admin, &format!("debug loops {}", 1 + moves % 3));
                moves += 1;
            }
            moves
        });
        // Idle ones are asked for, each time all of them.
        let mut named: Vec<Client> = (0..20).map(|_| Client::connect(&ours.socket)).collect();
        for client in &mut named {
            client.line("client setname sitting");
        }
        let mut asker = Client::connect(&ours.socket);
        while workers.iter().any(|worker| !worker.is_finished()) {
            let list = asker.line("client list").to_text();
            assert_eq!(list.matches(" name=sitting ").count(), 20, "{list}");
        }
        for worker in workers {
            worker.join().expect("a client ends");
        }
        for client in &mut named {
            let Answer::Integer(id) = client.line("client id") else { panic!("no number") };
            assert_eq!(asker.line(&format!("client kill id {id}")), Answer::Integer(1));
        }
        drop(ends);
        assert!(mover.join().expect("who moves them ends") > 3);
    });
}

/// Who moves is no less idle for that.
#[test]
fn idle_clients_end_however_often_they_move() {
    let place = Place::new();
    let ours = Ours::start(&place, settings());
    let (mut admin, mut idle) = (Client::connect(&ours.socket), Client::connect(&ours.socket));
    assert_eq!(idle.line("ping").to_text(), "PONG");
    admin.line("config set timeout 1");
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let ends = Ends(&done);
        let mover = scope.spawn(|| {
            for count in (1..=3).cycle().take_while(|_| !done.load(Ordering::Relaxed)) {
                loops(&mut admin, &format!("debug loops {count}"));
            }
        });
        assert_eq!(idle.receive(), None, "it has been idle for more than a second");
        drop(ends);
        mover.join().expect("who moves it was not idle");
    });
}

/// A user who is removed takes the clients along, wherever they are.
#[test]
fn rules_reach_those_on_the_way() {
    let place = Place::new();
    let ours = Ours::start(&place, settings());
    let mut admin = Client::connect(&ours.socket);
    for round in 0..20 {
        assert_eq!(admin.line("acl setuser guest on nopass +@all ~*").to_text(), "OK");
        let mut guests: Vec<Client> = (0..12).map(|_| Client::connect(&ours.socket)).collect();
        for guest in &mut guests {
            assert_eq!(guest.line("auth guest x").to_text(), "OK");
        }
        loops(&mut admin, &format!("debug loops {}", 1 + round % 3));
        assert_eq!(admin.line("acl deluser guest"), Answer::Integer(1));
        for guest in &mut guests {
            assert_eq!(guest.receive(), None, "its user is gone");
        }
    }
}

/// Without a word of anybody one loop has all clients, while it has time left.
#[test]
fn one_loop_serves_all_as_long_as_it_can() {
    let place = Place::new();
    let settings = settings().with("threads-awake", "as-needed").expect("a setting");
    let ours = Ours::start(&place, settings);
    let mut clients: Vec<Client> = (0..10).map(|_| Client::connect(&ours.socket)).collect();
    for client in &mut clients {
        assert_eq!(client.line("ping").to_text(), "PONG");
    }
    assert_eq!(loops(&mut clients[0], "debug loops"), [1, 10, 0, 0]);
    assert!(clients[0].line("info server").to_text().contains("threads_awake:1\r\n"));
}
