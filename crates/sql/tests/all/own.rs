//! Functions of the program's that use the session of the statement which calls them.

use crate::scratch::Scratch;
use perilune::{node, Database};
use perilune_sql::{Asks, Result, SqlState, Terms, Value};

fn number(value: &Value) -> i64 {
    match value {
        Value::Integer(integer) => *integer,
        _ => -1,
    }
}

/// Counts a visit of a row; the third is an error.
fn visit(asks: &mut dyn Asks, arguments: &[Value]) -> Result<Value> {
    let seen = node!("^seen", number(&arguments[0]))?;
    let count = asks.session().increment(&seen, 1)?.to_string();
    if count == "3" {
        return Err(perilune_sql::Error::new(SqlState::FUNCTION, "that is enough"));
    }
    Ok(Value::Text(count.into_bytes()))
}

fn seen(s: &mut Scratch) -> String {
    (1..4)
        .map(|id| {
            s.session
                .get(&node!("^seen", id).expect("a node"))
                .expect("a value")
                .map_or("-".into(), |it| it.to_string())
        })
        .collect()
}

#[test]
fn they_write_in_the_statements_transaction() -> Result<()> {
    let mut s = Scratch::new("own");
    s.run(
        "CREATE TABLE t(id INTEGER PRIMARY KEY, a TEXT); INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c')",
    )?;
    s.sql.set_asking_function("visit", Some(1), false, visit)?;
    assert_eq!(s.rows("SELECT visit(id) FROM t ORDER BY id"), "1 1 1");
    assert_eq!(s.rows("UPDATE t SET a = visit(id) WHERE id < 3 RETURNING a"), "2 2");
    assert_eq!(seen(&mut s), "221");
    // A statement that fails leaves nothing, alone and inside a transaction, and also if it reads.
    assert_eq!(s.rows("SELECT visit(id) FROM t ORDER BY id DESC"), "38000: that is enough");
    assert_eq!(seen(&mut s), "221");
    s.run("BEGIN; UPDATE t SET a = 'x' WHERE id = 3")?;
    assert_eq!(s.rows("SELECT visit(id) FROM t ORDER BY id DESC"), "38000: that is enough");
    assert_eq!(s.rows("SELECT visit(3)"), "2");
    assert_eq!(seen(&mut s), "222");
    s.run("ROLLBACK")?;
    assert_eq!(seen(&mut s), "221");
    // It sees what its transaction has written, and its statements call functions.
    s.sql.set_asking_function("names", None, false, |asks, _| {
        asks.session().delete_tree(&node!("^seen")?)?;
        let (rows, _) =
            asks.query("SELECT group_concat(a || visit(id), ' ') FROM t WHERE id > ?", &[Value::from(1)])?;
        Ok(rows.first().cloned().unwrap_or(Value::Null))
    })?;
    s.run("BEGIN; UPDATE t SET a = 'new' WHERE id = 2")?;
    assert_eq!(s.rows("SELECT names()"), "new1 c1");
    s.run("COMMIT")?;
    assert_eq!(seen(&mut s), "-11");
    // What an index or a reader's terms forbid, it may not do either.
    let terms = Terms { read_only: true, ..Terms::default() };
    let mut rows = perilune_sql::Rows::default();
    s.sql.set_asking_function("writes", None, false, |asks, _| {
        assert!(asks.is_read_only());
        asks.query("DELETE FROM t", &[]).map(|_| Value::Null)
    })?;
    let error = s
        .sql
        .run_under(&mut s.session, "SELECT writes()", &[], &terms, &mut rows)
        .expect_err("it reads alone");
    assert_eq!(error.state(), SqlState::READ_ONLY);
    s.sql.remove_function("visit")?;
    assert!(s.rows("SELECT visit(1)").contains("no such function"));
    Ok(())
}

/// What others do meanwhile has the statement run again, with its function, whatever that makes of the conflict.
#[test]
fn a_conflict_runs_them_again() -> Result<()> {
    let mut s = Scratch::new("own-conflict");
    s.session.set(&node!("^n")?, 1)?;
    let other: Database = s.database.clone();
    let runs = std::rc::Rc::new(std::cell::Cell::new(0));
    let counted = std::rc::Rc::clone(&runs);
    s.sql.set_asking_function("adds", Some(1), false, move |asks, arguments| {
        counted.set(counted.get() + 1);
        let before =
            asks.session().get(&node!("^n")?)?.map_or(0, |value| value.to_string().parse().unwrap_or(0));
        if counted.get() == 1 {
            other.session()?.set(&node!("^n")?, 10)?;
        }
        let _ = asks.session().set(&node!("^n")?, before + number(&arguments[0]));
        Ok(Value::from(before + number(&arguments[0])))
    })?;
    assert_eq!(s.rows("SELECT adds(5)"), "15");
    assert_eq!(runs.get(), 2);
    assert_eq!(s.session.get(&node!("^n")?)?.map(|value| value.to_string()).as_deref(), Some("15"));
    Ok(())
}
