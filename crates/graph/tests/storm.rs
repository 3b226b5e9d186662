//! A storm: four processes change a graph at random while others walk it, and one after the other is killed.
//!
//! Whatever is left of a killed process, a snapshot is one state in which both entries of each edge, degrees, labels and indexes
//! agree (`Graph::check`); the walkers count the edges from both sides, too. The long form is `make graph-storm SECONDS=60`;
//! PERILUNE_SEED repeats what the parent does.

use std::env;
use std::io::{BufRead, BufReader, Lines, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use perilune::{node, Database, Session};
use perilune_graph::{
    algorithm, Direction, Edges, Error, Graph, GraphOptions, Reach, Result, Traversal, VertexId,
};

const TEST: &str = "nothing_is_left_half_done";
const WRITERS: u64 = 4;
const WALKERS: u64 = 2;
/// Vertices that there may be: few, so that the processes meet.
const VERTICES: u64 = 40;
/// Kills of the short form.
const KILLS: u64 = 40;
/// Changes or walks between two lines of a process.
const LINE: u64 = 5;

/// Numbers by chance.
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }

    fn vertex(&mut self) -> VertexId {
        VertexId::from(self.below(VERTICES) as i64)
    }
}

#[test]
fn nothing_is_left_half_done() -> Result<()> {
    if let Some(path) = env::var_os("PERILUNE_GRAPH_STORM_PATH") {
        return take_part(&Database::open(path)?);
    }
    let seed = match env::var("PERILUNE_SEED").ok().and_then(|seed| seed.parse().ok()) {
        Some(seed) => seed,
        None => u64::from(std::process::id()),
    };
    println!("seed {seed}");
    let time = env::var("PERILUNE_GRAPH_STORM").ok().and_then(|seconds| seconds.parse().ok());
    let time = time.map(Duration::from_secs);
    let directory = env::temp_dir().join(format!("perilune-graph-storm-{}", std::process::id()));
    std::fs::create_dir_all(&directory).map_err(perilune::Error::other)?;
    let outcome = storm(&directory, seed, time);
    let _ = std::fs::remove_dir_all(&directory);
    outcome
}

fn storm(directory: &std::path::Path, seed: u64, time: Option<Duration>) -> Result<()> {
    let database = Database::open(directory.join("t.db"))?;
    let mut session = database.session()?;
    let options = GraphOptions { weight: Some("km".to_owned()) };
    let graph = Graph::create(&mut session, &node!("^storm")?, &options)?;
    graph.add_index(&mut session, "Person", "age")?;
    let (mut chance, begun) = (Chance(seed), Instant::now());
    let (mut kills, mut told, mut edges) = (0, 0, 0);
    let mut party: Vec<Part> =
        (0..WRITERS + WALKERS).map(|number| Part::start(&database, seed, number)).collect::<Result<_>>()?;
    while time.map_or(kills < KILLS, |time| begun.elapsed() < time) {
        let number = chance.below(WRITERS + WALKERS);
        let lines = 1 + chance.below(6);
        let part = &mut party[number as usize];
        told += part.listen(lines)?;
        part.kill()?;
        kills += 1;
        let mut view = graph.snapshot(&database)?;
        let (graph, snapshot) = view.parts();
        let report = graph.clone().check(snapshot)?;
        assert_eq!(report.faults, [""; 0], "after {kills} kills, seed {seed}");
        edges = edges.max(report.edges);
        party[number as usize] = Part::start(&database, seed.wrapping_add(kills * 1_000), number)?;
    }
    for part in &mut party {
        told += part.listen(1)?;
        part.kill()?;
    }
    let report = graph.check(&mut session)?;
    assert_eq!(report.faults, [""; 0], "at the end, seed {seed}");
    assert!(edges > 20, "there was not much to be seen: {edges} edges");
    println!(
        "graph-storm: {kills} kills, {} changes and walks, {edges} edges at most, 0 faults",
        told * LINE
    );
    Ok(())
}

/// A process of the storm.
struct Part {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Part {
    /// This test again, as a process that changes or walks.
    fn start(database: &Database, seed: u64, number: u64) -> Result<Part> {
        let role = if number < WRITERS { "change" } else { "walk" };
        let path: PathBuf = database.path().to_owned();
        let mut child = Command::new(env::current_exe().map_err(perilune::Error::other)?)
            .args(["--exact", TEST, "--nocapture"])
            .env("PERILUNE_GRAPH_STORM_PATH", path)
            .env("PERILUNE_GRAPH_STORM_ROLE", role)
            .env("PERILUNE_SEED", seed.wrapping_mul(31).wrapping_add(number).to_string())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(perilune::Error::other)?;
        let lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        Ok(Part { child, lines })
    }

    /// Waits until it has told so many lines; answers how many it was.
    fn listen(&mut self, lines: u64) -> Result<u64> {
        let mut told = self.lines.by_ref().filter(|line| line.as_ref().is_ok_and(|line| line == "done"));
        for _ in 0..lines {
            assert!(told.next().is_some(), "a process of the storm has failed");
        }
        Ok(lines)
    }

    fn kill(&mut self) -> Result<()> {
        self.child.kill().map_err(perilune::Error::other)?;
        self.child.wait().map_err(perilune::Error::other)?;
        Ok(())
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        let _ = self.kill();
    }
}

/// Changes or walks until it is killed, or nobody listens any more.
fn take_part(database: &Database) -> Result<()> {
    let mut session = database.session()?;
    let mut graph = Graph::open(&mut session, &node!("^storm")?)?;
    let mut chance = Chance(env::var("PERILUNE_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1));
    let walks = env::var("PERILUNE_GRAPH_STORM_ROLE").is_ok_and(|role| role == "walk");
    let mut out = std::io::stdout();
    for count in 1_u64.. {
        let outcome = match walks {
            true => walk(&graph, database, &mut chance),
            false => change(&mut graph, &mut session, &mut chance),
        };
        match outcome {
            // Others have been there first.
            Err(Error::NoVertex(_) | Error::NoEdge(_) | Error::VertexExists(_) | Error::HasEdges(_)) => {}
            outcome => outcome?,
        }
        if count.is_multiple_of(LINE) && writeln!(out, "done").is_err() {
            break;
        }
    }
    Ok(())
}

fn change(graph: &mut Graph, session: &mut Session, chance: &mut Chance) -> Result<()> {
    let (one, other) = (chance.vertex(), chance.vertex());
    match chance.below(12) {
        0 | 1 => {
            graph.add_vertex(session, &one, &["Person"])?;
        }
        2 => graph.delete_vertex(session, &one, Edges::Remove)?,
        3 => graph.delete_vertex(session, &one, Edges::Refuse)?,
        4 | 5 => graph.set_property(session, &one, "age", chance.below(9) as i64)?,
        6 => match chance.below(3) {
            0 => graph.remove_label(session, &one, "Person")?,
            1 => graph.add_label(session, &one, "Person")?,
            _ => graph.delete_property(session, &one, "age")?,
        },
        7 => {
            let edges = graph.edges(session, &one, &Reach::both())?;
            let Some(edge) = edges.get(chance.below(edges.len().max(1) as u64) as usize) else {
                return Ok(());
            };
            match chance.below(2) {
                0 => graph.delete_edge(session, edge.id)?,
                _ => graph.set_edge_property(session, edge.id, "km", chance.below(99) as i64)?,
            }
        }
        kind => {
            let kind = ["KNOWS", "LIKES"][kind as usize % 2];
            session.transaction(|session| {
                let edge = graph.add_edge(session, &one, kind, &other)?;
                Ok(graph.set_edge_property(session, edge, "km", 7)?)
            })?;
        }
    }
    Ok(())
}

/// Looks at one state from both sides.
fn walk(graph: &Graph, database: &Database, chance: &mut Chance) -> Result<()> {
    let mut view = graph.snapshot(database)?;
    let (mut out, mut inward, mut counted) = (0, 0, 0);
    let mut ids = Vec::new();
    view.each_vertex(&mut |id| ids.push(id))?;
    for id in &ids {
        out += view.edges(id, &Reach::out())?.len() as u64;
        inward += view.edges(id, &Reach::incoming())?.len() as u64;
        let (graph, session) = view.parts();
        counted += graph.degree(session, id, Direction::Both, None)?;
    }
    assert!(out == inward && counted == 2 * out, "{out} edges out, {inward} in, {counted} ends counted");
    if ids.is_empty() {
        return Ok(());
    }
    let start = &ids[chance.below(ids.len() as u64) as usize];
    let mut walked = 0;
    for path in Traversal::breadth_first(Reach::both()).walk(&mut view, [start])? {
        path?;
        walked += 1;
    }
    let component = algorithm::components(&mut view, &Reach::out())?;
    let around = component.iter().find(|component| component.contains(start)).map_or(0, Vec::len);
    assert_eq!(walked, around, "a walk and the components of one state");
    Ok(())
}
