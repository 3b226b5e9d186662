//! JSON as a document, as QEWD-JSdb has it, and back.
//!
//! The outermost element is `json`; a property is an element of its name, an array has the attribute `type="array"` and an
//! element `val` for each of its elements, a leaf has its kind as `type` and its text. JSdb loses null and `{}`: here they have
//! a type of their own, `null` and `object`, which JSdb reads as an empty text.
//!
//! Invariants
//! - A text goes in as it is read, property by property in its order, and never stands in memory as a tree.
//! - Depth is bounded both ways, so that no document overflows the stack.

use std::fmt;

use perilune::Session;
use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};

use crate::{Dom, DomError, DomNode, NodeKind, Result};

/// Objects and arrays within each other; serde_json's own limit for what is read.
const DEPTH_MAX: usize = 127;

impl Dom {
    /// Makes a document of a text of JSON; answers the document's node.
    ///
    /// # Errors
    /// `Syntax` for what is no JSON, or deeper than 127 levels; `DocumentExists`; `InvalidCharacter` for a property that is no
    /// name in XML, and for characters that XML has not; the database's.
    pub fn parse_json(&self, session: &mut Session, json: &str) -> Result<DomNode> {
        self.atomically(session, |session| {
            let document = self.create_document(session)?;
            let element = self.create_element(session, "json")?;
            let mut failure = None;
            let writer = Writer { dom: self, session, element, failure: &mut failure };
            let mut reader = serde_json::Deserializer::from_str(json);
            let outcome = writer.deserialize(&mut reader).and_then(|()| reader.end());
            if let Some(failure) = failure {
                return Err(failure);
            }
            outcome.map_err(|error| syntax(json, &error))?;
            self.append_child(session, document, element)?;
            Ok(document)
        })
    }

    /// The JSON of an element and what is below it, or without one of the outermost; `null` without a document.
    ///
    /// # Errors
    /// `Hierarchy` for another node, and for elements deeper than 127 levels below it; the database's.
    pub fn to_json(&self, session: &mut Session, element: Option<DomNode>) -> Result<String> {
        self.at_one_moment(session, |session| {
            let element = match element {
                Some(element) => Some(element),
                None => self.document_element(session)?,
            };
            let mut out = String::new();
            match element {
                Some(element) => self.write_json(session, element, 0, &mut out)?,
                None => out.push_str("null"),
            }
            Ok(out)
        })
    }

    fn write_json(
        &self,
        session: &mut Session,
        element: DomNode,
        depth: usize,
        out: &mut String,
    ) -> Result<()> {
        if depth > DEPTH_MAX {
            return Err(DomError::Hierarchy(
                "elements lie more than 127 levels deep, and JSON has no more here",
            ));
        }
        if self.record(session, element)?.kind != NodeKind::Element {
            return Err(DomError::Hierarchy("only an element has JSON"));
        }
        let kind = self.get_attribute(session, element, "type")?.unwrap_or_default();
        let mut children = Vec::new();
        for child in self.children(session, element)? {
            let record = self.record(session, child)?;
            if record.kind == NodeKind::Element {
                children.push((child, record));
            }
        }
        if kind != "array" && children.is_empty() {
            let text = self.own_text(session, element)?;
            out.push_str(&leaf(&kind, text));
            return Ok(());
        }
        out.push(if kind == "array" { '[' } else { '{' });
        for (index, (child, record)) in children.into_iter().enumerate() {
            if index > 0 {
                out.push(',');
            }
            if kind != "array" {
                out.push_str(&quoted(&record.name));
                out.push(':');
            }
            self.write_json(session, child, depth + 1, out)?;
        }
        out.push(if kind == "array" { ']' } else { '}' });
        Ok(())
    }

    /// The texts right below an element, joined.
    fn own_text(&self, session: &mut Session, element: DomNode) -> Result<String> {
        let mut text = String::new();
        for child in self.children(session, element)? {
            let record = self.record(session, child)?;
            if record.is_text() {
                text.push_str(&record.value);
            }
        }
        Ok(text)
    }
}

/// A leaf by its kind; a text where its own says something else.
fn leaf(kind: &str, text: String) -> String {
    match kind {
        "boolean" => text.eq_ignore_ascii_case("true").to_string(),
        "null" => "null".to_owned(),
        "object" => "{}".to_owned(),
        "number" => match serde_json::from_str::<serde_json::Number>(text.trim()) {
            Ok(number) => number.to_string(),
            Err(_) => quoted(&text),
        },
        _ => quoted(&text),
    }
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Where reading has failed, as an offset in bytes.
fn syntax(json: &str, error: &serde_json::Error) -> DomError {
    let before = json.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len).sum::<usize>();
    let position = (before + error.column().saturating_sub(1)).min(json.len());
    DomError::Syntax { position, what: error.to_string() }
}

/// Writes the value that is read next into an element.
struct Writer<'a> {
    dom: &'a Dom,
    session: &'a mut Session,
    element: DomNode,
    /// What the document or the database has refused.
    failure: &'a mut Option<DomError>,
}

impl Writer<'_> {
    /// Does something to the document; its error ends the reading.
    fn does<E: serde::de::Error, R>(
        &mut self,
        work: impl FnOnce(&Dom, &mut Session) -> Result<R>,
    ) -> std::result::Result<R, E> {
        work(self.dom, self.session).map_err(|error| {
            *self.failure = Some(error);
            E::custom("the document refuses it")
        })
    }

    fn leaf<E: serde::de::Error>(mut self, kind: &str, text: &str) -> std::result::Result<(), E> {
        let element = self.element;
        self.does(|dom, session| {
            dom.set_attribute(session, element, "type", kind)?;
            dom.set_text_content(session, element, text)
        })
    }

    fn kind<E: serde::de::Error>(&mut self, kind: &str) -> std::result::Result<(), E> {
        let element = self.element;
        self.does(|dom, session| dom.set_attribute(session, element, "type", kind))
    }

    /// A new element at the end of this one.
    fn child<E: serde::de::Error>(&mut self, name: &str) -> std::result::Result<DomNode, E> {
        let element = self.element;
        self.does(|dom, session| {
            let child = dom.create_element(session, name)?;
            dom.append_child(session, element, child)?;
            Ok(child)
        })
    }

    fn of(&mut self, element: DomNode) -> Writer<'_> {
        Writer { dom: self.dom, session: self.session, element, failure: self.failure }
    }
}

impl<'de> DeserializeSeed<'de> for Writer<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> std::result::Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Writer<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value of JSON")
    }

    fn visit_unit<E: serde::de::Error>(mut self) -> std::result::Result<(), E> {
        self.kind("null")
    }

    fn visit_bool<E: serde::de::Error>(self, truth: bool) -> std::result::Result<(), E> {
        self.leaf("boolean", if truth { "true" } else { "false" })
    }

    fn visit_i64<E: serde::de::Error>(self, number: i64) -> std::result::Result<(), E> {
        self.leaf("number", &number.to_string())
    }

    fn visit_u64<E: serde::de::Error>(self, number: u64) -> std::result::Result<(), E> {
        self.leaf("number", &number.to_string())
    }

    fn visit_f64<E: serde::de::Error>(self, number: f64) -> std::result::Result<(), E> {
        self.leaf("number", &serde_json::Value::from(number).to_string())
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> std::result::Result<(), E> {
        self.leaf("string", text)
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> std::result::Result<(), A::Error> {
        self.kind("array")?;
        // The element is made before it is known whether there is one more, and taken away if not.
        loop {
            let element = self.child("val")?;
            if items.next_element_seed(self.of(element))?.is_none() {
                return self.does(|dom, session| dom.delete(session, element));
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut properties: A) -> std::result::Result<(), A::Error> {
        let mut is_empty = true;
        while let Some(name) = properties.next_key::<String>()? {
            is_empty = false;
            let element = self.child(&name)?;
            properties.next_value_seed(self.of(element))?;
        }
        match is_empty {
            true => self.kind("object"),
            false => Ok(()),
        }
    }
}
