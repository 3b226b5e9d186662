//! The five-minute tour: everything the README shows, run and checked.
//!
//! `cargo run -p perilune --example tour` makes a database in a temporary directory and removes it.

use std::thread;
use std::time::Duration;

use perilune::{node, Cursor, Data, Database, Error, LockMode, Result, WatchScope};

fn main() -> Result<()> {
    let directory = std::env::temp_dir().join(format!("perilune-tour-{}", std::process::id()));
    std::fs::create_dir_all(&directory).map_err(Error::other)?;
    let toured = tour(&Database::open(directory.join("tour.db"))?);
    std::fs::remove_dir_all(&directory).map_err(Error::other)?;
    toured
}

fn tour(database: &Database) -> Result<()> {
    nodes(database)?;
    order(database)?;
    transactions(database)?;
    locks(database)?;
    watches(database)?;
    channels(database)?;
    local_trees(database)?;
    println!("That was the tour.");
    Ok(())
}

/// A node is a name and subscripts; its value keeps its type.
fn nodes(database: &Database) -> Result<()> {
    let mut session = database.session()?;
    let ada = node!("^person", 21)?;
    session.set(&ada.child("name")?, "Ada")?;
    session.set(&ada.child("born")?, 1815)?;
    session.set(&ada.child("height")?, 1.65)?;
    assert_eq!(session.get_str(&ada.child("name")?)?, Some("Ada"));
    assert_eq!(session.data(&ada)?, Data::Descendants);

    for entry in session.subtree(&ada) {
        let (node, value) = entry?;
        println!("{node} = {value}");
    }

    // Arithmetic is decimal: ten tenths are one.
    let mut sum = session.increment(&node!("^sum")?, 0)?;
    for _ in 0..10 {
        sum = session.increment(&node!("^sum")?, 0.1)?;
    }
    println!("ten tenths are {sum}");
    assert_eq!(sum.as_i64(), Some(1));
    Ok(())
}

/// Subscripts sort: numbers by value, then strings by bytes.
fn order(database: &Database) -> Result<()> {
    let mut session = database.session()?;
    let list = node!("^list")?;
    for subscript in ["pear", "10", "9", "-1.5", "apple"] {
        session.set(&list.child(subscript)?, true)?;
    }
    let order: Vec<String> =
        session.children(&list).map(|child| Ok(child?.to_string())).collect::<Result<_>>()?;
    println!("in order: {}", order.join(", "));
    assert_eq!(order, ["-1.5", "9", "10", r#""apple""#, r#""pear""#]);

    // A cursor moves both ways; a step from a node needs no cursor.
    let mut cursor = Cursor::children(&list);
    assert!(cursor.previous(&mut session)?);
    assert_eq!(cursor.subscript()?.to_string(), r#""pear""#);
    assert_eq!(session.next(&list.child(9)?)?, Some(list.child(10)?));

    // From "", M's $ORDER begins; in a hot loop children are built in place.
    let mut square = node!("^square")?;
    let parent = square.mark();
    for number in 1..=3 {
        square.truncate(parent);
        square.push(number)?;
        session.set(&square, number * number)?;
    }
    let mut at = session.next(&node!("^square", "")?)?;
    let mut squares = Vec::new();
    while let Some(node) = at {
        squares.push(session.get_int(&node)?);
        at = session.next(&node)?;
    }
    assert_eq!(squares, [Some(1), Some(4), Some(9)]);
    Ok(())
}

/// A transaction is a closure that runs until it saw and wrote one state.
fn transactions(database: &Database) -> Result<()> {
    let (ann, ben) = (node!("^account", "ann")?, node!("^account", "ben")?);
    let mut session = database.session()?;
    session.set_many([(&ann, 100), (&ben, 0)])?;
    thread::scope(|scope| {
        for _ in 0..4 {
            let (ann, ben) = (&ann, &ben);
            scope.spawn(move || -> Result<()> {
                database.session()?.transaction(|t| {
                    if t.get_int(ann)?.unwrap_or(0) < 30 {
                        return Err(Error::Rollback);
                    }
                    t.increment(ann, -30)?;
                    t.increment(ben, 30)?;
                    Ok(())
                })
            });
        }
    });
    // Four threads tried to move 30 of 100: three could.
    println!("ann has {:?}, ben has {:?}", session.get_int(&ann)?, session.get_int(&ben)?);
    assert_eq!((session.get_int(&ann)?, session.get_int(&ben)?), (Some(10), Some(90)));
    Ok(())
}

/// Locks are named by nodes; a lock excludes those above and below it.
fn locks(database: &Database) -> Result<()> {
    let (mut one, mut two) = (database.session()?, database.session()?);
    assert!(one.lock(&node!("^account")?, LockMode::Exclusive, None)?);
    let once = Some(Duration::ZERO);
    assert!(!two.lock(&node!("^account", "ann")?, LockMode::Exclusive, once)?);
    one.unlock(&node!("^account")?)?;
    assert!(two.lock(&node!("^account", "ann")?, LockMode::Exclusive, once)?);
    println!("the lock went from one session to the other");
    Ok(())
}

/// A watch wakes when anybody's commit touches what is watched.
fn watches(database: &Database) -> Result<()> {
    let mut session = database.session()?;
    let news = node!("^news")?;
    let watch = session.watch([(&news, WatchScope::Subtree)])?;
    thread::scope(|scope| -> Result<()> {
        scope.spawn(|| -> Result<()> { database.session()?.set(&node!("^news", 1)?, "it rains") });
        assert!(session.wait(watch, Some(Duration::from_secs(30)))?);
        Ok(())
    })?;
    println!("news: {:?}", session.get_str(&node!("^news", 1)?)?);
    assert_eq!(session.get_str(&node!("^news", 1)?)?, Some("it rains"));
    Ok(())
}

/// A channel carries bounded, ordered messages between processes.
fn channels(database: &Database) -> Result<()> {
    let (mut sender, mut receiver) = (database.session()?, database.session()?);
    sender.channel("jobs").post("resize 17")?;
    let job = receiver.channel("jobs").receive(None)?.map(|message| message.body);
    assert_eq!(job.as_deref(), Some(&b"resize 17"[..]));
    assert_eq!(receiver.channel("jobs").receive(Some(Duration::ZERO))?, None);
    Ok(())
}

/// Names without ^ are local: the same operations, in this session's memory.
fn local_trees(database: &Database) -> Result<()> {
    let mut session = database.session()?;
    let copy = node!("copy")?;
    session.copy(&node!("^account")?, &copy)?;
    session.delete_value(&copy.child("ben")?)?;
    assert_eq!(session.count_valued(&copy)?, 1);
    assert_eq!(session.count_valued(&node!("^account")?)?, 2);
    assert_eq!(database.session()?.data(&copy)?, Data::Nothing);
    Ok(())
}
