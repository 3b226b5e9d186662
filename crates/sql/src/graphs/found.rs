//! A row of a table function, and its columns.
//!
//! Invariant: what takes work, a path's text or properties, is made only for who asks for it.

use perilune::Session;
use perilune_graph::{Edge, Graph, Path, VertexId};
use perilune_sqlite::Output;

use super::ask::{error_of, shown};
use crate::document::{scalar, Json};
use crate::error::Result;
use crate::value::ValueRef;

/// A row.
#[derive(Debug)]
pub(super) enum Found {
    /// An edge, and that of its ends that was asked for by the other.
    Edge(Edge, VertexId),
    /// A path, and in which of several it lies.
    Path(Path, i64),
    Vertex(VertexId),
}

impl Found {
    /// Answers a column by its name.
    pub(super) fn column(
        &self,
        graph: &Graph,
        session: &mut Session,
        name: &str,
        output: &mut Output<'_>,
    ) -> Result<()> {
        match self {
            Found::Edge(edge, vertex) => edge_column(edge, vertex, graph, session, name, output),
            Found::Path(path, number) => {
                path_column(path, *number, name, output);
                Ok(())
            }
            Found::Vertex(vertex) => vertex_column(vertex, graph, session, name, output),
        }
    }
}

fn edge_column(
    edge: &Edge,
    vertex: &VertexId,
    graph: &Graph,
    session: &mut Session,
    name: &str,
    output: &mut Output<'_>,
) -> Result<()> {
    match name {
        "vertex" => output.set(shown(vertex)),
        "edge" => output.set(ValueRef::Integer(edge.id)),
        "type" => output.set(ValueRef::Text(edge.kind.as_bytes())),
        "source" => output.set(shown(&edge.source)),
        "target" => output.set(shown(&edge.target)),
        "weight" => output.set(edge.weight.map_or(ValueRef::Null, ValueRef::Real)),
        "properties" => {
            let properties = graph.edge_properties(session, edge.id).map_err(error_of)?;
            output.set(ValueRef::Text(&map(&properties)));
        }
        _ => {}
    }
    Ok(())
}

fn path_column(path: &Path, number: i64, name: &str, output: &mut Output<'_>) {
    match name {
        "vertex" => output.set(shown(path.end())),
        "edge" => output.set(path.last_edge().map_or(ValueRef::Null, |edge| ValueRef::Integer(edge.id))),
        "type" => {
            let kind = path.last_edge().map(|edge| edge.kind.as_bytes());
            output.set(kind.map_or(ValueRef::Null, ValueRef::Text));
        }
        "depth" => output.set(ValueRef::Integer(path.length() as i64)),
        "cost" => output.set(ValueRef::Real(path.cost())),
        "path" => output.set(ValueRef::Text(path.to_string().as_bytes())),
        "number" => output.set(ValueRef::Integer(number)),
        "vertices" => {
            let vertices = path.vertices().into_iter().map(|vertex| match shown(vertex) {
                ValueRef::Integer(integer) => Json::Int(integer),
                ValueRef::Text(bytes) => Json::Text(bytes.to_vec()),
                _ => Json::Null,
            });
            output.set(ValueRef::Text(&Json::List(vertices.collect()).to_text()));
        }
        "edges" => {
            let edges = path.edges().into_iter().map(|edge| Json::Int(edge.id));
            output.set(ValueRef::Text(&Json::List(edges.collect()).to_text()));
        }
        _ => {}
    }
}

fn vertex_column(
    vertex: &VertexId,
    graph: &Graph,
    session: &mut Session,
    name: &str,
    output: &mut Output<'_>,
) -> Result<()> {
    match name {
        "vertex" => output.set(shown(vertex)),
        "labels" => {
            let labels = graph.labels(session, vertex).map_err(error_of)?;
            let labels = labels.into_iter().map(|label| Json::Text(label.into_bytes()));
            output.set(ValueRef::Text(&Json::List(labels.collect()).to_text()));
        }
        "properties" => {
            let properties = graph.properties(session, vertex).map_err(error_of)?;
            output.set(ValueRef::Text(&map(&properties)));
        }
        _ => {}
    }
    Ok(())
}

/// Properties as the text of a JSON object.
fn map(properties: &[(String, perilune::Value)]) -> Vec<u8> {
    let members = properties.iter().map(|(name, value)| (name.clone().into_bytes(), scalar(value.as_ref())));
    Json::Map(members.collect()).to_text()
}
