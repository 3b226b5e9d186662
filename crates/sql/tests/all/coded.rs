//! Indexes that code keeps: entries are rows, conditions search them, and they go with the rows of the table.

use std::cell::RefCell;
use std::rc::Rc;

use crate::scratch::Scratch;
use perilune_sql::{Access, Nowhere, Permit, Result, SqlState, Terms, Value};

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
    assert_eq!(
        s.rows("SELECT relindx() FROM users"),
        "42883: no such function: relindx: it stands for index visits in a WHERE or ON, of users or of a view that chooses \
         rows of it and shows id"
    );
    assert!(s.database.verify().expect("a look").is_sound());
    Ok(())
}

/// In the text of a view such a condition was no function, and so it was in a condition on a view.
#[test]
fn views_have_them_in_their_text_and_in_conditions_on_them() -> Result<()> {
    let mut s = Scratch::new("coded-views");
    let _calls = with_functions(&s)?;
    s.run(
        "CREATE TABLE users(id INTEGER PRIMARY KEY, name TEXT, value INT);
        INSERT INTO users VALUES (1, 'ada', 10), (2, 'bob', 20), (3, 'cy', 30), (4, 'di', NULL);
        CREATE INDEX visits ON users(relindx()) LONG made gone;
        INSERT INTO visits VALUES (10, 1), (20, 1), (10, 2), (30, 3);
        CREATE INDEX low ON users(lower(name));
        CREATE VIEW ten AS SELECT id, name FROM users WHERE relindx() = 10;
        CREATE VIEW few(k, called) AS SELECT id, name FROM users u WHERE value > 5;
        CREATE VIEW some AS SELECT called, k AS value FROM few WHERE called <> 'cy';
        CREATE VIEW names AS SELECT name FROM users;
        CREATE VIEW pairs AS SELECT u.id AS a, w.id AS b FROM users u JOIN users w ON u.relindx() = 30 AND w.relindx() = 20;
        CREATE UNIQUE INDEX by_name ON users(name);
        CREATE VIEW placed AS SELECT id, by_name.pos() AS place FROM users;
        CREATE VIEW counts AS SELECT count(*) AS n FROM users WHERE relindx() IS NOT NULL",
    )?;
    for (sql, wanted) in [
        ("SELECT name FROM ten ORDER BY id", "ada bob"),
        ("SELECT name FROM ten WHERE id = 2", "bob"),
        ("SELECT * FROM pairs", "3|1"),
        ("SELECT n FROM counts", "3"),
        ("SELECT id FROM placed WHERE place > 2 ORDER BY place", "3 4"),
        ("SELECT k FROM few WHERE relindx() = 10 ORDER BY k", "1 2"),
        ("SELECT k FROM few WHERE NOT relindx() = 10 ORDER BY k", "3"),
        ("SELECT k FROM few f WHERE f.relindx() BETWEEN 15 AND 30 AND called < 'b'", "1"),
        ("SELECT k FROM few WHERE relindx() = 10 AND lower(called) = 'bob'", "2"),
        ("SELECT called FROM some WHERE relindx() > 10", "ada"),
        ("SELECT called FROM some WHERE relindx() = value * 10", "ada"),
        ("SELECT u.id, f.k FROM users u JOIN few f ON f.relindx() = 30 AND u.relindx() = 20", "1|3"),
        ("SELECT k FROM few WHERE k IN (SELECT k FROM few WHERE relindx() = 30)", "3"),
    ] {
        assert_eq!(s.rows(sql), wanted, "{sql}");
    }
    let with = s.sql.query(
        &mut s.session,
        "SELECT k FROM few WHERE lower(called) = ? AND relindx() = ?",
        &["ada".into(), 20.into()],
    )?;
    assert_eq!(with.first(), Some(&Value::Integer(1)));
    for sql in ["SELECT name FROM ten", "SELECT k FROM few WHERE relindx() = 10"] {
        let plan = s.rows(&format!("EXPLAIN QUERY PLAN {sql}"));
        assert!(plan.contains("visits VIRTUAL TABLE INDEX 0:= PRIMARY KEY"), "{plan}");
        assert!(plan.contains(" VIRTUAL TABLE INDEX 0:= "), "{plan}");
    }
    for sql in ["SELECT * FROM names WHERE relindx() = 10", "SELECT * FROM pairs WHERE relindx() = 10"] {
        let told = s.rows(sql);
        assert!(told.contains("of users or of a view that chooses rows of it and shows id"), "{sql}: {told}");
    }
    // They come and go with the index, and with what their table becomes.
    s.run("INSERT INTO visits VALUES (10, 4); DELETE FROM visits WHERE key = 2")?;
    assert_eq!(s.rows("SELECT name FROM ten ORDER BY id"), "ada di");
    s.run("DROP INDEX visits")?;
    for sql in ["SELECT name FROM ten", "SELECT k FROM few WHERE relindx() = 10"] {
        assert_eq!(s.rows(sql), "42883: no such function: relindx", "{sql}");
    }
    s.run("CREATE INDEX visits ON users(relindx()) LONG made gone; INSERT INTO visits VALUES (10, 3)")?;
    assert_eq!(s.rows("SELECT name FROM ten"), "cy");
    assert_eq!(s.rows("SELECT k FROM few WHERE relindx() = 10"), "3");
    Ok(())
}

/// Who may read a view alone sees what it shows, and asks no entries of the table's index.
#[test]
fn a_view_lends_no_right_to_an_index() -> Result<()> {
    let mut s = Scratch::new("coded-rights");
    let _calls = with_functions(&s)?;
    s.run(
        "CREATE TABLE users(id INTEGER PRIMARY KEY, name TEXT);
        CREATE INDEX visits ON users(relindx()) LONG made gone; CREATE INDEX low ON users(lower(name));
        CREATE VIEW ten AS SELECT id, name FROM users WHERE relindx() = 10;
        CREATE VIEW few AS SELECT id, name FROM users WHERE name > ''",
    )?;
    let allowed = |names: &'static [&'static str]| -> Terms {
        let permit: Rc<Permit> =
            Rc::new(move |table, access| access == Access::Reads && names.contains(&table));
        Terms { permit: Some(permit), ..Terms::default() }
    };
    let mut may = |names: &'static [&'static str], sql: &str| {
        s.sql.run_under(&mut s.session, sql, &[], &allowed(names), &mut Nowhere).is_ok()
    };
    assert!(may(&["ten", "few"], "SELECT name FROM ten") && may(&["ten", "few"], "SELECT name FROM few"));
    for sql in [
        "SELECT id FROM few WHERE relindx() = 10",
        "SELECT id FROM few WHERE relindx() = 10 AND lower(name) = 'a'",
    ] {
        assert!(!may(&["ten", "few"], sql), "{sql}");
        assert!(may(&["few", "users"], sql), "{sql}");
    }
    Ok(())
}

/// What triggers do they do by statements, which have such conditions as others.
#[test]
fn triggers_have_them_in_their_statements() -> Result<()> {
    let mut s = Scratch::new("coded-triggers");
    let _calls = with_functions(&s)?;
    s.run(
        "CREATE TABLE users(id INTEGER PRIMARY KEY, name TEXT);
        INSERT INTO users VALUES (1, 'ada'), (2, 'bob'), (3, 'cy');
        CREATE INDEX visits ON users(relindx()) LONG made gone;
        INSERT INTO visits VALUES (10, 1), (20, 1), (10, 2), (30, 3);
        CREATE VIEW seen AS SELECT id, name FROM users;
        CREATE TABLE gone_ones(at INT);
        CREATE TRIGGER t AFTER INSERT ON gone_ones BEGIN UPDATE users SET name = name || '!' WHERE relindx() = NEW.at; END;
        CREATE TRIGGER v INSTEAD OF UPDATE ON seen BEGIN
            UPDATE users SET name = NEW.name WHERE relindx() = NEW.id * 10 OR id = -1; END;
        INSERT INTO gone_ones VALUES (20)",
    )?;
    assert_eq!(s.rows("SELECT name FROM users ORDER BY id"), "ada! bob cy");
    s.run("UPDATE seen SET name = 'x' WHERE relindx() = 30")?;
    assert_eq!(s.rows("SELECT name FROM users ORDER BY id"), "ada! bob x");
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
