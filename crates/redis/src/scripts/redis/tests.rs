//! Redis's library in a sandbox: values and replies, what scripts cannot reach or change, keys and arguments.

use std::ops::ControlFlow;

use perilune_sandbox::{Answers, Form, Outcome, Pool, Question, Run, Sandbox};

use super::{offer, Asked};

/// Answers a call with its arguments, joined.
struct Echo;

impl Answers for Echo {
    fn answer(&mut self, question: Question<'_>, answer: &mut Vec<u8>) -> ControlFlow<()> {
        let joined = question.arguments.iter().collect::<Vec<_>>().join(&b' ');
        match Asked::of(question.function) {
            Some(Asked::Call) if joined == b"end" => return ControlFlow::Break(()),
            Some(Asked::Call) if joined == b"fail" => answer.extend_from_slice(b"-WRONG it failed\r\n"),
            Some(Asked::Call) => {
                answer.extend_from_slice(format!("${}\r\n", joined.len()).as_bytes());
                answer.extend_from_slice(&joined);
                answer.extend_from_slice(b"\r\n");
            }
            Some(Asked::Call3) => answer.extend_from_slice(b",1.5\r\n"),
            Some(Asked::Command) if joined == b"get" => answer.push(b'1'),
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn module(&mut self, name: &[u8], answer: &mut Vec<u8>) -> ControlFlow<()> {
        if name == b"mod" {
            answer.extend_from_slice(b"local m = {n = 0} return m");
        }
        ControlFlow::Continue(())
    }
}

/// What the letters and numbers of `redis.h` are for is what the host takes them for.
#[test]
fn the_numbers_of_questions_are_those_of_the_header() {
    let header = include_str!("redis.h");
    let names = ["CALL", "CALL3", "LOG", "SHA1", "COMMAND", "ALLOWED", "REGISTER"];
    for (number, name) in names.iter().enumerate() {
        let line = format!("ASK_{name} = {number}");
        let at = header.find(&line).unwrap_or_else(|| panic!("{line} is in redis.h"));
        assert!(!header[at + line.len()..].starts_with(|next: char| next.is_ascii_digit()), "{line}");
        let asked = format!("{:?}", Asked::of(number).expect("it has a name"));
        assert_eq!(asked.to_uppercase(), *name);
    }
    assert_eq!(Asked::of(names.len()), None);
    assert!(!header.contains(&format!(" = {} ", names.len())), "redis.h has one more");
}

fn sandbox() -> Sandbox {
    Sandbox::new(offer(), &Pool::default(), MEMORY).expect("a sandbox")
}

fn run_in(sandbox: &mut Sandbox, number: u64, source: &str) -> String {
    let code = match sandbox.compile(source.as_bytes(), "@user_script") {
        Ok(code) => code,
        Err(error) => return format!("compile: {error}"),
    };
    let run = Run {
        code,
        form: Form::Script,
        number,
        variant: 2,
        name: "f00",
        keys: &[b"key"[..].into()],
        arguments: &[b"one"[..].into(), b"two"[..].into()],
    };
    match sandbox.run(&run, &mut Echo) {
        Outcome::Replied(reply) => String::from_utf8_lossy(reply).replace("\r\n", "~"),
        other => format!("{other:?}"),
    }
}

const MEMORY: usize = 128 << 20;

fn run(source: &str) -> String {
    run_in(&mut sandbox(), 1, source)
}

#[test]
fn values_become_replies() {
    for (source, reply) in [
        ("return 1", ":1~"),
        ("return -3.9", ":-3~"),
        ("return 'x'", "$1~x~"),
        ("return {1, 'a', {true, false}, nil, 5}", "*3~:1~$1~a~*2~:1~$-1~"),
        ("return {ok = 'fine'}", "+fine~"),
        ("return {err = 'BAD a\\nb'}", "-BAD a b~"),
        ("return KEYS[1] .. ARGV[1] .. ARGV[2]", "$9~keyonetwo~"),
        ("return redis.call('GET', 'a', 1.5, 3)", "$11~GET a 1.5 3~"),
        (
            "return redis.call('n', 0, 0 * -1, -7, 1e15, -1e14, 2 ^ 63, 1 / 3)",
            "$86~n 0 -0 -7 1000000000000000 -100000000000000 9.2233720368547758e+18 0.33333333333333331~",
        ),
        ("return redis.call('')", "$0~~"),
        ("return redis.get('a')", "$5~get a~"),
        ("return redis.call('fail')", "-WRONG it failed script: f00, on @user_script:1.~"),
        ("return redis.pcall('fail').err", "$15~WRONG it failed~"),
        ("return select(2, pcall(redis.call, 'fail'))", "$15~WRONG it failed~"),
        ("pcall(redis.call, 'end') return 1", "Ended"),
        ("error({1})", "-ERR table script: f00, on @user_script:1.~"),
        ("redis.setresp(3) return redis.call('x').double * 2", ":3~"),
        ("local m = require('mod') m.n = m.n + 1 return m.n", ":1~"),
    ] {
        assert_eq!(run(source), reply, "{source}");
    }
}

#[test]
fn arguments_come_as_they_are_given() {
    // Numbers of each length, and texts that take more memory than numbers do.
    let numbers = "for digits = 0, 16 do for _, less in ipairs({1, 0, -1}) do for _, sign in ipairs({1, -1}) do
        local n = sign * (10 ^ digits - less)
        if redis.call('n', n, n) ~= 'n ' .. ('%.17g'):format(n) .. ' ' .. ('%.17g'):format(n) then return n end
        end end end return 'all'";
    assert_eq!(run(numbers), "$3~all~");
    let long = "for length = 0, 70000, 997 do local x, y = ('x'):rep(length), ('y'):rep(3 * length)
        if redis.call(x, 1, y, 22, '', x) ~= x .. ' 1 ' .. y .. ' 22  ' .. x then return length end end return 'all'";
    assert_eq!(run(long), "$3~all~");
    let many =
        "local t = {} for i = 1, 5000 do t[i] = i end return redis.call(unpack(t)) == table.concat(t, ' ')";
    assert_eq!(run(many), ":1~");
    // The copy is the host's: a text of less than half of what a script may use has room in a call.
    assert_eq!(run("return #redis.sha1hex(('x'):rep(60000000))"), ":0~");
    // What failed leaves nothing behind for the next.
    let wrong =
        "redis.call('a', 'bc') pcall(redis.call, {}) local s = redis.sha1hex(nil) return redis.call('b')";
    assert_eq!(run(wrong), "$1~b~");
}

/// `math.randomseed` of one script decided the numbers of the next one, whoever's it was. Then each run began alike, as up to
/// Redis 6; since 7 it does not, and identifiers that a script makes of random numbers were the same each time.
#[test]
fn no_script_decides_the_numbers_of_another() {
    let mut sandbox = sandbox();
    let source = "return ('%.17g'):format(math.random())";
    let seeds = "math.randomseed(7) return ('%.17g'):format(math.random())";
    let mut numbers: Vec<String> = (0..20).map(|number| run_in(&mut sandbox, number, source)).collect();
    let seeded = run_in(&mut sandbox, 20, seeds);
    assert_eq!(run_in(&mut sandbox, 21, seeds), seeded);
    numbers.extend((22..40).map(|number| run_in(&mut sandbox, number, source)));
    numbers.push(run(source));
    assert!(!numbers.contains(&seeded), "{numbers:?}");
    numbers.sort();
    numbers.dedup();
    // Two of 39 are equal once in three million times.
    assert!(numbers.len() > 37, "{numbers:?}");
    let seeded =
        "math.randomseed(7) local a = math.random() math.randomseed(7) return a == math.random() and 1";
    assert_eq!(run(seeded), ":1~");
}

#[test]
fn nothing_leads_out_and_nothing_stays() {
    for source in [
        "return os",
        "return io",
        "return debug",
        "return jit",
        "return ffi",
        "return package",
        "return getfenv",
        "return newproxy",
        "return dofile",
        "x = 1",
        "string.x = 1",
        "redis.call = 1",
        "rawset(_G, 'x', 1)",
        "table.insert(string, 1)",
        "getmetatable('').__index = 1",
        "setmetatable(_G, {})",
        "string.dump(run)",
        "rawset(getmetatable(''), 'x', 1)",
        "coroutine.create = 1",
        "_G.x = 1",
        "rawset(redis, 'call', 1)",
    ] {
        assert!(run(source).starts_with("-ERR"), "{source}: {}", run(source));
    }
    assert_eq!(run("return loadstring('\\27LJ')"), "$-1~");
    assert_eq!(run("return getmetatable(_G)"), "$-1~");
    assert_eq!(run("return loadstring('return redis ~= nil')()"), ":1~");
    assert!(run("loadstring('x = 1')()").starts_with("-ERR"));
    assert!(run("coroutine.wrap(function() x = 1 end)()").starts_with("-ERR"));
    let mut sandbox = sandbox();
    for number in 1..3 {
        let source = "local m = require('mod') m.n = m.n + 1 cjson.encode_max_depth(5) return m.n";
        assert_eq!(run_in(&mut sandbox, number, source), ":1~");
        assert_eq!(run_in(&mut sandbox, number + 9, "return cjson.encode_max_depth()"), ":1000~");
    }
}

/// Scripts that take their globals apart at once have no proxies between: they were seen to be no different.
#[test]
fn globals_that_are_taken_apart_at_once_are_no_different() {
    let mut sandbox = sandbox();
    let mut number = 0;
    let mut run = |source: &str| {
        number += 1;
        run_in(&mut sandbox, number, source)
    };
    for source in [
        "redis.call = 1",
        "redis.call, redis.pcall = redis.pcall, redis.call",
        "local r = redis r.call = 1",
        "local r = redis.call and redis r.call = 1",
        "local r = (ARGV[3] or redis) r.call = 1",
        "local r = (redis or ARGV[3]) rawset(r, 'call', 1)",
        "local t = {redis, redis.call} t[1].call = 1",
        "rawset(math, 'floor', redis.call)",
        "table.insert(table, redis.call)",
        "local function f() redis.call('a') return math end f().floor = 1",
        "local function f(r) r.call = redis.call end f(redis)",
        "local f = function() return function() redis = redis.call end end f()()",
        "setmetatable(math, {__index = redis.call})",
        "for _, t in ipairs({math}) do t.floor = redis.call end",
        "KEYS = ARGV[1]",
        "return redis.call('x') .. nothing.at.all",
        "return nothing",
        "return nothing[1]",
        "return #nothing",
        "return math:floor()",
    ] {
        let reply = run(source);
        assert!(reply.starts_with("-ERR"), "{source}: {reply}");
    }
    for (source, reply) in [
        ("return redis.call('GET', KEYS[1], ARGV[2])", "$11~GET key two~"),
        ("return math.floor(1.5)", ":1~"),
        ("return {#KEYS, #ARGV, #redis, #math}", "*4~:1~:2~:0~:0~"),
        (
            "return {type(redis), type(redis.call), type(math), type(KEYS)}",
            "*4~$5~table~$8~function~$5~table~$5~table~",
        ),
        ("return {KEYS, ARGV[1]}", "*2~*1~$3~key~$3~one~"),
        ("return ARGV", "*2~$3~one~$3~two~"),
        ("return {next(redis) == nil, next(math) == nil, math.huge > 1}", "*3~:1~:1~:1~"),
        ("return {redis == redis, math == _G.math, redis.call == _G.redis.call}", "*3~:1~:1~:1~"),
        ("return {rawget(redis, 'call') == nil, redis.call ~= nil}", "*2~:1~:1~"),
        ("return getmetatable(redis)", "$-1~"),
        ("return redis.get('a')", "$5~get a~"),
        ("return redis.nothing == nil", ":1~"),
        ("return loadstring('return KEYS[1]')()", "$3~key~"),
        ("return _G.ARGV[2] .. ARGV[1]", "$6~twoone~"),
        ("local i = 2 return ARGV[i] .. ARGV[i - 1]", "$6~twoone~"),
        ("local k = KEYS k = k[1] return k", "$3~key~"),
        ("return (function() return function() return KEYS[1] .. math.min(2, 1) end end)()()", "$4~key1~"),
        ("return (ARGV[3] or ARGV)[1]", "$3~one~"),
        ("return tostring(redis):sub(1, 6)", "$6~table:~"),
        ("redis.call('a') KEYS[1] = 'b' ARGV[3] = 'c' return KEYS[1] .. #ARGV", "$2~b3~"),
        ("return KEYS[1] .. #ARGV", "$4~key2~"),
    ] {
        for _ in 0..3 {
            assert_eq!(run(source), reply, "{source}");
        }
    }
}

/// Lists that scripts share hold what the run under way was given, and nothing else.
#[test]
fn lists_are_filled_anew() {
    let mut sandbox = sandbox();
    let texts: Vec<String> = (0..100).map(|text| format!("{text}")).collect();
    let mut number = 0;
    for source in [
        "return {#KEYS, KEYS[1], KEYS[5], KEYS[17], KEYS[100], #ARGV, ARGV[1], ARGV[2]}",
        "local k, a = KEYS, ARGV return {#k, k[1], k[5], k[17], k[100], #a, a[1], a[2]}",
        "local k, a = _G.KEYS, _G.ARGV return {#k, k[1], k[5], k[17], k[100], #a, a[1], a[2]}",
        "if #ARGV == 1 then local k = KEYS end return {#KEYS, KEYS[1], KEYS[5], KEYS[17], KEYS[100], #ARGV, ARGV[1], ARGV[2]}",
    ] {
        let code = sandbox.compile(source.as_bytes(), "@user_script").expect("it is Lua");
        for keys in [3, 100, 0, 16, 5, 17, 1] {
            for arguments in [1, 0, 100, 2] {
                number += 1;
                let given = |count| texts[..count].iter().map(|text| text.as_bytes().into()).collect::<Vec<_>>();
                let (keys, arguments) = (given(keys), given(arguments));
                let run = Run {
                    code,
                    form: Form::Script,
                    number,
                    variant: 3,
                    name: "f00",
                    keys: &keys,
                    arguments: &arguments,
                };
                let Outcome::Replied(reply) = sandbox.run(&run, &mut Echo) else { panic!("{source} replies") };
                let reply = String::from_utf8_lossy(reply).replace("\r\n", "~");
                // A table ends at the first nil.
                let mut parts = vec![format!(":{}~", keys.len())];
                let mut is_whole = true;
                for (count, index) in [(keys.len(), 1), (keys.len(), 5), (keys.len(), 17), (keys.len(), 100)] {
                    is_whole &= count >= index;
                    if is_whole {
                        let text = &texts[index - 1];
                        parts.push(format!("${}~{text}~", text.len()));
                    }
                }
                if is_whole {
                    parts.push(format!(":{}~", arguments.len()));
                    let shown = arguments.len().min(2);
                    parts.extend(texts[..shown].iter().map(|text| format!("${}~{text}~", text.len())));
                }
                let wanted = format!("*{}~{}", parts.len(), parts.concat());
                assert_eq!(reply, wanted, "{source} {} {}", keys.len(), arguments.len());
            }
        }
        sandbox.forget(code);
    }
}

/// Functions and libraries saw the keys and arguments of the script that had run before them.
#[test]
fn functions_see_no_keys_of_scripts() {
    let mut sandbox = sandbox();
    let mut number = 0;
    for script in [
        "return _G.KEYS[1]",
        "return KEYS[1]",
        "return {unpack(KEYS)}",
        "error(loadstring('return ARGV[1]')())",
    ] {
        for form in [Form::Function, Form::Library, Form::Positional] {
            number += 3;
            let reply = run_in(&mut sandbox, number, script);
            assert!(reply.contains("key") || reply.contains("one"), "{script}: {reply}");
            for (name, next) in [("KEYS", 1), ("ARGV", 2)] {
                let source = format!("assert(pcall(function() return {name} end) == false) return 'none'");
                let code = sandbox.compile(source.as_bytes(), "@user_function").expect("it is Lua");
                let run = Run {
                    code,
                    form,
                    number: number + next,
                    variant: 2,
                    name: "f00",
                    keys: &[],
                    arguments: &[],
                };
                let outcome = sandbox.run(&run, &mut Echo);
                let wanted = if form == Form::Library { &b""[..] } else { &b"$4\r\nnone\r\n"[..] };
                assert_eq!(outcome, Outcome::Replied(wanted), "{name} behind {script}, {form:?}");
            }
        }
    }
}
