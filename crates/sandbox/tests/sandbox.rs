//! Sandboxes: what scripts cannot reach, that memory is counted, and that nothing they do lasts beyond the limit.

use std::ops::ControlFlow;
use std::sync::LazyLock;
use std::thread;
use std::time::{Duration, Instant};

use perilune_sandbox::{
    Answers, Form, Format, HostFunction, Library, Offer, Outcome, Part, Parts, Pool, Question, Run, Sandbox,
    Value, Values, SCRIPT_STACK,
};

/// `host.call(text)` answers its first argument.
static HOST: Library = Library::new(c"host", &[HostFunction::new(c"call")]);

static OFFER: LazyLock<Offer> = LazyLock::new(|| Offer::new(&[&HOST], Format::values()));

struct Echo;

impl Answers for Echo {
    fn answer(&mut self, question: Question<'_>, answer: &mut Vec<u8>) -> ControlFlow<()> {
        match question.arguments.get(0).map(Value::of) {
            Some(Value::Text(b"fail")) => Values::new(answer).error(b"it failed"),
            Some(Value::Text(text)) => Values::new(answer).text(text),
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

fn sandbox() -> Sandbox {
    Sandbox::new(&OFFER, &Pool::default(), MEMORY).expect("a sandbox")
}

/// What a reply is, on one line: an error after a minus.
fn shown(reply: &[u8]) -> String {
    let part = |part| match part {
        Part::Value(Value::Nothing) => "nil".to_owned(),
        Part::Value(Value::Truth(truth)) => truth.to_string(),
        Part::Value(Value::Integer(number)) => number.to_string(),
        Part::Value(Value::Double(number)) => number.to_string(),
        Part::Value(Value::Text(text)) => String::from_utf8_lossy(text).into_owned(),
        Part::List(count) => format!("list {count}"),
        Part::Table(count) => format!("table {count}"),
        Part::Error(text) => format!("-{}", String::from_utf8_lossy(text)),
    };
    Parts::new(reply).map(part).collect::<Vec<_>>().join(" ")
}

fn run_in(sandbox: &mut Sandbox, number: u64, source: &str) -> String {
    let code = match sandbox.compile(source.as_bytes(), "@script") {
        Ok(code) => code,
        Err(error) => return format!("compile: {error}"),
    };
    let run = Run {
        code,
        form: Form::Script,
        number,
        variant: 0,
        name: "script",
        keys: &[b"key"[..].into()],
        arguments: &[b"one"[..].into(), b"two"[..].into()],
    };
    match sandbox.run(&run, &mut Echo) {
        Outcome::Replied(reply) => shown(reply),
        other => format!("{other:?}"),
    }
}

const MEMORY: usize = 128 << 20;

fn run(source: &str) -> String {
    run_in(&mut sandbox(), 1, source)
}

#[test]
fn values_are_returned() {
    for (source, reply) in [
        ("return", "nil"),
        ("return 1", "1"),
        ("return 2 ^ 53 + 0.5 - 0.5", "9007199254740992"),
        ("return 1.5", "1.5"),
        ("return KEYS[1] .. ARGV[2]", "keytwo"),
        ("return {1, 'a', {true, false}}", "list 3 1 a list 2 true false"),
        ("return {}", "list 0"),
        ("return {a = {1}}", "table 1 a list 1 1"),
        ("return host.call('x')", "x"),
        ("return print", "-Script attempted to access nonexistent global variable 'print'"),
        ("error({1})", "-table"),
        ("error(true)", "-true"),
        ("error('bare', 0)", "-bare"),
        ("return pairs", "-the script returns a function"),
        ("host.call('fail')", "-it failed"),
        ("return host.call({})", "-bad argument #1 (a table is no value for the host)"),
    ] {
        let told = run(source);
        // Errors say where they were raised.
        let wanted = reply.strip_prefix('-').map_or(reply, |reply| reply);
        assert!(
            told == reply || (reply.starts_with('-') && told.starts_with('-') && told.ends_with(wanted)),
            "{source}: {told}"
        );
    }
}

/// Tables that hold themselves, or are deeper than a reply may be, are refused.
#[test]
fn what_is_too_deep_is_not_returned() {
    for source in ["local t = {} t[1] = t return t", "local t = {} for i = 1, 300 do t = {t} end return t"] {
        assert!(run(source).ends_with("too many levels"), "{source}");
    }
    assert!(run("local t = {} for i = 1, 100 do t = {t} end return t").starts_with("list 1"));
}

#[test]
fn nothing_leads_out_and_nothing_stays() {
    for source in [
        "return os",
        "return io",
        "return debug",
        "return ffi",
        "return package",
        "return getfenv",
        "return perilune",
        "return redis",
        "x = 1",
        "host.call = 1",
        "rawset(host, 'call', 1)",
        "table.insert(host, 1)",
        "local h = host h.call = 1",
        "string.x = 1",
        "rawset(_G, 'x', 1)",
        "getmetatable('').__index = 1",
        "setmetatable(host, {})",
    ] {
        let told = run(source);
        assert!(told.starts_with('-'), "{source}: {told}");
    }
    assert_eq!(run("return getmetatable(host)"), "false");
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
            assert!(told.starts_with("compile: ") || told == "1", "{source}: {told}");
            assert!(!source.contains("type(") || told.contains("64-bit"), "{source}: {told}");
        }
        for source in [
            format!("return loadstring('return {literal}') == nil and 1"),
            format!("local parts = {{'return {literal}'}} return load(function() return table.remove(parts) end) == nil and 1"),
        ] {
            assert_eq!(run(&source), "1", "{source}");
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

/// Small blocks that are free are kept apart: they are given again as they were counted, whatever their sizes.
#[test]
fn memory_is_counted_whatever_is_kept() {
    let mut sandbox = sandbox();
    let source = "local t = {} for i = 1, 20000 do local s = ('x'):rep(i % 300) t[i] = {s .. i, n = i} t[i - 7] = nil end \
                  for i = 19994, 20000 do assert(#t[i][1] == i % 300 + 5 and t[i].n == i) end t = nil \
                  collectgarbage() collectgarbage() return 'fine'";
    assert_eq!(run_in(&mut sandbox, 1, source), "fine");
    let after = sandbox.memory();
    for number in 2..20 {
        assert_eq!(run_in(&mut sandbox, number, source), "fine");
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
    "while true do host.call('x') end",
    "while true do pcall(host.call, 'fail') end",
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

/// Runs `test` on a thread with the stack that scripts need (`SCRIPT_STACK`).
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
        let mut sandbox = sandbox();
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
        assert_eq!(run_in(&mut sandbox, 2, "return #host.call('x')"), "1", "after {source}");
    }
    // Three times the bound, since whoever stops it may be late; by the time of its own thread, which waits for nobody
    // but a machine that has others to serve.
    assert!(worst.0 < LIMIT + 3 * LATE, "{:?}: {}", worst.0, worst.1);
}
