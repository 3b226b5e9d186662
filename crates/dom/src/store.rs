//! A whole document written at once: all of it, or nothing.
//!
//! Invariant: values are written in ascending order of their keys, so that each lies right behind the one before it.

use std::collections::BTreeMap;

use perilune::{Node, Session};

use crate::layout::{DOCUMENT_ELEMENT, DOCUMENT_NODE, DOCUMENT_TYPE, NEXT_NODE_NO};
use crate::{Dom, DomError, DomNode, NodeKind, ParseOptions, Parsed, Record, Result};

impl Dom {
    /// Parses `xml` into a new document. One transaction: others see all of it or nothing.
    ///
    /// # Errors
    /// `Syntax`, `Entity`, `Dtd`, `Encoding` with the place in the text; `DocumentExists`; the database's, say
    /// `KeyTooLong` for a name or id longer than a subscript.
    pub fn parse(&self, session: &mut Session, xml: &str, options: &ParseOptions) -> Result<DomNode> {
        self.store(session, &Parsed::read(xml, options)?, options.replace)
    }

    /// As [`Dom::parse`], of a text that was read before.
    ///
    /// # Errors
    /// `DocumentExists` unless it is to `replace` that; the database's.
    pub fn store(&self, session: &mut Session, parsed: &Parsed, replace: bool) -> Result<DomNode> {
        self.atomically(session, |session| {
            if self.document_node(session)?.is_some() && !replace {
                return Err(DomError::DocumentExists);
            }
            session.delete_tree(self.root())?;
            for (name, node) in [(DOCUMENT_ELEMENT, parsed.root), (DOCUMENT_TYPE, parsed.doctype)] {
                if let Some(node) = node {
                    session.set(&self.pointer(name)?, node.0)?;
                }
            }
            session.set(&self.pointer(DOCUMENT_NODE)?, 1)?;
            self.write_indices(session, &parsed.records)?;
            session.set(&self.pointer(NEXT_NODE_NO)?, parsed.records.len() as i64)?;
            for (index, record) in parsed.records.iter().enumerate() {
                self.write(session, DomNode(index as i64 + 1), record)?;
            }
            Ok(DomNode(1))
        })
    }

    /// Writes all entries of the indices of a new document, in ascending order: record `n` is node `n + 1`.
    fn write_indices(&self, session: &mut Session, records: &[Record]) -> Result<()> {
        let (mut prefixes, mut names, mut kinds) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let mut ids = BTreeMap::new();
        for (record, number) in records.iter().zip(1_i64..) {
            let kind = record.kind;
            if let Some((prefix, _)) = record.name.split_once(':') {
                prefixes.entry((kind.number(), prefix)).or_insert((kind, Vec::new())).1.push(number);
            }
            names.entry((kind.number(), record.name.as_str())).or_insert((kind, Vec::new())).1.push(number);
            kinds.entry(kind.number()).or_insert((kind, Vec::new())).1.push(number);
            if let (NodeKind::Attribute, "id", Some(element)) = (kind, record.name.as_str(), record.parent) {
                ids.entry(record.value.as_str()).or_insert(element);
            }
        }
        for ((_, prefix), (kind, numbers)) in prefixes {
            list(session, self.by_prefix(kind, prefix)?, &numbers)?;
        }
        for (id, element) in ids.into_iter().filter(|(id, _)| !id.is_empty()) {
            session.set(&self.by_id(id)?, element.0)?;
        }
        for ((_, name), (kind, numbers)) in names {
            list(session, self.by_name(kind, name)?, &numbers)?;
        }
        for (kind, numbers) in kinds.into_values() {
            list(session, self.by_type(kind)?, &numbers)?;
        }
        Ok(())
    }
}

/// Notes numbers below a node of an index.
fn list(session: &mut Session, mut place: Node, numbers: &[i64]) -> Result<()> {
    let mark = place.mark();
    for number in numbers {
        place.truncate(mark);
        place.push(*number)?;
        session.set(&place, "")?;
    }
    Ok(())
}
