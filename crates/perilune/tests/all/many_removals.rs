//! Many subtrees are removed in one transaction, whether or not their leaves belong to the last checkpoint.
//!
//! The story: of a document with 20,000 nodes an element was deleted with all below it, after an expression that had been
//! evaluated for 40 s: as reading takes so long, it reads a snapshot, and that is a checkpoint. Each leaf had to be copied
//! before it was changed, for each that it met the commit began anew, and after 10 s it was given up. Alone it took 0.3 s.

use perilune::{Database, Node, Result, Session};

const SUBTREES: i64 = 20_000;

/// The CPU time of this thread in ns: other work on the machine does not count.
fn cpu() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux has it");
    text.split(' ').next().and_then(|first| first.parse().ok()).expect("a number")
}

fn fill(session: &mut Session, root: &Node) -> Result<()> {
    for i in 0..SUBTREES {
        let node = root.child(i)?;
        for field in ["nodeName", "nodeType", "nodeNo", "parent", "previousSibling", "nextSibling"] {
            session.set(&node.child(field)?, i)?;
        }
    }
    Ok(())
}

/// What it costs to remove the subtrees, one by one, in one transaction.
fn remove(session: &mut Session, root: &Node) -> Result<u64> {
    let before = cpu();
    session.transaction(|session| {
        for i in 0..SUBTREES {
            session.delete_tree(&root.child(i)?)?;
        }
        Ok(())
    })?;
    assert!(!session.data(root)?.has_descendants());
    Ok(cpu() - before)
}

#[test]
fn removals_after_a_checkpoint_cost_little_more_than_before() -> Result<()> {
    let directory = std::env::temp_dir().join(format!("perilune-removals-{}", std::process::id()));
    std::fs::create_dir_all(&directory).map_err(perilune::Error::other)?;
    let database = Database::open(directory.join("t.db"))?;
    let mut session = database.session()?;
    let (fresh, old) = (Node::new("^fresh")?, Node::new("^old")?);
    fill(&mut session, &old)?;
    database.checkpoint()?;
    fill(&mut session, &fresh)?;
    let without = remove(&mut session, &fresh)?;
    let with = remove(&mut session, &old)?;
    println!("{} us, after a checkpoint {} us", without / 1000, with / 1000);
    assert!(with < 6 * without, "{with} ns after a checkpoint, {without} without");
    drop((session, database));
    std::fs::remove_dir_all(&directory).map_err(perilune::Error::other)?;
    Ok(())
}
