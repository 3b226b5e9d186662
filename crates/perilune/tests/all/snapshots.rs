//! Snapshots and checkpoints through the public interface.

use crate::fixture::Scratch;
use perilune::{node, Cursor, ErrorCode};

#[test]
fn a_snapshot_stays_as_it_was_and_is_not_written() -> perilune::Result<()> {
    let scratch = Scratch::new();
    let database = &scratch.database;
    let mut session = scratch.session();
    for day in 1..=200 {
        session.set(&node!("^log", day)?, format!("day {day}"))?;
    }
    let mut snapshot = database.snapshot()?;
    session.delete_tree(&node!("^log")?)?;
    session.set(&node!("^log", 7)?, "another")?;
    assert_eq!(snapshot.get_str(&node!("^log", 7)?)?, Some("day 7"));
    assert_eq!(snapshot.count_children(&node!("^log")?)?, 200);
    assert_eq!(session.count_children(&node!("^log")?)?, 1);
    let refused = snapshot.set(&node!("^log", 8)?, 1).unwrap_err();
    assert_eq!(refused.code(), ErrorCode::ReadOnly);
    snapshot.set(&node!("local", 8)?, 1)?;
    assert_eq!(snapshot.get_str(&node!("^log", 8)?)?, Some("day 8"));
    Ok(())
}

/// A cursor over a part went on to the end of the database when it read a snapshot.
#[test]
fn cursors_keep_to_their_bounds_in_a_snapshot() -> perilune::Result<()> {
    let scratch = Scratch::new();
    let mut session = scratch.session();
    for name in ["^a", "^b", "^c"] {
        for at in 1..=3 {
            session.set(&node!(name, at)?, at)?;
        }
    }
    let mut snapshot = scratch.database.snapshot()?;
    session.delete_tree(&node!("^b")?)?;
    let b = node!("^b")?;
    for mut cursor in [Cursor::subtree(&b), Cursor::children(&b)] {
        let mut seen = Vec::new();
        while cursor.next(&mut snapshot)? {
            seen.push(cursor.node()?.to_string());
        }
        while cursor.previous(&mut snapshot)? {
            seen.push(cursor.node()?.to_string());
        }
        assert_eq!(seen, ["^b(1)", "^b(2)", "^b(3)", "^b(3)", "^b(2)", "^b(1)"]);
    }
    Ok(())
}

#[test]
fn a_checkpoint_says_whether_anything_has_changed() -> perilune::Result<()> {
    let scratch = Scratch::new();
    let database = &scratch.database;
    scratch.session().set(&node!("^a")?, 1)?;
    assert!(database.checkpoint()?);
    assert!(!database.checkpoint()?);
    assert!(database.recovery().is_none());
    // A copy of an open database is what a crash of the machine leaves.
    let copy = database.path().with_file_name("copy.db");
    for name in std::fs::read_dir(database.path().parent().expect("its directory")).expect("the files") {
        let path = name.expect("a name").path();
        let file = path.to_str().expect("UTF-8");
        if let Some(log) = file.strip_prefix(database.path().to_str().expect("UTF-8")) {
            if log.is_empty() || log.starts_with("-wal.") {
                std::fs::copy(&path, format!("{}{log}", copy.display())).expect("a copy");
            }
        }
    }
    let recovered = perilune::Database::open(&copy)?;
    let report = recovered.recovery().expect("it was recovered");
    assert!(report.pages > 0 && report.dropped.is_none(), "{report}");
    assert_eq!(recovered.session()?.get_int(&node!("^a")?)?, Some(1));
    assert!(recovered.verify()?.is_sound());
    Ok(())
}
