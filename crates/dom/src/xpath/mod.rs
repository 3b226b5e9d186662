//! XPath 1.0 over documents in the tree: all axes, functions and conversions.
//!
//! An expression is parsed once and evaluated as of one moment. Nodes are read when they are reached and remembered
//! until the end. `//name` and `//@name` at the beginning of a path, and `id()`, use the document's indices.
//!
//! Invariants
//! - A set of nodes is in document order and has each node once.
//! - Depth of expressions is bounded by the parser; walks over the document keep stacks of their own.

mod axes;
mod evaluate;
mod expression;
mod functions;
mod lexer;
mod parser;
pub(crate) mod tree;
mod value;

use std::collections::HashMap;

use perilune::Session;

use self::evaluate::{Evaluator, Place};
use self::expression::Expression;
use self::tree::{Item, Tree};
use self::value::Inner;
use crate::{Dom, DomError, DomNode, Result};

pub use self::value::{XPathItem, XPathValue};

/// An expression, parsed.
#[derive(Clone, Debug)]
pub struct XPath {
    expression: Expression,
}

/// What an expression may refer to, and how much it may look at.
#[derive(Clone, Debug)]
pub struct Surroundings {
    /// Names of namespaces by the prefixes that the expression uses; those of the document do not count.
    pub namespaces: HashMap<String, String>,
    /// Texts, numbers and truth values by the names of variables, without `$`.
    pub variables: HashMap<String, XPathValue>,
    /// How many looks at nodes an evaluation may take.
    pub nodes_max: usize,
}

impl Default for Surroundings {
    fn default() -> Surroundings {
        Surroundings { namespaces: HashMap::new(), variables: HashMap::new(), nodes_max: 100_000_000 }
    }
}

impl Surroundings {
    fn variable(&self, name: &str) -> Result<Inner> {
        match self.variables.get(name) {
            Some(XPathValue::Number(number)) => Ok(Inner::Number(*number)),
            Some(XPathValue::Text(text)) => Ok(Inner::Text(text.clone())),
            Some(XPathValue::Boolean(truth)) => Ok(Inner::Boolean(*truth)),
            Some(XPathValue::Nodes(items)) => {
                let node = |item: &XPathItem| match item {
                    XPathItem::Node(node) => Ok(Item::of(*node)),
                    XPathItem::Namespace { .. } => {
                        Err(DomError::Evaluation(format!("the variable {name} holds a namespace")))
                    }
                };
                Ok(Inner::Nodes(items.iter().map(node).collect::<Result<_>>()?))
            }
            None => Err(DomError::Evaluation(format!("there is no variable {name}"))),
        }
    }
}

impl XPath {
    /// Parses an expression.
    ///
    /// # Errors
    /// `Expression` with the place of what cannot be read, also for more than 200 brackets in each other.
    pub fn parse(text: &str) -> Result<XPath> {
        Ok(XPath { expression: parser::parse(text)? })
    }
}

impl Dom {
    /// Evaluates `xpath` at `node`, as of one moment.
    ///
    /// # Errors
    /// `Evaluation` for unknown names and wrong types; `TooManyNodes`; `NotFound`, `Damaged`, the database's.
    pub fn evaluate(
        &self,
        session: &mut Session,
        xpath: &XPath,
        node: DomNode,
        surroundings: &Surroundings,
    ) -> Result<XPathValue> {
        self.at_one_moment(session, |session| {
            let tree = Tree::new(session, self, surroundings.nodes_max);
            let mut evaluator = Evaluator { tree, surroundings };
            let place = Place { item: Item::of(node), position: 1, size: 1 };
            let value = evaluator.evaluate(&xpath.expression, place)?;
            let tree = &evaluator.tree;
            let public = |item: Item| match item.namespace {
                None => XPathItem::Node(item.node),
                Some(number) => {
                    let (prefix, uri) = tree.namespaces[number as usize].clone();
                    XPathItem::Namespace { element: item.node, prefix, uri }
                }
            };
            Ok(match value {
                Inner::Nodes(items) => XPathValue::Nodes(items.into_iter().map(public).collect()),
                Inner::Number(number) => XPathValue::Number(number),
                Inner::Text(text) => XPathValue::Text(text),
                Inner::Boolean(truth) => XPathValue::Boolean(truth),
            })
        })
    }

    /// The nodes that `xpath` gives from the document's own node; namespaces are left out. Empty without a document.
    ///
    /// # Errors
    /// As [`XPath::parse`] and [`Dom::evaluate`]; `Evaluation` if the value is no set of nodes.
    pub fn select(&self, session: &mut Session, xpath: &str) -> Result<Vec<DomNode>> {
        let xpath = XPath::parse(xpath)?;
        let Some(document) = self.document_node(session)? else { return Ok(Vec::new()) };
        match self.evaluate(session, &xpath, document, &Surroundings::default())? {
            XPathValue::Nodes(items) => Ok(items
                .into_iter()
                .filter_map(|item| match item {
                    XPathItem::Node(node) => Some(node),
                    XPathItem::Namespace { .. } => None,
                })
                .collect()),
            _ => Err(DomError::Evaluation("the expression gives no nodes: use evaluate".to_owned())),
        }
    }
}
