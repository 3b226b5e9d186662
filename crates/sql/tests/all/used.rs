//! LRU and LFU: hidden columns that say how rows are used, and their indexes.

use std::cell::Cell;
use std::rc::Rc;

use crate::scratch::Scratch;
use perilune::{node, Session};
use perilune_sql::{Connection, Result};

/// A database whose connection has a clock that stands.
fn hot(name: &str) -> (Scratch, Rc<Cell<i64>>) {
    let s = Scratch::new(name);
    let clock = Rc::new(Cell::new(1_000));
    let told = Rc::clone(&clock);
    s.sql.set_clock(move || told.get());
    (s, clock)
}

fn select(s: &mut Scratch, id: i64, times: usize) {
    for _ in 0..times {
        assert_ne!(s.rows(&format!("SELECT * FROM hot WHERE pk = {id}")), "");
    }
}

/// The worked case 27 of the inventory.
#[test]
fn rows_are_in_buckets_by_how_often_they_were_used() -> Result<()> {
    let (mut s, _) = hot("lfu");
    s.run("CREATE TABLE hot(pk INTEGER PRIMARY KEY, fk1 INT, col BIGINT); CREATE LFUINDEX ON hot")?;
    s.run("INSERT INTO hot(fk1, col) VALUES (1,1), (1,2), (1,3), (1,4), (1,5), (1,6), (1,7), (1,8), (1,9)")?;
    for (id, times) in [(1, 19), (2, 9), (3, 6), (4, 2)] {
        select(&mut s, id, times);
    }
    for (bucket, rows) in [(5, "1"), (4, "2"), (3, "3"), (2, "4"), (1, "5 6 7 8 9")] {
        assert_eq!(s.rows(&format!("SELECT pk FROM hot WHERE LFU = {bucket}")), rows, "{bucket}");
    }
    assert_eq!(s.rows("SELECT * FROM hot WHERE lfu > 3"), "2|1|2 1|1|1");
    assert_eq!(s.rows("SELECT pk, LFU FROM hot ORDER BY LFU DESC, pk DESC LIMIT 3"), "1|5 2|4 3|3");
    s.run("DELETE FROM hot WHERE LFU = 3; DELETE FROM hot WHERE LFU = 1")?;
    assert_eq!(s.rows("SELECT * FROM hot"), "1|1|1 2|1|2 4|1|4");
    // A change is a use, too; a row that was there and is replaced goes on counting.
    s.run("UPDATE hot SET fk1 = 2 WHERE pk = 4; REPLACE INTO hot VALUES (2, 7, 7)")?;
    assert_eq!(s.rows("DUMP hot"), "1|1|1|5 2|7|7|4 4|2|4|3");
    Ok(())
}

#[test]
fn a_row_knows_when_it_was_used_last() -> Result<()> {
    let (mut s, clock) = hot("lru");
    s.run(
        "CREATE TABLE hot(pk INTEGER PRIMARY KEY, a TEXT); INSERT INTO hot VALUES (1,'a'), (2,'b'), (3,'c')",
    )?;
    s.run("CREATE INDEX by_a ON hot(a); CREATE LRUINDEX ON hot")?;
    assert_eq!(s.rows("SELECT pk, LRU FROM hot"), "1|1000 2|1000 3|1000");
    clock.set(1_019);
    s.run("INSERT INTO hot VALUES (4, 'd'); UPDATE hot SET a = 'x' WHERE pk = 1")?;
    assert_eq!(s.rows("SELECT a FROM hot WHERE a = 'b'"), "b");
    assert_eq!(s.rows("SELECT pk, LRU FROM hot ORDER BY LRU, pk"), "3|1000 1|1010 2|1010 4|1010");
    // The coldest first, by the index.
    let plan = s.rows("EXPLAIN QUERY PLAN SELECT pk FROM hot ORDER BY LRU LIMIT 2");
    assert!(plan.contains("lru_hot") && !plan.contains("TEMP B-TREE"), "{plan}");
    let plan = s.rows("EXPLAIN QUERY PLAN DELETE FROM hot WHERE LRU < 1010");
    assert!(plan.contains("lru_hot"), "{plan}");
    // Walking over all, and asking by LRU, uses nothing.
    clock.set(1_030);
    s.rows("SELECT * FROM hot");
    s.rows("SELECT a FROM hot WHERE a LIKE '%b%'");
    s.rows("SELECT * FROM hot WHERE LRU < 2000");
    assert_eq!(s.rows("SELECT group_concat(LRU, ' ') FROM hot"), "1010 1010 1000 1010");
    s.run("DELETE FROM hot WHERE LRU <= 1000")?;
    assert_eq!(s.rows("SELECT pk FROM hot"), "1 2 4");
    // A clock that goes back takes no stamp back.
    clock.set(7);
    s.run("UPDATE hot SET a = 'y' WHERE pk = 1")?;
    select(&mut s, 1, 1);
    assert_eq!(s.rows("SELECT LRU FROM hot WHERE pk = 1"), "1010");
    Ok(())
}

#[test]
fn its_column_is_hidden_and_its_own() -> Result<()> {
    let (mut s, clock) = hot("usage-hidden");
    s.run("CREATE TABLE hot(k TEXT, n INT, a, info JSON, PRIMARY KEY (k, n)); CREATE LRUINDEX ON hot; CREATE LFUINDEX ON hot")?;
    s.run("INSERT INTO hot VALUES ('a', 1, 'x', '{\"b\":[1]}'), ('a', 2, 'y', NULL)")?;
    assert_eq!(s.rows("SELECT * FROM hot"), "a|1|x|{\"b\":[1]} a|2|y|NULL");
    assert_eq!(s.rows("DUMP hot"), "a|1|x|{\"b\":[1]}|1|1000 a|2|y|NULL|1|1000");
    assert!(
        s.rows("DESC hot").contains(" LRU|INTEGER|0|NULL|0|lru_hot|")
            && s.rows("DESC hot").contains(" LFU|INTEGER|0|NULL|0|lfu_hot|"),
        "{}",
        s.rows("DESC hot")
    );
    assert_eq!(s.rows("SHOW INDEXES"), "lfu_hot|hot|LFU|0|ready lru_hot|hot|LRU|0|ready");
    assert!(!s.rows("DUMP hot TO MYSQL").contains("LRU"));
    for (sql, wanted) in [
        ("INSERT INTO hot(k, n, LRU) VALUES ('b', 1, 5)", "0A000: hot.LRU says how the row is used"),
        ("UPDATE hot SET LFU = 5", "0A000: hot.LFU says how the row is used"),
        ("CREATE LRUINDEX ON hot", "42P07: table hot has its LRU already"),
        ("CREATE INDEX i ON hot(a, LRU)", "42611: LRU has an index"),
        ("ALTER TABLE hot DROP COLUMN LRU", "0A000: LRU is its index's"),
        ("ALTER TABLE hot RENAME COLUMN LFU TO x", "0A000: LFU is its index's"),
        ("ALTER TABLE hot ADD COLUMN lru INT", "42P07"),
        ("CREATE LFUINDEX ON nobody", "42P01: no such table: nobody"),
        ("CREATE LFUINDEX nobody", "42601: expected ON"),
        ("CREATE LFUINDEX IF NOT EXISTS ON hot", ""),
    ] {
        let told = s.rows(sql);
        assert!(told.starts_with(wanted) && told.is_empty() == wanted.is_empty(), "{sql}: {told}");
    }
    s.run("CREATE TABLE own(id INTEGER PRIMARY KEY, lru INT)")?;
    assert!(s.rows("CREATE LRUINDEX ON own").starts_with("42P07: own has a column LRU of its own"));
    // A row takes along what it keeps.
    clock.set(1_020);
    s.rows("SELECT a FROM hot WHERE k = 'a' AND n = 1");
    s.run("UPDATE hot SET n = 7 WHERE n = 1")?;
    assert_eq!(s.rows("SELECT n, LRU, LFU FROM hot ORDER BY n"), "2|1000|1 7|1020|2");
    assert_eq!(s.rows("UPDATE hot SET a = 'z' WHERE n = 7 RETURNING LRU, LFU"), "1020|3");
    s.run("ALTER TABLE hot RENAME TO cold; DELETE FROM cold WHERE n = 7")?;
    assert_eq!(s.rows("SELECT n, LRU, LFU FROM cold"), "2|1000|1");
    s.run("DROP INDEX lru_hot")?;
    assert!(s.rows("SELECT LRU FROM cold").starts_with("42703"));
    assert_eq!(count(&mut s.session, "^hot.%lru"), 0);
    s.run("DROP TABLE cold")?;
    assert_eq!(count(&mut s.session, "^hot.%lfu") + count(&mut s.session, "^hot.lfu_hot"), 0);
    Ok(())
}

fn count(session: &mut Session, name: &str) -> u64 {
    let key = perilune::key::KeyBuf::global(name.trim_start_matches('^')).expect("a name");
    session.count_valued(perilune::NodeRef::from_encoded(key.as_bytes(), false)).expect("a count")
}

/// Reads seldom write: once in ten seconds, and once for each bucket.
#[test]
fn reads_write_seldom_and_behind_transactions() -> Result<()> {
    let (mut s, clock) = hot("usage-seldom");
    s.run("CREATE TABLE hot(pk INTEGER PRIMARY KEY, a); CREATE LRUINDEX ON hot; CREATE LFUINDEX ON hot")?;
    s.run("INSERT INTO hot VALUES (1, 'a')")?;
    let kept = |s: &mut Scratch, name: &str| {
        let mut key = perilune::key::KeyBuf::global(name).expect("a name");
        key.push_int(1).expect("a row");
        s.session.get_int(perilune::NodeRef::from_encoded(key.as_bytes(), false)).expect("a number")
    };
    select(&mut s, 1, 1_000);
    // It was written where a bucket began, last at 512.
    assert_eq!((kept(&mut s, "hot.%lfu"), kept(&mut s, "hot.%lru")), (Some(512), Some(1_000)));
    clock.set(1_009);
    select(&mut s, 1, 10);
    assert_eq!(s.rows("SELECT LRU, LFU FROM hot"), "1000|10");
    clock.set(1_010);
    select(&mut s, 1, 10);
    assert_eq!(s.rows("SELECT LRU, LFU FROM hot"), "1010|10");
    // A change takes along what waits.
    s.run("UPDATE hot SET a = 'b'")?;
    assert_eq!(kept(&mut s, "hot.%lfu"), Some(1_022));
    // In a transaction it waits for the end.
    clock.set(1_050);
    s.run("BEGIN")?;
    select(&mut s, 1, 1);
    assert_eq!(s.rows("SELECT LRU FROM hot"), "1010");
    s.run("COMMIT")?;
    assert_eq!(s.rows("SELECT LRU FROM hot"), "1050");
    // One of the caller's is over when the next statement runs.
    clock.set(1_060);
    s.session.transaction(|session| Ok(s.sql.execute(session, "SELECT a FROM hot WHERE pk = 1", &[])?))?;
    assert_eq!(s.rows("SELECT 1"), "1");
    assert_eq!(s.rows("SELECT LRU FROM hot"), "1060");
    // What was rolled back is no use of a row that is not there.
    s.run("BEGIN; INSERT INTO hot VALUES (2, 'b')")?;
    select(&mut s, 2, 1);
    s.run("ROLLBACK")?;
    select(&mut s, 1, 1);
    assert_eq!(s.rows("SELECT pk FROM hot WHERE LFU > 0"), "1");
    assert_eq!(s.session.data(&node!("^hot.lru_hot", 1060, 2)?)?, perilune::Data::Nothing);
    Ok(())
}

/// Joins find rows; references and triggers look at rows that nobody asked for.
#[test]
fn what_finds_a_row_uses_it() -> Result<()> {
    let (mut s, clock) = hot("usage-finds");
    s.run(
        "CREATE TABLE hot(pk INTEGER PRIMARY KEY, a); CREATE LRUINDEX ON hot;
        CREATE TABLE line(id INTEGER PRIMARY KEY, hot INT REFERENCES hot);
        INSERT INTO hot VALUES (1, 'a'), (2, 'b'), (3, 'c')",
    )?;
    clock.set(1_010);
    s.run("INSERT INTO line VALUES (1, 1), (2, 2)")?;
    assert_eq!(s.rows("SELECT group_concat(LRU, ' ') FROM hot"), "1000 1000 1000");
    assert_eq!(s.rows("SELECT a FROM line JOIN hot ON pk = hot WHERE id = 2"), "b");
    assert_eq!(s.rows("SELECT group_concat(LRU, ' ') FROM hot"), "1000 1010 1000");
    // What gives all columns gives these, too.
    s.run("UPDATE hot SET a = 'z' FROM line WHERE hot.pk = line.hot AND line.id = 1")?;
    assert_eq!(s.rows("SELECT a, LRU FROM hot WHERE LRU > 0 AND +pk = 1"), "z|1010");
    clock.set(1_020);
    assert_eq!(s.rows("SELECT count(*) FROM hot WHERE pk BETWEEN 2 AND 3"), "2");
    assert_eq!(s.rows("SELECT group_concat(LRU, ' ') FROM hot"), "1010 1020 1020");
    Ok(())
}

/// Another connection, as of another process, counts on; and rows that were there before have been used once.
#[test]
fn connections_add_up() -> Result<()> {
    let (mut s, _) = hot("usage-two");
    s.run("CREATE TABLE hot(pk INTEGER PRIMARY KEY, a); INSERT INTO hot VALUES (1, 'a')")?;
    s.run("CREATE LFUINDEX ON hot")?;
    assert_eq!(s.rows("SELECT LFU FROM hot"), "1");
    let other = Connection::open()?;
    let mut session = s.database.session()?;
    for _ in 0..16 {
        select(&mut s, 1, 1);
        other.query(&mut session, "SELECT * FROM hot WHERE pk = 1", &[])?;
    }
    // 33 uses, of which each connection has some waiting.
    let bucket: i64 = s.rows("SELECT LFU FROM hot").parse().expect("a number");
    assert!((5..=6).contains(&bucket), "{bucket}");
    // More rows than a connection knows: reads of each count by chance, and on the whole.
    s.run("DELETE FROM hot; WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 6000) INSERT INTO hot SELECT i, 'a' FROM n")?;
    for _ in 0..14 {
        for from in (1..6_000).step_by(500) {
            s.rows(&format!("SELECT count(*) FROM hot WHERE pk BETWEEN {from} AND {}", from + 499));
        }
    }
    let mean: f64 = s.rows("SELECT avg(LFU) FROM hot").parse().expect("a number");
    assert!((3.8..=5.0).contains(&mean), "15 uses of each row: {mean}");
    Ok(())
}
