//! Functions: the replies of Redis, LUA and LUAFUNC.

use std::thread;
use std::time::{Duration, Instant};

use crate::peer::{Client, Ours, Place, Redis, Text};
use perilune_redis::Settings;
use perilune_resp::Answer;

fn words(words: &[&str]) -> Vec<Vec<u8>> {
    words.iter().map(|word| word.as_bytes().to_vec()).collect()
}

fn shown(answer: &Answer) -> String {
    let text = |bytes: &Vec<u8>| bytes.escape_ascii().to_string();
    match answer {
        Answer::Simple(bytes) => format!("+{}", text(bytes)),
        Answer::Error(bytes) => format!("-{}", text(bytes)),
        Answer::Bulk(bytes) => format!("\"{}\"", text(bytes)),
        Answer::Array(all) => format!("[{}]", all.iter().map(shown).collect::<Vec<_>>().join(", ")),
        other => format!("{other:?}"),
    }
}

const LIBRARY: &str = "#!lua name=lib
local function add(keys, args) return redis.call('incrby', keys[1], args[1]) end
redis.register_function('add', add)
redis.register_function{function_name='look', callback=function(keys, args)
  return {redis.call('get', keys[1]), #args} end, flags={'no-writes'}, description='Looks'}
redis.register_function('fails', function() local x
  error('here') end)
redis.register_function{function_name='sneaks', callback=function(keys) return redis.call('del', keys[1]) end, flags={'no-writes'}}";

/// Commands whose replies are compared.
const LINES: &[&[&str]] = &[
    &["FUNCTION", "LOAD", LIBRARY],
    &["FUNCTION", "LOAD", LIBRARY],
    &["FUNCTION", "LOAD", "REPLACE", LIBRARY],
    &["FUNCTION", "LOAD", "AGAIN", LIBRARY],
    &["FCALL", "add", "1", "n", "5"],
    &["FCALL", "add", "1", "n", "x"],
    &["FCALL", "look", "1", "n", "a", "b"],
    &["FCALL_RO", "look", "1", "n"],
    &["FCALL_RO", "add", "1", "n", "5"],
    &["FCALL", "fails", "0"],
    &["FCALL", "sneaks", "1", "n"],
    &["FCALL", "nosuch", "0"],
    &["FCALL", "add", "x"],
    &["FCALL", "add", "2", "n"],
    &["FUNCTION", "LIST", "LIBRARYNAME", "nosuch*"],
    &["FUNCTION", "LIST", "BOGUS"],
    &["FUNCTION", "LOAD", "return 1"],
    &["FUNCTION", "LOAD", "#!lua\nreturn 1"],
    &["FUNCTION", "LOAD", "#!lua name=a-b\nreturn 1"],
    &["FUNCTION", "LOAD", "#!js name=x\nreturn 1"],
    &["FUNCTION", "LOAD", "#!lua name=empty\nreturn 1"],
    &["FUNCTION", "LOAD", "#!lua name=other\nredis.register_function('add', function() end)"],
    &["FUNCTION", "LOAD", "#!lua name=other\nredis.register_function('o', function() return 'o' end)"],
    &["FCALL", "o", "0"],
    &["FCALL", "O", "0"],
    &["FUNCTION", "LOAD", "#!lua name=third\nredis.register_function('O', function() end)"],
    &["FUNCTION", "DELETE", "OTHER"],
    &["FUNCTION", "DELETE", "other"],
    &["FUNCTION", "DELETE", "other"],
    &["FCALL", "o", "0"],
    &["FUNCTION", "LOAD", "REPLACE", "AGAIN", LIBRARY],
    &["FUNCTION", "LOAD", "REPLACE"],
    &[
        "FUNCTION",
        "LOAD",
        "REPLACE",
        "replace",
        "#!LUA Name='q'\nredis.register_function('q', function() end)",
    ],
    &["FUNCTION", "LOAD", "#! name=x\nreturn 1"],
    &["FUNCTION", "LOAD", "#!lua name=x"],
    &["FUNCTION", "LOAD", "#!lua name=\"x\nreturn 1"],
    &["FUNCTION", "LOAD", "#!lua name=x name=y\nreturn 1"],
    &["FUNCTION", "LOAD", "#!lua name=x flags=no-writes\nreturn 1"],
    &["FUNCTION", "LOAD", "#!js name=x-y\nreturn 1"],
    &["EVAL", "#!LUA\nreturn 1", "0"],
    &["EVAL", "#!lua name=x\nreturn 1", "0"],
    &[
        "FUNCTION",
        "LOAD",
        "#!lua name=inside\nredis.register_function('inside', function() \
       return {type(redis.register_function), type(redis.call)} end)",
    ],
    &["FCALL", "inside", "0"],
    &["EVAL", "return {type(redis.register_function), type(redis.call)}", "0"],
    &["FUNCTION", "DELETE", "inside"],
    &["FUNCTION", "FLUSH", "ASYNC", "x"],
    &["FUNCTION", "FLUSH", "x"],
    &["FUNCTION", "DUMP", "x"],
    &["FUNCTION", "KILL", "x"],
    &["FUNCTION", "DELETE"],
    &["FUNCTION", "LIST", "WITHCODE", "WITHCODE"],
    &["FUNCTION", "LIST", "LIBRARYNAME"],
    &["FUNCTION", "RESTORE", "a", "b"],
    &["FUNCTION", "RESTORE", "a", "b", "c"],
    &["FUNCTION", "KILL"],
    &["FUNCTION", "STATS"],
    &["FUNCTION", "RESTORE", "nonsense"],
    &["MULTI"],
    &["FCALL", "add", "1", "n", "2"],
    &["EXEC"],
    &["FUNCTION", "FLUSH"],
    &["FUNCTION", "LIST"],
    &["FCALL", "add", "1", "n", "5"],
];

#[test]
fn functions_answer_as_in_redis() {
    let place = Place::new();
    let (ours, redis) = (Ours::start(&place, Settings::default()), Redis::start(&place));
    let (mut ours, mut theirs) = (Client::connect(&ours.socket), Client::connect(&redis.socket));
    for line in LINES {
        let line = words(line);
        let (ours, theirs) = (ours.call(&line), theirs.call(&line));
        assert_eq!(shown(&ours), shown(&theirs), "{:?}", String::from_utf8_lossy(&line.join(&b' ')));
    }
}

#[test]
fn libraries_are_dumped_and_restored() {
    let place = Place::new();
    let ours = Ours::start(&place, Settings::default());
    let mut client = Client::connect(&ours.socket);
    client.call(words(&["FUNCTION", "LOAD", LIBRARY]));
    let Answer::Bulk(dump) = client.call(words(&["FUNCTION", "DUMP"])) else { panic!("no dump") };
    let mut restore = words(&["FUNCTION", "RESTORE"]);
    restore.push(dump.clone());
    assert_eq!(shown(&client.call(&restore)), "-ERR Library lib already exists");
    assert_eq!(shown(&client.call(words(&["FUNCTION", "FLUSH"]))), "+OK");
    assert_eq!(shown(&client.call(&restore)), "+OK");
    assert_eq!(client.call(words(&["FCALL", "add", "1", "n", "5"])), Answer::Integer(5));
    // Not beside another library's function of the same name.
    client.line("FUNCTION FLUSH");
    let other = "#!lua name=other\nredis.register_function('ADD', function() end)";
    client.call(words(&["FUNCTION", "LOAD", other]));
    assert_eq!(
        shown(&client.call([b"FUNCTION", &b"RESTORE"[..], &dump, b"REPLACE"])),
        "-ERR Function add already exists"
    );
    assert_eq!(shown(&client.call([b"FUNCTION", &b"RESTORE"[..], &dump, b"FLUSH"])), "+OK");
}

/// What a library may not do while it is loaded is said as Redis says it; and it is back afterwards.
#[test]
fn libraries_have_another_redis_while_they_are_loaded() {
    let place = Place::new();
    let ours = Ours::start(&place, Settings::default());
    let mut client = Client::connect(&ours.socket);
    let mut load = |code: &str| {
        let source = format!("#!lua name=lib\n{code}");
        shown(&client.call(words(&["FUNCTION", "LOAD", "REPLACE", &source])))
    };
    for name in
        ["call('ping')", "pcall('ping')", "setresp(3)", "set_repl(0)", "math.random()", "redis.call()"]
    {
        let (first, _) = name.split_once(['(', '.']).unwrap();
        let absent = format!("Script attempted to access nonexistent global variable \\'{first}\\'");
        let answer = load(&format!("redis.{name}"));
        assert!(
            answer.starts_with("-ERR Error registering functions: ") && answer.contains(&absent),
            "{answer}"
        );
    }
    let kept = "local lib = redis
        redis.register_function('late', function() lib.register_function('more', function() end) end)
        redis.register_function('calls', function() return lib.call('ping') end)";
    assert_eq!(load(kept), "\"lib\"");
    assert_eq!(shown(&client.line("FCALL calls 0")), "+PONG");
    let late = shown(&client.line("FCALL late 0"));
    assert!(late.contains("can only be called on FUNCTION LOAD command"), "{late}");
}

#[test]
fn a_library_that_does_not_end_is_not_loaded() {
    let place = Place::new();
    let ours = Ours::start(&place, Settings { threads: 1, ..Settings::default() });
    let (mut client, mut other) = (Client::connect(&ours.socket), Client::connect(&ours.socket));
    let mut request = Vec::new();
    let load: perilune_resp::ArgumentsBuf =
        ["FUNCTION", "LOAD", "#!lua name=lib\nwhile true do end"].iter().collect();
    load.write_request(&mut request);
    client.send(&request);
    // Nobody else waits for it.
    let start = Instant::now();
    assert_eq!(shown(&other.line("PING")), "+PONG");
    assert!(start.elapsed() < Duration::from_millis(400), "{:?}", start.elapsed());
    assert_eq!(shown(&client.receive().unwrap()), "-ERR FUNCTION LOAD timeout");
}

#[test]
fn functions_and_scripts_are_stopped_each_by_its_command() {
    let place = Place::new();
    let ours = Ours::start(&place, Settings::default());
    let mut client = Client::connect(&ours.socket);
    client.call(words(&[
        "FUNCTION",
        "LOAD",
        "#!lua name=l\nredis.register_function('f', function() while true do end end)",
    ]));
    for (runaway, wrong, right) in [
        (&["FCALL", "f", "0"][..], "SCRIPT KILL", "FUNCTION KILL"),
        (&["EVAL", "while true do end", "0"], "FUNCTION KILL", "SCRIPT KILL"),
    ] {
        let socket = ours.socket.clone();
        let runs = thread::spawn(move || shown(&Client::connect(&socket).call(words(runaway))));
        let start = Instant::now();
        while !client.line(wrong).to_text().starts_with("BUSY") {
            assert!(start.elapsed() < Duration::from_secs(20), "{runaway:?} is not found");
        }
        assert_eq!(shown(&client.line(right)), "+OK");
        let answer = runs.join().expect("the client of the runaway");
        assert!(answer.contains(right), "{answer}");
    }
}

/// FUNCTION STATS at another server named no function, however long it ran; a script is none.
#[test]
fn what_runs_for_long_is_told_at_every_server() {
    let place = Place::new();
    let ours = Ours::start(&place, Settings::default());
    let beside = ours.beside(&place);
    let (mut here, mut there) = (Client::connect(&ours.socket), Client::connect(&beside.socket));
    let library = "#!lua name=l\nredis.register_function('f', function() while true do end end)";
    here.call(words(&["FUNCTION", "LOAD", library]));
    let stats = |client: &mut Client| {
        let Answer::Array(mut stats) = client.line("FUNCTION STATS") else { panic!("an array") };
        stats.swap_remove(1)
    };
    assert_eq!(stats(&mut there), Answer::Null);
    for command in [&["FCALL", "F", "1", "key", "a b"][..], &["LUAFUNC", "f", "x"]] {
        let socket = ours.socket.clone();
        let runs = thread::spawn(move || Client::connect(&socket).call(words(command)).to_text());
        for client in [&mut there, &mut here] {
            let start = Instant::now();
            let running = loop {
                if let Answer::Array(running) = stats(client) {
                    break running;
                }
                assert!(start.elapsed() < Duration::from_secs(20), "{command:?} is not told of");
            };
            assert_eq!(running[1].to_text(), "f");
            let Answer::Array(told) = &running[3] else { panic!("{running:?}") };
            assert_eq!(told.iter().map(Text::to_text).collect::<Vec<_>>(), command);
            let Answer::Integer(runs_ms) = running[5] else { panic!("{running:?}") };
            assert!((20..20_000).contains(&runs_ms), "{runs_ms}");
        }
        assert_eq!(shown(&there.line("FUNCTION KILL")), "+OK");
        assert!(runs.join().expect("the client of the runaway").contains("FUNCTION KILL"));
        let start = Instant::now();
        while stats(&mut here) != Answer::Null {
            assert!(start.elapsed() < Duration::from_secs(20), "{command:?} is told of for ever");
        }
    }
    let socket = ours.socket.clone();
    let runs =
        thread::spawn(move || Client::connect(&socket).call(words(&["EVAL", "while true do end", "0"])));
    while !there.line("FUNCTION KILL").to_text().starts_with("BUSY") {}
    assert_eq!(stats(&mut there), Answer::Null);
    assert_eq!(shown(&there.line("SCRIPT KILL")), "+OK");
    runs.join().expect("the client of the script");
}

#[test]
fn libraries_need_memory() {
    let place = Place::new();
    let ours = Ours::start(&place, Settings::default());
    let mut client = Client::connect(&ours.socket);
    client.call(words(&["FUNCTION", "LOAD", LIBRARY]));
    let Answer::Bulk(dump) = client.call(words(&["FUNCTION", "DUMP"])) else { panic!("no dump") };
    client.line("CONFIG SET maxmemory 1");
    let full = "-OOM command not allowed when used memory > \\'maxmemory\\'.";
    assert_eq!(shown(&client.call(words(&["FUNCTION", "LOAD", "REPLACE", LIBRARY]))), full);
    assert_eq!(shown(&client.call([b"FUNCTION", &b"RESTORE"[..], &dump, b"REPLACE"])), full);
}

#[test]
fn lua_has_globals_of_its_own() {
    let place = Place::new();
    let ours = Ours::start(&place, Settings::default());
    let mut client = Client::connect(&ours.socket);
    let lookup =
        "user_id = client(\"GET\", \"session:XYZ\"); if (user_id) then return client(\"GET\", \"data:\" .. \
                  user_id); else return \"\"; end";
    let mut lua = |code: &[&str]| shown(&client.call(words(&[&["LUA"], code].concat())));
    assert_eq!(lua(&[lookup]), "\"\"");
    assert_eq!(
        lua(&["client('SET', 'session:XYZ', 7) client('SET', 'data:7', 'Ada') return 1"]),
        "Integer(1)"
    );
    assert_eq!(lua(&[lookup]), "\"Ada\"");
    assert!(lua(&["return user_id"]).starts_with("-ERR"), "{}", lua(&["return user_id"]));
    assert_eq!(lua(&["local a, b = ... return b .. a", "1", "2"]), "\"21\"");
    assert!(lua(&["string.x = 1"]).starts_with("-ERR"));
    let library =
        "#!lua name=greetings\nredis.register_function('greet', function(name, n) return client('INCR', \
                   'greeted:' .. name) .. n end)";
    client.call(words(&["FUNCTION", "LOAD", library]));
    assert_eq!(shown(&client.call(words(&["LUAFUNC", "greet", "Ada", "x"]))), "\"1x\"");
    assert_eq!(shown(&client.call(words(&["LUAFUNC", "nosuch"]))), "-ERR Function not found");
}
