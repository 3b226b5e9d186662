//! SHOW and DESC: what the schema has.

use std::rc::Rc;

use crate::scratch::{text, Scratch};
use perilune::node;
use perilune_sql::{Access, Result, Rows, SqlState, Terms};

fn shop(name: &str) -> Result<Scratch> {
    let mut s = Scratch::new(name);
    s.run(
        "CREATE TABLE Users(id INTEGER PRIMARY KEY, name TEXT NOT NULL DEFAULT 'it''s', info JSON);
        CREATE TABLE line(country TEXT, no INT, what TEXT, PRIMARY KEY (country, no));
        CREATE UNIQUE INDEX mail ON users(lower(name)) WHERE id > 3;
        CREATE INDEX city ON users(info.address.city, name);
        CREATE VIEW old AS SELECT id, name AS called FROM users;
        CREATE TRIGGER log AFTER INSERT ON users BEGIN DELETE FROM line; END;
        CREATE TRIGGER put INSTEAD OF UPDATE ON old BEGIN DELETE FROM line; END",
    )?;
    // What a program with Lua has defined; this one has none.
    let mut other = s.database.session()?;
    let sql = "CREATE FUNCTION gross(net, rate) DETERMINISTIC AS 'return net * (1 + rate)'";
    other.set(&node!("^sql", "function", "gross", "sql")?, sql)?;
    Ok(s)
}

#[test]
fn what_there_is_is_shown() -> Result<()> {
    let mut s = shop("shown")?;
    assert_eq!(s.rows("SHOW TABLES"), "line Users");
    assert_eq!(s.rows("show views;"), "old");
    assert_eq!(
        s.rows("SHOW INDEXES"),
        "city|Users|info.address.city, name|0|ready mail|Users|lower(name) WHERE id > 3|1|ready"
    );
    assert_eq!(s.rows("SHOW TRIGGERS"), "put|old|INSTEAD OF UPDATE log|users|AFTER INSERT");
    assert_eq!(s.rows("SHOW FUNCTIONS"), "gross|net, rate|a value");
    let rows = s.sql.query(&mut s.session, "SHOW INDEXES", &[])?;
    assert_eq!(rows.columns(), ["name", "table", "columns", "unique", "state"]);
    Ok(())
}

#[test]
fn a_table_is_described() -> Result<()> {
    let mut s = shop("described")?;
    let empty = "|NULL|0|NULL";
    assert_eq!(
        s.rows("DESC users"),
        format!("id|INTEGER|0|NULL|1||NULL{empty} name|TEXT|1|'it''s'|0|city|0{empty} info|JSON|0|NULL|0||NULL{empty}")
    );
    let line = format!(
        "country|TEXT|1|NULL|1||NULL{empty} no|INT|1|NULL|2||NULL{empty} what|TEXT|0|NULL|0||NULL{empty}"
    );
    assert_eq!(s.rows("DESCRIBE line"), line);
    assert!(
        s.rows("DESC old").starts_with("id|INTEGER|0|NULL|0||NULL|NULL|NULL|NULL called|TEXT|"),
        "{}",
        s.rows("DESC old")
    );
    s.run("ALTER TABLE line ADD COLUMN more REAL")?;
    assert!(s.rows("DESC line").ends_with(&format!("more|REAL|0|NULL|0||NULL{empty}")));
    let rows = s.sql.query(&mut s.session, "DESC line", &[])?;
    let names = [
        "name",
        "type",
        "not_null",
        "default",
        "key",
        "indexes",
        "index_bytes",
        "row_bytes",
        "table_bytes",
        "evicted",
    ];
    assert_eq!(rows.columns(), names);
    Ok(())
}

#[test]
fn nothing_is_no_rows_and_nonsense_an_error() -> Result<()> {
    let mut s = Scratch::new("shown-empty");
    for what in ["TABLES", "VIEWS", "INDEXES", "TRIGGERS", "FUNCTIONS"] {
        assert_eq!(s.rows(&format!("SHOW {what}")), "");
    }
    for (sql, wanted) in [
        ("DESC nobody", "42P01: no such table: nobody"),
        ("DESC", "42601"),
        ("SHOW", "42601"),
        ("SHOW TABLES now", "42601"),
        ("SHOW everything", "42601"),
        ("DESC 7", "42601"),
    ] {
        assert!(s.rows(sql).starts_with(wanted), "{sql}: {}", s.rows(sql));
    }
    Ok(())
}

/// What a user may not read he does not see.
#[test]
fn rights_hold() -> Result<()> {
    let mut s = shop("shown-rights")?;
    let permit = |table: &str, access| access == Access::Reads && table == "line";
    let terms = Terms { read_only: true, permit: Some(Rc::new(permit)), ..Terms::default() };
    for (sql, wanted) in [
        ("SHOW TABLES", "line"),
        ("SHOW VIEWS", ""),
        ("SHOW INDEXES", ""),
        ("SHOW TRIGGERS", ""),
        ("DESC line", "country|TEXT|1|NULL|1||NULL|NULL|0|NULL no|INT|1|NULL|2||NULL|NULL|0|NULL what|TEXT|0|NULL|0||NULL|NULL|0|NULL"),
    ] {
        let mut rows = Rows::default();
        s.sql.run_under(&mut s.session, sql, &[], &terms, &mut rows)?;
        assert_eq!(text(&rows), wanted, "{sql}");
    }
    for sql in ["DESC users", "DESC old", "DESC nobody"] {
        let error = s.sql.run_under(&mut s.session, sql, &[], &terms, &mut Rows::default());
        assert_eq!(error.expect_err(sql).state(), SqlState::DENIED, "{sql}");
    }
    Ok(())
}
