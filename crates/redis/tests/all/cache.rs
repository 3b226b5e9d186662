//! Tables as caches, by AlchemyDB's words: LRU and LFU.

use crate::alchemy::{run, start};
use crate::peer::Place;

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
