//! Copies of nodes, within a document and between two of one database, and whether two nodes say the same.
//!
//! Invariant: a copy is a node that stands nowhere, whole by itself; what was copied is as it was.

use std::collections::HashMap;

use perilune::Session;

use crate::{Dom, DomError, DomNode, NodeKind, Record, Result};

impl Dom {
    /// Copies `node` with its attributes, and all below it if `deep`. The copy stands nowhere. An `id` is not copied,
    /// because it names one element.
    ///
    /// # Errors
    /// `Hierarchy` for a document; `NotFound`; the database's.
    pub fn clone_node(&self, session: &mut Session, node: DomNode, deep: bool) -> Result<DomNode> {
        self.copy(session, self, node, deep, false)
    }

    /// Copies `node` of the document `from`, which may lie anywhere in the same database, into this one. The copy stands
    /// nowhere. An `id` comes along.
    ///
    /// # Errors
    /// As [`Dom::clone_node`]; `IdExists` if an element here has one of the ids.
    pub fn import_node(
        &self,
        session: &mut Session,
        from: &Dom,
        node: DomNode,
        deep: bool,
    ) -> Result<DomNode> {
        self.copy(session, from, node, deep, true)
    }

    /// Takes `node` from where it stands, out of the document `from` into this one with all below it; it stands nowhere
    /// then. Within one document it keeps its number.
    ///
    /// # Errors
    /// As [`Dom::import_node`]; `Hierarchy` for an attribute of another document.
    pub fn adopt_node(&self, session: &mut Session, from: &Dom, node: DomNode) -> Result<DomNode> {
        self.atomically(session, |session| {
            let record = from.record(session, node)?;
            if from.root() == self.root() {
                match (record.kind, record.parent) {
                    (NodeKind::Document, _) => return Err(DomError::Hierarchy("a document is not adopted")),
                    (NodeKind::Attribute, Some(element)) => {
                        self.remove_attribute_node(session, element, node)?;
                    }
                    (_, Some(parent)) => self.remove_child(session, parent, node)?,
                    (_, None) => {}
                }
                return Ok(node);
            }
            let new = self.import_node(session, from, node, true)?;
            match (record.kind, record.parent) {
                (NodeKind::Attribute, Some(element)) => {
                    from.remove_attribute(session, element, &record.name)?;
                }
                _ => from.delete(session, node)?,
            }
            Ok(new)
        })
    }

    fn copy(
        &self,
        session: &mut Session,
        from: &Dom,
        node: DomNode,
        deep: bool,
        with_ids: bool,
    ) -> Result<DomNode> {
        self.atomically(session, |session| {
            let record = from.record(session, node)?;
            if record.kind == NodeKind::Document {
                return Err(DomError::Hierarchy("a document is not copied: copy its element"));
            }
            let sources = if deep { from.descendants(session, node)? } else { vec![(node, record)] };
            let mut copies = HashMap::new();
            for (source, record) in &sources {
                let mut new = Record::new(record.kind, &record.name, &record.value);
                (new.public_id, new.system_id) = (record.public_id.clone(), record.system_id.clone());
                let copy = self.create(session, &new)?;
                copies.insert(*source, copy);
                for (name, attribute) in record.attributes.iter().filter(|(name, _)| with_ids || name != "id")
                {
                    let value = from.record(session, *attribute)?.value;
                    self.set_attribute(session, copy, name, &value)?;
                }
                if let Some(parent) = record.parent.filter(|_| *source != node).and_then(|p| copies.get(&p)) {
                    self.append_child(session, *parent, copy)?;
                }
            }
            Ok(copies[&node])
        })
    }

    /// Whether two nodes are written alike: kinds, names, values, attributes and all below them.
    ///
    /// # Errors
    /// As [`Dom::record`].
    pub fn is_equal_node(&self, session: &mut Session, one: DomNode, other: DomNode) -> Result<bool> {
        self.at_one_moment(session, |session| {
            let (ones, others) = (self.descendants(session, one)?, self.descendants(session, other)?);
            if ones.len() != others.len() {
                return Ok(false);
            }
            for ((at, a), (beside, b)) in ones.iter().zip(&others) {
                // In document order, who has children and who is followed tells the shape.
                let last =
                    |node: &DomNode, top, record: &Record| *node == top || record.next_sibling.is_none();
                if (a.kind, &a.name, &a.value, &a.public_id, &a.system_id)
                    != (b.kind, &b.name, &b.value, &b.public_id, &b.system_id)
                    || a.first_child.is_some() != b.first_child.is_some()
                    || last(at, one, a) != last(beside, other, b)
                    || self.values_of(session, a)? != self.values_of(session, b)?
                {
                    return Ok(false);
                }
            }
            Ok(true)
        })
    }

    /// The attributes of an element with their values, by name.
    ///
    /// # Errors
    /// As [`Dom::record`].
    pub fn get_attributes(&self, session: &mut Session, element: DomNode) -> Result<Vec<(String, String)>> {
        let record = self.record(session, element)?;
        self.values_of(session, &record)
    }

    fn values_of(&self, session: &mut Session, element: &Record) -> Result<Vec<(String, String)>> {
        let value = |(name, node): &(String, DomNode)| Ok((name.clone(), self.record(session, *node)?.value));
        element.attributes.iter().map(value).collect()
    }
}
