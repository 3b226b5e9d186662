//! A database behind a server keeps the contract of `perilune_store`: the harness's suite over a Unix socket.
//!
//! One server for all; each store of the suite is a tree of its own in its database ([`below`]).

mod below;

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use perilune_harness::conformance::{self, Verdict};
use perilune_harness::model::check_model;
use perilune_redis::Settings;
use perilune_remote::{RemoteOptions, RemoteStore};
use perilune_resp::Answer;
use perilune_store::{
    facets_of, Error, Facets, Programs, Session, Store, TransactionOptions, Watch, WatchRequest, WatchScope,
};

use self::below::Below;
use crate::peer::{Client, Ours, Place, Text};

/// Runs a check with what makes new stores.
fn with_server(check: impl FnOnce(&dyn Fn() -> Below<RemoteStore>)) {
    let place = Place::new();
    let ours = Ours::start(&place, Settings { threads: 2, ..Settings::default() });
    let address = format!("unix:{}", ours.socket.display());
    let store = RemoteStore::open(address.as_ref(), &RemoteOptions::default()).expect("the server is there");
    let count = AtomicU32::new(0);
    check(&|| Below::new(store.clone(), count.fetch_add(1, Ordering::Relaxed)));
}

#[test]
fn a_session_alone_does_what_the_model_does() {
    with_server(|make| check_model(make, 30, 200));
}

#[test]
fn map() {
    with_server(|make| conformance::map(&make));
}

#[test]
fn pages() {
    with_server(|make| conformance::pages(&make));
}

#[test]
fn pieces() {
    with_server(|make| conformance::pieces(&make));
}

#[test]
fn update() {
    with_server(|make| conformance::update(&make));
}

#[test]
fn transactions() {
    with_server(|make| conformance::transactions(&make));
}

#[test]
fn isolation() {
    with_server(|make| conformance::isolation(&make));
}

#[test]
fn limits() {
    with_server(|make| conformance::limits(&make));
}

#[test]
fn locks() {
    with_server(|make| assert_eq!(conformance::locks(&make), Verdict::Kept));
}

#[test]
fn watches() {
    with_server(|make| assert_eq!(conformance::watches(&make), Verdict::Kept));
}

#[test]
fn messages() {
    with_server(|make| assert_eq!(conformance::messages(&make), Verdict::Kept));
}

/// What it lacks is said, and not passed over.
#[test]
fn what_is_missing_has_names() {
    with_server(|make| {
        let store = make();
        let told = facets_of(&mut store.session().expect("a session").inner);
        assert_eq!(told, [true, true, true, false, false, false, false, true, true]);
        let missing = [
            ("deferral", conformance::deferral(&make)),
            ("optimistic", conformance::optimistic(&make)),
            ("read sets", conformance::read_sets(&make)),
            ("bounds", conformance::bounds(&make)),
            ("exclusive mode", conformance::exclusive_mode(&make)),
            ("shared owners", conformance::shared_owners(&make)),
        ];
        for (name, verdict) in missing {
            assert_eq!(verdict, Verdict::Missing, "{name}");
        }
    });
}

/// A function that runs at the server is a transaction of its own there: what its caller asks of the run and does not get is
/// refused.
#[test]
fn a_function_at_the_server_refuses_options_of_exclusive_mode() {
    let place = Place::new();
    let ours = Ours::start(&place, Settings { threads: 2, ..Settings::default() });
    let address = format!("unix:{}", ours.socket.display());
    let store = RemoteStore::open(address.as_ref(), &RemoteOptions::default()).expect("the server is there");
    let mut session = store.session().unwrap();
    for (exclusive, never_exclusive) in [(true, false), (false, true), (true, true)] {
        let options = TransactionOptions { exclusive, never_exclusive, ..TransactionOptions::default() };
        let refused = session.programs().unwrap().run(&options, b"").unwrap_err();
        assert!(matches!(refused, Error::Invalid(_)), "{exclusive} {never_exclusive}: {refused}");
    }
}

/// A loop over descriptors hears of a watch over the wire.
#[test]
fn a_watch_has_a_descriptor() {
    with_server(|make| {
        let store = make();
        let (mut watching, mut writing) = (store.session().unwrap(), store.session().unwrap());
        let id = watching.watch(&[WatchRequest { key: b"a\0", scope: WatchScope::Prefix }]).unwrap();
        let descriptor = watching.watch_descriptor(id).unwrap();
        assert_eq!(watching.watch_descriptor(id).unwrap(), descriptor, "there is one");
        let mut poll = mio::Poll::new().unwrap();
        let mut source = mio::unix::SourceFd(&descriptor);
        poll.registry().register(&mut source, mio::Token(0), mio::Interest::READABLE).unwrap();
        let mut events = mio::Events::with_capacity(4);
        let blocked = signals_blocked_by("perilune-watch");
        assert!(
            !blocked.is_empty() && blocked.iter().all(|mask| mask >> 14 & 1 == 1),
            "SIGTERM: {blocked:x?}"
        );
        for round in 0..20_u8 {
            writing.set(b"a\0\x01", &[round]).unwrap();
            poll.poll(&mut events, Some(Duration::from_secs(30))).unwrap();
            assert!(!events.is_empty(), "round {round}: the descriptor is readable");
            assert!(watching.wait(id, Some(Duration::from_secs(30))).unwrap());
            while watching.wait(id, Some(Duration::ZERO)).unwrap() {}
        }
    });
}

/// The masks of blocked signals, number 1 in bit 0, of this process's threads with a name.
fn signals_blocked_by(name: &str) -> Vec<u64> {
    let status = |task: std::io::Result<std::fs::DirEntry>| {
        std::fs::read_to_string(task.ok()?.path().join("status")).ok()
    };
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().filter_map(status);
    let named = tasks.filter(|status| status.starts_with(&format!("Name:\t{name}\n")));
    let mask = |status: String| {
        let line = status.lines().find_map(|line| line.strip_prefix("SigBlk:\t")).map(str::to_owned);
        u64::from_str_radix(&line.unwrap(), 16).unwrap()
    };
    named.map(mask).collect()
}

/// What a hostile client says of an open transaction is refused, and the server goes on.
#[test]
fn transactions_of_the_hostile_are_refused() {
    let place = Place::new();
    let ours = Ours::start(&place, Settings { threads: 2, ..Settings::default() });
    let mut client = Client::connect(&ours.socket);
    for line in [
        "PERILUNE.SEE 0 9 GET a",
        "PERILUNE.SEE 0 1 q GET a",
        "PERILUNE.SEE 0 0 SET a 1",
        "PERILUNE.SEE 2 0 GET a",
        "PERILUNE.SEE 0 0 SEE 0 0",
        "PERILUNE.PEEK c x",
        "PERILUNE.PEEK c 1000000",
    ] {
        let answer = client.line(line).to_text();
        assert!(answer.starts_with("INVALID ") || answer.starts_with("LIMIT_REACHED "), "{line}: {answer}");
    }
    // Nothing was noted yet, and what was noted goes with a commit.
    assert_eq!(client.line("PERILUNE.SEE 1 0 GET a").to_text(), "STALE");
    assert_eq!(client.line("PERILUNE.SEE 0 0").to_text(), "OK");
    assert_eq!(client.line("PERILUNE.SEE 1 0").to_text(), "OK");
    client.line("PERILUNE.COMMIT 0 0 1000");
    assert_eq!(client.line("PERILUNE.SEE 1 0").to_text(), "STALE");
    // In a transaction of the server's the answer is right, and nothing noted.
    client.line("MULTI");
    client.line("PERILUNE.SEE 0 0");
    client.line("PERILUNE.SEE 1 0");
    let [ok, stale] = [b"OK", &b"STALE"[..]].map(|status| Answer::Simple(status.to_vec()));
    assert_eq!(client.line("EXEC"), Answer::Array(vec![ok, stale]));
}
