//! What AlchemyDB's tables have and SQL has not: places in an index, and columns that come with rows.

use crate::scratch::Scratch;
use perilune_sql::{Result, Terms};

#[test]
fn a_place_in_an_index_is_counted_and_searched() -> Result<()> {
    let mut s = Scratch::new("places");
    s.run(
        "CREATE TABLE game(id INTEGER PRIMARY KEY, name TEXT, score INT);
        CREATE UNIQUE INDEX board ON game(score);
        INSERT INTO game VALUES (1, 'ada', 300), (2, 'bob', 100), (3, 'cy', 200), (4, 'di', NULL)",
    )?;
    for (sql, wanted) in [
        ("SELECT name, board.pos() FROM game ORDER BY id", "ada|3 bob|1 cy|2 di|NULL"),
        ("SELECT name FROM game WHERE board.pos() = 1", "bob"),
        ("SELECT name FROM game WHERE board.pos() BETWEEN 1 AND 2 ORDER BY score", "bob cy"),
        ("SELECT name FROM game AS g WHERE board.pos() > ? - 1 AND g.name < 'b'", "ada"),
        (
            "SELECT name, BOARD.POS() AS place FROM game WHERE board.pos() <> 3 ORDER BY place DESC",
            "cy|2 bob|1",
        ),
        ("SELECT max(board.pos()) + 1 FROM game", "4"),
        (
            "SELECT g.name, (SELECT count(*) FROM game WHERE board.pos() < 3) FROM game g WHERE g.id = 4",
            "di|2",
        ),
    ] {
        let sql = sql.replace('?', "3");
        assert_eq!(s.rows(&sql), wanted, "{sql}");
    }
    s.run("UPDATE game SET name = 'first' WHERE board.pos() = 1; DELETE FROM game WHERE board.pos() = 3")?;
    assert_eq!(s.rows("SELECT name FROM game ORDER BY id"), "first cy di");
    // It orders rows of one column without two alike, and none else.
    s.run("CREATE INDEX loose ON game(name)")?;
    for sql in [
        "SELECT loose.pos() FROM game",
        "SELECT 1 FROM game WHERE loose.pos() = 1",
        "SELECT nothing.pos() FROM game",
    ] {
        assert!(s.rows(sql).starts_with("42"), "{sql}");
    }
    assert!(s.rows("UPDATE game SET board.pos() = 1").starts_with("42601"), "a place is not set");
    Ok(())
}

#[test]
fn an_insert_brings_its_columns_along() -> Result<()> {
    let mut s = Scratch::new("hashable");
    s.run("CREATE TABLE t(pk INTEGER PRIMARY KEY); CREATE TABLE fixed(pk INTEGER PRIMARY KEY)")?;
    s.run("ALTER TABLE t ADD HASHABILITY")?;
    assert_eq!(
        s.rows("INSERT INTO t(pk, age, size, name) VALUES (10, 5, 2.5, 'txt'), (11, -1, 1, NULL)"),
        ""
    );
    assert_eq!(
        s.rows("SELECT name, type FROM pragma_table_info('t')"),
        "pk|INTEGER age|BIGINT size|DOUBLE name|TEXT"
    );
    assert_eq!(s.rows("SELECT * FROM t"), "10|5|2.5|txt 11|-1|1.0|NULL");
    s.run("REPLACE INTO t(pk, \"other thing\") VALUES (12, lower('X'))")?;
    assert_eq!(s.rows("SELECT \"other thing\" FROM t WHERE pk = 12"), "x");
    let told = s.rows("INSERT INTO t(pk, size2) VALUES (15, 1) RETURN SIZE");
    assert!(told.contains('|') && s.rows("SELECT size2 FROM t WHERE pk = 15") == "1", "{told}");
    assert!(s.rows("INSERT INTO t(pk, refused) VALUES (15, 1)").starts_with("23505"));
    assert!(s.rows("SELECT refused FROM t").starts_with("42703"), "a row that is refused leaves no column");
    // Inside a transaction that is rolled back, and for who may not write, no column comes.
    s.run("BEGIN; INSERT INTO t(pk, gone) VALUES (13, 1); ROLLBACK")?;
    assert!(s.rows("SELECT gone FROM t").starts_with("42703"), "it is gone with its row");
    let reads = Terms { read_only: true, ..Terms::default() };
    let mut rows = perilune_sql::Rows::default();
    let told =
        s.sql.run_under(&mut s.session, "INSERT INTO t(pk, no) VALUES (14, 1)", &[], &reads, &mut rows);
    assert!(told.is_err_and(|error| error.to_string().contains("only statements that read")));
    assert!(s.rows("INSERT INTO fixed(pk, a) VALUES (1, 1)").starts_with("42703"));
    assert!(s.rows("INSERT INTO t(pk, pk2 x) VALUES (1, 1)").starts_with("42601"));
    assert_eq!(
        s.rows("SELECT absent FROM t"),
        "42703: no such column: absent",
        "only an INSERT makes columns"
    );
    s.run("CREATE TABLE u(hashable INT); ALTER TABLE u ADD hashability INT; ALTER TABLE u ADD COLUMN hashability2")?;
    assert_eq!(s.rows("SELECT count(*) FROM pragma_table_info('u')"), "3");
    Ok(())
}
