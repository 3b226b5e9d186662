//! U128: numbers of 128 bits, written `high|low`, that compare and sort as numbers wherever they stand.

use crate::scratch::Scratch;
use perilune_sql::{Result, Value};

#[test]
fn numbers_of_128_bits_compare_as_numbers() -> Result<()> {
    let mut s = Scratch::new("wide");
    s.run(
        "CREATE TABLE t(pk U128 PRIMARY KEY, cu U128, name TEXT);
        INSERT INTO t VALUES ('1|0', '0|10', 'a'), ('0|18446744073709551615', '0|9', 'b'), ('10|5', '2|0', 'c'),
            ('9|7', NULL, 'd'), ('00|007', '18446744073709551615|18446744073709551615', 'e');
        CREATE INDEX by_cu ON t(cu)",
    )?;
    let query = s.sql.query(
        &mut s.session,
        "SELECT name FROM t WHERE pk = ? AND cu > ?",
        &["9|7".into(), "0|0".into()],
    )?;
    assert_eq!(query.len(), 0);
    let query = s.sql.query(
        &mut s.session,
        "SELECT name FROM t WHERE pk = ? AND cu > ?",
        &["10|5".into(), "1|99".into()],
    )?;
    assert_eq!(query.first(), Some(&Value::from("c")));
    for (sql, wanted) in [
        ("SELECT pk FROM t ORDER BY pk", "0|7 0|18446744073709551615 1|0 9|7 10|5"),
        ("SELECT pk FROM t ORDER BY pk DESC LIMIT 2", "10|5 9|7"),
        ("SELECT name FROM t ORDER BY cu", "d b a c e"),
        ("SELECT name FROM t WHERE pk = '000|7'", "e"),
        ("SELECT name FROM t WHERE pk IN ('0|7', '10|05') ORDER BY pk", "e c"),
        ("SELECT name FROM t WHERE pk BETWEEN '0|8' AND '9|7' ORDER BY pk", "b a d"),
        ("SELECT name FROM t WHERE cu BETWEEN '0|9' AND '0|100' ORDER BY cu", "b a"),
        ("SELECT name FROM t WHERE cu > '0|10' ORDER BY cu", "c e"),
        (
            "SELECT max(cu), min(cu), count(DISTINCT cu) FROM t",
            "18446744073709551615|18446744073709551615|0|9|4",
        ),
        ("SELECT a.name FROM t a JOIN t b ON a.pk < b.cu WHERE b.name = 'c' ORDER BY a.pk", "e b a"),
        ("SELECT typeof(pk), pk || '' FROM t WHERE name = 'a'", "text|1|0"),
        ("SELECT name FROM (SELECT pk AS k, name FROM t) WHERE k > '9|0' ORDER BY k", "d c"),
        ("SELECT name FROM t WHERE pk = 'x'", ""),
    ] {
        assert_eq!(s.rows(sql), wanted, "{sql}");
    }
    for (sql, index) in [
        ("SELECT name FROM t WHERE cu = '0|9'", "by_cu"),
        ("SELECT name FROM t WHERE cu BETWEEN '0|9' AND '2|0' ORDER BY cu", "by_cu"),
        ("SELECT name FROM t WHERE pk = '0|9'", "sqlite_autoindex_t_1"),
    ] {
        let plan = s.rows(&format!("EXPLAIN QUERY PLAN {sql}"));
        assert!(plan.contains(index) && !plan.contains("B-TREE"), "{sql}: {plan}");
    }
    assert!(s.database.verify().expect("a look").is_sound());
    Ok(())
}

#[test]
fn what_is_no_such_number_is_refused() -> Result<()> {
    let mut s = Scratch::new("wide-refused");
    s.run(
        "CREATE TABLE t(pk U128 PRIMARY KEY, cu U128, name TEXT);
        INSERT INTO t VALUES ('1|0', '0|10', 'a'), ('10|5', '2|0', 'c'), ('2|1', '0|9', 'b'), ('2|2', NULL, 'd')",
    )?;
    for sql in [
        "INSERT INTO t VALUES ('1|18446744073709551616', NULL, 'x')",
        "INSERT INTO t VALUES ('1', NULL, 'x')",
        "INSERT INTO t VALUES ('-1|0', NULL, 'x')",
        "INSERT INTO t VALUES ('1|2|3', NULL, 'x')",
        "INSERT INTO t VALUES (x'31', NULL, 'x')",
        "INSERT INTO t VALUES (1|2, NULL, 'x')",
        "UPDATE t SET cu = 7",
    ] {
        let told = s.rows(sql);
        assert!(told.starts_with("22003") && told.contains("write 'high|low'"), "{sql}: {told}");
    }
    assert!(s.rows("INSERT INTO t VALUES ('01|0', NULL, 'x')").contains("UNIQUE constraint failed: t.pk"));
    assert!(s.rows("INSERT INTO t(name) VALUES ('x')").contains("NOT NULL constraint failed: t.pk"));
    assert!(s.rows("ALTER TABLE t ADD COLUMN w U128 DEFAULT 'x'").starts_with("22003"));
    assert!(s.rows("DESC t").contains("U128"), "{}", s.rows("DESC t"));
    assert!(s.rows("PRAGMA table_info(t)").contains("|cu|U128"), "{}", s.rows("PRAGMA table_info(t)"));
    s.run("UPDATE t SET cu = '3|03' WHERE pk = '10|5'; CREATE TABLE u AS SELECT pk, cu FROM t WHERE cu IS NOT NULL")?;
    assert_eq!(s.rows("SELECT cu FROM u ORDER BY cu LIMIT 3"), "0|9 0|10 3|3");
    assert!(s.rows("INSERT INTO u VALUES ('x', NULL)").starts_with("22003"));
    assert!(s.database.verify().expect("a look").is_sound());
    Ok(())
}

/// The cases of AlchemyDB's own tests.
#[test]
fn they_stand_in_indexes_of_each_kind() -> Result<()> {
    let mut s = Scratch::new("wide-indexes");
    s.run(
        "CREATE TABLE uUX(pk INT PRIMARY KEY, cu U128); CREATE UNIQUE INDEX ux ON uUX(cu);
        INSERT INTO uUX VALUES (111, '888|9999'), (333, '222|777');
        CREATE TABLE mci(pk INT PRIMARY KEY, fk U128, col U128, x INT); CREATE INDEX both_ ON mci(fk, col);
        INSERT INTO mci VALUES (1, '333|44', '55|777', 1), (2, '333|44', '55|778', 2), (3, '333|44', '55|777', 3);
        CREATE TABLE board(userid INT PRIMARY KEY, score U128); CREATE UNIQUE INDEX i_bd ON board(score);
        INSERT INTO board VALUES (1, '500|1'), (2, '100|2'), (3, '900|3'), (4, '500|2')",
    )?;
    assert_eq!(s.rows("SELECT pk FROM uUX WHERE cu = '888|9999'"), "111");
    assert!(s.rows("INSERT INTO uUX VALUES (1, '0222|777')").contains("UNIQUE constraint failed: uUX.cu"));
    let query = "SELECT pk FROM mci WHERE fk = '333|44' AND col = '55|777' ORDER BY pk";
    assert_eq!(s.rows(query), "1 3");
    let plan = s.rows(&format!("EXPLAIN QUERY PLAN {query}"));
    assert!(plan.contains("both_"), "{plan}");
    assert_eq!(
        s.rows("SELECT userid, i_bd.pos() FROM board WHERE score BETWEEN '0|0' AND '999|999' ORDER BY score"),
        "2|1 1|2 4|3 3|4"
    );
    assert_eq!(s.rows("SELECT userid FROM board WHERE i_bd.pos() > 2 ORDER BY score"), "4 3");
    s.run(
        "CREATE TABLE child(id INTEGER PRIMARY KEY, of U128 REFERENCES uUX(cu) ON DELETE CASCADE);
        INSERT INTO child VALUES (1, '0888|9999'); CREATE TABLE o OVER ^other(k) (k INTEGER, v U128)",
    )?;
    assert!(s.rows("INSERT INTO child VALUES (2, '1|1')").contains("FOREIGN KEY"));
    s.run("DELETE FROM uUX WHERE cu = '888|09999'; INSERT INTO o VALUES (1, '01|2')")?;
    assert_eq!(s.rows("SELECT count(*) FROM child"), "0");
    assert_eq!(s.rows("SELECT v FROM o WHERE v < '2|0'"), "1|2");
    let told = s.rows("CREATE TABLE p OVER ^others(k) (k U128, v INT)");
    assert!(told.contains("columns INTEGER and TEXT as its key"), "{told}");
    assert!(s.database.verify().expect("a look").is_sound());
    Ok(())
}
