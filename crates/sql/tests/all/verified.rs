//! Tables held against their indexes, and each kind of fault that is found.

use crate::scratch::Scratch;
use perilune::{node, NodeRef, Value as NodeValue};
use perilune_sql::Result;

fn stock(name: &str) -> Result<Scratch> {
    let mut s = Scratch::new(name);
    s.run(
        "CREATE TABLE t(id INTEGER PRIMARY KEY AUTOINCREMENT, a TEXT UNIQUE, info JSON);
        CREATE INDEX deep ON t(info.x); CREATE INDEX low ON t(lower(a)) WHERE id > 1; CREATE LRUINDEX ON t; CREATE LFUINDEX ON t;
        ALTER TABLE t SET DIRTY; CREATE TABLE line(k TEXT, n INT, b, PRIMARY KEY(k, n)); CREATE UNIQUE INDEX by_b ON line(b);
        INSERT INTO t(a, info) VALUES ('A', '{\"x\":1}'), ('B', '{\"y\":[{}]}'), (NULL, NULL), ('D', NULL);
        INSERT INTO line VALUES ('a', 1, 1), ('a', 2, NULL), ('b', 1, 3);
        CREATE TABLE note(id INTEGER PRIMARY KEY, k TEXT, n INT, FOREIGN KEY(k, n) REFERENCES line);
        INSERT INTO note VALUES (1, 'b', 1), (2, 'b', NULL);
        UPDATE t SET a = 'E' WHERE id = 1; EVICT t 4",
    )?;
    s.session.set(&node!("^line", "stranger")?, "no row")?;
    s.session.set(&node!("^t", "stranger")?, "no row")?;
    Ok(s)
}

#[test]
fn tables_agree_with_their_indexes() -> Result<()> {
    let mut s = stock("verified")?;
    let found = s.sql.verify(&mut s.session)?;
    assert_eq!((found.tables, found.rows), (3, 8));
    assert_eq!((found.faults, found.skipped), (Vec::new(), Vec::new()));
    let mut snapshot = s.database.snapshot()?;
    s.run("DELETE FROM t")?;
    assert_eq!(s.sql.verify(&mut snapshot)?.rows, 8);
    assert_eq!(s.sql.verify(&mut s.session)?.rows, 5);
    Ok(())
}

#[test]
fn each_fault_is_found() -> Result<()> {
    // What is done to the tree, and what is said of it.
    type Harm = fn(&mut Scratch) -> perilune::Result<()>;
    let harms: [(&str, Harm, &str); 8] = [
        (
            "entry",
            |s| s.session.delete_value(&node!("^t.deep", 1, 1)?).map(|_| ()),
            "^t(1) is not in index deep: REINDEX deep",
        ),
        (
            "stray",
            |s| s.session.set(&node!("^t.low", "'zz", 9)?, NodeValue::Null),
            "index low has 3 entries of 2 rows of t",
        ),
        (
            "unique",
            |s| s.session.set(&node!("^line.by_b", 1)?, "other"),
            "^line(\"a\",1) is not in index by_b",
        ),
        (
            "row",
            |s| s.session.delete_value(&node!("^line", "b", 1)?).map(|_| ()),
            "index by_b has 3 entries of 2 rows of line",
        ),
        (
            "reference",
            |s| s.session.delete_value(&node!("^line", "b", 1)?).map(|_| ()),
            "1 rows of note refer to rows of line that are not there",
        ),
        (
            "usage",
            |s| s.session.set(&node!("^t.lru_t", 7, 3)?, NodeValue::Null),
            "index lru_t has 4 entries of 3 rows of t",
        ),
        (
            "sequence",
            |s| s.session.set(&node!("^sql", "sequence", "t")?, 1),
            "t has a row 3, and its AUTOINCREMENT has given 1",
        ),
        (
            "kept",
            |s| {
                let mut key = perilune::key::KeyBuf::global("t.%lfu").expect("a name");
                key.push_int(77).expect("a row");
                s.session.set(NodeRef::from_encoded(key.as_bytes(), false), 5)
            },
            "^t.%lfu(77) is kept of no row",
        ),
    ];
    for (name, harm, wanted) in harms {
        let mut s = stock(&format!("verified-{name}"))?;
        harm(&mut s)?;
        let found = s.sql.verify(&mut s.session)?;
        assert!(found.faults.iter().any(|fault| fault.contains(wanted)), "{name}: {found:?}");
        assert!(found.faults.len() <= 2, "{name}: {found:?}");
    }
    Ok(())
}
