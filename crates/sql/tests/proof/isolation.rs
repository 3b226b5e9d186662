//! Two connections whose transactions meet, step by step: whatever happens is as if one had run after the other, or one of them is
//! told to run again (40001) and has done nothing.

use perilune::Session;
use perilune_sql::Connection;

use crate::scratch::{text, Scratch};

/// A connection with its own session.
struct Side {
    sql: Connection,
    session: Session,
}

impl Side {
    fn new(s: &Scratch) -> Side {
        let session = s.database.session().expect("a session");
        Side { sql: Connection::open().expect("a connection"), session }
    }

    /// The rows, or the code of the error.
    fn run(&mut self, sql: &str) -> String {
        match self.sql.query(&mut self.session, sql, &[]) {
            Ok(rows) => text(&rows),
            Err(error) => error.state().to_string(),
        }
    }
}

/// Runs the steps of both sides; how many of them have committed, and what the table has then.
fn meet(name: &str, steps: &[(usize, &str)]) -> (usize, String) {
    let mut s = Scratch::new(name);
    s.run(
        "CREATE TABLE t(id INTEGER PRIMARY KEY, v INT, w INT); CREATE INDEX tv ON t(v);
        CREATE UNIQUE INDEX tw ON t(w); INSERT INTO t VALUES (1, 10, 1), (2, 20, 2)",
    )
    .expect("a table");
    let mut sides = [Side::new(&s), Side::new(&s)];
    let mut committed = 0;
    for side in &mut sides {
        assert_eq!(side.run("BEGIN"), "");
    }
    for (which, sql) in steps {
        let answer = sides[*which].run(sql);
        let is_dead = ["40001", "25P02"].contains(&&answer[..]);
        if *sql == "COMMIT" {
            committed += usize::from(answer.is_empty());
        }
        if let Some((_, wanted)) = sql.split_once("-- ") {
            assert!(is_dead || answer == wanted, "{name}: {sql}: {answer}");
        }
        assert!(is_dead || sql.contains("-- ") || answer.is_empty(), "{name}: {sql}: {answer}");
    }
    for side in &mut sides {
        side.run("ROLLBACK");
    }
    (committed, s.rows("SELECT v FROM t ORDER BY id"))
}

#[test]
fn no_anomaly_gets_through() {
    // Lost update: both add to what they have read.
    let (committed, rows) = meet(
        "lost",
        &[
            (0, "UPDATE t SET v = v + 1 WHERE id = 1"),
            (1, "UPDATE t SET v = v + 5 WHERE id = 1"),
            (0, "COMMIT"),
            (1, "COMMIT"),
        ],
    );
    assert_eq!((committed, &rows[..]), (1, "11 20"));
    // Write skew: each reads what the other one writes.
    let (committed, rows) = meet(
        "skew",
        &[
            (0, "SELECT sum(v) FROM t -- 30"),
            (1, "SELECT sum(v) FROM t -- 30"),
            (0, "UPDATE t SET v = 0 WHERE id = 1"),
            (1, "UPDATE t SET v = 0 WHERE id = 2"),
            (0, "COMMIT"),
            (1, "COMMIT"),
        ],
    );
    assert_eq!((committed, &rows[..]), (1, "0 20"));
    // Phantom: a row comes into a range that was empty, by an index.
    let (committed, rows) = meet(
        "phantom",
        &[
            (0, "SELECT count(*) FROM t WHERE v > 25 -- 0"),
            (1, "INSERT INTO t VALUES (3, 30, 3)"),
            (1, "COMMIT"),
            (0, "UPDATE t SET v = 99 WHERE id = 1"),
            (0, "COMMIT"),
        ],
    );
    assert_eq!((committed, &rows[..]), (1, "10 20 30"));
    // Dirty read, and one that does not repeat.
    let (committed, rows) = meet(
        "dirty",
        &[
            (0, "UPDATE t SET v = 77 WHERE id = 1"),
            (1, "SELECT v FROM t WHERE id = 1 -- 10"),
            (0, "COMMIT"),
            (1, "SELECT v FROM t WHERE id = 1 -- 10"),
            (1, "COMMIT"),
        ],
    );
    assert!(committed >= 1 && rows == "77 20", "{committed}: {rows}");
    // Two rows of one unique value.
    let (committed, rows) = meet(
        "unique",
        &[
            (0, "INSERT INTO t VALUES (3, 3, 9)"),
            (1, "INSERT INTO t VALUES (4, 4, 9)"),
            (0, "COMMIT"),
            (1, "COMMIT"),
        ],
    );
    assert_eq!((committed, &rows[..]), (1, "10 20 3"));
    // Others' rows are no conflict.
    let (committed, _) =
        meet("readers", &[(0, "SELECT v FROM t WHERE id = 1 -- 10"), (0, "COMMIT"), (1, "COMMIT")]);
    assert_eq!(committed, 2);
}

#[test]
fn a_schema_that_changes_is_a_conflict() {
    let (committed, rows) = meet(
        "schema",
        &[
            (0, "UPDATE t SET v = 0 WHERE id = 1"),
            (1, "ALTER TABLE t ADD x INT"),
            (1, "COMMIT"),
            (0, "COMMIT"),
        ],
    );
    assert_eq!((committed, &rows[..]), (1, "10 20"));
}
