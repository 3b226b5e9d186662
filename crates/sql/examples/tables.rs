//! Tables in the tree: what the guide shows, checked.
//!
//!     cargo run -p perilune-sql --example tables

use std::error::Error;

use perilune::{node, Database, Session};
use perilune_sql::{Connection, Value};

fn main() -> Result<(), Box<dyn Error>> {
    let directory = std::env::temp_dir().join(format!("perilune-tables-{}", std::process::id()));
    std::fs::create_dir_all(&directory)?;
    let mut session = Database::open(directory.join("shop.db"))?.session()?;
    let sql = Connection::open()?;
    sql.execute_script(
        &mut session,
        "CREATE TABLE users(id INTEGER PRIMARY KEY, name TEXT NOT NULL, city TEXT DEFAULT 'Oslo');
         CREATE INDEX city ON users(city);
         INSERT INTO users(name) VALUES ('Ada'), ('Ben');",
    )?;
    let rows = sql.query(&mut session, "SELECT id, name FROM users WHERE city = ?1", &["Oslo".into()])?;
    for row in &rows {
        println!("{:?} {:?}", row[0], row[1]);
    }
    assert_eq!(rows.len(), 2);
    assert_eq!(rows.first(), Some(&Value::Integer(1)));

    let ada = session.get(&node!("^users", 1)?)?.ok_or("the row is a node")?;
    assert_eq!(ada.to_string(), "record(\"Ada\",\"Oslo\")");
    assert!(session.get(&node!("^users.city", "'Oslo", 1)?)?.is_some());

    session.transaction(|session| {
        sql.execute(session, "UPDATE users SET city = 'Rome' WHERE name = 'Ada'", &[])?;
        session.increment(&node!("^moves")?, 1)?;
        Ok(())
    })?;
    let rows = sql.query(&mut session, "SELECT count(*) FROM users WHERE city = 'Rome'", &[])?;
    assert_eq!(rows.first(), Some(&Value::Integer(1)));
    over(&sql, &mut session)?;
    documents(&sql, &mut session)?;
    decimals(&sql, &mut session)?;
    std::fs::remove_dir_all(&directory)?;
    Ok(())
}

/// Any subtree is a table.
fn over(sql: &Connection, session: &mut Session) -> Result<(), Box<dyn Error>> {
    session.set(&node!("^person", 7, "name")?, "Ada")?;
    session.set(&node!("^person", 7, "birth", "year")?, 1815)?;
    sql.execute_script(
        session,
        "CREATE TABLE person OVER ^person(id) (
             id INTEGER, name TEXT, born INT AT ('birth', 'year'), note TEXT AT VALUE);
         CREATE TABLE line OVER ^shop('lines', country, no) (country TEXT, no INT, what TEXT) READONLY;
         UPDATE person SET note = 'counts', born = born + 1 WHERE name = 'Ada'",
    )?;
    assert_eq!(session.get_int(&node!("^person", 7, "birth", "year")?)?, Some(1816));
    assert_eq!(session.get_str(&node!("^person", 7)?)?, Some("counts"));
    let rows = sql.query(session, "SELECT count(*) FROM line", &[])?;
    assert_eq!(rows.first(), Some(&Value::Integer(0)));
    Ok(())
}

/// Documents are subtrees of their rows.
fn documents(sql: &Connection, session: &mut Session) -> Result<(), Box<dyn Error>> {
    sql.execute_script(
        session,
        r#"CREATE TABLE people(id INTEGER PRIMARY KEY, info JSON);
         INSERT INTO people(info) VALUES ('{"address": {"city": "Oslo"}, "tags": ["a", "b"]}')"#,
    )?;
    assert_eq!(session.get_str(&node!("^people", 1, "info", "address", "city")?)?, Some("Oslo"));
    let rows = sql.query(session, "SELECT info.address.city, u.info.tags[1] FROM people AS u", &[])?;
    assert_eq!(rows.at(0), Some(&[Value::from("Oslo"), Value::from("a")][..]));
    sql.execute_script(
        session,
        "UPDATE people SET info.address.city = 'Rome', info.age = 36; CREATE INDEX home ON people(info.address.city)",
    )?;
    assert_eq!(session.get_str(&node!("^people", 1, "info", "address", "city")?)?, Some("Rome"));
    let rows = sql.query(session, "SELECT tag.value FROM people, each(people.info.tags) AS tag", &[])?;
    assert_eq!(rows.len(), 2);
    let rows =
        sql.query(session, "SELECT info.age FROM people WHERE info.address.city = ?", &["Rome".into()])?;
    assert_eq!(rows.first(), Some(&Value::Integer(36)));
    Ok(())
}

/// Decimals are calculated with exactly.
fn decimals(sql: &Connection, session: &mut Session) -> Result<(), Box<dyn Error>> {
    sql.execute_script(
        session,
        "CREATE TABLE item(id INTEGER PRIMARY KEY, price DECIMAL(10,2), tax DECIMAL(4,3));
         INSERT INTO item VALUES (1, 0.10, 0.2), (2, '19.90', 0.25)",
    )?;
    let rows = sql.query(session, "SELECT price + tax FROM item WHERE price + tax = 0.3", &[])?;
    assert_eq!(rows.first(), Some(&Value::Real(0.3)));
    let rows = sql.query(session, "SELECT sum(price), round(sum(price * tax), 2) FROM item", &[])?;
    assert_eq!(rows.at(0), Some(&[Value::Real(20.0), Value::Real(5.0)][..]));
    Ok(())
}
