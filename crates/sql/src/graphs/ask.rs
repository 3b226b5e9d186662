//! What a table function is asked: its arguments, as SQL has them, and what they mean for a graph.
//!
//! Example: `graph_out('^g', 7)` has `graph` and `start`; a WHERE on `type` adds that.
//!
//! Invariant: NULL is no vertex and no graph, so that a join with it has no rows; as a type or as options it asks for nothing.

use std::rc::Rc;
use std::time::Instant;

use perilune::{Node, Session};
use perilune_graph::{Error as GraphError, Graph, Limits, Reach, Request, VertexId};
use perilune_sqlite::Arguments;

use crate::error::{Error, Result, SqlState};
use crate::stage::Stage;
use crate::terms::Access;
use crate::value::{real_text, Value, ValueRef};

/// Arguments by name.
#[derive(Debug, Default)]
pub(super) struct Asked(Vec<(String, Value)>);

impl Asked {
    /// The arguments that a plan has named.
    pub(super) fn new(names: &str, arguments: Arguments<'_>) -> Asked {
        let named = names.split(',').filter(|name| !name.is_empty()).enumerate();
        Asked(named.map(|(at, name)| (name.to_owned(), Value::of(arguments.at(at).get()))).collect())
    }

    /// An argument, if it was told.
    pub(super) fn get(&self, name: &str) -> Option<&Value> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    /// The text of an argument; none: it was not told, or is NULL.
    pub(super) fn text(&self, name: &str) -> Option<String> {
        match self.get(name)? {
            Value::Null => None,
            Value::Integer(integer) => Some(integer.to_string()),
            Value::Real(real) => Some(real_text(*real)),
            Value::Text(text) | Value::Blob(text) => Some(String::from_utf8_lossy(text).into_owned()),
        }
    }

    /// Whether one of these is told, and is NULL.
    pub(super) fn is_null(&self, names: &[&str]) -> bool {
        names.iter().any(|name| self.get(name).is_some_and(Value::is_null))
    }

    /// The vertex that an argument names.
    pub(super) fn vertex(&self, name: &str) -> Option<VertexId> {
        vertex_of(self.get(name)?)
    }

    /// Which edges are meant: of the type that the first of these names tells that is told. SQLite compares the others.
    pub(super) fn reach(&self, reach: Reach, names: &[&str]) -> Reach {
        match names.iter().find_map(|name| self.text(name)) {
            Some(kind) => reach.of(&kind),
            None => reach,
        }
    }

    /// The options, over what is asked for if they do not say.
    pub(super) fn request(&self, request: Request) -> Result<Request> {
        request.with_options(&self.text("options").unwrap_or_default()).map_err(error_of)
    }

    /// The graph, which the statement's user may read.
    pub(super) fn graph(&self, stage: &Stage, session: &mut Session) -> Result<Rc<Graph>> {
        match self.get("graph") {
            Some(Value::Text(text)) => match std::str::from_utf8(text) {
                Ok(text) => open_graph(stage, session, text, Access::Reads),
                Err(_) => open_graph(stage, session, &String::from_utf8_lossy(text), Access::Reads),
            },
            _ => open_graph(stage, session, &self.text("graph").unwrap_or_default(), Access::Reads),
        }
    }
}

/// The graph of this name, with which the statement's user may do this. A statement opens it once.
pub(super) fn open_graph(
    stage: &Stage,
    session: &mut Session,
    text: &str,
    access: Access,
) -> Result<Rc<Graph>> {
    if let Some(graph) = stage.graph(text, access) {
        return Ok(graph);
    }
    let node = Node::parse(text).map_err(|error| {
        let what = format!("a graph is named by its node, as ^g or ^g(1), not {text}: {error}");
        Error::new(SqlState::PARAMETER, what)
    })?;
    stage.host()?.may(&global_of(&node)?, access)?;
    let graph = Rc::new(Graph::open(session, &node).map_err(error_of)?);
    stage.keep_graph(text, access, &graph);
    Ok(graph)
}

/// The name of a graph's global without `^`, by which rights are asked for.
///
/// # Errors
/// `REFUSED`.
pub(crate) fn global_of(node: &Node) -> Result<String> {
    let name = node.name();
    let global = name.trim_start_matches('^');
    // NB: what begins so is SQLite's in the eyes of those who ask about rights.
    if node.is_local() || global.starts_with("sqlite_") || global.starts_with("pragma_") {
        let what =
            format!("SQL reads graphs that lie in the database, and {node} does not, or is not for it");
        return Err(Error::new(SqlState::REFUSED, what));
    }
    Ok(global.to_owned())
}

/// The vertex that a value names.
pub(super) fn vertex_of(value: &Value) -> Option<VertexId> {
    Some(match value {
        Value::Null => return None,
        Value::Integer(integer) => VertexId::from(*integer),
        Value::Real(real) if real.fract() == 0.0 && real.abs() < 9e15 => VertexId::from(*real as i64),
        Value::Real(real) => VertexId::from(real_text(*real).as_str()),
        Value::Text(bytes) | Value::Blob(bytes) => VertexId::from(&bytes[..]),
    })
}

/// A vertex as a value of SQL.
pub(super) fn shown(vertex: &VertexId) -> ValueRef<'_> {
    match (vertex.as_i64(), vertex.as_bytes()) {
        (Some(integer), _) => ValueRef::Integer(integer),
        (None, bytes) => ValueRef::Text(bytes.unwrap_or_default()),
    }
}

/// The limits of a walk, none of which goes beyond the statement's end.
pub(super) fn limits_until(limits: Limits, until: Option<Instant>) -> Limits {
    let left = until.map(|until| until.saturating_duration_since(Instant::now()));
    Limits { time: left.map_or(limits.time, |left| left.min(limits.time)), ..limits }
}

/// What SQL answers when a walk has come to an end too early.
pub(super) fn walk_error(error: GraphError, until: Option<Instant>) -> Error {
    let is_time = matches!(error, GraphError::Limit { what: "milliseconds", .. });
    if is_time && until.is_some_and(|until| Instant::now() >= until) {
        let what = "the statement took longer than it may: ask for less of it at a time";
        return Error::new(SqlState::CANCELLED, what);
    }
    error_of(error)
}

/// What a graph answers, as SQL does.
pub(super) fn error_of(error: GraphError) -> Error {
    let state = match &error {
        GraphError::Database(_) => return Error::from(perilune::Error::from(error)),
        GraphError::NotAGraph(_) => SqlState::NO_TABLE,
        GraphError::Limit { .. } => SqlState::LIMIT,
        GraphError::Cost(_) => SqlState::RANGE,
        GraphError::Invalid(_) | GraphError::NoVertex(_) => SqlState::PARAMETER,
        _ => SqlState::INTERNAL,
    };
    Error::new(state, error.to_string())
}
