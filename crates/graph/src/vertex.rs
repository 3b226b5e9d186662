//! The names of vertices: one subscript each, an integer or bytes.
//!
//! A vertex may stand for something that lies elsewhere in the database, a row of a table or any node: then the text of that
//! node is its id, so that row 10 of `^users` and row 10 of `^cities` are two vertices.
//!
//! ```
//! use perilune::node;
//! use perilune_graph::VertexId;
//!
//! assert_eq!(VertexId::from("7"), VertexId::from(7));
//! assert_eq!(VertexId::of_node(&node!("^users", 10)?).to_string(), "^users(10)");
//! # Ok::<(), perilune::Error>(())
//! ```
//!
//! Invariant: ids that are one subscript are one id. Bytes that are a canonical integer within `i64` are held as that integer.

use std::fmt;
use std::sync::Arc;

use perilune::key::KeyBuf;
use perilune::{Field, IntoSubscript, Node, Subscript};

use crate::limits::VERTEX_BYTES;

/// The id of a vertex, at most [`crate::limits::VERTEX_BYTES`] bytes. Integers sort before all others.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VertexId(Name);

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Name {
    Int(i64),
    Bytes(Arc<[u8]>),
}

impl VertexId {
    /// The id of the vertex that stands for a node of the database: the node's text.
    #[must_use]
    pub fn of_node(node: &Node) -> VertexId {
        VertexId::from(node.to_string().as_str())
    }

    /// The id as an integer, if it is one.
    #[must_use]
    pub fn as_i64(&self) -> Option<i64> {
        match self.0 {
            Name::Int(int) => Some(int),
            Name::Bytes(_) => None,
        }
    }

    /// The bytes of an id that is no integer.
    #[must_use]
    pub fn as_bytes(&self) -> Option<&[u8]> {
        match &self.0 {
            Name::Int(_) => None,
            Name::Bytes(bytes) => Some(bytes),
        }
    }

    /// The node that the vertex stands for, if its id is the text of one.
    #[must_use]
    pub fn node(&self) -> Option<Node> {
        match &self.0 {
            Name::Bytes(bytes) if bytes.first() == Some(&b'^') => {
                Node::parse(std::str::from_utf8(bytes).ok()?).ok()
            }
            _ => None,
        }
    }

    pub(crate) fn from_subscript(subscript: &Subscript<'_>) -> VertexId {
        match subscript.as_i64() {
            Some(int) => VertexId::from(int),
            None => VertexId(Name::Bytes(subscript.to_text().as_ref().into())),
        }
    }

    pub(crate) fn from_field(field: Field<'_>) -> Option<VertexId> {
        match field {
            Field::Int(int) => Some(VertexId::from(int)),
            Field::Text(text) => Some(VertexId::from(text)),
            _ => None,
        }
    }

    pub(crate) fn as_field(&self) -> Field<'_> {
        match &self.0 {
            Name::Int(int) => Field::Int(*int),
            Name::Bytes(bytes) => Field::Text(bytes),
        }
    }

    pub(crate) fn is_too_long(&self) -> bool {
        matches!(&self.0, Name::Bytes(bytes) if bytes.len() > VERTEX_BYTES)
    }
}

impl From<i64> for VertexId {
    fn from(int: i64) -> VertexId {
        VertexId(Name::Int(int))
    }
}

impl From<i32> for VertexId {
    fn from(int: i32) -> VertexId {
        VertexId(Name::Int(int.into()))
    }
}

impl From<&[u8]> for VertexId {
    fn from(bytes: &[u8]) -> VertexId {
        match Subscript::from_bytes(bytes).as_i64() {
            Some(int) => VertexId(Name::Int(int)),
            None => VertexId(Name::Bytes(bytes.into())),
        }
    }
}

impl From<&str> for VertexId {
    fn from(text: &str) -> VertexId {
        VertexId::from(text.as_bytes())
    }
}

impl From<&VertexId> for VertexId {
    fn from(id: &VertexId) -> VertexId {
        id.clone()
    }
}

impl IntoSubscript for &VertexId {
    fn push_to(self, key: &mut KeyBuf) -> perilune::Result<()> {
        match &self.0 {
            Name::Int(int) => int.push_to(key),
            Name::Bytes(bytes) => bytes.as_ref().push_to(key),
        }
    }
}

impl fmt::Display for VertexId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Name::Int(int) => int.fmt(f),
            Name::Bytes(bytes) => f.write_str(&String::from_utf8_lossy(bytes)),
        }
    }
}
