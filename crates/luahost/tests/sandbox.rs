//! Sandboxes: what scripts compute, what they cannot reach, and that nothing they do lasts beyond the limit.

use std::ops::ControlFlow;
use std::thread;
use std::time::{Duration, Instant};

use perilune_luahost::sandbox::{Answers, Form, Outcome, Question, Run, Sandbox, Texts, SCRIPT_STACK};

/// Answers a call with its arguments, joined.
struct Echo;

impl Answers for Echo {
    fn answer(
        &mut self,
        question: Question,
        arguments: Texts<'_>,
        _: u8,
        _: usize,
        answer: &mut Vec<u8>,
    ) -> ControlFlow<()> {
        let joined = arguments.iter().collect::<Vec<_>>().join(&b' ');
        match question {
            Question::Call if joined == b"end" => return ControlFlow::Break(()),
            Question::Call if joined == b"fail" => answer.extend_from_slice(b"-WRONG it failed\r\n"),
            Question::Call => {
                answer.extend_from_slice(format!("${}\r\n", joined.len()).as_bytes());
                answer.extend_from_slice(&joined);
                answer.extend_from_slice(b"\r\n");
            }
            Question::Module if joined == b"mod" => answer.extend_from_slice(b"local m = {n = 0} return m"),
            Question::Command if joined == b"get" => answer.push(b'1'),
            _ => {}
        }
        ControlFlow::Continue(())
    }
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
        protocol: 2,
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
    run_in(&mut Sandbox::new(MEMORY).expect("a sandbox"), 1, source)
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

/// `math.randomseed` of one script decided the numbers of the next one, whoever's it was. As in Redis each run begins alike.
#[test]
fn no_script_decides_the_numbers_of_another() {
    let mut sandbox = Sandbox::new(MEMORY).expect("a sandbox");
    let source = "return ('%.17g'):format(math.random())";
    let first = run_in(&mut sandbox, 1, source);
    assert_eq!(run_in(&mut sandbox, 2, "math.randomseed(7) return 1"), ":1~");
    assert_eq!(run_in(&mut sandbox, 3, source), first);
    assert_eq!(run(source), first, "nor does the sandbox");
    let seeded =
        "math.randomseed(7) local a = math.random() math.randomseed(7) return a == math.random() and 1";
    assert_eq!(run(seeded), ":1~");
}

/// Literals of LuaJIT's gave scripts C data, the values of FFI, which there is none of.
#[test]
fn no_literal_makes_c_data() {
    for literal in ["1LL", "0x7fULL", "12ll", "3i", "1.5I", "0x1i", "-1LL", "2ULL"] {
        for source in [
            format!("return {literal}"),
            format!("return type({literal})"),
            format!("local t = {{a = {{1, {literal}}}}} return 1"),
            format!("return (function() return function() return tostring({literal}) end end)()()"),
            format!("local x = {literal} + 1 return 1"),
            format!("if false then return {literal} end return 1"),
        ] {
            let told = run(&source);
            assert!(told.starts_with("compile: ") || told == ":1~", "{source}: {told}");
            assert!(!source.contains("type(") || told.contains("64-bit"), "{source}: {told}");
        }
        for source in [
            format!("return loadstring('return {literal}') == nil and 1"),
            format!("local parts = {{'return {literal}'}} return load(function() return table.remove(parts) end) == nil and 1"),
        ] {
            assert_eq!(run(&source), ":1~", "{source}");
        }
    }
    let told = run("return (select(2, loadstring('return 1LL')))");
    assert!(told.contains("64-bit"), "{told}");
    for source in [
        "return bit.band(2^40, 1) and type(bit.tobit(2^40))",
        "return type(tonumber('1LL'))",
        "return type(10 % 3)",
    ] {
        assert!(!run(source).contains("cdata"), "{source}");
    }
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
    let mut sandbox = Sandbox::new(MEMORY).expect("a sandbox");
    for number in 1..3 {
        let source = "local m = require('mod') m.n = m.n + 1 cjson.encode_max_depth(5) return m.n";
        assert_eq!(run_in(&mut sandbox, number, source), ":1~");
        assert_eq!(run_in(&mut sandbox, number + 9, "return cjson.encode_max_depth()"), ":1000~");
    }
}

/// Scripts that take their globals apart at once have no proxies between: they were seen to be no different.
#[test]
fn globals_that_are_taken_apart_at_once_are_no_different() {
    let mut sandbox = Sandbox::new(MEMORY).expect("a sandbox");
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
    let mut sandbox = Sandbox::new(MEMORY).expect("a sandbox");
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
                    protocol: 3,
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
    let mut sandbox = Sandbox::new(MEMORY).expect("a sandbox");
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
                    protocol: 2,
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

/// Small blocks that are free are kept apart: they are given again as they were counted, whatever their sizes.
#[test]
fn memory_is_counted_whatever_is_kept() {
    let mut sandbox = Sandbox::new(MEMORY).expect("a sandbox");
    let source = "local t = {} for i = 1, 20000 do local s = ('x'):rep(i % 300) t[i] = {s .. i, n = i} t[i - 7] = nil end \
                  for i = 19994, 20000 do assert(#t[i][1] == i % 300 + 5 and t[i].n == i) end t = nil \
                  collectgarbage() collectgarbage() return 'fine'";
    assert_eq!(run_in(&mut sandbox, 1, source), "$4~fine~");
    let after = sandbox.memory();
    for number in 2..20 {
        assert_eq!(run_in(&mut sandbox, number, source), "$4~fine~");
    }
    let more = sandbox.memory().abs_diff(after);
    assert!(more < 64 << 10, "{more} bytes in 18 runs");
}

/// Scripts that would run for ever, or take all memory, each in its own way.
const RUNAWAYS: &[&str] = &[
    "while true do end",
    "local x = 0 while true do x = x + 1 end",
    "local function f() return f() end f()",
    "repeat until false",
    "for i = 1, math.huge do end",
    "while true do pcall(function() while true do end end) end",
    "while true do pcall(error, 1) end",
    "local function f() pcall(f) f() end f()",
    "while true do redis.call('x') end",
    "while true do pcall(redis.call, 'fail') end",
    "local s = 'x' while true do s = s .. s end",
    "local s = 'x' while true do pcall(function() s = s .. s end) end",
    "while true do ('x'):rep(60000000) end",
    "while true do pcall(string.rep, 'x', 1e9) end",
    "return (('a'):rep(30)):match(('a*'):rep(30) .. 'b')",
    "return ('x'):rep(100000):find(('.-'):rep(12) .. 'y')",
    "return ('a'):rep(10000000):find(('a'):rep(5000000) .. 'b', 1, true)",
    "return ('a'):rep(100000):gsub('a*b', '')",
    "return ('('):rep(1000000):gsub('%b()', '')",
    "for _ in ('a'):rep(100000):gmatch('.*b') do end",
    "local t = {} for i = 1, 4000000 do t[i] = -i end table.sort(t) while true do end",
    "local t = {} for i = 1, 3e6 do t[i] = '' end while true do table.concat(t) end",
    "local t = {} while true do t[#t + 1] = #t end",
    "local t = {} while true do t[#t + 1] = {} end",
    "local t = {} while true do t[#t + 1] = {} if #t > 1e6 then t = {} end end",
    "local t = {} for i = 1, 1e6 do t[i] = {} end while true do collectgarbage() end",
    "local t = {1} for i = 1, 60 do t = {t, t} end return cjson.encode(t)",
    "local t = {1} for i = 1, 14 do t = {t, t, t, t, t, t} end return cmsgpack.pack(t)",
    "local t = {1} for i = 1, 60 do t = {t, t} end return t",
    "local s = ('x'):rep(1e6) local t = {} for i = 1, 1e6 do t[i] = s end return t",
    "return cjson.decode(('['):rep(50000000))",
    "return cjson.decode('[' .. ('1,'):rep(20000000) .. '1]')",
    "return cmsgpack.unpack(('\\221\\255\\255\\255\\255'):rep(10000000))",
    "return struct.pack(('i'):rep(1000000), 1)",
    "local function f() return coroutine.wrap(f)() end return f()",
    "local function f() local ok, e = coroutine.resume(coroutine.create(f)) f() end return f()",
    "local function f(...) return f(1, ...) end return f()",
    "local t = setmetatable({}, {__index = function(t, k) return t[k + 1] end}) return t[1]",
    "local f f = function() return ('x'):gsub('x', f) end f()",
    "local t = {} for i = 1, 2e6 do t[i] = i % 7 end table.sort(t, function() return true end) while true do end",
    "local t = {} for i = 1, 3e6 do t[i] = i end while true do table.sort(t, math.max) end",
    "return load(function() return ' ' end)",
    "return loadstring(('x=1 '):rep(2000000))",
    "local s = '' for i = 1, 150 do s = s .. '(' end return loadstring('return ' .. s)",
    "for i in coroutine.wrap(function() while true do coroutine.yield(1) end end) do end",
    "local t = setmetatable({}, {__lt = function() while true do end end}) return t < t",
    "return tostring(setmetatable({}, {__tostring = function() while true do end end}))",
    "xpcall(function() error(1) end, function() while true do end end)",
    "local t = {} for i = 1, 250 do t[i] = i end while true do unpack(t) end",
    "local h h = function() xpcall(error, h) end xpcall(error, h)",
    "local t = setmetatable({}, {}) getmetatable(t).__tostring = function() return ('%s'):format(t) end tostring(t)",
    "local function f() table.sort({1, 2, 3}, f) end f()",
    "local t = setmetatable({}, {}) getmetatable(t).__lt = function(a, b) return a < b end return t < t",
    "local n = 0 while true do n = n + #tostring(n) end",
    "while true do local t = {} for i = 1, 100 do t[i] = {i} end end",
];

/// As the threads of a server that run scripts.
fn on_a_large_stack(test: fn()) {
    let thread = thread::Builder::new().stack_size(SCRIPT_STACK).spawn(test).expect("a thread");
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}

#[test]
fn runaways_are_stopped() {
    on_a_large_stack(stop_runaways);
}

/// How long this thread has had a processor.
fn busy_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/thread-self/stat").expect("the thread's times");
    // Behind the name, which is in brackets: user and system time are the 12th and 13th, in hundredths of a second.
    let behind = &stat[stat.rfind(')').expect("a name") + 1..];
    let ticks = |field: &str| field.parse::<u64>().expect("a time");
    Duration::from_millis(10 * behind.split_whitespace().skip(11).take(2).map(ticks).sum::<u64>())
}

fn stop_runaways() {
    const LIMIT: Duration = Duration::from_millis(100);
    const LATE: Duration = Duration::from_millis(50);
    const PATIENCE: Duration = Duration::from_secs(5);
    let mut worst = (Duration::ZERO, "");
    for source in RUNAWAYS {
        let mut sandbox = Sandbox::new(MEMORY).expect("a sandbox");
        let stopper = sandbox.stopper();
        let (start, busy) = (Instant::now(), busy_time());
        let warden = thread::spawn(move || {
            thread::sleep(LIMIT);
            while stopper.stop(1) {
                thread::sleep(Duration::from_millis(2));
            }
        });
        let reply = run_in(&mut sandbox, 1, source);
        let (took, busy) = (start.elapsed(), busy_time().saturating_sub(busy));
        warden.join().expect("the warden");
        assert!(
            reply == "Stopped" || reply.starts_with('-') || took < LIMIT + LATE,
            "{source}: {reply:.100}"
        );
        if std::env::var("SHOW").is_ok() {
            println!("{took:?} {source}: {reply:.60}");
        }
        if busy > worst.0 {
            worst = (busy, source);
        }
        assert!(took < PATIENCE, "{took:?}: {source}");
        // The sandbox is as good as before.
        assert_eq!(run_in(&mut sandbox, 2, "return #redis.call('x')"), ":1~", "after {source}");
    }
    // Three times the bound, since whoever stops it may be late; by the time of its own thread, which waits for nobody
    // but a machine that has others to serve.
    assert!(worst.0 < LIMIT + 3 * LATE, "{:?}: {}", worst.0, worst.1);
}
