//! A document as XML text: in one line, escaped, attributes by name, `<x />` for what is empty.

use perilune::Session;

use crate::whole::Whole;
use crate::{Dom, DomNode, NodeKind, Record, Result};

/// Where records come from: one walk over all of them, or a search for each.
enum Source<'s> {
    Whole(Whole),
    Each(&'s Dom, &'s mut Session),
}

impl Source<'_> {
    fn with<R>(&mut self, node: DomNode, look: impl FnOnce(&Record) -> R) -> Result<R> {
        match self {
            Source::Whole(whole) => Ok(look(whole.record(node)?)),
            Source::Each(dom, session) => Ok(look(&dom.record(session, node)?)),
        }
    }
}

impl Dom {
    /// All of the document as XML. Empty if there is none.
    ///
    /// # Errors
    /// `Damaged`, the database's.
    pub fn to_xml(&self, session: &mut Session) -> Result<String> {
        match self.document_node(session)? {
            Some(document) => self.node_to_xml(session, document),
            None => Ok(String::new()),
        }
    }

    /// `node` and all below it as XML, as of one moment.
    ///
    /// # Errors
    /// `NotFound`, `Damaged`, the database's.
    pub fn node_to_xml(&self, session: &mut Session, node: DomNode) -> Result<String> {
        self.at_one_moment(session, |session| self.serialize(session, node, None))
    }

    /// As [`Dom::node_to_xml`], each node on a line of its own, `indent` spaces deeper than the one around it. Lines end
    /// in CR LF, as JSdb's do. NB: a reader finds white space in the texts that was not there.
    ///
    /// # Errors
    /// As [`Dom::node_to_xml`].
    pub fn node_to_xml_indented(
        &self,
        session: &mut Session,
        node: DomNode,
        indent: usize,
    ) -> Result<String> {
        self.at_one_moment(session, |session| self.serialize(session, node, Some(indent.min(INDENT_MAX))))
    }

    fn serialize(&self, session: &mut Session, node: DomNode, indent: Option<usize>) -> Result<String> {
        let kind = self.record(session, node)?.kind;
        let of_document = kind == NodeKind::Document;
        let all = of_document || self.document_element(session)? == Some(node);
        let mut source = if all { Source::Whole(self.whole(session)?) } else { Source::Each(self, session) };
        let mut out = String::new();
        // Names of the elements that are open, and what follows them; the document's is empty.
        let mut open: Vec<(String, Option<DomNode>)> = Vec::new();
        let mut at = Some(node);
        loop {
            while let Some(current) = at {
                let depth = open.len().saturating_sub(usize::from(of_document));
                let attributes = source.with(current, |record| record.attributes.clone())?;
                let mut values = Vec::with_capacity(attributes.len());
                for (name, attribute) in attributes {
                    values.push((name, source.with(attribute, |record| record.value.clone())?));
                }
                let (first, next, name) = source.with(current, |record| {
                    new_line(indent, depth, &mut out);
                    begin(record, &values, &mut out);
                    let name =
                        if record.kind == NodeKind::Element { record.name.clone() } else { String::new() };
                    (record.first_child, record.next_sibling.filter(|_| current != node), name)
                })?;
                at = match first {
                    Some(first) => {
                        open.push((name, next));
                        Some(first)
                    }
                    None => next,
                };
            }
            let Some((name, next)) = open.pop() else { return Ok(out) };
            if !name.is_empty() {
                new_line(indent, open.len() - usize::from(of_document), &mut out);
                out.extend(["</", &name, ">"]);
            }
            at = next;
        }
    }
}

/// How deep a step of indentation may be.
const INDENT_MAX: usize = 32;

/// Begins a line for a node this deep, if there are to be lines; the first has begun.
fn new_line(indent: Option<usize>, depth: usize, out: &mut String) {
    if let Some(indent) = indent.filter(|_| !out.is_empty()) {
        out.push_str("\r\n");
        out.extend(std::iter::repeat_n(' ', indent * depth));
    }
}

/// What stands before the children of a node.
fn begin(record: &Record, attributes: &[(String, String)], out: &mut String) {
    match record.kind {
        NodeKind::Element => {
            out.extend(["<", &record.name]);
            for (name, value) in attributes {
                out.extend([" ", name, "=\""]);
                escape(value, true, out);
                out.push('"');
            }
            out.push_str(if record.first_child.is_some() { ">" } else { " />" });
        }
        NodeKind::Text => escape(&record.value, false, out),
        NodeKind::CData => out.extend(["<![CDATA[", &record.value.replace("]]>", "]]]]><![CDATA[>"), "]]>"]),
        NodeKind::Comment => out.extend(["<!--", &record.value, "-->"]),
        NodeKind::ProcessingInstruction if record.value.is_empty() => out.extend(["<?", &record.name, "?>"]),
        NodeKind::ProcessingInstruction => out.extend(["<?", &record.name, " ", &record.value, "?>"]),
        NodeKind::DocumentType => {
            out.extend(["<!DOCTYPE ", &record.name]);
            match (&record.public_id, &record.system_id) {
                (Some(public), system) => {
                    out.extend([" PUBLIC ", public, " ", system.as_deref().unwrap_or("\"\"")]);
                }
                (None, Some(system)) => out.extend([" SYSTEM ", system]),
                (None, None) => {}
            }
            out.push('>');
        }
        NodeKind::Attribute => escape(&record.value, false, out),
        NodeKind::Document => {}
    }
}

/// Appends `text` so that a parser reads it back as it is.
fn escape(text: &str, in_attribute: bool, out: &mut String) {
    let mut rest = text;
    while let Some(at) = rest.find(['&', '<', '>', '\r', '"', '\n', '\t']) {
        out.push_str(&rest[..at]);
        let special = &rest[at..=at];
        out.push_str(match special {
            "&" => "&amp;",
            "<" => "&lt;",
            ">" => "&gt;",
            "\r" => "&#13;",
            "\"" if in_attribute => "&quot;",
            "\n" if in_attribute => "&#10;",
            "\t" if in_attribute => "&#9;",
            other => other,
        });
        rest = &rest[at + 1..];
    }
    out.push_str(rest);
}
