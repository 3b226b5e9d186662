//! Statements over tables in the tree: rows, keys, constraints, indexes, changes of the schema, transactions.

use std::rc::Rc;
use std::time::{Duration, Instant};

use crate::scratch::{text, Scratch};
use perilune::{node, Error as EngineError, Value as NodeValue};
use perilune_sql::{Access, Connection, Nowhere, Permit, Result, SqlState, Terms, Value};

#[test]
fn rows_lie_in_the_tree() -> Result<()> {
    let mut s = Scratch::new("tree");
    s.run("CREATE TABLE users(id INTEGER PRIMARY KEY, name TEXT, born INT, city TEXT DEFAULT 'Oslo')")?;
    s.run(
        "INSERT INTO users(id, name, born) VALUES (7, 'Ada', 1815); INSERT INTO users(name) VALUES ('Ben')",
    )?;
    assert_eq!(s.rows("SELECT * FROM users ORDER BY id"), "7|Ada|1815|Oslo 8|Ben|NULL|Oslo");
    let row = s.session.get(&node!("^users", 7)?)?.expect("a row");
    assert_eq!(row.to_string(), "record(\"Ada\",1815,\"Oslo\")");
    s.run("UPDATE users SET city = upper(name) || city WHERE id = 7; DELETE FROM users WHERE name = 'Ben'")?;
    assert_eq!(s.rows("SELECT city FROM users"), "AdaOslo".replace("Ada", "ADA"));
    s.session.set(&node!("^users", "stranger")?, "no row")?;
    assert_eq!(s.rows("SELECT count(*), max(rowid) FROM users"), "1|7");
    // A node that is no row stands behind all rows: the next number is that behind the last row none the less.
    s.run("INSERT INTO users(name) VALUES ('Cyd'); DELETE FROM users WHERE name = 'Cyd'; INSERT INTO users(id) VALUES (1)")?;
    assert_eq!(s.rows("INSERT INTO users(name) VALUES ('Dan') RETURNING id"), "8");
    s.run("DELETE FROM users WHERE id <> 7")?;
    s.run("UPDATE users SET id = 9")?;
    assert_eq!(s.rows("SELECT rowid, id, name FROM users WHERE id > 8.5"), "9|9|Ada");
    assert_eq!(s.session.get(&node!("^users", 7)?)?, None);
    Ok(())
}

#[test]
fn keys_of_texts_name_nodes() -> Result<()> {
    let mut s = Scratch::new("keys");
    s.run("CREATE TABLE line(country TEXT, no INT, what TEXT, PRIMARY KEY(country, no))")?;
    s.run("INSERT INTO line VALUES ('NO', 2, 'b'), ('NO', 1, 'a'), ('DE', 10, 'c')")?;
    assert!(s.session.get(&node!("^line", "NO", 2)?)?.is_some());
    assert_eq!(s.rows("SELECT * FROM line"), "DE|10|c NO|1|a NO|2|b");
    assert_eq!(s.rows("SELECT what FROM line WHERE country = 'NO' AND no > 1"), "b");
    assert_eq!(
        s.rows("INSERT INTO line VALUES ('NO', 1, 'x')"),
        "23505: UNIQUE constraint failed: line.country, line.no"
    );
    s.run("INSERT OR REPLACE INTO line VALUES ('NO', 1, 'x'); UPDATE line SET no = 3 WHERE what = 'b'")?;
    assert_eq!(s.rows("SELECT no, what FROM line WHERE country = 'NO' ORDER BY country, no DESC"), "3|b 1|x");
    s.run("DELETE FROM line WHERE country IN ('NO', 'SE')")?;
    assert_eq!(s.rows("SELECT count(*) FROM line"), "1");
    // Numbers in texts sort as numbers, everywhere alike.
    s.run("CREATE TABLE t(k TEXT PRIMARY KEY); INSERT INTO t VALUES ('10'), ('9'), ('a'), (''), ('09')")?;
    assert_eq!(s.rows("SELECT group_concat(k, ',') FROM t"), ",9,10,09,a");
    assert_eq!(s.rows("SELECT k FROM t WHERE k > '9' ORDER BY k"), "10 09 a");
    assert_eq!(s.rows("SELECT k FROM t WHERE k = 9"), "9");
    assert_eq!(s.rows("INSERT INTO t VALUES (NULL)"), "23502: NOT NULL constraint failed: t.k");
    Ok(())
}

#[test]
fn constraints_hold_and_say_which() -> Result<()> {
    let mut s = Scratch::new("constraints");
    s.run(
        "CREATE TABLE t(id INTEGER PRIMARY KEY, a INT NOT NULL, b TEXT UNIQUE, c INT CHECK (c > 0) DEFAULT 5,
        d INT AS (a + c), CONSTRAINT small CHECK (a < 100))",
    )?;
    s.run("INSERT INTO t(a, b) VALUES (1, 'x')")?;
    assert_eq!(s.rows("SELECT * FROM t"), "1|1|x|5|6");
    for (sql, answer) in [
        ("INSERT INTO t(b) VALUES ('y')", "23502: NOT NULL constraint failed: t.a"),
        ("INSERT INTO t(a, b) VALUES (2, 'x')", "23505: UNIQUE constraint failed: t.b"),
        ("INSERT INTO t(id, a) VALUES (1, 2)", "23505: UNIQUE constraint failed: t.id"),
        ("INSERT INTO t(a, c) VALUES (2, 0)", "23514: CHECK constraint failed: c > 0"),
        ("UPDATE t SET a = 100", "23514: CHECK constraint failed: small"),
        (
            "INSERT INTO t(id, a) VALUES ('x', 2)",
            "42804: datatype mismatch: an INTEGER PRIMARY KEY is an integer",
        ),
        // The third row fails: none stays.
        ("INSERT INTO t(a, b) VALUES (2, 'p'), (3, 'q'), (4, 'x')", "23505: UNIQUE constraint failed: t.b"),
        ("SELECT count(*) FROM t", "1"),
    ] {
        assert_eq!(s.rows(sql), answer, "{sql}");
    }
    s.run("INSERT OR IGNORE INTO t(a, b) VALUES (2, 'x'), (3, 'z')")?;
    s.run("INSERT OR REPLACE INTO t(id, a, b) VALUES (9, 4, 'x')")?;
    assert_eq!(s.rows("SELECT id, a, b, d FROM t ORDER BY id"), "2|3|z|8 9|4|x|9");
    assert_eq!(s.rows("SELECT id FROM t WHERE b = 'x'"), "9");
    s.run("CREATE TABLE seq(id INTEGER PRIMARY KEY AUTOINCREMENT, a); INSERT INTO seq(a) VALUES (1), (2)")?;
    s.run("DELETE FROM seq; INSERT INTO seq(a) VALUES (3)")?;
    assert_eq!(s.rows("SELECT id FROM seq"), "3");
    Ok(())
}

#[test]
fn indexes_answer_what_scans_do() -> Result<()> {
    let mut s = Scratch::new("indexes");
    s.run("CREATE TABLE t(id INTEGER PRIMARY KEY, a, b TEXT, c REAL)")?;
    s.run(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1200)
        INSERT INTO t SELECT i, CASE i % 7 WHEN 0 THEN NULL WHEN 1 THEN 'x' || (i % 5) ELSE i % 50 END,
        CASE i % 3 WHEN 0 THEN NULL ELSE 'n' || (i % 40) END, i / 8.0 FROM n",
    )?;
    let queries = [
        "SELECT count(*), sum(id) FROM t WHERE b = 'n7'",
        "SELECT count(*), sum(id) FROM t WHERE b = 'n7' AND c < 100 AND c >= 10.5",
        "SELECT count(*), sum(id) FROM t WHERE b > 'n3' AND b <= 'n9'",
        "SELECT count(*), sum(id) FROM t WHERE b IS NULL",
        "SELECT count(*), sum(id) FROM t WHERE a = 4",
        "SELECT count(*), sum(id) FROM t WHERE a = '4'",
        "SELECT count(*), sum(id) FROM t WHERE a > 'x1'",
        "SELECT count(*), sum(id) FROM t WHERE c < 1e300 AND c > -1e-300",
        "SELECT count(*) FROM t WHERE c = 9007199254740993 OR c = '9007199254740993' OR c > 9007199254740992",
        "SELECT b, c FROM t WHERE b > 'n35' ORDER BY b DESC, c DESC LIMIT 3 OFFSET 2",
        "SELECT count(*) FROM t x JOIN t y ON x.b = y.b WHERE x.id < 50",
        "SELECT group_concat(id) FROM (SELECT id FROM t WHERE b IN ('n1', 'n2', 'zz') ORDER BY id LIMIT 9)",
        "SELECT max(b), min(c) FROM t",
        "SELECT DISTINCT b FROM t WHERE b < 'n11' ORDER BY b",
    ];
    s.run("UPDATE t SET c = 9007199254740992.0 WHERE id = 1200")?;
    let before: Vec<String> = queries.iter().map(|query| s.rows(query)).collect();
    s.run("CREATE INDEX tb ON t(b, c); CREATE INDEX ta ON t(a); CREATE UNIQUE INDEX tc ON t(c)")?;
    let after: Vec<String> = queries.iter().map(|query| s.rows(query)).collect();
    assert_eq!(before, after);
    let plan = s.rows("EXPLAIN QUERY PLAN SELECT c FROM t WHERE b = 'n7' AND c > 3");
    assert!(plan.contains("=> tb"), "{plan}");
    s.run("UPDATE t SET b = 'moved' WHERE id = 7; DELETE FROM t WHERE id = 8; ANALYZE; REINDEX t")?;
    assert_eq!(s.rows("SELECT id FROM t WHERE b = 'moved'"), "7");
    let entries = s.session.count_valued(&node!("^t.tb")?)?;
    assert_eq!(entries, 1199);
    assert_eq!(s.rows("CREATE UNIQUE INDEX tu ON t(b)"), "23505: UNIQUE constraint failed: t.b");
    assert_eq!(s.session.count_valued(&node!("^t.tu")?)?, 0);
    s.run("DROP INDEX tb; DROP INDEX ta; DROP INDEX tc")?;
    assert_eq!(s.session.count_valued(&node!("^t.tb")?)?, 0);
    Ok(())
}

/// What is left by a process that was killed while it made an index is made whole by the same statement.
#[test]
fn an_index_whose_maker_was_killed_goes_on() -> Result<()> {
    let mut s = Scratch::new("resumed");
    s.run(
        "CREATE TABLE t(id INTEGER PRIMARY KEY, a INT);
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1200)
            INSERT INTO t(a) SELECT i % 10 FROM n;
        CREATE INDEX ta ON t(a)",
    )?;
    let index = node!("^sql", "table", "t", "index", "ta")?;
    let half_made = |s: &mut Scratch| -> Result<()> {
        s.session.set(&index.child("state")?, "building")?;
        s.session.delete_tree(&node!("^t.ta")?)?;
        s.session.increment(&node!("^sql", "version")?, 1)?;
        Ok(())
    };
    half_made(&mut s)?;
    assert!(!s.rows("EXPLAIN QUERY PLAN SELECT id FROM t WHERE a = 3").contains("ta"));
    assert!(s.rows("CREATE UNIQUE INDEX ta ON t(a)").starts_with("42P07"), "it is another one");
    assert!(s.rows("CREATE INDEX ta ON t(id)").starts_with("42P07"), "it is another one");
    for sql in ["CREATE INDEX ta ON t(a)", "CREATE INDEX IF NOT EXISTS ta ON t(a)"] {
        half_made(&mut s)?;
        s.run("UPDATE t SET a = 77 WHERE id = 5")?;
        s.run(sql)?;
        assert_eq!(s.session.count_valued(&node!("^t.ta")?)?, 1200);
        assert!(s.rows("EXPLAIN QUERY PLAN SELECT id FROM t WHERE a = 3").contains("= ta"));
        assert_eq!(s.rows("SELECT id FROM t WHERE a = 77"), "5");
    }
    assert!(s.rows("CREATE INDEX ta ON t(a)").starts_with("42P07"));
    Ok(())
}

#[test]
fn the_schema_changes_under_others() -> Result<()> {
    let mut s = Scratch::new("schema");
    let (other, mut session) = (Connection::open()?, s.database.session()?);
    s.run("CREATE TABLE t(id INTEGER PRIMARY KEY, a INT); INSERT INTO t VALUES (1, 2)")?;
    let mut rows = |sql: &str| match other.query(&mut session, sql, &[]) {
        Ok(rows) => text(&rows),
        Err(error) => error.state().to_string(),
    };
    assert_eq!(rows("SELECT * FROM t"), "1|2");
    s.run("ALTER TABLE t ADD COLUMN b TEXT DEFAULT 'new'; INSERT INTO t(a) VALUES (3)")?;
    assert_eq!(rows("SELECT * FROM t"), "1|2|new 2|3|new");
    s.run("ALTER TABLE t DROP COLUMN a; ALTER TABLE t ADD c INT; UPDATE t SET c = 9 WHERE id = 1")?;
    assert_eq!(rows("SELECT * FROM t"), "1|new|9 2|new|NULL");
    s.run("ALTER TABLE t RENAME COLUMN b TO text; CREATE INDEX i ON t(text); ALTER TABLE t RENAME TO u")?;
    assert_eq!(rows("SELECT * FROM t"), "42P01");
    assert_eq!(rows("SELECT id, text FROM u WHERE text = 'new' ORDER BY id"), "1|new 2|new");
    s.run("CREATE VIEW v AS SELECT text, count(*) AS n FROM u GROUP BY text")?;
    assert_eq!(rows("SELECT * FROM v"), "new|2");
    // The view names a table that has changed, and the statement only the view.
    s.run("ALTER TABLE u ADD d INT; CREATE VIEW w AS SELECT n FROM v")?;
    assert_eq!(rows("SELECT * FROM v"), "new|2");
    assert_eq!(rows("SELECT * FROM w"), "2");
    s.run("ALTER TABLE u DROP COLUMN d")?;
    assert_eq!(rows("SELECT * FROM w"), "2");
    s.run("CREATE TABLE copy AS SELECT id, text AS t FROM u; DROP VIEW v; DROP TABLE u")?;
    assert_eq!(rows("SELECT * FROM copy ORDER BY id DESC"), "2|new 1|new");
    assert_eq!(rows("SELECT * FROM v"), "42P01");
    assert_eq!(s.rows("CREATE TABLE copy(a)"), "42P07: table copy already exists");
    s.session.set(&node!("^taken", 1)?, 1)?;
    assert!(s.rows("CREATE TABLE taken(a)").starts_with("42P07"), "the global holds nodes");
    Ok(())
}

#[test]
fn temporary_views_are_a_connections_own() -> Result<()> {
    let mut s = Scratch::new("temporary");
    s.run("CREATE TABLE t(a INT); INSERT INTO t VALUES (1), (2); CREATE TEMP VIEW v AS SELECT sum(a) AS s FROM t")?;
    assert_eq!(s.rows("SELECT s FROM v"), "3");
    let (other, mut session) = (Connection::open()?, s.database.session()?);
    let error = other.query(&mut session, "SELECT s FROM v", &[]).expect_err("it is not there");
    assert_eq!(error.state(), SqlState::NO_TABLE);
    // It goes on when the schema changes.
    other.execute(&mut session, "ALTER TABLE t ADD b INT", &[])?;
    assert_eq!(s.rows("SELECT s FROM v"), "3");
    assert!(s.rows("CREATE TEMP VIEW v AS SELECT 1").starts_with("42P07"));
    s.run("CREATE TEMPORARY VIEW IF NOT EXISTS v AS SELECT 1; DROP VIEW v")?;
    assert!(s.rows("SELECT s FROM v").starts_with("42P01"));
    assert!(s.rows("CREATE TEMP TABLE x(a)").starts_with("0A000"));
    Ok(())
}

#[test]
fn foreign_keys_hold() -> Result<()> {
    let mut s = Scratch::new("foreign");
    s.run("CREATE TABLE city(name TEXT PRIMARY KEY);
        CREATE TABLE person(id INTEGER PRIMARY KEY, city TEXT REFERENCES city ON DELETE CASCADE ON UPDATE CASCADE,
            boss INT REFERENCES person(id) ON DELETE SET NULL);
        INSERT INTO city VALUES ('Oslo'), ('Rome');
        INSERT INTO person VALUES (1, 'Oslo', NULL), (2, 'Rome', 1), (3, NULL, 2)")?;
    assert!(s.rows("INSERT INTO person VALUES (4, 'Bonn', NULL)").starts_with("23503"));
    s.run("UPDATE city SET name = 'Roma' WHERE name = 'Rome'; DELETE FROM city WHERE name = 'Oslo'")?;
    assert_eq!(s.rows("SELECT * FROM person ORDER BY id"), "2|Roma|NULL 3|NULL|2");
    s.run("CREATE TABLE pet(owner INT REFERENCES person); INSERT INTO pet VALUES (3)")?;
    assert!(s.rows("DELETE FROM person WHERE id = 3").starts_with("23503"));
    Ok(())
}

#[test]
fn transactions_are_whole() -> Result<()> {
    let mut s = Scratch::new("transactions");
    s.run("CREATE TABLE t(id INTEGER PRIMARY KEY, a INT); INSERT INTO t VALUES (1, 0)")?;
    s.run("BEGIN; UPDATE t SET a = 1; SAVEPOINT x; UPDATE t SET a = 2; ROLLBACK TO x; INSERT INTO t VALUES (2, 5)")?;
    assert_eq!(s.rows("INSERT INTO t VALUES (2, 6)"), "23505: UNIQUE constraint failed: t.id");
    s.run("RELEASE x; COMMIT")?;
    assert_eq!(s.rows("SELECT * FROM t"), "1|1 2|5");
    s.run("BEGIN; CREATE TABLE gone(a); INSERT INTO gone VALUES (1); DELETE FROM t; ROLLBACK")?;
    assert_eq!(s.rows("SELECT count(*) FROM t"), "2");
    assert_eq!(s.rows("SELECT * FROM gone"), "42P01: no such table: gone");
    // Another one changes what was read: the transaction is told, and is dead.
    let (other, mut session) = (Connection::open()?, s.database.session()?);
    s.run("BEGIN")?;
    assert_eq!(s.rows("SELECT a FROM t WHERE id = 1"), "1");
    other.execute(&mut session, "UPDATE t SET a = 7 WHERE id = 1", &[])?;
    s.run("UPDATE t SET a = a + 1 WHERE id = 2").ok();
    let error = s.run("COMMIT").expect_err("a conflict");
    assert!([SqlState::CONFLICT, SqlState::DEAD].contains(&error.state()), "{error}");
    s.run("ROLLBACK").ok();
    assert_eq!(s.rows("SELECT * FROM t"), "1|7 2|5");
    // A program's own transaction holds nodes and rows together.
    let sql = &s.sql;
    let result = s.session.transaction(|session| {
        sql.execute(session, "DELETE FROM t", &[])?;
        session.set(&node!("^beside")?, 1)?;
        Err::<(), _>(EngineError::Rollback)
    });
    assert!(matches!(result, Err(EngineError::Rollback)));
    assert_eq!(s.rows("SELECT count(*) FROM t"), "2");
    assert_eq!(s.session.get(&node!("^beside")?)?, None::<NodeValue>);
    Ok(())
}

#[test]
fn errors_say_where_and_what() {
    let mut s = Scratch::new("errors");
    let mut state = |sql: &str| {
        let error = s.sql.query(&mut s.session, sql, &[]).expect_err(sql);
        (error.state().as_str(), error.position())
    };
    assert_eq!(state("SELECT FROM"), ("42601", Some(7)));
    assert_eq!(state("SELECT * FROM nowhere"), ("42P01", Some(14)));
    assert_eq!(state("SELECT nope(1)").0, "42883");
    assert_eq!(state("CREATE TABLE t(a,,)"), ("42601", Some(17)));
    assert_eq!(state("ATTACH 'x' AS y").0, "0A000");
    assert_eq!(state("PRAGMA journal_mode").0, "0A000");
    assert_eq!(state("SELECT ?1").0, "22023");
    assert_eq!(state("SELECT 1; SELECT 2"), ("42601", Some(10)));
    assert_eq!(state("SELECT 'open"), ("42601", Some(7)));
    let long = format!("SELECT {}", "1+".repeat(2000) + "1");
    assert_eq!(state(&long).0, "54000");
    let rows =
        s.sql.query(&mut s.session, "SELECT ?1, ?2", &["'; DROP".into(), Value::Null]).expect("parameters");
    assert_eq!(text(&rows), "'; DROP|NULL");
}

#[test]
fn terms_hold_for_what_the_user_has_written() -> Result<()> {
    let mut s = Scratch::new("terms");
    s.run(
        "CREATE TABLE a(n INTEGER PRIMARY KEY, t TEXT); CREATE TABLE b(n INT); INSERT INTO b VALUES (7);
        CREATE TRIGGER log AFTER INSERT ON a BEGIN INSERT INTO b VALUES (new.n); END;
        CREATE VIEW v AS SELECT count(*) AS rows FROM b",
    )?;
    let permit: Rc<Permit> = Rc::new(|table, access| match access {
        Access::Reads => table == "a" || table == "v",
        Access::Writes => table == "a",
        Access::Defines => false,
    });
    let terms = Terms { permit: Some(permit), ..Terms::default() };
    let mut state = |sql: &str, terms: &Terms| {
        let answer = s.sql.run_under(&mut s.session, sql, &[], terms, &mut Nowhere);
        answer.err().map_or("", |error| error.state().as_str())
    };
    // What triggers and views do was its maker's to decide.
    assert_eq!(state("INSERT INTO a(t) VALUES ('x') RETURNING n", &terms), "");
    assert_eq!(state("SELECT rows FROM v", &terms), "");
    assert_eq!(state("WITH a2 AS (SELECT 1 FROM a) SELECT count(*) FROM a2", &terms), "");
    for sql in [
        "SELECT n FROM b",
        "SELECT 1 FROM b",
        "SELECT (SELECT n FROM b) FROM a",
        "UPDATE a SET t = (SELECT n FROM b)",
        "INSERT INTO a(t) SELECT n FROM b",
        "INSERT INTO a(t) VALUES ('y') RETURNING (SELECT n FROM b)",
        "INSERT INTO a VALUES (1, 'y') ON CONFLICT DO UPDATE SET t = (SELECT n FROM b)",
        "INSERT INTO a VALUES (1, 'y') ON CONFLICT DO UPDATE SET t = 'z' WHERE EXISTS (SELECT 1 FROM b)",
        "DELETE FROM b",
        "DELETE FROM v",
        "CREATE TABLE c(x)",
        "DROP TRIGGER log",
    ] {
        assert!(["42501", "42601"].contains(&state(sql, &terms)), "{sql}");
    }
    let reads = Terms { read_only: true, shared_session: true, ..Terms::default() };
    assert_eq!(state("SELECT n FROM b", &reads), "");
    assert_eq!(state("INSERT INTO b VALUES (1)", &reads), "25006");
    assert_eq!(state("CREATE TABLE c(x)", &reads), "25006");
    assert_eq!(state("BEGIN", &reads), "0A000");
    let brief = Terms { until: Some(Instant::now() + Duration::from_millis(20)), ..Terms::default() };
    let endless =
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) INSERT INTO b SELECT i FROM n";
    assert_eq!(state(endless, &brief), "57014");
    assert_eq!(s.rows("SELECT * FROM b"), "7 1");
    Ok(())
}

#[test]
fn any_subtree_is_a_table() -> Result<()> {
    let mut s = Scratch::new("over");
    let mut set = |node: &str, value: &str| {
        let node = perilune::Node::parse(node).expect("a node");
        s.session.set(&node, value)
    };
    set("^person(7,\"name\")", "Ada")?;
    set("^person(7,\"birth\",\"year\")", "1815")?;
    set("^person(7,\"pets\",1)", "cat")?;
    set("^person(9)", "no name")?;
    set("^person(\"x\",\"name\")", "no number")?;
    set("^shop(\"lines\",\"NO\",2,\"what\")", "b")?;
    set("^shop(\"lines\",\"NO\",10,\"what\")", "c")?;
    set("^shop(\"lines\",\"DE\",1,\"what\")", "a")?;
    set("^shop(\"lines\",\"DE\",\"x\",\"what\")", "no number")?;
    set("^shop(\"other\",1)", "nothing of it")?;
    s.run(
        "CREATE TABLE person OVER ^person(id) (id INTEGER PRIMARY KEY, name TEXT CHECK (name <> 'x'),
            born INT AT (\"birth\", \"year\"), note TEXT AT VALUE);
        CREATE TABLE line OVER ^shop('lines', country, no) (country TEXT, no INT, what TEXT);
        CREATE TABLE peek OVER ^person(id) (id INTEGER, pet TEXT AT ('pets', 1)) READONLY",
    )?;
    assert_eq!(s.rows("SELECT * FROM person"), "7|Ada|1815|NULL 9|NULL|NULL|no name");
    assert_eq!(s.rows("SELECT name FROM person WHERE id = 7 AND born < 1900"), "Ada");
    assert_eq!(s.rows("SELECT id FROM person WHERE id > 6.5 ORDER BY id DESC LIMIT 1"), "9");
    assert_eq!(s.rows("SELECT id, pet FROM peek WHERE id IN (7, 8, 9)"), "7|cat 9|NULL");
    assert_eq!(s.rows("SELECT * FROM line"), "DE|1|a NO|2|b NO|10|c");
    assert_eq!(s.rows("SELECT no FROM line WHERE country = 'NO' ORDER BY country DESC, no DESC"), "10 2");
    assert_eq!(s.rows("SELECT what FROM line WHERE country = 'NO' AND no >= 3"), "c");
    // Written by SQL, read by node, and the other way round.
    s.run("INSERT INTO person(name, born) VALUES ('Ben', 1900); UPDATE person SET name = NULL, note = 'n' WHERE id = 7;
        UPDATE person SET id = 11 WHERE id = 7; INSERT INTO person(id) VALUES (12); DELETE FROM person WHERE id = 9;
        INSERT OR REPLACE INTO line VALUES ('NO', 2, 'z'), ('SE', 1, 's')")?;
    assert_eq!(s.session.get(&node!("^person", 10, "birth", "year")?)?, Some(NodeValue::Int(1900)));
    assert_eq!(s.session.get(&node!("^person", 11, "pets", 1)?)?, Some(NodeValue::String(b"cat".to_vec())));
    assert_eq!(s.session.get(&node!("^person", 11, "name")?)?, None);
    assert_eq!(
        s.session.get(&node!("^shop", "lines", "SE", 1, "what")?)?,
        Some(NodeValue::String(b"s".to_vec()))
    );
    assert!(s.session.data(&node!("^person", 7)?)? == perilune::Data::Nothing);
    assert_eq!(s.rows("SELECT id, name, note FROM person"), "10|Ben|NULL 11|NULL|n 12|NULL|NULL");
    s.session.set(&node!("^person", 13, "name")?, "Cyd")?;
    assert_eq!(s.rows("SELECT max(id), max(name) FROM person"), "13|Cyd");
    // What is dropped is the view of it.
    s.run("ALTER TABLE line RENAME TO lines; DROP TABLE person")?;
    assert_eq!(s.rows("SELECT count(*) FROM lines"), "4");
    assert_eq!(s.session.get(&node!("^person", 13, "name")?)?, Some(NodeValue::String(b"Cyd".to_vec())));
    Ok(())
}

#[test]
fn tables_over_nodes_refuse_what_would_not_hold() -> Result<()> {
    let mut s = Scratch::new("refused");
    s.session.set(&node!("^person", 13, "name")?, "Cyd")?;
    s.run(
        "CREATE TABLE person OVER ^person(id) (id INTEGER PRIMARY KEY, name TEXT CHECK (name <> 'x'));
        CREATE TABLE peek OVER ^person(id) (id INTEGER, pet TEXT AT ('pets', 1)) READONLY; CREATE TABLE own(a)",
    )?;
    for (sql, answer) in [
        ("INSERT INTO person(id, name) VALUES (13, 'y')", "23505: UNIQUE constraint failed: person.id"),
        ("INSERT INTO person(name) VALUES ('x')", "23514: CHECK constraint failed: name <> 'x'"),
        ("DELETE FROM peek", "25006: peek is READONLY: it shows nodes, and changes none"),
        ("CREATE TABLE t OVER ^sql(a) (a TEXT)", "42611: ^sql is kept for other uses: no table lies over it"),
        (
            "CREATE TABLE t OVER ^x(a) (a TEXT, b INT AT ('p'), c INT AT ('p'))",
            "42611: c lies where another column does",
        ),
    ] {
        assert_eq!(s.rows(sql), answer, "{sql}");
    }
    for sql in [
        "CREATE INDEX i ON person(name)",
        "CREATE TABLE t OVER ^x(a) (a TEXT, b INT UNIQUE)",
        "CREATE TABLE t OVER ^x(a, 'x') (a TEXT)",
        "ALTER TABLE person ADD c INT",
    ] {
        assert!(s.rows(sql).starts_with("0A000"), "{sql}");
    }
    assert!(s.rows("CREATE TABLE t OVER ^own(a) (a INTEGER)").starts_with("42P07"));
    // Another connection sees the same table, and what is written by node meanwhile.
    let (other, mut session) = (Connection::open()?, s.database.session()?);
    assert_eq!(text(&other.query(&mut session, "SELECT * FROM person", &[])?), "13|Cyd");
    s.session.set(&node!("^person", 14, "name")?, "Dan")?;
    assert_eq!(text(&other.query(&mut session, "SELECT max(name) FROM person", &[])?), "Dan");
    Ok(())
}

#[test]
fn updates_and_deletes_have_limits() -> Result<()> {
    let mut s = Scratch::new("limits");
    s.run(
        "CREATE TABLE t(id INTEGER PRIMARY KEY, a INT); INSERT INTO t(a) VALUES (5), (3), (4), (1), (2);
        CREATE TABLE k(a TEXT PRIMARY KEY, b INT); INSERT INTO k VALUES ('x', 1), ('y', 2), ('z', 3)",
    )?;
    s.run("UPDATE t SET a = a * 10 WHERE a > 1 ORDER BY a LIMIT 2; DELETE FROM k ORDER BY b DESC LIMIT 1 OFFSET 1")?;
    assert_eq!(s.rows("SELECT a FROM t ORDER BY id"), "5 30 4 1 20");
    assert_eq!(s.rows("SELECT a FROM k"), "x z");
    assert_eq!(s.rows("DELETE FROM t AS u WHERE u.a < 10 LIMIT 2 RETURNING a"), "5 4");
    assert_eq!(s.rows("UPDATE t SET a = 0 LIMIT 0 RETURNING a"), "");
    Ok(())
}

#[test]
fn dropping_a_table_asks_those_that_refer_to_it() -> Result<()> {
    let mut s = Scratch::new("dropped");
    s.run(
        "CREATE TABLE p(id INTEGER PRIMARY KEY); INSERT INTO p VALUES (1), (2);
        CREATE TABLE c(p INT REFERENCES p); INSERT INTO c VALUES (1);
        CREATE TRIGGER t BEFORE DELETE ON p BEGIN SELECT RAISE(ABORT, 'fired'); END",
    )?;
    assert!(s.rows("DROP TABLE p").starts_with("23503"));
    assert_eq!(s.rows("SELECT count(*) FROM p"), "2");
    assert!(s.rows("DELETE FROM p WHERE id = 2").starts_with("P0001"), "the trigger is there again");
    s.run("DELETE FROM c; DROP TABLE p")?;
    s.run(
        "CREATE TABLE p(id INTEGER PRIMARY KEY); CREATE TABLE d(p INT REFERENCES p ON DELETE CASCADE);
        INSERT INTO p VALUES (1); INSERT INTO d VALUES (1); DROP TABLE p",
    )?;
    assert_eq!(s.rows("SELECT count(*) FROM d"), "0");
    Ok(())
}
