//! Random changes against a graph of petgraph's: edges of both directions, degrees and labels agree after each.

use std::collections::HashMap;

use perilune::{node, Database, Error as DatabaseError, Session};
use perilune_graph::{Direction, Edges, Error, Graph, GraphOptions, Reach, Result};
use petgraph::stable_graph::{EdgeIndex, NodeIndex, StableDiGraph};
use petgraph::visit::EdgeRef;
use petgraph::Direction as Way;

const VERTICES: u64 = 12;
const KINDS: [&str; 3] = ["KNOWS", "LIKES", "7"];

struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % bound
    }
}

/// An edge of the model: its id, type and weight.
#[derive(Clone, Debug, PartialEq)]
struct Held {
    id: i64,
    kind: &'static str,
    weight: Option<f64>,
}

#[derive(Clone, Default)]
struct Model {
    graph: StableDiGraph<i64, Held>,
    vertices: HashMap<i64, NodeIndex>,
    edges: HashMap<i64, EdgeIndex>,
}

impl Model {
    /// One random change to both.
    fn change(&mut self, session: &mut Session, graph: &mut Graph, chance: &mut Chance) -> Result<()> {
        let (a, b) = (chance.below(VERTICES) as i64, chance.below(VERTICES) as i64);
        let kind = KINDS[chance.below(3) as usize];
        match chance.below(10) {
            0..=2 => {
                let outcome = graph.add_vertex(session, a, &["Thing"]);
                assert_eq!(outcome.is_ok(), !self.vertices.contains_key(&a), "{outcome:?}");
                self.vertices.entry(a).or_insert_with(|| self.graph.add_node(a));
            }
            3..=5 => {
                let ends = (self.vertices.get(&a), self.vertices.get(&b));
                let outcome = graph.add_edge(session, &a.into(), kind, &b.into());
                if let (Some(a), Some(b)) = ends {
                    let id = outcome?;
                    let index = self.graph.add_edge(*a, *b, Held { id, kind, weight: None });
                    assert_eq!(self.edges.insert(id, index), None, "an id used twice");
                } else {
                    assert!(matches!(outcome, Err(Error::NoVertex(_))));
                }
            }
            6 => {
                let edges = if chance.below(2) == 0 { Edges::Refuse } else { Edges::Remove };
                let outcome = graph.delete_vertex(session, &a.into(), edges);
                let Some(index) = self.vertices.get(&a).copied() else {
                    assert!(matches!(outcome, Err(Error::NoVertex(_))));
                    return Ok(());
                };
                if edges == Edges::Refuse && self.graph.neighbors_undirected(index).next().is_some() {
                    assert!(matches!(outcome, Err(Error::HasEdges(_))));
                    return Ok(());
                }
                outcome?;
                self.graph.remove_node(index);
                self.vertices.remove(&a);
                self.edges.retain(|_, edge| self.graph.edge_weight(*edge).is_some());
            }
            7 => {
                if let Some((id, index)) = self.any_edge(chance) {
                    graph.delete_edge(session, id)?;
                    self.graph.remove_edge(index);
                    self.edges.remove(&id);
                }
            }
            _ => {
                if let Some((id, index)) = self.any_edge(chance) {
                    let weight = (chance.below(4) > 0).then_some(a as f64);
                    match weight {
                        Some(weight) => graph.set_edge_property(session, id, "km", weight)?,
                        None => graph.delete_edge_property(session, id, "km")?,
                    }
                    self.graph[index].weight = weight;
                }
            }
        }
        Ok(())
    }

    fn any_edge(&self, chance: &mut Chance) -> Option<(i64, EdgeIndex)> {
        let mut ids: Vec<_> = self.edges.iter().map(|(id, index)| (*id, *index)).collect();
        ids.sort_unstable();
        let count = ids.len() as u64;
        (count > 0).then(|| ids[chance.below(count) as usize])
    }

    /// Both say the same of every vertex.
    fn compare(&self, session: &mut Session, graph: &Graph) -> Result<()> {
        for id in 0..VERTICES as i64 {
            let index = self.vertices.get(&id);
            assert_eq!(graph.has_vertex(session, &id.into())?, index.is_some());
            let Some(index) = index else { continue };
            for (reach, direction, way) in [
                (Reach::out(), Direction::Out, Way::Outgoing),
                (Reach::incoming(), Direction::In, Way::Incoming),
            ] {
                let held = |kind: Option<&str>| {
                    let edges = self.graph.edges_directed(*index, way);
                    let edges = edges.filter(|edge| kind.is_none_or(|kind| kind == edge.weight().kind));
                    let mut edges: Vec<_> = edges
                        .map(|edge| {
                            let (source, target) = (self.graph[edge.source()], self.graph[edge.target()]);
                            (
                                edge.weight().id,
                                source,
                                edge.weight().kind.to_owned(),
                                target,
                                edge.weight().weight,
                            )
                        })
                        .collect();
                    edges.sort_by_key(|edge| edge.0);
                    edges
                };
                for kind in [None, Some(KINDS[0]), Some(KINDS[2])] {
                    let reach = kind.map_or(reach.clone(), |kind| reach.clone().of(kind));
                    let mut edges: Vec<_> = graph
                        .edges(session, &id.into(), &reach)?
                        .into_iter()
                        .map(|edge| {
                            let ends =
                                (edge.source.as_i64().unwrap_or(-1), edge.target.as_i64().unwrap_or(-1));
                            (edge.id, ends.0, edge.kind.to_string(), ends.1, edge.weight)
                        })
                        .collect();
                    edges.sort_by_key(|edge| edge.0);
                    assert_eq!(edges, held(kind));
                    assert_eq!(graph.degree(session, &id.into(), direction, kind)?, edges.len() as u64);
                }
            }
        }
        assert_eq!(graph.vertices_with(session, "Thing")?.len(), self.vertices.len());
        assert_eq!(graph.count_edges(session)?, self.edges.len() as u64);
        Ok(())
    }
}

#[test]
fn random_changes_agree_with_the_model() -> Result<()> {
    let seed = std::env::var("PERILUNE_SEED").ok().and_then(|seed| seed.parse().ok());
    let mut chance = Chance(seed.unwrap_or_else(|| u64::from(std::process::id()) | 1));
    println!("PERILUNE_SEED={}", chance.0);
    let mut session = Database::open("memory:")?.session()?;
    let s = &mut session;
    let options = GraphOptions { weight: Some("km".to_owned()) };
    let mut graph = Graph::create(s, &node!("^g")?, &options)?;
    let mut model = Model::default();
    for step in 0..1_500 {
        if chance.below(8) > 0 {
            model.change(s, &mut graph, &mut chance)?;
        } else {
            // Several changes in one transaction, of which half are taken back.
            let (mut after, is_kept) = (model.clone(), chance.below(2) == 0);
            let outcome = s.transaction(|s| {
                for _ in 0..4 {
                    after.change(s, &mut graph, &mut chance)?;
                }
                if is_kept {
                    Ok(())
                } else {
                    Err(DatabaseError::Rollback)
                }
            });
            assert_eq!(outcome.is_ok(), is_kept);
            if is_kept {
                model = after;
            }
        }
        model.compare(s, &graph)?;
        if step % 50 == 0 {
            assert_eq!(graph.check(s)?.faults, [""; 0]);
        }
    }
    Ok(())
}
