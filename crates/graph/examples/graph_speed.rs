//! How fast a scale-free graph is loaded and asked, for `make bench-graph`: name, median and mean CPU time in microseconds, sum of
//! answers. What it makes, `bench/graph/peers.py` gives to others.
//!
//! ```text
//! cargo run --release -p perilune-graph --example graph_speed -- DIRECTORY [VERTICES]
//! ```
//!
//! Idea: each vertex begins some ten edges, whose ends are those of edges before it, so that who has many gets more.

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::time::Instant;

use perilune::{node, Database, Durability};
use perilune_graph::{algorithm, import, Graph, GraphOptions, Missing, Reach, Traversal, VertexId, View};

type Outcome<T> = Result<T, Box<dyn Error>>;

const VERTICES: u64 = 100_000;
const EDGES_OF_EACH: u64 = 10;
const STARTS: usize = 300;
const PAIRS: usize = 40;

/// Numbers by chance, the same in each run.
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// CPU time of this process in microseconds.
fn cpu() -> f64 {
    let text = fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|nanoseconds| nanoseconds.parse::<f64>().ok()).unwrap_or(0.0) / 1e3
}

/// Asks for each thing, and tells what it took.
fn each<T>(name: &str, things: &[T], mut work: impl FnMut(&T) -> Outcome<u64>) -> Outcome<()> {
    let (mut times, mut sum, before) = (Vec::new(), 0, cpu());
    for thing in things {
        let begun = Instant::now();
        sum += work(thing)?;
        times.push(begun.elapsed().as_secs_f64() * 1e6);
    }
    let mean = (cpu() - before) / times.len() as f64;
    times.sort_by(f64::total_cmp);
    println!("{:<9}{name:<14} {:12.1} {mean:12.1} {sum:12}", "perilune", times[times.len() / 2]);
    Ok(())
}

/// Writes the edges, and what is asked for.
fn make(directory: &Path, vertices: u64) -> Outcome<(Vec<i64>, Vec<i64>)> {
    let (mut chance, mut ends, mut text) = (Chance(7), vec![0_u64], String::from("source,type,target\n"));
    for source in 1..vertices {
        let mut targets: Vec<u64> = Vec::new();
        for _ in 0..EDGES_OF_EACH {
            let target = ends[chance.below(ends.len() as u64) as usize];
            if target != source && !targets.contains(&target) {
                targets.push(target);
                writeln!(text, "{source},LINK,{target}")?;
            }
        }
        ends.extend(&targets);
        ends.push(source);
    }
    fs::write(directory.join("edges.csv"), text)?;
    let mut some = |name: &str, count: usize| -> Outcome<Vec<i64>> {
        let numbers: Vec<i64> = (0..count).map(|_| chance.below(vertices) as i64).collect();
        let lines: String = numbers.iter().map(|number| format!("{number}\n")).collect();
        fs::write(directory.join(name), lines)?;
        Ok(numbers)
    };
    Ok((some("starts.txt", STARTS)?, some("pairs.txt", PAIRS * 2)?))
}

fn ask(mut view: View<'static>, starts: &[i64], pairs: &[(i64, i64)]) -> Outcome<()> {
    each("point", starts, |start| {
        let (graph, session) = view.parts();
        Ok(u64::from(graph.has_vertex(session, &VertexId::from(*start))?))
    })?;
    each("two hops walk", starts, |start| {
        let mut traversal = Traversal::breadth_first(Reach::out()).depths(1, 2);
        let walk = traversal.walk(&mut view, [*start])?;
        Ok(walk.count() as u64)
    })?;
    each("two hops", starts, |start| {
        Ok(algorithm::within(&mut view, [*start], &Reach::out(), 2)?.len() as u64 - 1)
    })?;
    each("shortest path", pairs, |(from, to)| {
        let path = algorithm::shortest_path(&mut view, &(*from).into(), &(*to).into(), &Reach::both())?;
        Ok(path.map_or(0, |path| path.length() as u64))
    })?;
    each("pagerank", &[0], |_| {
        let ranks = algorithm::page_rank(&mut view, &Reach::out(), 0.85, 10)?;
        Ok((ranks.iter().map(|(_, rank)| rank).sum::<f64>() * 1e6) as u64)
    })
}

fn main() -> Outcome<()> {
    let mut arguments = std::env::args().skip(1);
    let directory = arguments.next().ok_or("speed DIRECTORY [VERTICES]")?;
    let vertices = arguments.next().map_or(Ok(VERTICES), |count| count.parse())?;
    let directory = Path::new(&directory);
    fs::create_dir_all(directory)?;
    let (starts, ends) = make(directory, vertices)?;
    let pairs: Vec<(i64, i64)> = ends.chunks(2).map(|two| (two[0], two[1])).collect();
    let path = directory.join("ours");
    if path.is_dir() {
        fs::remove_dir_all(&path)?;
    }
    fs::create_dir_all(&path)?;
    let database = Database::options().durability(Durability::None).open(path.join("t.db"))?;
    let mut session = database.session()?;
    let mut graph = Graph::create(&mut session, &node!("^speed")?, &GraphOptions::default())?;
    each("load", &[0], |_| {
        let file = std::io::BufReader::new(fs::File::open(directory.join("edges.csv"))?);
        let edges = import::from_csv(file)?;
        Ok(graph.import(&mut session, edges, Missing::Create, &mut |_| {})?)
    })?;
    ask(graph.snapshot(&database)?, &starts, &pairs)
}
