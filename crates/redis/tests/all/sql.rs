//! SQL beside Redis's commands: replies, transactions, scripts, rights, limits.

use crate::peer::{Client, Ours, Place, Text};
use perilune_redis::Settings;
use perilune_resp::Answer;

/// A reply on one line.
pub(crate) fn shown(answer: &Answer) -> String {
    match answer {
        Answer::Array(all) => format!("[{}]", all.iter().map(shown).collect::<Vec<_>>().join(" ")),
        Answer::Integer(integer) => integer.to_string(),
        Answer::Null => "-".to_owned(),
        Answer::Double(double) => format!(",{double}"),
        Answer::Error(_) => format!("!{}", answer.to_text()),
        other => other.to_text(),
    }
}

/// A server with a table, and a client.
fn start(place: &Place) -> (Ours, Client) {
    let ours = Ours::start(place, Settings::default());
    let mut client = Client::connect(&ours.socket);
    let create =
        "CREATE TABLE users(id INTEGER PRIMARY KEY, name TEXT UNIQUE, born INT, height REAL, photo BLOB)";
    assert_eq!(shown(&client.call(["SQL", create])), "0");
    (ours, client)
}

/// Decimals come as texts and go as numbers, in both framings.
#[test]
fn decimals_are_exact() {
    let place = Place::new();
    let (_ours, mut client) = start(&place);
    for version in ["2", "3"] {
        client.call(["HELLO", version]);
        let mut sql = |words: &[&str]| shown(&client.call(std::iter::once(&"SQL").chain(words)));
        sql(&["DROP TABLE IF EXISTS item"]);
        assert_eq!(sql(&["CREATE TABLE item(id INTEGER PRIMARY KEY, price DECIMAL(10,2) UNIQUE)"]), "0");
        assert_eq!(sql(&["INSERT INTO item(price) VALUES (?), (?)", "0.10", "12345678.90"]), "2");
        assert!(sql(&["INSERT INTO item(price) VALUES (?)", "0.1"]).starts_with("!CONSTRAINT 23505"));
        assert!(sql(&["INSERT INTO item(price) VALUES (?)", "0.125"]).starts_with("!ERR 22003"));
        let sums = sql(&[
            "SELECT price + ?, price - 0.3, sum(price) OVER () FROM item WHERE price = ?",
            "0.2",
            "0.1",
        ]);
        let wanted = if version == "2" { "[[0.3 -0.2 0.1]]" } else { "[[,0.3 ,-0.2 ,0.1]]" };
        assert_eq!(sums, wanted);
        let all = sql(&["SELECT sum(price) FROM item"]);
        assert_eq!(
            all.replace(',', ""),
            "[[12345679.0]]".replace(".0", if version == "2" { ".0" } else { "" })
        );
        // All digits that a column keeps, as texts and as numbers of the statement; whole ones are integers.
        sql(&["DROP TABLE item"]);
        sql(&["CREATE TABLE item(id INTEGER PRIMARY KEY, price DECIMAL)"]);
        for digits in
            ["-1234567890.12345", "999999999999.999", "0.0001", "123456789012345678", "-0.123456789012345"]
        {
            sql(&["REPLACE INTO item VALUES (1, ?)", digits]);
            let wanted = if version == "2" || !digits.contains('.') {
                format!("[[{digits}]]")
            } else {
                format!("[[,{digits}]]")
            };
            assert_eq!(sql(&["SELECT price FROM item WHERE price = ?", digits]), wanted);
            assert_eq!(sql(&[&format!("SELECT price FROM item WHERE price = {digits}")]), wanted);
            assert_eq!(sql(&["SELECT CAST(price AS TEXT) FROM item"]), format!("[[{digits}]]"));
        }
        assert!(sql(&["INSERT INTO item(price) VALUES (?)", "0.1234567890123456"]).starts_with("!ERR 22003"));
        assert!(sql(&["INSERT INTO item(price) VALUES (1234567890123456789.5)"]).starts_with("!ERR 22003"));
    }
}

#[test]
fn statements_answer_rows_and_counts() {
    let place = Place::new();
    let (ours, mut client) = start(&place);
    let mut sql = |words: &[&str]| shown(&client.call(std::iter::once(&"SQL").chain(words)));
    assert_eq!(
        sql(&[
            "INSERT INTO users(name, born, height) VALUES (?, ?, ?), ('Ben', 1900, 2)",
            "Ada",
            "1815",
            "1.5"
        ]),
        "2"
    );
    assert_eq!(sql(&["SELECT * FROM users ORDER BY id"]), "[[1 Ada 1815 1.5 -] [2 Ben 1900 2.0 -]]");
    assert_eq!(sql(&["SELECT id FROM users WHERE name = ? AND born < ?", "Ada", "1900"]), "[[1]]");
    assert_eq!(sql(&["SELECT name FROM users WHERE name = ?", "' OR 1 --"]), "[]");
    assert_eq!(sql(&["UPDATE users SET born = born + 1 RETURNING born"]), "[[1816] [1901]]");
    assert_eq!(sql(&["DELETE FROM users WHERE id = 2"]), "1");
    for (statement, answer) in [
        ("INSERT INTO users(name) VALUES ('Ada')", "!CONSTRAINT 23505 UNIQUE constraint failed: users.name"),
        ("SELECT * FROM nowhere", "!ERR 42P01 no such table: nowhere (at byte 14)"),
        ("BEGIN", "!ERR 0A000 a transaction here is one of the caller's: MULTI and EXEC, or a script"),
        ("SELECT ?", "!ERR 22023 the statement has 1 parameters, and 0 were given"),
    ] {
        assert_eq!(sql(&[statement]), answer);
    }
    // The row is a node, which programs see.
    let mut session = ours.database.session().expect("a session");
    let row = session.get(&perilune::node!("^users", 1).expect("a node")).expect("a look").expect("a row");
    assert_eq!(row.to_string(), "record(\"Ada\",1816,1.5e0,null)");
    assert_eq!(shown(&client.call(["SQL_RO", "SELECT height FROM users"])), "[[1.5]]");
    assert_eq!(
        shown(&client.call(["SQL_RO", "DELETE FROM users"])),
        "!READONLY 25006 only statements that read are run here"
    );
    client.line("HELLO 3");
    let typed = client.call(["SQL", "SELECT id, height, photo, name FROM users"]);
    assert_eq!(shown(&typed), "[[1 ,1.5 - Ada]]");
}

#[test]
fn statements_and_commands_are_one_transaction() {
    let place = Place::new();
    let (ours, mut client) = start(&place);
    let mut line = |words: &[&str]| shown(&client.call(words));
    line(&["MULTI"]);
    line(&["INCR", "visits"]);
    line(&["SQL", "INSERT INTO users(name) VALUES (?)", "Ada"]);
    line(&["SQL", "INSERT INTO users(name) VALUES (?)", "Ada"]);
    line(&["SQL", "SELECT count(*) FROM users"]);
    // What fails is left out alone, as other commands that fail.
    assert_eq!(line(&["EXEC"]), "[1 1 !CONSTRAINT 23505 UNIQUE constraint failed: users.name [[1]]]");
    line(&["WATCH", "visits"]);
    assert_eq!(shown(&Client::connect(&ours.socket).line("INCR visits")), "2");
    line(&["MULTI"]);
    line(&["SQL", "DELETE FROM users"]);
    assert_eq!(line(&["EXEC"]), "-");
    assert_eq!(line(&["SQL", "SELECT count(*) FROM users"]), "[[1]]");
    let script = "local rows = redis.call('SQL', 'SELECT id, name FROM users WHERE name = ?', ARGV[1])
        redis.call('SET', 'found', rows[1][2])
        redis.call('SQL', 'UPDATE users SET born = ? WHERE id = ?', 1815, rows[1][1])
        if ARGV[2] == 'fail' then error('no') end
        return rows[1][1]";
    assert_eq!(line(&["EVAL", script, "0", "Ada"]), "1");
    assert_eq!(line(&["GET", "found"]), "Ada");
    assert_eq!(line(&["SQL", "SELECT born FROM users"]), "[[1815]]");
    let wrong = line(&["EVAL", "return redis.call('SQL', 'SELECT x FROM users')", "0"]);
    assert!(wrong.contains("42703"), "{wrong}");
    assert_eq!(
        line(&["EVAL_RO", "return redis.pcall('SQL', 'DELETE FROM users').err", "0"]),
        "ERR Write commands are not allowed from read-only scripts."
    );
}

#[test]
fn rules_of_users_are_about_tables() {
    let place = Place::new();
    let (ours, mut client) = start(&place);
    for sql in [
        "CREATE TABLE secret(word TEXT)",
        "INSERT INTO secret VALUES ('swordfish')",
        "CREATE VIEW words AS SELECT length(word) AS length FROM secret",
        "INSERT INTO users(name) VALUES ('Ada')",
    ] {
        client.call(["SQL", sql]);
    }
    client.call("ACL SETUSER app on >p +sql %R~^users %W~^log %R~^words".split(' '));
    client.call(["SQL", "CREATE TABLE log(what TEXT, n INT UNIQUE)"]);
    let mut app = Client::connect(&ours.socket);
    app.line("AUTH app p");
    let mut sql = |statement: &str| shown(&app.call(["SQL", statement]));
    assert_eq!(sql("SELECT name FROM users"), "[[Ada]]");
    assert_eq!(sql("INSERT INTO log VALUES ('seen', 1)"), "1");
    // A view shows what its maker lets it show.
    assert_eq!(sql("SELECT length FROM words"), "[[9]]");
    let refused = [
        ("SELECT word FROM secret", "read secret"),
        ("SELECT count(*) FROM secret", "read secret"),
        ("SELECT name FROM users WHERE name < (SELECT max(word) FROM secret)", "read secret"),
        ("UPDATE users SET name = 'x'", "change users"),
        ("SELECT what FROM log", "read log"),
        ("INSERT INTO log VALUES ('x', 2) RETURNING (SELECT word FROM secret)", "read"),
        (
            "INSERT INTO log VALUES ('x', 1) ON CONFLICT(n) DO UPDATE SET what = (SELECT word FROM secret)",
            "read",
        ),
        ("SELECT sql FROM sqlite_master", "read sqlite_master"),
        ("SELECT name FROM pragma_table_info('secret')", "read pragma_table_info"),
        ("PRAGMA table_info(secret)", "read sqlite_schema"),
        ("DROP TABLE log", "change the schema"),
    ];
    for (statement, what) in refused {
        let (told, wanted) = (sql(statement), format!("!NOPERM 42501 this user may not {what}"));
        assert!(told.starts_with(&wanted), "{statement}: {told}");
    }
    // What was prepared for one user is asked for again for another.
    assert_eq!(shown(&client.call(["SQL", "SELECT word FROM secret"])), "[[swordfish]]");
    assert!(sql("SELECT word FROM secret").starts_with("!NOPERM"));
    assert_eq!(shown(&client.call(["SQL", "SELECT count(*) FROM log"])), "[[1]]");
}

#[test]
fn long_statements_run_aside_and_end() {
    let place = Place::new();
    let settings = Settings::default().with("script-time-limit", "300").expect("a setting");
    let ours = Ours::start(&place, settings);
    let mut client = Client::connect(&ours.socket);
    let count = |to: &str| {
        format!("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n {to}) SELECT count(*) FROM n")
    };
    // Longer than a loop can be spared for.
    assert_eq!(shown(&client.call(["SQL", &count("WHERE i < 50000")])), "[[50000]]");
    let mut request = Vec::new();
    let endless = count("");
    ["SQL", &endless].iter().collect::<perilune_resp::ArgumentsBuf>().write_request(&mut request);
    client.send(&request);
    assert_eq!(shown(&Client::connect(&ours.socket).line("PING")), "PONG");
    let ended = client.receive().expect("a reply");
    assert_eq!(
        shown(&ended),
        "!BUSY 57014 the statement took longer than it may: ask for less of it at a time"
    );
    // What it has written by then is taken back.
    client.call(["SQL", "CREATE TABLE t(i)"]);
    let insert =
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) INSERT INTO t SELECT i FROM n";
    assert!(shown(&client.call(["SQL", insert])).starts_with("!BUSY 57014"));
    assert_eq!(shown(&client.call(["SQL", "SELECT count(*) FROM t"])), "[[0]]");
}

#[test]
fn functions_in_lua_run_within_the_rights_and_limits_of_their_caller() {
    let place = Place::new();
    let settings = Settings::default().with("script-time-limit", "200").expect("a setting");
    let ours = Ours::start(&place, settings);
    let mut client = Client::connect(&ours.socket);
    let mut sql = |text: &str| shown(&client.call(["SQL", text]));
    for text in [
        "CREATE TABLE t(n INT)",
        "CREATE TABLE secret(word TEXT)",
        "INSERT INTO secret VALUES ('swordfish')",
        "CREATE FUNCTION twice(x) AS 'return 2 * x'",
        "CREATE FUNCTION put(n) AS 'SQL(\"INSERT INTO t VALUES (?)\", n) return #SQL(\"SELECT n FROM t\")'",
        "CREATE FUNCTION peep() AS 'return SQL(\"SELECT word FROM secret\")[1].word'",
        "CREATE FUNCTION forever() AS 'while true do end'",
    ] {
        assert!(!sql(text).starts_with('!'), "{text}: {}", sql(text));
    }
    assert_eq!(sql("SELECT twice(21), put(7)"), "[[42 1]]");
    assert!(sql("SELECT forever()").starts_with("!BUSY 57014"));
    assert_eq!(sql("SELECT put(8)"), "[[2]]", "the server goes on");
    // Inside EXEC a function is a part of that transaction.
    for (line, wanted) in [("MULTI", "OK"), ("SET a 1", "QUEUED")] {
        assert_eq!(shown(&client.line(line)), wanted);
    }
    client.call(["SQL", "SELECT put(9)"]);
    assert_eq!(shown(&client.line("EXEC")), "[OK [[3]]]");
    let refused = shown(&client.call(["SQL_RO", "SELECT put(1)"]));
    assert!(refused.starts_with("!ERR 38000") && refused.contains("25006"), "{refused}");
    client.call("ACL SETUSER app on >p +sql %R~^t".split(' '));
    let mut app = Client::connect(&ours.socket);
    app.line("AUTH app p");
    assert_eq!(shown(&app.call(["SQL", "SELECT twice(n) FROM t WHERE n = 7"])), "[[14]]");
    for text in ["SELECT peep()", "SELECT put(1)"] {
        let told = shown(&app.call(["SQL", text]));
        assert!(told.contains("42501"), "{text}: {told}");
    }
    assert!(shown(&app.call(["SQL", "CREATE FUNCTION f() AS 'return 1'"])).starts_with("!NOPERM"));
}

/// A program that opens the database by its server's address runs statements itself, by operations over the wire.
#[test]
fn programs_run_statements_over_the_wire() {
    let place = Place::new();
    let (ours, mut client) = start(&place);
    let remote = perilune::Database::open(format!("unix:{}", ours.socket.display())).expect("the database");
    let (mut session, sql) =
        (remote.session().expect("a session"), perilune_sql::Connection::open().expect("SQL"));
    let script =
        "INSERT INTO users(name, born) VALUES ('Ada', 1815), ('Ben', 1900); CREATE INDEX born ON users(born);
        UPDATE users SET born = born + 1 WHERE born > 1850; BEGIN; DELETE FROM users; ROLLBACK";
    sql.execute_script(&mut session, script).expect("statements");
    assert_eq!(shown(&client.call(["SQL", "SELECT name FROM users WHERE born = 1901"])), "[[Ben]]");
    client.call(["SQL", "ALTER TABLE users ADD city TEXT DEFAULT 'Oslo'"]);
    let rows = sql
        .query(&mut session, "SELECT count(*), min(city) FROM users WHERE born < 1900", &[])
        .expect("rows");
    assert_eq!(rows.at(0), Some(&[perilune_sql::Value::from(1), perilune_sql::Value::from("Oslo")][..]));
}

#[test]
fn functions_call_commands_with_the_rights_of_their_caller() {
    let place = Place::new();
    let (ours, mut client) = start(&place);
    for sql in [
        "CREATE FUNCTION visit(name) AS 'redis.call(\"RPUSH\", \"visits\", name) return client(\"INCR\", \"visit:\" .. name)'",
        "CREATE FUNCTION visits(name) AS 'return tonumber(alchemy(\"GET\", \"visit:\" .. name) or 0)'",
        "CREATE FUNCTION level() AS 'local l = perilune.node(\"^level\") l.__ = (l.__ or 0) + 1 return l.__'",
        "CREATE FUNCTION deep() AS 'return redis.call(\"SQL\", \"SELECT deep()\")[1][1]'",
        "CREATE FUNCTION catches(name) AS 'local e = redis.pcall(\"LPUSH\", \"visit:\" .. name, 1) return e.err'",
        "INSERT INTO users(name) VALUES ('Ada'), ('Ben')",
    ] {
        assert!(!shown(&client.call(["SQL", sql])).starts_with('!'), "{sql}");
    }
    let mut sql = |statement: &str| shown(&client.call(["SQL", statement]));
    assert_eq!(
        sql("SELECT visit(name), visits(name), visits('nobody') FROM users ORDER BY id"),
        "[[1 1 0] [1 1 0]]"
    );
    assert_eq!(sql("SELECT visit(name) FROM users WHERE name = 'Ben'"), "[[2]]");
    assert_eq!(sql("SELECT level() FROM users"), "[[1] [2]]");
    assert!(sql("SELECT catches('Ben')").contains("WRONGTYPE"));
    let deep = sql("SELECT deep()");
    assert!(deep.contains("deep"), "{deep}");
    // What a statement that fails has had done by commands is taken back.
    let failed = sql("UPDATE users SET name = 'x' || visit('Ben')");
    assert!(!failed.starts_with('!'), "{failed}");
    assert!(sql("UPDATE users SET name = substr('y', 1, visit('Ben') * 0 + 1)").starts_with("!CONSTRAINT"));
    assert_eq!(shown(&client.call(["GET", "visit:Ben"])), "4");
    assert_eq!(shown(&client.call(["LRANGE", "visits", "0", "-1"])), "[Ada Ben Ben Ben Ben]");
    // In EXEC they are parts of its transaction.
    client.line("MULTI");
    client.call(["SQL", "SELECT visit('Ada')"]);
    client.line("GET visit:Ada");
    assert_eq!(shown(&client.line("EXEC")), "[[[2]] 2]");
    let refused = shown(&client.call(["SQL_RO", "SELECT visit('Ada')"]));
    assert!(refused.contains("read-only"), "{refused}");
    // The user who may run the statement needs the rights for what its functions do.
    client.call("ACL SETUSER app on >p +sql +get ~visit:A* %R~^users".split(' '));
    let mut app = Client::connect(&ours.socket);
    app.line("AUTH app p");
    assert_eq!(shown(&app.call(["SQL", "SELECT visits('Ada')"])), "[[2]]");
    let refused = shown(&app.call(["SQL", "SELECT visits('Ben')"]));
    assert!(refused.starts_with("!ERR 38000") && refused.contains("NOPERM"), "{refused}");
    let refused = shown(&app.call(["SQL", "SELECT visit('Ada')"]));
    assert!(refused.contains("NOPERM"), "{refused}");
    let refused = shown(&app.call(["SQL", "SELECT level()"]));
    assert!(refused.contains("NOPERM"), "{refused}");
    assert_eq!(shown(&client.call(["GET", "visit:Ada"])), "2");
    drop(ours);
}
