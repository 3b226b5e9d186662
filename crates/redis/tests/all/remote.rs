//! A database by its server's address: the same operations as on its file, beside programs that have it
//! mapped; what is lost with a connection, and what a hostile client can do.

use std::sync::{mpsc, Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

use crate::peer::{self, Client, Ours, Place};
use perilune::{
    node, Batch, Cursor, Database, Error, ErrorCode, LockMode, LockOwners, Node, Session, TransactionOptions,
    WatchScope,
};
use perilune_redis::Settings;
use perilune_resp::Answer;

fn settings() -> Settings {
    Settings { threads: 2, ..Settings::default() }
}

fn tcp(ours: &Ours) -> Database {
    Database::open(format!("tcp://127.0.0.1:{}", ours.port)).expect("the server is there")
}

fn unix(ours: &Ours) -> Database {
    Database::open(format!("unix:{}", ours.socket.display())).expect("the server is there")
}

/// Numbers that look random and are the same in each run.
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }

    /// A node of few, so that they meet.
    fn node(&mut self) -> Node {
        let mut node = node!(NAME).unwrap();
        for _ in 0..self.below(4) {
            node = match self.below(3) {
                0 => node.child(self.below(4) as i64),
                1 => node.child(["", "a", "b"][self.below(3) as usize]),
                _ => node.child(-(self.below(3) as i64)),
            }
            .unwrap();
        }
        node
    }
}

const NAME: &str = "^t";

/// One operation and what it answers, as text.
fn operation(session: &mut Session, chance: &mut Chance) -> String {
    let (node, number) = (chance.node(), chance.below(1_000) as i64);
    match chance.below(19) {
        0..=2 => format!("{:?}", session.set(&node, number)),
        3 => format!("{:?}", session.set(&node, "x".repeat(number as usize * 9))),
        4 => format!("{:?}", session.get(&node)),
        5 => format!("{:?}", session.data(&node)),
        6 => format!("{:?}", session.increment(&node, number).map_err(|error| error.code())),
        7 => format!("{:?}", session.next(&node).map(|found| found.map(|node| node.to_string()))),
        8 => format!("{:?}", session.previous(&node).map(|found| found.map(|node| node.to_string()))),
        9 => format!("{:?}", session.next_valued(&node).map(|found| found.map(|node| node.to_string()))),
        10 => format!("{:?}", session.previous_valued(&node).map(|found| found.map(|node| node.to_string()))),
        11 => format!("{:?}", session.delete_value(&node)),
        12 if number < 400 => format!("{:?}", session.delete_tree(&node)),
        13 => {
            let other = chance.node();
            format!("{:?}", session.copy(&node, &other).map_err(|error| error.code()))
        }
        14 => format!("{:?}", session.compare_and_set(&node, Some(number % 3), Some(number))),
        15 => format!(
            "{:?} {:?}",
            session.count_children(&node),
            session.last_child(&node).map(|n| n.map(|n| n.to_string()))
        ),
        16 => disturbed_walk(session, &node, chance),
        17 => peer::pieces::write_and_read(session, &node, number as usize * 9),
        _ => {
            let mut cursor = Cursor::subtree(&node);
            let mut all = String::new();
            while cursor.next(session).unwrap() {
                all += &format!("{}={:?} ", cursor.node().unwrap(), cursor.value().unwrap());
            }
            all
        }
    }
}

/// A walk, one way and perhaps back, while the session itself writes where it is going and where it has been.
fn disturbed_walk(session: &mut Session, node: &Node, chance: &mut Chance) -> String {
    let (mut all, children) = (String::new(), chance.below(2) == 0);
    let mut cursor = if children { Cursor::children(node) } else { Cursor::subtree(node) };
    let mut forward = chance.below(2) == 0;
    for _ in 0..chance.below(30) {
        let found = if forward { cursor.next(session) } else { cursor.previous(session) };
        if !found.unwrap() {
            break;
        }
        all += &format!("{}={:?} ", cursor.node().unwrap(), cursor.value().unwrap());
        let other = chance.node();
        match chance.below(9) {
            0 => session.set(&other, 7).unwrap(),
            1 => all += &format!("{:?} ", session.delete_value(&other).unwrap()),
            2 => session.delete_tree(&other).unwrap(),
            3 => all += &format!("{:?} ", session.data(&other)),
            4 => {
                let mut batch = Batch::new();
                batch.push(&other, 8).unwrap();
                session.set_each(&batch).unwrap();
            }
            5 => all += &format!("{:?} ", session.compare_and_set(&other, Some(7), None::<i64>)),
            6 => forward = chance.below(8) > 0,
            _ => {}
        }
    }
    all
}

/// Operations, some inside transactions that end in one of three ways.
fn round(session: &mut Session, chance: &mut Chance) -> String {
    if chance.below(3) > 0 {
        return operation(session, chance);
    }
    let (count, end, seed) = (chance.below(12), chance.below(3), chance.0);
    let mut text = String::new();
    let outcome = session.transaction(|session| {
        let mut chance = Chance(seed);
        text.clear();
        for _ in 0..count {
            text += &operation(session, &mut chance);
        }
        let inner = session.transaction(|session| {
            for _ in 0..count {
                text += &operation(session, &mut chance);
            }
            if end == 1 {
                Err(Error::Rollback)
            } else {
                Ok(())
            }
        });
        text += &format!("{:?}", inner.map_err(|error| error.code()));
        text += &operation(session, &mut chance);
        if end == 2 {
            Err(Error::Rollback)
        } else {
            Ok(())
        }
    });
    format!("{text} {:?}", outcome.map_err(|error| error.code()))
}

#[test]
fn a_database_behind_a_server_answers_as_its_file_does() {
    let place = Place::new();
    // NB: a step back from ^t reads the last node of ^redis, which is the newest entry of the slow log. On a machine
    // so busy that commands take 10 ms, each request of a transaction writes one, and the transaction meets itself
    // until its time is over.
    let ours = Ours::start(&place, settings().with("slowlog-log-slower-than", "-1").unwrap());
    let file = Database::open(place.path().join("other.db")).unwrap();
    for (seed, database) in [(1, tcp(&ours)), (2, unix(&ours))] {
        let (mut near, mut far) = (file.session().unwrap(), database.session().unwrap());
        // The server's own bookkeeping is a name like others: here, too.
        near.set(&node!("^redis").unwrap(), 1).unwrap();
        far.get(&node!(NAME).unwrap()).unwrap();
        let (mut left, mut right) = (Chance(seed * 77_777), Chance(seed * 77_777));
        for number in 0..1_500 {
            let (near, far) = (round(&mut near, &mut left), round(&mut far, &mut right));
            assert_eq!(near, far, "seed {seed}, round {number}");
        }
        // Whoever has the file mapped sees the same.
        let tree = |session: &mut Session| {
            let mut cursor = Cursor::subtree(&node!(NAME).unwrap());
            let mut all = Vec::new();
            while cursor.next(session).unwrap() {
                all.push((cursor.node().unwrap().to_string(), format!("{:?}", cursor.value().unwrap())));
            }
            all
        };
        let (first, second) = (tree(&mut near), tree(&mut ours.database.session().unwrap()));
        assert!(!first.is_empty() && first == second);
    }
}

#[test]
fn remote_and_mapped_programs_count_together() {
    let place = Place::new();
    let ours = Ours::start(&place, settings());
    let (from, to) = (node!("^account", 1).unwrap(), node!("^account", 2).unwrap());
    ours.database.session().unwrap().set(&from, 300).unwrap();
    thread::scope(|scope| {
        for database in [ours.database.clone(), tcp(&ours), unix(&ours)] {
            let (from, to) = (&from, &to);
            scope.spawn(move || {
                let mut session = database.session().unwrap();
                for _ in 0..100 {
                    session.increment(&node!("^count").unwrap(), 1).unwrap();
                    session
                        .transaction(|session| {
                            let (left, right) =
                                (session.get_int(from)?.unwrap_or(0), session.get_int(to)?.unwrap_or(0));
                            session.set(from, left - 1)?;
                            session.set(to, right + 1)
                        })
                        .unwrap();
                }
            });
        }
    });
    let mut session = tcp(&ours).session().unwrap();
    assert_eq!(session.get_int(&node!("^count").unwrap()).unwrap(), Some(300));
    assert_eq!((session.get_int(&from).unwrap(), session.get_int(&to).unwrap()), (Some(0), Some(300)));
}

#[test]
fn a_transaction_runs_again_when_what_it_read_has_changed() {
    let place = Place::new();
    let ours = Ours::start(&place, settings());
    let (mut near, mut far) = (ours.database.session().unwrap(), tcp(&ours).session().unwrap());
    let place_of = |number: i64| node!("^p", number).unwrap();
    near.set(&place_of(5), 1).unwrap();
    // What another writes into a range that was walked, and at a node that was read.
    for change in [place_of(3), place_of(5)] {
        let mut runs = 0;
        far.transaction(|session| {
            runs += 1;
            let first = session.first_child(&node!("^p")?)?;
            let value = session.get(&place_of(5))?;
            if runs == 1 {
                near.set(&change, runs + 10)?;
            }
            session.set(&node!("^seen")?, format!("{first:?} {value:?}"))
        })
        .unwrap();
        assert_eq!(runs, 2, "{change}");
    }
    // What lies behind the range that was read is no conflict.
    let mut runs = 0;
    far.transaction(|session| {
        runs += 1;
        session.first_child(&node!("^p")?)?;
        near.set(&place_of(9), runs)?;
        session.set(&node!("^seen")?, 1)
    })
    .unwrap();
    assert_eq!(runs, 1);
    let limit = TransactionOptions { timeout: Duration::from_millis(50), ..TransactionOptions::default() };
    let endless = far.transaction_with(&limit, |_| Err::<(), _>(Error::Restart));
    assert_eq!(endless.unwrap_err().code(), ErrorCode::TransactionTimeout);
}

/// How many commands a server runs meanwhile, but INFO itself.
fn requests(ours: &Ours, body: impl FnOnce()) -> u64 {
    let mut client = Client::connect(&ours.socket);
    let mut count = || {
        let Answer::Bulk(text) = client.line("INFO stats") else { panic!("INFO answers a string") };
        let text = String::from_utf8(text).unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix("total_commands_processed:")).unwrap();
        line.trim().parse::<u64>().unwrap()
    };
    let before = count();
    body();
    count() - before - 1
}

/// They are at most so many, and one more for each 50 ms: so long is good what was read ahead, and a slow machine asks again.
fn requests_at_most(most: u64, ours: &Ours, what: &str, body: impl FnOnce()) {
    let start = Instant::now();
    let count = requests(ours, body);
    let again = start.elapsed().as_millis() as u64 / 50;
    assert!(count <= most + again, "{what}: {count}, of which {again} may be asked again");
}

#[test]
fn walks_are_read_ahead() {
    let place = Place::new();
    let ours = Ours::start(&place, settings());
    let (mut near, mut far) = (ours.database.session().unwrap(), tcp(&ours).session().unwrap());
    let root = node!("^w").unwrap();
    let place_of = |number: i64| node!("^w", number).unwrap();
    for number in 0..1_000 {
        near.set(&place_of(number), number).unwrap();
        near.set(&node!("^w", number, "below", number).unwrap(), "x").unwrap();
    }
    far.get(&root).unwrap();
    // One step, 8, 32, 128, 512 and the rest.
    requests_at_most(6, &ours, "children", || assert_eq!(far.children(&root).count(), 1_000));
    requests_at_most(8, &ours, "a subtree", || assert_eq!(far.subtree(&root).count(), 2_000));
    requests_at_most(7, &ours, "a transaction, and its check", || {
        assert_eq!(far.count_children(&root).unwrap(), 1_000)
    });
    requests_at_most(7, &ours, "backwards, each child's own value comes with it", || {
        let (mut cursor, mut sum) = (Cursor::children(&root).without_values(), 0);
        while cursor.previous(&mut far).unwrap() {
            sum += cursor.integer().unwrap();
        }
        assert_eq!(sum, 499_500);
    });
    requests_at_most(8, &ours, "in a transaction", || {
        let (mut cursor, mut sum) = (Cursor::children(&root), 0);
        far.transaction(|session| {
            while cursor.previous(session)? {
                sum += cursor.value()?.and_then(|value| value.as_i64()).unwrap();
            }
            Ok(())
        })
        .unwrap();
        assert_eq!(sum, 499_500);
    });
    requests_at_most(6, &ours, "$ORDER", || {
        let mut at = node!("^w", "").unwrap();
        while let Some(next) = far.next(&at).unwrap() {
            at = next;
        }
        assert_eq!(at, place_of(999));
    });
    // Loops in loops, and one that ends early.
    requests_at_most(2_006, &ours, "loops in a loop", || {
        let mut outer = Cursor::children(&root);
        while outer.next(&mut far).unwrap() {
            let mut inner = Cursor::subtree(outer.node_ref().unwrap());
            while inner.next(&mut far).unwrap() {}
        }
    });
    let count = requests(&ours, || assert_eq!(far.children(&root).take(2).count(), 2));
    assert_eq!(count, 2);
    // A long value ends a page, and one that is not looked at is not sent.
    near.set(&place_of(4), &"x".repeat(1 << 20)[..]).unwrap();
    requests_at_most(10, &ours, "a long value", || assert_eq!(far.subtree(&root).count(), 2_000));
}

/// `next` again and again and `tojson` in Lua: some pages, whatever lies below.
#[test]
fn walks_of_lua_are_read_ahead() {
    let place = Place::new();
    let ours = Ours::start(&place, settings());
    let mut near = ours.database.session().unwrap();
    for number in 1..=500 {
        near.set(&node!("^w", number).unwrap(), number).unwrap();
        near.set(&node!("^l", number, "below", 1).unwrap(), "x").unwrap();
    }
    let host = perilune_luahost::Host::new().unwrap();
    let run = |code: &str| drop(host.run_code(code, "=walks", &[]).unwrap());
    let port = ours.port;
    run(&format!(
        "db = require('perilune').open('tcp://127.0.0.1:{port}')  assert(db.node('^w'):data() == 10)"
    ));
    for (direction, sum) in [("next", 125_250), ("previous", 125_250)] {
        let code = format!(
            "local n, sum, count = db.node('^w'), 0, 0
            local k, v = n:{direction}()
            while k do sum = sum + v  assert(k == v)  k, v = n:{direction}(k) end
            assert(sum == {sum})"
        );
        requests_at_most(6, &ours, direction, || run(&code));
    }
    requests_at_most(6, &ours, "a list", || run("assert(#db.node('^w'):tojson() == 1893)"));
    let item = r#"{"below":["x"]}"#.len();
    let code = format!("assert(#db.node('^l'):tojson() == 500 * {item} + 499 + 2)");
    requests_at_most(6, &ours, "a tree", || run(&code));
}

#[test]
fn what_was_read_ahead_and_not_used_is_no_conflict() {
    let place = Place::new();
    let ours = Ours::start(&place, settings());
    let (mut near, mut far) = (ours.database.session().unwrap(), tcp(&ours).session().unwrap());
    let place_of = |number: i64| node!("^w", number).unwrap();
    (0..20).for_each(|number| near.set(&place_of(2 * number), number).unwrap());
    for (change, tries) in [(7, 1), (20, 1), (1, 2), (2, 2), (4, 2)] {
        let mut runs = 0;
        far.transaction(|session| {
            runs += 1;
            let mut cursor = Cursor::children(&node!("^w")?);
            for _ in 0..3 {
                assert!(cursor.next(session)?);
            }
            if runs == 1 {
                near.set(&place_of(change), 100 + change)?;
            }
            session.set(&node!("^seen")?, runs)
        })
        .unwrap();
        assert_eq!(runs, tries, "{change}");
        if change % 2 == 1 {
            near.delete_value(&place_of(change)).unwrap();
        }
    }
    // A walk sees what others have written, once it is old, or the session has done something else than read.
    let mut cursor = Cursor::children(&node!("^w").unwrap());
    assert!(cursor.next(&mut far).unwrap() && cursor.next(&mut far).unwrap());
    near.set(&place_of(3), 3).unwrap();
    assert!(far.lock(&place_of(0), LockMode::Exclusive, None).unwrap());
    assert!(cursor.next(&mut far).unwrap());
    assert_eq!(cursor.integer(), Some(3));
}

/// How often a transaction runs in whose first run another program makes a change.
fn runs(
    far: &mut Session,
    near: &mut Session,
    mut read: impl FnMut(&mut Session) -> perilune::Result<()>,
    change: impl FnOnce(&mut Session) -> perilune::Result<()>,
) -> u32 {
    let (mut runs, mut change) = (0, Some(change));
    far.transaction(|session| {
        runs += 1;
        read(session)?;
        if let Some(change) = change.take() {
            change(near)?;
        }
        session.set(&node!("^seen")?, runs)
    })
    .unwrap();
    runs
}

/// What is below a neighbouring sibling, another descendant, another value where `data` was asked: they disturbed
/// transactions that had not looked at them.
#[test]
fn a_transaction_is_disturbed_by_what_it_has_looked_at() {
    let place = Place::new();
    let ours = Ours::start(&place, settings());
    let (mut near, mut far) = (ours.database.session().unwrap(), tcp(&ours).session().unwrap());
    let (five, deep) = (node!("^p", 5).unwrap(), node!("^p", 5, "b").unwrap());
    let above = node!("^p", 5, "a").unwrap();
    type Read = fn(&mut Session) -> perilune::Result<()>;
    type Change = fn(&mut Session) -> perilune::Result<()>;
    let sibling: Read = |session| session.next(&node!("^p", 1)?).map(drop);
    let before: Read = |session| session.previous(&node!("^p", 9)?).map(drop);
    let data: Read = |session| session.data(&node!("^p", 5)?).map(drop);
    let walk: Read = |session| {
        let mut cursor = Cursor::children(&node!("^p")?);
        while cursor.next(session)? {}
        Ok(())
    };
    let removed: Read = |session| session.delete_value(&node!("^p", 5)?).map(drop);
    let first_below: Change = |session| session.set(&node!("^p", 5, "a")?, 1);
    let last_below: Change = |session| session.set(&node!("^p", 5, "z")?, 1);
    let value: Change = |session| session.set(&node!("^p", 5)?, "other");
    let no_value: Change = |session| session.delete_value(&node!("^p", 5)?).map(drop);
    let nothing: Change = |session| session.delete_tree(&node!("^p", 5)?);
    let between: Change = |session| session.set(&node!("^p", 3)?, 1);
    for (number, (read, change, has_value, expected)) in [
        (sibling, first_below, false, 1),
        (sibling, value, false, 1),
        (sibling, no_value, true, 1),
        (sibling, nothing, true, 2),
        (sibling, between, true, 2),
        (before, last_below, true, 1),
        (before, nothing, true, 2),
        (data, first_below, true, 1),
        (data, value, true, 1),
        (data, value, false, 2),
        (data, no_value, true, 2),
        (data, nothing, false, 2),
        (walk, first_below, true, 1),
        (walk, first_below, false, 1),
        (walk, value, false, 2),
        (walk, value, true, 2),
        (walk, no_value, true, 2),
        (walk, between, true, 2),
        (removed, value, true, 1),
        (removed, no_value, true, 2),
    ]
    .into_iter()
    .enumerate()
    {
        near.delete_tree(&node!("^p").unwrap()).unwrap();
        near.set(&deep, 1).unwrap();
        if has_value {
            near.set(&five, "own").unwrap();
        }
        assert_eq!(runs(&mut far, &mut near, read, change), expected, "{number}");
    }
    // What the transaction hides itself it has looked at; and a child whose value it has taken away is no condition.
    near.set(&five, "own").unwrap();
    let hidden: Read = |session| {
        session.delete_value(&node!("^p", 5)?)?;
        session.delete_value(&node!("^p", 5, "b")?)?;
        let mut cursor = Cursor::children(&node!("^p")?);
        while cursor.next(session)? {}
        session.next(&node!("^p", 1)?).map(drop)
    };
    near.delete_value(&above).unwrap();
    assert_eq!(runs(&mut far, &mut near, hidden, |session| session.set(&node!("^other")?, 1)), 1);
    near.set(&deep, 1).unwrap();
    assert_eq!(runs(&mut far, &mut near, hidden, first_below), 2);
}

#[test]
fn locks_hold_between_all_and_go_with_their_connection() {
    let place = Place::new();
    let ours = Ours::start(&place, settings());
    let (mut near, mut far) = (ours.database.session().unwrap(), tcp(&ours).session().unwrap());
    let (lock, below) = (node!("^lock").unwrap(), node!("^lock", 1).unwrap());
    let now = Some(Duration::ZERO);
    assert!(far.lock(&below, LockMode::Exclusive, now).unwrap());
    assert!(far.lock(&below, LockMode::Exclusive, now).unwrap());
    assert_eq!(far.lock_count(far.lock_owner(), &below).unwrap(), 2);
    assert!(!near.lock(&lock, LockMode::Shared, now).unwrap());
    assert!(far.unlock(&below).unwrap());
    assert!(!near.lock(&lock, LockMode::Shared, now).unwrap());
    // Rolled back with the transaction that took it.
    let rolled_back: perilune::Result<()> = far.transaction(|session| {
        assert!(session.lock(&node!("^other")?, LockMode::Exclusive, now)?);
        Err(Error::Rollback)
    });
    assert_eq!(rolled_back.unwrap_err().code(), ErrorCode::Rollback);
    assert!(near.lock(&node!("^other").unwrap(), LockMode::Exclusive, now).unwrap());
    // A wait ends when the lock is free, and when the time is over.
    assert!(!far
        .lock(&node!("^other").unwrap(), LockMode::Exclusive, Some(Duration::from_millis(30)))
        .unwrap());
    let (sender, receiver) = mpsc::channel();
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut third = unix(&ours).session().unwrap();
            sender.send(()).unwrap();
            assert!(third.lock(&lock, LockMode::Exclusive, Some(Duration::from_secs(20))).unwrap());
        });
        receiver.recv().unwrap();
        // As a client that ends without a word.
        drop(far);
    });
    assert!(near.lock(&lock, LockMode::Exclusive, Some(Duration::from_secs(20))).unwrap());
}

#[test]
fn a_watch_sees_writes_of_others() {
    let place = Place::new();
    let ours = Ours::start(&place, settings());
    let mut far = tcp(&ours).session().unwrap();
    let watch = far.watch([(&node!("^w").unwrap(), WatchScope::Subtree)]).unwrap();
    assert!(!far.wait(watch, Some(Duration::from_millis(10))).unwrap());
    let barrier = Arc::new(Barrier::new(2));
    thread::scope(|scope| {
        let (database, other) = (ours.database.clone(), Arc::clone(&barrier));
        scope.spawn(move || {
            other.wait();
            database.session().unwrap().set(&node!("^w", 1).unwrap(), 1).unwrap();
        });
        barrier.wait();
        assert!(far.wait(watch, Some(Duration::from_secs(20))).unwrap());
    });
    far.unwatch(watch);
    assert_eq!(far.wait(watch, None).unwrap_err().code(), ErrorCode::Invalid);
    assert_eq!(far.channel("news").post("first").unwrap(), 1);
    let mut near = ours.database.session().unwrap();
    assert_eq!(near.channel("news").receive(None).unwrap().unwrap().body, b"first");
    assert!(far.channel("news").receive(Some(Duration::from_millis(10))).unwrap().is_none());
}

#[test]
fn a_lost_connection_is_an_error_and_the_next_call_connects_again() {
    let place = Place::new();
    let ours = Ours::start(&place, settings());
    let port = ours.port;
    let database = tcp(&ours);
    let mut far = database.session().unwrap();
    let node = node!("^n").unwrap();
    far.set(&node, 1).unwrap();
    assert!(far.lock(&node, LockMode::Exclusive, None).unwrap());
    drop(ours);
    let start = Instant::now();
    let error = far.get(&node).unwrap_err();
    assert_eq!(error.code(), ErrorCode::Unavailable);
    assert!(error.to_string().contains(&format!("tcp://127.0.0.1:{port}")), "{error}");
    let error = far.set(&node, 2).unwrap_err();
    assert_eq!(error.code(), ErrorCode::Unavailable, "{error}");
    assert!(error.to_string().contains("perilune serve"), "{error}");
    assert!(start.elapsed() < Duration::from_secs(5));
    // Another server of the database, at the same port.
    let file = Database::open(place.path().join("test.db")).unwrap();
    let again = perilune_redis::Running::start(&file, Settings { port, ..settings() }).unwrap();
    assert_eq!(far.get_int(&node).unwrap(), Some(1));
    assert_eq!(far.lock_count(far.lock_owner(), &node).unwrap(), 0);
    // A write whose answer never comes: it is not known whether it has happened.
    again.stopper().stop();
    again.wait();
    assert_eq!(far.set(&node, 3).unwrap_err().code(), ErrorCode::CommitUnknown);
}

/// A value of 512 MiB, with the byte for its type, was more than the server takes as an argument: it ended the
/// connection, and whoever had set the value was told that nobody knows.
#[test]
fn what_the_server_would_not_take_is_refused_before_it_is_sent() {
    let place = Place::new();
    let ours = Ours::start(&place, settings().with("proto-max-bulk-len", "1mb").unwrap());
    let mut far = tcp(&ours).session().unwrap();
    let (node, other) = (node!("^v").unwrap(), node!("^v", 1).unwrap());
    let (most, long) = (vec![b'x'; (1 << 20) - 1], vec![b'y'; 1 << 20]);
    far.set(&node, &most[..]).unwrap();
    assert!(far.lock(&node, LockMode::Exclusive, None).unwrap());
    for refused in [
        far.set(&node, &long[..]),
        far.transaction(|session| session.set(&node, &long[..])),
        far.compare_and_set(&node, Some(&most[..]), Some(&long[..])).map(drop),
        far.channel("news").post(vec![b'y'; (1 << 20) + 1]).map(drop),
    ] {
        let error = refused.unwrap_err();
        assert_eq!(error.code(), ErrorCode::ValueTooLong, "{error}");
        assert!(error.to_string().contains("1048576 at most: store it in several nodes"), "{error}");
    }
    // What is compared is sent, too.
    let error = far.compare_and_set(&node, Some(&long[..]), Some(1)).unwrap_err();
    assert_eq!(error.code(), ErrorCode::LimitReached);
    assert!(error.to_string().contains("proto-max-bulk-len"), "{error}");
    assert_eq!(far.lock_count(far.lock_owner(), &node).unwrap(), 1, "the connection is the same");
    assert_eq!(far.get_str(&node).unwrap().map(str::as_bytes), Some(&most[..]));
    // Programs that have the file mapped can write longer ones, and all can read them.
    let longer = vec![b'z'; 3 << 20];
    ours.database.session().unwrap().set(&other, &longer[..]).unwrap();
    assert_eq!(far.get_str(&other).unwrap().map(str::as_bytes), Some(&longer[..]));
}

#[test]
fn who_has_no_password_is_told_what_to_do() {
    let place = Place::new();
    let ours = Ours::start(&place, settings().with("requirepass", "s@crêt").unwrap());
    let address = |login: &str| format!("tcp://{login}127.0.0.1:{}", ours.port);
    for wrong in ["", ":no@", "nobody:no@"] {
        let error = Database::open(address(wrong)).unwrap_err();
        assert_eq!(error.code(), ErrorCode::CannotOpen);
        assert!(error.to_string().contains("PERILUNE_PASSWORD"), "{error}");
    }
    let database = Database::open(address(":s%40cr%C3%AAt@")).unwrap();
    assert_eq!(database.path().to_str().unwrap(), address(""));
    database.session().unwrap().set(&node!("^n").unwrap(), 1).unwrap();
    // Nodes are all keys: who may not have these has no nodes.
    let mut admin = Client::connect(&ours.socket);
    admin.line("AUTH default s@crêt");
    for (rules, allowed) in
        [("~a* &* +@all", false), ("~* &* +@all -@dangerous", false), ("~* &* +@all", true)]
    {
        assert!(!admin.line(&format!("ACL SETUSER ann reset on >pw {rules}")).is_error());
        assert_eq!(Database::open(address("ann:pw@")).is_ok(), allowed, "{rules}");
    }
}

#[test]
fn what_is_no_database_behind_a_server_is_said() {
    let place = Place::new();
    let ours = Ours::start(&place, settings());
    let far = tcp(&ours);
    for error in [
        far.snapshot().map(drop).unwrap_err(),
        far.checkpoint().map(drop).unwrap_err(),
        far.verify().map(drop).unwrap_err(),
        Database::open("tls:127.0.0.1").map(drop).unwrap_err(),
        Database::open("tcp://").map(drop).unwrap_err(),
    ] {
        assert_eq!(error.code(), ErrorCode::Invalid, "{error}");
    }
    let again = perilune_redis::Running::start(&far, settings()).unwrap_err();
    assert!(again.to_string().contains("is no file"), "{again}");
}

#[test]
fn hostile_bytes_are_refused() {
    let place = Place::new();
    let ours = Ours::start(&place, settings());
    let mut client = Client::connect(&ours.socket);
    let good = node!("^n", 1).unwrap();
    let good = good.encoded();
    let long = [b"n\0", &[b'x'; 5_000][..]].concat();
    let keys: [&[u8]; 7] = [b"", b"\0", b"\xff\xff", b"^n\0", &good[..1], &long, b"n\0\x01\x01"];
    for key in keys {
        for words in [
            vec![&b"PERILUNE.SET"[..], key, b"\x01\x02"],
            vec![b"PERILUNE.INCR", key, b"", b"0"],
            vec![b"PERILUNE.KILL", key],
            vec![b"PERILUNE.DEL", key],
            vec![b"PERILUNE.CAS", key, b"0", b"", b"1", b"\xff"],
            vec![b"PERILUNE.COMMIT", b"1", b"0", b"1000", b"k", key],
            vec![b"PERILUNE.LOCK", b"1", b"0", b"x", key],
            vec![b"PERILUNE.WATCH", b"n", key],
        ] {
            assert!(client.call(words.clone()).is_error(), "{words:?}");
        }
        // Whatever is looked for, the answer is one.
        for words in [
            vec![&b"perilune.get"[..], key],
            vec![b"perilune.data", key],
            vec![b"perilune.next", key, b"0", key, b"1"],
            vec![b"perilune.prev", key, b"", b"1"],
            vec![b"perilune.walk", b"1", key, b"0", b"", b"1", b"3", b"50"],
            vec![b"perilune.walk", b"0", key, b"0", key, b"0", b"", b"50"],
        ] {
            client.call(words);
        }
    }
    for line in [
        "PERILUNE.HELLO 4",
        "PERILUNE.HELLO x",
        "PERILUNE.COMMIT 1 0 1000 s",
        "PERILUNE.COMMIT 1 0 1000 q a b c",
        "PERILUNE.COMMIT 2 0 1000",
        "PERILUNE.LOCK 1 0 x",
        "PERILUNE.LOCK -1 0 x a",
        "PERILUNE.WAIT 99 0",
        "PERILUNE.UNWATCH 1",
        "PERILUNE.CHANNEL c 0 0 refuse",
        "PERILUNE.CHANNEL c 1 1 explode",
        "PERILUNE.GET",
        "PERILUNE.PIECES a x 2",
        "PERILUNE.PATCH a 0 x",
    ] {
        assert!(client.line(line).is_error(), "{line}");
    }
    for program in
        ["", "f", "tx", "f0;F", "f0;F1;@0;9;", "f0;F1;@1;3;x()0;0;", "f0;r1;0;", "t0;s-99;", "f0;n0;"]
    {
        let answer = client.call(["PERILUNE.RUN", "0", "0", "1000", program]);
        assert!(matches!(&answer, Answer::Bulk(text) if b"xueg".contains(&text[0])), "{program}: {answer:?}");
    }
    assert!(client.line("PERILUNE.RUN 2 0 1000 f").is_error());
    random_requests(&mut client, good);
    assert!(ours.database.verify().unwrap().is_sound());
    assert_eq!(client.line("PING"), Answer::Simple(b"PONG".to_vec()));
}

/// Random words for each command, in bounds that a client may send.
fn random_requests(client: &mut Client, good: &[u8]) {
    let mut chance = Chance(4_711);
    let names = [
        "GET", "SET", "INCR", "NEXT", "PREV", "DATA", "DEL", "KILL", "CAS", "COMMIT", "UNLOCK", "POST",
        "WATCH", "RUN", "WALK",
    ];
    for _ in 0..2_000 {
        let name = format!("PERILUNE.{}", names[chance.below(names.len() as u64) as usize]);
        let mut words = vec![name.into_bytes()];
        for _ in 0..chance.below(8) {
            let mut word: Vec<u8> = match chance.below(4) {
                0 => good.to_vec(),
                1 => b"1".to_vec(),
                _ => (0..chance.below(12)).map(|_| chance.below(256) as u8).collect(),
            };
            if chance.below(4) == 0 && !word.is_empty() {
                let at = chance.below(word.len() as u64) as usize;
                word[at] ^= 1 << chance.below(8);
            }
            words.push(word);
        }
        client.call(words.iter().map(Vec::as_slice).collect::<Vec<_>>());
    }
}

/// A server's certificate of its own, as files in PEM.
fn certificate(place: &Place, name: &str) {
    let words = format!(
        "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN={name} \
         -addext basicConstraints=critical,CA:FALSE \
         -addext subjectAltName=DNS:localhost,IP:127.0.0.1 -keyout {name}.key -out {name}.pem"
    );
    let mut command = std::process::Command::new("openssl");
    let made = command.args(words.split_whitespace()).current_dir(place.path()).output();
    let made = made.expect("openssl is needed (.ci/packages.txt)");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
}

#[test]
fn tls_is_spoken_with_a_server_that_proves_itself() {
    let place = Place::new();
    ["server", "stranger"].iter().for_each(|name| certificate(&place, name));
    let path = |name: &str| place.path().join(name).display().to_string();
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut settings = settings();
    for (name, value) in [
        ("tls-port", port.to_string()),
        ("tls-cert-file", path("server.pem")),
        ("tls-key-file", path("server.key")),
        ("tls-auth-clients", "no".to_owned()),
    ] {
        settings.set(name, &value).unwrap();
    }
    let ours = Ours::start(&place, settings);
    let address = |ca: &str| format!("tls://localhost:{port}?ca={}", path(ca));
    let database = Database::open(address("server.pem")).unwrap();
    let mut far = database.session().unwrap();
    let long = "x".repeat(300_000);
    far.set(&node!("^n").unwrap(), long.as_str()).unwrap();
    far.transaction(|session| session.increment(&node!("^count")?, 2).map(drop)).unwrap();
    let mut near = ours.database.session().unwrap();
    assert_eq!(near.get_str(&node!("^n").unwrap()).unwrap(), Some(long.as_str()));
    assert_eq!(far.get_str(&node!("^n").unwrap()).unwrap(), Some(long.as_str()));
    assert_eq!(near.get_int(&node!("^count").unwrap()).unwrap(), Some(2));
    peer::loops::move_with_lock(&ours, &mut far);
    for wrong in [address("stranger.pem"), address("missing.pem"), format!("tcp://localhost:{port}")] {
        let start = Instant::now();
        let options = Database::options().timeout(Duration::from_secs(2));
        assert!(options.open(&wrong).is_err(), "{wrong}");
        assert!(start.elapsed() < Duration::from_secs(8), "{wrong}");
    }
}
