//! Documents: JSON that lies as nodes below rows.

use crate::scratch::Scratch;
use perilune::{node, Value as NodeValue};
use perilune_sql::{Connection, Result, Value};

#[test]
fn documents_lie_in_the_tree_and_come_back() -> Result<()> {
    let mut s = Scratch::new("documents");
    s.run(
        r#"CREATE TABLE users(id INTEGER PRIMARY KEY, info JSON, name TEXT);
        INSERT INTO users(info, name) VALUES ('{"address": {"city": "Oslo", "zip": "0150"}, "tags": ["a", "b"], "age": 36}', 'Ada'),
            ('{"age": 20.5, "tags": [], "more": {}, "no": null, "yes": true}', 'Ben'), (NULL, 'Cyd'), (7, 'Dan')"#,
    )?;
    let city = node!("^users", 1, "info", "address", "city")?;
    assert_eq!(s.session.get(&city)?, Some(NodeValue::String(b"Oslo".to_vec())));
    assert_eq!(s.session.get(&node!("^users", 2, "info", "no")?)?, Some(NodeValue::Null));
    assert_eq!(
        s.rows("SELECT info FROM users"),
        r#"{"address":{"city":"Oslo","zip":"0150"},"age":36,"tags":["a","b"]} {"age":20.5,"more":{},"no":null,"tags":[],"yes":true} NULL 7"#
    );
    for (sql, answer) in [
        ("SELECT info.address.city FROM users WHERE id = 1", "Oslo"),
        (
            "SELECT u.info.tags[2], u.info.tags.1, u.info['age'] FROM users AS u WHERE u.name = 'Ada'",
            "b|a|36",
        ),
        (
            "SELECT info.address, info.no, info.yes, info.none FROM users WHERE id < 3",
            "{\"city\":\"Oslo\",\"zip\":\"0150\"}|NULL|NULL|NULL NULL|NULL|1|NULL",
        ),
        ("SELECT name FROM users WHERE info.age > 30 ORDER BY info.age", "Ada"),
        ("SELECT sum(info.age) FROM users", "56.5"),
        ("SELECT info ->> '$.address.zip', info -> '$.tags' FROM users WHERE id = 1", "0150|[\"a\",\"b\"]"),
        ("SELECT tag.value FROM users, each(users.info.tags) AS tag WHERE name = 'Ada'", "a b"),
        ("SELECT json_type(info, '$.tags') FROM users WHERE id = 2", "array"),
        ("SELECT a.name, b.name FROM users a JOIN users b ON a.info.age > b.info.age", "Ada|Ben"),
        ("SELECT name AS \"info.x\" FROM users WHERE id = 1", "Ada"),
    ] {
        assert_eq!(s.rows(sql), answer, "{sql}");
    }
    // Elements are set and removed singly, and what others have written stays.
    s.session.set(&node!("^users", 1, "info", "by lua")?, 5)?;
    s.run(
        "UPDATE users SET info.address.city = 'Roma', name = upper(name), info.tags[3] = 'c', info.age = info.age + 1,
            info.address.zip = NULL WHERE id = 1;
        UPDATE users SET info.first = 'x' WHERE id = 3; UPDATE users SET info.list = '[1, {\"a\": 2}]' WHERE id = 3",
    )?;
    assert_eq!(
        s.rows("SELECT name, info FROM users WHERE id IN (1, 3)"),
        r#"ADA|{"address":{"city":"Roma"},"age":37,"by lua":5,"tags":["a","b","c"]} Cyd|{"first":"x","list":[1,{"a":2}]}"#
    );
    assert_eq!(s.session.get(&node!("^users", 3, "info", "list", 2, "a")?)?, Some(NodeValue::Int(2)));
    assert_eq!(s.rows("UPDATE users SET info.no.place = 1 WHERE id = 2").split(':').next(), Some("22P02"));
    assert_eq!(s.rows("UPDATE users SET info = '{\"a\": }' WHERE id = 1").split(':').next(), Some("22P02"));
    s.run("UPDATE users SET id = 9 WHERE id = 1; UPDATE users SET info = NULL WHERE id = 3; DELETE FROM users WHERE id = 2")?;
    assert_eq!(s.session.get(&node!("^users", 9, "info", "by lua")?)?, Some(NodeValue::Int(5)));
    assert!(s.session.data(&node!("^users", 1)?)? == perilune::Data::Nothing);
    assert!(s.session.data(&node!("^users", 2)?)? == perilune::Data::Nothing);
    assert_eq!(s.rows("SELECT count(*), max(id) FROM users"), "3|9");
    s.run("INSERT INTO users(info) VALUES ('{\"1\":\"a\",\"2\":\"b\"}')")?;
    assert_eq!(s.rows("SELECT info FROM users WHERE id = 10"), r#"{"1":"a","2":"b"}"#);
    Ok(())
}

#[test]
fn elements_have_indexes() -> Result<()> {
    let mut s = Scratch::new("elements");
    s.run(
        "CREATE TABLE t(id INTEGER PRIMARY KEY, d LUATABLE);
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300)
        INSERT INTO t(d) SELECT json_object('a', json_object('n', i % 50, 'name', 'x' || i), 'k', i) FROM n;
        INSERT INTO t(d) VALUES ('{\"a\": {\"n\": \"7\"}}'), (NULL), ('[]')",
    )?;
    let queries = [
        "SELECT count(*), sum(id) FROM t WHERE d.a.n = 7",
        "SELECT count(*), sum(id) FROM t WHERE d.a.n = '7'",
        "SELECT count(*), sum(id) FROM t WHERE d.a.n BETWEEN 10 AND 12",
        "SELECT count(*), sum(id) FROM t WHERE d.a.n >= 45 AND d.k < 100",
        "SELECT count(*), sum(id) FROM t WHERE d.a.n IS NULL",
        "SELECT count(*) FROM t x JOIN t y ON x.d.a.n = y.d.k WHERE x.id < 60",
        "SELECT d.a.name FROM t WHERE d.a.n = 3 ORDER BY d.k DESC LIMIT 2",
    ];
    let before: Vec<String> = queries.iter().map(|query| s.rows(query)).collect();
    s.run("CREATE INDEX an ON t(d.a.n); CREATE UNIQUE INDEX k ON t(d.k)")?;
    let after: Vec<String> = queries.iter().map(|query| s.rows(query)).collect();
    assert_eq!(before, after);
    let plan = s.rows("EXPLAIN QUERY PLAN SELECT id FROM t WHERE d.a.n = 7");
    assert!(plan.contains("= an"), "{plan}");
    assert_eq!(s.rows("SELECT * FROM t WHERE id = 1"), r#"1|{"a":{"n":1,"name":"x1"},"k":1}"#);
    let (other, mut session) = (Connection::open()?, s.database.session()?);
    let rows = other.query(&mut session, "SELECT id FROM t WHERE d.k = ?1", &[Value::from(9)])?;
    assert_eq!(rows.first(), Some(&Value::from(9)));
    // Entries follow their rows.
    s.run("UPDATE t SET d.a.n = 1000 WHERE d.a.n = 7; DELETE FROM t WHERE d.a.n = 8; REINDEX t; ANALYZE")?;
    assert_eq!(s.rows("SELECT count(*) FROM t WHERE d.a.n = 1000"), "6");
    assert_eq!(s.rows("SELECT count(*) FROM t WHERE d.a.n = 7"), "0");
    let rows = s.rows("SELECT count(*) FROM t");
    assert_eq!(s.session.count_valued(&node!("^t.an")?)?.to_string(), rows);
    assert_eq!(s.rows("INSERT INTO t(d) VALUES ('{\"k\": 9}')"), "23505: UNIQUE constraint failed: t.d.k");
    for sql in
        ["CREATE INDEX i ON t(d)", "CREATE TABLE u(d JSON PRIMARY KEY)", "CREATE TABLE u(d JSON UNIQUE)"]
    {
        assert!(s.rows(sql).starts_with("42611"), "{sql}");
    }
    assert!(s.rows("ALTER TABLE t RENAME COLUMN d TO e").starts_with("0A000"));
    s.run("CREATE TABLE c(d JSON CHECK (d.a > 1), CHECK (json_type(d) = 'object'))")?;
    assert!(s.rows("INSERT INTO c VALUES ('{\"a\": 1}')").starts_with("23514"));
    s.run("INSERT INTO c VALUES ('{\"a\": 2}')")?;
    Ok(())
}
