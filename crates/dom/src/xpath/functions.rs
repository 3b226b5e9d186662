//! The 27 functions of XPath's core library.

use super::evaluate::{Evaluator, Place};
use super::expression::Expression;
use super::tree::Item;
use super::value::{normalized, round, Inner};
use crate::characters::is_space;
use crate::{DomError, NodeKind, Result};

/// Names, and how many arguments they take at least and at most.
const FUNCTIONS: [(&str, usize, usize); 27] = [
    ("boolean", 1, 1),
    ("ceiling", 1, 1),
    ("concat", 2, usize::MAX),
    ("contains", 2, 2),
    ("count", 1, 1),
    ("false", 0, 0),
    ("floor", 1, 1),
    ("id", 1, 1),
    ("lang", 1, 1),
    ("last", 0, 0),
    ("local-name", 0, 1),
    ("name", 0, 1),
    ("namespace-uri", 0, 1),
    ("normalize-space", 0, 1),
    ("not", 1, 1),
    ("number", 0, 1),
    ("position", 0, 0),
    ("round", 1, 1),
    ("starts-with", 2, 2),
    ("string", 0, 1),
    ("string-length", 0, 1),
    ("substring", 2, 3),
    ("substring-after", 2, 2),
    ("substring-before", 2, 2),
    ("sum", 1, 1),
    ("translate", 3, 3),
    ("true", 0, 0),
];

impl Evaluator<'_, '_> {
    pub(super) fn call(&mut self, name: &str, arguments: &[Expression], place: Place) -> Result<Inner> {
        let Some(&(_, least, most)) = FUNCTIONS.iter().find(|(known, ..)| *known == name) else {
            return Err(DomError::Evaluation(format!("there is no function {name}")));
        };
        if arguments.len() < least || arguments.len() > most {
            return Err(DomError::Evaluation(format!("{name} does not take {} arguments", arguments.len())));
        }
        let mut values = Vec::with_capacity(arguments.len());
        for argument in arguments {
            values.push(self.evaluate(argument, place)?);
        }
        match name {
            "last" => return Ok(Inner::Number(place.size as f64)),
            "position" => return Ok(Inner::Number(place.position as f64)),
            "true" | "false" => return Ok(Inner::Boolean(name == "true")),
            _ => {}
        }
        if values.is_empty() {
            values.push(Inner::Nodes(vec![place.item]));
        }
        match name {
            "count" | "sum" | "id" | "local-name" | "name" | "namespace-uri" => {
                self.about_nodes(name, values)
            }
            "boolean" => Ok(Inner::Boolean(self.truth(&values[0]))),
            "not" => Ok(Inner::Boolean(!self.truth(&values[0]))),
            "lang" => {
                let language = self.text(&values[0])?;
                self.lang(&language, place.item)
            }
            "number" => Ok(Inner::Number(self.number(&values[0])?)),
            "floor" => Ok(Inner::Number(self.number(&values[0])?.floor())),
            "ceiling" => Ok(Inner::Number(self.number(&values[0])?.ceil())),
            "round" => Ok(Inner::Number(round(self.number(&values[0])?))),
            "substring" => self.substring(&values),
            _ => self.about_texts(name, &values),
        }
    }

    fn about_nodes(&mut self, name: &str, mut values: Vec<Inner>) -> Result<Inner> {
        let value = values.swap_remove(0);
        if name == "id" {
            return self.id(value);
        }
        let nodes = self.nodes(value, name)?;
        match name {
            "count" => return Ok(Inner::Number(nodes.len() as f64)),
            "sum" => {
                let mut sum = 0.0;
                for node in nodes {
                    sum += self.number(&Inner::Nodes(vec![node]))?;
                }
                return Ok(Inner::Number(sum));
            }
            _ => {}
        }
        let Some(&first) = nodes.first() else { return Ok(Inner::Text(String::new())) };
        if let Some(number) = first.namespace {
            let prefix = self.tree.namespaces[number as usize].0.clone();
            return Ok(Inner::Text(if name == "namespace-uri" { String::new() } else { prefix }));
        }
        let record = self.tree.record(first.node)?;
        let named =
            matches!(record.kind, NodeKind::Element | NodeKind::Attribute | NodeKind::ProcessingInstruction);
        Ok(Inner::Text(match name {
            _ if !named => String::new(),
            "name" => record.name.clone(),
            "local-name" => record.name.rsplit(':').next().unwrap_or_default().to_owned(),
            _ => self.tree.expanded(first.node)?.0,
        }))
    }

    fn id(&mut self, value: Inner) -> Result<Inner> {
        let mut texts = Vec::new();
        match value {
            Inner::Nodes(nodes) => {
                for node in nodes {
                    texts.push(self.tree.string_of(node)?);
                }
            }
            other => texts.push(self.text(&other)?),
        }
        let document = self.tree.dom.document_node(self.tree.session)?;
        let mut found = Vec::new();
        for id in texts.iter().flat_map(|text| text.split(is_space)).filter(|id| !id.is_empty()) {
            if let Some(element) = self.tree.dom.get_element_by_id(self.tree.session, id)? {
                if Some(self.tree.top(element)?) == document {
                    found.push(Item::of(element));
                }
            }
        }
        Ok(Inner::Nodes(self.tree.in_order(found)?))
    }

    fn lang(&mut self, language: &str, item: Item) -> Result<Inner> {
        let mut at = Some(item.node);
        while let Some(node) = at {
            let record = self.tree.record(node)?;
            if let Some(attribute) = record.attribute("xml:lang") {
                let known = self.tree.record(attribute)?.value.to_ascii_lowercase();
                let rest = known.strip_prefix(&language.to_ascii_lowercase());
                return Ok(Inner::Boolean(rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))));
            }
            at = record.parent;
        }
        Ok(Inner::Boolean(false))
    }

    /// Positions count characters from 1, and are rounded; NaN takes nothing.
    fn substring(&mut self, values: &[Inner]) -> Result<Inner> {
        let text = self.text(&values[0])?;
        let from = round(self.number(&values[1])?);
        let to = match values.get(2) {
            Some(length) => from + round(self.number(length)?),
            None => f64::INFINITY,
        };
        let inside = |position: f64| position >= from && position < to;
        let taken = text.chars().enumerate().filter(|(index, _)| inside((index + 1) as f64));
        Ok(Inner::Text(taken.map(|(_, c)| c).collect()))
    }

    fn about_texts(&mut self, name: &str, values: &[Inner]) -> Result<Inner> {
        let mut texts = Vec::with_capacity(values.len());
        for value in values {
            texts.push(self.text(value)?);
        }
        let first = texts[0].as_str();
        let second = texts.get(1).map_or("", String::as_str);
        Ok(match name {
            "concat" => Inner::Text(texts.concat()),
            "contains" => Inner::Boolean(first.contains(second)),
            "starts-with" => Inner::Boolean(first.starts_with(second)),
            "string-length" => Inner::Number(first.chars().count() as f64),
            "normalize-space" => Inner::Text(normalized(first)),
            "substring-before" => {
                Inner::Text(first.split_once(second).map_or("", |(before, _)| before).to_owned())
            }
            "substring-after" => {
                Inner::Text(first.split_once(second).map_or("", |(_, behind)| behind).to_owned())
            }
            "translate" => {
                let to: Vec<char> = texts[2].chars().collect();
                let translated =
                    first.chars().filter_map(|c| match second.chars().position(|known| known == c) {
                        Some(at) => to.get(at).copied(),
                        None => Some(c),
                    });
                Inner::Text(translated.collect())
            }
            _ => Inner::Text(first.to_owned()),
        })
    }
}
