//! What SQLite refuses on virtual tables and we run: ON CONFLICT, RETURNING, triggers.

use crate::scratch::{text, Scratch};
use perilune_sql::{Connection, Result, Value};

#[test]
fn a_row_that_is_there_is_updated_instead() -> Result<()> {
    let mut s = Scratch::new("upsert");
    s.run(
        "CREATE TABLE t(id INTEGER PRIMARY KEY, name TEXT UNIQUE, n INT DEFAULT 1 NOT NULL, CHECK (n < 100))",
    )?;
    let upsert = "INSERT INTO t(name) VALUES (?), (?) ON CONFLICT(name) DO UPDATE SET n = n + excluded.n * ?
        WHERE t.n < 50";
    for by in [1_i64, 10, 60, 5] {
        s.sql.execute(&mut s.session, upsert, &["a".into(), "b".into(), by.into()])?;
    }
    assert_eq!(s.rows("SELECT * FROM t ORDER BY id"), "1|a|71 2|b|71");
    s.run("INSERT INTO t(name, n) SELECT 'a', 5 WHERE true ON CONFLICT DO NOTHING")?;
    assert_eq!(s.rows("SELECT count(*), sum(n) FROM t"), "2|142");
    for (sql, answer) in [
        ("INSERT INTO t VALUES (1, 'c', 2) ON CONFLICT(name) DO NOTHING", "23505: UNIQUE constraint failed: t.id"),
        ("INSERT INTO t(name, n) VALUES ('d', NULL) ON CONFLICT DO NOTHING", "23502: NOT NULL constraint failed: t.n"),
        ("INSERT INTO t(name, n) VALUES ('a', 2) ON CONFLICT(name) DO UPDATE SET n = 100", "23514: CHECK constraint failed: n < 100"),
        ("INSERT INTO t VALUES (2, 'z', 3), (9, 'y', 4) ON CONFLICT(id) DO UPDATE SET name = excluded.name RETURNING id, name, n",
         "2|z|71 9|y|4"),
    ] {
        assert_eq!(s.rows(sql), answer, "{sql}");
    }
    s.run("CREATE TABLE k(a TEXT, b INT, n INT, PRIMARY KEY(a, b)); INSERT INTO k VALUES ('x', 1, 1)")?;
    s.run(
        "INSERT INTO k VALUES ('x', 1, 5), ('x', 2, 6) ON CONFLICT(b, a) DO UPDATE SET n = k.n + excluded.n",
    )?;
    assert_eq!(s.rows("SELECT * FROM k"), "x|1|6 x|2|6");
    Ok(())
}

#[test]
fn statements_answer_what_they_have_changed() -> Result<()> {
    let mut s = Scratch::new("returning");
    s.run("CREATE TABLE t(id INTEGER PRIMARY KEY, name TEXT, n INT DEFAULT 5)")?;
    assert_eq!(
        s.rows("INSERT INTO t(name) VALUES ('a'), ('b') RETURNING id, upper(name) AS name, n, rowid"),
        "1|A|5|1 2|B|5|2"
    );
    assert_eq!(s.rows("UPDATE t SET n = n + 1, id = id + 10 WHERE name = 'b' RETURNING *"), "12|b|6");
    let rows = s.sql.query(
        &mut s.session,
        "DELETE FROM t WHERE id = ? RETURNING name || ?, (SELECT count(*) FROM t) AS left_over",
        &[12.into(), "!".into()],
    )?;
    assert_eq!(
        (text(&rows), rows.columns()),
        ("b!|1".into(), &["name || ?2".to_owned(), "left_over".into()][..])
    );
    assert_eq!(s.rows("DELETE FROM t WHERE id = 99 RETURNING id"), "");
    assert!(s.rows("INSERT INTO t(name) VALUES ('c') RETURNING nope").starts_with("42703"));
    assert_eq!(s.rows("SELECT count(*) FROM t"), "1", "a statement that fails has changed nothing");
    Ok(())
}

#[test]
fn triggers_fire_in_the_statements_transaction() -> Result<()> {
    let mut s = Scratch::new("triggers");
    s.run("CREATE TABLE t(id INTEGER PRIMARY KEY, a INT, b TEXT); CREATE TABLE log(what TEXT);
        CREATE TRIGGER t1 AFTER INSERT ON t BEGIN INSERT INTO log VALUES ('in ' || NEW.id || NEW.b); END;
        CREATE TRIGGER t2 AFTER UPDATE OF a ON t WHEN NEW.a <> OLD.a BEGIN
            INSERT INTO log SELECT 'up ' || OLD.a || '>' || NEW.a; UPDATE t SET b = 'changed' WHERE id = NEW.id; END;
        CREATE TRIGGER t3 BEFORE DELETE ON t FOR EACH ROW BEGIN
            SELECT CASE WHEN OLD.a > 9 THEN RAISE(ABORT, 'too dear to lose') END; INSERT INTO log VALUES ('out'); END")?;
    s.run("INSERT INTO t VALUES (1, 1, 'x'), (2, 2, 'y'); UPDATE t SET a = 10 WHERE id = 2; UPDATE t SET b = 'q' WHERE id = 1")?;
    assert_eq!(s.rows("SELECT group_concat(what, ',') FROM log"), "in 1x,in 2y,up 2>10");
    assert_eq!(s.rows("SELECT b FROM t ORDER BY id"), "q changed");
    assert_eq!(s.rows("DELETE FROM t"), "P0001: too dear to lose");
    assert_eq!(s.rows("SELECT count(*), (SELECT count(*) FROM log) FROM t"), "2|3");
    s.run("DELETE FROM t WHERE id = 1; DROP TRIGGER t3; DELETE FROM t")?;
    assert_eq!(s.rows("SELECT count(*), (SELECT count(*) FROM log) FROM t"), "0|4");
    s.run("CREATE TRIGGER again AFTER INSERT ON log BEGIN INSERT INTO log VALUES (NEW.what); END")?;
    assert!(s.rows("INSERT INTO log VALUES ('x')").starts_with("54000"), "it goes on for ever");
    s.run("CREATE VIEW v AS SELECT id, b FROM t; DROP TRIGGER again;
        CREATE TRIGGER vi INSTEAD OF INSERT ON v BEGIN INSERT INTO t(id, b) VALUES (NEW.id, upper(NEW.b)); END")?;
    s.run("INSERT INTO v VALUES (5, 'low')")?;
    assert_eq!(s.rows("SELECT * FROM v"), "5|LOW");
    assert!(s.rows("CREATE TRIGGER vi AFTER DELETE ON t BEGIN SELECT 1; END").starts_with("42P07"));
    s.run("DROP TABLE t")?;
    assert!(s.rows("DROP TRIGGER t1").starts_with("42P01"), "it went with its table");
    // Who opens it anew has the triggers, too.
    let (other, mut session) = (Connection::open()?, s.database.session()?);
    s.run("CREATE TABLE n(a); CREATE TRIGGER n1 AFTER INSERT ON n BEGIN INSERT INTO log VALUES ('n'); END")?;
    other.execute(&mut session, "INSERT INTO n VALUES (1)", &[])?;
    let rows = other.query(&mut session, "SELECT count(*) FROM log WHERE what = 'n'", &[])?;
    assert_eq!(rows.first(), Some(&Value::Integer(1)));
    Ok(())
}
