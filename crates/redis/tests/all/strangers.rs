//! Those who are not let in: what they can make a server write is bounded, they wait longer and longer, and nobody waits for
//! them.

use std::fs;
use std::time::{Duration, Instant};

use crate::peer::{Client, Ours, Place, Text};
use perilune::node;
use perilune_redis::Settings;
use perilune_resp::Answer;

fn settings() -> Settings {
    Settings { threads: 1, ..Settings::default() }
}

fn ok() -> Answer {
    Answer::Simple(b"OK".to_vec())
}

/// Whoever was not let in wrote 29 MB a second into the log by AUTH, as fast as AUTH was answered, with names of any length.
#[test]
fn wrong_passwords_are_logged_some_times_a_second() {
    let place = Place::new();
    let log = place.path().join("server.log");
    let with_log = settings().with("logfile", log.to_str().expect("a path"));
    let ours =
        Ours::start(&place, with_log.and_then(|it| it.with("requirepass", "secret")).expect("settings"));
    let begun = Instant::now();
    let long = "x".repeat(10_000);
    for _ in 0..100 {
        let mut client = Client::connect(&ours.socket);
        for _ in 0..3 {
            assert!(client.call(["auth", &long, "wrong"]).to_text().starts_with("WRONGPASS"));
        }
    }
    let seconds = begun.elapsed().as_secs() as usize + 1;
    let failed = |text: &str| text.lines().filter(|line| line.contains("authentication failed")).count();
    // The rest is told when the second is over.
    let told = loop {
        let text = fs::read_to_string(&log).expect("a log");
        if text.contains(" more like this\"") {
            break text;
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "{text}");
        std::thread::yield_now();
    };
    let more = |line: &str| -> Option<usize> {
        line.split_once("text=\"")?.1.strip_suffix(" more like this\"")?.parse().ok()
    };
    assert!(failed(&told) <= 12 * seconds, "{} lines in {seconds} seconds", failed(&told));
    assert!(told.lines().filter_map(more).sum::<usize>() <= 300 - 10);
    assert!(told.lines().all(|line| line.len() < 300), "names are cut");
    // ACL LOG keeps no long names, either.
    let mut admin = Client::connect(&ours.socket);
    assert_eq!(admin.line("auth secret"), ok());
    let Answer::Array(entries) = admin.line("acl log") else { panic!("entries") };
    assert_eq!(entries.len(), 1);
    let Answer::Array(fields) = &entries[0] else { panic!("fields") };
    assert_eq!(fields[1], Answer::Integer(300));
    assert!(fields.iter().all(|field| field.to_text().len() <= 256));
}

/// A connection could try passwords as fast as it sent them, without an end.
#[test]
fn who_goes_on_trying_waits_and_is_ended() {
    let place = Place::new();
    let ours = Ours::start(&place, settings().with("requirepass", "secret").expect("a setting"));
    let mut client = Client::connect(&ours.socket);
    let mut other = Client::connect(&ours.socket);
    assert_eq!(other.line("auth secret"), ok());
    for number in 1..=10 {
        let begun = Instant::now();
        let line = ["auth wrong", "hello 3 auth default wrong"][number % 2];
        client.send(format!("{line}\r\n").as_bytes());
        if number == 5 {
            // The loop waits for nobody.
            while other.line("client list").to_text().contains("cmd=auth") {}
        }
        let told = client.receive().expect("an answer");
        assert!(told.to_text().starts_with("WRONGPASS"), "{told:?}");
        let least = [0, 0, 0, 250, 500, 1_000, 2_000][number.min(7) - 1];
        assert!(
            begun.elapsed() >= Duration::from_millis(least),
            "answer {number} came after {:?}",
            begun.elapsed()
        );
    }
    assert_eq!(client.receive(), None, "it may go on");
    // A right one makes good what was wrong.
    let mut client = Client::connect(&ours.socket);
    for _ in 0..5 {
        for _ in 0..3 {
            assert!(client.line("auth wrong").is_error());
        }
        assert_eq!(client.line("auth secret"), ok());
    }
    assert!(other.line("info errorstats").to_text().contains("errorstat_WRONGPASS:count=25"));
}

/// Each connection had the tree written, and at `fsync` the disk, whoever it was.
#[test]
fn who_comes_and_goes_has_nothing_written() -> perilune::Result<()> {
    let place = Place::new();
    let ours = Ours::start(&place, settings().with("requirepass", "secret").expect("a setting"));
    let mut session = ours.database.session()?;
    let numbers = node!("^redis", "client")?;
    let mut ids = Vec::new();
    for number in 0..300 {
        let mut client = Client::connect(&ours.socket);
        assert!(client.line("ping").is_error());
        assert_eq!(session.get_int(&numbers)?, Some(if number < 256 { 256 } else { 512 }));
        client.line("auth secret");
        ids.push(client.line("client id"));
    }
    let wanted: Vec<_> = (1..=300).map(Answer::Integer).collect();
    assert_eq!(ids, wanted, "each has a number of its own");
    Ok(())
}
