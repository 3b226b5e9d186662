//! Values of XPath and how they turn into each other.

use super::tree::Item;
use crate::characters::{is_space, trim};
use crate::DomNode;

/// A node as XPath has it: one of the document, or a namespace of an element.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum XPathItem {
    /// A node of the document.
    Node(DomNode),
    /// A namespace that is in force at an element.
    Namespace {
        /// The element.
        element: DomNode,
        /// The prefix; empty for the default.
        prefix: String,
        /// Its name.
        uri: String,
    },
}

/// What an expression gives.
#[derive(Clone, Debug, PartialEq)]
pub enum XPathValue {
    /// Nodes in document order, each once.
    Nodes(Vec<XPathItem>),
    /// A number, by IEEE 754.
    Number(f64),
    /// A text.
    Text(String),
    /// A truth value.
    Boolean(bool),
}

/// A value while an expression is evaluated.
#[derive(Clone, Debug)]
pub(super) enum Inner {
    /// Nodes in document order, each once.
    Nodes(Vec<Item>),
    Number(f64),
    Text(String),
    Boolean(bool),
}

/// A text as a number: digits with one point, perhaps a minus sign; NaN for all else.
pub(super) fn number_of(text: &str) -> f64 {
    let text = trim(text);
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_number = digits.chars().any(|c| c.is_ascii_digit())
        && digits.chars().all(|c| c.is_ascii_digit() || c == '.')
        && digits.matches('.').count() <= 1;
    match is_number {
        true => text.parse().unwrap_or(f64::NAN),
        false => f64::NAN,
    }
}

/// A number as text: never with an exponent, and no sign before zero.
pub(super) fn text_of(number: f64) -> String {
    if number.is_infinite() {
        return if number > 0.0 { "Infinity" } else { "-Infinity" }.to_owned();
    }
    if number == 0.0 {
        return "0".to_owned();
    }
    number.to_string()
}

/// Half up, as XPath rounds.
pub(super) fn round(number: f64) -> f64 {
    if number.fract() == 0.0 || !number.is_finite() {
        return number;
    }
    let below = number.floor();
    let rounded = if number - below >= 0.5 { below + 1.0 } else { below };
    rounded.copysign(if rounded == 0.0 { number } else { rounded })
}

/// White space at the ends removed and one space for each run inside.
pub(super) fn normalized(text: &str) -> String {
    text.split(is_space).filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}
