//! AlchemyDB's face: its words as commands, rows that become keys and keys that become rows, functions of libraries in SQL. The
//! examples of docs/guide/from-alchemydb.md are here.

use crate::peer::{Client, Ours, Place};
use crate::sql::shown;
use perilune_redis::Settings;

pub(crate) fn start(place: &Place) -> (Ours, Client) {
    let ours = Ours::start(place, Settings::default());
    let client = Client::connect(&ours.socket);
    (ours, client)
}

/// The words of a line, those in `"` as one.
fn words(line: &str) -> Vec<String> {
    let mut all = Vec::new();
    for (at, piece) in line.split('"').enumerate() {
        match at % 2 {
            0 => all.extend(piece.split_whitespace().map(str::to_owned)),
            _ => all.push(piece.to_owned()),
        }
    }
    all
}

/// Runs lines, each with what is answered behind ` -> `.
pub(crate) fn run(client: &mut Client, script: &str) {
    for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (request, wanted) = line.split_once(" -> ").unwrap_or((line, ""));
        let told = shown(&client.call(words(request)));
        if wanted.is_empty() {
            assert!(!told.starts_with('!'), "{request}: {told}");
        } else {
            assert!(
                told == wanted || wanted.ends_with("...") && told.starts_with(&wanted[..wanted.len() - 3]),
                "{request}\n  answers {told}\n  not     {wanted}"
            );
        }
    }
}

#[test]
fn words_are_statements_and_redis_keeps_its_own() {
    let place = Place::new();
    let (ours, mut client) = start(&place);
    let script = r#"
        CREATE TABLE test "(id int primary key, field TEXT, name TEXT)" -> 0
        INSERT INTO test VALUES "(1,'field1','name1')" -> 1
        INSERT INTO test VALUES "(2,'field2','name2')" "(3,'f 3','n 3')" -> 2
        SELECT "*" FROM test WHERE "id BETWEEN 1 AND 2" -> [[1 field1 name1] [2 field2 name2]]
        SELECT name FROM test WHERE id = 3 -> [[n 3]]
        SELECT "name FROM test WHERE id = 3" -> [[n 3]]
        SCAN * FROM test "ORDER BY id DESC LIMIT 1" -> [[3 f 3 n 3]]
        SCAN "COUNT(*)" FROM test -> [[3]]
        SELECT id FROM test WHERE "id IN (SCAN id FROM test WHERE id > 2)" -> [[3]]
        UPDATE test SET "name = name .. 'x'" WHERE "id = 1" -> 1
        DELETE FROM test WHERE id = 2 -> 1
        SELECT "id, name" FROM test -> [[1 name1x] [3 n 3]]
        ALTER TABLE test ADD COLUMN extra INT -> 0
        CREATE INDEX i ON test "(extra)" -> 0
        EXPLAIN "QUERY PLAN SELECT id FROM test WHERE extra = 1" -> [...
        WITH "n(i) AS (SELECT 1) SELECT i FROM n" -> [[1]]
        DROP INDEX i -> 0
        SELECT * FROM nowhere -> !ERR 42P01 no such table: nowhere (at byte 14)
        INSERT INTO test VALUES "(1,'a','b',2)" -> !CONSTRAINT 23505 ...
        SELECT 1 -> OK
        SELECT 0 -> OK
        SELECT abc -> !ERR value is not an integer or out of range
        SET from a
        SCAN 0 MATCH from COUNT 1000 -> [0 [from]]
        SCAN x -> !ERR invalid cursor
        MULTI -> OK
        INSERT INTO test VALUES "(7,'a','b',2)" -> QUEUED
        INCR n -> QUEUED
        SELECT id FROM test WHERE "extra = 2" -> QUEUED
        EXEC -> [1 1 [[7]]]
        DROP TABLE test -> 0
    "#;
    run(&mut client, script);
    // Scripts call them as commands.
    run(&mut client, "CREATE TABLE t \"(pk INT, a TEXT)\"\nINSERT INTO t VALUES \"(,'x')\" \"(,'y')\" -> 2");
    let script = "return redis.call('SELECT', 'a', 'FROM', 't', 'ORDER BY a')[2][1]";
    assert_eq!(shown(&client.call(["EVAL_RO", script, "0"])), "y");
    let script = "return redis.pcall('DELETE', 'FROM', 't').err";
    assert!(shown(&client.call(["EVAL_RO", script, "0"])).contains("Write commands"));
    client.line("HELLO 3");
    assert_eq!(shown(&client.call(words("SELECT \"1.5, NULL, 'a', 2 + 3\""))), "[[,1.5 - a 5]]");
    drop(ours);
}

#[test]
fn bulk_inserts_are_whole_and_duplicates_are_updated() {
    let place = Place::new();
    let (_ours, mut client) = start(&place);
    // The worked cases 6, 7 and 9 of the inventory: auto-increment, ON DUPLICATE KEY UPDATE, REPLACE of a new key.
    let insert = "INSERT INTO UU VALUES (1,11) (2,22) \"ON DUPLICATE KEY UPDATE\" \"fk1 = fk1 * 9\"";
    let script = format!(
        r#"
        CREATE TABLE AA_BD "(pk INTEGER PRIMARY KEY, fk1 INT)"
        INSERT INTO AA_BD VALUES "(,1)" "(,1)" "(,1)" "(,1)"
        INSERT INTO AA_BD VALUES "(99,99)"
        INSERT INTO AA_BD VALUES "(,99)" "(,99)"
        SELECT group_concat(pk) FROM AA_BD -> [[1,2,3,4,99,100,101]]
        CREATE TABLE UU "(pk INTEGER PRIMARY KEY, fk1 INT)"
        {insert}
        {insert}
        {insert}
        SELECT * FROM UU -> [[1 891] [2 1782]]
        DELETE FROM UU WHERE pk = 1 -> 1
        {insert}
        SELECT * FROM UU -> [[1 11] [2 16038]]
        REPLACE INTO UU VALUES "(5,5)" -> 1
        INSERT INTO UU VALUES "(6,6)" "(5,7)" -> !CONSTRAINT 23505 ...
        SELECT "count(*)" FROM UU WHERE pk = 6 -> [[0]]
    "#
    );
    run(&mut client, &script);
}

/// The worked case 28 of the inventory, with numbers as AlchemyDB writes them.
#[test]
fn numbers_of_128_bits_need_no_quotes() {
    let place = Place::new();
    let (_ours, mut client) = start(&place);
    let script = r#"
        CREATE TABLE uUX "(pk INT, cu U128)"
        CREATE UNIQUE INDEX ux ON uUX "(cu)"
        INSERT INTO uUX VALUES "(111,888|9999)" "(333,222|777)" -> 2
        SELECT "*" FROM uUX WHERE "cu=888|9999" -> [[111 888|9999]]
        INSERT INTO uUX VALUES "(5,0222|777)" -> !CONSTRAINT 23505 ...
        INSERT INTO uUX VALUES "(5,1|18446744073709551616)" -> !ERR 22003 ...
        UPDATE uUX SET "cu = 1|2" WHERE "pk = 111" -> 1
        SELECT pk FROM uUX WHERE "cu BETWEEN 0|9 AND 9|0" -> [[111]]
        CREATE TABLE mci "(pk U128 PRIMARY KEY, fk U128, col U128)"
        CREATE INDEX both_ ON mci "(fk, col)"
        INSERT INTO mci VALUES "(0|1,333|44,55|777)" "(1|0,333|44,55|778)" "(0|2,333|44,55|777)" -> 3
        SELECT pk FROM mci WHERE "fk=333|44 AND col=55|777 ORDER BY pk" -> [[0|1] [0|2]]
        SELECT fk FROM mci WHERE "pk = 1|0" -> [[333|44]]
        CREATE TABLE board "(userid INT PRIMARY KEY, score U128)"
        CREATE UNIQUE INDEX i_bd ON board "(score)"
        INSERT INTO board VALUES "(1,500|1)" "(2,100|2)" "(3,900|3)" "(4,500|2)"
        SELECT "userid,i_bd.pos()" FROM board WHERE "score BETWEEN 0|0 AND 999|999" -> [[2 1] [1 2] [4 3] [3 4]]
    "#;
    run(&mut client, script);
    assert!(shown(&client.call(words("DESC board"))).contains("U128"));
}

#[test]
fn rules_of_words_are_those_of_sql() {
    let place = Place::new();
    let (ours, mut client) = start(&place);
    run(
        &mut client,
        r#"
        CREATE TABLE t "(pk INT, a TEXT)"
        INSERT INTO t VALUES "(1,'x')"
        ACL SETUSER none on >p +@all -sql -sql_ro ~*
        ACL SETUSER reader on >p +sql_ro %R~^t
        ACL SETUSER writer on >p +sql ~^t
        ACL DRYRUN none DELETE FROM t -> This user has no permissions to run the 'sql' command
    "#,
    );
    let as_user = |user: &str, script: &str| {
        let mut client = Client::connect(&ours.socket);
        client.line(&format!("AUTH {user} p"));
        run(&mut client, script);
    };
    as_user(
        "none",
        "DELETE FROM t -> !NOPERM this user has no permissions to run the 'sql' command\nSELECT 0 -> OK",
    );
    as_user("none", "SELECT * FROM t -> !NOPERM ...");
    as_user("reader", "SELECT a FROM t -> [[x]]\nSCAN a FROM t -> [[x]]\nDELETE FROM t -> !NOPERM ...\nSELECT 0 -> !NOPERM ...");
    as_user(
        "writer",
        "INSERT INTO t VALUES (2,'y') -> 1\nSELECT count(*) FROM t -> [[2]]\nDROP TABLE t -> !NOPERM ...",
    );
}

#[test]
fn rows_become_keys_and_keys_rows() {
    let place = Place::new();
    let (ours, mut client) = start(&place);
    let script = r#"
        CREATE TABLE users "(id INTEGER PRIMARY KEY, name TEXT, age INT)"
        INSERT INTO users VALUES "(1,'Ada',36)" "(2,'Ben',20)" "(3,'Cyd',NULL)"
        SELECT "id, name" FROM users STORE HSET names -> 3
        HGET names 2 -> Ben
        SELECT "age, name" FROM users WHERE "age > 1" STORE ZADD by_age -> 2
        ZRANGE by_age 0 -1 -> [Ben Ada]
        SELECT "id, age, name" FROM users WHERE "age > 1 STORE ZADD user:$" -> 2
        ZSCORE user:1 Ada -> 36
        SELECT name FROM users ORDER BY id STORE RPUSH list -> 3
        SQL "SELECT name FROM users WHERE id < ? STORE SADD some" 3 -> 2
        SELECT "id, age" FROM users STORE HSET ages -> !ERR 42804 HSET takes no NULL...
        EXISTS ages -> 0
        SELECT id FROM users STORE LPUSH names -> !ERR 38000 WRONGTYPE...
        CREATE TABLE l AS LRANGE list 0 -1 -> 0
        SELECT * FROM l -> [[1 Ada] [2 Ben] [3 Cyd]]
        CREATE TABLE z AS ZRANGEBYSCORE by_age 30 40 -> 0
        SELECT * FROM z -> [[1 Ada 36.0]]
        CREATE TABLE IF NOT EXISTS z AS LRANGE list 0 -1 -> 0
        CREATE TABLE h AS DUMP names -> 0
        SELECT "group_concat(name || value)" FROM h -> [[1Ada,2Ben,3Cyd]]
        CREATE TABLE h AS DUMP names -> !ERR 42P07 ...
        CREATE TABLE none AS DUMP nothing -> !ERR 42P01 no such key: nothing
        CREATE TABLE bad AS HGETALL list -> !ERR 38000 WRONGTYPE...
        SELECT * FROM bad -> !ERR 42P01 ...
        SELECT id FROM users WHERE "name IN (LRANGE list 0 1)" -> [[1] [2]]
        SELECT id FROM users WHERE "name IN ($SMEMBERS some) AND age IN (20, 21)" -> [[2]]
        SQL "SELECT id FROM users WHERE name IN (SMEMBERS ?)" some -> [[1] [2]]
        SELECT "u.id, h.value FROM users u JOIN redis('HGETALL', 'names') h ON h.name = u.id WHERE u.id > 2" -> [[3 Cyd]]
        DELETE FROM users WHERE "name IN (LRANGE list 2 2)" -> 1
        SELECT value FROM "redis('SET', 'a', 'b')" -> !ERR 0A000 redis() takes commands that read keys: SET
        DENORM users "user:*" -> !ERR 38000 WRONGTYPE...
        DEL user:1 user:2
        DENORM users "user:*" -> 2
        HGET user:1 name -> Ada
        DROP TABLE users
        NORM "user:*" -> 2
        SELECT "\x22pk\x22, id, name, age FROM \x22user\x22" -> [[1 1 Ada 36] [2 2 Ben 20]]
        SET u:1:name Ada
        SET u:1:payment:card 42
        SET u:2:payment:card 43
        NORM u:* payment -> 3
        SELECT "\x22pk\x22, name FROM u" -> [[1 Ada]]
        SELECT card FROM u_payment -> [[42] [43]]
    "#;
    run(&mut client, &script.replace("\\x22", "`"));
    // All of it is a part of the transaction around it, and needs the rights for each of its commands.
    run(&mut client, "MULTI\nSELECT name FROM u STORE SET copy\nGET copy\nEXEC -> [1 Ada]");
    let script = "redis.call('SELECT', 'name', 'FROM', 'u', 'STORE', 'SET', 'other') error('no')";
    assert!(shown(&client.call(["EVAL", script, "0"])).starts_with('!'));
    run(&mut client, "EXISTS other -> 1\nACL SETUSER app on >p +sql +set ~^u ~copy*");
    let mut app = Client::connect(&ours.socket);
    app.line("AUTH app p");
    run(
        &mut app,
        "SELECT name FROM u STORE SET copy1 -> 1\nSELECT name FROM u STORE SET mine -> !NOPERM 42501 ...\n\
         SELECT name FROM u STORE LPUSH copy -> !NOPERM 42501 ...\nSELECT 1 WHERE \"1 IN (LRANGE list 0 1)\" -> !NOPERM 42501 ...",
    );
}

#[test]
fn keys_of_more_names_than_columns_are_no_table() {
    let place = Place::new();
    let (_ours, mut client) = start(&place);
    let fill = "for i = 1, 2100 do redis.call('SET', 'w:1:c' .. i, i) end";
    client.call(["EVAL", fill, "0"]);
    let told = shown(&client.call(["NORM", "w:*"]));
    assert!(told.starts_with('!') && told.contains("54000 a table has 2000 columns at most"), "{told}");
    run(&mut client, "SHOW TABLES -> []");
}

#[test]
fn functions_of_libraries_are_functions_of_sql() {
    let place = Place::new();
    let (ours, mut client) = start(&place);
    let library = "#!lua name=prices
        redis.register_function('gross', function(net, rate) return tostring(net * (1 + rate)) end)
        redis.register_function('seen', function(name) return redis.call('INCR', 'seen:' .. name) end)
        redis.register_function{function_name = 'pure', callback = function(a) return {a, 1} end, flags = {'no-writes'}}
        redis.register_function('count', function(a) return 'wrong' end)
        redis.register_function('deep', function() return redis.call('SQL', 'SELECT deep()')[1][1] end)
        redis.register_function('forever', function() while true do end end)
        redis.register_function('fails', function(a) error('on purpose') end)";
    let item = r#"CREATE TABLE item "(id INTEGER PRIMARY KEY, name TEXT, net REAL)"
        INSERT INTO item VALUES (1,'bread',2) (2,'corn',4)"#;
    run(&mut client, item);
    assert_eq!(
        shown(&client.call(["SQL", "SELECT gross(1, 2)"])),
        "!ERR 42883 no such function: gross (at byte 7)"
    );
    assert_eq!(shown(&client.call(["FUNCTION", "LOAD", library])), "prices");
    run(
        &mut client,
        r#"
        SELECT "name, gross(net, 0.25)" FROM item WHERE "gross(net, 0.25) + 0 < 4" -> [[bread 2.5]]
        SELECT "seen(name), count(*) FROM item GROUP BY name" -> [[1 1] [1 1]]
        GET seen:corn -> 1
        SELECT pure(name) FROM item -> [[["bread",1]] [["corn",1]]]
        SQL_RO "SELECT pure(1)" -> [[["1",1]]]
        SQL_RO "SELECT seen(1)" -> !READONLY 25006 ...
        UPDATE item SET "name = name || fails(1)" -> !ERR 38000 ...
        SELECT "deep()" -> !ERR 38000 ...
        CONFIG SET script-time-limit 200 -> OK
        SELECT "forever()" -> !...
        CONFIG SET script-time-limit 60000 -> OK
        CREATE FUNCTION "gross(a, b) AS 'return 7'"
        SELECT "gross(1, 2)" -> [[7]]
        DROP FUNCTION gross
        SELECT "gross(1, 2)" -> [[3]]
        FUNCTION DELETE prices -> OK
        SELECT "gross(1, 2)" -> !...
    "#,
    );
    assert_eq!(shown(&client.call(["FUNCTION", "LOAD", library])), "prices");
    run(&mut client, "ACL SETUSER app on >p +sql +luafunc +incr ~^item ~seen:bread");
    let mut app = Client::connect(&ours.socket);
    app.line("AUTH app p");
    run(&mut app, "SELECT seen(name) FROM item WHERE id = 1 -> [[2]]\nSELECT seen(name) FROM item WHERE id = 2 -> !NOPERM 42501 ...");
    run(
        &mut client,
        "ACL SETUSER app -luafunc\nMULTI\nSELECT \"seen('bread')\"\nGET seen:bread\nEXEC -> [[[3]] 3]",
    );
    run(&mut app, "SELECT gross(1,2) -> !NOPERM 42501 ...");
}

#[test]
fn luafunc_calls_functions_of_sql() {
    let place = Place::new();
    let (_ours, mut client) = start(&place);
    assert_eq!(
        shown(&client.call([
            "INTERPRET",
            "LUA",
            "function twice(x) return 2 * x end\nfunction kind(x) return type(x) end"
        ])),
        "0"
    );
    run(
        &mut client,
        r#"
        LUAFUNC twice 21 -> 42
        LUAFUNC twice 1.25 -> 2.5
        LUAFUNC kind 7 -> number
        LUAFUNC kind seven -> string
        LUAFUNC kind -> !ERR 42883 wrong number...
        LUAFUNC nothing 1 -> !ERR Function not found
        SELECT "twice(3), kind('x')" -> [[6 string]]
        CREATE TABLE t "(pk INT, a TEXT)"
        CREATE FUNCTION "seen(t, a) AS 'redis.call([[RPUSH]], t, a)'"
        CREATE LUATRIGGER l ON t INSERT "seen(table, a)"
        INSERT INTO t VALUES "(1,'x')" "(2,'y')"
        LRANGE t 0 -1 -> [x y]
    "#,
    );
}

/// The function runs on one server at a time, goes on after servers end, and what it does is one transaction with its turn.
#[test]
fn a_function_runs_at_intervals_on_one_server() {
    let place = Place::new();
    let settings = || Settings::default().with("luacronfunc-interval", "20").expect("a setting");
    let first = Ours::start(&place, settings());
    let mut client = Client::connect(&first.socket);
    let library = "#!lua name=cron
        redis.register_function('beat', function(commands)
            redis.call('RPUSH', 'beats', redis.call('INCR', 'count')) return commands end)
        redis.register_function('fails', function() redis.call('RPUSH', 'failed', 1) error('on purpose') end)";
    client.call(["FUNCTION", "LOAD", library]);
    run(&mut client, "CONFIG SET luacronfunc beat -> OK");
    let beat = |client: &mut Client, wanted: usize| {
        assert_eq!(shown(&client.line("BLPOP beats 120")), format!("[beats {wanted}]"));
    };
    (1..=3).for_each(|wanted| beat(&mut client, wanted));
    // A user's rights do not matter, and neither does what the user `default` may.
    run(&mut client, "ACL SETUSER default -luafunc -incr");
    (4..=5).for_each(|wanted| beat(&mut client, wanted));
    // What is due while no server runs is run once, and each beat is counted once.
    drop(client);
    drop(first);
    let second = Ours::start(&place, settings());
    let third = second.beside(&place);
    let mut client = Client::connect(&second.socket);
    let mut last = 5;
    for _ in 0..5 {
        let told = shown(&client.line("BLPOP beats 120"));
        let number = told.trim_start_matches("[beats ").trim_end_matches(']').parse().expect("a number");
        assert_eq!(number, last + 1);
        last = number;
    }
    drop(third);
    run(&mut client, "CONFIG SET luacronfunc fails -> OK");
    assert_eq!(shown(&client.line("BLPOP failed 120")), "[failed 1]");
    assert_eq!(shown(&client.line("BLPOP failed 120")), "[failed 1]");
}

#[test]
fn the_guides_examples_answer_as_it_says() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/from-alchemydb.md");
    let guide = std::fs::read_to_string(path).expect("the guide");
    let blocks: Vec<&str> =
        guide.split("```text\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert!(blocks.len() >= 4 && blocks.iter().all(|block| block.contains(" -> ")), "the guide has examples");
    let place = Place::new();
    let (_ours, mut client) = start(&place);
    for block in blocks {
        run(&mut client, block);
    }
}
