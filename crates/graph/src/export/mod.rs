//! Export of a view: as DOT for Graphviz, as GraphML, as JSON.
//!
//! Example: `export::dot(&mut view, &mut std::io::stdout().lock())`.
//!
//! Invariants
//! - What is written is one state, vertices in the order of ids, then edges by source.
//! - One vertex with its edges is in memory at a time, beside the ids of all vertices.

mod dot;
mod graphml;
mod json;

use perilune::Value;

pub use self::dot::dot;
pub use self::graphml::graphml;
pub use self::json::json;
pub(crate) use crate::edge::text_of;
use crate::{Edge, Reach, Result, VertexId, View};

/// A vertex with all that it has.
struct Whole {
    id: VertexId,
    labels: Vec<String>,
    properties: Vec<(String, Value)>,
}

/// Shows every vertex.
fn each_vertex(view: &mut View<'_>, visit: &mut dyn FnMut(Whole) -> Result<()>) -> Result<()> {
    view.begin(&[])?;
    let (graph, session) = view.parts();
    for id in graph.vertices(session)? {
        let labels = graph.labels(session, &id)?;
        let properties = graph.properties(session, &id)?;
        visit(Whole { id, labels, properties })?;
    }
    Ok(())
}

/// Shows every edge with its properties.
fn each_edge(
    view: &mut View<'_>,
    visit: &mut dyn FnMut(Edge, Vec<(String, Value)>) -> Result<()>,
) -> Result<()> {
    let (graph, session) = view.parts();
    for id in graph.vertices(session)? {
        for edge in view.edges(&id, &Reach::out())? {
            let (graph, session) = view.parts();
            let properties = graph.edge_properties(session, edge.id)?;
            visit(edge, properties)?;
        }
    }
    Ok(())
}
