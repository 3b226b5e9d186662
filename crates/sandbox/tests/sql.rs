//! Functions of SQL in Lua: where they stand in statements, what they ask for, what ends them, who sees them.

#[path = "sql/calls.rs"]
mod calls;

use std::path::PathBuf;
use std::rc::Rc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use std::{env, fs, process, thread};

use perilune::{Database, Session};
use perilune_sandbox::sql::{Limits, LuaFunctions};
use perilune_sandbox::SCRIPT_STACK;
use perilune_sql::{Connection, Error, Nowhere, SqlState, Terms, Value};

/// A directory with a database of its own.
struct Place(PathBuf);

impl Place {
    fn new() -> Place {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = env::temp_dir().join(format!("perilune-sandbox-sql-{}-{number}", process::id()));
        fs::create_dir_all(&path).expect("a directory");
        Place(path)
    }

    fn open(&self) -> Sql {
        self.open_within(Limits::default())
    }

    fn open_within(&self, limits: Limits) -> Sql {
        let session =
            Database::open(self.0.join("t.db")).and_then(|database| database.session()).expect("a session");
        let sql = Connection::open().expect("a connection");
        sql.set_interpreter(Rc::new(LuaFunctions::new(limits)));
        Sql { session, sql }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

struct Sql {
    session: Session,
    sql: Connection,
}

impl Sql {
    fn run(&mut self, text: &str) {
        self.sql.execute_script(&mut self.session, text).unwrap_or_else(|error| panic!("{text}: {error}"));
    }

    /// The rows as text: columns parted by `|`, rows by blanks; or the error, its state first.
    fn told(&mut self, text: &str) -> String {
        let shown = |value: &Value| match value {
            Value::Null => "NULL".to_owned(),
            Value::Integer(integer) => integer.to_string(),
            Value::Real(real) => format!("{real:?}"),
            Value::Text(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            Value::Blob(bytes) => format!("x{bytes:02x?}"),
        };
        let row = |row: &[Value]| row.iter().map(shown).collect::<Vec<_>>().join("|");
        match self.sql.query(&mut self.session, text, &[]) {
            Ok(rows) => rows.iter().map(row).collect::<Vec<_>>().join(" "),
            Err(error) => format!("{}: {error}", error.state()),
        }
    }

    fn error(&mut self, text: &str) -> Error {
        self.sql.query(&mut self.session, text, &[]).expect_err(text)
    }
}

/// Runs `test` with the stack that functions may take.
fn on_a_large_stack(test: impl FnOnce() + Send + 'static) {
    let thread = thread::Builder::new().stack_size(SCRIPT_STACK).spawn(test).expect("a thread");
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
}

#[test]
fn functions_stand_wherever_expressions_do() {
    on_a_large_stack(|| {
        let place = Place::new();
        let mut s = place.open();
        s.run(
            "CREATE FUNCTION gross(net, rate) DETERMINISTIC AS 'return net * (1 + rate)';
             CREATE FUNCTION initial(name) LANGUAGE LUA AS 'return name:sub(1, 1)';
             CREATE FUNCTION is_even(n) AS 'return n % 2 == 0';
             CREATE FUNCTION answer() AS 'return 42';
             CREATE TABLE item(id INTEGER PRIMARY KEY, name TEXT, net REAL CHECK (is_even(net)), n INT DEFAULT (answer()),
                               info JSON);
             INSERT INTO item(name, net, info) VALUES ('apple', 2, '{\"a\": {\"b\": 8}}'), ('bread', gross(2, 1), NULL);",
        );
        assert_eq!(s.told("SELECT name, gross(net, 0.5), n FROM item"), "apple|3|42 bread|6|42");
        assert_eq!(s.told("SELECT name FROM item WHERE gross(net, 1) > 6 AND is_even(net)"), "bread");
        assert_eq!(s.told("SELECT name FROM item ORDER BY gross(net, -2)"), "bread apple");
        assert_eq!(s.told("SELECT initial(name), count(*) FROM item GROUP BY initial(name)"), "a|1 b|1");
        assert_eq!(s.told("SELECT gross(info.a.b, 0.5) FROM item WHERE id = 1"), "12");
        s.run("UPDATE item SET net = gross(net, 1) WHERE initial(name) = 'a'");
        assert_eq!(s.told("SELECT net FROM item ORDER BY id"), "4.0 4.0");
        assert_eq!(s.error("INSERT INTO item(name, net) VALUES ('x', 3)").state(), SqlState::CHECK);
        assert_eq!(s.told("SELECT sum(gross(net, 1)) OVER (ORDER BY id) FROM item"), "8 16");
        s.run("CREATE VIEW dear AS SELECT name, gross(net, 9) AS g FROM item");
        assert_eq!(s.told("SELECT * FROM dear"), "apple|40 bread|40");
        s.run("CREATE TRIGGER named AFTER INSERT ON item BEGIN UPDATE item SET name = initial(NEW.name) WHERE id = NEW.id; END");
        s.run("INSERT INTO item(name, net) VALUES ('corn', 2)");
        assert_eq!(s.told("SELECT name FROM item WHERE id = 3"), "c");
    });
}

#[test]
fn values_keep_their_types() {
    on_a_large_stack(|| {
        let place = Place::new();
        let mut s = place.open();
        s.run(
            "CREATE FUNCTION same(x) AS 'return x'; CREATE FUNCTION kind(x) AS 'return type(x)';
             CREATE FUNCTION list() AS 'return {1, 2.5, \"a\"}'; CREATE FUNCTION map() AS 'return {a = {b = true}}';
             CREATE FUNCTION two() AS 'return 1, 2'; CREATE FUNCTION none() AS '';",
        );
        assert_eq!(
            s.told("SELECT same(NULL), same(7), same(-0.5), same('a''b'), same(1e300)"),
            "NULL|7|-0.5|a'b|1e300"
        );
        assert_eq!(
            s.told("SELECT typeof(same(7)), typeof(same(0.5)), typeof(same('7')), typeof(same(x'ff00'))"),
            "integer|real|text|blob"
        );
        assert_eq!(
            s.told("SELECT kind(NULL), kind(7), kind('7'), kind(9223372036854775807)"),
            "nil|number|string|string"
        );
        assert_eq!(
            s.told("SELECT same(9007199254740992), same(9007199254740993)"),
            "9007199254740992|9007199254740993"
        );
        assert_eq!(
            s.told("SELECT list(), map(), two(), none()"),
            "[1,2.5,\"a\"]|{\"a\":{\"b\":true}}|1|NULL"
        );
        assert_eq!(s.told("SELECT value FROM json_each(list())"), "1 2.5 a");
    });
}

#[test]
fn errors_say_where_and_what() {
    on_a_large_stack(|| {
        let place = Place::new();
        let mut s = place.open();
        assert!(s.told("CREATE FUNCTION f(x) AS 'return return'").starts_with("42611: function f: f:1:"));
        s.run("CREATE FUNCTION f(x) AS 'local y = x\n return y.z.w'");
        let told = s.told("SELECT f('a')");
        assert!(told.starts_with("38000: function f: f:2: attempt to index"), "{told}");
        assert!(s.told("CREATE FUNCTION f(x) AS 'return 1'").contains("CREATE OR REPLACE FUNCTION"));
        assert!(s.told("CREATE FUNCTION upper(x) AS 'return 1'").starts_with("42P07"));
        assert!(
            s.told("SELECT f(1, 2)").contains("wrong number of arguments"),
            "{}",
            s.told("SELECT f(1, 2)")
        );
        assert!(s.told("SELECT nowhere(1)").contains("no such function"));
        s.run("DROP FUNCTION f; DROP FUNCTION IF EXISTS f");
        assert!(s.told("SELECT f(1)").contains("no such function"));
        assert_eq!(s.error("DROP FUNCTION f").state(), SqlState::NO_FUNCTION);
        // A connection without an interpreter says so.
        s.run("CREATE FUNCTION f(x) AS 'return x'");
        let bare = Connection::open().expect("a connection");
        let error = bare.query(&mut s.session, "SELECT f(1)", &[]).expect_err("there is no Lua");
        assert!(error.message().contains("perilune sql"), "{error}");
    });
}

#[test]
fn a_change_is_seen_by_others_at_their_next_statement() {
    on_a_large_stack(|| {
        let place = Place::new();
        let (mut s, mut other) = (place.open(), place.open());
        s.run("CREATE FUNCTION f() AS 'return 1'");
        assert_eq!(other.told("SELECT f()"), "1");
        s.run("CREATE OR REPLACE FUNCTION f() AS 'return 2'");
        assert_eq!((other.told("SELECT f()"), s.told("SELECT f()")), ("2".into(), "2".into()));
        s.run("CREATE OR REPLACE FUNCTION f(x) AS 'return x + 2'");
        assert_eq!(other.told("SELECT f(1)"), "3");
        other.run("DROP FUNCTION f");
        assert!(s.told("SELECT f(1)").contains("no such function"));
    });
}

#[test]
fn functions_run_statements_in_the_same_transaction() {
    on_a_large_stack(|| {
        let place = Place::new();
        let mut s = place.open();
        s.run(
            "CREATE TABLE account(name TEXT PRIMARY KEY, money INT CHECK (money >= 0));
             INSERT INTO account VALUES ('ann', 100), ('ben', 0);
             CREATE FUNCTION move(a, b, sum) AS '
                 SQL(\"UPDATE account SET money = money + ? WHERE name = ?\", sum, b)
                 SQL(\"UPDATE account SET money = money - ? WHERE name = ?\", sum, a)
                 return SQL(\"SELECT money FROM account WHERE name = ?\", a)[1].money';
             CREATE FUNCTION try(a, b, sum) AS '
                 local ok, why = pcall(SQL, \"UPDATE account SET money = money - ?\", sum)
                 return ok and \"moved\" or why';
             CREATE FUNCTION twice(a, b, sum) AS '
                 return SQL(\"SELECT move(?1, ?2, ?3) + move(?1, ?2, ?3) AS sum\", a, b, sum)[1].sum';",
        );
        assert_eq!(s.told("SELECT move('ann', 'ben', 30)"), "70");
        let refused = s.told("SELECT move('ann', 'ben', 300)");
        assert!(refused.starts_with("38000: function move:") && refused.contains("23514"), "{refused}");
        assert_eq!(s.told("SELECT money FROM account ORDER BY name"), "70 30", "nothing is left of it");
        // What fails leaves nothing of itself, and the function may go on.
        let caught = s.told("SELECT try('ann', 'ben', 50)");
        assert!(caught.contains("23514"), "{caught}");
        assert_eq!(s.told("SELECT money FROM account ORDER BY name"), "70 30");
        s.run(
            "CREATE FUNCTION try_move(a, b, sum) AS '
                 local ok, why = pcall(SQL, \"SELECT move(?1, ?2, ?3)\", a, b, sum)
                 return ok and \"moved\" or why';",
        );
        let caught = s.told("SELECT try_move('ann', 'ben', 300)");
        assert!(caught.contains("23514"), "{caught}");
        assert_eq!(s.told("SELECT money FROM account ORDER BY name"), "70 30", "also where a SELECT writes");
        assert_eq!(s.told("SELECT twice('ann', 'ben', 5)"), "125");
        assert_eq!(s.told("SELECT money FROM account ORDER BY name"), "60 40");
        s.run("BEGIN");
        s.told("SELECT move('ann', 'ben', 10)");
        s.run("ROLLBACK");
        assert_eq!(s.told("SELECT money FROM account ORDER BY name"), "60 40");
        // Who may only read cannot write by a function.
        let terms = Terms { read_only: true, ..Terms::default() };
        let only_reads =
            |s: &mut Sql, text: &str| s.sql.run_under(&mut s.session, text, &[], &terms, &mut Nowhere);
        let error = only_reads(&mut s, "SELECT move('ann', 'ben', 1)").expect_err("it writes");
        assert!(error.message().contains("25006"), "{error}");
        assert!(only_reads(&mut s, "SELECT money FROM account").is_ok());
        assert!(s.told("SELECT twice('x')").contains("wrong number"));
    });
}

#[test]
fn functions_that_meet_others_run_again() {
    const TIMES: i64 = 100;
    let place = Place::new();
    {
        let mut s = place.open();
        s.run(
            "CREATE TABLE t(id INTEGER PRIMARY KEY, n INT); INSERT INTO t VALUES (1, 0);
             CREATE FUNCTION count_up() AS 'local n = SQL(\"SELECT n FROM t WHERE id = 1\")[1].n
                 pcall(SQL, \"UPDATE t SET n = ? WHERE id = 1\", n + 1) return n + 1';",
        );
    }
    thread::scope(|scope| {
        for _ in 0..3 {
            thread::Builder::new()
                .stack_size(SCRIPT_STACK)
                .spawn_scoped(scope, || {
                    let mut s = place.open();
                    for _ in 0..TIMES {
                        let told = s.told("SELECT count_up()");
                        assert!(told.parse::<i64>().is_ok(), "{told}");
                    }
                })
                .expect("a thread");
        }
    });
    assert_eq!(place.open().told("SELECT n FROM t"), (3 * TIMES).to_string());
}

#[test]
fn limits_end_what_takes_too_much() {
    on_a_large_stack(|| {
        let place = Place::new();
        let limits = Limits { memory: 8 << 20, time: Some(Duration::from_millis(500)), ..Limits::default() };
        let mut s = place.open_within(limits);
        s.run(
            "CREATE FUNCTION forever() AS 'while true do pcall(error) end';
             CREATE FUNCTION large() AS 'return #(\"x\"):rep(64 * 1024 * 1024)';
             CREATE FUNCTION deep(n) AS 'return SQL(\"SELECT deep(?) AS d\", n + 1)[1].d';
             CREATE FUNCTION wait() AS 'return SQL(\"SELECT forever() AS f\")[1].f';
             CREATE FUNCTION out() AS 'return io or os or debug or require or load';
             CREATE FUNCTION keep() AS 'string.x = 1';",
        );
        let begun = Instant::now();
        for text in ["SELECT forever()", "SELECT wait()"] {
            let error = s.error(text);
            assert!(
                error.state() == SqlState::CANCELLED || error.message().contains("57014"),
                "{text}: {error}"
            );
        }
        assert!(begun.elapsed() < Duration::from_secs(20));
        assert!(s.told("SELECT large()").contains("memory"), "{}", s.told("SELECT large()"));
        let deep = s.told("SELECT deep(1)");
        assert!(deep.contains("deep"), "{deep}");
        let out = s.told("SELECT out()");
        assert!(out.starts_with("38000"), "{out}");
        assert!(s.told("SELECT keep()").starts_with("38000"));
        s.run("CREATE FUNCTION f() AS 'return 1'");
        assert_eq!(s.told("SELECT f()"), "1", "the connection goes on");
    });
}

#[test]
fn functions_reach_nodes_in_the_same_transaction() {
    on_a_large_stack(|| {
        let place = Place::new();
        let mut s = place.open();
        s.run(
            "CREATE TABLE t(id INTEGER PRIMARY KEY, n INT CHECK (n < 3)); INSERT INTO t VALUES (1, 1), (2, 2);
             CREATE FUNCTION note(n) AS 'local seen = perilune.node(\"^seen\") seen.last.__ = n return seen.count:incr()';
             CREATE FUNCTION seen(name) AS 'return perilune.node(\"^seen\")(name).__';
             CREATE FUNCTION row_of(id) AS 'return perilune.node(\"^t\", id):data()';
             CREATE FUNCTION try() AS 'local ok, why = pcall(function() return perilune.node(\"local\"):get() end) return why';",
        );
        assert_eq!(s.told("SELECT note(n) FROM t"), "1 2");
        assert_eq!(s.told("SELECT seen('last'), seen('count'), seen('none'), row_of(2)"), "2|2|NULL|1");
        // What fails takes back what its functions have set.
        assert!(s.told("UPDATE t SET n = n + note(7)").starts_with("23514"));
        assert_eq!(s.told("SELECT seen('last'), seen('count')"), "2|2");
        let node = perilune::node!("^seen", "count").expect("a node");
        assert_eq!(perilune::Session::get_int(&mut s.session, &node).expect("a look"), Some(2));
        let terms = Terms { read_only: true, ..Terms::default() };
        let refused = s.sql.run_under(&mut s.session, "SELECT note(1)", &[], &terms, &mut Nowhere);
        assert!(refused.expect_err("it writes").message().contains("read-only"));
        assert!(s.told("SELECT try()").contains("begin with ^"), "{}", s.told("SELECT try()"));
    });
}

#[test]
fn deterministic_functions_ask_for_nothing() {
    on_a_large_stack(|| {
        let place = Place::new();
        let mut s = place.open();
        s.run(
            "CREATE FUNCTION asks() DETERMINISTIC AS 'return SQL(\"SELECT 1 AS one\")[1].one';
             CREATE FUNCTION looks() DETERMINISTIC AS 'return perilune.node(\"^x\"):get()';
             CREATE FUNCTION twice(x) DETERMINISTIC AS 'return 2 * x';",
        );
        for text in ["SELECT asks()", "SELECT looks()"] {
            let told = s.told(text);
            assert!(told.starts_with("38000") && told.contains("DETERMINISTIC"), "{told}");
        }
        assert_eq!(s.told("SELECT twice(21)"), "42");
    });
}

#[test]
fn aggregates_answer_for_groups() {
    on_a_large_stack(|| {
        let place = Place::new();
        let limits = Limits { memory: 8 << 20, time: Some(Duration::from_secs(1)), ..Limits::default() };
        let mut s = place.open_within(limits);
        s.run(
            "CREATE TABLE sale(id INTEGER PRIMARY KEY, city TEXT, n INT);
             INSERT INTO sale(city, n) VALUES ('Oslo', 2), ('Rome', 3), ('Oslo', 5), ('Rome', NULL), ('Bonn', NULL);
             CREATE AGGREGATE product(n) AS 'local p
                 return {step = function(n) if n then p = (p or 1) * n end end, final = function() return p end}';
             CREATE AGGREGATE joined(text, sign) AS 'local all = {}
                 return {step = function(text, sign) all[#all + 1] = text .. sign end,
                         final = function() return table.concat(all) end}';
             CREATE AGGREGATE rows_of() AS 'local n = 0 return {step = function() n = n + 1 end, final = function() return n end}';
             CREATE AGGREGATE stored(n) AS 'local last
                 return {step = function(n) last = n end,
                         final = function() SQL(\"INSERT INTO sale(city, n) VALUES (?, ?)\", \"new\", last) return last end}';
             CREATE AGGREGATE fails(n) AS 'return {step = function(n)
                 error(\"no\") end, final = function() end}';
             CREATE AGGREGATE ends_badly(n) AS 'return {step = function() end, final = function() return nil + 1 end}';
             CREATE AGGREGATE endless(n) AS 'return {step = function() end, final = function() while true do end end}';
             CREATE AGGREGATE large(n) AS 'local s = \"xy\" return {step = function() s = s:rep(1000) end, final = function() end}';
             CREATE AGGREGATE empty(n) AS '';",
        );
        assert_eq!(s.told("SELECT product(n) FROM sale"), "30");
        assert_eq!(
            s.told("SELECT city, product(n) FROM sale GROUP BY city ORDER BY city"),
            "Bonn|NULL Oslo|10 Rome|3"
        );
        assert_eq!(
            s.told("SELECT joined(city, '.') FROM (SELECT city FROM sale ORDER BY id)"),
            "Oslo.Rome.Oslo.Rome.Bonn."
        );
        assert_eq!(s.told("SELECT city FROM sale GROUP BY city HAVING product(n) > 5"), "Oslo");
        assert_eq!(s.told("SELECT product(n), rows_of(), joined(n, ',') FROM sale WHERE id < 0"), "NULL|0|");
        assert_eq!(s.told("SELECT product(DISTINCT n) FILTER (WHERE n > 2), rows_of() FROM sale"), "15|5");
        let rows: String =
            (1..=1000).map(|n| if n == 1 { "(1)".to_owned() } else { ", (1)".to_owned() }).collect();
        assert_eq!(s.told(&format!("SELECT rows_of(), product(column1) FROM (VALUES {rows})")), "1000|1");
        assert_eq!(s.told("SELECT stored(n) FROM (SELECT n FROM sale WHERE n = 5)"), "5");
        assert_eq!(s.told("SELECT n FROM sale WHERE city = 'new'"), "5");
        let told = s.told("SELECT fails(n) FROM sale");
        assert!(told.starts_with("38000: function fails: fails:2: no"), "{told}");
        assert!(s
            .told("SELECT ends_badly(n) FROM sale")
            .starts_with("38000: function ends_badly: ends_badly:1:"));
        assert!(s.told("SELECT endless(n) FROM sale").starts_with("57014"));
        assert!(s.told("SELECT large(n) FROM sale").contains("memory"));
        let told = s.told("SELECT empty(n) FROM sale");
        assert!(told.contains("{step = function, final = function}"), "{told}");
        assert!(s.told("SELECT product(n, 1) FROM sale").contains("wrong number of arguments"));
        // A statement that fails before its group ends does not call it.
        s.run("CREATE FUNCTION stops(n) AS 'error(\"stopped\", 0)'");
        assert_eq!(s.told("SELECT stored(stops(n)) FROM sale"), "38000: function stops: stopped");
        assert_eq!(s.told("SELECT count(*) FROM sale WHERE city = 'new'"), "1");
        s.run("CREATE VIEW products AS SELECT city, product(n) AS p FROM sale GROUP BY city");
        assert_eq!(s.told("SELECT p FROM products WHERE city = 'Oslo'"), "10");
        s.run("CREATE OR REPLACE FUNCTION product(n) AS 'return n'");
        assert_eq!(s.told("SELECT product(7)"), "7");
        s.run("DROP AGGREGATE joined");
        assert!(s.told("SELECT joined(n, 1) FROM sale").contains("no such function"));
    });
}

#[test]
fn functions_answer_rows() {
    on_a_large_stack(|| {
        let place = Place::new();
        let limits = Limits { memory: 8 << 20, time: Some(Duration::from_secs(1)), ..Limits::default() };
        let mut s = place.open_within(limits);
        s.run(
            "CREATE TABLE t(id INTEGER PRIMARY KEY, name TEXT); INSERT INTO t VALUES (1, 'one'), (2, 'two'), (5, 'five');
             CREATE FUNCTION series(low, high) RETURNS TABLE(n) AS 'local n = low - 1
                 return function() n = n + 1 if n <= high then return n end end';
             CREATE FUNCTION squares(high) RETURNS TABLE(n, square) DETERMINISTIC AS 'local rows = {}
                 for n = 1, high do rows[n] = n % 2 == 0 and {n, n * n} or {square = n * n, n = n} end return rows';
             CREATE FUNCTION words(text) RETURNS TABLE(word) LANGUAGE lua AS 'return text:gmatch(\"%a+\")';
             CREATE FUNCTION pairs_of(json) RETURNS TABLE(key, value) AS 'return pairs(cjson.decode(json))';
             CREATE FUNCTION names() RETURNS TABLE(id, name) AS 'return SQL(\"SELECT id, upper(name) AS name FROM t ORDER BY id DESC\")';
             CREATE FUNCTION none() RETURNS TABLE(n) AS '';
             CREATE FUNCTION endless() RETURNS TABLE(n) AS 'return function() return 1 end';
             CREATE FUNCTION large() RETURNS TABLE(n) AS 'return function() return (\"x\"):rep(100000) end';
             CREATE FUNCTION breaks() RETURNS TABLE(n) AS 'local n = 0
                 return function() n = n + 1 if n == 3 then error(\"no more\") end return n end';
             CREATE FUNCTION wrong() RETURNS TABLE(n) AS 'return 7';",
        );
        assert_eq!(s.told("SELECT n FROM series(2, 4)"), "2 3 4");
        assert_eq!(s.told("SELECT * FROM squares(3)"), "1|1 2|4 3|9");
        assert_eq!(s.told("SELECT word, count(*) FROM words('a b, a') GROUP BY word"), "a|2 b|1");
        assert_eq!(s.told("SELECT value FROM pairs_of('{\"x\": 7}')"), "7");
        assert_eq!(s.told("SELECT name FROM names() LIMIT 2"), "FIVE TWO");
        assert_eq!(s.told("SELECT count(*) FROM none()"), "0");
        assert_eq!(
            s.told("SELECT t.name, s.n FROM t JOIN series(1, t.id) AS s ON s.n > 1 ORDER BY t.id, s.n"),
            "two|2 five|2 five|3 five|4 five|5"
        );
        assert_eq!(s.told("SELECT n FROM series(1, 6) LEFT JOIN t ON t.id = n WHERE name IS NULL"), "3 4 6");
        assert_eq!(s.told("SELECT name FROM t WHERE id IN (SELECT n FROM series(2, 9))"), "two five");
        assert_eq!(s.told("SELECT name FROM t WHERE id IN series(2, 9)"), "two five");
        s.run("INSERT INTO t SELECT n, 'new' FROM series(10, 11); CREATE VIEW few AS SELECT n FROM series(1, 2)");
        assert_eq!(s.told("SELECT (SELECT count(*) FROM t), (SELECT sum(n) FROM few)"), "5|3");
        assert_eq!(s.told("SELECT a.n, b.n FROM series(1, 2) a, series(3, 3) b"), "1|3 2|3");
        assert!(
            s.told("SELECT * FROM series(1)").contains("wrong number of arguments"),
            "{}",
            s.told("SELECT * FROM series(1)")
        );
        assert!(s.told("SELECT * FROM series(1, 2, 3)").contains("too many arguments"));
        assert!(s.told("DELETE FROM series").starts_with("4"));
        let told = s.told("SELECT * FROM breaks()");
        assert!(told.starts_with("38000: function breaks: breaks:2: no more"), "{told}");
        assert!(s.told("SELECT * FROM wrong()").contains("an iterator, or a list of rows"));
        for text in ["SELECT * FROM endless() LIMIT 1", "SELECT * FROM large()"] {
            let told = s.told(text);
            assert!(told.contains("memory") || told.starts_with("57014"), "{told}");
        }
        assert!(s.told("CREATE FUNCTION t(n) RETURNS TABLE(a) AS ''").starts_with("42P07"));
        assert!(s.told("CREATE FUNCTION json_each(n) RETURNS TABLE(a) AS ''").starts_with("42P07"));
        assert!(s.told("CREATE FUNCTION graph_out(n) RETURNS TABLE(a) AS ''").starts_with("42P07"));
        s.run("CREATE OR REPLACE FUNCTION series(low, high) RETURNS TABLE(m, n) AS 'return {{high, low}}'");
        assert_eq!(s.told("SELECT * FROM series(1, 6)"), "6|1");
        s.run("DROP FUNCTION series");
        assert!(
            s.told("SELECT * FROM series(1, 6)").contains("no such table"),
            "{}",
            s.told("SELECT * FROM series(1, 6)")
        );
    });
}

#[test]
fn triggers_change_rows_and_refuse_them() {
    on_a_large_stack(|| {
        let place = Place::new();
        let limits = Limits { time: Some(Duration::from_secs(1)), ..Limits::default() };
        let mut s = place.open_within(limits);
        s.run(
            "CREATE TABLE item(id INTEGER PRIMARY KEY, name TEXT UNIQUE, net REAL NOT NULL, big INT, info JSON,
                               twice REAL AS (net * 2));
             CREATE INDEX by_net ON item(net); CREATE TABLE log(what TEXT, id INT);
             CREATE TRIGGER tidy BEFORE INSERT ON item FOR EACH ROW LANGUAGE lua AS '
                 new.name = new.name:lower()
                 if new.name == \"skip\" then return false end
                 if new.name == \"bad\" then error(\"no bad ones\", 0) end
                 new.net = new.net or 1
                 if new.name == \"list\" then new.info = {tags = {\"a\", \"b\"}} end';
             CREATE TRIGGER note AFTER INSERT ON item LANGUAGE lua AS '
                 new.name = \"unheard\"
                 SQL(\"INSERT INTO log VALUES (?, ?)\", \"new \" .. new.name, new.id)';
             CREATE TRIGGER dearer BEFORE UPDATE OF net ON item WHEN (NEW.net < OLD.net) LANGUAGE lua AS '
                 new.net = old.net + 1';
             CREATE TRIGGER stays BEFORE DELETE ON item LANGUAGE lua AS '
                 if old.id == 1 then error(old.name .. \" stays\") end
                 return old.id ~= 2';",
        );
        s.run(
            "INSERT INTO item(name, net, big) VALUES ('APPLE', 2, 9223372036854775807), ('Skip', 1, 1), ('Bread', NULL, 2),
                                                     ('LIST', 4, NULL)",
        );
        assert_eq!(
            s.told("SELECT id, name, net, big, twice FROM item"),
            "1|apple|2.0|9223372036854775807|4.0 2|bread|1.0|2|2.0 3|list|4.0|NULL|8.0"
        );
        assert_eq!(s.told("SELECT info.tags FROM item WHERE id = 3"), "[\"a\",\"b\"]");
        assert_eq!(
            s.told("SELECT id FROM item WHERE name = 'apple' AND net = 2"),
            "1",
            "its indexes hold what was written"
        );
        assert_eq!(s.told("SELECT count(*), max(what) FROM log"), "3|new unheard");
        // What is refused leaves nothing of its statement.
        assert_eq!(
            s.told("INSERT INTO item(name, net) VALUES ('corn', 1), ('BAD', 1)"),
            "38000: trigger tidy: no bad ones"
        );
        assert_eq!(s.told("SELECT (SELECT count(*) FROM item), (SELECT count(*) FROM log)"), "3|3");
        assert!(s.told("INSERT INTO item(name, net) VALUES ('Apple', 1)").starts_with("23505"));
        s.run("UPDATE item SET net = net - 1 WHERE id = 1; UPDATE item SET net = 7 WHERE id = 2");
        assert_eq!(s.told("SELECT net FROM item ORDER BY id"), "3.0 7.0 4.0");
        assert_eq!(s.told("INSERT INTO item(name, net) VALUES ('DILL', 5) RETURNING name, net"), "dill|5.0");
        let told = s.told("DELETE FROM item");
        assert!(told.starts_with("38000: trigger stays: trigger stays:2: apple stays"), "{told}");
        s.run("DELETE FROM item WHERE id > 1");
        assert_eq!(s.told("SELECT id FROM item"), "1 2", "what a trigger answers false for stays");
    });
}

#[test]
fn hostile_triggers_end_as_functions_do() {
    on_a_large_stack(|| {
        let place = Place::new();
        let limits = Limits { time: Some(Duration::from_secs(1)), ..Limits::default() };
        let mut s = place.open_within(limits);
        s.run("CREATE TABLE log(what TEXT, id INT)");
        for (body, wanted) in [
            ("while true do end", "57014"),
            ("new.nowhere = 1", "38000: trigger t: there is no column nowhere"),
            ("new.name = print", "38000"),
            ("new[1] = 2 new[\"1\"] = 2", "38000"),
            ("SQL(\"INSERT INTO other VALUES (1)\")", "38000"),
            ("new.n = 300 new.n = {{{}}}", "23514"),
        ] {
            s.run("CREATE TABLE IF NOT EXISTS other(n INT CHECK (typeof(n) = 'integer'), name TEXT)");
            let body = body.replace('\'', "''");
            s.run(&format!("CREATE TRIGGER t BEFORE INSERT ON other LANGUAGE lua AS '{body}'"));
            let told = s.told("INSERT INTO other(n) VALUES (7)");
            assert!(told.starts_with(wanted), "{body}: {told}");
            s.run("DROP TRIGGER t");
        }
        s.run("INSERT INTO other(n) VALUES (7)");
        assert_eq!(s.told("SELECT * FROM other"), "7|NULL");
        assert!(s
            .told("CREATE TRIGGER t BEFORE INSERT ON other LANGUAGE lua AS 'return return'")
            .starts_with("42611: trigger t:"));
        assert!(s.told("CREATE TRIGGER t BEFORE INSERT ON other LANGUAGE perl AS ''").starts_with("0A000"));
        // Those of one kind fire by their names, whatever they are written in.
        s.run(
            "CREATE TABLE o(a TEXT); CREATE TRIGGER a2 BEFORE INSERT ON o BEGIN INSERT INTO log VALUES (NEW.a || '2', 0); END;
             CREATE TRIGGER a1 BEFORE INSERT ON o LANGUAGE lua AS 'new.a = new.a .. \"1\"';
             CREATE TRIGGER a3 BEFORE INSERT ON o LANGUAGE lua AS 'new.a = new.a .. \"3\"';
             INSERT INTO o VALUES ('x');",
        );
        assert_eq!(s.told("SELECT (SELECT a FROM o), (SELECT what FROM log WHERE id = 0)"), "x13|x12");
        // Another connection has it at its next statement; one without Lua says so, and writes nothing.
        assert_eq!(place.open().told("INSERT INTO o VALUES ('y') RETURNING a"), "y13");
        let bare = Connection::open().expect("a connection");
        let error =
            bare.query(&mut s.session, "INSERT INTO o VALUES ('z')", &[]).expect_err("there is no Lua");
        assert!(error.message().contains("perilune sql"), "{error}");
        s.run("DROP TABLE o");
    });
}

#[test]
fn the_words_of_alchemydb_make_triggers() {
    on_a_large_stack(|| {
        let place = Place::new();
        let mut s = place.open();
        s.run(
            "CREATE TABLE t(id INTEGER PRIMARY KEY, n INT); CREATE TABLE log(what TEXT, id INT, n INT);
             CREATE FUNCTION add_it(name, id) AS 'SQL(\"INSERT INTO log VALUES (?, ?, 0)\", \"add \" .. name, id)';
             CREATE FUNCTION was(id, n) AS 'SQL(\"INSERT INTO log VALUES (?, ?, ?)\", \"was\", id, n)';
             CREATE FUNCTION is(id, n) AS 'if n > 9 then error(\"too much\", 0) end
                 SQL(\"INSERT INTO log VALUES (?, ?, ?)\", \"is\", id, n)';
             CREATE FUNCTION gone(id) AS 'SQL(\"INSERT INTO log VALUES (?, ?, 0)\", \"gone\", id)';
             CREATE LUATRIGGER lt ON t INSERT \"add_it(table, id)\"; CREATE LUATRIGGER lt ON t DELETE 'gone(id)';
             CREATE LUATRIGGER lt ON t PREUPDATE \"was(id, n)\"; CREATE LUATRIGGER lt ON t POSTUPDATE \"is(id, n)\";
             INSERT INTO t VALUES (1, 2); UPDATE t SET n = 3; DELETE FROM t;",
        );
        assert_eq!(s.told("SELECT * FROM log"), "add t|1|0 was|1|2 is|1|3 gone|1|0");
        s.run("INSERT INTO t VALUES (2, 2)");
        assert_eq!(s.told("UPDATE t SET n = 10"), "38000: function is: too much");
        assert_eq!(s.told("SELECT n FROM t"), "2");
        assert!(s.told("CREATE LUATRIGGER lt ON t INSERT 'gone(id)'").starts_with("42P07"));
        assert!(s.told("CREATE LUATRIGGER x ON t BEFORE 'gone(id)'").starts_with("42601"));
        assert!(s.told("CREATE LUATRIGGER x ON t INSERT 'gone(id); DROP TABLE t'").starts_with("42601"));
        s.run("DROP LUATRIGGER lt; INSERT INTO t VALUES (3, 3)");
        assert_eq!(s.told("SELECT count(*) FROM log WHERE id = 3"), "0");
        assert!(s.told("DROP LUATRIGGER lt").contains("no such trigger"));
    });
}

#[test]
fn functions_of_a_program_have_the_library_of_graphs() {
    on_a_large_stack(|| {
        let place = Place::new();
        let mut s = place.open();
        s.run(
            "CREATE FUNCTION make() AS 'local g = require(\"perilune.graph\").create(perilune.node(\"^g\"))
                 for i = 1, 3 do g:add_vertex(i, {}, {size = i / 2}) end
                 g:add_edge(1, \"TO\", 2) g:add_edge(2, \"TO\", 3)';
             CREATE FUNCTION path(a, b) AS 'local g = require(\"perilune.graph\").open(perilune.node(\"^g\"))
                 local path = g:shortest_path(a, b) return path and tostring(path)';
             CREATE FUNCTION none() AS 'local ok, why = pcall(require(\"perilune.graph\").open, perilune.node(\"^none\")) return why';
             CREATE FUNCTION same() DETERMINISTIC AS 'return #require(\"perilune.graph\").open(perilune.node(\"^g\")):edges()'",
        );
        // What a statement has made is gone with it.
        assert!(s.told("SELECT make(), abs(-9223372036854775807 - 1)").contains("overflow"));
        assert!(s.told("SELECT none()").starts_with("NOT_A_GRAPH: no graph lies at ^none"));
        s.run("SELECT make()");
        assert_eq!(s.told("SELECT path(1, 3), path(3, 1)"), "1-[TO]->2-[TO]->3|NULL");
        assert_eq!(s.told("SELECT group_concat(vertex) FROM graph_out('^g', 1)"), "2");
        assert!(s.told("SELECT same()").contains("DETERMINISTIC"));
        let terms = Terms { read_only: true, ..Terms::default() };
        s.run("CREATE FUNCTION more() AS 'require(\"perilune.graph\").open(perilune.node(\"^g\")):add_vertex(4)'");
        let refused = s.sql.run_under(&mut s.session, "SELECT more()", &[], &terms, &mut Nowhere);
        assert!(refused.expect_err("it writes").message().contains("only statements that read"));
        let read = s.sql.run_under(&mut s.session, "SELECT path(1, 3)", &[], &terms, &mut Nowhere);
        assert!(read.is_ok(), "{read:?}");
        assert_eq!(s.told("SELECT count(*) FROM graph_vertices('^g')"), "3");
    });
}

/// The limit of time was each call's: a statement over many rows went on for as long as it had rows.
#[test]
fn the_calls_of_a_statement_have_their_time_together() {
    on_a_large_stack(|| {
        let place = Place::new();
        let limits = Limits { time: Some(Duration::from_secs(1)), ..Limits::default() };
        let mut s = place.open_within(limits);
        s.run(
            "CREATE FUNCTION busy(n) AS 'local t = {} for i = 1, 100000 do t[i % 64] = tostring(i) end return n';
             CREATE FUNCTION outer(n) AS 'return SQL(\"SELECT busy(?) AS n\", n)[1].n';",
        );
        let many = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000)";
        for name in ["busy", "outer"] {
            let begun = Instant::now();
            let told = s.told(&format!("{many} SELECT sum({name}(i)) FROM n"));
            assert!(told.contains("57014"), "{told}");
            assert!(begun.elapsed() < Duration::from_secs(10));
        }
        assert_eq!(s.told("SELECT busy(7)"), "7", "the next statement has its own");
    });
}

#[test]
fn functions_of_a_text_are_kept_together() {
    on_a_large_stack(|| {
        let place = Place::new();
        let mut s = place.open();
        s.run("INTERPRET LUA 'function one() return 1 end' 'function two(x)\n  return x and 2\nend';");
        assert_eq!(s.told("SELECT one(), two(1)"), "1|2");
        assert!(s
            .told("INTERPRET LUA 'function one() return 3 end\nfunction two() return return end'")
            .starts_with("42611"));
        assert_eq!(s.told("SELECT one()"), "1", "all or none");
        assert!(s.told("INTERPRET LUA 'os.exit()'").contains("line 1"));
        assert!(s.told("INTERPRET LUA").starts_with("42601"));
        assert!(s.told("INTERPRET LUA 'function upper(x) return x end'").starts_with("42P07"));
        let terms = Terms { read_only: true, ..Terms::default() };
        let text = "INTERPRET LUA 'function one() return 4 end'";
        let refused = s.sql.run_under(&mut s.session, text, &[], &terms, &mut Nowhere);
        assert_eq!(refused.expect_err("it defines").state(), SqlState::READ_ONLY);
    });
}

#[test]
fn aggregates_answer_for_windows() {
    on_a_large_stack(|| {
        let place = Place::new();
        let mut s = place.open();
        s.run(
            "CREATE TABLE t(id INTEGER PRIMARY KEY, grp INT, x INT);
             INSERT INTO t(grp, x) VALUES (1, 2), (1, 3), (2, 5), (2, 7), (2, 11);
             CREATE AGGREGATE product(x) AS 'local all = 1
                 return {step = function(x) all = all * x end, final = function() return all end}';
             CREATE AGGREGATE rows() AS 'local n = 0
                 return {step = function() n = n + 1 end, final = function() return n end}';
             CREATE AGGREGATE wrong(x) AS 'return {step = function(x) if x > 5 then error(\"too large\", 0) end end,
                 final = function() return 0 end}';",
        );
        for (over, wanted) in [
            ("ORDER BY id", "2 6 30 210 2310"),
            ("PARTITION BY grp ORDER BY id", "2 6 5 35 385"),
            ("ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW", "2 6 15 35 77"),
            ("ORDER BY id ROWS BETWEEN 1 FOLLOWING AND 2 FOLLOWING", "15 35 77 11 1"),
            ("ORDER BY id ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING EXCLUDE CURRENT ROW", "3 10 21 55 7"),
            ("PARTITION BY grp", "6 6 385 385 385"),
        ] {
            let sql = format!("SELECT product(x) OVER ({over}) FROM t ORDER BY id");
            assert_eq!(s.told(&sql), wanted, "{over}");
            // A sum is what SQLite's is, by the same frames.
            let both = format!(
                "SELECT count(*) FROM (SELECT rows() OVER ({over}) AS a, count(*) OVER ({over}) AS b FROM t) WHERE a <> b"
            );
            assert_eq!(s.told(&both), "0", "{over}");
        }
        assert_eq!(s.told("SELECT product(x) FROM t GROUP BY grp"), "6 385");
        assert!(s.told("SELECT wrong(x) OVER (ORDER BY id) FROM t").contains("too large"));
        assert_eq!(s.told("SELECT product(x) OVER (ORDER BY id) FROM t WHERE id < 2"), "2");
    });
}

#[test]
fn views_are_changed_by_triggers_in_lua() {
    on_a_large_stack(|| {
        let place = Place::new();
        let mut s = place.open();
        s.run(
            "CREATE TABLE item(id INTEGER PRIMARY KEY, name TEXT, net REAL);
             CREATE TABLE log(what TEXT);
             INSERT INTO item VALUES (1, 'bread', 2), (2, 'corn', 4);
             CREATE VIEW dear AS SELECT id, upper(name) AS name, net * 2 AS \"the price\" FROM item;
             CREATE TRIGGER i INSTEAD OF INSERT ON dear LANGUAGE lua AS '
                 SQL(\"INSERT INTO item VALUES (?, lower(?), ? / 2.0)\", new.id, new.name, new[\"the price\"])';
             CREATE TRIGGER u INSTEAD OF UPDATE OF name ON dear WHEN (NEW.name <> OLD.name) LANGUAGE lua AS '
                 SQL(\"UPDATE item SET name = lower(?) WHERE id = ?\", new.name, old.id)
                 SQL(\"INSERT INTO log VALUES (?)\", old.name .. \" is \" .. new.name)';
             CREATE TRIGGER d INSTEAD OF DELETE ON dear LANGUAGE lua AS '
                 if old.id == 1 then error(\"bread stays\", 0) end
                 SQL(\"DELETE FROM item WHERE id = ?\", old.id)';",
        );
        s.run("INSERT INTO dear VALUES (3, 'DILL', 3)");
        s.run("UPDATE dear SET name = 'RYE' WHERE id = 1");
        s.run("UPDATE dear SET name = 'RYE' WHERE id = 1");
        assert!(s.told("DELETE FROM dear").contains("bread stays"));
        s.run("DELETE FROM dear WHERE id = 2");
        assert_eq!(s.told("SELECT * FROM item"), "1|rye|2.0 3|dill|1.5");
        assert_eq!(s.told("SELECT * FROM log"), "BREAD is RYE");
        // Another connection has them, too; and what users call by themselves is no trigger.
        let mut other = place.open();
        other.run("INSERT INTO dear VALUES (4, 'OATS', 1)");
        assert_eq!(s.told("SELECT name FROM item WHERE id = 4"), "oats");
        assert!(s.told("SELECT perilune_instead('i', 1)").starts_with("0A000"));
        s.run("DROP TRIGGER i");
        assert!(
            s.told("INSERT INTO dear VALUES (5, 'X', 1)").contains("cannot modify dear"),
            "{}",
            s.told("INSERT INTO dear VALUES (5, 'X', 1)")
        );
        assert!(s
            .told("CREATE TRIGGER b INSTEAD OF INSERT ON dear LANGUAGE lua AS 'return return'")
            .starts_with("42611"));
    });
}
