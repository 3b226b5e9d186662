//! New nodes: each gets the next number, and stands nowhere until it is inserted.

use perilune::Session;

use crate::characters::{check_name, check_text};
use crate::layout::{DOCUMENT_NODE, NEXT_NODE_NO};
use crate::{Dom, DomError, DomNode, NodeKind, Record, Result};

impl Dom {
    /// Stores a node without parent.
    pub(crate) fn create(&self, session: &mut Session, record: &Record) -> Result<DomNode> {
        self.atomically(session, |session| {
            if record.kind != NodeKind::Document && self.document_node(session)?.is_none() {
                return Err(DomError::Hierarchy("there is no document here: create or parse one first"));
            }
            let number = session.increment(&self.pointer(NEXT_NODE_NO)?, 1)?;
            let number = number.to_string().parse();
            let node =
                DomNode(number.map_err(|_| DomError::Damaged("the counter of nodes is no integer".into()))?);
            self.write(session, node, record)?;
            self.index(session, node, record.kind, &record.name)?;
            Ok(node)
        })
    }

    /// Makes an empty document.
    ///
    /// # Errors
    /// `DocumentExists`, the database's.
    pub fn create_document(&self, session: &mut Session) -> Result<DomNode> {
        self.atomically(session, |session| {
            if self.document_node(session)?.is_some() {
                return Err(DomError::DocumentExists);
            }
            let node = self.create(session, &Record::new(NodeKind::Document, "#document", ""))?;
            session.set(&self.pointer(DOCUMENT_NODE)?, node.0)?;
            Ok(node)
        })
    }

    /// Removes the document with all that is below its node.
    ///
    /// # Errors
    /// The database's.
    pub fn remove_document(&self, session: &mut Session) -> Result<()> {
        Ok(session.delete_tree(self.root())?)
    }

    /// Makes an element, which stands nowhere yet.
    ///
    /// # Errors
    /// `InvalidCharacter` if `name` is no XML name; `Hierarchy` without a document; the database's.
    pub fn create_element(&self, session: &mut Session, name: &str) -> Result<DomNode> {
        check_name(name)?;
        self.create(session, &Record::new(NodeKind::Element, name, ""))
    }

    /// Makes a text.
    ///
    /// # Errors
    /// As [`Dom::create_element`]; `InvalidCharacter` for a character that XML has not.
    pub fn create_text(&self, session: &mut Session, text: &str) -> Result<DomNode> {
        check_text(text, None)?;
        self.create(session, &Record::new(NodeKind::Text, "#text", text))
    }

    /// Makes a CDATA section.
    ///
    /// # Errors
    /// As [`Dom::create_text`].
    pub fn create_cdata(&self, session: &mut Session, text: &str) -> Result<DomNode> {
        check_text(text, None)?;
        self.create(session, &Record::new(NodeKind::CData, "#cdata-section", text))
    }

    /// Makes a comment.
    ///
    /// # Errors
    /// As [`Dom::create_text`], also for `--` and for `-` at the end.
    pub fn create_comment(&self, session: &mut Session, text: &str) -> Result<DomNode> {
        check_value(NodeKind::Comment, text)?;
        self.create(session, &Record::new(NodeKind::Comment, "#comment", text))
    }

    /// Makes a processing instruction.
    ///
    /// # Errors
    /// As [`Dom::create_text`], also for `?>` in `data`.
    pub fn create_processing_instruction(
        &self,
        session: &mut Session,
        target: &str,
        data: &str,
    ) -> Result<DomNode> {
        check_name(target)?;
        check_value(NodeKind::ProcessingInstruction, data)?;
        self.create(session, &Record::new(NodeKind::ProcessingInstruction, target, data))
    }

    /// Makes an attribute that belongs to no element; [`Dom::set_attribute_node`] gives it to one.
    ///
    /// # Errors
    /// As [`Dom::create_text`].
    pub fn create_attribute(&self, session: &mut Session, name: &str, value: &str) -> Result<DomNode> {
        check_name(name)?;
        check_text(value, None)?;
        self.create(session, &Record::new(NodeKind::Attribute, name, value))
    }

    /// Makes an XML declaration and puts it at the very beginning of the document.
    ///
    /// # Errors
    /// `Hierarchy` if there is one; `InvalidCharacter`; the database's.
    pub fn create_xml_declaration(
        &self,
        session: &mut Session,
        version: &str,
        encoding: &str,
    ) -> Result<DomNode> {
        for word in [version, encoding] {
            if !word.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b)) || word.is_empty() {
                return Err(DomError::InvalidCharacter(word.to_owned()));
            }
        }
        self.atomically(session, |session| {
            let data = format!("version=\"{version}\" encoding=\"{encoding}\"");
            let new = self.create(session, &Record::new(NodeKind::ProcessingInstruction, "xml", &data))?;
            let Some(document) = self.document_node(session)? else { return Err(DomError::NotFound(new)) };
            let first = self.record(session, document)?.first_child;
            if let Some(first) = first {
                let record = self.record(session, first)?;
                if record.kind == NodeKind::ProcessingInstruction && record.name == "xml" {
                    return Err(DomError::Hierarchy("the document has an XML declaration already"));
                }
            }
            self.insert_before(session, document, new, first)?;
            Ok(new)
        })
    }

    /// Makes a document type and puts it before the outermost element. The identifiers get the quotes that they lack, and
    /// are never read. `name` may be one of `html4_strict`, `html4_transitional`, `html4_frameset`, `xhtml1_strict`,
    /// `xhtml1_transitional`, which know their identifiers.
    ///
    /// # Errors
    /// `InvalidCharacter`; `Hierarchy` if the document has a type, or an identifier is public only; the database's.
    pub fn create_document_type(
        &self,
        session: &mut Session,
        name: &str,
        public_id: Option<&str>,
        system_id: Option<&str>,
    ) -> Result<DomNode> {
        let known = KNOWN_TYPES.iter().find(|(short, ..)| *short == name);
        let (name, public, system) = match known {
            Some((_, public, system)) => ("HTML", public_id.or(Some(public)), system_id.or(Some(system))),
            None => (name, public_id, system_id),
        };
        check_name(name)?;
        let mut record = Record::new(NodeKind::DocumentType, name, "");
        record.public_id = public.filter(|id| !id.is_empty()).map(quoted).transpose()?;
        record.system_id = system.filter(|id| !id.is_empty()).map(quoted).transpose()?;
        if record.public_id.is_some() && record.system_id.is_none() {
            return Err(DomError::Hierarchy("a public identifier needs a system identifier beside it"));
        }
        self.atomically(session, |session| {
            let new = self.create(session, &record)?;
            let Some(document) = self.document_node(session)? else { return Err(DomError::NotFound(new)) };
            let before = self.document_element(session)?;
            self.insert_before(session, document, new, before)?;
            Ok(new)
        })
    }

    /// Makes an element with attributes and a text, and appends it to `parent`.
    ///
    /// # Errors
    /// As [`Dom::create_element`], [`Dom::set_attribute`] and [`Dom::append_child`].
    pub fn append_element(
        &self,
        session: &mut Session,
        parent: DomNode,
        name: &str,
        attributes: &[(&str, &str)],
        text: &str,
    ) -> Result<DomNode> {
        self.atomically(session, |session| {
            let element = self.create_element(session, name)?;
            for (name, value) in attributes {
                self.set_attribute(session, element, name, value)?;
            }
            if !text.is_empty() {
                self.set_text_content(session, element, text)?;
            }
            self.append_child(session, parent, element)?;
            Ok(element)
        })
    }
}

/// Short names, public and system identifiers of HTML's types.
const KNOWN_TYPES: [(&str, &str, &str); 5] = [
    ("html4_strict", "-//W3C//DTD HTML 4.01//EN", "http://www.w3.org/TR/html4/strict.dtd"),
    ("html4_transitional", "-//W3C//DTD HTML 4.01 Transitional//EN", "http://www.w3.org/TR/html4/loose.dtd"),
    ("html4_frameset", "-//W3C//DTD HTML 4.01 Frameset//EN", "http://www.w3.org/TR/html4/frameset.dtd"),
    (
        "xhtml1_strict",
        "-//W3C//DTD XHTML 1.0 Strict//EN",
        "http://www.w3.org/TR/xhtml1/DTD/xhtml1-strict.dtd",
    ),
    (
        "xhtml1_transitional",
        "-//W3C//DTD XHTML 1.0 Transitional//EN",
        "http://www.w3.org/TR/xhtml1/DTD/xhtml1-transitional.dtd",
    ),
];

/// An identifier of a document type with the quotes that it lacks.
fn quoted(id: &str) -> Result<String> {
    check_text(id, None)?;
    let inner = ['"', '\''].iter().find_map(|&q| id.strip_prefix(q)?.strip_suffix(q)).unwrap_or(id);
    match (inner.contains('"'), inner.contains('\'')) {
        (false, _) => Ok(format!("\"{inner}\"")),
        (true, false) => Ok(format!("'{inner}'")),
        (true, true) => Err(DomError::InvalidCharacter(id.to_owned())),
    }
}

/// Refuses a value that a node of this kind cannot be written with.
pub(crate) fn check_value(kind: NodeKind, text: &str) -> Result<()> {
    match kind {
        NodeKind::Comment if text.ends_with('-') => Err(DomError::InvalidCharacter(text.to_owned())),
        NodeKind::Comment => check_text(text, Some("--")),
        NodeKind::ProcessingInstruction => check_text(text, Some("?>")),
        _ => check_text(text, None),
    }
}
