//! Vertices, edges, properties and questions: what is done with a graph for a script.
//!
//! Invariant: a vertex or an edge comes with all that it is told to have, or not at all.

use perilune::{Session, Value as NodeValue};
use perilune_graph::{Direction, Edges, Error, Graph};

use super::told::{tell, tell_table, Given};
use super::{failure, Asked};
use crate::nodes::Result;
use crate::sandbox::Values;

/// What changes a graph: all of it or nothing.
pub(super) fn change(
    graph: &mut Graph,
    session: &mut Session,
    asked: Asked,
    given: &Given<'_>,
    values: &mut Values<'_>,
) -> Result<()> {
    match asked {
        Asked::AddVertex => {
            let (id, count) = (given.vertex(1)?, given.number(2)?);
            let labels = (3..3 + count).map(|at| given.text(at)).collect::<Result<Vec<String>>>()?;
            let labels: Vec<&str> = labels.iter().map(String::as_str).collect();
            let properties = given.properties(3 + count)?;
            whole(session, |session| {
                graph.add_vertex(session, &id, &labels)?;
                properties.iter().try_for_each(|(name, value)| graph.set_property(session, &id, name, value))
            })
        }
        Asked::DeleteVertex => {
            let edges = if given.truth(2) { Edges::Remove } else { Edges::Refuse };
            graph.delete_vertex(session, &given.vertex(1)?, edges).map_err(failure)
        }
        Asked::SetLabel => {
            let (id, label) = (given.vertex(1)?, given.text(2)?);
            match given.truth(3) {
                true => graph.add_label(session, &id, &label),
                false => graph.remove_label(session, &id, &label),
            }
            .map_err(failure)
        }
        Asked::SetIndex => {
            let (label, property) = (given.text(1)?, given.text(2)?);
            match given.truth(3) {
                true => graph.add_index(session, &label, &property),
                false => graph.drop_index(session, &label, &property),
            }
            .map_err(failure)
        }
        Asked::Set => set(graph, session, given),
        Asked::AddEdge => {
            let (source, kind, target) = (given.vertex(1)?, given.text(2)?, given.vertex(3)?);
            let properties = given.properties(4)?;
            let mut added = 0;
            whole(session, |session| {
                added = graph.add_edge(session, &source, &kind, &target)?;
                properties
                    .iter()
                    .try_for_each(|(name, value)| graph.set_edge_property(session, added, name, value))
            })?;
            values.integer(added);
            Ok(())
        }
        _ => graph.delete_edge(session, given.edge(1)?).map_err(failure),
    }
}

/// Sets a property of a vertex or an edge, or deletes it.
fn set(graph: &Graph, session: &mut Session, given: &Given<'_>) -> Result<()> {
    let (name, value) = (given.text(3)?, given.value(4));
    if given.truth(1) {
        let edge = given.edge(2)?;
        return match value {
            Some(value) => graph.set_edge_property(session, edge, &name, &value),
            None => graph.delete_edge_property(session, edge, &name),
        }
        .map_err(failure);
    }
    let id = given.vertex(2)?;
    match value {
        Some(value) => graph.set_property(session, &id, &name, &value),
        None => graph.delete_property(session, &id, &name),
    }
    .map_err(failure)
}

/// Runs `body` as a level of the transaction.
fn whole(
    session: &mut Session,
    mut body: impl FnMut(&mut Session) -> perilune_graph::Result<()>,
) -> Result<()> {
    let outcome = session.transaction(|session| body(session).map_err(perilune::Error::from));
    outcome.map_err(|error| failure(Error::from(error)))
}

/// What only reads a graph.
pub(super) fn look(
    graph: &Graph,
    session: &mut Session,
    asked: Asked,
    given: &Given<'_>,
    values: &mut Values<'_>,
) -> Result<()> {
    match asked {
        Asked::HasVertex => {
            let there = graph.has_vertex(session, &given.vertex(1)?).map_err(failure)?;
            values.truth(there);
        }
        Asked::Get => {
            let name = given.text(3)?;
            let value = match given.truth(1) {
                true => graph.edge_property(session, given.edge(2)?, &name),
                false => graph.property(session, &given.vertex(2)?, &name),
            };
            match value.map_err(failure)? {
                Some(value) => tell(&value, values),
                None => values.nothing(),
            }
        }
        Asked::Degree => {
            let direction = match given.number(2)? {
                0 => Direction::Out,
                1 => Direction::In,
                _ => Direction::Both,
            };
            let kind = given.optional_text(3)?;
            let degree = graph.degree(session, &given.vertex(1)?, direction, kind.as_deref());
            values.integer(degree.map_err(failure)? as i64);
        }
        _ => {
            let (question, request) = (given.text(1)?, given.request(2)?);
            let arguments: Vec<NodeValue> =
                (3..given.count()).map(|at| given.value(at).unwrap_or(NodeValue::Null)).collect();
            let mut view = graph.view(session).map_err(failure)?;
            let table = view.ask(&question, &arguments, &request).map_err(failure)?;
            tell_table(&table, values);
        }
    }
    Ok(())
}
