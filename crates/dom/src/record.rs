//! Nodes as they are read: one walk over what is stored of a node.

use perilune::key::decode_subscript;
use perilune::{Cursor, Session, Subscript, Value, ValueRef};

use crate::layout::{text_of, DOCUMENT_ELEMENT, DOCUMENT_NODE, DOCUMENT_TYPE, NEXT_NODE_NO};
use crate::{Dom, DomError, DomNode, NodeKind, Result};

/// All that is stored of one node, as of one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// What it is.
    pub kind: NodeKind,
    /// `nodeName`: the tag, the attribute's name, a target, `#text` and the like.
    pub name: String,
    /// `nodeValue`; empty if it has none.
    pub value: String,
    /// The parent; for an attribute, its element.
    pub parent: Option<DomNode>,
    /// The first child.
    pub first_child: Option<DomNode>,
    /// The last child.
    pub last_child: Option<DomNode>,
    /// The sibling before it.
    pub previous_sibling: Option<DomNode>,
    /// The sibling behind it.
    pub next_sibling: Option<DomNode>,
    /// The attributes' names and nodes, by name.
    pub attributes: Vec<(String, DomNode)>,
    /// The public identifier of a document type, with its quotes.
    pub public_id: Option<String>,
    /// The system identifier of a document type, with its quotes.
    pub system_id: Option<String>,
}

impl Record {
    /// A node without links.
    pub(crate) fn new(kind: NodeKind, name: &str, value: &str) -> Record {
        Record {
            kind,
            name: name.to_owned(),
            value: value.to_owned(),
            parent: None,
            first_child: None,
            last_child: None,
            previous_sibling: None,
            next_sibling: None,
            attributes: Vec::new(),
            public_id: None,
            system_id: None,
        }
    }

    /// Whether it is text or a CDATA section.
    #[must_use]
    pub fn is_text(&self) -> bool {
        matches!(self.kind, NodeKind::Text | NodeKind::CData)
    }

    /// The part of an element's or attribute's name before its `:`; empty if there is none.
    #[must_use]
    pub fn prefix(&self) -> &str {
        self.name.split_once(':').filter(|_| self.has_namespace()).map_or("", |(prefix, _)| prefix)
    }

    /// The name without its prefix.
    #[must_use]
    pub fn local_name(&self) -> &str {
        self.name.split_once(':').filter(|_| self.has_namespace()).map_or(&self.name, |(_, local)| local)
    }

    /// Whether nodes of this kind may be in a namespace.
    fn has_namespace(&self) -> bool {
        matches!(self.kind, NodeKind::Element | NodeKind::Attribute)
    }

    /// The attribute called `name`.
    #[must_use]
    pub fn attribute(&self, name: &str) -> Option<DomNode> {
        self.attributes.iter().find(|(known, _)| known == name).map(|&(_, node)| node)
    }
}

/// A value as text; JSdb keeps numbers as texts and texts as numbers alike.
pub(crate) fn text(value: &Value) -> String {
    text_in(value.as_ref())
}

fn text_in(value: ValueRef<'_>) -> String {
    if let ValueRef::String(bytes) = value {
        return String::from_utf8_lossy(bytes).into_owned();
    }
    let mut bytes = Vec::new();
    value.write_text(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The whole number that a value is, or that its text says.
fn number_in(value: ValueRef<'_>) -> Option<i64> {
    match value {
        ValueRef::Int(number) => Some(number),
        ValueRef::String(bytes) => std::str::from_utf8(bytes).ok()?.parse().ok(),
        other => text_in(other).parse().ok(),
    }
}

/// A link; an empty one is none (JSdb leaves such when it detaches).
pub(crate) fn link(value: &Value) -> Result<Option<DomNode>> {
    link_of(value.as_ref())
}

fn link_of(value: ValueRef<'_>) -> Result<Option<DomNode>> {
    match number_in(value) {
        Some(number) => Ok(Some(DomNode(number))),
        None => match text_in(value).as_str() {
            "" => Ok(None),
            text => Err(DomError::Damaged(format!("{text:?} is no link"))),
        },
    }
}

/// A record whose fields are being met, one by one.
#[derive(Default)]
pub(crate) struct Reading {
    kind: Option<NodeKind>,
    record: Option<Record>,
}

impl Reading {
    /// Takes the value below the node at `rest`, the codes of the subscripts behind the node's own.
    pub(crate) fn take(&mut self, rest: &[u8], value: ValueRef<'_>) -> Result<()> {
        let record = self.record.get_or_insert_with(|| Record::new(NodeKind::Document, "", ""));
        if rest.is_empty() {
            return Ok(());
        }
        let (field, length) = decode_subscript(rest).map_err(perilune::Error::from)?;
        let Subscript::Bytes(field) = field else { return Ok(()) };
        let behind = &rest[length..];
        if !behind.is_empty() {
            let (name, length) = decode_subscript(behind).map_err(perilune::Error::from)?;
            if &*field == b"attr" && behind.len() == length {
                let number =
                    link_of(value)?.ok_or_else(|| DomError::Damaged("an attribute has no node".into()))?;
                record.attributes.push((text_of(&name), number));
            }
            return Ok(());
        }
        match &*field {
            b"nodeType" => self.kind = number_in(value).and_then(NodeKind::from_number),
            b"nodeName" => record.name = text_in(value),
            b"nodeValue" => record.value = text_in(value),
            b"parent" => record.parent = link_of(value)?,
            b"firstChild" => record.first_child = link_of(value)?,
            b"lastChild" => record.last_child = link_of(value)?,
            b"previousSibling" => record.previous_sibling = link_of(value)?,
            b"nextSibling" => record.next_sibling = link_of(value)?,
            b"publicId" => record.public_id = Some(text_in(value)),
            b"systemId" => record.system_id = Some(text_in(value)),
            _ => {}
        }
        Ok(())
    }

    /// The record; `None` if nothing said what it is.
    pub(crate) fn end(self) -> Option<Record> {
        let (kind, record) = (self.kind?, self.record?);
        Some(Record { kind, ..record })
    }
}

impl Dom {
    /// All that is stored of `node`.
    ///
    /// # Errors
    /// `NotFound`, `Damaged`, the database's.
    pub fn record(&self, session: &mut Session, node: DomNode) -> Result<Record> {
        self.find(session, node)?.ok_or(DomError::NotFound(node))
    }

    /// All that is stored of `node`; `None` if there is no such node.
    pub(crate) fn find(&self, session: &mut Session, node: DomNode) -> Result<Option<Record>> {
        let place = self.node(node)?;
        let above = place.encoded().len();
        let mut cursor = Cursor::subtree(&place);
        let mut reading = Reading::default();
        while cursor.next(session)? {
            let entry = cursor.node_ref()?;
            if let (Some(rest), Some(value)) = (entry.encoded().get(above..), cursor.value()?) {
                reading.take(rest, value)?;
            }
        }
        Ok(reading.end())
    }

    /// Writes all of a new node but its entries in indices, in ascending order; nothing may be stored of it yet.
    pub(crate) fn write(&self, session: &mut Session, node: DomNode, record: &Record) -> Result<()> {
        for (name, attribute) in &record.attributes {
            session.set(&self.attribute(node, name)?, attribute.0)?;
        }
        let link = |link: Option<DomNode>| link.map(|node| ValueRef::Int(node.0));
        let value = string(&record.value).filter(|_| has_value(record.kind));
        let fields = [
            ("firstChild", link(record.first_child)),
            ("lastChild", link(record.last_child)),
            ("nextSibling", link(record.next_sibling)),
            ("nodeName", string(&record.name)),
            ("nodeNo", Some(ValueRef::Int(node.0))),
            ("nodeType", Some(ValueRef::Int(record.kind.number()))),
            ("nodeValue", value),
            ("parent", link(record.parent)),
            ("previousSibling", link(record.previous_sibling)),
            ("publicId", record.public_id.as_deref().and_then(string)),
            ("systemId", record.system_id.as_deref().and_then(string)),
        ];
        let mut place = self.node(node)?;
        let mark = place.mark();
        for (field, value) in fields {
            if let Some(value) = value {
                place.truncate(mark);
                place.push(field)?;
                session.set(&place, value)?;
            }
        }
        Ok(())
    }

    fn point(&self, session: &mut Session, name: &str) -> Result<Option<DomNode>> {
        match session.get(&self.pointer(name)?)? {
            Some(value) => link(&value),
            None => Ok(None),
        }
    }

    /// The highest number that a node may have; 0 if none was given.
    pub(crate) fn highest(&self, session: &mut Session) -> Result<i64> {
        Ok(self.point(session, NEXT_NODE_NO)?.map_or(0, DomNode::number))
    }

    /// The document's own node; `None` if there is no document.
    ///
    /// # Errors
    /// `Damaged`, the database's.
    pub fn document_node(&self, session: &mut Session) -> Result<Option<DomNode>> {
        self.point(session, DOCUMENT_NODE)
    }

    /// The outermost element.
    ///
    /// # Errors
    /// As [`Dom::document_node`].
    pub fn document_element(&self, session: &mut Session) -> Result<Option<DomNode>> {
        self.point(session, DOCUMENT_ELEMENT)
    }

    /// The document type.
    ///
    /// # Errors
    /// As [`Dom::document_node`].
    pub fn document_type(&self, session: &mut Session) -> Result<Option<DomNode>> {
        self.point(session, DOCUMENT_TYPE)
    }

    /// The element that the index names for `id`.
    ///
    /// # Errors
    /// As [`Dom::document_node`].
    pub fn get_element_by_id(&self, session: &mut Session, id: &str) -> Result<Option<DomNode>> {
        if id.is_empty() {
            return Ok(None);
        }
        match session.get(&self.by_id(id)?)? {
            Some(value) => link(&value),
            None => Ok(None),
        }
    }

    /// The children of `node`, first to last.
    ///
    /// # Errors
    /// As [`Dom::record`].
    pub fn children(&self, session: &mut Session, node: DomNode) -> Result<Vec<DomNode>> {
        let mut next = self.record(session, node)?.first_child;
        let mut children = Vec::new();
        while let Some(child) = next {
            children.push(child);
            next = self.record(session, child)?.next_sibling;
        }
        Ok(children)
    }

    /// `node` and all below it in document order, without attributes.
    ///
    /// # Errors
    /// As [`Dom::record`].
    pub fn descendants(&self, session: &mut Session, node: DomNode) -> Result<Vec<(DomNode, Record)>> {
        let mut found = Vec::new();
        let mut at = Some(node);
        let mut above = Vec::new();
        while let Some(current) = at {
            let record = self.record(session, current)?;
            let (first, next) = (record.first_child, record.next_sibling.filter(|_| current != node));
            found.push((current, record));
            at = match first {
                Some(first) => {
                    above.push(next);
                    Some(first)
                }
                None => next,
            };
            while at.is_none() {
                match above.pop() {
                    Some(next) => at = next,
                    None => break,
                }
            }
        }
        Ok(found)
    }

    /// The value of the attribute `name` of an element; `None` if it has none.
    ///
    /// # Errors
    /// As [`Dom::record`].
    pub fn get_attribute(
        &self,
        session: &mut Session,
        element: DomNode,
        name: &str,
    ) -> Result<Option<String>> {
        match self.record(session, element)?.attribute(name) {
            Some(attribute) => Ok(Some(self.record(session, attribute)?.value)),
            None => Ok(None),
        }
    }

    /// All text below `node` joined; of a leaf, its value.
    ///
    /// # Errors
    /// As [`Dom::record`].
    pub fn text_content(&self, session: &mut Session, node: DomNode) -> Result<String> {
        let record = self.record(session, node)?;
        if has_value(record.kind) {
            return Ok(record.value);
        }
        let below = self.descendants(session, node)?;
        Ok(below
            .iter()
            .filter(|(_, record)| record.is_text())
            .map(|(_, record)| record.value.as_str())
            .collect())
    }
}

fn string(text: &str) -> Option<ValueRef<'_>> {
    Some(ValueRef::String(text.as_bytes()))
}

/// Whether nodes of this kind have a `nodeValue`.
pub(crate) fn has_value(kind: NodeKind) -> bool {
    !matches!(kind, NodeKind::Element | NodeKind::Document | NodeKind::DocumentType)
}
