//! SCAN and its kin: cursors are small numbers that need nothing written.
//!
//! They were numbers of 57 bits, which node-redis and loops in Lua took for others after ten keys, and each step was a
//! commit: 20,000 of them were 80 MB of log, and EVAL_RO could not go through more than ten keys.

use std::collections::BTreeSet;

use crate::peer::{Client, Ours, Place, Redis, Text};
use perilune_redis::Settings;
use perilune_resp::Answer;

/// What `%.14g` still prints whole: how Lua 5.1 to 5.4 and LuaJIT turn a double into text.
const PRINTED: u64 = 100_000_000_000_000;

fn settings() -> Settings {
    Settings { threads: 1, ..Settings::default() }
}

/// One step: the cursor, and what was answered.
fn step(client: &mut Client, words: &[&str]) -> (u64, Vec<String>) {
    let answer = client.call(words);
    let Answer::Array(parts) = &answer else { panic!("{words:?}: {answer:?}") };
    let [cursor, Answer::Array(names)] = &parts[..] else { panic!("{words:?}: {answer:?}") };
    (cursor.to_text().parse().expect("a number"), names.iter().map(Text::to_text).collect())
}

/// Makes `count` strings `prefixN`, and a hash, a set and a sorted set of as many elements.
fn fill(client: &mut Client, prefix: &str, count: usize) {
    for first in (0..count).step_by(500) {
        let names: Vec<String> = (first..count.min(first + 500)).map(|n| format!("{prefix}{n}")).collect();
        for (command, key, score, value) in
            [("mset", None, None, Some("x")), ("hset", Some("hash"), None, Some("x"))]
                .into_iter()
                .chain([("sadd", Some("set"), None, None), ("zadd", Some("zset"), Some("1"), None)])
        {
            let mut words = vec![command.to_owned()];
            words.extend(key.map(|key: &str| format!("{prefix}-{key}")));
            for name in &names {
                words.extend(score.map(str::to_owned));
                words.push(name.clone());
                words.extend(value.map(str::to_owned));
            }
            let answer = client.call(&words);
            assert!(!answer.is_error(), "{command}: {answer:?}");
        }
    }
}

/// KEYS and SCAN tell what a key holds by what lies first below it: of every kind, of every size, with and without an expiry,
/// with names that are kept whole and cut, and written by programs.
#[test]
fn keys_of_every_kind_are_found() -> perilune::Result<()> {
    let place = Place::new();
    let ours = Ours::start(&place, settings());
    let mut client = Client::connect(&ours.socket);
    let mut expected = std::collections::BTreeMap::<&str, Vec<String>>::new();
    for number in 0..1_200_usize {
        let name = match number % 40 {
            0 => format!("{number}{}", "n".repeat(600)),
            1 => number.to_string(),
            _ => format!("key {number}"),
        };
        let (kind, command) =
            [("string", "set"), ("hash", "hset"), ("list", "rpush"), ("set", "sadd"), ("zset", "zadd")]
                [number % 5];
        let count = if number % 211 == 0 { 700 } else { 1 + number % 37 };
        let elements = (0..count).flat_map(|element| match kind {
            "hash" | "zset" => vec![element.to_string(), format!("e{element}")],
            _ => vec![format!("e{element}")],
        });
        let elements: Vec<String> = if kind == "string" { vec!["x".to_owned()] } else { elements.collect() };
        client.call([command.to_owned(), name.clone()].into_iter().chain(elements));
        match number % 7 {
            3 => drop(client.call(["pexpire", &name, "100000000"])),
            // In the past, but not swept yet, or swept.
            4 => {
                drop(client.call(["pexpire", &name, "1"]));
                continue;
            }
            _ => {}
        }
        expected.entry(kind).or_default().push(name);
    }
    let mut session = ours.database.session()?;
    let key = |name: &str| perilune::node!("^redis", 0, name);
    session.set(&key("uncounted")?.with("hash")?.with("field")?, "value")?;
    session.set(&key("far")?.with("list")?.with(-1_000)?, "element")?;
    expected.entry("hash").or_default().push("uncounted".to_owned());
    expected.entry("list").or_default().push("far".to_owned());
    // What expires in a millisecond has done so once a later command says that it is gone.
    while client.call(["exists", "key 4"]) != Answer::Integer(0)
        || client.call(["exists", "key 1194"]) != Answer::Integer(0)
    {}
    let all: BTreeSet<String> = expected.values().flatten().cloned().collect();
    let Answer::Array(found) = client.line("keys *") else { panic!("KEYS answers an array") };
    let text = |answer| match answer {
        Answer::Bulk(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        other => panic!("{other:?}"),
    };
    assert_eq!((found.len(), found.into_iter().map(text).collect::<BTreeSet<_>>()), (all.len(), all));
    for (kind, mut names) in expected {
        for count in ["3", "10000"] {
            let (mut cursor, mut found) = (0, Vec::new());
            loop {
                let (next, names) =
                    step(&mut client, &["scan", &cursor.to_string(), "count", count, "type", kind]);
                found.extend(names);
                cursor = next;
                if cursor == 0 {
                    break;
                }
            }
            found.sort();
            names.sort();
            assert!(found == names, "{kind} by {count}: {} of {}", found.len(), names.len());
        }
    }
    Ok(())
}

#[test]
fn cursors_of_100_000_keys_are_numbers_that_a_double_and_lua_hold() {
    let place = Place::new();
    let ours = Ours::start(&place, settings());
    let mut client = Client::connect(&ours.socket);
    let before: u64 = 100_000;
    for first in (0..before).step_by(1_000) {
        let pairs = (first..first + 1_000).flat_map(|n| [format!("user:{n}"), "x".to_owned()]);
        client.call(std::iter::once("mset".to_owned()).chain(pairs));
    }
    let (mut cursor, mut seen, mut steps) = (0.0_f64, BTreeSet::new(), 0);
    loop {
        // As a client has it that keeps numbers as doubles.
        let (next, names) = step(&mut client, &["scan", &format!("{cursor}"), "count", "100"]);
        assert!(next < PRINTED, "{next}");
        seen.extend(names);
        steps += 1;
        cursor = next as f64;
        if next == 0 {
            break;
        }
    }
    assert_eq!((seen.len() as u64, steps), (before, 1_000));
}

/// Loops of scripts, with `tonumber` and without: they read, so that EVAL_RO, FCALL_RO and `no-writes` may run them.
#[test]
fn scripts_that_may_not_write_go_through_1_000_keys() {
    const BODY: &str = "
        local cursor, count = 0, 0
        repeat
            local reply = redis.call(COMMAND)
            cursor, count = tonumber(reply[1]), count + #reply[2]
        until cursor == 0
        return count";
    let place = Place::new();
    let ours = Ours::start(&place, settings());
    let mut client = Client::connect(&ours.socket);
    fill(&mut client, "n", 1_000);
    for (command, count) in [
        ("'scan', cursor", 1_003),
        ("'scan', tostring(cursor)", 1_003),
        ("'scan', cursor, 'match', '*-*'", 3),
        ("'scan', cursor, 'type', 'zset'", 1),
        ("'hscan', 'n-hash', cursor", 2_000),
        ("'sscan', 'n-set', cursor, 'count', '7'", 1_000),
        ("'zscan', 'n-zset', cursor", 2_000),
    ] {
        let body = BODY.replace("COMMAND", command);
        let count = Answer::Integer(count);
        assert_eq!(client.call(["eval_ro", &body, "0"]), count, "EVAL_RO of {command}");
        assert_eq!(client.call(["eval", &body, "0"]), count, "EVAL of {command}");
        for flags in ["no-writes", "no-writes,non-atomic"] {
            let script = format!("#!lua flags={flags}\n{body}");
            assert_eq!(client.call(["eval", &script, "0"]), count, "{flags}: {command}");
        }
        let library = format!(
            "#!lua name=scans\nredis.register_function{{function_name='scans', callback=function() {body} end, \
             flags={{'no-writes'}}}}"
        );
        assert!(!client.call(["function", "load", "replace", &library]).is_error());
        assert_eq!(client.line("fcall_ro scans 0"), count, "FCALL_RO of {command}");
        for line in ["multi", "scan 0", "exec"] {
            assert!(!client.line(line).is_error());
        }
    }
}

/// What Redis answers for numbers that it has never given, and for what is no number.
#[test]
fn unknown_cursors_are_answered_as_by_redis() {
    let place = Place::new();
    let (ours, redis) = (Ours::start(&place, settings()), Redis::start(&place));
    let (mut ours, mut theirs) = (Client::connect(&ours.socket), Client::connect(&redis.socket));
    for client in [&mut ours, &mut theirs] {
        for line in ["hset h a 1", "sadd s 1 2", "zadd z 1 a", "set string x"] {
            client.line(line);
        }
    }
    let sorted = |answer: Answer| {
        let Answer::Array(mut parts) = answer else { return answer };
        if let Some(Answer::Array(names)) = parts.get_mut(1) {
            names.sort_by_key(Text::to_text);
        }
        Answer::Array(parts)
    };
    for cursor in ["1000", "7", "12345678901234567890", "18446744073709551615", "-1", "+5", "", "00"] {
        for words in [
            vec!["hscan", "missing", cursor],
            vec!["hscan", "missing", cursor, "count", "x"],
            vec!["sscan", "missing", cursor, "match", "*"],
            vec!["zscan", "missing", cursor, "nonsense"],
            vec!["hscan", "h", cursor],
            vec!["sscan", "s", cursor],
            vec!["zscan", "z", cursor, "count", "10"],
            vec!["hscan", "string", cursor],
        ] {
            assert_eq!(sorted(ours.call(&words)), sorted(theirs.call(&words)), "{words:?}");
        }
        // Where Redis goes on depends on its table; it ends all the same.
        let mut cursor = cursor.to_owned();
        for _ in 0..3 {
            cursor = step(&mut ours, &["scan", &cursor]).0.to_string();
        }
        assert_eq!(cursor, "0");
    }
    for cursor in ["x", "1x", " 1", "1 ", "-", "+", "--1", "18446744073709551616", "1.5", "0x10"] {
        for words in [vec!["scan", cursor], vec!["hscan", "missing", cursor], vec!["sscan", "s", cursor]] {
            assert_eq!(ours.call(&words), theirs.call(&words), "{words:?}");
        }
    }
}

/// Names that do not fit a subscript have a place, too, as have empty ones and numbers.
#[test]
fn places_may_be_names_of_any_kind() {
    let place = Place::new();
    let ours = Ours::start(&place, settings());
    let mut client = Client::connect(&ours.socket);
    let mut names: BTreeSet<Vec<u8>> =
        [0, 1, 500, 501, 502, 999, 1_000, 1_001, 1_002, 70_000].map(|length| vec![b'n'; length]).into();
    names.extend([
        b"17".to_vec(),
        b"-3.5".to_vec(),
        b"1e3".to_vec(),
        vec![0; 600],
        vec![255; 1_002],
        vec![1],
    ]);
    for name in &names {
        client.call([&b"set"[..], name, b"x"]);
        client.call([&b"sadd"[..], b"the set", name]);
        client.call([&b"zadd"[..], b"the zset", b"1", name]);
        client.call([&b"hset"[..], b"the hash", name, b"x"]);
    }
    for (head, each) in [(vec!["scan"], 1), (vec!["sscan", "the set"], 1), (vec!["hscan", "the hash"], 2)]
        .into_iter()
        .chain([(vec!["zscan", "the zset"], 2)])
    {
        let (mut seen, mut cursor) = (BTreeSet::new(), b"0".to_vec());
        loop {
            let mut words: Vec<Vec<u8>> = head.iter().map(|word| word.as_bytes().to_vec()).collect();
            words.extend([cursor.clone(), b"count".to_vec(), b"1".to_vec()]);
            let Answer::Array(parts) = client.call(&words) else { panic!("an array") };
            let [Answer::Bulk(next), Answer::Array(found)] = &parts[..] else { panic!("two parts") };
            assert!(found.len() <= each, "{head:?}: COUNT 1 is kept: {}", found.len());
            seen.extend(found.iter().step_by(each).map(|name| match name {
                Answer::Bulk(name) => name.clone(),
                other => panic!("{other:?}"),
            }));
            cursor.clone_from(next);
            if cursor == b"0" {
                break;
            }
        }
        seen.retain(|name| !name.starts_with(b"the "));
        assert!(seen == names, "{head:?}: {} of {} names", seen.len(), names.len());
    }
}

/// A client whose server is restarted, or that comes back to another one, begins again: it misses nothing, and ends.
#[test]
fn what_a_server_has_forgotten_is_begun_again() {
    let place = Place::new();
    let ours = Ours::start(&place, settings());
    fill(&mut Client::connect(&ours.socket), "n", 1_000);
    let all: BTreeSet<String> = (0..1_000).map(|n| format!("n{n}")).collect();
    let beside = ours.beside(&place);
    let mut clients = [Client::connect(&ours.socket), Client::connect(&beside.socket)];
    for change in [1, 2, 7] {
        let (mut seen, mut cursor, mut steps) = (BTreeSet::new(), 0, 0);
        loop {
            let (next, names) = step(&mut clients[steps / change % 2], &["scan", &cursor.to_string()]);
            (cursor, steps) = (next, steps + 1);
            seen.extend(names);
            // What comes and goes meanwhile is nobody's affair, also if it is the place itself.
            let last = seen.last().cloned().unwrap_or_default();
            let client = &mut clients[0];
            client.call(["set", &format!("{last}+"), "x"]);
            client.call(["del", &format!("{last}+")]);
            if cursor == 0 {
                break;
            }
            assert!(steps < 300, "no end");
        }
        assert!(seen.is_superset(&all), "servers change after {change} steps: {} of 1,000", seen.len());
    }
}
