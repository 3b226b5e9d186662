//! Algorithms against petgraph's, and against counting by hand where it has none, over random graphs.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use perilune::{node, Database, Session};
use perilune_graph::{
    algorithm, Cost, Edge, Error, Graph, GraphOptions, Limits, Path, Reach, Result, Traversal, VertexId, View,
};
use petgraph::algo;
use petgraph::graph::{DiGraph, NodeIndex, UnGraph};
use petgraph::visit::EdgeRef;

/// Chance that can be had again: $PERILUNE_SEED.
struct Chance(u64);

impl Chance {
    fn new() -> Chance {
        let seed = std::env::var("PERILUNE_SEED").ok().and_then(|seed| seed.parse().ok());
        let seed = seed.unwrap_or_else(|| u64::from(std::process::id()) | 1);
        println!("PERILUNE_SEED={seed}");
        Chance(seed)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % bound
    }
}

/// A graph, and the edges of which it was made: source, target, weight.
struct Sample {
    session: Session,
    graph: Graph,
    count: u64,
    edges: Vec<(u32, u32, f64)>,
}

impl Sample {
    fn new(chance: &mut Chance, count: u64, edges: u64) -> Result<Sample> {
        let mut session = Database::open("memory:")?.session()?;
        let s = &mut session;
        let mut graph = Graph::create(s, &node!("^g")?, &GraphOptions { weight: Some("km".to_owned()) })?;
        for id in 0..count {
            graph.add_vertex(s, id as i64, &[])?;
        }
        let mut list = Vec::new();
        for _ in 0..edges {
            let (source, target) = (chance.below(count), chance.below(count));
            let weight = chance.below(40) as f64 / 4.0;
            let edge = graph.add_edge(s, &(source as i64).into(), "R", &(target as i64).into())?;
            graph.set_edge_property(s, edge, "km", weight)?;
            list.push((source as u32, target as u32, weight));
        }
        Ok(Sample { session, graph, count, edges: list })
    }

    fn directed(&self) -> DiGraph<(), f64> {
        let mut graph = DiGraph::from_edges(&self.edges);
        while (graph.node_count() as u64) < self.count {
            graph.add_node(());
        }
        graph
    }

    fn undirected(&self) -> UnGraph<(), f64> {
        self.directed().into_edge_type()
    }

    fn read<R>(&mut self, body: impl FnMut(&mut View<'_>) -> Result<R>) -> Result<R> {
        self.graph.read(&mut self.session, body)
    }
}

fn random_samples() -> impl Iterator<Item = Result<(Sample, VertexId, VertexId)>> {
    let mut chance = Chance::new();
    (0..60).map(move |round| {
        let count = 2 + chance.below(12);
        let edges = chance.below(3 * count + 1) + round % 2;
        let sample = Sample::new(&mut chance, count, edges)?;
        Ok((sample, (chance.below(count) as i64).into(), (chance.below(count) as i64).into()))
    })
}

fn index(id: &VertexId) -> NodeIndex {
    NodeIndex::new(id.as_i64().expect("an integer") as usize)
}

/// A path must be one: from end to end, over edges that fit.
fn assert_is_path(path: &Path, from: &VertexId, to: &VertexId) {
    assert_eq!((path.start(), path.end()), (from, to));
    let vertices = path.vertices();
    for (edge, ends) in path.edges().iter().zip(vertices.windows(2)) {
        assert!([ends[0], ends[1]].contains(&&edge.source) && edge.other(ends[0]) == ends[1], "{path}");
    }
}

#[test]
fn paths_are_as_short_and_as_cheap_as_petgraphs() -> Result<()> {
    for sample in random_samples() {
        let (mut sample, from, to) = sample?;
        let (directed, undirected) = (sample.directed(), sample.undirected());
        let lengths = algo::dijkstra(&directed, index(&from), None, |_| 1_usize);
        let costs = algo::dijkstra(&directed, index(&from), None, |edge| *edge.weight());
        let either = algo::dijkstra(&undirected, index(&from), None, |edge| *edge.weight());
        let left =
            algo::dijkstra(petgraph::visit::Reversed(&directed), index(&to), None, |edge| *edge.weight());
        sample.read(|view| {
            let short = algorithm::shortest_path(view, &from, &to, &Reach::out())?;
            assert_eq!(short.as_ref().map(Path::length), lengths.get(&index(&to)).copied());
            let cheap = algorithm::cheapest_path(view, &from, &to, &Reach::out(), &mut Cost::Weight)?;
            assert_eq!(cheap.as_ref().map(Path::cost), costs.get(&index(&to)).copied());
            let met = algorithm::cheapest_path_both_ways(view, &from, &to, &Reach::out(), &mut Cost::Weight)?;
            assert_eq!(met.as_ref().map(Path::cost), costs.get(&index(&to)).copied());
            let back = algorithm::cheapest_path(view, &to, &from, &Reach::incoming(), &mut Cost::Weight)?;
            assert_eq!(back.as_ref().map(Path::cost), costs.get(&index(&to)).copied());
            let both =
                algorithm::cheapest_path_both_ways(view, &from, &to, &Reach::both(), &mut Cost::Weight)?;
            assert_eq!(both.as_ref().map(Path::cost), either.get(&index(&to)).copied());
            // Half of what is truly left never says too much, and for odd vertices nothing at all: no consistent estimate.
            let mut estimate = |vertex: &VertexId, _: &mut View<'_>| {
                let is_odd = vertex.as_i64().is_some_and(|id| id % 2 == 1);
                let left = left.get(&index(vertex)).copied().unwrap_or(0.0);
                Ok(if is_odd { 0.0 } else { left })
            };
            let toward = algorithm::cheapest_path_toward(
                view,
                &from,
                &to,
                &Reach::out(),
                &mut Cost::Weight,
                &mut estimate,
            )?;
            assert_eq!(toward.as_ref().map(Path::cost), costs.get(&index(&to)).copied());
            for path in [short, cheap, met, both, toward].into_iter().flatten() {
                assert_is_path(&path, &from, &to);
            }
            Ok(())
        })?;
    }
    Ok(())
}

/// All ways from one vertex to another that meet no vertex twice, as lists of edges.
fn simple_ways(
    directed: &DiGraph<(), f64>,
    at: NodeIndex,
    to: NodeIndex,
    way: &mut (Vec<NodeIndex>, f64, usize),
    found: &mut Vec<(f64, usize)>,
) {
    if at == to {
        found.push((way.1, way.2));
        return;
    }
    way.0.push(at);
    for edge in directed.edges(at) {
        if !way.0.contains(&edge.target()) {
            let before = (way.1, way.2);
            (way.1, way.2) = (way.1 + edge.weight(), way.2 + 1);
            simple_ways(directed, edge.target(), to, way, found);
            (way.1, way.2) = before;
        }
    }
    way.0.pop();
}

#[test]
fn all_shortest_and_k_cheapest_are_those_of_all_ways() -> Result<()> {
    let mut chance = Chance::new();
    for _ in 0..60 {
        let count = 2 + chance.below(5);
        let edges = chance.below(2 * count + 3);
        let mut sample = Sample::new(&mut chance, count, edges)?;
        let from = VertexId::from(chance.below(count) as i64);
        let to = VertexId::from(chance.below(count) as i64);
        let mut ways = Vec::new();
        simple_ways(&sample.directed(), index(&from), index(&to), &mut Default::default(), &mut ways);
        ways.sort_by(|a, b| a.0.total_cmp(&b.0));
        let least = ways.iter().map(|(_, length)| *length).min();
        let shortest = ways.iter().filter(|(_, length)| Some(*length) == least).count();
        sample.read(|view| {
            let paths = algorithm::all_shortest_paths(view, &from, &to, &Reach::out(), 1_000)?;
            assert_eq!(paths.len(), shortest);
            assert!(paths.iter().all(|path| Some(path.length()) == least));
            let ids: BTreeSet<Vec<i64>> =
                paths.iter().map(|path| path.edges().iter().map(|edge| edge.id).collect()).collect();
            assert_eq!(ids.len(), shortest, "no path twice");
            let some = algorithm::all_shortest_paths(view, &from, &to, &Reach::out(), 1)?;
            assert_eq!(some.len(), shortest.min(1));
            for most in [0, 1, 5, 1_000] {
                let paths =
                    algorithm::cheapest_paths(view, &from, &to, &Reach::out(), &mut Cost::Weight, most)?;
                let costs: Vec<f64> = paths.iter().map(Path::cost).collect();
                let expected: Vec<f64> = ways.iter().take(most).map(|(cost, _)| *cost).collect();
                assert_eq!(costs, expected);
                paths.iter().for_each(|path| assert_is_path(path, &from, &to));
            }
            Ok(())
        })?;
    }
    Ok(())
}

#[test]
fn components_cycles_and_orders_are_petgraphs() -> Result<()> {
    for sample in random_samples() {
        let (mut sample, ..) = sample?;
        let directed = sample.directed();
        let count = algo::connected_components(&directed);
        let is_cyclic = algo::is_cyclic_directed(&directed);
        let edges = sample.edges.clone();
        sample.read(|view| {
            let components = algorithm::components(view, &Reach::out())?;
            assert_eq!(components.len(), count);
            assert!(components.windows(2).all(|pair| pair[0].len() >= pair[1].len()));
            let of: HashMap<i64, usize> = components
                .iter()
                .enumerate()
                .flat_map(|(number, members)| {
                    members.iter().map(move |id| (id.as_i64().unwrap_or(-1), number))
                })
                .collect();
            assert!(edges.iter().all(|(a, b, _)| of[&i64::from(*a)] == of[&i64::from(*b)]));
            let cycle = algorithm::find_cycle(view, &Reach::out())?;
            assert_eq!(cycle.is_some(), is_cyclic);
            let leads = |a: &VertexId, b: &VertexId| {
                edges.iter().any(|(from, to, _)| {
                    VertexId::from(i64::from(*from)) == *a && VertexId::from(i64::from(*to)) == *b
                })
            };
            if let Some(cycle) = cycle {
                let next = cycle.iter().cycle().skip(1);
                assert!(cycle.iter().zip(next).all(|(a, b)| leads(a, b)), "{cycle:?}");
            }
            let order = algorithm::topological_order(view, &Reach::out())?;
            assert_eq!(order.is_none(), is_cyclic);
            if let Some(order) = order {
                let place: HashMap<VertexId, usize> = order.into_iter().zip(0..).collect();
                for (from, to, _) in &edges {
                    assert!(place[&i64::from(*from).into()] < place[&i64::from(*to).into()]);
                }
                let back = algorithm::topological_order(view, &Reach::incoming())?;
                assert!(back.is_some(), "no cycle either way");
            }
            assert!(matches!(algorithm::find_cycle(view, &Reach::both()), Err(Error::Invalid(_))));
            Ok(())
        })?;
    }
    Ok(())
}

#[test]
fn triangles_ranks_and_betweenness_are_what_counting_says() -> Result<()> {
    for sample in random_samples() {
        let (mut sample, ..) = sample?;
        let (count, edges) = (sample.count as usize, sample.edges.clone());
        let know =
            |a: usize, b: usize| edges.iter().any(|(from, to, _)| (*from as usize, *to as usize) == (a, b));
        let near = |a: usize, b: usize| a != b && (know(a, b) || know(b, a));
        let mut triangles = 0;
        for a in 0..count {
            for b in a + 1..count {
                triangles += (b + 1..count).filter(|c| near(a, b) && near(b, *c) && near(a, *c)).count();
            }
        }
        let directed = counted(count, |a, b| a != b && know(a, b));
        let either: BTreeMap<usize, f64> =
            counted(count, near).into_iter().map(|(id, score)| (id, score / 2.0)).collect();
        sample.read(|view| {
            assert_eq!(algorithm::count_triangles(view, &Reach::out())?, triangles as u64);
            for (reach, expected) in [(Reach::out(), &directed), (Reach::both(), &either)] {
                for (id, score) in algorithm::betweenness(view, &reach)? {
                    let expected = expected[&index(&id).index()];
                    assert!((score - expected).abs() < 1e-9, "{id}: {score}, not {expected}");
                }
            }
            let ranks = algorithm::page_rank(view, &Reach::out(), 0.85, 30)?;
            let sum: f64 = ranks.iter().map(|(_, rank)| rank).sum();
            assert!((sum - 1.0).abs() < 1e-9, "{sum}");
            for (id, rank) in ranks {
                let expected = ranked(count, &edges, 30)[index(&id).index()];
                assert!((rank - expected).abs() < 1e-9, "{id}: {rank}, not {expected}");
            }
            assert!(matches!(algorithm::page_rank(view, &Reach::out(), 1.5, 1), Err(Error::Invalid(_))));
            Ok(())
        })?;
    }
    Ok(())
}

/// Betweenness by its definition: distances and numbers of paths between all pairs.
fn counted(count: usize, near: impl Fn(usize, usize) -> bool) -> BTreeMap<usize, f64> {
    let ids = || 0..count;
    let mut walks: Vec<Vec<Vec<f64>>> =
        vec![ids().map(|a| ids().map(|b| f64::from(u8::from(a == b))).collect()).collect()];
    for length in 0..count {
        let longer =
            |row: &Vec<f64>| ids().map(|b| ids().filter(|c| near(*c, b)).map(|c| row[c]).sum()).collect();
        walks.push(walks[length].iter().map(longer).collect());
    }
    let distance = |a: usize, b: usize| (0..=count).find(|length| walks[*length][a][b] > 0.0);
    let paths = |a: usize, b: usize| distance(a, b).map_or(0.0, |length| walks[length][a][b]);
    let mut scores = BTreeMap::new();
    for v in 0..count {
        let mut score = 0.0;
        for a in (0..count).filter(|a| *a != v) {
            for b in (0..count).filter(|b| *b != v && *b != a) {
                if let (Some(whole), Some(first), Some(second)) =
                    (distance(a, b), distance(a, v), distance(v, b))
                {
                    if first + second == whole {
                        score += paths(a, v) * paths(v, b) / paths(a, b);
                    }
                }
            }
        }
        scores.insert(v, score);
    }
    scores
}

/// PageRank as a matrix says it.
fn ranked(count: usize, edges: &[(u32, u32, f64)], rounds: usize) -> Vec<f64> {
    let mut chances = vec![vec![0.0; count]; count];
    for (from, to, _) in edges {
        chances[*from as usize][*to as usize] += 1.0;
    }
    for row in &mut chances {
        let sum: f64 = row.iter().sum();
        let even = 1.0 / count as f64;
        row.iter_mut().for_each(|chance| *chance = if sum == 0.0 { even } else { *chance / sum });
    }
    let mut ranks = vec![1.0 / count as f64; count];
    for _ in 0..rounds {
        let come = |to: usize| (0..count).map(|from| ranks[from] * chances[from][to]).sum::<f64>();
        ranks = (0..count).map(|to| 0.15 / count as f64 + 0.85 * come(to)).collect();
    }
    ranks
}

/// Straight lines between points: fractions count, and equal costs do not push each other out.
#[test]
fn costs_are_what_a_function_says() -> Result<()> {
    let mut session = Database::open("memory:")?.session()?;
    let s = &mut session;
    let mut graph = Graph::create(s, &node!("^g")?, &GraphOptions::default())?;
    for (id, x, y) in
        [("a", 0.0, 0.0), ("b", 100.0, 0.0), ("c", 0.0, 100.0), ("d", 100.0, 100.0), ("e", 50.0, 50.0)]
    {
        graph.add_vertex(s, id, &[])?;
        graph.set_property(s, &id.into(), "x", x)?;
        graph.set_property(s, &id.into(), "y", y)?;
    }
    for (from, to) in [("a", "b"), ("a", "c"), ("b", "d"), ("c", "d"), ("a", "e"), ("e", "d")] {
        graph.add_edge(s, &from.into(), "WAY", &to.into())?;
    }
    graph.read(s, |view| {
        let mut places = HashMap::new();
        for id in ["a", "b", "c", "d", "e"].map(VertexId::from) {
            let (graph, session) = view.parts();
            let mut number = |name| match graph.property(session, &id, name) {
                Ok(Some(perilune::Value::Double(double))) => double,
                other => panic!("{other:?}"),
            };
            let place = (number("x"), number("y"));
            places.insert(id, place);
        }
        let far = |a: &VertexId, b: &VertexId| {
            let ((ax, ay), (bx, by)) = (places[a], places[b]);
            (ax - bx).hypot(ay - by)
        };
        let (from, to) = ("a".into(), "d".into());
        let mut cost = Cost::function(|edge: &Edge| far(&edge.source, &edge.target));
        let path = algorithm::cheapest_path_toward(
            view,
            &from,
            &to,
            &Reach::both(),
            &mut cost,
            &mut |vertex, _| Ok(far(vertex, &"d".into())),
        )?;
        let path = path.expect("there are ways");
        assert_eq!(path.to_string(), "a-[WAY]->e-[WAY]->d");
        assert!((path.cost() - 20_000_f64.sqrt()).abs() < 1e-12, "{}", path.cost());
        for bad in [-1.0, f64::NAN, f64::INFINITY] {
            let mut cost = Cost::function(|_: &Edge| bad);
            let outcome = algorithm::cheapest_path(view, &from, &to, &Reach::out(), &mut cost);
            assert!(matches!(outcome, Err(Error::Cost(_))));
        }
        let none = algorithm::cheapest_path(view, &from, &to, &Reach::out(), &mut Cost::Weight);
        assert!(matches!(none, Err(Error::Cost(_))), "an edge without weight");
        Ok(())
    })
}

#[test]
fn within_are_the_vertices_that_a_walk_finds() -> Result<()> {
    for sample in random_samples() {
        let (mut sample, from, to) = sample?;
        for reach in [Reach::out(), Reach::incoming().of("R"), Reach::both().of("R").of("none")] {
            for depth in [0, 1, 2, usize::MAX] {
                let (found, walked) = sample.read(|view| {
                    let starts = [&from, &to, &from];
                    let found = algorithm::within(view, starts, &reach, depth)?;
                    let mut traversal = Traversal::breadth_first(reach.clone()).depths(0, depth);
                    let paths = traversal.walk(view, starts)?;
                    let ends = paths.map(|path| path.map(|path| (path.end().clone(), path.length())));
                    Ok((found, ends.collect::<Result<Vec<_>>>()?))
                })?;
                assert_eq!(found, walked, "{reach:?} {depth}");
            }
        }
    }
    let (mut sample, from, _) = random_samples().next().expect("a sample")?;
    let limits = Limits { vertices: 0, ..Limits::default() };
    let outcome = sample.read(|view| {
        view.limit(limits);
        algorithm::within(view, [&from], &Reach::both(), 9).map(drop)
    });
    assert!(matches!(outcome, Err(Error::Limit { what: "vertices", .. })));
    let missing = sample.read(|view| algorithm::within(view, ["none"], &Reach::both(), 9).map(drop));
    assert!(matches!(missing, Err(Error::NoVertex(_))));
    Ok(())
}
