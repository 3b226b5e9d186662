//! Processes that come, wait for each other, stop and go.

mod party;

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use party::{command, Party, Scratch};
use perilune_engine::Database;
use perilune_store::{Error, Session as _, Store};

/// How soon a dead process's lock is free.
const SOON: Duration = Duration::from_millis(100);
/// How late that may be noticed on a busy machine.
const LATE: Duration = Duration::from_secs(5);
const CROWD: usize = 200;

#[test]
fn party_process() {
    match party::role() {
        Some((role, path)) if role == "steps" => party::serve(&path),
        Some((role, path)) if role == "stays" => stay(&path),
        // One of the crowd: its role is its name.
        Some((role, path)) => {
            let database = Database::open(&path, &party::options()).unwrap();
            database.session().unwrap().set(format!("crowd\0{role}").as_bytes(), b"1").unwrap();
            database.close().unwrap();
        }
        None => {}
    }
}

/// Opens the database with as many sessions as were asked for, and stays until told to end.
fn stay(path: &std::path::Path) {
    let mut lines = std::io::stdin().lines().map_while(Result::ok);
    let sessions: usize = lines.next().unwrap().parse().unwrap();
    match Database::open(path, &party::options()) {
        Ok(database) => {
            let sessions: Result<Vec<_>, _> = (0..sessions).map(|_| database.session()).collect();
            match sessions {
                Ok(mut sessions) => {
                    sessions.iter_mut().for_each(|session| session.set(b"here\0", b"1").unwrap());
                    party::say("here");
                    let _ = lines.next();
                }
                Err(error) => party::say(&error.to_string()),
            }
        }
        Err(error) => party::say(&error.to_string()),
    }
}

fn scene() -> (Scratch, PathBuf, Database) {
    let scratch = Scratch::new("processes");
    let path = scratch.database();
    let database = Database::open(&path, &party::options()).unwrap();
    (scratch, path, database)
}

/// Begins a step that has to wait for a lock, and returns when it waits.
fn wait(database: &Database, party: &mut Party, step: &str) {
    let waits = database.statistics().unwrap().lock_waits;
    party.begin(step);
    while database.statistics().unwrap().lock_waits == waits {
        assert_eq!(party.has_answered(), None, "`{step}` waits");
        std::thread::yield_now();
    }
}

/// How long a waiter needs to get the lock of a holder that is killed: the best of a few tries.
fn handed_on(path: &std::path::Path, database: &Database, start: &dyn Fn() -> Party) -> Duration {
    let tries = (0..4).map(|_| {
        let (mut holder, mut waiter) = (start(), Party::new(path));
        assert_eq!(holder.ask("lock l/1 exclusive"), "granted");
        wait(database, &mut waiter, "lock l exclusive");
        let killed = Instant::now();
        holder.kill();
        assert_eq!(waiter.answer(), "granted");
        let took = killed.elapsed();
        assert!(took < LATE, "{took:?}");
        waiter.end();
        took
    });
    tries.min().unwrap()
}

#[test]
fn a_lock_is_free_soon_after_its_holder_is_killed() {
    let (_scratch, path, database) = scene();
    let took = handed_on(&path, &database, &|| Party::new(&path));
    assert!(took < SOON, "{took:?}");
    database.verify().unwrap();
    database.close().unwrap();
}

#[test]
fn waiters_of_other_processes_come_in_their_order() {
    let (_scratch, path, database) = scene();
    let mut parties: Vec<Party> = (0..4).map(|_| Party::new(&path)).collect();
    assert_eq!(parties[0].ask("lock l exclusive"), "granted");
    for party in &mut parties[1..] {
        wait(&database, party, "lock l exclusive");
    }
    for before in 0..3 {
        assert_eq!(parties[before].ask("unlock l"), "true");
        assert_eq!(parties[before + 1].answer(), "granted");
        for later in &parties[before + 2..] {
            assert_eq!(later.has_answered(), None);
        }
    }
    drop(parties);
    database.close().unwrap();
}

#[test]
fn of_two_processes_in_a_circle_one_is_told() {
    let (_scratch, path, database) = scene();
    let (mut a, mut b) = (Party::new(&path), Party::new(&path));
    assert_eq!(a.ask("lock a exclusive"), "granted");
    assert_eq!(b.ask("lock b exclusive"), "granted");
    wait(&database, &mut a, "lock b exclusive");
    assert_eq!(b.ask("lock a exclusive"), "deadlock");
    assert_eq!(a.has_answered(), None);
    assert_eq!(b.ask("unlock b"), "true");
    assert_eq!(a.answer(), "granted");
    drop((a, b));
    database.close().unwrap();
}

#[test]
fn a_stopped_process_delays_what_it_holds_only() {
    let (_scratch, path, database) = scene();
    let (mut stopped, mut other) = (Party::new(&path), Party::new(&path));
    assert_eq!(stopped.ask("lock l exclusive"), "granted");
    assert_eq!(stopped.ask("begin"), "ok");
    assert_eq!(stopped.ask("set x mine"), "ok");
    stopped.stop();
    for step in ["set x theirs", "set y 1", "begin", "set z 1", "commit", "kill_tree z"] {
        assert_eq!(other.ask(step), "ok", "{step}");
    }
    assert_eq!(other.ask("lock m exclusive"), "granted");
    assert_eq!(other.ask("lock l exclusive now"), "refused", "it lives");
    stopped.resume();
    assert_eq!(stopped.ask("commit"), "ok");
    assert_eq!(other.ask("get x"), "mine");
    assert_eq!(stopped.ask("unlock l"), "true");
    assert_eq!(other.ask("lock l exclusive now"), "granted");
    stopped.end();
    other.end();
    database.close().unwrap();
}

/// How to run a program as process 1 of a process namespace of its own.
fn namespace() -> Vec<&'static str> {
    let ways: [&[&str]; 2] = [
        &["unshare", "--pid", "--fork", "--kill-child"],
        &["unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child"],
    ];
    for way in ways {
        let tried = Command::new(way[0]).args(&way[1..]).arg("true").output();
        if tried.is_ok_and(|output| output.status.success()) {
            return way.to_vec();
        }
    }
    panic!(
        "this test needs process namespaces: run it as root, or allow users to make them \
         (sysctl kernel.unprivileged_userns_clone=1, kernel.apparmor_restrict_unprivileged_userns=0), \
         with `unshare` of util-linux; in a container add the capability SYS_ADMIN"
    );
}

#[test]
fn processes_of_other_namespaces_see_each_others_death() {
    let (_scratch, path, database) = scene();
    let namespace = namespace();
    let start = || Party::start(&mut command(&namespace, "steps", &path));
    let (mut one, mut two) = (start(), start());
    assert_eq!(one.ask("set x 1"), "ok");
    assert_eq!(two.ask("get x"), "1");
    // Each is process 1 in its world, and the other one's number means nothing to it.
    assert_eq!(one.ask("lock l exclusive"), "granted");
    wait(&database, &mut two, "lock l exclusive");
    one.kill();
    assert_eq!(two.answer(), "granted");
    assert_eq!(two.ask("unlock l"), "true");
    // And one of this namespace sees the death of one in another.
    let took = handed_on(&path, &database, &start);
    assert!(took < SOON, "{took:?}");
    database.verify().unwrap();
    drop((one, two));
    database.close().unwrap();
}

#[test]
fn a_database_opened_twice_in_one_process_is_shared_like_by_two() {
    let (_scratch, path, database) = scene();
    let again = Database::open(&path, &party::options()).unwrap();
    let (mut one, mut two) = (database.session().unwrap(), again.session().unwrap());
    one.set(b"x\0", b"1").unwrap();
    let mut value = Vec::new();
    assert!(two.get(b"x\0", &mut value).unwrap());
    assert_eq!(value, b"1");
    two.set(b"x\0", b"2").unwrap();
    drop(two);
    again.close().unwrap();
    // What the other has closed is not this one's.
    let mut party = Party::new(&path);
    assert_eq!(party.ask("get x"), "2");
    one.set(b"x\0", b"3").unwrap();
    assert_eq!(party.ask("get x"), "3");
    party.end();
    drop(one);
    database.verify().unwrap();
    database.close().unwrap();
}

#[test]
fn a_crowd_comes_and_goes_at_once() {
    let (_scratch, path, database) = scene();
    let crowd: Vec<Party> =
        (0..CROWD).map(|name| Party::start(&mut command(&[], &name.to_string(), &path))).collect();
    crowd.into_iter().for_each(Party::end);
    let mut session = database.session().unwrap();
    for name in 0..CROWD {
        assert!(session.get(format!("crowd\0{name}").as_bytes(), &mut Vec::new()).unwrap(), "{name}");
    }
    drop(session);
    database.verify().unwrap();
    database.close().unwrap();
}

#[test]
fn more_sessions_than_there_are_is_an_error() {
    let (_scratch, _, database) = scene();
    let mut sessions = Vec::new();
    let error = loop {
        match database.session() {
            Ok(session) => sessions.push(session),
            Err(error) => break error,
        }
        assert!(sessions.len() <= 8_191);
    };
    assert!(matches!(error, Error::LimitReached { limit: 8_191, .. }), "{error}");
    let last = sessions.last_mut().unwrap();
    last.set(b"x\0", b"1").unwrap();
    sessions.pop();
    assert!(database.session().unwrap().get(b"x\0", &mut Vec::new()).unwrap());
    drop(sessions);
    database.close().unwrap();
}

/// So many processes at once. `PERILUNE_CROWD=1023 cargo test --release -p perilune-engine --test processes
/// crowd` tries the limits themselves: 1,024 processes with this one, and 8,191 sessions.
fn crowd_wanted() -> usize {
    std::env::var("PERILUNE_CROWD").map_or(CROWD, |number| number.parse().expect("PERILUNE_CROWD: a number"))
}

const PROCESSES: usize = 1024;
const SESSIONS: usize = 8191;

#[test]
fn a_crowd_has_a_database_open_at_once() {
    let (_scratch, path, database) = scene();
    let count = crowd_wanted();
    let start = |sessions: usize| {
        let mut party = Party::start(&mut command(&[], "stays", &path));
        party.begin(&sessions.to_string());
        party
    };
    let mut crowd: Vec<Party> = Vec::new();
    for _ in 0..count {
        let party = start(8);
        assert_eq!(party.answer(), "here", "process {}", crowd.len() + 2);
        crowd.push(party);
    }
    let mine: Vec<_> = (count * 8..SESSIONS).map_while(|_| database.session().ok()).collect();
    assert_eq!(mine.len(), SESSIONS - count * 8, "{count} processes with 8 sessions each leave the rest");
    let Err(refused) = database.session() else { panic!("one session too many") };
    assert!(matches!(refused, Error::LimitReached { limit: 8191, .. }), "{refused}");
    assert!(refused.to_string().contains("close some"), "{refused}");
    drop(mine);
    if count + 1 == PROCESSES {
        let refused = start(1).answer();
        assert!(refused.contains("too many processes: end some") && refused.contains("1024"), "{refused}");
    }
    // One that dies makes room for another: as soon as the warden has been there, if all slots were taken.
    crowd.pop().unwrap().kill();
    let killed = Instant::now();
    loop {
        let next = start(8);
        let answer = next.answer();
        crowd.push(next);
        if answer == "here" {
            break;
        }
        assert!(answer.contains("too many processes") && killed.elapsed() < LATE * 6, "{answer}");
    }
    drop(crowd);
    database.verify().unwrap();
    database.close().unwrap();
}
