//! Calls by name: how bindings use documents. One table of the DOM's names, in which arguments and answers have types.
//!
//! Problem: the DOM has a hundred calls, and each of C, Lua and JavaScript would need a function for each. Idea: they pass a
//! name and values, and get values back; a new call is one line of a table here, and all languages have it.
//!
//! A call on a node takes the node's number first: `appendChild` takes parent and child. docs/reference/dom.md lists the names.
//!
//! Invariants
//! - A call is one transaction, as the function of this crate that it calls.
//! - An argument of a wrong type, or one too many, is an error before anything happens.

mod given;
mod of_documents;
mod of_elements;
mod of_nodes;
mod of_texts;

use perilune::{Session, Value};

pub use self::given::Argument;
use self::given::Given;
use crate::{Dom, DomError, DomNode, Result};

/// What a call has answered.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// Nothing: a change is made, or what was asked for does not exist.
    Nothing,
    /// A text, a number or a truth value.
    Value(Value),
    /// A node.
    Node(DomNode),
    /// Texts and numbers.
    Values(Vec<Value>),
    /// Nodes.
    Nodes(Vec<DomNode>),
}

impl From<()> for Answer {
    fn from((): ()) -> Answer {
        Answer::Nothing
    }
}

impl From<bool> for Answer {
    fn from(truth: bool) -> Answer {
        Answer::Value(Value::Bool(truth))
    }
}

impl From<i64> for Answer {
    fn from(number: i64) -> Answer {
        Answer::Value(Value::Int(number))
    }
}

impl From<String> for Answer {
    fn from(text: String) -> Answer {
        Answer::Value(Value::String(text.into_bytes()))
    }
}

impl From<Vec<String>> for Answer {
    fn from(texts: Vec<String>) -> Answer {
        Answer::Values(texts.into_iter().map(|text| Value::String(text.into_bytes())).collect())
    }
}

impl From<DomNode> for Answer {
    fn from(node: DomNode) -> Answer {
        Answer::Node(node)
    }
}

impl From<Vec<DomNode>> for Answer {
    fn from(nodes: Vec<DomNode>) -> Answer {
        Answer::Nodes(nodes)
    }
}

impl<T: Into<Answer>> From<Option<T>> for Answer {
    fn from(found: Option<T>) -> Answer {
        found.map_or(Answer::Nothing, Into::into)
    }
}

/// What a group of calls says of a name: the answer, or that the name is not one of its own.
type Found = Result<Option<Answer>>;

/// The answer of a call that a group knows.
fn done(answer: impl Into<Answer>) -> Found {
    Ok(Some(answer.into()))
}

impl Dom {
    /// Makes the call `name` with `arguments`.
    ///
    /// # Errors
    /// `Call` for a name that there is not and for arguments that it does not take; what the call itself fails with.
    pub fn call(&self, session: &mut Session, name: &str, arguments: &[Argument<'_>]) -> Result<Answer> {
        let groups =
            [of_nodes::links, of_documents::calls, of_elements::calls, of_nodes::changes, of_texts::calls];
        for group in groups {
            let mut given = Given::new(name, arguments);
            if let Some(answer) = group(self, session, &mut given)? {
                return Ok(answer);
            }
        }
        Err(DomError::Call(format!("a document has no call {name:?}: docs/reference/dom.md lists them")))
    }
}
