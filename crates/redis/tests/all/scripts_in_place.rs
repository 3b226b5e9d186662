//! Short scripts run in the event loop: what they do there is what they do aside, and none of them holds it up.

use std::thread;
use std::time::{Duration, Instant};

use crate::peer::{Client, Ours, Place};
use perilune_redis::Settings;
use perilune_resp::Answer;

fn shown(answer: &Answer) -> String {
    format!("{answer:?}")
}

fn text(answer: &Answer) -> String {
    match answer {
        Answer::Error(bytes) | Answer::Bulk(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        other => shown(other),
    }
}

fn words(words: &[&str]) -> Vec<Vec<u8>> {
    words.iter().map(|word| word.as_bytes().to_vec()).collect()
}

/// One that was short again and again, and then is not, is stopped there and runs
/// aside, as if it had not begun before.
#[test]
fn a_script_that_was_short_stops_nobody_either() {
    let place = Place::new();
    let settings = Settings::default().with("threads", "1").expect("a setting");
    let ours = Ours::start(&place, settings);
    let source = "redis.call('incr', 'runs') redis.call('set', 'seen', ARGV[1]) while ARGV[1] == 'long' do end return ARGV[1]";
    let mut other = Client::connect(&ours.socket);
    for _ in 0..20 {
        assert_eq!(other.call(words(&["EVAL", source, "0", "short"])), Answer::Bulk(b"short".to_vec()));
    }
    let socket = ours.socket.clone();
    let runaway = thread::spawn(move || {
        let mut client = Client::connect(&socket);
        text(&client.call(words(&["EVAL", source, "0", "long"])))
    });
    // One loop for both: the long one must have left it before this is answered.
    let start = Instant::now();
    while other.line("SCRIPT KILL").is_error() {
        assert!(start.elapsed() < Duration::from_secs(20), "no script is found");
    }
    let answer = runaway.join().expect("the client of the runaway");
    assert!(answer.contains("SCRIPT KILL"), "{answer}");
    assert_eq!(other.line("GET runs"), Answer::Bulk(b"20".to_vec()));
    assert_eq!(other.line("GET seen"), Answer::Bulk(b"short".to_vec()));
    assert_eq!(other.call(words(&["EVAL", source, "0", "again"])), Answer::Bulk(b"again".to_vec()));
    assert_eq!(other.line("GET runs"), Answer::Bulk(b"21".to_vec()));
}

/// What a script does in the event loop is what it does aside: errors, logs, users' rights, and what is counted of it.
#[test]
fn scripts_do_in_the_loop_what_they_do_aside() {
    let place = Place::new();
    let settings = Settings::default().with("threads", "1").expect("a setting");
    let ours = Ours::start(&place, settings);
    let mut client = Client::connect(&ours.socket);
    let sources = [
        ("return redis.call('get', KEYS[1])", false),
        ("redis.call('set', KEYS[1], 'a') return redis.call('incr', KEYS[1])", true),
        ("redis.call('set', KEYS[1], 'b') return redis.pcall('incr', KEYS[1])", true),
        ("return redis.call('no such')", true),
        ("redis.call('publish', KEYS[1], 'x') return redis.status_reply('GOOD')", false),
        ("redis.log(redis.LOG_DEBUG, 'x') return {1, redis.sha1hex('x'), false}", false),
        ("redis.call('select', 3) return redis.call('set', KEYS[1], '3')", false),
        ("local t = {} for i = 1, 9 do t[i] = redis.call('lpush', KEYS[1] .. i, i) end return t", false),
    ];
    assert_eq!(client.line("SET k value"), Answer::Simple(b"OK".to_vec()));
    for (source, fails) in sources {
        let mut first = None;
        for round in 0..6 {
            let answer = client.call(words(&["EVAL", source, "1", "k"]));
            let known = first.get_or_insert_with(|| answer.clone());
            let lengths = source.contains("lpush") && matches!(answer, Answer::Array(_));
            assert!(lengths || answer == *known, "{source}: {answer:?} is not {known:?} in round {round}");
            assert!(!fails || text(&answer).contains("ERR"), "{source}: {answer:?}");
        }
    }
    assert_eq!(client.line("GET k"), Answer::Bulk(b"b".to_vec()), "the database is chosen for a script only");
    let stats = text(&client.line("INFO commandstats"));
    assert!(stats.contains("cmdstat_eval:calls=48,"), "{stats}");
    assert!(stats.contains("cmdstat_lpush:calls=54,"), "{stats}");
    assert!(stats.contains("cmdstat_incr:calls=12,") && stats.contains("failed_calls=12"), "{stats}");
    assert_eq!(client.line("LLEN k9"), Answer::Integer(6));
}
