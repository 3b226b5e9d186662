//! Tables as caches, by AlchemyDB's words: LRU and LFU, EVICT and MISS, RETURN SIZE.

use crate::alchemy::{run, start};
use crate::peer::{Client, Place};
use crate::sql::shown;

/// The worked case 27 of the inventory.
#[test]
fn rows_are_in_buckets_by_how_often_they_were_used() {
    let place = Place::new();
    let (_ours, mut client) = start(&place);
    run(
        &mut client,
        r#"
        CREATE TABLE hot "(pk INTEGER PRIMARY KEY, fk1 INT, col BIGINT)" -> 0
        CREATE LFUINDEX ON hot -> 0
        SQL "CREATE LRUINDEX ON hot" -> 0
        INSERT INTO hot "(fk1, col)" VALUES "(1,1)" "(1,2)" "(1,3)" "(1,4)" "(1,5)" "(1,6)" "(1,7)" "(1,8)" "(1,9)" -> 9
    "#,
    );
    for (id, times) in [(1, 19), (2, 9), (3, 6), (4, 2)] {
        for _ in 0..times {
            // NB: a SELECT may run on another thread, which counts by itself until the next bucket.
            run(&mut client, &format!("UPDATE hot SET fk1=1 WHERE pk = {id} -> 1"));
        }
    }
    run(
        &mut client,
        r#"
        SELECT pk FROM hot WHERE LFU = 5 -> [[1]]
        SELECT pk FROM hot WHERE LFU = 4 -> [[2]]
        SELECT pk FROM hot WHERE LFU = 3 -> [[3]]
        SELECT pk FROM hot WHERE LFU = 2 -> [[4]]
        SELECT pk FROM hot WHERE LFU = 1 -> [[5] [6] [7] [8] [9]]
        SELECT col FROM hot WHERE pk = 5 -> [[5]]
        SELECT pk FROM hot WHERE LFU = 2 -> [[4] [5]]
        DELETE FROM hot WHERE LFU = 3 -> 1
        DELETE FROM hot WHERE LFU = 1 -> 4
        SELECT * FROM hot -> [[1 1 1] [2 1 2] [4 1 4] [5 1 5]]
        SELECT "count(*)" FROM hot WHERE "LRU BETWEEN unixepoch() - 600 AND unixepoch() AND LRU % 10 = 0" -> [[4]]
        SQL_RO "SELECT pk FROM hot ORDER BY LFU DESC LIMIT 1" -> [[1]]
        UPDATE hot SET LRU=1 WHERE pk = 1 -> !ERR 0A000 hot.LRU says how the row is used...
        DROP INDEX lru_hot -> 0
        SELECT LRU FROM hot WHERE pk = 1 -> !ERR 42703 ...
    "#,
    );
}

/// The worked case 31 of the inventory; what was prohibited there brings rows back.
#[test]
fn who_names_an_evicted_row_misses_it() {
    let place = Place::new();
    let (ours, mut client) = start(&place);
    run(
        &mut client,
        r#"
        CREATE TABLE simple "(pk INTEGER PRIMARY KEY, fk INT, col2 INT)" -> 0
        CREATE INDEX i_s ON simple (fk) -> 0
        EVICT simple 1 -> !ERR 0A000 simple is no cache: ALTER TABLE simple SET DIRTY
        ALTER TABLE simple SET DIRTY -> 0
        SQL "WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 50) INSERT INTO simple(fk) SELECT i % 5 FROM n" -> 50
        EVICT simple 6 7 8 -> 3
        DELETE FROM simple WHERE pk = 7 -> !MISS P0002 ^simple(7) is evicted: read it from the backing store, ...
        SELECT * FROM simple WHERE pk = 7 -> !MISS P0002 ...
        UPDATE simple SET fk=1 WHERE pk = 7 -> !MISS P0002 ...
        UPDATE simple SET col2=333333 WHERE pk = 1 -> 1
        SELECT pk FROM simple WHERE "fk = 1 ORDER BY pk LIMIT 3" -> [[1] [11] [16]]
        REPLACE INTO simple VALUES (7,2,2) -> 1
        INSERT INTO simple VALUES (6,1,2) -> 1
        SELECT fk FROM simple WHERE "pk IN (6,7)" -> [[1] [2]]
        SQL "EVICT simple ?, ?" 6 99 -> 1
        SQL_RO "SELECT fk FROM simple WHERE pk = ?" 6 -> !MISS P0002 ...
        SQL_RO "EVICT simple 1" -> !READONLY 25006 ...
        MULTI -> OK
        EVICT simple 1 -> QUEUED
        SELECT fk FROM simple WHERE pk = 1 -> QUEUED
        INSERT INTO simple VALUES (1,9,9) -> QUEUED
        EXEC -> [1 !MISS P0002 ...
        SELECT fk FROM simple WHERE pk = 1 -> [[9]]
        ACL SETUSER reader on >p +sql %R~^simple -> OK
    "#,
    );
    let script = "return redis.pcall('SELECT', 'fk', 'FROM', 'simple', 'WHERE pk = 8').err";
    assert!(shown(&client.call(["EVAL", script, "0"])).starts_with("MISS P0002"));
    let mut reader = Client::connect(&ours.socket);
    run(&mut reader, "AUTH reader p -> OK\nEVICT simple 2 -> !NOPERM 42501 this user may not change simple");
}

#[test]
fn an_insert_and_a_description_tell_bytes() {
    let place = Place::new();
    let (_ours, mut client) = start(&place);
    run(
        &mut client,
        r#"
        CREATE TABLE t "(pk INTEGER PRIMARY KEY, a TEXT)" -> 0
        CREATE INDEX by_a ON t (a) -> 0
    "#,
    );
    let insert = shown(&client.call(["INSERT", "INTO", "t", "VALUES", "(1,'x')", "RETURN SIZE"]));
    let numbers: Vec<u64> =
        insert.trim_matches(['[', ']']).split(' ').filter_map(|it| it.parse().ok()).collect();
    let [row, table, index] = numbers[..] else { panic!("{insert}") };
    assert!(row > 0 && row == table && index > 0, "{insert}");
    let more = shown(&client.call(["SQL", "REPLACE INTO t VALUES (2, ?) RETURN SIZE", "y"]));
    assert_eq!(more, format!("[[{row} {} {}]]", 2 * row, 2 * index));
    let desc = format!(
        "[[pk INTEGER 0 - 1  - {row} {} -] [a TEXT 0 - 0 by_a {} {row} {} -]]",
        2 * row,
        2 * index,
        2 * row
    );
    assert_eq!(shown(&client.call(["DESC", "t"])), desc);
    // Words, and a duplicate that is updated.
    let words =
        "INSERT INTO t VALUES (1,'x') (3,'z') \"ON DUPLICATE KEY UPDATE\" \"a = 'w'\" \"RETURN SIZE\"";
    run(
        &mut client,
        &format!(
            "{words} -> [[{} {} {}]]\nSELECT a FROM t WHERE pk = 1 -> [[w]]",
            2 * row,
            3 * row,
            3 * index
        ),
    );
}
