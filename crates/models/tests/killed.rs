//! Four processes change lists, a store, documents and patterns, and are killed wherever they are: what is there then is
//! whole, and no element is lost or there twice.
//!
//! `PERILUNE_MODELS_KILLS=1000` makes it longer (`make models-storm`).

use std::env;
use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{Child, ChildStdout, Command, Stdio};

use perilune::{node, Database, Session};
use perilune_models::{
    json, Columns, Document, Edge, Fields, Json, KeyValue, List, Network, Records, Result, Shape,
};

/// Elements that travel between the two lists.
const ELEMENTS: i64 = 20;

struct Place {
    lists: [List; 2],
    store: KeyValue,
    document: Document,
    records: Records,
    columns: Columns,
    network: Network,
}

fn place() -> Result<Place> {
    let shape = Shape::default();
    Ok(Place {
        lists: [List::at(node!("^list", "a")?, shape), List::at(node!("^list", "b")?, shape)],
        store: KeyValue::at(node!("^store")?, shape),
        document: Document::at(node!("^document")?, shape),
        records: Records::at(node!("^records")?),
        columns: Columns::at(node!("^columns")?),
        network: Network::at(node!("^network")?),
    })
}

/// One change of each kind: an element goes to the other list, a document of the store is made, changed or deleted, the
/// document with its copies is written anew.
fn step(place: &Place, session: &mut Session, chance: &mut u64) -> Result<()> {
    *chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
    let random = *chance >> 33;
    let (from, to) = (&place.lists[(random & 1) as usize], &place.lists[(!random & 1) as usize]);
    session.transaction(|session| {
        let taken = if random & 2 == 0 { from.pop_front(session)? } else { from.pop_back(session)? };
        let Some(element) = taken else { return Ok(()) };
        match random & 12 {
            0 => drop(to.push_back(session, &element)?),
            4 => drop(to.push_front(session, &element)?),
            _ => {
                if to.insert_before(session, (random >> 4) as i64 % 5, &element)?.is_none() {
                    to.push_back(session, &element)?;
                }
            }
        }
        Ok(())
    })?;
    let key = format!("key_{}", random >> 8 & 7);
    let value = json!({"town": format!("Town {}", random >> 12 & 3), "list": [1, 2]});
    match random >> 16 & 3 {
        0 => drop(place.store.delete(session, &key)?),
        1 => drop(place.store.edit(session, &key, &value)?),
        2 => drop(place.store.add(session, &key, &value)?),
        _ => place.store.reindex(session)?,
    }
    patterns(place, session, random)?;
    place.document.replace(session, &Json::Array(vec![json!({"n": random}); 1 + random as usize % 5]))
}

/// One record in two forms, and an edge or a node of the network, in one transaction.
fn patterns(place: &Place, session: &mut Session, random: u64) -> Result<()> {
    let (id, other) = (json!(random >> 4 & 7), json!(random >> 7 & 7));
    let row: Fields =
        [("x".to_owned(), json!(random >> 10 & 3)), ("y".to_owned(), json!("value"))].into_iter().collect();
    Ok(session.transaction(|session| {
        if random & 1 == 0 {
            place.records.delete(session, &id)?;
            place.columns.delete(session, &id)?;
        } else {
            place.records.put(session, &id, &row)?;
            place.columns.put(session, &id, &row)?;
        }
        match (place.network.get_node(session, &id)?, place.network.get_node(session, &other)?) {
            (None, _) => drop(place.network.add_node(session, &row, Some(&id))?),
            (_, None) => {}
            _ if random & 14 == 14 => drop(place.network.delete_node(session, &id)?),
            _ => {
                let edge = Edge {
                    kind: "to".to_owned(),
                    from: id.clone(),
                    to: other.clone(),
                    properties: row.clone(),
                };
                place.network.add_edge(session, &edge, None)?;
            }
        }
        Ok(())
    })?)
}

fn assert_whole(place: &Place, session: &mut Session) -> Result<()> {
    let mut elements = Vec::new();
    session.transaction(|session| {
        elements.clear();
        for list in &place.lists {
            assert_eq!(list.check(session)?, [""; 0]);
            elements.extend(list.range(session, 0, -1)?.into_iter().map(|json| json["element"].as_i64()));
        }
        assert_eq!(place.store.check(session)?, [""; 0]);
        assert_eq!(place.records.check(session)?, [""; 0]);
        assert_eq!(place.columns.check(session)?, [""; 0]);
        assert_eq!(place.network.check(session)?, [""; 0]);
        assert_eq!(place.records.ids(session)?, place.columns.rows(session)?);
        let document = place.document.fetch(session)?.unwrap_or_default();
        let copies = document.as_array().expect("an array");
        assert_eq!(copies.len() as u64, 1 + copies[0]["n"].as_u64().expect("a number") % 5, "{document}");
        assert!(copies.iter().all(|copy| *copy == copies[0]), "{document}");
        Ok(())
    })?;
    elements.sort_unstable();
    assert_eq!(elements, (0..ELEMENTS).map(Some).collect::<Vec<_>>());
    Ok(())
}

#[test]
fn killed_processes_leave_nothing_half_done() -> Result<()> {
    if let Some(path) = env::var_os("PERILUNE_MODELS") {
        return work(&Database::open(path)?);
    }
    let directory = env::temp_dir().join(format!("perilune-models-killed-{}", std::process::id()));
    std::fs::create_dir_all(&directory).map_err(perilune::Error::other)?;
    let database = Database::open(directory.join("t.db"))?;
    let mut session = database.session()?;
    let place = place()?;
    for element in 0..ELEMENTS {
        place.lists[0].push_back(&mut session, &json!({"element": element}))?;
    }
    place.records.add_index(&mut session, &["x", "y"])?;
    place.store.add_index(&mut session, "town", Some("toLowerCase"))?;
    step(&place, &mut session, &mut 1)?;
    let kills: u64 =
        env::var("PERILUNE_MODELS_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(20);
    for round in 0..kills.div_ceil(4) {
        let mut workers =
            (0..4).map(|seed| worker(&database, 10 * round + seed)).collect::<Result<Vec<_>>>()?;
        for (worker, lines) in &mut workers {
            let mut told = lines.filter(|line| line.as_ref().is_ok_and(|line| line.starts_with("done")));
            assert!(told.nth(round as usize % 9).is_some(), "the worker has failed");
            assert_whole(&place, &mut session)?;
            worker.kill().map_err(perilune::Error::other)?;
            worker.wait().map_err(perilune::Error::other)?;
        }
        assert_whole(&place, &mut session)?;
    }
    println!("{} kills, nothing half done", kills.div_ceil(4) * 4);
    drop((session, database));
    std::fs::remove_dir_all(&directory).map_err(perilune::Error::other)?;
    Ok(())
}

type Worker = (Child, Lines<BufReader<ChildStdout>>);

/// This test again, as a process that does nothing but change.
fn worker(database: &Database, seed: u64) -> Result<Worker> {
    let program = env::current_exe().map_err(perilune::Error::other)?;
    let mut child = Command::new(program)
        .args(["--exact", "killed_processes_leave_nothing_half_done", "--nocapture"])
        .env("PERILUNE_MODELS", database.path())
        .env("PERILUNE_SEED", seed.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(perilune::Error::other)?;
    let lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
    Ok((child, lines))
}

/// Changes until it is killed, or nobody listens any more.
fn work(database: &Database) -> Result<()> {
    let mut session = database.session()?;
    let place = place()?;
    let mut chance = env::var("PERILUNE_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let mut out = std::io::stdout();
    for count in 0.. {
        step(&place, &mut session, &mut chance)?;
        if count % 3 == 0 && writeln!(out, "done {count}").is_err() {
            break;
        }
    }
    Ok(())
}
