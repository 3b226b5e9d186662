//! Questions by name, answered as rows: what C, and languages over it, ask of a graph.
//!
//! ```
//! # let mut session = perilune::Database::open("memory:")?.session()?;
//! use perilune::{node, Value};
//! use perilune_graph::{Graph, GraphOptions, Request};
//!
//! let graph = Graph::create(&mut session, &node!("^g")?, &GraphOptions::default())?;
//! graph.add_vertex(&mut session, "ada", &["Person"])?;
//! let table = graph.read(&mut session, |view| view.ask("vertices", &[Value::String("Person".into())], &Request::default()))?;
//! assert_eq!(table.rows, [[Value::String("ada".into())]]);
//! # Ok::<(), perilune_graph::Error>(())
//! ```
//!
//! Invariant: all of an answer is one state, the view's.

use perilune::Value;

use crate::algorithm;
use crate::{Edge, Error, Path, Reach, Request, Result, VertexId, View};

/// Rows of an answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// The names of the columns.
    pub columns: &'static [&'static str],
    /// As many values each as there are columns.
    pub rows: Vec<Vec<Value>>,
}

/// The names of all questions, for who has asked another one.
const QUESTIONS: &str = "vertices, find, labels, properties, edges, edge, edge_properties, count, shortest_path, shortest_paths, \
    cheapest_path, cheapest_paths, components, page_rank, betweenness, triangles, cycle, topological_order, check";

const EDGE: &[&str] = &["edge", "source", "type", "target", "weight"];
const STEP: &[&str] = &["path", "depth", "vertex", "cost", "edge", "source", "type", "target", "weight"];
const PROPERTY: &[&str] = &["name", "value"];

impl View<'_> {
    /// Answers a question. Which there are, with their arguments and columns: `docs/reference/graph.md`.
    ///
    /// # Errors
    /// `Invalid` for a question that there is not, and for its arguments; else as what is asked for.
    pub fn ask(&mut self, question: &str, arguments: &[Value], request: &Request) -> Result<Table> {
        self.limit(request.limits);
        let at = |index: usize| {
            let missing =
                || Error::invalid(format!("{question} has {} arguments, which are too few", arguments.len()));
            arguments.get(index).ok_or_else(missing)
        };
        let vertex = |index: usize| VertexId::try_from(at(index)?);
        match question {
            "vertices" | "find" | "labels" | "properties" => {
                self.ask_vertices(question, arguments, &vertex, request.limits.vertices)
            }
            "edges" | "edge" | "edge_properties" | "count" | "check" => {
                self.ask_edges(question, arguments, request)
            }
            "shortest_path" | "shortest_paths" | "cheapest_path" | "cheapest_paths" => {
                let (from, to) = (vertex(0)?, vertex(1)?);
                let paths = self.ask_paths(question, &from, &to, request)?;
                Ok(Table {
                    columns: STEP,
                    rows: paths.iter().zip(1..).flat_map(|(path, number)| steps(path, number)).collect(),
                })
            }
            _ => self.ask_whole(question, arguments, &request.reach),
        }
    }

    fn ask_vertices(
        &mut self,
        question: &str,
        arguments: &[Value],
        vertex: &dyn Fn(usize) -> Result<VertexId>,
        most: u64,
    ) -> Result<Table> {
        let (graph, session) = self.parts();
        let found = match (question, arguments) {
            ("labels", _) => {
                let labels = graph.labels(session, &vertex(0)?)?;
                let rows = labels.into_iter().map(|label| vec![text(&label)]).collect();
                return Ok(Table { columns: &["label"], rows });
            }
            ("properties", _) => {
                let properties = graph.properties(session, &vertex(0)?)?;
                return Ok(Table { columns: PROPERTY, rows: named(properties) });
            }
            ("vertices", []) => graph.vertices_within(session, None, most)?,
            ("vertices", [label]) => graph.vertices_within(session, Some(&name(label)?), most)?,
            ("find", [label, property, value]) => {
                graph.find_within(session, &name(label)?, &name(property)?, value.clone(), most)?
            }
            _ => {
                return Err(Error::invalid(format!("{question} does not take {} arguments", arguments.len())))
            }
        };
        Ok(Table { columns: &["vertex"], rows: found.iter().map(|vertex| vec![vertex.to_value()]).collect() })
    }

    fn ask_edges(&mut self, question: &str, arguments: &[Value], request: &Request) -> Result<Table> {
        let id = || match arguments {
            [Value::Int(id)] => Ok(*id),
            _ => Err(Error::invalid(format!("{question} takes the number of an edge"))),
        };
        let mut edges = Vec::new();
        match (question, arguments) {
            ("edge", _) => {
                let (graph, session) = self.parts();
                edges.extend(graph.edge(session, id()?)?);
            }
            ("edge_properties", _) => {
                let (graph, session) = self.parts();
                return Ok(Table { columns: PROPERTY, rows: named(graph.edge_properties(session, id()?)?) });
            }
            ("edges", []) => self.each_edge(&request.reach, &mut |edge| edges.push(edge))?,
            ("edges", [vertex]) => {
                let vertex = VertexId::try_from(vertex)?;
                edges = self.edges(&vertex, &request.reach)?;
            }
            ("count", []) => {
                let (graph, session) = self.parts();
                let counts = [graph.count_vertices(session)?, graph.count_edges(session)?];
                return Ok(Table {
                    columns: &["vertices", "edges"],
                    rows: vec![counts.map(number).to_vec()],
                });
            }
            ("check", []) => return self.ask_check(),
            _ => {
                return Err(Error::invalid(format!("{question} does not take {} arguments", arguments.len())))
            }
        }
        Ok(Table { columns: EDGE, rows: edges.iter().map(edge_row).collect() })
    }

    /// One row, or one for each fault.
    fn ask_check(&mut self) -> Result<Table> {
        let (graph, session) = self.parts();
        let report = graph.check(session)?;
        let row = |fault: Value| vec![number(report.vertices), number(report.edges), fault];
        let mut rows: Vec<Vec<Value>> = report.faults.iter().map(|fault| row(text(fault))).collect();
        if rows.is_empty() {
            rows.push(row(Value::Null));
        }
        Ok(Table { columns: &["vertices", "edges", "fault"], rows })
    }

    fn ask_paths(
        &mut self,
        question: &str,
        from: &VertexId,
        to: &VertexId,
        request: &Request,
    ) -> Result<Vec<Path>> {
        let (reach, count) = (&request.reach, request.count.unwrap_or(usize::MAX));
        Ok(match question {
            "shortest_path" => algorithm::shortest_path(self, from, to, reach)?.into_iter().collect(),
            "shortest_paths" => algorithm::all_shortest_paths(self, from, to, reach, count)?,
            "cheapest_path" => {
                let path =
                    algorithm::cheapest_path_both_ways(self, from, to, reach, &mut request.path_cost())?;
                path.into_iter().collect()
            }
            _ if request.count.is_none() => {
                return Err(Error::invalid("cheapest_paths needs the option count: how many"));
            }
            _ => algorithm::cheapest_paths(self, from, to, reach, &mut request.path_cost(), count)?,
        })
    }

    /// What only the whole graph can say.
    fn ask_whole(&mut self, question: &str, arguments: &[Value], reach: &Reach) -> Result<Table> {
        let double = |index: usize, default: f64| match arguments.get(index) {
            None => Ok(default),
            Some(Value::Double(double)) => Ok(*double),
            Some(Value::Int(int)) => Ok(*int as f64),
            Some(Value::Decimal(decimal)) => Ok(f64::from(*decimal)),
            Some(_) => Err(Error::invalid(format!("{question} takes numbers"))),
        };
        let ids = |found: Vec<VertexId>| Table {
            columns: &["vertex"],
            rows: found.iter().map(|vertex| vec![vertex.to_value()]).collect(),
        };
        let scored = |columns, found: Vec<(VertexId, f64)>| Table {
            columns,
            rows: found
                .iter()
                .map(|(vertex, score)| vec![vertex.to_value(), Value::Double(*score)])
                .collect(),
        };
        Ok(match question {
            "components" => {
                let found = algorithm::components(self, reach)?;
                let numbered = (1_u64..).zip(&found);
                let rows = numbered
                    .flat_map(|(at, members)| {
                        members.iter().map(move |vertex| vec![vertex.to_value(), number(at)])
                    })
                    .collect();
                Table { columns: &["vertex", "component"], rows }
            }
            "page_rank" => {
                let rounds = double(1, 20.0)?.clamp(0.0, 1e6) as usize;
                scored(&["vertex", "rank"], algorithm::page_rank(self, reach, double(0, 0.85)?, rounds)?)
            }
            "betweenness" => scored(&["vertex", "betweenness"], algorithm::betweenness(self, reach)?),
            "triangles" => {
                let count = algorithm::count_triangles(self, reach)?;
                Table { columns: &["triangles"], rows: vec![vec![number(count)]] }
            }
            "cycle" => ids(algorithm::find_cycle(self, reach)?.unwrap_or_default()),
            "topological_order" => {
                let order = algorithm::topological_order(self, reach)?;
                ids(order.ok_or_else(|| {
                    Error::invalid("the graph has a cycle, and so no order: ask for `cycle`")
                })?)
            }
            _ => {
                return Err(Error::invalid(format!(
                    "there is no question {question}: ask for one of {QUESTIONS}"
                )))
            }
        })
    }
}

impl VertexId {
    /// The id as a value: an integer, or a string.
    #[must_use]
    pub fn to_value(&self) -> Value {
        match (self.as_i64(), self.as_bytes()) {
            (Some(int), _) => Value::Int(int),
            (None, bytes) => Value::String(bytes.unwrap_or_default().to_vec()),
        }
    }
}

impl TryFrom<&Value> for VertexId {
    type Error = Error;

    fn try_from(value: &Value) -> Result<VertexId> {
        Ok(match value {
            Value::Int(int) => VertexId::from(*int),
            Value::String(bytes) => VertexId::from(&bytes[..]),
            Value::Double(double) if double.fract() == 0.0 && double.abs() < 9e15 => {
                VertexId::from(*double as i64)
            }
            Value::Decimal(_) => VertexId::from(value.as_ref().to_string().as_str()),
            _ => return Err(Error::invalid("an id of a vertex is an integer or a string")),
        })
    }
}

fn text(text: &str) -> Value {
    Value::String(text.as_bytes().to_vec())
}

fn number(number: u64) -> Value {
    Value::Int(i64::try_from(number).unwrap_or(i64::MAX))
}

fn name(value: &Value) -> Result<String> {
    match value {
        Value::String(bytes) => Ok(String::from_utf8_lossy(bytes).into_owned()),
        Value::Int(int) => Ok(int.to_string()),
        _ => Err(Error::invalid("a label, a type or the name of a property is a string")),
    }
}

fn named(properties: Vec<(String, Value)>) -> Vec<Vec<Value>> {
    properties.into_iter().map(|(name, value)| vec![text(&name), value]).collect()
}

fn edge_row(edge: &Edge) -> Vec<Value> {
    let weight = edge.weight.map_or(Value::Null, Value::Double);
    vec![Value::Int(edge.id), edge.source.to_value(), text(&edge.kind), edge.target.to_value(), weight]
}

/// A row for each vertex of a path.
fn steps(path: &Path, at: u64) -> Vec<Vec<Value>> {
    let row = |path: Path| {
        let mut row =
            vec![number(at), number(path.length() as u64), path.end().to_value(), Value::Double(path.cost())];
        match path.last_edge() {
            Some(edge) => row.extend(edge_row(edge)),
            None => row.resize(STEP.len(), Value::Null),
        }
        row
    };
    path.beginnings().into_iter().map(row).collect()
}
