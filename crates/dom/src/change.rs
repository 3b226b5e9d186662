//! What changes a document: links of nodes, their values.
//!
//! Invariant: before and after each call every link has its counterpart and every index its entries.

use perilune::Session;

use crate::create::check_value;
use crate::layout::{DOCUMENT_ELEMENT, DOCUMENT_TYPE};
use crate::record::has_value;
use crate::{Dom, DomError, DomNode, NodeKind, Record, Result};

impl Dom {
    /// Sets or removes a link.
    fn link(&self, session: &mut Session, node: DomNode, field: &str, to: Option<DomNode>) -> Result<()> {
        let place = self.field(node, field)?;
        match to {
            Some(to) => session.set(&place, to.0)?,
            None => {
                session.delete_value(&place)?;
            }
        }
        Ok(())
    }

    /// Makes `new` the last child of `parent`; if it stands elsewhere, it moves.
    ///
    /// # Errors
    /// `Hierarchy` if a node of its kind cannot be there or `parent` is below it; `NotFound`; the database's.
    pub fn append_child(&self, session: &mut Session, parent: DomNode, new: DomNode) -> Result<()> {
        self.insert_before(session, parent, new, None)
    }

    /// Inserts `new` among the children of `parent` before `before`, or at the end.
    ///
    /// # Errors
    /// As [`Dom::append_child`]; `NotFound` if `before` is no child of `parent`.
    pub fn insert_before(
        &self,
        session: &mut Session,
        parent: DomNode,
        new: DomNode,
        before: Option<DomNode>,
    ) -> Result<()> {
        self.atomically(session, |session| {
            if before == Some(new) {
                return match self.record(session, new)?.parent {
                    Some(p) if p == parent => Ok(()),
                    _ => Err(DomError::NotFound(new)),
                };
            }
            self.check_place(session, parent, new, before)?;
            self.detach(session, new)?;
            let kind = self.record(session, new)?.kind;
            let previous = match before {
                Some(before) => {
                    let record = self.record(session, before)?;
                    if record.parent != Some(parent) || record.kind == NodeKind::Attribute {
                        return Err(DomError::NotFound(before));
                    }
                    self.link(session, before, "previousSibling", Some(new))?;
                    record.previous_sibling
                }
                None => {
                    let last = self.record(session, parent)?.last_child;
                    self.link(session, parent, "lastChild", Some(new))?;
                    last
                }
            };
            match previous {
                Some(previous) => self.link(session, previous, "nextSibling", Some(new))?,
                None => self.link(session, parent, "firstChild", Some(new))?,
            }
            self.link(session, new, "previousSibling", previous)?;
            self.link(session, new, "nextSibling", before)?;
            self.link(session, new, "parent", Some(parent))?;
            if self.document_node(session)? == Some(parent) {
                self.point_at(session, kind, Some(new))?;
            }
            Ok(())
        })
    }

    /// Keeps the document's pointers to its element and type.
    fn point_at(&self, session: &mut Session, kind: NodeKind, node: Option<DomNode>) -> Result<()> {
        let name = match kind {
            NodeKind::Element => DOCUMENT_ELEMENT,
            NodeKind::DocumentType => DOCUMENT_TYPE,
            _ => return Ok(()),
        };
        match node {
            Some(node) => session.set(&self.pointer(name)?, node.0)?,
            None => {
                session.delete_value(&self.pointer(name)?)?;
            }
        }
        Ok(())
    }

    /// Whether `new` may become a child of `parent` before `before`.
    fn check_place(
        &self,
        session: &mut Session,
        parent: DomNode,
        new: DomNode,
        before: Option<DomNode>,
    ) -> Result<()> {
        use NodeKind::{Attribute, CData, Document, DocumentType, Element, Text};
        let kind = self.record(session, new)?.kind;
        let above = self.record(session, parent)?.kind;
        match (above, kind) {
            (_, Attribute) => {
                return Err(DomError::Hierarchy("an attribute is no child: set it on an element"))
            }
            (_, Document) => return Err(DomError::Hierarchy("a document is no child: insert its element")),
            (Document, Text | CData) => {
                return Err(DomError::Hierarchy("text stands inside the outermost element only"));
            }
            (Element, DocumentType) => {
                return Err(DomError::Hierarchy("a document type is a child of a document"))
            }
            (Element, _) => {}
            (Document, Element | DocumentType) => self.check_top(session, parent, new, before)?,
            (Document, _) => {}
            _ => return Err(DomError::Hierarchy("only a document and elements have children")),
        }
        let mut above = Some(parent);
        while let Some(node) = above {
            if node == new {
                return Err(DomError::Hierarchy("a node cannot be below itself"));
            }
            above = self.record(session, node)?.parent;
        }
        Ok(())
    }

    /// A document has one element and one type, the type before the element.
    fn check_top(
        &self,
        session: &mut Session,
        document: DomNode,
        new: DomNode,
        before: Option<DomNode>,
    ) -> Result<()> {
        let kind = self.record(session, new)?.kind;
        let mut behind = false;
        for child in self.children(session, document)? {
            behind |= before == Some(child);
            let other = self.record(session, child)?.kind;
            if child == new || !matches!(other, NodeKind::Element | NodeKind::DocumentType) {
                continue;
            }
            if other == kind {
                return Err(DomError::Hierarchy(
                    "a document has one outermost element and one document type",
                ));
            }
            if behind != (other == NodeKind::Element) {
                return Err(DomError::Hierarchy("a document type stands before the outermost element"));
            }
        }
        Ok(())
    }

    /// Takes `node` from its parent, if it has one.
    fn detach(&self, session: &mut Session, node: DomNode) -> Result<()> {
        let record = self.record(session, node)?;
        let Some(parent) = record.parent else { return Ok(()) };
        match record.previous_sibling {
            Some(previous) => self.link(session, previous, "nextSibling", record.next_sibling)?,
            None => self.link(session, parent, "firstChild", record.next_sibling)?,
        }
        match record.next_sibling {
            Some(next) => self.link(session, next, "previousSibling", record.previous_sibling)?,
            None => self.link(session, parent, "lastChild", record.previous_sibling)?,
        }
        for field in ["parent", "previousSibling", "nextSibling"] {
            self.link(session, node, field, None)?;
        }
        if self.document_node(session)? == Some(parent) {
            self.point_at(session, record.kind, None)?;
        }
        Ok(())
    }

    /// Takes `child` from `parent`. It stays stored, to be inserted again; [`Dom::delete`] removes it for good.
    ///
    /// # Errors
    /// `NotFound` if it is no child of `parent`; the database's.
    pub fn remove_child(&self, session: &mut Session, parent: DomNode, child: DomNode) -> Result<()> {
        self.atomically(session, |session| {
            let record = self.record(session, child)?;
            if record.parent != Some(parent) || record.kind == NodeKind::Attribute {
                return Err(DomError::NotFound(child));
            }
            self.detach(session, child)
        })
    }

    /// Puts `new` where `old` is among the children of `parent`, and takes `old` from there.
    ///
    /// # Errors
    /// As [`Dom::insert_before`] and [`Dom::remove_child`].
    pub fn replace_child(
        &self,
        session: &mut Session,
        parent: DomNode,
        new: DomNode,
        old: DomNode,
    ) -> Result<()> {
        self.atomically(session, |session| {
            if new == old {
                return self.insert_before(session, parent, new, Some(old));
            }
            let behind = self.record(session, old)?.next_sibling;
            let behind = match behind {
                Some(next) if next == new => self.record(session, new)?.next_sibling,
                other => other,
            };
            self.remove_child(session, parent, old)?;
            self.insert_before(session, parent, new, behind)
        })
    }

    /// Puts `new` between `parent` and its children: they become `new`'s, behind those that it has.
    ///
    /// # Errors
    /// As [`Dom::insert_before`].
    pub fn insert_before_children(&self, session: &mut Session, parent: DomNode, new: DomNode) -> Result<()> {
        self.atomically(session, |session| {
            self.append_child(session, parent, new)?;
            for child in self.children(session, parent)?.into_iter().filter(|&child| child != new) {
                self.append_child(session, new, child)?;
            }
            Ok(())
        })
    }

    /// Takes `node` from its parent and leaves its children in its place.
    ///
    /// # Errors
    /// `NotFound` if it has no parent; `Hierarchy` if its children cannot stand there; the database's.
    pub fn remove_as_parent(&self, session: &mut Session, node: DomNode) -> Result<()> {
        self.atomically(session, |session| {
            let record = self.record(session, node)?;
            let parent = record.parent.filter(|_| record.kind != NodeKind::Attribute);
            let parent = parent.ok_or(DomError::NotFound(node))?;
            let behind = record.next_sibling;
            self.remove_child(session, parent, node)?;
            for child in self.children(session, node)? {
                self.insert_before(session, parent, child, behind)?;
            }
            Ok(())
        })
    }

    /// Removes `node` with all below it and their entries in all indices; an attribute if it belongs to no element.
    ///
    /// # Errors
    /// `Hierarchy` for the document itself ([`Dom::remove_document`]) and for attributes of elements; `NotFound`; the
    /// database's.
    pub fn delete(&self, session: &mut Session, node: DomNode) -> Result<()> {
        self.atomically(session, |session| {
            let record = self.record(session, node)?;
            match record.kind {
                NodeKind::Document => return Err(DomError::Hierarchy("use remove_document for all of it")),
                NodeKind::Attribute if record.parent.is_some() => {
                    return Err(DomError::Hierarchy("use remove_attribute for an attribute"))
                }
                NodeKind::Attribute => {}
                _ => self.detach(session, node)?,
            }
            for (node, record) in self.descendants(session, node)? {
                for (name, attribute) in &record.attributes {
                    self.erase_attribute(session, node, name, *attribute)?;
                }
                self.unindex(session, node, record.kind, &record.name)?;
                session.delete_tree(&self.node(node)?)?;
            }
            Ok(())
        })
    }

    /// Sets the value of a text, CDATA section, comment, instruction or attribute.
    ///
    /// # Errors
    /// `Hierarchy` for other nodes; `InvalidCharacter`; `IdExists`; the database's.
    pub fn set_value(&self, session: &mut Session, node: DomNode, value: &str) -> Result<()> {
        self.atomically(session, |session| {
            let record = self.record(session, node)?;
            match (record.kind, record.parent) {
                (NodeKind::Attribute, Some(element)) => {
                    self.set_attribute(session, element, &record.name, value)
                }
                (kind, _) if has_value(kind) => {
                    check_value(kind, value)?;
                    Ok(session.set(&self.field(node, "nodeValue")?, value)?)
                }
                _ => Err(DomError::Hierarchy("a node of this kind has no value of its own")),
            }
        })
    }

    /// Replaces all children of an element by one text, or by nothing if `text` is empty.
    ///
    /// # Errors
    /// As [`Dom::create_text`] and [`Dom::append_child`].
    pub fn set_text_content(&self, session: &mut Session, element: DomNode, text: &str) -> Result<()> {
        self.atomically(session, |session| {
            if self.record(session, element)?.kind != NodeKind::Element {
                return self.set_value(session, element, text);
            }
            for child in self.children(session, element)? {
                self.delete(session, child)?;
            }
            if !text.is_empty() {
                let text = self.create_text(session, text)?;
                self.append_child(session, element, text)?;
            }
            Ok(())
        })
    }

    /// Joins neighbouring texts below `node` and removes empty ones.
    ///
    /// # Errors
    /// `NotFound`, the database's.
    pub fn normalize(&self, session: &mut Session, node: DomNode) -> Result<()> {
        self.atomically(session, |session| {
            let mut last: Option<(DomNode, Record)> = None;
            for (node, record) in self.descendants(session, node)? {
                if record.kind != NodeKind::Text || record.parent.is_none() {
                    last = None;
                } else if record.value.is_empty() {
                    self.delete(session, node)?;
                } else if let Some((first, joined)) = last.as_mut().filter(|(_, l)| l.parent == record.parent)
                {
                    joined.value.push_str(&record.value);
                    session.set(&self.field(*first, "nodeValue")?, joined.value.as_str())?;
                    self.delete(session, node)?;
                } else {
                    last = Some((node, record));
                }
            }
            Ok(())
        })
    }
}
