//! DUMP ... TO MYSQL: what it writes is loaded by plain SQLite, and is the same table there.

use perilune_sql::{Result, Value};
use perilune_sqlite::Connection as Sqlite;

use crate::compared::plain;
use crate::scratch::Scratch;

/// A table with a value of each kind, and texts that are hard to write down.
fn users(name: &str) -> Result<Scratch> {
    let mut s = Scratch::new(name);
    s.run(
        "CREATE TABLE users(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, `a ``b` REAL, raw BLOB, born DATE, n NUMERIC,
            info JSON);
        CREATE INDEX by_birth ON users(born, name);
        CREATE INDEX some ON users(lower(name)) WHERE n > 3",
    )?;
    let rows: [[Value; 7]; 3] = [
        [
            7.into(),
            "it's \"quoted\"".into(),
            0.1.into(),
            Value::Blob(vec![0, 255]),
            "1815-12-10".into(),
            5.into(),
            Value::Null,
        ],
        [
            (-8).into(),
            "back\\slash\nand `ticks`".into(),
            Value::Null,
            Value::Null,
            Value::Null,
            0.5.into(),
            r#"{"a":[1,null,"\\"]}"#.into(),
        ],
        [
            i64::MAX.into(),
            "nul\0inside; -- no comment".into(),
            1e300.into(),
            Value::Blob(vec![]),
            "x".into(),
            Value::Null,
            "[]".into(),
        ],
    ];
    for row in &rows {
        s.sql.execute(&mut s.session, "INSERT INTO users VALUES (?, ?, ?, ?, ?, ?, ?)", row)?;
    }
    Ok(s)
}

#[test]
fn another_database_loads_what_was_dumped() -> Result<()> {
    let mut s = users("dump")?;
    let dump = s.sql.query(&mut s.session, "DUMP users TO MYSQL `people x`", &[])?;
    assert_eq!(dump.columns(), ["statement"]);
    let lines: Vec<String> = dump.iter().map(|row| text_of(&row[0])).collect();
    assert_eq!(lines[0], "DROP TABLE IF EXISTS `people x`;");
    assert_eq!(
        lines[1],
        "CREATE TABLE `people x` (`id` BIGINT, `name` VARCHAR(384) NOT NULL, `a ``b` DOUBLE, `raw` LONGBLOB, `born` DATE, \
         `n` FIXED(65,30), `info` LONGTEXT, PRIMARY KEY (`id`));"
    );
    assert_eq!(
        lines[2..].iter().filter(|line| line.starts_with("INSERT INTO `people x` VALUES (")).count(),
        3
    );
    assert!(
        lines.contains(&"CREATE INDEX `by_birth` ON `people x` (`born`, `name`);".to_owned()),
        "{lines:?}"
    );
    assert!(lines
        .iter()
        .any(|line| line.starts_with("CREATE UNIQUE INDEX `key_") && line.ends_with("(`name`);")));
    assert!(!lines.iter().any(|line| line.contains("some")), "{lines:?}");
    assert!(!lines.iter().any(|line| line.contains('\\')), "MySQL reads a backslash: {lines:?}");
    let sqlite = Sqlite::<()>::open().expect("plain SQLite");
    for _ in 0..2 {
        for line in &lines {
            assert_eq!(plain(&sqlite, line), "", "{line}");
        }
    }
    let all = "SELECT id, name, typeof(name), \"a `b\", raw, typeof(raw), born, n, typeof(n), info FROM";
    assert_eq!(
        plain(&sqlite, &format!("{all} \"people x\" ORDER BY id")),
        s.rows(&format!("{all} users ORDER BY id"))
    );
    Ok(())
}

#[test]
fn a_dump_says_what_it_wants() -> Result<()> {
    let mut s = users("dump-words")?;
    assert!(s.rows("DUMP users TO MYSQL").starts_with("DROP TABLE IF EXISTS `users`; CREATE TABLE `users`"));
    assert_eq!(s.rows("DUMP users"), s.rows("SELECT * FROM users"));
    for (sql, wanted) in [
        ("DUMP nobody TO MYSQL", "42P01: no such table: nobody"),
        ("DUMP users TO FILE x", "42601"),
        ("DUMP", "42601"),
    ] {
        assert!(s.rows(sql).starts_with(wanted), "{sql}");
    }
    Ok(())
}

fn text_of(value: &Value) -> String {
    match value {
        Value::Text(text) => String::from_utf8_lossy(text).into_owned(),
        other => panic!("{other:?}"),
    }
}
