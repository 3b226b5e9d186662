//! Caches: rows that are evicted, and who asks for them later.

use std::rc::Rc;

use crate::scratch::Scratch;
use perilune::{node, Value as NodeValue};
use perilune_sql::{Access, Nowhere, Result, SqlState, Terms, Value};

const MISS: &str =
    "P0002: ^simple(7) is evicted: read it from the backing store, INSERT or REPLACE it here, and run the \
                    statement again";

fn simple(name: &str) -> Result<Scratch> {
    let mut s = Scratch::new(name);
    s.run(
        "CREATE TABLE simple(pk INTEGER PRIMARY KEY, fk INT, col2 INT);
        CREATE INDEX by_fk ON simple(fk); CREATE UNIQUE INDEX by_col ON simple(col2 * 2) WHERE col2 > 0;
        CREATE LRUINDEX ON simple;
        ALTER TABLE simple SET DIRTY;
        WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 50) INSERT INTO simple(fk, col2) SELECT i % 5, i FROM n",
    )?;
    Ok(s)
}

/// The worked case 31 of the inventory, without what was prohibited there.
#[test]
fn who_names_an_evicted_row_misses_it() -> Result<()> {
    let mut s = simple("evicted")?;
    let evicted = s.sql.execute(&mut s.session, "EVICT simple 6 7 8", &[])?;
    assert_eq!(evicted.changes, 3);
    for sql in [
        "SELECT * FROM simple WHERE pk = 7",
        "SELECT 1 FROM simple WHERE pk IN (1, 7)",
        "SELECT 1 FROM simple WHERE pk = 1 OR pk = 7",
        "SELECT 1 FROM simple AS a JOIN simple AS b ON b.pk = a.pk + 6 WHERE a.pk = 1",
        "UPDATE simple SET col2 = 333333 WHERE pk = 7",
        "UPDATE simple SET pk = 7 WHERE pk = 1",
        "DELETE FROM simple WHERE pk = 7",
    ] {
        assert_eq!(s.rows(sql), MISS, "{sql}");
    }
    s.run("UPDATE simple SET col2 = 333333 WHERE pk = 1")?;
    assert_eq!(s.rows("SELECT col2 FROM simple WHERE pk = 1"), "333333");
    // What walks sees the rows that are here.
    assert_eq!(s.rows("SELECT count(*), max(pk) FROM simple"), "47|50");
    assert_eq!(s.rows("SELECT pk FROM simple WHERE fk = 2 ORDER BY pk LIMIT 3"), "2 12 17");
    assert_eq!(s.rows("SELECT pk FROM simple WHERE pk BETWEEN 5 AND 9"), "5 9");
    assert_eq!(s.rows("SELECT pk FROM simple WHERE col2 * 2 = 14 AND col2 > 0"), "");
    assert_eq!(s.rows("SELECT count(*) FROM simple WHERE LRU > 0"), "47");
    // What is not there is no miss, and is not evicted.
    assert_eq!(s.rows("SELECT 1 FROM simple WHERE pk = 99"), "");
    assert_eq!(s.sql.execute(&mut s.session, "EVICT simple 7, 99", &[])?.changes, 0);
    Ok(())
}

#[test]
fn a_row_comes_back_by_insert_and_replace() -> Result<()> {
    let mut s = simple("evicted-back")?;
    s.run("EVICT simple 6 7 8 50")?;
    assert_eq!(s.session.get(&node!("^simple", 7)?)?, Some(NodeValue::String(b"evicted".to_vec())));
    // No number is given twice.
    assert_eq!(s.rows("INSERT INTO simple(fk) VALUES (1) RETURNING pk"), "51");
    s.run("EVICT simple 51")?;
    assert_eq!(s.rows("INSERT INTO simple(fk) VALUES (1) RETURNING pk"), "52");
    s.run("INSERT INTO simple VALUES (7, 2, 7); REPLACE INTO simple VALUES (6, 1, 6)")?;
    s.run("INSERT INTO simple VALUES (8, 3, 8) ON CONFLICT DO UPDATE SET fk = 9")?;
    assert_eq!(s.rows("SELECT * FROM simple WHERE pk IN (6, 7, 8)"), "6|1|6 7|2|7 8|3|8");
    assert_eq!(s.rows("SELECT pk FROM simple WHERE col2 * 2 = 14 AND col2 > 0"), "7");
    assert_eq!(s.rows("INSERT INTO simple VALUES (7, 2, 7)"), "23505: UNIQUE constraint failed: simple.pk");
    // Another process sees the same; a transaction that is rolled back evicts nothing.
    s.run("BEGIN; EVICT simple 7")?;
    assert_eq!(s.rows("SELECT * FROM simple WHERE pk = 7"), MISS);
    s.run("ROLLBACK")?;
    assert_eq!(s.rows("SELECT fk FROM simple WHERE pk = 7"), "2");
    s.run("UPDATE OR REPLACE simple SET pk = 50 WHERE pk = 49; DROP TABLE simple")?;
    assert_eq!(s.session.data(&node!("^simple")?)?, perilune::Data::Nothing);
    Ok(())
}

#[test]
fn keys_of_texts_are_evicted_with_documents() -> Result<()> {
    let mut s = Scratch::new("evicted-texts");
    s.run(
        "CREATE TABLE line(country TEXT, no INT, info JSON, PRIMARY KEY(country, no)); ALTER TABLE line SET DIRTY;
        INSERT INTO line VALUES ('NO', 1, '{\"a\":\"evicted\"}'), ('NO', 2, '{\"b\":[1]}'), ('SE', 1, NULL)",
    )?;
    let evict = "EVICT line (?, ?) (?2, ?)";
    assert!(s.sql.execute(&mut s.session, evict, &["NO".into(), 2.into(), 3.into()]).is_ok());
    assert!(s
        .rows("SELECT * FROM line WHERE country = 'NO' AND no = 2")
        .starts_with("P0002: ^line(\"NO\",2) is"));
    let by = "SELECT 1 FROM line WHERE country = ? AND no = ?";
    let told = s.sql.query(&mut s.session, by, &["NO".into(), 2.into()]).expect_err("a miss");
    assert_eq!(told.state(), SqlState::MISS);
    assert_eq!(s.rows("SELECT no, info.a FROM line WHERE country = 'NO'"), "1|evicted");
    assert_eq!(s.rows("SELECT * FROM line WHERE country = 'NO' AND no = 1"), "NO|1|{\"a\":\"evicted\"}");
    assert_eq!(s.session.count_valued(&node!("^line", "NO", 2)?)?, 0);
    s.run("INSERT INTO line VALUES ('NO', 2, '{\"c\":2}'); ALTER TABLE line RENAME TO other; EVICT other ('SE', 1)")?;
    assert_eq!(s.rows("SELECT info FROM other WHERE country = 'NO' AND no = 2"), "{\"c\":2}");
    assert!(s.rows("DELETE FROM other WHERE country = 'SE' AND no = 1").starts_with("P0002"));
    Ok(())
}

/// To evict is not to delete.
#[test]
fn triggers_and_references_do_not_see_it() -> Result<()> {
    let mut s = Scratch::new("evicted-refer");
    s.run(
        "CREATE TABLE users(id INTEGER PRIMARY KEY, name TEXT); ALTER TABLE users SET DIRTY; CREATE TABLE log(a);
        CREATE TABLE orders(id INTEGER PRIMARY KEY, of INT REFERENCES users ON DELETE CASCADE);
        CREATE TRIGGER gone AFTER DELETE ON users BEGIN INSERT INTO log VALUES (old.id); END;
        INSERT INTO users VALUES (1, 'Ada'), (2, 'Ben'); INSERT INTO orders VALUES (10, 1);
        EVICT users 1",
    )?;
    s.run("INSERT INTO orders VALUES (11, 1)")?;
    assert_eq!(s.rows("SELECT count(*) FROM orders"), "2");
    assert_eq!(s.rows("SELECT count(*) FROM log"), "0");
    assert!(s.rows("INSERT INTO orders VALUES (12, 3)").starts_with("23503"));
    assert!(s.rows("SELECT name FROM orders JOIN users ON users.id = of").starts_with("P0002: ^users(1)"));
    Ok(())
}

#[test]
fn what_is_no_cache_evicts_nothing() -> Result<()> {
    let mut s = Scratch::new("evicted-not");
    s.run("CREATE TABLE t(id INTEGER PRIMARY KEY, a); CREATE TABLE loose(a); CREATE TABLE o OVER ^o(id) (id INTEGER PRIMARY KEY)")?;
    s.run("INSERT INTO t VALUES (1, 2)")?;
    for (sql, wanted) in [
        ("EVICT t 1", "0A000: t is no cache: ALTER TABLE t SET DIRTY"),
        ("EVICT nobody 1", "42P01: no such table: nobody"),
        ("EVICT t", "42601: expected EVICT table key"),
        ("EVICT t a", "42601"),
        ("EVICT t ?", "22023"),
        ("ALTER TABLE loose SET DIRTY", "0A000: EVICT names rows by a PRIMARY KEY"),
        ("ALTER TABLE o SET DIRTY", "0A000"),
        ("ALTER TABLE t SET CLEAN", "42601: expected DIRTY"),
        ("ALTER TABLE t SET DIRTY", ""),
        ("EVICT t 'a'", "42804"),
    ] {
        let told = s.rows(sql);
        assert!(told.starts_with(wanted) && told.is_empty() == wanted.is_empty(), "{sql}: {told}");
    }
    let permit = |_: &str, access| access == Access::Reads;
    let terms = Terms { permit: Some(Rc::new(permit)), ..Terms::default() };
    for (terms, state) in
        [(terms, SqlState::DENIED), (Terms { read_only: true, ..Terms::default() }, SqlState::READ_ONLY)]
    {
        let told = s.sql.run_under(&mut s.session, "EVICT t ?", &[Value::from(1)], &terms, &mut Nowhere);
        assert_eq!(told.expect_err("refused").state(), state);
    }
    assert_eq!(s.rows("SELECT a FROM t WHERE id = 1"), "2");
    Ok(())
}
