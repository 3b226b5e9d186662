//! Many edges, or many vertices, in one transaction.
//!
//! Problem: an edge by itself is a transaction of a dozen reads and writes. Idea: of some hundred edges at once each end is
//! looked up at most once, each degree is changed once, and all nodes are set in key order, so that neighbours share their leaf's
//! way.
//!
//! Example: `graph.add_edges(&mut session, &edges, Missing::Create)` answers the id of the first; those of the others follow.
//!
//! Invariant: what is there afterwards is what `add_vertex`, `add_edge` and `set_edge_property` would have made.

use std::collections::BTreeMap;

use perilune::{Field, Node, NodeRef, Session, Value, ValueRef};

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
        let mut degrees: BTreeMap<(&VertexId, &str, &str), i64> = BTreeMap::new();
        for edge in edges {
            *degrees.entry((&edge.source, "out", &edge.kind)).or_default() += 1;
            *degrees.entry((&edge.target, "in", &edge.kind)).or_default() += 1;
        }
        let local = self.root().is_local();
        session.transaction(|session| {
            self.count_all(session, &degrees, missing)?;
            for (key, value) in nodes.in_order() {
                session.set(NodeRef::from_encoded(key, local), value)?;
            }
            Ok(())
        })?;
        Ok(first)
    }

    /// Adds to the degrees of vertices, which are made if they are missing and that is asked for.
    fn count_all(
        &self,
        session: &mut Session,
        degrees: &BTreeMap<(&VertexId, &str, &str), i64>,
        missing: Missing,
    ) -> Result<()> {
        let mut node = self.vertex.clone();
        let all = node.mark();
        let mut known: Option<&VertexId> = None;
        for ((vertex, side, kind), count) in degrees {
            node.truncate(all);
            node.push(*vertex)?;
            node.push(*side)?;
            node.push(*kind)?;
            let degree = session.increment(&node, *count)?;
            // A vertex that had such edges is there.
            if known == Some(*vertex) || degree.as_i64().is_some_and(|degree| degree > *count) {
                known = Some(*vertex);
                continue;
            }
            match self.known_vertex(session, vertex) {
                Err(Error::NoVertex(_)) if missing == Missing::Create => {
                    session.set(&self.vertex_node(vertex)?, true)?;
                }
                outcome => drop(outcome?),
            }
            known = Some(*vertex);
        }
        Ok(())
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
    fn nodes_of<'e>(&self, edges: &'e [NewEdge], first: i64) -> Result<Nodes<'e>> {
        let mut nodes = Nodes::default();
        let mut places = [self.edge.clone(), self.out.clone(), self.inward.clone()];
        let ends = [places[0].mark(), places[1].mark(), places[2].mark()];
        for (id, edge) in (first..).zip(edges) {
            for (place, end) in places.iter_mut().zip(ends) {
                place.truncate(end);
            }
            let [node, out, inward] = &mut places;
            node.push(id)?;
            for (entry, near, far) in
                [(&mut *out, &edge.source, &edge.target), (&mut *inward, &edge.target, &edge.source)]
            {
                entry.push(near)?;
                entry.push(&edge.kind[..])?;
                entry.push(far)?;
                entry.push(id)?;
            }
            let from = nodes.bytes.len();
            for field in [edge.source.as_field(), Field::Text(edge.kind.as_bytes()), edge.target.as_field()] {
                field.encode_into(&mut nodes.bytes);
            }
            nodes.add(node, What::Record(from, nodes.bytes.len()));
            let (mut weight, itself) = (&Value::Null, node.mark());
            for (name, value) in &edge.properties {
                if self.weight.as_deref() == Some(name) {
                    weight = value;
                }
                node.push(&name[..])?;
                nodes.add(node, What::Value(value));
                node.truncate(itself);
            }
            nodes.add(out, What::Value(weight));
            nodes.add(inward, What::Value(weight));
        }
        // NB: a stable order, so that of a property given twice the last value is set last.
        let Nodes { bytes, all } = &mut nodes;
        all.sort_by(|a, b| bytes[a.0..a.1].cmp(&bytes[b.0..b.1]));
        Ok(nodes)
    }
}

/// Nodes that are to be set. Keys and records lie in one text, since a million edges are some million keys.
#[derive(Default)]
struct Nodes<'e> {
    bytes: Vec<u8>,
    /// From where to where a key lies, and its value.
    all: Vec<(usize, usize, What<'e>)>,
}

/// What a node is set to: a record that lies among the keys, or a value.
enum What<'e> {
    Record(usize, usize),
    Value(&'e Value),
}

impl<'e> Nodes<'e> {
    fn add(&mut self, node: &Node, what: What<'e>) {
        let from = self.bytes.len();
        self.bytes.extend_from_slice(node.encoded());
        self.all.push((from, self.bytes.len(), what));
    }

    fn in_order(&self) -> impl Iterator<Item = (&[u8], ValueRef<'_>)> {
        self.all.iter().map(|(from, to, what)| {
            let value = match what {
                What::Record(from, to) => ValueRef::Record(&self.bytes[*from..*to]),
                What::Value(value) => value.as_ref(),
            };
            (&self.bytes[*from..*to], value)
        })
    }
}
