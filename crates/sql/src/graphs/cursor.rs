//! A walk over the rows of a table function.
//!
//! Edges and paths come one at a time, so that LIMIT ends the work; what finds its answer only as a whole, a shortest path, holds
//! it.
//!
//! Invariant: `filter` sets all anew, since a cursor comes from a pool with what it last had.

use std::rc::Rc;
use std::time::Instant;

use perilune::{Session, Value as NodeValue};
use perilune_graph::{
    algorithm, EdgeScan, Error as GraphError, Graph, Journey, Path, Reach, Request, VertexId,
};
use perilune_sqlite::{Arguments, Cursor, Failure, Output};

use super::ask::{error_of, limits_until, walk_error, Asked};
use super::found::Found;
use super::write::key_of;
use super::{GraphTable, Kind};
use crate::error::{Error, Result, SqlState};
use crate::stage::Host;
use crate::value::{Value, ValueRef};

/// Where rows come from.
#[derive(Debug, Default)]
enum Source {
    #[default]
    None,
    /// Edges; those of one vertex, which is not the end that is answered.
    Scan(Box<EdgeScan>, Option<VertexId>),
    Walk(Box<Journey>),
    /// The next one last.
    List(Vec<Found>),
}

/// A walk over rows.
#[derive(Debug, Default)]
pub(super) struct GraphCursor {
    asked: Asked,
    graph: Option<Rc<Graph>>,
    source: Source,
    row: Option<Found>,
    number: i64,
    until: Option<Instant>,
}

impl GraphCursor {
    /// One that has not begun.
    pub(super) fn new() -> GraphCursor {
        GraphCursor::default()
    }

    fn begin(&mut self, table: &GraphTable, session: &mut Session) -> Result<()> {
        let host = table.stage.host()?;
        (self.source, self.row, self.number) = (Source::None, None, 0);
        if self.asked.is_null(&["graph", "start", "goal", "vertex", "source", "target", "edge", "type"]) {
            return Ok(());
        }
        let graph = self.asked.graph(&table.stage, session)?;
        self.until = host.until();
        self.source = self.source_of(table.shape.kind, &graph, &host, session)?;
        self.graph = Some(graph);
        if table.stage.writes() {
            self.hold(session)?;
        }
        self.step(session)
    }

    /// Reads all that is left: a statement that writes must not meet its own edges, for ever.
    fn hold(&mut self, session: &mut Session) -> Result<()> {
        let mut rows = Vec::new();
        loop {
            self.step(session)?;
            let Some(row) = self.row.take() else { break };
            rows.push(row);
        }
        rows.reverse();
        (self.source, self.number) = (Source::List(rows), 0);
        Ok(())
    }

    fn source_of(
        &self,
        kind: Kind,
        graph: &Graph,
        host: &Rc<dyn Host>,
        session: &mut Session,
    ) -> Result<Source> {
        let whole = |session: &Session| if session.depth() == 0 { Err(host.ask_for_whole()) } else { Ok(()) };
        let types = ["of_type", "type"];
        match kind {
            Kind::Out => self.edges_at(graph, &self.asked.reach(Reach::out(), &types)),
            Kind::In => self.edges_at(graph, &self.asked.reach(Reach::incoming(), &types)),
            Kind::Neighbours => {
                let request = self.asked.request(Request { reach: Reach::both(), ..Request::default() })?;
                self.edges_at(graph, &request.reach)
            }
            Kind::Walk => {
                whole(session)?;
                self.walk(graph, session)
            }
            Kind::ShortestPath => {
                whole(session)?;
                self.paths(graph, session)
            }
            Kind::Edges => self.edges(graph, session),
            Kind::Vertices => {
                if self.asked.get("property").is_some() {
                    whole(session)?;
                }
                self.vertices(graph, session)
            }
        }
    }

    /// Edges of the vertex that was asked for.
    fn edges_at(&self, graph: &Graph, reach: &Reach) -> Result<Source> {
        let Some(start) = self.asked.vertex("start") else { return Ok(Source::None) };
        let other = self.asked.vertex("vertex");
        let scan = EdgeScan::new(graph, reach, Some(&start), other.as_ref()).map_err(error_of)?;
        Ok(Source::Scan(Box::new(scan), Some(start)))
    }

    /// Edges of the graph: the one of a number, those of a source or of a target, or all.
    fn edges(&self, graph: &Graph, session: &mut Session) -> Result<Source> {
        if let Some(edge) = self.asked.get("edge") {
            let edge = match edge {
                Value::Integer(id) => graph.edge(session, *id).map_err(error_of)?,
                _ => None,
            };
            let found = edge.map(|edge| Found::Edge(edge.clone(), edge.target));
            return Ok(Source::List(found.into_iter().collect()));
        }
        let reach = |reach| self.asked.reach(reach, &["type"]);
        let (source, target) = (self.asked.vertex("source"), self.asked.vertex("target"));
        let scan = match (&source, &target) {
            (None, Some(target)) => EdgeScan::new(graph, &reach(Reach::incoming()), Some(target), None),
            _ => EdgeScan::new(graph, &reach(Reach::out()), source.as_ref(), target.as_ref()),
        };
        Ok(Source::Scan(Box::new(scan.map_err(error_of)?), None))
    }

    fn vertices(&self, graph: &Graph, session: &mut Session) -> Result<Source> {
        let label = self.asked.text("label");
        let found = match (self.asked.vertex("vertex"), label, self.asked.text("property")) {
            (Some(vertex), label, None) => {
                let is_there = graph.has_vertex(session, &vertex).map_err(error_of)?
                    && match label {
                        Some(label) => graph.labels(session, &vertex).map_err(error_of)?.contains(&label),
                        None => true,
                    };
                if is_there {
                    vec![vertex]
                } else {
                    Vec::new()
                }
            }
            (_, Some(label), Some(property)) => {
                let value = self.asked.get("value").map_or(NodeValue::Null, node_value);
                graph.find(session, &label, &property, value).map_err(error_of)?
            }
            (_, Some(label), None) => graph.vertices_with(session, &label).map_err(error_of)?,
            (_, None, Some(_)) => {
                let what = "graph_vertices finds a property of the vertices with a label: tell that, too";
                return Err(Error::new(SqlState::PARAMETER, what));
            }
            (_, None, None) => graph.vertices(session).map_err(error_of)?,
        };
        Ok(Source::List(found.into_iter().rev().map(Found::Vertex).collect()))
    }

    fn walk(&self, graph: &Graph, session: &mut Session) -> Result<Source> {
        let Some(start) = self.asked.vertex("start") else { return Ok(Source::None) };
        let request = self.asked.request(Request::default())?;
        let limits = limits_until(request.limits, self.until);
        let mut view = graph.view(session).map_err(error_of)?;
        match Journey::begin(request.traversal(), limits, &mut view, vec![start]) {
            Ok(journey) => Ok(Source::Walk(Box::new(journey))),
            Err(GraphError::NoVertex(_)) => Ok(Source::None),
            Err(error) => Err(error_of(error)),
        }
    }

    fn paths(&self, graph: &Graph, session: &mut Session) -> Result<Source> {
        let (Some(start), Some(goal)) = (self.asked.vertex("start"), self.asked.vertex("goal")) else {
            return Ok(Source::None);
        };
        let request = self.asked.request(Request::default())?;
        let mut view = graph.view(session).map_err(error_of)?;
        view.limit(limits_until(request.limits, self.until));
        let found = match shortest(&mut view, &start, &goal, &request) {
            Err(GraphError::NoVertex(_)) => Vec::new(),
            found => found.map_err(|error| walk_error(error, self.until))?,
        };
        let numbered = found.iter().zip(1..);
        let mut rows: Vec<Found> = numbered
            .flat_map(|(path, number)| {
                path.beginnings().into_iter().map(move |path| Found::Path(path, number))
            })
            .collect();
        rows.reverse();
        Ok(Source::List(rows))
    }

    /// Steps to the next row.
    fn step(&mut self, session: &mut Session) -> Result<()> {
        self.number += 1;
        self.row = match &mut self.source {
            Source::None => None,
            Source::List(rows) => rows.pop(),
            Source::Scan(scan, start) => scan.next(session).map_err(error_of)?.map(|edge| {
                let end = match start {
                    Some(start) => edge.other(start).clone(),
                    None => edge.target.clone(),
                };
                Found::Edge(edge, end)
            }),
            Source::Walk(journey) => {
                let Some(graph) = &self.graph else { return Ok(()) };
                let mut view = graph.view(session).map_err(error_of)?;
                let path = journey.next(&mut view).map_err(|error| walk_error(error, self.until))?;
                path.map(|path| Found::Path(path, 1))
            }
        };
        Ok(())
    }
}

/// The shortest path, or as many as the request counts: by edges, or, if it says what they cost, the cheapest.
fn shortest(
    view: &mut perilune_graph::View<'_>,
    start: &VertexId,
    goal: &VertexId,
    request: &Request,
) -> perilune_graph::Result<Vec<Path>> {
    let reach = &request.reach;
    match (request.by_weight, request.count) {
        (Some(true), Some(count)) => {
            algorithm::cheapest_paths(view, start, goal, reach, &mut request.path_cost(), count)
        }
        (Some(true), None) => {
            let path =
                algorithm::cheapest_path_both_ways(view, start, goal, reach, &mut request.path_cost())?;
            Ok(path.into_iter().collect())
        }
        (_, Some(count)) => algorithm::all_shortest_paths(view, start, goal, reach, count),
        (_, None) => Ok(algorithm::shortest_path(view, start, goal, reach)?.into_iter().collect()),
    }
}

/// A value of SQL as a property.
fn node_value(value: &Value) -> NodeValue {
    match value {
        Value::Null => NodeValue::Null,
        Value::Integer(integer) => NodeValue::Int(*integer),
        Value::Real(real) => NodeValue::Double(*real),
        Value::Text(bytes) | Value::Blob(bytes) => NodeValue::String(bytes.clone()),
    }
}

impl Cursor<Session> for GraphCursor {
    type Table = GraphTable;

    fn filter(
        &mut self,
        table: &GraphTable,
        session: &mut Session,
        _number: i32,
        text: &str,
        arguments: Arguments<'_>,
    ) -> std::result::Result<(), Failure> {
        self.asked = Asked::new(text, arguments);
        self.begin(table, session).map_err(|error| table.stage.fail(error))
    }

    fn next(&mut self, table: &GraphTable, session: &mut Session) -> std::result::Result<(), Failure> {
        self.step(session).map_err(|error| table.stage.fail(error))
    }

    fn is_at_end(&self) -> bool {
        self.row.is_none()
    }

    fn column(
        &mut self,
        table: &GraphTable,
        session: &mut Session,
        column: usize,
        output: &mut Output<'_>,
    ) -> std::result::Result<(), Failure> {
        let Some(name) = table.shape.column(column) else {
            let graph = self.asked.text("graph").unwrap_or_default();
            if let Some(key) = self.row.as_ref().and_then(|row| key_of(&graph, row)) {
                output.set(ValueRef::Blob(&key));
            }
            return Ok(());
        };
        if column >= table.shape.columns.len() {
            output.set(self.asked.get(name).map_or(ValueRef::Null, Value::as_ref));
            return Ok(());
        }
        let (Some(row), Some(graph)) = (&self.row, &self.graph) else { return Ok(()) };
        row.column(graph, session, name, output).map_err(|error| table.stage.fail(error))
    }

    fn rowid(&mut self, _table: &GraphTable) -> std::result::Result<i64, Failure> {
        Ok(self.number)
    }
}
