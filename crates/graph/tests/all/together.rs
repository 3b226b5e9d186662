//! Sessions and processes that change a graph while others walk it: a walk sees one state.
//!
//! A ring of vertices: writers take one out and put it in elsewhere, each time in one transaction of two or three edges less and
//! as many more. Whoever walks the ring must come around it over all vertices, whenever he looks; half a change breaks it.

use std::env;
use std::io::{BufRead, BufReader, Lines, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use perilune::{node, Database, Session};
use perilune_graph::{algorithm, Edges, Error, Graph, GraphOptions, Reach, Result, Traversal, VertexId};

const RING: i64 = 40;
const MOVES: u64 = 300;

fn neighbour(graph: &Graph, session: &mut Session, of: &VertexId, reach: &Reach) -> Result<(i64, VertexId)> {
    let edges = graph.edges(session, of, reach)?;
    assert_eq!(edges.len(), 1, "the ring is broken at {of}: {edges:?}");
    Ok((edges[0].id, edges[0].other(of).clone()))
}

/// Takes a vertex out of the ring and puts it in behind another; sometimes it is deleted and made again.
fn move_one(graph: &mut Graph, session: &mut Session, chance: &mut u64) -> Result<()> {
    *chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
    let moved = VertexId::from((*chance >> 33) as i64 % (RING - 1) + 1);
    let is_remade = (*chance >> 20).is_multiple_of(3);
    let steps = (*chance >> 24) % 5;
    session.transaction(|s| {
        let (_, before) = neighbour(graph, s, &moved, &Reach::incoming().of("NEXT"))?;
        let (_, after) = neighbour(graph, s, &moved, &Reach::out().of("NEXT"))?;
        if is_remade {
            graph.delete_vertex(s, &moved, Edges::Remove)?;
            graph.add_vertex(s, &moved, &["Member"])?;
        } else {
            for edge in graph.edges(s, &moved, &Reach::both())? {
                graph.delete_edge(s, edge.id)?;
            }
        }
        graph.add_edge(s, &before, "NEXT", &after)?;
        let mut at = after;
        for _ in 0..steps {
            at = neighbour(graph, s, &at, &Reach::out().of("NEXT"))?.1;
        }
        let (edge, next) = neighbour(graph, s, &at, &Reach::out().of("NEXT"))?;
        graph.delete_edge(s, edge)?;
        graph.add_edge(s, &at, "NEXT", &moved)?;
        graph.add_edge(s, &moved, "NEXT", &next)?;
        Ok(())
    })?;
    Ok(())
}

/// Walks around the ring in a view of its own.
fn look(graph: &Graph, database: &Database, session: &mut Session, in_transaction: bool) -> Result<()> {
    let around = |view: &mut perilune_graph::View<'_>| {
        let mut walked = 0;
        for path in Traversal::depth_first(Reach::out().of("NEXT")).walk(view, [0])? {
            path?;
            walked += 1;
        }
        Ok((walked, algorithm::components(view, &Reach::out())?.len()))
    };
    let seen =
        if in_transaction { graph.read(session, around)? } else { around(&mut graph.snapshot(database)?)? };
    assert_eq!(seen, (RING, 1));
    Ok(())
}

/// A database with a ring, in a directory of its own.
fn ring(name: &str) -> Result<(PathBuf, Database, Graph)> {
    let directory = std::env::temp_dir().join(format!("perilune-graph-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&directory).map_err(perilune::Error::other)?;
    let database = Database::open(directory.join("t.db"))?;
    let mut session = database.session()?;
    let mut graph = Graph::create(&mut session, &node!("^ring")?, &GraphOptions::default())?;
    for id in 0..RING {
        graph.add_vertex(&mut session, id, &["Member"])?;
    }
    for id in 0..RING {
        graph.add_edge(&mut session, &id.into(), "NEXT", &((id + 1) % RING).into())?;
    }
    Ok((directory, database, graph))
}

fn assert_whole(graph: &Graph, session: &mut Session) -> Result<()> {
    let report = graph.check(session)?;
    assert_eq!((report.vertices, report.edges), (RING as u64, RING as u64));
    assert_eq!(report.faults, [""; 0]);
    Ok(())
}

#[test]
fn a_walk_sees_one_state() -> Result<()> {
    let (directory, database, graph) = ring("together")?;
    let root = graph.root().clone();
    let mut session = database.session()?;
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| -> Result<()> {
        let writers: Vec<_> = (1..=2_u64)
            .map(|seed| {
                let (database, root) = (&database, &root);
                scope.spawn(move || -> Result<()> {
                    let mut session = database.session()?;
                    let mut graph = Graph::open(&mut session, root)?;
                    let mut chance = seed;
                    (0..MOVES).try_for_each(|_| move_one(&mut graph, &mut session, &mut chance))
                })
            })
            .collect();
        let readers: Vec<_> = [false, true]
            .map(|in_transaction| {
                let (database, graph, is_done) = (&database, &graph, &is_done);
                scope.spawn(move || -> Result<u64> {
                    let mut session = database.session()?;
                    let mut looks = 0;
                    while !is_done.load(Ordering::Acquire) || looks == 0 {
                        look(graph, database, &mut session, in_transaction)?;
                        looks += 1;
                    }
                    Ok(looks)
                })
            })
            .into();
        let written: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
        is_done.store(true, Ordering::Release);
        let read: Vec<_> = readers.into_iter().map(|reader| reader.join()).collect();
        for outcome in written {
            outcome.expect("a writer failed")?;
        }
        for outcome in read {
            println!("{} looks", outcome.expect("a reader failed")?);
        }
        Ok(())
    })?;
    assert_whole(&graph, &mut session)?;
    drop((session, database));
    std::fs::remove_dir_all(&directory).map_err(perilune::Error::other)?;
    Ok(())
}

/// Processes rearrange the ring, and are killed wherever they are: what is there then is whole, from both ends.
#[test]
fn killed_processes_leave_no_half_of_an_edge() -> Result<()> {
    if let Some(path) = env::var_os("PERILUNE_RING") {
        return rearrange(&Database::open(path)?);
    }
    let (directory, database, graph) = ring("killed")?;
    let mut session = database.session()?;
    for round in 0..6_u64 {
        let mut writers =
            (0..3).map(|seed| writer(&database, 10 * round + seed)).collect::<Result<Vec<_>>>()?;
        // Each is killed after other numbers of changes, which it tells; in between, all is seen whole.
        for (writer, lines) in &mut writers {
            let mut moves = lines.filter(|line| line.as_ref().is_ok_and(|line| line.starts_with("moved")));
            assert!(moves.nth(round as usize).is_some(), "the writer has failed");
            look(&graph, &database, &mut session, false)?;
            writer.kill().map_err(perilune::Error::other)?;
            writer.wait().map_err(perilune::Error::other)?;
        }
        look(&graph, &database, &mut session, true)?;
        assert_whole(&graph, &mut session)?;
    }
    drop((session, database));
    std::fs::remove_dir_all(&directory).map_err(perilune::Error::other)?;
    Ok(())
}

type Writer = (Child, Lines<BufReader<ChildStdout>>);

/// This test again, as a process that does nothing but rearrange.
fn writer(database: &Database, seed: u64) -> Result<Writer> {
    let program = env::current_exe().map_err(perilune::Error::other)?;
    let mut child = Command::new(program)
        .args(["--exact", "together::killed_processes_leave_no_half_of_an_edge", "--nocapture"])
        .env("PERILUNE_RING", database.path())
        .env("PERILUNE_SEED", seed.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(perilune::Error::other)?;
    let lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
    Ok((child, lines))
}

/// Rearranges the ring until it is killed, or nobody listens any more.
fn rearrange(database: &Database) -> Result<()> {
    let mut session = database.session()?;
    let mut graph = Graph::open(&mut session, &node!("^ring")?)?;
    let mut chance = env::var("PERILUNE_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let mut out = std::io::stdout();
    for count in 0.. {
        move_one(&mut graph, &mut session, &mut chance)?;
        if count % 7 == 0 && writeln!(out, "moved {count}").is_err() {
            break;
        }
    }
    Ok(())
}

/// Edges are added to vertices that others delete: an edge without an end must never be.
#[test]
fn edges_and_the_deletion_of_their_ends_exclude_each_other() -> Result<()> {
    let (directory, database, graph) = ring("race")?;
    let root = graph.root().clone();
    thread::scope(|scope| {
        let start = |seed: u64| {
            let (database, root) = (&database, &root);
            scope.spawn(move || -> Result<()> {
                let mut session = database.session()?;
                let mut graph = Graph::open(&mut session, root)?;
                let mut chance = seed;
                let mut below = |bound: i64| {
                    chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    VertexId::from((chance >> 33) as i64 % bound)
                };
                for step in 0..MOVES {
                    let outcome = if seed == 1 && step % 2 == 0 {
                        graph.delete_vertex(&mut session, &below(6), Edges::Remove)
                    } else if seed == 1 {
                        graph.add_vertex(&mut session, below(6), &["Member"]).map(drop)
                    } else {
                        graph.add_edge(&mut session, &below(6), "LIKES", &below(6)).map(drop)
                    };
                    match outcome {
                        Ok(()) | Err(Error::NoVertex(_) | Error::VertexExists(_)) => {}
                        Err(error) => panic!("{error}"),
                    }
                }
                Ok(())
            })
        };
        let threads = [1, 2, 3].map(start);
        threads.into_iter().try_for_each(|thread| thread.join().expect("a thread failed"))
    })?;
    let mut session = database.session()?;
    assert_eq!(graph.check(&mut session)?.faults, [""; 0]);
    assert!(graph.count_edges(&mut session)? > 0);
    drop((session, database));
    std::fs::remove_dir_all(&directory).map_err(perilune::Error::other)?;
    Ok(())
}
