//! XML text into records, without a database.
//!
//! The parser (quick-xml) knows nesting; names, characters, one root and the document type are checked here. Nothing is
//! expanded but the five entities of XML and character references: a text never grows while it is read.
//!
//! Invariants
//! - A text that is not well-formed gives no record.
//! - Nodes get numbers 1, 2, ... in document order, an element's attributes right behind it, as JSdb numbers them.

use std::collections::HashSet;

use quick_xml::events::{BytesStart, Event};
use quick_xml::Reader;

use crate::characters::{is_char, is_name, is_space, trim};
use crate::references::{attribute_value, line_ends, next_attribute, resolve, syntax};
use crate::{DomError, DomNode, NodeKind, Record, Result};

/// What becomes of white space in text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Whitespace {
    /// All of it is kept.
    #[default]
    Keep,
    /// As JSdb: line breaks are removed, then both ends trimmed; what is empty then is no node. Not where `xml:space` says
    /// `preserve`.
    Trim,
}

/// How a text is parsed.
#[derive(Clone, Debug, Default)]
pub struct ParseOptions {
    /// What becomes of white space.
    pub whitespace: Whitespace,
    /// Whether a document that is there is removed first; otherwise it is an error.
    pub replace: bool,
    /// Whether a document type may name an external DTD. It is kept as text, and never read.
    pub keep_external_dtd: bool,
}

/// A text that is well-formed, to be written into a database.
#[derive(Clone, Debug)]
pub struct Parsed {
    /// Record `n` is node `n + 1`.
    pub(crate) records: Vec<Record>,
    pub(crate) root: Option<DomNode>,
    pub(crate) doctype: Option<DomNode>,
}

const DECLARATION: &str = "a declaration is <?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"yes\"?>";
/// What a declaration may call the encoding, which is UTF-8.
const ENCODINGS: [&str; 4] = ["utf-8", "utf8", "us-ascii", "ascii"];

/// The text so far, as records; record `n` is node `n + 1`.
struct Builder<'a> {
    options: &'a ParseOptions,
    records: Vec<Record>,
    /// Nodes that are open, the document first.
    open: Vec<DomNode>,
    /// For each of them, whether `xml:space` preserves white space in it.
    preserved: Vec<bool>,
    text: String,
    root: Option<DomNode>,
    doctype: Option<DomNode>,
}

impl Parsed {
    /// Reads `xml` to its end, without a database.
    ///
    /// # Errors
    /// `Syntax`, `Entity`, `Dtd`, `Encoding` with the place in the text.
    pub fn read(xml: &str, options: &ParseOptions) -> Result<Parsed> {
        let Builder { records, root, doctype, .. } = build(xml, options)?;
        Ok(Parsed { records, root, doctype })
    }

    /// As [`Parsed::read`], of bytes, which must be UTF-8.
    ///
    /// # Errors
    /// As [`Parsed::read`].
    pub fn read_bytes(xml: &[u8], options: &ParseOptions) -> Result<Parsed> {
        let text = std::str::from_utf8(xml)
            .map_err(|error| DomError::Encoding(format!("byte {} is not UTF-8", error.valid_up_to())))?;
        Parsed::read(text, options)
    }
}

/// Reads all of `xml`.
fn build<'a>(xml: &str, options: &'a ParseOptions) -> Result<Builder<'a>> {
    let xml = xml.strip_prefix('\u{FEFF}').unwrap_or(xml);
    if let Some((position, c)) = xml.char_indices().find(|&(_, c)| !is_char(c)) {
        return syntax(position, format!("XML has no character U+{:04X}", u32::from(c)));
    }
    let mut reader = Reader::from_str(xml);
    let config = reader.config_mut();
    config.check_comments = true;
    config.check_end_names = true;
    let document = Record::new(NodeKind::Document, "#document", "");
    let mut builder = Builder {
        options,
        records: vec![document],
        open: vec![DomNode(1)],
        preserved: vec![false],
        text: String::new(),
        root: None,
        doctype: None,
    };
    loop {
        let position = reader.buffer_position() as usize;
        let event = match reader.read_event() {
            Ok(event) => event,
            Err(error) => return syntax(reader.error_position() as usize, error.to_string()),
        };
        let name_end = position + 1;
        if let Event::Eof = event {
            break;
        }
        if let Event::Start(start) | Event::Empty(start) = &event {
            if xml[name_end..].starts_with(is_space) {
                return syntax(position, "a tag begins with its name");
            }
            builder.start(position, start)?;
        }
        match event {
            Event::End(_) | Event::Empty(_) => {
                builder.flush(position)?;
                builder.open.pop();
                builder.preserved.pop();
            }
            other => builder.event(position, &other)?,
        }
    }
    builder.flush(xml.len())?;
    if builder.open.len() > 1 {
        return syntax(xml.len(), "the text ends inside an element");
    }
    if builder.root.is_none() {
        return syntax(xml.len(), "there is no element");
    }
    Ok(builder)
}

impl Builder<'_> {
    /// All events but those that open or close elements.
    fn event(&mut self, position: usize, event: &Event<'_>) -> Result<()> {
        match event {
            Event::Text(text) => {
                let text = text.xml10_content();
                if text.contains("]]>") {
                    return syntax(position, "]]> stands only at the end of a CDATA section");
                }
                self.text.push_str(&text);
            }
            Event::GeneralRef(reference) => {
                let c = resolve(position, &reference.xml10_content())?;
                if self.open.len() == 1 {
                    return syntax(position, "text stands inside the outermost element only");
                }
                self.text.push(c);
            }
            Event::CData(data) => {
                self.flush(position)?;
                if self.open.len() == 1 {
                    return syntax(position, "a CDATA section stands inside the outermost element only");
                }
                self.add(Record::new(NodeKind::CData, "#cdata-section", &data.xml10_content()));
            }
            Event::Comment(text) => {
                self.flush(position)?;
                let text = text.xml10_content();
                if text.contains("--") || text.ends_with('-') {
                    return syntax(position, "a comment contains no --");
                }
                self.add(Record::new(NodeKind::Comment, "#comment", &text));
            }
            Event::Decl(declaration) => self.declaration(position, declaration)?,
            Event::PI(instruction) => {
                self.flush(position)?;
                let target = instruction.target();
                if !is_name(target) || target.eq_ignore_ascii_case("xml") {
                    return syntax(position, "an instruction begins with its target, which is not xml");
                }
                let data = line_ends(instruction.content().trim_start_matches(is_space));
                self.add(Record::new(NodeKind::ProcessingInstruction, target, &data));
            }
            Event::DocType(text) => self.document_type(position, &text.xml10_content())?,
            _ => {}
        }
        Ok(())
    }

    fn declaration(&mut self, position: usize, declaration: &quick_xml::events::BytesDecl<'_>) -> Result<()> {
        if position != 0 {
            return syntax(position, "the XML declaration stands at the very beginning");
        }
        let mut rest: &str = declaration.strip_prefix("xml").unwrap_or(declaration);
        let mut expected = ["version", "encoding", "standalone"].iter();
        let mut is_first = true;
        while let Some((name, value)) = next_attribute(position, &mut rest)? {
            let known = expected.any(|known| *known == name) && is_first == (name == "version");
            let good = match name {
                "version" => {
                    value.strip_prefix("1.").is_some_and(|minor| minor.bytes().all(|b| b.is_ascii_digit()))
                }
                "encoding" => true,
                _ => matches!(value, "yes" | "no"),
            };
            if !known || !good {
                return syntax(position, DECLARATION);
            }
            is_first = false;
            if name == "encoding" && !ENCODINGS.iter().any(|known| value.eq_ignore_ascii_case(known)) {
                return Err(DomError::Encoding(format!("the declaration names {value}")));
            }
        }
        if is_first {
            return syntax(position, DECLARATION);
        }
        let data = trim(declaration.strip_prefix("xml").unwrap_or(declaration)).to_owned();
        self.add(Record::new(NodeKind::ProcessingInstruction, "xml", &data));
        Ok(())
    }

    fn document_type(&mut self, position: usize, text: &str) -> Result<()> {
        self.flush(position)?;
        if self.doctype.is_some() || self.root.is_some() {
            return syntax(position, "one document type stands before the outermost element");
        }
        let text = trim(text);
        let (name, rest) = text.split_at(text.find(|c| is_space(c) || c == '[').unwrap_or(text.len()));
        if !is_name(name) {
            return syntax(position, "a document type begins with its name");
        }
        let mut record = Record::new(NodeKind::DocumentType, name, "");
        let rest = trim(rest);
        if let Some(rest) = rest.strip_prefix("PUBLIC") {
            let (public, rest) = quoted(position, rest)?;
            record.public_id = Some(public);
            let (system, rest) = quoted(position, rest)?;
            record.system_id = Some(system);
            end_of_doctype(position, rest)?;
        } else if let Some(rest) = rest.strip_prefix("SYSTEM") {
            let (system, rest) = quoted(position, rest)?;
            record.system_id = Some(system);
            end_of_doctype(position, rest)?;
        } else {
            end_of_doctype(position, rest)?;
        }
        if record.system_id.is_some() && !self.options.keep_external_dtd {
            return Err(DomError::Dtd { position, internal: false });
        }
        self.doctype = Some(self.add(record));
        Ok(())
    }

    fn start(&mut self, position: usize, start: &BytesStart<'_>) -> Result<()> {
        self.flush(position)?;
        let name = start.name().into_inner();
        if !is_name(name) {
            return syntax(position, format!("{name:?} is no name"));
        }
        if self.open.len() == 1 {
            if self.root.is_some() {
                return syntax(position, "there is one outermost element only");
            }
            self.root = Some(DomNode(self.records.len() as i64 + 1));
        }
        let element = self.add(Record::new(NodeKind::Element, name, ""));
        let mut seen = HashSet::new();
        let mut preserved = self.preserved.last() == Some(&true);
        let mut rest = start.attributes_raw();
        while let Some((name, raw)) = next_attribute(position, &mut rest)? {
            if !is_name(name) || !seen.insert(name) {
                return syntax(position, format!("{name:?} is no name of an attribute, or here twice"));
            }
            let value = attribute_value(position, raw)?;
            if name == "xml:space" {
                preserved = value == "preserve";
            }
            let node = DomNode(self.records.len() as i64 + 1);
            let parent = Some(element);
            self.records.push(Record { parent, ..Record::new(NodeKind::Attribute, name, &value) });
            self.records[element.0 as usize - 1].attributes.push((name.to_owned(), node));
        }
        self.open.push(element);
        self.preserved.push(preserved);
        Ok(())
    }

    /// Makes a node of the text that was read since the last one.
    fn flush(&mut self, position: usize) -> Result<()> {
        let text = std::mem::take(&mut self.text);
        if text.is_empty() {
            return Ok(());
        }
        if self.open.len() == 1 {
            return match trim(&text) {
                "" => Ok(()),
                _ => syntax(position, "text stands inside the outermost element only"),
            };
        }
        let text = match self.options.whitespace {
            Whitespace::Keep => text,
            Whitespace::Trim if self.preserved.last() == Some(&true) => text,
            Whitespace::Trim => trim(&text.replace(['\r', '\n'], "")).to_owned(),
        };
        if !text.is_empty() {
            self.add(Record::new(NodeKind::Text, "#text", &text));
        }
        Ok(())
    }

    /// Appends a node to the one that is open.
    fn add(&mut self, mut record: Record) -> DomNode {
        let node = DomNode(self.records.len() as i64 + 1);
        let parent = self.open[self.open.len() - 1];
        let above = &mut self.records[parent.0 as usize - 1];
        record.parent = Some(parent);
        record.previous_sibling = above.last_child.replace(node);
        above.first_child = above.first_child.or(Some(node));
        if let Some(previous) = record.previous_sibling {
            self.records[previous.0 as usize - 1].next_sibling = Some(node);
        }
        self.records.push(record);
        node
    }
}

/// A quoted text at the beginning of `rest`, with double quotes as JSdb keeps it, and what follows.
fn quoted(position: usize, rest: &str) -> Result<(String, &str)> {
    let rest = trim(rest);
    let quote = rest.chars().next().filter(|c| matches!(c, '"' | '\''));
    let inner = quote.and_then(|quote| rest[1..].split_once(quote));
    match inner {
        Some((text, rest)) if text.contains('"') => Ok((format!("'{text}'"), rest)),
        Some((text, rest)) => Ok((format!("\"{text}\""), rest)),
        None => syntax(position, "an identifier of a document type is quoted"),
    }
}

fn end_of_doctype(position: usize, rest: &str) -> Result<()> {
    match trim(rest) {
        "" => Ok(()),
        rest if rest.starts_with('[') => Err(DomError::Dtd { position, internal: true }),
        _ => syntax(position, "a document type is a name, identifiers and nothing else"),
    }
}
