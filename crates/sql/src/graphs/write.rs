//! Changes of graphs by statements: rows of `graph_edges` and `graph_vertices` come, change and go.
//!
//! ```text
//! INSERT INTO graph_edges(graph, source, type, target, properties) VALUES ('^social', 1, 'KNOWS', 2, '{"since": 1999}')
//! UPDATE graph_vertices SET properties = json_set(properties, '$.age', 8) WHERE graph = '^social' AND vertex = 1
//! DELETE FROM graph_edges WHERE graph = '^social' AND source = 1
//! ```
//!
//! SQLite names the row that changes by one key. A graph's rows have none of one column, so there is a hidden one: the text of
//! the graph, a zero byte, and the edge or the vertex.
//!
//! Invariants
//! - A change is a level of the statement's transaction, which is never a one-shot one.
//! - Whoever changes a graph has the right to write its global.
//! - What an edge joins, its type and its number, and the id of a vertex stay as they are.

use perilune::{Session, Value as NodeValue};
use perilune_graph::{Edges, Error as GraphError, Graph, VertexId};
use perilune_sqlite::{Arguments, Change, Conflict};

use super::ask::{error_of, open_graph, shown, vertex_of};
use super::found::Found;
use super::{GraphTable, Kind};
use crate::document::{scalar, Json};
use crate::error::{Error, Result, SqlState};
use crate::terms::Access;
use crate::value::{Value, ValueRef};

/// The key of a row of the graph of this text; none, if such rows do not change.
pub(super) fn key_of(graph: &str, row: &Found) -> Option<Vec<u8>> {
    let mut key = graph.as_bytes().to_vec();
    key.push(0);
    match row {
        Found::Edge(edge, _) => key.extend(edge.id.to_string().into_bytes()),
        Found::Vertex(vertex) => match shown(vertex) {
            ValueRef::Integer(integer) => key.extend(format!("i{integer}").into_bytes()),
            ValueRef::Text(bytes) => {
                key.push(b't');
                key.extend(bytes);
            }
            _ => return None,
        },
        Found::Path(..) => return None,
    }
    Some(key)
}

/// The graph's text and the rest of a key.
fn parts_of(key: ValueRef<'_>) -> Result<(String, Vec<u8>)> {
    let wrong = || Error::new(SqlState::INTERNAL, "a row of a graph has no such key");
    let (ValueRef::Blob(key) | ValueRef::Text(key)) = key else { return Err(wrong()) };
    let end = key.iter().position(|byte| *byte == 0).ok_or_else(wrong)?;
    Ok((String::from_utf8_lossy(&key[..end]).into_owned(), key[end + 1..].to_vec()))
}

fn edge_of(key: &[u8]) -> i64 {
    std::str::from_utf8(key).ok().and_then(|text| text.parse().ok()).unwrap_or(0)
}

fn vertex_of_key(key: &[u8]) -> VertexId {
    match key.split_first() {
        Some((b'i', integer)) => VertexId::from(edge_of(integer)),
        Some((_, bytes)) => VertexId::from(bytes),
        None => VertexId::from(""),
    }
}

/// A row as it is to be.
struct Wanted<'a> {
    table: &'a GraphTable,
    values: Arguments<'a>,
}

impl Wanted<'_> {
    fn get(&self, name: &str) -> Value {
        let at = (0..self.values.len()).find(|at| self.table.shape.column(*at) == Some(name));
        at.map_or(Value::Null, |at| Value::of(self.values.at(at).get()))
    }

    /// The text of a column that must be told.
    fn text(&self, name: &str) -> Result<String> {
        match self.get(name) {
            Value::Text(text) | Value::Blob(text) => Ok(String::from_utf8_lossy(&text).into_owned()),
            _ => Err(self.lacks(name)),
        }
    }

    /// A vertex that must be told.
    fn vertex(&self, name: &str) -> Result<VertexId> {
        vertex_of(&self.get(name)).ok_or_else(|| self.lacks(name))
    }

    fn lacks(&self, name: &str) -> Error {
        let what = format!("{} lacks {name}: name the column, and give it a value", self.table.shape.name);
        Error::new(SqlState::NOT_NULL, what)
    }

    /// The properties; none: they were not told.
    fn properties(&self) -> Result<Vec<(String, NodeValue)>> {
        let members = match Json::of(&self.get("properties"))? {
            None => Vec::new(),
            Some(Json::Map(members)) => members,
            Some(_) => return Err(Error::new(SqlState::DOCUMENT, "properties are a JSON object")),
        };
        let named = |(name, json): (Vec<u8>, Json)| {
            let name = String::from_utf8_lossy(&name).into_owned();
            property(&name, json).map(|value| (name, value))
        };
        members.into_iter().map(named).collect()
    }

    fn labels(&self) -> Result<Vec<String>> {
        let wrong = || Error::new(SqlState::DOCUMENT, "labels are a JSON list of texts, as [\"Person\"]");
        let labels = match Json::of(&self.get("labels")).map_err(|_| wrong())? {
            None => return Ok(Vec::new()),
            Some(Json::List(labels)) => labels,
            Some(_) => return Err(wrong()),
        };
        let label = |json| match json {
            Json::Text(text) => Ok(String::from_utf8_lossy(&text).into_owned()),
            _ => Err(wrong()),
        };
        labels.into_iter().map(label).collect()
    }

    /// The weight, if it is another than this.
    fn weight(&self, graph: &Graph, before: Option<f64>) -> Result<Option<(String, Option<NodeValue>)>> {
        let (value, number) = match self.get("weight") {
            Value::Null => (None, None),
            Value::Integer(integer) => (Some(NodeValue::Int(integer)), Some(integer as f64)),
            Value::Real(real) => (Some(NodeValue::Double(real)), Some(real)),
            _ => return Err(Error::new(SqlState::TYPE, "a weight is a number")),
        };
        if number == before {
            return Ok(None);
        }
        let Some(name) = graph.weight() else {
            let what = "edges of this graph have no weight: make it with one, or set a property";
            return Err(Error::new(SqlState::PARAMETER, what));
        };
        Ok(Some((name.to_owned(), value)))
    }
}

/// A value of JSON as a property.
fn property(name: &str, json: Json) -> Result<NodeValue> {
    Ok(match json {
        Json::Null => NodeValue::Null,
        Json::Bool(truth) => NodeValue::Bool(truth),
        Json::Int(integer) => NodeValue::Int(integer),
        Json::Decimal(decimal) => NodeValue::Decimal(decimal),
        Json::Double(double) => NodeValue::Double(double),
        Json::Text(text) => NodeValue::String(text),
        Json::List(list) if list.is_empty() => NodeValue::EmptyList,
        Json::Map(map) if map.is_empty() => NodeValue::EmptyMap,
        Json::List(_) | Json::Map(_) => {
            let what = format!("the property {name} cannot be a list or an object: make several properties");
            return Err(Error::new(SqlState::TYPE, what));
        }
    })
}

/// What is to be set, and what goes, to make the properties `old` those of `new`. What is shown alike stays as it is.
fn differences(
    old: &[(String, NodeValue)],
    new: Vec<(String, NodeValue)>,
) -> Vec<(String, Option<NodeValue>)> {
    let gone = old.iter().filter(|(name, _)| !new.iter().any(|(other, _)| other == name));
    let mut changes: Vec<_> = gone.map(|(name, _)| (name.clone(), None)).collect();
    let is_there = |name: &str, value: &NodeValue| {
        old.iter().any(|(other, before)| other == name && scalar(before.as_ref()) == scalar(value.as_ref()))
    };
    changes.extend(
        new.into_iter()
            .filter(|(name, value)| !is_there(name, value))
            .map(|(name, value)| (name, Some(value))),
    );
    changes
}

impl GraphTable {
    /// Changes a row; answers the number of an edge that was added.
    pub(super) fn change(
        &self,
        session: &mut Session,
        change: &Change<'_>,
        conflict: Conflict,
    ) -> Result<i64> {
        if session.depth() == 0 {
            return Err(self.stage.host()?.ask_for_whole());
        }
        let mut open = |text: &str| open_graph(&self.stage, session, text, Access::Writes);
        match change {
            Change::Insert(_, values) => {
                let wanted = Wanted { table: self, values: *values };
                let graph = open(&wanted.text("graph")?)?;
                match self.shape.kind {
                    Kind::Edges => add_edge(&graph, session, &wanted),
                    _ => add_vertex(&graph, session, &wanted, conflict).map(|()| 0),
                }
            }
            Change::Update(key, _, values) => {
                let (text, key) = parts_of(key.get())?;
                let wanted = Wanted { table: self, values: *values };
                if wanted.text("graph")? != text {
                    return Err(stays("a row of a graph stays in that"));
                }
                let graph = open(&text)?;
                match self.shape.kind {
                    Kind::Edges => change_edge(&graph, session, edge_of(&key), &wanted),
                    _ => change_vertex(&graph, session, &vertex_of_key(&key), &wanted),
                }
                .map(|()| 0)
            }
            Change::Delete(key) => {
                let (text, key) = parts_of(key.get())?;
                let graph = open(&text)?;
                let done = match self.shape.kind {
                    Kind::Edges => graph.delete_edge(session, edge_of(&key)),
                    _ => graph.delete_vertex(session, &vertex_of_key(&key), Edges::Refuse),
                };
                match done {
                    // NB: a trigger or function of the statement may have been first.
                    Ok(()) | Err(GraphError::NoEdge(_) | GraphError::NoVertex(_)) => Ok(0),
                    Err(error) => Err(refused(error)),
                }
            }
        }
    }
}

fn stays(what: &str) -> Error {
    Error::new(SqlState::REFUSED, format!("{what}: delete it, and insert another"))
}

/// What a graph answers to a change, as SQL does.
fn refused(error: GraphError) -> Error {
    match error {
        GraphError::NoVertex(_) => Error::new(SqlState::FOREIGN_KEY, error.to_string()),
        GraphError::VertexExists(_) => Error::new(SqlState::UNIQUE, error.to_string()),
        GraphError::HasEdges(id) => {
            let what = format!("vertex {id} has edges: delete them from graph_edges first");
            Error::new(SqlState::FOREIGN_KEY, what)
        }
        error => error_of(error),
    }
}

fn add_edge(graph: &Graph, session: &mut Session, wanted: &Wanted<'_>) -> Result<i64> {
    if !wanted.get("edge").is_null() {
        return Err(Error::new(SqlState::REFUSED, "the graph numbers its edges: leave edge out"));
    }
    let (source, target) = (wanted.vertex("source")?, wanted.vertex("target")?);
    let (kind, properties) = (wanted.text("type")?, wanted.properties()?);
    let weight = wanted.weight(graph, None)?;
    // NB: a clone takes its ids in the transaction, which is open.
    let id = graph.clone().add_edge(session, &source, &kind, &target).map_err(refused)?;
    let properties = properties.into_iter().map(|(name, value)| (name, Some(value)));
    set_edge(graph, session, id, properties.chain(weight).collect())?;
    Ok(id)
}

fn set_edge(
    graph: &Graph,
    session: &mut Session,
    id: i64,
    changes: Vec<(String, Option<NodeValue>)>,
) -> Result<()> {
    for (name, value) in changes {
        match value {
            Some(value) => graph.set_edge_property(session, id, &name, value),
            None => graph.delete_edge_property(session, id, &name),
        }
        .map_err(refused)?;
    }
    Ok(())
}

fn change_edge(graph: &Graph, session: &mut Session, id: i64, wanted: &Wanted<'_>) -> Result<()> {
    let edge = graph.edge(session, id).map_err(error_of)?;
    let edge = edge.ok_or_else(|| refused(GraphError::NoEdge(id)))?;
    let is_same = wanted.get("edge") == Value::Integer(id)
        && wanted.vertex("source")? == edge.source
        && wanted.vertex("target")? == edge.target
        && wanted.text("type")? == *edge.kind;
    if !is_same {
        return Err(stays("an edge keeps its number, its type and its ends"));
    }
    let before = graph.edge_properties(session, id).map_err(error_of)?;
    let weight = wanted.weight(graph, edge.weight)?;
    let changes = differences(&before, wanted.properties()?);
    set_edge(graph, session, id, changes.into_iter().chain(weight).collect())
}

fn add_vertex(graph: &Graph, session: &mut Session, wanted: &Wanted<'_>, conflict: Conflict) -> Result<()> {
    let vertex = wanted.vertex("vertex")?;
    if ["label", "property", "value"].iter().any(|name| !wanted.get(name).is_null()) {
        let what = "a vertex is inserted with labels, a JSON list, and properties, a JSON object";
        return Err(Error::new(SqlState::PARAMETER, what));
    }
    if conflict == Conflict::Replace && graph.has_vertex(session, &vertex).map_err(error_of)? {
        return change_vertex(graph, session, &vertex, wanted);
    }
    let labels = wanted.labels()?;
    let labels: Vec<&str> = labels.iter().map(String::as_str).collect();
    let properties = wanted.properties()?;
    graph.add_vertex(session, vertex.clone(), &labels).map_err(refused)?;
    for (name, value) in properties {
        graph.set_property(session, &vertex, &name, value).map_err(refused)?;
    }
    Ok(())
}

fn change_vertex(graph: &Graph, session: &mut Session, id: &VertexId, wanted: &Wanted<'_>) -> Result<()> {
    if wanted.vertex("vertex")? != *id {
        return Err(stays("a vertex keeps its id"));
    }
    let (before, labels) = (graph.labels(session, id).map_err(error_of)?, wanted.labels()?);
    let properties = graph.properties(session, id).map_err(error_of)?;
    let changes = differences(&properties, wanted.properties()?);
    for label in before.iter().filter(|label| !labels.contains(label)) {
        graph.remove_label(session, id, label).map_err(refused)?;
    }
    for (name, value) in changes {
        match value {
            Some(value) => graph.set_property(session, id, &name, value),
            None => graph.delete_property(session, id, &name),
        }
        .map_err(refused)?;
    }
    for label in labels.iter().filter(|label| !before.contains(label)) {
        graph.add_label(session, id, label).map_err(refused)?;
    }
    Ok(())
}
