//! Transactions of one session: levels, own writes, errors, tries, time limit, hook.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use perilune_store::{
    transact, Error, Presence, Result, Session, Store, TransactionOptions, Transactions, Write,
};

use super::{assert_error, begin, keys, session, value};

/// Transactions of one session.
pub fn transactions<S: Store>(make: &impl Fn() -> S) {
    levels_open_and_close(&make());
    own_writes_are_seen(&make());
    nested_levels_roll_back_alone(&make());
    read_only_refuses_writes(&make());
    the_runner_rolls_back_on_error(&make());
    a_restart_runs_the_outermost_again(&make());
    the_time_limit_ends_the_tries(&make());
    a_dropped_session_leaves_nothing(&make());
    the_hook_sees_and_adds(&make());
    the_hook_can_refuse(&make());
}

fn levels_open_and_close<S: Store>(store: &S) {
    let mut s = session(store);
    assert_error!(s.commit(), Error::TransactionState(_), "commit without a transaction");
    assert_error!(s.rollback(), Error::TransactionState(_), "rollback without a transaction");
    assert_eq!(s.depth(), 0);
    begin(&mut s);
    begin(&mut s);
    assert_eq!(s.depth(), 2, "two levels are open");
    assert_eq!(s.restarts(), 0, "a first run has no restarts");
    s.commit().unwrap();
    assert_eq!(s.depth(), 1, "a commit closes one level");
    s.rollback().unwrap();
    assert_eq!(s.depth(), 0, "a rollback closes one level");
}

fn own_writes_are_seen<S: Store>(store: &S) {
    let mut s = session(store);
    for key in [b"a\0\x01", b"a\0\x02", b"a\0\x05"] {
        s.set(key, b"old").unwrap();
    }
    begin(&mut s);
    s.set(b"a\0\x03", b"new").unwrap();
    s.set(b"a\0\x01", b"new").unwrap();
    assert!(s.remove(b"a\0\x02").unwrap(), "there was a value");
    assert!(!s.remove(b"a\0\x02").unwrap(), "there is none after the own removal");
    assert_eq!(value(&mut s, b"a\0\x01").as_deref(), Some(&b"new"[..]), "get sees an own write");
    assert_eq!(value(&mut s, b"a\0\x02"), None, "get sees an own removal");
    let expected = [b"a\0\x01", b"a\0\x03", b"a\0\x05"];
    assert_eq!(keys(&mut s).unwrap(), expected, "next sees own writes and removals");
    let (mut key, mut found) = (Vec::new(), Vec::new());
    assert!(s.previous(b"a\0\x03", &mut key, Some(&mut found)).unwrap());
    assert_eq!((&key[..], &found[..]), (&b"a\0\x01"[..], &b"new"[..]), "previous skips the removed");
    s.remove_prefix(b"a\0").unwrap();
    assert_eq!(s.presence(b"a\0").unwrap(), Presence::default(), "the removed subtree is hidden");
    assert!(!s.next(b"", true, &mut key, None).unwrap(), "next finds nothing of it");
    assert!(!s.previous(b"\xFF", &mut key, None).unwrap(), "nor does previous");
    s.set(b"a\0\x02\x07", b"later").unwrap();
    let presence = Presence { value: false, descendants: true };
    assert_eq!(s.presence(b"a\0\x02").unwrap(), presence, "a later write in it reappears");
    assert_eq!(value(&mut session(store), b"a\0\x01").as_deref(), Some(&b"old"[..]), "others see the old");
    s.commit().unwrap();
    assert_eq!(keys(&mut session(store)).unwrap(), [b"a\0\x02\x07"], "the commit applies all of it");
}

fn nested_levels_roll_back_alone<S: Store>(store: &S) {
    let mut s = session(store);
    s.set(b"a\0", b"0").unwrap();
    begin(&mut s);
    s.set(b"a\0", b"1").unwrap();
    begin(&mut s);
    s.remove_prefix(b"a\0").unwrap();
    s.set(b"b\0", b"2").unwrap();
    begin(&mut s);
    s.set(b"a\0", b"3").unwrap();
    s.commit().unwrap();
    assert_eq!(value(&mut s, b"a\0").as_deref(), Some(&b"3"[..]), "the parent sees the committed child");
    s.rollback().unwrap();
    assert_eq!(value(&mut s, b"a\0").as_deref(), Some(&b"1"[..]), "a rollback drops the level and its child");
    assert_eq!(value(&mut s, b"b\0"), None, "all of it");
    s.commit().unwrap();
    assert_eq!(value(&mut session(store), b"a\0").as_deref(), Some(&b"1"[..]), "the outermost is committed");
}

fn read_only_refuses_writes<S: Store>(store: &S) {
    let mut s = session(store);
    s.set(b"a\0", b"1").unwrap();
    s.begin(&TransactionOptions { read_only: true, ..TransactionOptions::default() }).unwrap();
    assert_eq!(value(&mut s, b"a\0").as_deref(), Some(&b"1"[..]), "reads go on");
    assert_error!(s.set(b"a\0", b"2"), Error::ReadOnly, "set in a read-only transaction");
    assert_error!(s.remove_prefix(b"a\0"), Error::ReadOnly, "remove_prefix in a read-only transaction");
    s.commit().unwrap();
    assert_eq!(value(&mut s, b"a\0").as_deref(), Some(&b"1"[..]), "nothing was written");
}

fn the_runner_rolls_back_on_error<S: Store>(store: &S) {
    let mut s = session(store);
    let options = TransactionOptions::default();
    let result: Result<()> = transact(&mut s, &options, |s| {
        s.set(b"a\0", b"1")?;
        Err(Error::Refused("enough".to_string()))
    });
    assert_error!(result, Error::Refused(_), "the body's own error");
    assert_eq!((s.depth(), value(&mut s, b"a\0")), (0, None), "nothing is open, nothing written");
    transact(&mut s, &options, |s| {
        s.set(b"a\0", b"outer")?;
        let inner: Result<()> = transact(s, &TransactionOptions::default(), |s| {
            s.set(b"a\0", b"inner")?;
            Err(Error::Refused("inner only".to_string()))
        });
        assert_error!(inner, Error::Refused(_), "the inner body's own error");
        assert_eq!(value(s, b"a\0").as_deref(), Some(&b"outer"[..]), "only the inner level is rolled back");
        Ok(())
    })
    .unwrap();
    assert_eq!(value(&mut s, b"a\0").as_deref(), Some(&b"outer"[..]), "the outer level is committed");
}

fn a_restart_runs_the_outermost_again<S: Store>(store: &S) {
    let mut s = session(store);
    let mut seen = Vec::new();
    transact(&mut s, &TransactionOptions::default(), |s| {
        seen.push((s.restarts(), value(s, b"a\0")));
        s.set(b"a\0", b"1")?;
        let run = seen.len();
        transact(s, &TransactionOptions::default(), |_| if run < 6 { Err(Error::Restart) } else { Ok(()) })
    })
    .unwrap();
    let expected: Vec<_> = (0..6).map(|restarts| (restarts, None)).collect();
    assert_eq!(seen, expected, "each run counts its restarts and finds nothing of the one before");
    assert_eq!(value(&mut s, b"a\0").as_deref(), Some(&b"1"[..]), "the sixth run is committed");
    begin(&mut s);
    assert_eq!(s.restarts(), 0, "the next transaction counts from 0");
    s.rollback().unwrap();
}

fn the_time_limit_ends_the_tries<S: Store>(store: &S) {
    let mut s = session(store);
    let limit = Duration::from_millis(50);
    let options = TransactionOptions { timeout: limit, ..TransactionOptions::default() };
    let result: Result<()> = transact(&mut s, &options, |s| {
        s.set(b"a\0", b"1")?;
        Err(Error::Restart)
    });
    match result {
        Err(Error::TransactionTimeout { limit: told, .. }) => {
            assert_eq!(told, limit, "the error tells the limit")
        }
        other => panic!("endless restarts have to end with the time limit, got {other:?}"),
    }
    assert_eq!((s.depth(), value(&mut s, b"a\0")), (0, None), "nothing is open, nothing written");
    s.set(b"a\0", b"2").unwrap();
    transact(&mut s, &options, |s| s.set(b"a\0", b"3")).expect("the next transaction has its own time");
}

fn a_dropped_session_leaves_nothing<S: Store>(store: &S) {
    let mut s = session(store);
    begin(&mut s);
    s.set(b"a\0", b"1").unwrap();
    drop(s);
    assert_eq!(value(&mut session(store), b"a\0"), None, "an open transaction goes with its session");
}

fn the_hook_sees_and_adds<S: Store>(store: &S) {
    let mut s = session(store);
    s.set(b"a\0\x01", b"old").unwrap();
    s.set(b"k\0\x01", b"old").unwrap();
    let log = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&log);
    s.set_commit_hook(Some(Box::new(move |writes| {
        let mut list = Vec::new();
        writes.for_each(&mut |write| list.push(format!("{write:?}")));
        let mut old = Vec::new();
        let found = writes.get(b"k\0\x01", &mut old)?;
        list.push(format!("get {found}"));
        writes.set(b"count\0", &[list.len() as u8]);
        writes.remove(b"gone\0");
        seen.lock().expect("the log").push(list);
        Ok(())
    })));
    s.set(b"gone\0", b"v").unwrap();
    begin(&mut s);
    s.set(b"c\0", b"3").unwrap();
    s.remove(b"a\0\x01").unwrap();
    s.remove_prefix(b"k\0").unwrap();
    s.commit().unwrap();
    let seen = log.lock().expect("the log").clone();
    let expected = [
        vec![format!("{:?}", Write::Set(b"gone\0", b"v")), "get true".to_string()],
        vec![
            format!("{:?}", Write::RemovePrefix(b"k\0")),
            format!("{:?}", Write::Remove(b"a\0\x01")),
            format!("{:?}", Write::Set(b"c\0", b"3")),
            "get false".to_string(),
        ],
    ];
    assert_eq!(seen, expected, "prefixes first, then by key; reads see the transaction; single writes too");
    assert_eq!(
        keys(&mut s).unwrap(),
        [&b"c\0"[..], b"count\0"],
        "the hook's writes are committed with the rest"
    );
    assert_eq!(value(&mut s, b"count\0"), Some(vec![4]), "in the same transaction");
    s.set_commit_hook(None);
    s.set(b"d\0", b"4").unwrap();
    assert_eq!(log.lock().expect("the log").len(), 2, "a cleared hook sees nothing");
}

fn the_hook_can_refuse<S: Store>(store: &S) {
    let mut s = session(store);
    s.set_commit_hook(Some(Box::new(|_| Err(Error::Refused("by the hook".to_string())))));
    assert_error!(s.set(b"a\0", b"1"), Error::Refused(_), "a single write refused by the hook");
    begin(&mut s);
    s.set(b"b\0", b"1").unwrap();
    assert_error!(s.commit(), Error::Refused(_), "a transaction refused by the hook");
    assert_eq!(s.depth(), 0, "it is gone");
    assert!(keys(&mut s).unwrap().is_empty(), "nothing was written");
}
