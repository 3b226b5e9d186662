//! A node's number and kind: what all modules speak about.

/// A node of a document by its number, from 1. Numbers are never used again within a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DomNode(pub(crate) i64);

impl DomNode {
    /// The node with this number, whether or not it exists.
    #[must_use]
    pub fn from_number(number: i64) -> DomNode {
        DomNode(number)
    }

    /// Its number.
    #[must_use]
    pub fn number(self) -> i64 {
        self.0
    }
}

/// What a node is, with DOM's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names of the DOM")]
pub enum NodeKind {
    Element = 1,
    Attribute = 2,
    Text = 3,
    CData = 4,
    ProcessingInstruction = 7,
    Comment = 8,
    Document = 9,
    DocumentType = 10,
}

impl NodeKind {
    /// DOM's number, `nodeType`.
    #[must_use]
    pub fn number(self) -> i64 {
        self as i64
    }

    /// The kind with DOM's number `number`.
    #[must_use]
    pub fn from_number(number: i64) -> Option<NodeKind> {
        use NodeKind::*;
        [Element, Attribute, Text, CData, ProcessingInstruction, Comment, Document, DocumentType]
            .into_iter()
            .find(|kind| kind.number() == number)
    }
}
