//! WATCH of many keys: what is watched costs those who write near it, not each command, and nobody else.
//!
//! WATCH of 60,000 keys took three seconds, in which the event loop served nobody, since each key was looked for among those
//! before it; and each command up to EXEC read all of them again, 60 to 70 ms for a GET.

use std::time::{Duration, Instant};

use crate::peer::{Client, Ours, Place};
use perilune::node;
use perilune_redis::Settings;
use perilune_resp::Answer;

const MANY: usize = 60_000;

fn settings() -> Settings {
    Settings { threads: 1, ..Settings::default() }
}

fn fill(client: &mut Client, count: usize) {
    for first in (0..count).step_by(1_000) {
        let names = first..count.min(first + 1_000);
        client.call(
            std::iter::once("mset".to_owned()).chain(names.flat_map(|n| [format!("key{n}"), "x".to_owned()])),
        );
    }
}

fn watch(client: &mut Client, names: impl Iterator<Item = usize>) {
    let words = std::iter::once("watch".to_owned()).chain(names.map(|n| format!("key{n}")));
    assert_eq!(client.call(words), Answer::Simple("OK".into()));
}

/// Whether EXEC goes through.
fn exec(client: &mut Client) -> bool {
    client.line("multi");
    client.line("incr own");
    client.line("exec") != Answer::Null
}

/// Before: three seconds for WATCH, and 65 ms for each GET; now a tenth of a second, and less than a tenth of a millisecond.
#[test]
fn commands_of_a_client_that_watches_60_000_keys_are_quick() {
    let place = Place::new();
    let ours = Ours::start(&place, settings());
    let (mut one, mut other) = (Client::connect(&ours.socket), Client::connect(&ours.socket));
    fill(&mut one, 2 * MANY);
    let start = Instant::now();
    watch(&mut other, 0..MANY / 4);
    let quarter = start.elapsed();
    other.line("unwatch");
    let start = Instant::now();
    watch(&mut one, (0..MANY).map(|n| 2 * n));
    let watching = start.elapsed();
    let start = Instant::now();
    for _ in 0..200 {
        one.line("get key7");
    }
    let alone = start.elapsed();
    // Others write beside what is watched.
    let start = Instant::now();
    for n in 0..200 {
        other.line(&format!("set key{} y", 2 * n * 97 + 1));
        one.line("get key7");
    }
    let beside = start.elapsed();
    let start = Instant::now();
    watch(&mut one, (0..MANY).map(|n| 2 * n));
    let again = start.elapsed();
    eprintln!("WATCH {quarter:?}, {watching:?}, again {again:?}; 200 GETs {alone:?}, with writers beside {beside:?}");
    // Of four times as many a square is sixteen times as long.
    let bound = 9 * quarter + Duration::from_millis(500);
    assert!(watching < bound && again < bound, "WATCH: {quarter:?}, then {watching:?} and {again:?}");
    assert!(alone < Duration::from_secs(2), "200 GETs: {alone:?}");
    assert!(beside < Duration::from_secs(6), "200 GETs with writers beside: {beside:?}");
    assert!(exec(&mut one));
    watch(&mut one, (0..MANY).map(|n| 2 * n));
    other.line("set key0 y");
    assert!(!exec(&mut one));
}

/// However many they are and however they came to be watched, EXEC and what is told before it go by the same rules.
#[test]
fn many_watched_keys_are_watched_as_few_are() -> perilune::Result<()> {
    let place = Place::new();
    let ours = Ours::start(&place, settings());
    let (mut one, mut other) = (Client::connect(&ours.socket), Client::connect(&ours.socket));
    fill(&mut one, 2_000);
    let mut session = ours.database.session()?;
    for (count, each) in [(3, 3), (63, 63), (64, 64), (500, 500), (500, 1), (500, 70), (200, 63)] {
        let begin = |one: &mut Client| {
            for first in (0..count).step_by(each) {
                watch(one, first..count.min(first + each));
            }
        };
        for changed in [0, count / 2, count - 1] {
            let case = format!("{count} by {each}, key{changed}");
            begin(&mut one);
            assert!(exec(&mut one), "{case}: nothing changed");
            begin(&mut one);
            other.line(&format!("set key{changed} y"));
            assert!(!exec(&mut one), "{case}: set");
            other.line(&format!("set key{changed} x"));
            begin(&mut one);
            session.set(&node!("^redis", 0, format!("key{changed}").as_str())?, "by node")?;
            assert!(!exec(&mut one), "{case}: by node");
            other.line(&format!("set key{changed} x"));
            // Changed and changed back, with a command between and without.
            begin(&mut one);
            other.line(&format!("set key{changed} y"));
            one.line("get key1999");
            other.line(&format!("set key{changed} x"));
            assert!(!exec(&mut one), "{case}: changed, read, changed back");
            begin(&mut one);
            other.line(&format!("del key{changed}"));
            other.line(&format!("set key{changed} x"));
            assert!(exec(&mut one), "{case}: changed back before anything was read");
            // Neighbours, as many as split pages.
            begin(&mut one);
            for n in 0..50 {
                other.line(&format!("set key{changed}.{n} {}", "v".repeat(200)));
                one.line("get key1999");
            }
            assert!(exec(&mut one), "{case}: neighbours");
            for n in 0..50 {
                other.line(&format!("del key{changed}.{n}"));
            }
            // By a command of its own it is its own affair, as in Redis: it counts as a change.
            begin(&mut one);
            one.line(&format!("set key{changed} y"));
            assert!(!exec(&mut one), "{case}: by itself");
            other.line(&format!("set key{changed} x"));
            begin(&mut one);
            one.line("unwatch");
            other.line(&format!("set key{changed} y"));
            assert!(exec(&mut one), "{case}: unwatched");
            other.line(&format!("set key{changed} x"));
        }
    }
    Ok(())
}

#[test]
fn a_watched_key_that_expires_has_changed() {
    let place = Place::new();
    let ours = Ours::start(&place, settings());
    let (mut one, mut other) = (Client::connect(&ours.socket), Client::connect(&ours.socket));
    fill(&mut one, 200);
    // Nobody removes it: it expires all the same.
    other.line("debug set-active-expire 0");
    for count in [10, 200] {
        other.line("set key5 x px 300");
        watch(&mut one, 0..count);
        other.line("get key0");
        let start = Instant::now();
        while other.line("exists key5") == Answer::Integer(1) {
            assert!(start.elapsed() < Duration::from_secs(20), "it does not expire");
        }
        assert!(!exec(&mut one), "{count}");
        // One that had expired before is absent, and stays so.
        watch(&mut one, 0..count);
        assert!(exec(&mut one), "{count}: expired before");
    }
}

/// The bank of the design note: clients that watch much move money between accounts, and none comes from nowhere.
#[test]
fn a_bank_whose_clients_watch_everything_gains_nothing() {
    const ACCOUNTS: usize = 100;
    let place = Place::new();
    let ours = Ours::start(&place, Settings { threads: 2, ..Settings::default() });
    let mut client = Client::connect(&ours.socket);
    (0..ACCOUNTS).for_each(|n| _ = client.line(&format!("set key{n} 100")));
    let balance = |client: &mut Client, n: usize| -> i64 {
        let Answer::Bulk(text) = client.line(&format!("get key{n}")) else { panic!("no balance") };
        String::from_utf8_lossy(&text).parse().expect("a number")
    };
    let moved: usize = std::thread::scope(|scope| {
        let movers: Vec<_> = (0..6_usize)
            .map(|mover| {
                let (ours, balance) = (&ours, &balance);
                scope.spawn(move || {
                    let (mut client, mut moved) = (Client::connect(&ours.socket), 0);
                    for round in 0..300 {
                        let from = (mover * 31 + round * 7) % ACCOUNTS;
                        let to = (from + 1 + round % 5) % ACCOUNTS;
                        watch(&mut client, 0..ACCOUNTS);
                        let (has, gets) = (balance(&mut client, from), balance(&mut client, to));
                        client.line("multi");
                        client.line(&format!("set key{from} {}", has - 3));
                        client.line(&format!("set key{to} {}", gets + 3));
                        moved += usize::from(client.line("exec") != Answer::Null);
                        // Money that comes and goes by itself, in between.
                        client.line(&format!("incrby key{from} 5"));
                        client.line(&format!("decrby key{from} 5"));
                    }
                    moved
                })
            })
            .collect();
        movers.into_iter().map(|mover| mover.join().expect("a mover ends")).sum()
    });
    let sum: i64 = (0..ACCOUNTS).map(|n| balance(&mut client, n)).sum();
    assert_eq!(sum, 100 * ACCOUNTS as i64, "{moved} were moved");
    assert!(moved > 0);
}
