//! What scripts make the server take: never more than `script-memory-limit`, whatever they do it by, and all of them together
//! never more than `script-memory-total`.
//!
//! Arguments of redis.call did not count: forty copies of one string of 60 MB took 2.4 GB where 128 MiB were allowed; neither
//! did what an atomic script had written, or what commands answered. Peaks are those of this process, which has the server
//! inside, as the kernel tells them; so there is one test, which has the process to itself.

mod peer;

use std::fs;
use std::path::Path;
use std::thread;

use peer::{Client, Ours, Place, Text};
use perilune_redis::Settings;
use perilune_resp::Answer;

const MIB: usize = 1 << 20;
const LIMIT: usize = 64 * MIB;
/// What the process takes besides: the mapped file's pages, buffers of the connection, machine code, garbage of the allocator.
const SLACK: usize = 32 * MIB;

/// A line of /proc/self/status, in bytes.
fn status(name: &str) -> usize {
    let status = fs::read_to_string("/proc/self/status").expect("/proc is there");
    let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("the line is there");
    let kilobytes: usize = line.trim_matches(|c: char| !c.is_ascii_digit()).parse().expect("a number");
    kilobytes << 10
}

/// Pages of the mapped file that the process has touched.
fn mapped() -> usize {
    status("RssFile:") + status("RssShmem:")
}

/// How much more memory the process took while `f` ran than before it, at its highest, but for pages of the mapped file:
/// what an atomic script has written before an error is kept.
fn peak<R>(f: impl FnOnce() -> R) -> (usize, R) {
    fs::write("/proc/self/clear_refs", "5").expect("the kernel forgets the peak");
    let (before, mapped_before) = (status("VmRSS:"), mapped());
    let result = f();
    (status("VmHWM:").saturating_sub(before + mapped().saturating_sub(mapped_before)), result)
}

/// Each tries to take far more than it may: by a thousandth of the text, or by what this makes of it.
const GREEDY: &[(&str, &str)] = &[
    ("arguments", "local t = {'mget'} for i = 1, 40 do t[#t + 1] = s end return #redis.call(unpack(t))"),
    ("caught", "local t = {'mget'} for i = 1, 40 do t[#t + 1] = s end for i = 1, 9 do pcall(redis.call, unpack(t)) end
        error('enough')"),
    ("cjson.encode", "local t = {} for i = 1, 40 do t[i] = s end return #cjson.encode(t)"),
    ("cjson.encode, escapes", "return #cjson.encode(('\\1'):rep(20e6))"),
    ("cjson.decode, wide", "return #cjson.decode('[' .. ('0,'):rep(8e6) .. '0]')"),
    ("cjson.decode, tables", "return #cjson.decode('[' .. ('{},'):rep(4e6) .. '0]')"),
    ("cjson.decode, deep", "local t = {} for i = 1, 20000 do t[i] = ('['):rep(900) .. (']'):rep(900) end
        return #cjson.decode('[' .. table.concat(t, ',') .. ']')"),
    ("cmsgpack.pack", "local t = {} for i = 1, 40 do t[i] = s end return #cmsgpack.pack(unpack(t))"),
    ("cmsgpack.unpack", "return #cmsgpack.unpack('\\221\\1\\0\\0\\0' .. ('\\144'):rep(16777216))"),
    ("struct.pack", "local t = {} for i = 1, 40 do t[i] = s end return #struct.pack(('s'):rep(40), unpack(t))"),
    ("string.rep", "return #s:rep(40)"),
    ("string.format", "return #('%s%s%s%s%s%s%s%s'):format(s, s, s, s, s, s, s, s)"),
    ("string.gsub", "return #s:gsub('x', '0123456789')"),
    ("table.concat", "local t = {} for i = 1, 40 do t[i] = s end return #table.concat(t)"),
    ("concatenation", "for i = 1, 10 do s = s .. s end return #s"),
    ("tables", "local t = {} for i = 1, 1e8 do t[i] = {} end"),
    ("load", "local n = 0 return loadstring('return {' .. ('{},'):rep(3e5) .. '}')()"),
    ("coroutines", "local t = {} for i = 1, 1e7 do t[i] = coroutine.create(function() end) end"),
    ("a reply", "return {s, s, s, s, s, s, s, s}"),
    ("an error", "error(s .. s .. s .. s .. s .. s)"),
    ("redis.sha1hex", "return redis.sha1hex(s:rep(5))"),
    ("writes", "for i = 1, 40 do redis.call('set', 'k' .. i, s) end"),
    ("writes, caught", "for i = 1, 40 do pcall(redis.call, 'set', 'k' .. i, s) end error('enough')"),
    ("small writes", "for i = 1, 1e7 do redis.call('set', 'k' .. i, '') end"),
    ("small members", "for i = 1, 1e6 do redis.call('sadd', 'set', i) end"),
    ("small elements", "for i = 1, 1e6 do redis.call('rpush', 'list', i) end"),
    ("small scores", "for i = 1, 1e6 do redis.call('zadd', 'zset', i, i) end"),
    ("small sums", "for i = 1, 1e6 do redis.call('hincrby', 'hash', i, 1) end"),
    ("small nodes", "for i = 1, 1e6 do perilune.node('^s')[i].__ = i end"),
    ("nodes", "for i = 1, 40 do perilune.node('^t', i).__ = s end"),
    ("copies", "redis.call('set', 'k', s) for i = 1, 40 do redis.call('copy', 'k', 'copy' .. i) end"),
    ("messages", "for i = 1, 40 do redis.call('publish', 'c', s) end"),
    ("a text of the database", "return redis.call('mget', 'big', 'big', 'big', 'big', 'big', 'big', 'big', 'big')[1]"),
    ("JSON of a node", "return perilune.node('^escapes'):tojson()"),
    ("functions of a library", ""),
];

#[test]
fn no_script_takes_more_than_it_may() {
    let place = Place::new();
    let settings = Settings { threads: 1, ..Settings::default() };
    let settings = settings.with("script-memory-limit", &LIMIT.to_string()).unwrap();
    let ours = Ours::start(&place, settings);
    let mut client = Client::connect(&ours.socket);
    let mut subscriber = Client::connect(&ours.socket);
    subscriber.line("subscribe c");
    let mut session = ours.database.session().unwrap();
    session.set(&perilune::node!("^escapes").unwrap(), "\x01".repeat(12 * MIB)).unwrap();
    drop(session);
    assert!(!client.call([&b"SET"[..], b"big", &vec![b'x'; 12 * MIB]]).is_error());
    // What these take on their way to the disk is given back before the first script is measured.
    ours.database.checkpoint().unwrap();
    // What is taken once, whatever a script does, is there, too.
    assert_eq!(client.call(["EVAL", "return #('x'):rep(12e6)", "0"]), Answer::Integer(12_000_000));
    let mut told = Vec::new();
    for (name, source) in GREEDY {
        let source = format!("local s = ('x'):rep(12e6) {source}");
        let library = "#!lua name=greedy\nfor i = 1, 1e6 do redis.register_function{function_name = 'f' .. i, callback = \
                       function() end, description = ('x'):rep(1e6)} end";
        let (took, answer) = peak(|| match *name {
            "functions of a library" => client.call(["FUNCTION", "LOAD", library]),
            _ => client.call(["EVAL", &source, "0"]),
        });
        told.push(format!(
            "{name}: {} MiB, {}",
            took / MIB,
            answer.to_text().chars().take(60).collect::<String>()
        ));
        if took > LIMIT + SLACK || !answer.is_error() {
            told.push(format!(
                "^^^ {name} took {} MiB: {}",
                took / MIB,
                answer.to_text().chars().take(200).collect::<String>()
            ));
        }
        assert_eq!(client.call(["EVAL", "return #('x'):rep(1000)", "0"]), Answer::Integer(1000), "{name}");
    }
    println!("{}", told.join("\n"));
    assert!(!told.iter().any(|line| line.starts_with("^^^")), "{}", told.join("\n"));
    // What may be done still can be: a string that is an argument, an answer, and Lua's twice; one as a reply.
    let half = "return #redis.call('echo', ('x'):rep(10e6))";
    assert_eq!(client.call(["EVAL", half, "0"]), Answer::Integer(10_000_000));
    let Answer::Bulk(reply) = client.call(["EVAL", "return ('x'):rep(10e6)", "0"]) else { panic!("a reply") };
    assert_eq!(reply.len(), 10_000_000);
    let again = "for i = 1, 1e5 do redis.call('set', 'same', i) end return redis.call('get', 'same')";
    assert_eq!(client.call(["EVAL", again, "0"]).to_text(), "100000");
    drop(subscriber);
    all_together(&ours.socket);
}

/// Eight scripts that want 40 MiB each, of 96 that they have together.
fn all_together(socket: &Path) {
    let mut client = Client::connect(socket);
    assert!(!client.line("config set script-memory-total 100663296").is_error());
    assert_eq!(
        client.line("config get script-memory-total").to_text(),
        client.line("config get script-memory-total").to_text()
    );
    let greedy = "local t = {} for i = 1, 20 do t[i] = ('x'):rep(2e6) .. i end
        local n = 0 for i = 1, 2e7 do n = n + i % 7 end return #t";
    let (took, answers) = peak(|| {
        let threads: Vec<_> = (0..8)
            .map(|_| {
                let socket = socket.to_owned();
                thread::spawn(move || Client::connect(&socket).call(["EVAL", greedy, "0"]))
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
    });
    let refused = answers.iter().filter(|answer| answer.is_error()).count();
    println!("together: {} MiB, {refused} of 8 refused", took / MIB);
    assert!(took < 96 * MIB + 2 * SLACK, "{} MiB: {refused} refused", took / MIB);
    // Nothing stays taken.
    assert_eq!(client.call(["EVAL", greedy, "0"]), Answer::Integer(20));
}
