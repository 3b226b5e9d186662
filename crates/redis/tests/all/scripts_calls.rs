//! Calls of scripts that are not atomic, each by itself: what they take, when they are, and who may do them.

use std::time::{Duration, Instant};

use crate::peer::{Client, Ours, Place, Text};
use perilune_redis::Settings;
use perilune_resp::Answer;

/// A number that INFO says of a command.
fn told(client: &mut Client, command: &str, name: &str) -> u64 {
    let text = client.line("info commandstats").to_text();
    let line = text.lines().find_map(|line| line.strip_prefix(&format!("cmdstat_{command}:")));
    let words = line.unwrap_or_default().split(',');
    let value = words.filter_map(|word| word.strip_prefix(name)?.strip_prefix('=')).next();
    value.map_or(0, |value| value.parse().expect("a number"))
}

fn eval(client: &mut Client, script: &str) -> Answer {
    client.call(["eval", &format!("#!lua flags=non-atomic\n{script}"), "0"])
}

fn waits(mut done: impl FnMut() -> bool, what: &str) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < Duration::from_secs(20), "{what}");
        std::thread::yield_now();
    }
}

/// What a script computes between two calls is no time of either.
#[test]
fn calls_take_their_own_time() {
    let place = Place::new();
    let ours = Ours::start(&place, Settings::default());
    let mut client = Client::connect(&ours.socket);
    let compute = "local sum = 0 for i = 1, 3000000 do sum = sum + i % 7 end";
    let start = Instant::now();
    let script = format!("for turn = 1, 30 do redis.call('get', 'k') {compute} end return 'done'");
    assert_eq!(eval(&mut client, &script).to_text(), "done");
    let took = start.elapsed().as_micros() as u64;
    assert_eq!(told(&mut client, "get", "calls"), 30);
    let usec = told(&mut client, "get", "usec");
    assert!(usec < took / 2, "30 calls took {usec} of {took} microseconds");
    // Short ones have a time, too.
    assert_eq!(
        eval(&mut client, "for i = 1, 20000 do redis.call('get', 'k') end return 'done'").to_text(),
        "done"
    );
    assert_eq!(told(&mut client, "get", "calls"), 20_030);
    let more = told(&mut client, "get", "usec") - usec;
    assert!(more >= 1_000, "20,000 calls took {more} microseconds");
}

/// The time of a command is that of its call, and not of the script's beginning.
#[test]
fn time_goes_on_between_calls() {
    let place = Place::new();
    let ours = Ours::start(&place, Settings::default());
    let mut client = Client::connect(&ours.socket);
    let script = "redis.call('set', 'k', 'v', 'px', 30) while redis.call('get', 'k') do end return redis.call('ttl', 'k')";
    assert_eq!(eval(&mut client, script), Answer::Integer(-2));
    let script = "redis.call('set', 'k', 'v', 'px', 30) while redis.call('pttl', 'k') > 0 do
        local sum = 0 for i = 1, 100000 do sum = sum + i % 7 end end return redis.call('exists', 'k')";
    assert_eq!(eval(&mut client, script), Answer::Integer(0));
}

/// Rules and statistics are those of each call, while the script runs.
#[test]
fn others_see_and_rule_a_script_that_runs() {
    let place = Place::new();
    let ours = Ours::start(&place, Settings::default());
    let (mut client, mut other) = (Client::connect(&ours.socket), Client::connect(&ours.socket));
    for line in ["acl setuser u on nopass +@all ~*", "set n 1"] {
        assert_eq!(other.line(line).to_text(), "OK");
    }
    assert_eq!(client.line("auth u any").to_text(), "OK");
    let script = "#!lua flags=non-atomic\nwhile not redis.call('get', 'go') do end
        local first = redis.pcall('incr', 'n').err
        while redis.call('get', 'go') == '1' do end
        return {first, redis.call('incr', 'n')}";
    std::thread::scope(|scope| {
        let runs = scope.spawn(|| client.call(["eval", script, "0"]));
        waits(|| told(&mut other, "get", "calls") > 1_000, "calls are counted when the script has ended");
        assert_eq!(other.line("acl setuser u -incr").to_text(), "OK");
        assert_eq!(other.line("set go 1").to_text(), "OK");
        waits(|| told(&mut other, "incr", "rejected_calls") == 1, "the call is not refused");
        assert_eq!(other.line("acl setuser u +incr").to_text(), "OK");
        assert_eq!(other.line("set go 2").to_text(), "OK");
        let Answer::Array(parts) = runs.join().expect("an answer") else { panic!("it ends") };
        assert!(parts[0].to_text().contains("no permissions to run the 'incr' command"), "{parts:?}");
        assert_eq!(parts[1], Answer::Integer(2));
    });
    assert_eq!((told(&mut other, "incr", "calls"), told(&mut other, "eval", "calls")), (1, 1));
}

#[test]
fn a_call_of_an_unknown_command_names_it() {
    let place = Place::new();
    let ours = Ours::start(&place, Settings::default());
    let mut client = Client::connect(&ours.socket);
    for (call, name) in
        [("'nosuch', 1", "'nosuch'"), ("'no\\nsuch'", "'no such'"), ("'config', 'nosuch'", "'config nosuch'")]
    {
        let answer = client.call(["eval", &format!("return redis.call({call})"), "0"]).to_text();
        assert!(answer.contains(&format!("called from script: {name}")), "{answer}");
    }
}
