//! Functions: the replies of Redis, LUA and LUAFUNC.

mod peer;

use peer::{Client, Ours, Place, Redis};
use perilune_resp::Answer;
use perilune_server::Settings;

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

#[test]
fn functions_answer_as_in_redis() {
    let place = Place::new();
    let (ours, redis) = (Ours::start(&place, Settings::default()), Redis::start(&place));
    let (mut ours, mut theirs) = (Client::connect(&ours.socket), Client::connect(&redis.socket));
    for line in [
        &["FUNCTION", "LOAD", LIBRARY][..],
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
        &["FUNCTION", "DELETE", "other"],
        &["FUNCTION", "DELETE", "other"],
        &["FCALL", "o", "0"],
        &["FUNCTION", "KILL"],
        &["FUNCTION", "STATS"],
        &["FUNCTION", "RESTORE", "nonsense"],
        &["MULTI"],
        &["FCALL", "add", "1", "n", "2"],
        &["EXEC"],
        &["FUNCTION", "FLUSH"],
        &["FUNCTION", "LIST"],
        &["FCALL", "add", "1", "n", "5"],
    ] {
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
    restore.push(dump);
    assert_eq!(shown(&client.call(&restore)), "-ERR Library lib already exists");
    assert_eq!(shown(&client.call(words(&["FUNCTION", "FLUSH"]))), "+OK");
    assert_eq!(shown(&client.call(&restore)), "+OK");
    assert_eq!(client.call(words(&["FCALL", "add", "1", "n", "5"])), Answer::Integer(5));
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
