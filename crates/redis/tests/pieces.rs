//! Long strings: pieces of them are read and written without the rest, and what takes all of one lets others go on.

mod peer;

use std::fs;
use std::time::{Duration, Instant};

use peer::{Client, Ours, Place};
use perilune_redis::Settings;
use perilune_resp::Answer;

fn settings() -> Settings {
    Settings { threads: 1, ..Settings::default() }
}

/// Numbers that look random; the seed is told by who fails.
struct Chance(u64);

impl Chance {
    fn new() -> Chance {
        let seed = std::env::var("PERILUNE_SEED").ok().and_then(|seed| seed.parse().ok());
        let seed = seed.unwrap_or_else(|| u64::from(std::process::id()) << 20 | 1);
        println!("PERILUNE_SEED={seed}");
        Chance(seed)
    }

    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }
}

fn bit(bytes: &[u8], at: usize) -> bool {
    bytes.get(at / 8).is_some_and(|byte| byte >> (7 - at % 8) & 1 == 1)
}

/// A command on a string, and what it answers of `model`, which it changes.
fn step(chance: &mut Chance, model: &mut Vec<u8>) -> (Vec<String>, Answer) {
    let len = model.len();
    let at = if chance.below(3) == 0 { len.saturating_sub(chance.below(20)) } else { chance.below(len + 40) };
    let (from, to) = (at.min(len), (at + chance.below(3_000)).min(len));
    let truth = |truth: bool| Answer::Integer(i64::from(truth));
    let words = |line: String| line.split(' ').map(str::to_owned).collect();
    match chance.below(10) {
        0 => (words("strlen k".to_owned()), Answer::Integer(len as i64)),
        1 => {
            let range = format!("getrange k {from} {}", to as i64 - 1 - if to == 0 { 1 } else { 0 });
            let wanted = if to == 0 { Vec::new() } else { model[from..to].to_vec() };
            if to == 0 {
                return (words("substr k 5 1".to_owned()), Answer::Bulk(wanted));
            }
            (words(range), Answer::Bulk(wanted))
        }
        2 => {
            let start = chance.below(len).max(1);
            let range = format!("getrange k -{start} -1");
            (words(range), Answer::Bulk(model[len - start..].to_vec()))
        }
        3 => (words(format!("getbit k {}", 8 * at + 3)), truth(bit(model, 8 * at + 3))),
        4 => {
            let count = (from * 8 + 3..(to * 8 + 5).min(len * 8)).filter(|at| bit(model, *at)).count();
            let last = (to * 8 + 5).min(len * 8) as i64 - 1;
            (words(format!("bitcount k {} {last} BIT", from * 8 + 3)), Answer::Integer(count as i64))
        }
        5 => {
            let wanted = chance.below(2) == 1;
            let found = (from * 8..len * 8).find(|at| bit(model, *at) == wanted);
            let none = if wanted || from == len { -1 } else { len as i64 * 8 };
            let line = format!("bitpos k {} {from}", i32::from(wanted));
            (words(line), Answer::Integer(found.map_or(none, |at| at as i64)))
        }
        6 => {
            let (place, value) = (8 * at + chance.below(8), chance.below(2) == 1);
            let old = bit(model, place);
            model.resize(len.max(at + 1), 0);
            let mask = 0x80 >> (place % 8);
            model[at] = if value { model[at] | mask } else { model[at] & !mask };
            (words(format!("setbit k {place} {}", i32::from(value))), truth(old))
        }
        7 => {
            let piece = "piece".repeat(chance.below(5) + 1);
            model.resize(len.max(at + piece.len()), 0);
            model[at..at + piece.len()].copy_from_slice(piece.as_bytes());
            (words(format!("setrange k {at} {piece}")), Answer::Integer(model.len() as i64))
        }
        8 => {
            let piece = "more".repeat(chance.below(900) + 1);
            model.extend_from_slice(piece.as_bytes());
            (words(format!("append k {piece}")), Answer::Integer(model.len() as i64))
        }
        _ => {
            let old = i64::from(model.get(at).copied().unwrap_or(0));
            model.resize(len.max(at + 1), 0);
            model[at] = 77;
            let line = format!("bitfield k get u8 {} set u8 {} 77 get u8 {0}", 8 * at, 8 * at);
            let answers = [old, old, 77].map(Answer::Integer).to_vec();
            (words(line), Answer::Array(answers))
        }
    }
}

/// Strings on both sides of what is short, in all the ways in which a command is run: alone, with an expiry, in EXEC, in a
/// script.
#[test]
fn pieces_of_strings_are_what_the_whole_has_there() {
    let mut chance = Chance::new();
    let place = Place::new();
    let ours = Ours::start(&place, settings());
    let mut client = Client::connect(&ours.socket);
    for (number, size) in [1, 1_990, 2_040, 5_000, 70_000, 300_000].into_iter().enumerate() {
        let mut model: Vec<u8> = (0..size).map(|at| (at % 251) as u8).collect();
        client.call([&b"set"[..], b"k", &model]);
        if number % 2 == 1 {
            client.line("expire k 1000");
        }
        for round in 0..120 {
            let (words, expected) = step(&mut chance, &mut model);
            let answer = match round % 3 {
                0 => client.call(&words),
                1 => {
                    client.line("multi");
                    client.call(&words);
                    match client.line("exec") {
                        Answer::Array(mut answers) => answers.remove(0),
                        other => panic!("{other:?}"),
                    }
                }
                _ => {
                    let script = "return redis.call(unpack(ARGV))";
                    let call = ["eval", script, "0"].map(str::to_owned).into_iter().chain(words.clone());
                    client.call(call)
                }
            };
            assert!(answer == expected, "{:.80}: {answer:?}, and not {expected:?}", words.join(" "));
        }
        assert!(client.line("get k") == Answer::Bulk(model), "the whole is what has been written");
    }
}

/// 40 counts over all of a string of 8 MB, and others are served meanwhile: what they do is not behind all of that. As it
/// was, a loop ran them to their end before anybody else's turn came.
#[test]
fn who_reads_all_of_a_long_string_lets_others_go_on() {
    let place = Place::new();
    let ours = Ours::start(&place, settings());
    let (mut slow, mut other) = (Client::connect(&ours.socket), Client::connect(&ours.socket));
    slow.line("setrange k 8388608 x");
    let heavy =
        ["bitcount k", "bitpos k 1", "bitop not other k", "multi\r\nbitcount k\r\nexec", "lcs k nothing len"];
    for heavy in heavy {
        slow.line("set done 0");
        let times = if heavy.starts_with("bitop") { 4 } else { 40 };
        let mut requests = format!("{heavy}\r\n").repeat(times);
        requests += "set done 1\r\n";
        slow.send(requests.as_bytes());
        assert_eq!(other.line("ping"), Answer::Simple(b"PONG".to_vec()));
        assert_eq!(other.line("get done"), Answer::Bulk(b"0".to_vec()), "{heavy} has kept others waiting");
        let replies = times * if heavy.starts_with("multi") { 3 } else { 1 };
        for _ in 0..replies {
            let reply = slow.receive().expect("a reply");
            assert!(!matches!(reply, Answer::Error(_)), "{heavy}: {reply:?}");
        }
        assert_eq!(slow.receive(), Some(Answer::Simple(b"OK".to_vec())));
    }
    // Whole ones, too, and who sees all commands sees each once.
    let mut monitor = Client::connect(&ours.socket);
    monitor.line("monitor");
    assert!(matches!(slow.line("get k"), Answer::Bulk(bytes) if bytes.len() == 8_388_609));
    slow.line("echo end");
    let mut seen = Vec::new();
    while !seen.last().is_some_and(|line: &String| line.contains("echo")) {
        let Some(Answer::Simple(line)) = monitor.receive() else { panic!("{seen:?}") };
        seen.push(String::from_utf8(line).expect("text"));
    }
    assert!(seen.len() == 2 && seen[0].contains("\"get\" \"k\""), "{seen:?}");
}

/// Anonymous memory of this process, in MB.
fn anonymous() -> usize {
    let status = fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find(|line| line.starts_with("RssAnon:")).expect("Linux from 4.5 on");
    line.split_whitespace().nth(1).and_then(|number| number.parse::<usize>().ok()).expect("a number") >> 10
}

/// After SET, GET and DEL of a long string a server kept as much memory as that had. NB: the other tests here take up to
/// 100 MB or so at the same time.
#[test]
fn memory_of_long_values_is_given_back() {
    let place = Place::new();
    let ours = Ours::start(&place, settings());
    let mut client = Client::connect(&ours.socket);
    client.call([&b"set"[..], b"k", &vec![b'x'; 400 << 20]]);
    for line in ["strlen k", "getrange k 1000 1010", "exists k"] {
        client.line(line);
    }
    let whole = client.line("get k");
    assert!(matches!(&whole, Answer::Bulk(bytes) if bytes.len() == 400 << 20));
    drop(whole);
    client.line("append k more");
    client.line("eval return(#redis.call('getrange','k',0,50000000)) 0");
    assert_eq!(client.line("del k"), Answer::Integer(1));
    drop(client);
    let begun = Instant::now();
    while anonymous() > 250 {
        assert!(begun.elapsed() < Duration::from_secs(30), "{} MB are kept", anonymous());
        std::thread::yield_now();
    }
}
