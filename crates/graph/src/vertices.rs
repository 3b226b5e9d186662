//! Vertices: made, labelled, given properties, deleted.
//!
//! Example: `graph.add_vertex(&mut session, 7, &["Person"])`, then `graph.set_property(&mut session, &7.into(), "name", "Ada")`.
//!
//! Invariant: `^g("label",label,vertex)` is there if and only if `^g("vertex",vertex,"label",label)` is.

use perilune::{Cursor, IntoValue, Node, Session, Value};

use crate::edge::text_of;
use crate::edges::{owned, properties_below, put};
use crate::graph::check_name;
use crate::{Error, Graph, Reach, Result, VertexId};

/// What is to become of the edges of a vertex that is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edges {
    /// A vertex with edges is not deleted.
    Refuse,
    /// They are deleted with it.
    Remove,
}

impl Graph {
    /// Adds a vertex with this id and labels, and answers the id.
    ///
    /// # Errors
    /// `VertexExists`; `Invalid` for an id or a label; else as [`Session::transaction`].
    pub fn add_vertex(
        &self,
        session: &mut Session,
        id: impl Into<VertexId>,
        labels: &[&str],
    ) -> Result<VertexId> {
        let id = id.into();
        let node = self.vertex_node(&id)?;
        session.transaction(|session| {
            if session.get_ref(&node)?.is_some() {
                return Err(Error::VertexExists(id.clone()).into());
            }
            session.set(&node, true)?;
            for label in labels {
                self.add_label(session, &id, label)?;
            }
            Ok(())
        })?;
        Ok(id)
    }

    /// Whether there is a vertex with this id.
    ///
    /// # Errors
    /// The database's.
    pub fn has_vertex(&self, session: &mut Session, id: &VertexId) -> Result<bool> {
        Ok(session.get_ref(&self.vertex_node(id)?)?.is_some())
    }

    /// Deletes a vertex with labels and properties, and with its edges or not at all.
    ///
    /// # Errors
    /// `NoVertex`; `HasEdges`; else as [`Session::transaction`].
    pub fn delete_vertex(&self, session: &mut Session, id: &VertexId, edges: Edges) -> Result<()> {
        Ok(session.transaction(|session| {
            let node = self.known_vertex(session, id)?;
            let attached = self.edges(session, id, &Reach::both())?;
            if edges == Edges::Refuse && !attached.is_empty() {
                return Err(Error::HasEdges(id.clone()).into());
            }
            for edge in attached {
                self.delete_edge(session, edge.id)?;
            }
            for label in self.labels(session, id)? {
                self.remove_label(session, id, &label)?;
            }
            session.delete_tree(&node)
        })?)
    }

    /// The labels of a vertex, in order.
    ///
    /// # Errors
    /// The database's.
    pub fn labels(&self, session: &mut Session, id: &VertexId) -> Result<Vec<String>> {
        names_below(session, &self.vertex_node(id)?.with("label")?)
    }

    /// Gives a vertex a label, if it has not got that.
    ///
    /// # Errors
    /// `NoVertex`; `Invalid` for the label; else as [`Session::transaction`].
    pub fn add_label(&self, session: &mut Session, id: &VertexId, label: &str) -> Result<()> {
        check_name("a label", label)?;
        Ok(session.transaction(|session| {
            let node = self.known_vertex(session, id)?;
            session.set(&node.with("label")?.with(label)?, ())?;
            session.set(&self.label.child(label)?.with(id)?, ())?;
            for (name, value) in self.properties(session, id)? {
                self.index_property(session, id, &[label], &name, None, Some(&value))?;
            }
            Ok(())
        })?)
    }

    /// Takes a label from a vertex, if it has that.
    ///
    /// # Errors
    /// As [`Graph::add_label`].
    pub fn remove_label(&self, session: &mut Session, id: &VertexId, label: &str) -> Result<()> {
        check_name("a label", label)?;
        Ok(session.transaction(|session| {
            let node = self.known_vertex(session, id)?;
            session.delete_value(&node.with("label")?.with(label)?)?;
            session.delete_value(&self.label.child(label)?.with(id)?)?;
            for (name, value) in self.properties(session, id)? {
                self.index_property(session, id, &[label], &name, Some(&value), None)?;
            }
            Ok(())
        })?)
    }

    /// A property of a vertex, if it has that.
    ///
    /// # Errors
    /// The database's.
    pub fn property(&self, session: &mut Session, id: &VertexId, name: &str) -> Result<Option<Value>> {
        check_name("a property", name)?;
        Ok(session.get(&self.vertex_node(id)?.with("property")?.with(name)?)?)
    }

    /// A property of a vertex as it is shown to people, without quotes; `None` if it has none of that name, or no text.
    ///
    /// # Errors
    /// The database's.
    pub fn property_text(&self, session: &mut Session, id: &VertexId, name: &str) -> Result<Option<String>> {
        let value = self.property(session, id, name)?;
        Ok(value.map(|value| text_of(&value)).filter(|text| !text.is_empty()))
    }

    /// All properties of a vertex, by name.
    ///
    /// # Errors
    /// The database's.
    pub fn properties(&self, session: &mut Session, id: &VertexId) -> Result<Vec<(String, Value)>> {
        properties_below(session, &self.vertex_node(id)?.with("property")?)
    }

    /// Sets a property of a vertex.
    ///
    /// # Errors
    /// `NoVertex`; `Invalid` for the name; else as [`Session::transaction`].
    pub fn set_property(
        &self,
        session: &mut Session,
        id: &VertexId,
        name: &str,
        value: impl IntoValue,
    ) -> Result<()> {
        self.change_property(session, id, name, Some(&owned(value)?))
    }

    /// Deletes a property of a vertex, if it has that.
    ///
    /// # Errors
    /// As [`Graph::set_property`].
    pub fn delete_property(&self, session: &mut Session, id: &VertexId, name: &str) -> Result<()> {
        self.change_property(session, id, name, None)
    }

    fn change_property(
        &self,
        session: &mut Session,
        id: &VertexId,
        name: &str,
        value: Option<&Value>,
    ) -> Result<()> {
        check_name("a property", name)?;
        Ok(session.transaction(|session| {
            let node = self.known_vertex(session, id)?.with("property")?.with(name)?;
            let before = session.get(&node)?;
            put(session, &node, value)?;
            let labels = self.labels(session, id)?;
            let labels: Vec<&str> = labels.iter().map(String::as_str).collect();
            Ok(self.index_property(session, id, &labels, name, before.as_ref(), value)?)
        })?)
    }
}

/// The last subscripts of the children of a node, as text.
pub(crate) fn names_below(session: &mut Session, node: &Node) -> Result<Vec<String>> {
    let mut names = Vec::new();
    let mut cursor = Cursor::children(node).without_values();
    while cursor.next(session)? {
        names.push(String::from_utf8_lossy(&cursor.subscript()?.to_text()).into_owned());
    }
    Ok(names)
}
