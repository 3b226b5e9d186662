//! Many edges, or many vertices, in one transaction.
//!
//! Problem: an edge by itself is a transaction of a dozen reads and writes. Idea: of some hundred edges at once each end is
//! looked up once, each degree is changed once, and all nodes are set in key order, so that neighbours share their leaf's way.
//!
//! Example: `graph.add_edges(&mut session, &edges, Missing::Create)` answers the id of the first; those of the others follow.
//!
//! Invariant: what is there afterwards is what `add_vertex`, `add_edge` and `set_edge_property` would have made.

use std::collections::BTreeMap;

use perilune::{Field, Node, Session, Value, ValueRef};

use crate::edges::put;
use crate::graph::{check_id, check_name};
use crate::{Error, Graph, Result, VertexId};

/// An edge that is to be.
#[derive(Clone, Debug, PartialEq)]
pub struct NewEdge {
    /// Where it begins.
    pub source: VertexId,
    /// Its type.
    pub kind: String,
    /// Where it ends.
    pub target: VertexId,
    /// Its properties; of a name given twice the last value counts.
    pub properties: Vec<(String, Value)>,
}

impl NewEdge {
    /// Makes sure that a graph takes it: its type, the names of its properties, the ids of its ends.
    ///
    /// # Errors
    /// `Invalid`.
    pub fn check(&self) -> Result<()> {
        check_name("a type of edges", &self.kind)?;
        [&self.source, &self.target].into_iter().try_for_each(check_id)?;
        self.properties.iter().try_for_each(|(name, _)| check_name("a property", name))
    }
}

/// A vertex that is to be, or what one is to get.
#[derive(Clone, Debug, PartialEq)]
pub struct NewVertex {
    /// Its id.
    pub id: VertexId,
    /// Its labels, or those that it gets.
    pub labels: Vec<String>,
    /// Its properties; of a name given twice the last value counts.
    pub properties: Vec<(String, Value)>,
}

impl NewVertex {
    /// Makes sure that a graph takes it: its id, labels and the names of its properties.
    ///
    /// # Errors
    /// `Invalid`.
    pub fn check(&self) -> Result<()> {
        check_id(&self.id)?;
        self.labels.iter().try_for_each(|label| check_name("a label", label))?;
        self.properties.iter().try_for_each(|(name, _)| check_name("a property", name))
    }
}

/// What is to become of edges whose ends do not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// None of the edges is added.
    Refuse,
    /// The ends are added, without labels.
    Create,
}

impl Graph {
    /// Adds edges with consecutive ids, all or none, and answers the first id; some hundred at a time are enough.
    ///
    /// # Errors
    /// `NoVertex`, if missing ends are refused; `Invalid` for a type, a name or an id; else as [`Session::transaction`].
    pub fn add_edges(&mut self, session: &mut Session, edges: &[NewEdge], missing: Missing) -> Result<i64> {
        edges.iter().try_for_each(NewEdge::check)?;
        let first = self.take_ids(session, edges.len())?;
        let nodes = self.nodes_of(edges, first)?;
        let mut ends: Vec<&VertexId> = edges.iter().flat_map(|edge| [&edge.source, &edge.target]).collect();
        ends.sort_unstable();
        ends.dedup();
        let mut degrees: BTreeMap<(&VertexId, &str, &str), i64> = BTreeMap::new();
        for edge in edges {
            *degrees.entry((&edge.source, "out", &edge.kind)).or_default() += 1;
            *degrees.entry((&edge.target, "in", &edge.kind)).or_default() += 1;
        }
        session.transaction(|session| {
            for end in &ends {
                match self.known_vertex(session, end) {
                    Err(Error::NoVertex(_)) if missing == Missing::Create => {
                        session.set(&self.vertex_node(end)?, true)?;
                    }
                    outcome => drop(outcome?),
                }
            }
            for ((vertex, side, kind), count) in &degrees {
                session.increment(&self.vertex.child(*vertex)?.with(*side)?.with(*kind)?, *count)?;
            }
            for (node, value) in &nodes {
                put(session, node, Some(value))?;
            }
            Ok(())
        })?;
        Ok(first)
    }

    /// Adds vertices, all or none. One that there is gets the labels and properties, and keeps what else it has.
    ///
    /// # Errors
    /// `Invalid` for an id, a label or a name; else as [`Session::transaction`].
    pub fn add_vertices(&self, session: &mut Session, vertices: &[NewVertex]) -> Result<()> {
        vertices.iter().try_for_each(NewVertex::check)?;
        Ok(session.transaction(|session| {
            for vertex in vertices {
                let node = self.vertex_node(&vertex.id)?;
                let is_new = session.get_ref(&node)?.is_none();
                if is_new {
                    session.set(&node, true)?;
                }
                for (name, value) in &vertex.properties {
                    if is_new {
                        // Without a label it is in no index yet.
                        put(session, &node.child("property")?.with(name)?, Some(value))?;
                    } else {
                        self.set_property(session, &vertex.id, name, value)?;
                    }
                }
                for label in &vertex.labels {
                    self.add_label(session, &vertex.id, label)?;
                }
            }
            Ok(())
        })?)
    }

    /// The nodes of edges with ids from `first` on, in key order.
    fn nodes_of(&self, edges: &[NewEdge], first: i64) -> Result<Vec<(Node, Value)>> {
        let mut nodes = Vec::with_capacity(edges.len() * 4);
        for (id, edge) in (first..).zip(edges) {
            let mut fields = Vec::new();
            for field in [edge.source.as_field(), Field::Text(edge.kind.as_bytes()), edge.target.as_field()] {
                field.encode_into(&mut fields);
            }
            let node = self.edge.child(id)?;
            let (out, inward) = self.entries(id, &edge.source, &edge.kind, &edge.target)?;
            let mut weight = ValueRef::Null.to_owned_value();
            for (name, value) in &edge.properties {
                if self.weight.as_deref() == Some(name) {
                    weight = value.clone();
                }
                nodes.push((node.child(name)?, value.clone()));
            }
            nodes.extend([(node, Value::Record(fields)), (out, weight.clone()), (inward, weight)]);
        }
        // NB: a stable order, so that of a property given twice the last value is set last.
        nodes.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(nodes)
    }
}
