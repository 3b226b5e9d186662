//! PREPARE, EXECUTE and DEALLOCATE: statements kept under a name.

use crate::scratch::{text, Scratch};
use perilune_sql::{Connection, Result};

fn employees(name: &str) -> Result<Scratch> {
    let mut s = Scratch::new(name);
    s.run(
        "CREATE TABLE employee(id INTEGER PRIMARY KEY, name TEXT, salary INT, division INT);
        INSERT INTO employee VALUES (1, 'tim', 10, 22), (2, 'jack', 20, 22), (3, 'jan', 30, 33), (4, 'bill', 5, 22)",
    )?;
    Ok(s)
}

/// The worked case 29 of AlchemyDB's inventory, and a join.
#[test]
fn a_statement_is_run_by_its_name() -> Result<()> {
    let mut s = employees("prepared")?;
    s.run(
        "CREATE TABLE division(id INTEGER PRIMARY KEY, title TEXT);
        INSERT INTO division VALUES (22, 'middle-management'), (33, 'top-level');
        PREPARE P_RQ AS SELECT name FROM employee WHERE division = $1 ORDER BY name;
        PREPARE p_join AS SELECT e.name, d.title FROM employee e JOIN division d ON d.id = e.division
            WHERE e.salary > $2 AND d.title <> $1 ORDER BY 1",
    )?;
    assert_eq!(s.rows("EXECUTE p_rq 22"), "bill jack tim");
    assert_eq!(s.rows("execute P_rq(20 + 2);"), "bill jack tim");
    assert_eq!(s.rows("EXECUTE p_rq((SELECT min(division) FROM employee))"), "bill jack tim");
    assert_eq!(s.rows("EXECUTE p_join('top-level', 5)"), "jack|middle-management tim|middle-management");
    assert_eq!(s.rows("EXECUTE p_join '' 29"), "jan|top-level");
    // A text is a value, whatever stands in it.
    assert_eq!(s.rows("EXECUTE p_join('x'' OR 1=1 --', 29)"), "jan|top-level");
    let rows = s.sql.query(&mut s.session, "EXECUTE p_rq(?1)", &[33.into()])?;
    assert_eq!((text(&rows), rows.columns()), ("jan".into(), &["name".to_owned()][..]));
    // Another connection, as of another process, has it as well.
    let (other, mut session) = (Connection::open()?, s.database.session().expect("a session"));
    let rows = other.query(&mut session, "EXECUTE p_rq 22", &[])?;
    assert_eq!(text(&rows), "bill jack tim");
    Ok(())
}

#[test]
fn changes_and_transactions_are_those_of_the_text() -> Result<()> {
    let mut s = employees("prepared-changes")?;
    s.run(
        "PREPARE raise AS UPDATE employee SET salary = salary + $2 WHERE division = $1 RETURNING id, salary",
    )?;
    assert_eq!(s.rows("EXECUTE raise(22, 1)"), "1|11 2|21 4|6");
    s.run("BEGIN; EXECUTE raise(22, 100); ROLLBACK")?;
    s.run("PREPARE gone AS DELETE FROM employee WHERE id = ?")?;
    assert_eq!(s.sql.execute(&mut s.session, "EXECUTE gone 3", &[])?.changes, 1);
    assert_eq!(s.rows("SELECT sum(salary) FROM employee"), "38");
    // It lasts as long as what it names; an error says so, and it works again when that is there again.
    s.run("DROP TABLE employee")?;
    assert!(s.rows("EXECUTE gone 3").starts_with("42P01"));
    s.run("CREATE TABLE employee(id INTEGER PRIMARY KEY)")?;
    assert_eq!(s.rows("EXECUTE gone 3"), "");
    s.run("DEALLOCATE gone; DEALLOCATE PREPARE raise")?;
    assert!(s.rows("EXECUTE raise(1, 2)").starts_with("26000"));
    Ok(())
}

#[test]
fn what_is_wrong_is_said() -> Result<()> {
    let mut s = employees("prepared-wrong")?;
    s.run("PREPARE one AS SELECT $1")?;
    for (sql, wanted) in [
        ("PREPARE one AS SELECT 2", "42P07: there is a prepared statement one: DEALLOCATE it first"),
        ("PREPARE two AS SELECT nope FROM employee", "42703"),
        ("PREPARE two AS CREATE TABLE t(a)", "42601: expected PREPARE name AS, and SELECT"),
        ("PREPARE two AS EXECUTE one 1", "42601"),
        ("PREPARE two", "42601"),
        ("PREPARE", "42601: expected PREPARE name AS statement"),
        ("EXECUTE two 1", "26000: no such prepared statement: two; PREPARE two AS ... makes it"),
        ("EXECUTE one", "22023"),
        ("EXECUTE one(1, 2)", "22023"),
        ("EXECUTE one(1", "42601: expected ) at the end of the arguments"),
        ("EXECUTE one(1) 2", "42601: expected the end of the statement"),
        ("EXECUTE one name", "42601: expected values"),
        ("EXECUTE", "42601"),
        ("DEALLOCATE two", "26000"),
        ("DEALLOCATE one two", "42601"),
    ] {
        let answer = s.rows(sql);
        assert!(answer.starts_with(wanted), "{sql}: {answer}");
    }
    assert_eq!(s.rows("EXECUTE one(7)"), "7");
    Ok(())
}

/// The example of docs/guide/sql.md.
#[test]
fn the_guide_shows_what_happens() -> Result<()> {
    let guide = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/sql.md"));
    let guide = guide.expect("the guide");
    let (_, section) = guide.split_once("\n## Prepared statements\n").expect("its section");
    let block = section.split("```").nth(1).and_then(|block| block.strip_prefix("sql\n")).expect("a block");
    let mut s = employees("prepared-guide")?;
    for line in block.lines() {
        match line.split_once("-- ") {
            Some((sql, wanted)) => assert_eq!(s.rows(sql), wanted, "{sql}"),
            None => s.run(line)?,
        }
    }
    Ok(())
}
