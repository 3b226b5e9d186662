//! `luacronfunc` on servers that are killed: a turn has been done as a whole, once, or not at all.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::program::{Killed, Place};

const LIBRARY: &str = "#!lua name=cron
    redis.register_function('turn', function()
        local n = redis.call('INCR', 'turns')
        for i = 1, 20 do redis.call('RPUSH', 'list', n) end
        redis.call('HINCRBY', 'hash', n % 10, 1)
        perilune.node('^turns').__ = n
        return n
    end)";

/// What all turns have left agrees.
const AGREE: &str = "
    local turns, sum = tonumber(redis.call('GET', 'turns') or 0), 0
    for _, count in ipairs(redis.call('HVALS', 'hash')) do sum = sum + count end
    local length, node = redis.call('LLEN', 'list'), perilune.node('^turns').__ or 0
    if length == 20 * turns and sum == turns and node == turns then return 'agree' end
    return turns .. ' turns, ' .. length .. ' elements, ' .. sum .. ' counted, ' .. node .. ' noted'";

/// A server of the database `s.db` at a socket; it listens.
fn start(place: &Place, socket: &str, words: &[&str]) -> Killed {
    let mut command = place.command(&["--db", "s.db", "serve", "--bind", "", "--unixsocket", socket]);
    let mut child = command.args(words).stderr(Stdio::piped()).spawn().expect("the program starts");
    let mut said = BufReader::new(child.stderr.take().expect("it was piped"));
    let mut line = String::new();
    while !line.contains(" is served at ") {
        line.clear();
        assert!(said.read_line(&mut line).expect("it says so") > 0, "it ends");
    }
    // It may say more, and somebody must listen.
    std::thread::spawn(move || said.lines().count());
    Killed(child)
}

/// What a server answers: a status, a number or a text.
fn ask(place: &Place, socket: &str, words: &[&str]) -> String {
    let stream = UnixStream::connect(place.path().join(socket)).expect("it listens");
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a limit");
    let mut request = format!("*{}\r\n", words.len());
    for word in words {
        request += &format!("${}\r\n{word}\r\n", word.len());
    }
    (&stream).write_all(request.as_bytes()).expect("it reads");
    let mut reply = BufReader::new(&stream);
    let mut head = String::new();
    reply.read_line(&mut head).expect("it answers");
    let Some(length) = head.strip_prefix('$').and_then(|length| length.trim().parse().ok()) else {
        return head.trim_end()[1..].to_owned();
    };
    let mut text = vec![0; length];
    reply.read_exact(&mut text).expect("all of it");
    String::from_utf8(text).expect("UTF-8")
}

#[test]
fn a_turn_is_done_once_or_not_at_all_when_servers_are_killed() {
    let place = Place::new();
    let onlooker = start(&place, "onlooker", &[]);
    assert_eq!(ask(&place, "onlooker", &["FUNCTION", "LOAD", LIBRARY]), "cron");
    let turns = || ask(&place, "onlooker", &["EVAL", "return redis.call('GET', 'turns') or '0'", "0"]);
    let cron = ["--luacronfunc", "turn", "--luacronfunc-interval", "1"];
    for round in 0..10_u64 {
        let before = turns();
        let servers = [start(&place, "one", &cron), start(&place, "other", &cron)];
        let begun = Instant::now();
        while turns() == before {
            assert!(begun.elapsed() < Duration::from_secs(60), "round {round}: no turn in a minute");
        }
        std::thread::sleep(Duration::from_millis(37 * round % 23));
        drop(servers);
        assert_eq!(ask(&place, "onlooker", &["EVAL", AGREE, "0"]), "agree", "round {round}");
    }
    drop(onlooker);
    let (code, out, err) = place.run(&["check", "s.db"]);
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
}
