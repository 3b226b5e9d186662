//! Four processes change one document at random and are killed at random: after each kill every link has its
//! counterpart, every index its entries, and paths by index find what a walk finds.
//!
//! `PERILUNE_DOM_KILLS=1000` makes it longer (`make dom-storm`).

use std::env;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use perilune::{node, Database, Node, Session, WatchScope};
use perilune_dom::{Dom, DomError, DomNode, ParseOptions};

const WORKERS: usize = 4;
const NODES_MAX: usize = 60;

fn document() -> Dom {
    Dom::at(node!("^doc", "shared").unwrap())
}

fn steps() -> Node {
    node!("^steps").unwrap()
}

struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }
}

/// One change; a refusal is one as well.
fn change(session: &mut Session, dom: &Dom, chance: &mut Chance) -> Result<(), DomError> {
    let root = dom.document_element(session)?.expect("nobody removes the outermost element");
    let nodes = dom.descendants(session, root)?;
    let (one, record) = &nodes[chance.below(nodes.len())];
    let other = nodes[chance.below(nodes.len())].0;
    let value = chance.below(9).to_string();
    match chance.below(10) {
        0..=2 if nodes.len() < NODES_MAX => {
            let name = format!("e{}", chance.below(4));
            dom.append_element(session, other, &name, &[("k", &value)], "text").map(|_| ())
        }
        3 => dom.insert_before(session, other, *one, record.first_child),
        4 => dom.append_child(session, other, *one),
        5 if *one != root => dom.delete(session, *one),
        6 => dom.set_attribute(session, *one, "id", &value),
        7 => dom.remove_attribute(session, *one, ["id", "k"][chance.below(2)]).map(|_| ()),
        8 => dom.normalize(session, *one),
        9 if nodes.len() < NODES_MAX => {
            let copy = dom.clone_node(session, other, true)?;
            dom.append_child(session, root, copy)
        }
        // NB: two calls: a worker beside this one may take the text away between them, and an element without children is removed.
        _ if *one != root => {
            dom.set_text_content(session, *one, &value).and_then(|()| dom.remove_as_parent(session, *one))
        }
        _ => dom.set_text_content(session, root, &value),
    }
}

/// What a worker does until it is killed; it ends at once in the process of the tests.
#[test]
fn work_until_killed() {
    let (Ok(place), Ok(seed)) = (env::var("PERILUNE_DOM_PLACE"), env::var("PERILUNE_DOM_SEED")) else {
        return;
    };
    let mut session = Database::open(place).unwrap().session().unwrap();
    let (dom, mut chance) = (document(), Chance(seed.parse().unwrap()));
    loop {
        match change(&mut session, &dom, &mut chance) {
            Err(DomError::Database(error)) => panic!("{error}"),
            Err(DomError::Damaged(what)) => panic!("{what}"),
            Ok(()) | Err(_) => {}
        }
        session.increment(&steps(), 1).unwrap();
    }
}

fn worker(place: &std::path::Path, seed: usize) -> Child {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", "work_until_killed", "--nocapture"]).stdout(Stdio::null());
    command.env("PERILUNE_DOM_PLACE", place).env("PERILUNE_DOM_SEED", seed.to_string()).spawn().unwrap()
}

/// The nodes that an expression gives; the database's errors go on, a conflict among them.
fn selected(session: &mut Session, dom: &Dom, xpath: &str) -> Result<Vec<DomNode>, perilune::Error> {
    match dom.select(session, xpath) {
        Err(DomError::Database(error)) => Err(error),
        other => Ok(other.unwrap()),
    }
}

/// What must hold of a document whatever has happened to who changed it.
fn assert_whole(session: &mut Session, dom: &Dom) {
    assert_eq!(dom.check(session).unwrap(), vec![]);
    session
        .transaction(|session| {
            let all = selected(session, dom, "//*")?;
            for name in ["e0", "e1", "e2", "e3"] {
                let by_index = selected(session, dom, &format!("//{name}"))?;
                let by_walk = selected(session, dom, &format!("//*[name()='{name}']"))?;
                assert_eq!(by_index, by_walk);
                assert!(by_index.iter().all(|node| all.contains(node)));
            }
            Ok(())
        })
        .unwrap();
}

#[test]
fn a_document_is_whole_whoever_is_killed() {
    let kills = env::var("PERILUNE_DOM_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(12);
    let seed = env::var("PERILUNE_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or(std::process::id() as usize);
    println!("PERILUNE_SEED={seed}");
    let directory = env::temp_dir().join(format!("perilune-dom-killed-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let place = directory.join("t.db");
    let mut session = Database::open(&place).unwrap().session().unwrap();
    let (dom, mut chance) = (document(), Chance(seed as u64));
    dom.parse(&mut session, "<root><e0 k='1'>text</e0><e1/></root>", &ParseOptions::default()).unwrap();
    let mut workers: Vec<Child> = (0..WORKERS).map(|n| worker(&place, seed + n)).collect();
    let watch = session.watch([(&steps(), WatchScope::Node)]).unwrap();
    for kill in 0..kills {
        let enough = session.get_int(&steps()).unwrap().unwrap_or(0) + chance.below(60) as i64;
        while session.get_int(&steps()).unwrap().unwrap_or(0) < enough {
            assert!(session.wait(watch, Some(Duration::from_secs(120))).unwrap(), "nobody works any more");
        }
        let at = chance.below(WORKERS);
        // One that has ended by itself has failed, and said why.
        assert!(workers[at].try_wait().unwrap().is_none(), "a worker has failed");
        workers[at].kill().unwrap();
        workers[at].wait().unwrap();
        assert_whole(&mut session, &dom);
        workers[at] = worker(&place, seed + WORKERS + kill);
    }
    for mut worker in workers {
        assert!(worker.try_wait().unwrap().is_none(), "a worker has failed");
        worker.kill().unwrap();
        worker.wait().unwrap();
    }
    assert_whole(&mut session, &dom);
    println!("{kills} kills, {} changes", session.get_int(&steps()).unwrap().unwrap_or(0));
    drop(session);
    let _ = std::fs::remove_dir_all(&directory);
}
