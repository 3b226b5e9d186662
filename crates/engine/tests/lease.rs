//! Exclusive mode between processes: its holder loops, is stopped, waits, dies; the others get through.

mod party;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use party::{command, say, Party, Scratch};
use perilune_engine::{Database, Session};
use perilune_store::{transact, Error, Session as _, Store, TransactionOptions, Transactions};

/// Nobody waits longer for somebody's exclusive mode than its longest length, and a little.
const THROUGH: Duration = Duration::from_secs(2);
/// Losses after which exclusive mode lasts 640 ms.
const LOSSES: u32 = 6;
/// Clearly less than that.
const AT_ONCE: Duration = Duration::from_millis(400);
const WIDE: u64 = 350;

#[test]
fn party_process() {
    match party::role() {
        Some((role, path)) if role == "loop" => endless(&path),
        Some((role, path)) if role == "wide" => wide(&path),
        Some((_, path)) => party::serve(&path),
        None => {}
    }
}

/// A transaction that gets exclusive mode and never ends by itself.
fn endless(path: &Path) {
    let mut session = party::session(path);
    let options = TransactionOptions { timeout: Duration::from_secs(2), ..TransactionOptions::default() };
    let begun = Instant::now();
    let mut said = false;
    let result: Result<(), Error> = transact(&mut session, &options, |session| {
        if session.restarts() < 3 {
            return Err(Error::Restart);
        }
        if !std::mem::replace(&mut said, true) {
            say("loops");
        }
        loop {
            session.get(b"x\0", &mut Vec::new())?;
            session.set(b"y\0", b"never")?;
        }
    });
    let in_time = begun.elapsed() >= options.timeout && begun.elapsed() < 2 * options.timeout;
    say(&format!("{} {in_time}", matches!(result, Err(Error::TransactionTimeout { .. }))));
    assert!(matches!(session.get(b"y\0", &mut Vec::new()), Ok(false)), "it has written nothing");
}

/// Commits so wide that their apply needs exclusive mode, for ever.
fn wide(path: &Path) {
    let mut session = party::session(path);
    for round in 0_u64.. {
        let value = [round as u8; 1_500];
        transact(&mut session, &TransactionOptions::default(), |session| {
            (0..WIDE).try_for_each(|key| session.set(&wide_key(key), &value))
        })
        .unwrap();
        if round == 0 {
            say("ready");
        }
    }
}

fn wide_key(key: u64) -> Vec<u8> {
    [b"wide\0", &key.to_be_bytes()[..]].concat()
}

struct Scene {
    path: PathBuf,
    database: Database,
    session: Session,
    _scratch: Scratch,
}

fn scene() -> Scene {
    let scratch = Scratch::new("lease");
    let path = scratch.database();
    let database = Database::open(&path, &party::options()).unwrap();
    let mut session = database.session().unwrap();
    session.set(b"x\0", b"0").unwrap();
    Scene { path, database, session, _scratch: scratch }
}

impl Scene {
    /// Sets `x`, and says how long that took.
    fn set(&mut self, value: &str) -> Duration {
        let begun = Instant::now();
        self.session.set(b"x\0", value.as_bytes()).unwrap();
        begun.elapsed()
    }

    /// Makes transactions of `party` fail until the one that is then open is in exclusive mode, of which
    /// it has lost `losses` before; it has read `x`.
    fn make_exclusive(&mut self, party: &mut Party, losses: u32) {
        let leases = self.database.statistics().unwrap().leases;
        for round in 0..3 + losses {
            assert_eq!(party.ask("begin"), "ok");
            party.ask("get x");
            self.set(&format!("r{round}"));
            assert_eq!(party.ask("set x mine"), "ok");
            assert_eq!(party.ask("commit"), "conflict");
            assert_eq!(party.ask("retry"), "ok");
        }
        assert_eq!(party.ask("begin"), "ok");
        assert_eq!(party.ask("get x"), format!("r{}", 2 + losses));
        assert_eq!(self.database.statistics().unwrap().leases, leases + u64::from(losses) + 1);
    }

    fn end(self) {
        self.database.verify().unwrap();
    }
}

#[test]
fn an_endless_loop_in_exclusive_mode_stops_nobody_and_ends_at_its_limit() {
    let mut scene = scene();
    let party = Party::start(&mut command(&[], "loop", &scene.path));
    assert_eq!(party.answer(), "loops");
    let (mut sets, mut longest) = (0, Duration::ZERO);
    let end = loop {
        longest = longest.max(scene.set(&sets.to_string()));
        sets += 1;
        if let Some(end) = party.has_answered() {
            break end;
        }
    };
    assert_eq!(end, "true true", "it timed out, in time");
    assert!(sets > 2 && longest < THROUGH, "{sets} sets, the longest took {longest:?}");
    party.end();
    scene.end();
}

#[test]
fn who_asks_for_exclusive_mode_has_it_at_the_first_try() {
    let mut scene = scene();
    let leases = scene.database.statistics().unwrap().leases;
    let exclusive = TransactionOptions { exclusive: true, ..TransactionOptions::default() };
    let mut begin_and_count = |options: &TransactionOptions| {
        scene.session.begin(options).unwrap();
        assert!(scene.session.get(b"x\0", &mut Vec::new()).unwrap());
        scene.session.commit().unwrap();
        scene.database.statistics().unwrap().leases - leases
    };
    assert_eq!(begin_and_count(&TransactionOptions::default()), 0);
    assert_eq!(begin_and_count(&exclusive), 1);
    assert_eq!(begin_and_count(&TransactionOptions { read_only: true, ..exclusive.clone() }), 1);
    assert_eq!(begin_and_count(&exclusive), 2);
    scene.end();
}

/// Whoever never takes it fails at the third conflict, and where he reads or writes more than can be done beside others.
#[test]
fn who_never_takes_exclusive_mode_fails_instead() {
    let mut scene = scene();
    let mut other = scene.database.session().unwrap();
    for key in 0..12_000 {
        scene.session.set(&wide_key(key), &[1; 1_500]).unwrap();
    }
    let leases = scene.database.statistics().unwrap().leases;
    let never = TransactionOptions { never_exclusive: true, ..TransactionOptions::default() };
    let lost = transact(&mut scene.session, &never, |session| {
        session.get(b"x\0", &mut Vec::new())?;
        other.set(b"x\0", &session.restarts().to_be_bytes())?;
        session.set(b"y\0", b"mine")
    });
    assert!(matches!(lost, Err(Error::Conflict)), "{lost:?}");
    let wide = transact(&mut scene.session, &never, |session| {
        (0..600).try_for_each(|key| session.set(&wide_key(key), &[2; 1_500]))
    });
    assert!(matches!(wide, Err(Error::LimitReached { .. })), "{wide:?}");
    let long = transact(&mut scene.session, &never, |session| {
        (0..12_000).try_for_each(|key| session.get(&wide_key(key), &mut Vec::new()).map(drop))
    });
    assert!(matches!(long, Err(Error::LimitReached { .. })), "{long:?}");
    let mut value = Vec::new();
    assert!(scene.session.get(&wide_key(0), &mut value).unwrap() && value == [1; 1_500]);
    assert!(!scene.session.get(b"y\0", &mut value).unwrap());
    assert_eq!(scene.database.statistics().unwrap().leases, leases);
    // The others take it where they need it.
    transact(&mut scene.session, &TransactionOptions::default(), |session| {
        (0..600).try_for_each(|key| session.set(&wide_key(key), &[2; 1_500]))
    })
    .unwrap();
    assert_eq!(scene.database.statistics().unwrap().leases, leases + 1);
    scene.end();
}

#[test]
fn one_stopped_in_exclusive_mode_loses_it_and_runs_again() {
    let mut scene = scene();
    let mut party = Party::new(&scene.path);
    scene.make_exclusive(&mut party, 0);
    party.stop();
    assert!(scene.set("theirs") < THROUGH);
    party.resume();
    assert_eq!(party.ask("set x mine"), "ok");
    assert_eq!(party.ask("commit"), "conflict");
    assert_eq!(party.ask("retry"), "ok");
    assert_eq!(party.ask("begin"), "ok");
    assert_eq!(party.ask("get x"), "theirs");
    assert_eq!(party.ask("set x mine"), "ok");
    assert_eq!(party.ask("commit"), "ok");
    assert_eq!(party.ask("get x"), "mine");
    party.end();
    scene.end();
}

#[test]
fn a_wait_for_a_lock_gives_exclusive_mode_back_first() {
    let mut scene = scene();
    let (mut party, mut holder) = (Party::new(&scene.path), Party::new(&scene.path));
    assert_eq!(holder.ask("lock l exclusive"), "granted");
    scene.make_exclusive(&mut party, LOSSES);
    party.begin("lock l exclusive");
    let took = scene.set("theirs");
    assert!(took < AT_ONCE, "{took:?}");
    assert_eq!(party.has_answered(), None);
    assert_eq!(holder.ask("unlock l"), "true");
    assert_eq!(party.answer(), "granted");
    assert_eq!(party.ask("set x mine"), "ok");
    assert_eq!(party.ask("commit"), "conflict");
    assert_eq!(holder.ask("lock l exclusive now"), "granted", "the rollback has released it");
    party.end();
    holder.end();
    scene.end();
}

#[test]
fn one_killed_in_exclusive_mode_is_not_waited_for() {
    let mut scene = scene();
    let mut party = Party::new(&scene.path);
    scene.make_exclusive(&mut party, LOSSES);
    assert_eq!(party.ask("set y half"), "ok");
    party.kill();
    let took = scene.set("theirs");
    assert!(took < AT_ONCE, "{took:?}");
    assert!(!scene.session.get(b"y\0", &mut Vec::new()).unwrap());
    scene.end();
}

#[test]
fn a_wide_commit_that_is_killed_has_happened_or_has_not() {
    let mut scene = scene();
    for round in 0..12 {
        let mut party = Party::start(&mut command(&[], "wide", &scene.path));
        assert_eq!(party.answer(), "ready");
        // Somewhere inside, another place each time.
        std::thread::sleep(Duration::from_micros(700 * round));
        party.kill();
        let mut first = None;
        let keys: Vec<Vec<u8>> = (0..WIDE).map(wide_key).collect();
        let keys: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
        for (key, value) in
            perilune_store::get_many(&mut scene.session, &keys).unwrap().into_iter().enumerate()
        {
            let value = value.expect("it is there");
            assert_eq!(first.get_or_insert_with(|| value.clone()), &value, "key {key} in round {round}");
        }
        scene.database.verify().unwrap();
    }
    scene.end();
}
