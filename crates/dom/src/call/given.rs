//! The arguments of a call, taken one after the other, each with the type that the call wants.

use perilune::ValueRef;

use crate::{DomError, DomNode, Result};

/// An argument of a call.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Argument<'a> {
    /// None: as if it were left out, also between others.
    Nothing,
    /// A node's number, or another one.
    Int(i64),
    /// A number that is no integer.
    Double(f64),
    /// A truth value.
    Bool(bool),
    /// A text.
    Text(&'a str),
}

/// The arguments that are left.
pub(super) struct Given<'a> {
    pub(super) name: &'a str,
    all: &'a [Argument<'a>],
    at: usize,
}

impl<'a> Given<'a> {
    pub(super) fn new(name: &'a str, all: &'a [Argument<'a>]) -> Given<'a> {
        Given { name, all, at: 0 }
    }

    fn next(&mut self) -> Argument<'a> {
        self.at += 1;
        self.all.get(self.at - 1).copied().unwrap_or(Argument::Nothing)
    }

    /// The error that argument `at`, the last that was taken, is not `wanted`.
    fn wrong<T>(&self, wanted: &str) -> Result<T> {
        Err(DomError::Call(format!("{}: argument {} must be {wanted}", self.name, self.at)))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.at >= self.all.len()
    }

    /// Makes sure that no argument is left.
    pub(super) fn end(&self) -> Result<()> {
        match self.all[self.at.min(self.all.len())..].iter().all(|left| *left == Argument::Nothing) {
            true => Ok(()),
            false => Err(DomError::Call(format!("{} takes {} arguments at most", self.name, self.at))),
        }
    }

    pub(super) fn optional_node(&mut self) -> Result<Option<DomNode>> {
        match self.next() {
            Argument::Nothing => Ok(None),
            Argument::Int(number) => Ok(Some(DomNode::from_number(number))),
            _ => self.wrong("a node's number"),
        }
    }

    pub(super) fn node(&mut self) -> Result<DomNode> {
        match self.optional_node()? {
            Some(node) => Ok(node),
            None => self.wrong("a node's number"),
        }
    }

    pub(super) fn optional_text(&mut self) -> Result<Option<&'a str>> {
        match self.next() {
            Argument::Nothing => Ok(None),
            Argument::Text(text) => Ok(Some(text)),
            _ => self.wrong("a text"),
        }
    }

    pub(super) fn text(&mut self) -> Result<&'a str> {
        match self.optional_text()? {
            Some(text) => Ok(text),
            None => self.wrong("a text"),
        }
    }

    pub(super) fn truth(&mut self) -> Result<bool> {
        match self.next() {
            Argument::Nothing => Ok(false),
            Argument::Bool(truth) => Ok(truth),
            _ => self.wrong("true or false"),
        }
    }

    /// A number from 0.
    pub(super) fn size(&mut self) -> Result<usize> {
        match self.optional_size()? {
            Some(size) => Ok(size),
            None => self.wrong("a whole number from 0"),
        }
    }

    pub(super) fn optional_size(&mut self) -> Result<Option<usize>> {
        match self.next() {
            Argument::Nothing => Ok(None),
            Argument::Int(number) if number >= 0 => Ok(usize::try_from(number).ok()),
            _ => self.wrong("a whole number from 0"),
        }
    }

    /// Any value.
    pub(super) fn any(&mut self) -> Argument<'a> {
        self.next()
    }
}

impl<'a> Argument<'a> {
    /// As a value of the database.
    pub(super) fn value(self) -> ValueRef<'a> {
        match self {
            Argument::Nothing => ValueRef::Null,
            Argument::Int(number) => ValueRef::Int(number),
            Argument::Double(number) => ValueRef::Double(number),
            Argument::Bool(truth) => ValueRef::Bool(truth),
            Argument::Text(text) => ValueRef::String(text.as_bytes()),
        }
    }
}
