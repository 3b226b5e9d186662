//! Indexes that hold some rows, and those on expressions: who uses them, what they refuse, and that they agree with the rows.

use std::rc::Rc;

use crate::scratch::Scratch;
use perilune::{Node, Session};
use perilune_sql::{
    Asks, Change, Connection, Error, Function, Interpreter, Result, SqlState, Value, ValueRef,
};

fn entries(session: &mut Session, index: &str) -> u64 {
    session.count_valued(&Node::new(&format!("^{index}")).expect("a name")).expect("a count")
}

fn uses(s: &mut Scratch, sql: &str, index: &str) -> bool {
    s.rows(&format!("EXPLAIN QUERY PLAN {sql}")).contains(&format!(" {index}"))
}

#[test]
fn a_partial_index_serves_who_wants_its_rows_alone() -> Result<()> {
    let mut s = Scratch::new("partial");
    s.run(
        "CREATE TABLE t(id INTEGER PRIMARY KEY, a INT, b TEXT, c INT);
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1200)
            INSERT INTO t SELECT i, i % 100, CASE WHEN i % 10 = 0 THEN 'x' || i END, i % 3 FROM n;
        CREATE INDEX few ON t(a) WHERE c = 1 AND b IS NOT NULL;
        CREATE INDEX either ON t(c) WHERE (a < 5 OR b IS NULL);
        CREATE UNIQUE INDEX one ON t(b) WHERE c = 2",
    )?;
    assert_eq!(entries(&mut s.session, "t.few"), 40);
    for (sql, is_used) in [
        ("SELECT id FROM t WHERE a = 30 AND c = 1 AND b > 'x'", true),
        ("SELECT id FROM t x WHERE x.a > 30 AND (x.b IS NOT NULL) AND x.c = 1", true),
        ("SELECT id FROM t WHERE c = 1 AND b LIKE 'x%'", true),
        ("SELECT id FROM t WHERE a = 30 AND c = 1", false),
        ("SELECT id FROM t WHERE a = 30 AND c = 1 AND b > 'x' IS NULL", false),
        ("SELECT id FROM t WHERE a = 30 AND c = 2 AND b > 'x'", false),
        ("SELECT id FROM t WHERE (a = 30 AND c = 1 AND b > 'x') OR id = 3", false),
        ("WITH t AS (SELECT 1 AS id, 30 AS a, 1 AS c, 'y' AS b) SELECT id FROM t WHERE a = 30 AND c = 1 AND b > 'x'", false),
        ("SELECT y.id FROM t y LEFT JOIN t z ON z.id = y.id WHERE z.a = 30 AND z.c = 1 AND z.b > 'x'", false),
    ] {
        assert_eq!(uses(&mut s, sql, "few"), is_used, "{sql}");
    }
    assert!(uses(&mut s, "SELECT id FROM t WHERE c = 1 AND (a < 5 OR b IS NULL)", "either"));
    assert!(uses(&mut s, "SELECT count(*) FROM t WHERE a < 5 OR b IS NULL", "either"));
    assert_eq!(s.rows("SELECT count(*) FROM t WHERE a < 5 OR b IS NULL"), "1092");
    assert_eq!(s.rows("SELECT id FROM t WHERE a = 30 AND c = 1 AND b > 'x'"), "130 430 730 1030");
    s.run("UPDATE t SET c = 2 WHERE id = 130; UPDATE t SET b = NULL WHERE id = 430; DELETE FROM t WHERE id = 730")?;
    assert_eq!(s.rows("SELECT id FROM t WHERE a = 30 AND c = 1 AND b > 'x'"), "1030");
    assert_eq!(entries(&mut s.session, "t.few"), 37);
    s.run("UPDATE t SET a = 31 WHERE id = 1030; INSERT INTO t VALUES (2000, 30, 'young', 1)")?;
    assert_eq!(s.rows("SELECT id FROM t WHERE a = 30 AND c = 1 AND b > 'x'"), "2000");
    // Two rows of one value: only where the index holds both.
    s.run("INSERT INTO t VALUES (3000, 0, 'young', 1)")?;
    assert_eq!(
        s.rows("UPDATE t SET c = 2 WHERE b = 'young'"),
        "23505: UNIQUE constraint failed: t.b",
        "the second is refused"
    );
    s.run("UPDATE t SET c = 2 WHERE id = 3000; REPLACE INTO t VALUES (3001, 0, 'young', 2)")?;
    assert_eq!(s.rows("SELECT id FROM t WHERE b = 'young' ORDER BY id"), "2000 3001");
    s.run("REINDEX t; ANALYZE t")?;
    assert_eq!(s.rows("SELECT id FROM t WHERE b = 'young' AND c = 2"), "3001");
    assert!(s.database.verify().expect("a look").is_sound());
    Ok(())
}

/// An ON serves the table that is joined, and USING names columns of the first table.
#[test]
fn joins_use_what_their_on_implies() -> Result<()> {
    let mut s = Scratch::new("joins");
    s.run(
        "CREATE TABLE t(id INTEGER PRIMARY KEY, a INT, b TEXT, c INT);
        CREATE TABLE u(id INTEGER PRIMARY KEY, a INT, name TEXT);
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1200)
            INSERT INTO t SELECT i, i % 100, CASE WHEN i % 10 = 0 THEN 'x' || i END, i % 3 FROM n;
        INSERT INTO u VALUES (1, 30, 'X30'), (2, 31, 'X40'), (3, NULL, NULL);
        CREATE INDEX few ON t(a) WHERE c = 1 AND b IS NOT NULL;
        CREATE INDEX low ON t(coalesce(b, 'none'))",
    )?;
    for (sql, index, answer) in [
        ("SELECT u.id, t.id FROM u LEFT JOIN t ON t.a = u.a AND t.c = 1 AND t.b > 'x' ORDER BY 1, 2 LIMIT 3", "few", "1|130 1|430 1|730"),
        ("SELECT count(*) FROM u LEFT OUTER JOIN t ON t.c = 1 AND t.b IS NOT NULL AND t.a = u.a", "few", "6"),
        ("SELECT count(*) FROM u JOIN t ON t.a = u.a AND t.c = 1 AND t.b IS NOT NULL", "few", "4"),
        ("SELECT u.id, t.id FROM u LEFT JOIN t ON coalesce(t.b, 'none') = lower(u.name)", "low", "1|30 2|40 3|NULL"),
        ("SELECT u.id, t.id FROM u JOIN t ON lower(u.name) = coalesce(b, 'none')", "low", "1|30 2|40"),
        ("SELECT t.id, u.id FROM t LEFT JOIN u ON u.id = t.id WHERE coalesce(b, 'none') = 'x30'", "low", "30|NULL"),
        ("SELECT t.id FROM t LEFT JOIN u ON u.a = t.a WHERE t.a = 30 AND c = 1 AND b > 'x' ORDER BY t.id", "few", "130 430 730 1030"),
        ("SELECT t.id FROM t JOIN u USING (id) WHERE t.a = 30 AND c = 1 AND b > 'x'", "few", ""),
        ("SELECT t.id FROM t LEFT JOIN u USING (a) WHERE a = 30 AND c = 1 AND b > 'x' ORDER BY t.id LIMIT 1", "few", "130"),
    ] {
        assert!(uses(&mut s, sql, index), "{sql}: {}", s.rows(&format!("EXPLAIN QUERY PLAN {sql}")));
        assert_eq!(s.rows(sql), answer, "{sql}");
    }
    // Rows of t that are none: coalesce makes something of them, and an index of t has no entry.
    for (sql, index, answer) in [
        ("SELECT u.id FROM u LEFT JOIN t ON t.id = -1 WHERE coalesce(t.b, 'none') = 'none'", "low", "1 2 3"),
        ("SELECT count(*) FROM u LEFT JOIN t ON t.id = u.id WHERE t.c = 1 AND t.b IS NOT NULL", "few", "0"),
        ("SELECT count(*) FROM t RIGHT JOIN u ON u.a = t.a AND t.c = 1 AND t.b > 'x'", "few", "6"),
        ("SELECT count(*) FROM u JOIN t USING (a) WHERE a = 30 AND c = 1 AND b > 'x'", "nothing", "4"),
    ] {
        assert!(!uses(&mut s, sql, index), "{sql}");
        assert_eq!(s.rows(sql), answer, "{sql}");
    }
    Ok(())
}

/// ON CONFLICT finds indexes by what they hold and which rows.
#[test]
fn on_conflict_means_partial_indexes_and_expressions() -> Result<()> {
    let mut s = Scratch::new("conflicts");
    s.run(
        "CREATE TABLE t(id INTEGER PRIMARY KEY, name TEXT, live INT, n INT DEFAULT 1, info JSON);
        CREATE UNIQUE INDEX living ON t(name) WHERE live = 1 AND n > 0;
        CREATE UNIQUE INDEX low ON t(lower(name), live COLLATE NOCASE);
        CREATE UNIQUE INDEX code ON t(info.code);
        INSERT INTO t(name, live) VALUES ('Ada', 1), ('Ben', 0)",
    )?;
    s.run(
        "INSERT INTO t(name, live) VALUES ('Ada', 1) ON CONFLICT (name) WHERE t.live = 1 and (n > 0)
        DO UPDATE SET n = n + 1",
    )
    .expect_err("other words");
    s.run(
        "INSERT INTO t(name, live) VALUES ('Ada', 1)
        ON CONFLICT (name) WHERE (live=1 AND n > 0) DO UPDATE SET n = n + 1 WHERE excluded.live = 1",
    )?;
    s.run(
        "INSERT INTO t(name, live) VALUES ('BEN', 0) ON CONFLICT (live, lower(\"NAME\")) DO UPDATE SET n = 7",
    )?;
    s.run(
        "INSERT INTO t(name, live) VALUES ('Cy', 2) ON CONFLICT (name) WHERE live = 1 AND n > 0 DO NOTHING",
    )?;
    s.run("INSERT INTO t(name, info) VALUES ('D', '{\"code\":5}'), ('E', '{\"code\":5}') ON CONFLICT (info.code) DO UPDATE SET n = 9")?;
    assert_eq!(s.rows("SELECT name, n FROM t ORDER BY id"), "Ada|2 Ben|7 Cy|1 D|9");
    // The index of another constraint is in the way.
    let other =
        "INSERT INTO t(name, live) VALUES ('cy', 2) ON CONFLICT (name) WHERE live = 1 AND n > 0 DO NOTHING";
    assert_eq!(s.rows(other), "23505: UNIQUE constraint failed: index 'low'");
    for target in [
        "(name)",
        "(name) WHERE live = 1",
        "(live)",
        "(lower(name))",
        "(name, id)",
        "(lower(name) COLLATE NOCASE, live)",
    ] {
        let sql = format!("INSERT INTO t(name) VALUES ('F') ON CONFLICT {target} DO NOTHING");
        assert!(s.rows(&sql).contains("does not match any"), "{target}: {}", s.rows(&sql));
    }
    for target in ["(id)", "(rowid)", "(id) WHERE n > 5", ""] {
        assert_eq!(
            s.rows(&format!("INSERT INTO t(id) VALUES (1) ON CONFLICT {target} DO NOTHING")),
            "",
            "{target}"
        );
    }
    for target in ["()", "(name) WHERE", "(name) n", "(name"] {
        assert!(
            s.rows(&format!("INSERT INTO t(id) VALUES (1) ON CONFLICT {target} DO NOTHING"))
                .starts_with("42601"),
            "{target}"
        );
    }
    Ok(())
}

#[test]
fn an_index_on_an_expression_is_found_by_it() -> Result<()> {
    let mut s = Scratch::new("expression");
    s.run(
        "CREATE TABLE t(id INTEGER PRIMARY KEY, name TEXT, a INT, b INT, info JSON);
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1200)
            INSERT INTO t SELECT i, 'Name' || i, i, i * 2, json_object('n', i, 'm', i % 7) FROM n;
        CREATE UNIQUE INDEX low ON t(lower(name));
        CREATE INDEX total ON t(t.a + b, id);
        CREATE INDEX inside ON t(info.n + info.m);
        CREATE INDEX extracted ON t(json_extract(info, '$.m'), (a % 10))",
    )?;
    for (sql, index, answer) in [
        ("SELECT id FROM t WHERE lower(name) = 'name7'", "low", "7"),
        ("SELECT id FROM t AS x WHERE lower(X.name) = lower('NAME8')", "low", "8"),
        ("SELECT id FROM t WHERE 'name9' = lower(\"name\")", "low", "9"),
        ("SELECT id FROM t WHERE a + b BETWEEN 30 AND 36", "total", "10 11 12"),
        ("SELECT id FROM t WHERE a+b < 7", "total", "1 2"),
        ("SELECT id FROM t WHERE (a + b) IN (3, 9, 10)", "total", "1 3"),
        ("SELECT id FROM t ORDER BY a + b DESC LIMIT 2", "total", "1200 1199"),
        ("SELECT id FROM t WHERE info.n + info.m = 14", "inside", "14"),
        ("SELECT count(*) FROM t WHERE json_extract(info, '$.m') = 3 AND a % 10 = 3", "extracted", "18"),
    ] {
        assert!(uses(&mut s, sql, index), "{sql}: {}", s.rows(&format!("EXPLAIN QUERY PLAN {sql}")));
        assert_eq!(s.rows(sql), answer, "{sql}");
    }
    assert_eq!(s.rows("SELECT id FROM t WHERE a + b = 3 OR id = 4"), "1 4");
    assert_eq!(s.rows("SELECT x.id FROM t x JOIN t y ON y.id = 5 WHERE x.a + x.b = 9"), "3");
    assert_eq!(s.rows("SELECT id FROM t WHERE name = 'Name3' AND a + b = 9"), "3");
    s.run("UPDATE t SET a = 100000 WHERE id = 1; DELETE FROM t WHERE id = 2; UPDATE t SET info.n = 7 WHERE id = 3")?;
    assert_eq!(s.rows("SELECT id FROM t WHERE a + b > 99999"), "1");
    assert_eq!(s.rows("SELECT id FROM t WHERE info.n + info.m = 10"), "3 5");
    assert_eq!(
        s.rows("INSERT INTO t(name) VALUES ('NAME9')"),
        "23505: UNIQUE constraint failed: index 'low'"
    );
    s.run("REPLACE INTO t(id, name) VALUES (5000, 'NAME9')")?;
    assert_eq!(
        s.rows("SELECT id, (SELECT count(*) FROM t WHERE id = 9) FROM t WHERE lower(name) = 'name9'"),
        "5000|0"
    );
    assert_eq!((entries(&mut s.session, "t.low"), entries(&mut s.session, "t.total")), (1199, 1199));
    s.run("ALTER TABLE t RENAME TO u; ALTER TABLE u RENAME COLUMN a TO first; ALTER TABLE u ADD COLUMN more INT")?;
    assert_eq!(s.rows("SELECT id FROM u WHERE first + b = 12"), "4");
    assert!(s.rows("ALTER TABLE u DROP COLUMN first").contains("an index computes with it"));
    s.run("REINDEX u")?;
    assert_eq!(s.rows("SELECT id FROM u WHERE first + b = 12"), "4");
    Ok(())
}

#[test]
fn what_is_no_index_is_refused() -> Result<()> {
    let mut s = Scratch::new("refused");
    s.run("CREATE TABLE t(id INTEGER PRIMARY KEY, a, b); INSERT INTO t VALUES (1, 1, 'x')")?;
    for (sql, why) in [
        ("CREATE INDEX i ON t(random())", "non-deterministic"),
        ("CREATE INDEX i ON t(a + nope)", "no such column"),
        ("CREATE INDEX i ON t(a) WHERE (SELECT 1)", "subqueries prohibited"),
        ("CREATE INDEX i ON t(a) WHERE b = ?", "parameters prohibited"),
        ("CREATE INDEX i ON t(sum(a))", "misuse of aggregate"),
        ("CREATE INDEX i ON t(a + rowid)", "INTEGER PRIMARY KEY"),
        ("CREATE INDEX i ON t(a) WHERE", "expected a condition"),
        ("CREATE INDEX i ON t(json_extract(b, '$.c'))", "malformed JSON"),
    ] {
        let answer = s.rows(sql);
        assert!(answer.contains(why), "{sql}: {answer}");
        assert_eq!(s.rows("SELECT count(*) FROM t WHERE a = 1"), "1");
    }
    // What no index holds need not be computed; what one holds must be.
    s.run("CREATE INDEX i ON t(json_extract(b, '$.c')) WHERE json_valid(b)")?;
    s.run("CREATE INDEX j ON t(abs(a))")?;
    assert!(s.rows("INSERT INTO t VALUES (2, -9223372036854775808, 'y')").contains("integer overflow"));
    s.run("INSERT INTO t VALUES (3, 1, '{\"c\": 5}')")?;
    assert_eq!(s.rows("SELECT id FROM t WHERE json_valid(b) AND json_extract(b, '$.c') = 5"), "3");
    assert_eq!((entries(&mut s.session, "t.i"), entries(&mut s.session, "t.j")), (1, 2));
    Ok(())
}

/// Runs functions whose bodies say what they do.
struct Words;

impl Interpreter for Words {
    fn check(&self, _: &Function) -> Result<()> {
        Ok(())
    }

    fn call(
        &self,
        function: &Rc<Function>,
        arguments: &[ValueRef<'_>],
        asks: &mut dyn Asks,
        answer: &mut dyn FnMut(ValueRef<'_>),
    ) -> Result<()> {
        answer(match (&function.body[..], arguments.first()) {
            ("double", Some(ValueRef::Integer(integer))) if *integer < 1000 => ValueRef::Integer(integer * 2),
            ("double", Some(ValueRef::Integer(_))) => {
                return Err(Error::new(SqlState::FUNCTION, "too large"))
            }
            ("ask", _) => asks.query("SELECT 1", &[]).map(|_| ValueRef::Integer(1))?,
            _ => ValueRef::Null,
        });
        Ok(())
    }

    fn fold(&self, _: &Function, _: &[Value], _: &mut dyn Asks) -> Result<Value> {
        unreachable!("no aggregate is made")
    }

    fn rows(&self, _: &Function, _: &[Value], _: &mut dyn Asks) -> Result<Vec<Vec<Value>>> {
        unreachable!("no function in FROM is made")
    }

    fn change(&self, _: &Function, _: &Change<'_>, _: &mut dyn Asks) -> Result<Option<Vec<(usize, Value)>>> {
        unreachable!("no trigger is made")
    }
}

#[test]
fn an_index_is_on_a_function_of_the_schema() -> Result<()> {
    let mut s = Scratch::new("functions");
    s.sql.set_interpreter(Rc::new(Words));
    s.run(
        "CREATE TABLE t(id INTEGER PRIMARY KEY, a INT);
        INSERT INTO t VALUES (1, 1), (2, 2), (3, NULL);
        CREATE FUNCTION double(x) DETERMINISTIC AS 'double';
        CREATE FUNCTION loose(x) AS 'double';
        CREATE FUNCTION ask(x) DETERMINISTIC AS 'ask';
        CREATE INDEX i ON t(double(a)) WHERE double(a) > 0",
    )?;
    for (sql, why) in [
        ("CREATE INDEX j ON t(loose(a))", "non-deterministic"),
        ("CREATE INDEX j ON t(ask(a))", "depends on its arguments alone"),
        ("CREATE OR REPLACE FUNCTION double(x) AS 'ask'", "drop the index"),
        ("DROP FUNCTION double", "index i of t is on it"),
        ("INSERT INTO t VALUES (4, 4), (5, 5000)", "too large"),
    ] {
        let answer = s.rows(sql);
        assert!(answer.contains(why), "{sql}: {answer}");
    }
    s.run("UPDATE t SET a = 7 WHERE id = 2; INSERT INTO t VALUES (6, 6)")?;
    let query = "SELECT id FROM t WHERE double(a) > 0 AND double(a) BETWEEN 12 AND 14 ORDER BY double(a)";
    assert!(uses(&mut s, query, "i"));
    assert_eq!(s.rows(query), "6 2");
    assert_eq!(s.rows("SELECT id FROM t WHERE double(a) = 2"), "1");
    // The program's own function of that name is another one: the index does not answer for it, and is not written by it.
    s.sql.set_function("double", Some(1), true, |arguments| match &arguments[0] {
        Value::Integer(integer) => Ok(Value::Integer(integer * 100)),
        _ => Ok(Value::Null),
    })?;
    assert_eq!(s.rows("SELECT id FROM t WHERE double(a) > 0 AND double(a) = 700"), "2");
    let answer = s.rows("INSERT INTO t VALUES (9, 9)");
    assert!(answer.contains("take it back to write the table"), "{answer}");
    s.sql.remove_function("double")?;
    assert_eq!((s.rows(query), s.rows("SELECT count(*) FROM t")), ("6 2".to_owned(), "4".to_owned()));
    // Who has no interpreter reads, and changes nothing.
    s.sql = Connection::open()?;
    assert_eq!(s.rows(query), "6 2");
    for sql in
        ["INSERT INTO t VALUES (8, 8)", "DELETE FROM t WHERE id = 6", "UPDATE t SET a = 1", "REINDEX t"]
    {
        let answer = s.rows(sql);
        assert!(answer.contains("no Lua here"), "{sql}: {answer}");
    }
    assert_eq!((s.rows("SELECT count(*) FROM t"), entries(&mut s.session, "t.i")), ("4".to_owned(), 3));
    s.sql.set_interpreter(Rc::new(Words));
    s.run("DROP INDEX i; DROP FUNCTION double")?;
    Ok(())
}
