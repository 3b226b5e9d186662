//! Edges: made, read, changed, deleted.
//!
//! Example: `graph.add_edge(&mut session, &"ada".into(), "KNOWS", &"ben".into())` answers the new edge's id. Between two
//! vertices there may be any number of edges of one type; ids tell them apart.
//!
//! Invariant: `^g("edge",id)` names source, type and target of an edge, and for each there is one entry below each end.

use std::sync::Arc;

use perilune::{Cursor, Field, IntoValue, Node, Record, Session, Value, ValueRef};

use crate::edge::weight_of;
use crate::graph::check_name;
use crate::{Direction, Edge, Error, Graph, Result, VertexId};

impl Graph {
    /// Adds an edge of type `kind` and answers its id.
    ///
    /// # Errors
    /// `NoVertex` for an end that does not exist; `Invalid` for the type; else as [`Session::transaction`].
    pub fn add_edge(
        &mut self,
        session: &mut Session,
        source: &VertexId,
        kind: &str,
        target: &VertexId,
    ) -> Result<i64> {
        check_name("a type of edges", kind)?;
        let id = self.take_id(session)?;
        Ok(session.transaction(|session| {
            self.known_vertex(session, source)?;
            self.known_vertex(session, target)?;
            let (out, inward) = self.entries(id, source, kind, target)?;
            let mut fields = Vec::new();
            for field in [source.as_field(), Field::Text(kind.as_bytes()), target.as_field()] {
                field.encode_into(&mut fields);
            }
            session.set(&self.edge.child(id)?, ValueRef::Record(&fields))?;
            session.set(&out, ())?;
            session.set(&inward, ())?;
            self.count(session, source, kind, target, 1)?;
            Ok(id)
        })?)
    }

    /// The edge with this id, if there is one.
    ///
    /// # Errors
    /// The database's; `Damaged`.
    pub fn edge(&self, session: &mut Session, id: i64) -> Result<Option<Edge>> {
        let node = self.edge.child(id)?;
        let ends = match session.get_ref(&node)? {
            None => return Ok(None),
            Some(value) => Ends::read(&value)?,
        };
        let weight = match &self.weight {
            None => None,
            Some(name) => session.get_ref(&node.child(name)?)?.and_then(|value| weight_of(&value)),
        };
        Ok(Some(Edge { id, source: ends.source, kind: ends.kind, target: ends.target, weight }))
    }

    /// Deletes an edge with its properties.
    ///
    /// # Errors
    /// `NoEdge`; else as [`Session::transaction`].
    pub fn delete_edge(&self, session: &mut Session, id: i64) -> Result<()> {
        Ok(session.transaction(|session| {
            let edge = self.edge(session, id)?.ok_or(Error::NoEdge(id))?;
            let (out, inward) = self.entries(id, &edge.source, &edge.kind, &edge.target)?;
            session.delete_tree(&self.edge.child(id)?)?;
            session.delete_value(&out)?;
            session.delete_value(&inward)?;
            Ok(self.count(session, &edge.source, &edge.kind, &edge.target, -1)?)
        })?)
    }

    /// A property of an edge, if it has that.
    ///
    /// # Errors
    /// The database's.
    pub fn edge_property(&self, session: &mut Session, id: i64, name: &str) -> Result<Option<Value>> {
        check_name("a property", name)?;
        Ok(session.get(&self.edge.child(id)?.with(name)?)?)
    }

    /// All properties of an edge, by name.
    ///
    /// # Errors
    /// The database's.
    pub fn edge_properties(&self, session: &mut Session, id: i64) -> Result<Vec<(String, Value)>> {
        properties_below(session, &self.edge.child(id)?)
    }

    /// Sets a property of an edge.
    ///
    /// # Errors
    /// `NoEdge`; `Invalid` for the name; else as [`Session::transaction`].
    pub fn set_edge_property(
        &self,
        session: &mut Session,
        id: i64,
        name: &str,
        value: impl IntoValue,
    ) -> Result<()> {
        self.change_edge_property(session, id, name, Some(&owned(value)?))
    }

    /// Deletes a property of an edge, if it has that.
    ///
    /// # Errors
    /// As [`Graph::set_edge_property`].
    pub fn delete_edge_property(&self, session: &mut Session, id: i64, name: &str) -> Result<()> {
        self.change_edge_property(session, id, name, None)
    }

    fn change_edge_property(
        &self,
        session: &mut Session,
        id: i64,
        name: &str,
        value: Option<&Value>,
    ) -> Result<()> {
        check_name("a property", name)?;
        Ok(session.transaction(|session| {
            let edge = self.edge(session, id)?.ok_or(Error::NoEdge(id))?;
            put(session, &self.edge.child(id)?.with(name)?, value)?;
            if self.weight.as_deref() == Some(name) {
                let (out, inward) = self.entries(id, &edge.source, &edge.kind, &edge.target)?;
                let weight = value.unwrap_or(&Value::Null);
                session.set(&out, weight)?;
                session.set(&inward, weight)?;
            }
            Ok(())
        })?)
    }

    /// How many edges a vertex has, as counted when they were added and deleted; nothing is walked. Of both directions a loop
    /// counts twice.
    ///
    /// # Errors
    /// The database's.
    pub fn degree(
        &self,
        session: &mut Session,
        vertex: &VertexId,
        direction: Direction,
        kind: Option<&str>,
    ) -> Result<u64> {
        let mut degree = 0;
        for (is_asked, name) in [(direction.goes_out(), "out"), (direction.goes_in(), "in")] {
            if !is_asked {
                continue;
            }
            let place = self.vertex.child(vertex)?.with(name)?;
            match kind {
                Some(kind) => degree += session.get_int(&place.with(kind)?)?.unwrap_or(0),
                None => {
                    let mut cursor = Cursor::children(&place);
                    while cursor.next(session)? {
                        degree += cursor.integer_value().unwrap_or(0);
                    }
                }
            }
        }
        u64::try_from(degree).map_err(|_| Error::Damaged(format!("vertex {vertex} has a degree of {degree}")))
    }

    /// The entries of an edge below its source and below its target.
    pub(crate) fn entries(
        &self,
        id: i64,
        source: &VertexId,
        kind: &str,
        target: &VertexId,
    ) -> Result<(Node, Node)> {
        let out = self.out.child(source)?.with(kind)?.with(target)?.with(id)?;
        Ok((out, self.inward.child(target)?.with(kind)?.with(source)?.with(id)?))
    }

    /// Adds to the degrees of both ends.
    fn count(
        &self,
        session: &mut Session,
        source: &VertexId,
        kind: &str,
        target: &VertexId,
        by: i64,
    ) -> Result<()> {
        for (vertex, side) in [(source, "out"), (target, "in")] {
            let degree = self.vertex.child(vertex)?.with(side)?.with(kind)?;
            if session.increment(&degree, by)?.is_zero() {
                session.delete_value(&degree)?;
            }
        }
        Ok(())
    }
}

/// What the node of an edge holds.
pub(crate) struct Ends {
    pub(crate) source: VertexId,
    pub(crate) kind: Arc<str>,
    pub(crate) target: VertexId,
}

impl Ends {
    pub(crate) fn read(value: &ValueRef<'_>) -> Result<Ends> {
        let ValueRef::Record(fields) = value else {
            return Err(Error::Damaged("an edge is no record".to_owned()));
        };
        let mut record = Record::new(fields);
        let mut next = || record.next_field().map_err(perilune::Error::from);
        let (source, kind, target) = (next()?, next()?, next()?);
        match (VertexId::from_field(source), kind, VertexId::from_field(target)) {
            (Some(source), Field::Text(kind), Some(target)) => {
                Ok(Ends { source, kind: String::from_utf8_lossy(kind).as_ref().into(), target })
            }
            _ => Err(Error::Damaged("an edge has no type or no end".to_owned())),
        }
    }
}

/// A value as it will be read, so that a transaction can write it more than once.
pub(crate) fn owned(value: impl IntoValue) -> Result<Value> {
    let mut encoded = Vec::new();
    value.encode_to(&mut encoded)?;
    Ok(ValueRef::decode(&encoded).map_err(perilune::Error::from)?.to_owned_value())
}

/// Sets the value of a node, or deletes it.
pub(crate) fn put(session: &mut Session, node: &Node, value: Option<&Value>) -> Result<()> {
    match value {
        Some(value) => session.set(node, value)?,
        None => {
            session.delete_value(node)?;
        }
    }
    Ok(())
}

/// The children of a node that have values, as properties.
pub(crate) fn properties_below(session: &mut Session, node: &Node) -> Result<Vec<(String, Value)>> {
    let mut properties = Vec::new();
    let mut cursor = Cursor::children(node);
    while cursor.next(session)? {
        if let Some(value) = cursor.value()? {
            let name = String::from_utf8_lossy(&cursor.subscript()?.to_text()).into_owned();
            properties.push((name, value.to_owned_value()));
        }
    }
    Ok(properties)
}
