//! Bytes of rows, tables and indexes: RETURN SIZE and DESC.

use std::rc::Rc;

use crate::scratch::{text, Scratch};
use perilune::{node, NodeRef, Session};
use perilune_sql::{Access, Result, Rows, SqlState, Terms, Value};

/// What the tree takes at a name and below.
fn bytes(session: &mut Session, name: &str) -> u64 {
    let key = perilune::key::KeyBuf::global(name).expect("a name");
    let size = session.tree_size(NodeRef::from_encoded(key.as_bytes(), false)).expect("a size");
    size.key_bytes + size.value_bytes
}

#[test]
fn an_insert_tells_what_it_takes() -> Result<()> {
    let mut s = Scratch::new("sizes");
    s.run("CREATE TABLE users(id INTEGER PRIMARY KEY, name TEXT, info JSON)")?;
    s.run("CREATE INDEX by_name ON users(name); CREATE LRUINDEX ON users")?;
    let rows = s.sql.query(&mut s.session, "INSERT INTO users VALUES (7, 'Ada', NULL) RETURN SIZE", &[])?;
    assert_eq!(rows.columns(), ["row_bytes", "table_bytes", "index_bytes"]);
    let size = s.session.tree_size(&node!("^users", 7)?)?;
    let one = size.key_bytes + size.value_bytes;
    assert_eq!(bytes(&mut s.session, "users"), one);
    let indexes = |s: &mut Scratch| {
        ["users.by_name", "users.lru_users", "users.%lru"]
            .map(|it| bytes(&mut s.session, it))
            .iter()
            .sum::<u64>()
    };
    assert!(indexes(&mut s) > 0);
    assert_eq!(text(&rows), format!("{one}|{one}|{}", indexes(&mut s)));
    // A document is a part of its row; several rows are added up; text is longer than none.
    let told = s.rows("REPLACE INTO users VALUES (7, 'Ada', NULL), (8, 'Ben', '{\"a\":[1,2]}') RETURN SIZE;");
    let all = bytes(&mut s.session, "users");
    assert!(all > 3 * one, "{all} {one}");
    assert_eq!(told, format!("{all}|{all}|{}", indexes(&mut s)));
    let insert = "INSERT INTO users(id, name) VALUES (?, ?) ON CONFLICT DO UPDATE SET name = ? return size";
    let parameters: [Value; 3] = [7.into(), "x".into(), "a much longer name".into()];
    let rows = s.sql.query(&mut s.session, insert, &parameters)?;
    assert_eq!(rows.first(), Some(&Value::from(one as i64 + 15)));
    assert_eq!(s.rows("SELECT name FROM users WHERE id = 7"), "a much longer name");
    // In a transaction it sees that.
    s.run("CREATE TABLE line(k TEXT, n INT, a TEXT, PRIMARY KEY(k, n)); BEGIN; INSERT INTO line VALUES ('a', 1, 'x')")?;
    let told = s.rows("INSERT INTO line VALUES ('a', 2, 'x') RETURN SIZE");
    let [row, table, index] = told.split('|').map(|it| it.parse().unwrap_or(0)).collect::<Vec<u64>>()[..]
    else {
        panic!("{told}")
    };
    assert_eq!((table, index), (2 * row, 0));
    s.run("ROLLBACK")?;
    assert_eq!(s.rows("SELECT count(*) FROM line"), "0");
    Ok(())
}

#[test]
fn a_description_tells_what_a_table_takes() -> Result<()> {
    let mut s = Scratch::new("sizes-desc");
    s.run("CREATE TABLE users(id INTEGER PRIMARY KEY, name TEXT UNIQUE, city TEXT)")?;
    s.run("CREATE INDEX by_city ON users(city, name); ALTER TABLE users SET DIRTY")?;
    s.run("INSERT INTO users VALUES (1, 'Ada', 'Oslo'), (2, 'Ben', 'Rome'), (3, 'Cyd', 'Bonn'), (4, 'Dan', 'Bern'); EVICT users 3")?;
    let table = bytes(&mut s.session, "users");
    let [unique, city] = ["users.%unique1", "users.by_city"].map(|it| bytes(&mut s.session, it));
    assert!(unique > 0 && city > unique, "{unique} {city}");
    let tail = format!("{}|{table}|1", (table + 1) / 3);
    assert_eq!(
        s.rows("DESC users"),
        format!(
            "id|INTEGER|0|NULL|1||NULL|{tail} name|TEXT|0|NULL|0|sqlite_autoindex_users_1, by_city|{}|{tail} \
             city|TEXT|0|NULL|0|by_city|{city}|{tail}",
            unique + city
        )
    );
    Ok(())
}

#[test]
fn what_has_no_size_says_so() -> Result<()> {
    let mut s = Scratch::new("sizes-none");
    s.run("CREATE TABLE t(id INTEGER PRIMARY KEY, size INT); CREATE VIEW v AS SELECT * FROM t")?;
    for (sql, wanted) in [
        ("INSERT INTO t VALUES (1, 2) RETURNING id RETURN SIZE", "42601: expected INSERT INTO"),
        ("INSERT INTO nobody VALUES (1) RETURN SIZE", "42P01: no such table: nobody"),
        ("INSERT INTO v VALUES (1) RETURN SIZE", "42P01"),
        ("UPDATE t SET size = 1 RETURN SIZE", "42601"),
        ("INSERT INTO t VALUES (1, 2) RETURN", "42601"),
        ("INSERT INTO t SELECT 1, 2 AS size", ""),
        ("INSERT INTO t VALUES (1, 2) RETURN SIZE", "23505"),
        ("SELECT id FROM t ORDER BY size", "1"),
    ] {
        let told = s.rows(sql);
        assert!(told.starts_with(wanted) && told.is_empty() == wanted.is_empty(), "{sql}: {told}");
    }
    // It reads what it has written.
    let permit = |_: &str, access| access == Access::Writes;
    let terms = Terms { permit: Some(Rc::new(permit)), ..Terms::default() };
    let sql = "INSERT INTO t VALUES (5, 5) RETURN SIZE";
    let told = s.sql.run_under(&mut s.session, sql, &[], &terms, &mut Rows::default());
    assert_eq!(told.expect_err("refused").state(), SqlState::DENIED);
    assert_eq!(s.rows("SELECT count(*) FROM t"), "1");
    Ok(())
}
