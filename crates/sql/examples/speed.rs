//! Load, two hops, shortest paths and PageRank over a scale-free graph, for `bench/graph/peers.py` to be held against.
//!
//!     cargo run --release -p perilune-graph --example speed -- DIRECTORY [VERTICES]
//!
//! It makes DIRECTORY/edges.csv (10 edges a vertex, each to an end of an earlier edge: preferential attachment), starts.txt and
//! pairs.txt, which the peers read, too, and prints a line for each measure: name, median and mean CPU time
//! in microseconds, a sum of the answers.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use perilune::{node, Database, Durability};
use perilune_graph::{algorithm, import, Graph, GraphOptions, Missing, Reach, Result, Traversal, VertexId};

const EDGES_EACH: u64 = 10;
const STARTS: u64 = 300;
const PAIRS: u64 = 40;

fn below(chance: &mut u64, limit: u64) -> u64 {
    *chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*chance >> 33) % limit
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let Some(directory) = arguments.next().map(PathBuf::from) else {
        eprintln!("speed DIRECTORY [VERTICES]: where files and the database are made");
        std::process::exit(2);
    };
    let vertices = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(100_000);
    make(&directory, vertices).expect("the files");
    measure(&directory).expect("the measures");
}

/// Writes the files.
fn make(directory: &Path, vertices: u64) -> std::io::Result<()> {
    fs::create_dir_all(directory)?;
    let mut chance = 1;
    let mut ends: Vec<u64> = Vec::new();
    let mut out = BufWriter::new(File::create(directory.join("edges.csv"))?);
    writeln!(out, "source,type,target")?;
    for vertex in 1..vertices {
        let mut targets = HashSet::new();
        for _ in 0..EDGES_EACH.min(vertex) {
            let target = match ends.len() as u64 {
                0 => 0,
                count => ends[below(&mut chance, count) as usize],
            };
            if target != vertex && targets.insert(target) {
                writeln!(out, "{vertex},LINK,{target}")?;
                ends.push(target);
                ends.push(vertex);
            }
        }
    }
    out.flush()?;
    let mut pick = |count: u64| -> String {
        (0..count).map(|_| format!("{}\n", vertices / 2 + below(&mut chance, vertices / 2))).collect()
    };
    fs::write(directory.join("starts.txt"), pick(STARTS))?;
    fs::write(directory.join("pairs.txt"), pick(2 * PAIRS))
}

fn numbers(directory: &Path, name: &str) -> Vec<VertexId> {
    let text = fs::read_to_string(directory.join(name)).expect("the file is there");
    text.lines().filter_map(|line| line.parse::<i64>().ok()).map(VertexId::from).collect()
}

/// Nanoseconds that this thread has run for.
fn ran() -> u64 {
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// Prints the median of what `work` takes for each, the mean of the CPU time, and the sum of its answers.
fn each<T>(
    name: &str,
    things: impl IntoIterator<Item = T>,
    mut work: impl FnMut(T) -> Result<u64>,
) -> Result<()> {
    let (mut times, mut sum) = (Vec::new(), 0);
    let before = ran();
    for thing in things {
        let begun = Instant::now();
        sum += work(thing)?;
        times.push(begun.elapsed().as_secs_f64() * 1e6);
    }
    let mean = (ran() - before) as f64 / 1e3 / times.len() as f64;
    times.sort_by(f64::total_cmp);
    println!("perilune {name:<14} {:>12.1} {mean:>12.1} {sum:>12}", times[times.len() / 2]);
    Ok(())
}

fn measure(directory: &Path) -> Result<()> {
    let path = directory.join("graph.db");
    let _ = fs::remove_file(&path);
    let database = Database::options().durability(Durability::None).open(&path)?;
    let mut session = database.session()?;
    let mut graph = Graph::create(&mut session, &node!("^g")?, &GraphOptions::default())?;
    each("load", [()], |()| {
        let file = File::open(directory.join("edges.csv")).expect("the edges");
        let edges = import::from_csv(BufReader::with_capacity(1 << 18, file))?;
        graph.import(&mut session, edges, Missing::Create, &mut |_| {})
    })?;
    let (starts, pairs) = (numbers(directory, "starts.txt"), numbers(directory, "pairs.txt"));
    let reach = Reach::out().of("LINK");
    each("point", &starts, |start| graph.has_vertex(&mut session, start).map(u64::from))?;
    let mut view = graph.snapshot(&database)?;
    let mut two = Traversal::breadth_first(reach.clone()).depths(1, 2);
    each("two hops walk", &starts, |start| {
        let mut count = 0;
        for path in two.walk(&mut view, [start])? {
            path?;
            count += 1;
        }
        Ok(count)
    })?;
    each(
        "two hops",
        &starts,
        |start| Ok(algorithm::within(&mut view, [start], &reach, 2)?.len() as u64 - 1),
    )?;
    each("shortest path", pairs.chunks_exact(2), |pair| {
        let path = algorithm::shortest_path(&mut view, &pair[0], &pair[1], &Reach::both().of("LINK"))?;
        Ok(path.map_or(0, |path| path.length() as u64))
    })?;
    each("pagerank", [()], |()| {
        Ok(algorithm::page_rank(&mut view, &reach, 0.85, 10)?.iter().map(|(_, rank)| rank * 1e6).sum::<f64>()
            as u64)
    })
}
