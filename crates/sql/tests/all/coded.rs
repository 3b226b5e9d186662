//! Indexes that code keeps: entries are rows, conditions search them, and they go with the rows of the table.

use std::cell::RefCell;
use std::rc::Rc;

use crate::scratch::Scratch;
use perilune_sql::{Result, SqlState, Value};

/// A connection whose functions `made` and `gone` note how they are called.
fn with_functions(s: &Scratch) -> Result<Rc<RefCell<Vec<String>>>> {
    let calls = Rc::<RefCell<Vec<String>>>::default();
    for name in ["made", "gone"] {
        let noted = Rc::clone(&calls);
        s.sql.set_function(name, Some(2), false, move |arguments| {
            let text = |value: &Value| match value {
                Value::Text(text) => String::from_utf8_lossy(text).into_owned(),
                other => format!("{other:?}"),
            };
            noted.borrow_mut().push(format!("{name} {} {}", text(&arguments[0]), text(&arguments[1])));
            Ok(Value::Null)
        })?;
    }
    Ok(calls)
}

#[test]
fn entries_are_rows_that_conditions_search() -> Result<()> {
    let mut s = Scratch::new("coded");
    let calls = with_functions(&s)?;
    s.run(
        "CREATE TABLE users(id INTEGER PRIMARY KEY, name TEXT, value INT);
        INSERT INTO users VALUES (1, 'ada', 10), (2, 'bob', 20), (3, 'cy', 30), (4, 'di', NULL);
        CREATE INDEX visits ON users(relindx()) LONG made gone;
        INSERT INTO visits VALUES (10, 1), (20, 1), (10, 2), (30, 3)",
    )?;
    assert_eq!(*calls.borrow(), ["made users visits"]);
    for (condition, wanted) in [
        ("relindx() = 10", "1 2"),
        ("10 = relindx()", "1 2"),
        ("relindx() BETWEEN 15 AND 30", "1 3"),
        ("relindx() IN (20, 30)", "1 3"),
        ("relindx() > 10 AND name < 'c'", "1"),
        ("relindx() = 30 OR id = 2", "2 3"),
        ("NOT relindx() = 10", "3 4"),
        ("relindx() IS NULL", "4"),
        ("relindx() IS NOT NULL", "1 2 3"),
        ("relindx() = value", "1 3"),
        ("users.relindx() = '10'", "1 2"),
        ("(relindx() = 10 AND NOT (relindx() = 20))", "2"),
        ("id IN (SELECT id FROM users WHERE relindx() = 30)", "3"),
    ] {
        assert_eq!(
            s.rows(&format!("SELECT id FROM users WHERE {condition} ORDER BY id")),
            wanted,
            "{condition}"
        );
    }
    assert_eq!(
        s.rows("SELECT a.id, b.id FROM users a JOIN users b ON a.relindx() = 30 AND b.relindx() = 20"),
        "3|1"
    );
    assert!(s.rows("SELECT 1 FROM users a, users b WHERE relindx() = 1").contains("may be of two tables"));
    assert_eq!(
        s.rows("SELECT count(*) FROM users WHERE relindx() = 10 AND id = (SELECT max(id) FROM users)"),
        "0"
    );
    let plan = s.rows("EXPLAIN QUERY PLAN SELECT name FROM users WHERE relindx() = 10");
    assert!(plan.contains("visits VIRTUAL TABLE INDEX 0:= PRIMARY KEY"), "{plan}");
    assert!(plan.contains("users VIRTUAL TABLE INDEX"), "{plan}");
    let with = s.sql.query(
        &mut s.session,
        "SELECT id FROM users WHERE relindx() = ?1 AND name = ?2",
        &[20.into(), "ada".into()],
    )?;
    assert_eq!(with.first(), Some(&Value::Integer(1)));
    s.run(
        "UPDATE users SET name = name || '!' WHERE relindx() = 10; DELETE FROM users WHERE relindx() = 30",
    )?;
    assert_eq!(s.rows("SELECT name FROM users ORDER BY id"), "ada! bob! di");
    assert_eq!(s.rows("SELECT * FROM visits"), "10|1 10|2 20|1", "the entries of a row go with it");
    s.run("UPDATE users SET id = 9 WHERE id = 1")?;
    assert_eq!(s.rows("SELECT key FROM visits WHERE value = 20"), "9", "they follow its key");
    assert!(s.rows("INSERT INTO visits VALUES (1, 77)").starts_with("23503: FOREIGN KEY constraint failed"));
    assert_eq!(s.rows("SELECT relindx() FROM users"), "42883: no such function: relindx");
    assert!(s.database.verify().expect("a look").is_sound());
    Ok(())
}

#[test]
fn they_come_and_go_with_what_their_functions_do() -> Result<()> {
    let mut s = Scratch::new("coded-schema");
    let calls = with_functions(&s)?;
    s.run(
        "CREATE TABLE pair(a TEXT COLLATE NOCASE, b INT, PRIMARY KEY(a, b));
        INSERT INTO pair VALUES ('x', 1), ('y', 2);
        CREATE INDEX tags ON pair(tag()) TEXT made gone;
        INSERT INTO tags VALUES ('red', 'X', 1), ('blue', 'y', 2)",
    )?;
    assert_eq!(s.rows("SELECT a FROM pair WHERE tag() = 'red'"), "x");
    assert_eq!(
        s.rows("SHOW INDEXES"),
        "sqlite_autoindex_pair_1|pair|a, b|1|ready tags|pair|tag()|0|kept by made"
    );
    assert_eq!(s.rows("SHOW TABLES"), "pair");
    for (sql, told) in [
        ("CREATE INDEX tags ON pair(b)", "42P07"),
        ("CREATE INDEX other ON pair(tag()) TEXT made", "tag() means index tags"),
        ("CREATE INDEX other ON tags(tog()) TEXT made", "holds the entries of an index"),
        ("CREATE INDEX other ON pair(tog()) TEXT nobody", "no such function: nobody"),
        ("CREATE INDEX other ON pair(tog(a)) TEXT made", "a function without arguments"),
        ("CREATE UNIQUE INDEX other ON pair(tog()) TEXT made", "expected WHERE"),
        ("CREATE INDEX other ON pair(tog()) TEXT", "expected a name"),
        ("DROP TABLE tags", "DROP INDEX tags drops it"),
        ("ALTER TABLE tags RENAME TO t", "DROP INDEX tags drops it"),
        ("ALTER TABLE tags ADD COLUMN c INT", "DROP INDEX tags drops it"),
    ] {
        let answer = s.rows(sql);
        assert!(answer.contains(told), "{sql}: {answer}");
    }
    assert_eq!(s.rows("SELECT count(*) FROM tags"), "2");
    s.run("CREATE INDEX IF NOT EXISTS tags ON pair(tag()) TEXT made; ALTER TABLE pair RENAME TO couple")?;
    s.run("ALTER TABLE couple RENAME COLUMN b TO value")?;
    assert_eq!(s.rows("SELECT a, value FROM couple WHERE tag() = 'blue'"), "y|2");
    s.run("DELETE FROM couple WHERE a = 'Y'")?;
    assert_eq!(s.rows("SELECT value FROM tags"), "red");
    s.run("DROP INDEX tags")?;
    assert_eq!(calls.borrow().last().map(String::as_str), Some("gone couple tags"));
    assert!(s.rows("SELECT * FROM tags").contains("no such table: tags"));
    s.run("CREATE INDEX tags ON couple(tag()) TEXT made gone; DROP TABLE couple")?;
    assert_eq!(calls.borrow().last().map(String::as_str), Some("gone couple tags"));
    assert_eq!(s.rows("SHOW INDEXES"), "");
    s.run(
        "CREATE TABLE couple(tags INTEGER PRIMARY KEY); CREATE TABLE tags(a); INSERT INTO tags VALUES (1)",
    )?;
    s.run("CREATE TABLE bare(a)")?;
    let told = s.rows("CREATE INDEX i ON bare(f()) INT made");
    assert!(told.starts_with(&format!("{}", SqlState::DEFINITION)) && told.contains("primary key"), "{told}");
    Ok(())
}
