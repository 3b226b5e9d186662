//! What can go wrong with a graph, and what to do then.
//!
//! Inside a transaction errors travel as [`perilune::Error`], with `?`; outside they are told apart again. So a caller matches
//! the same kinds wherever he stands:
//!
//! ```
//! use perilune_graph::Error;
//!
//! let inside: perilune::Error = Error::NoEdge(7).into();
//! assert!(matches!(Error::from(inside), Error::NoEdge(7)));
//! ```

use std::fmt;

use crate::VertexId;

/// The result of every operation on a graph.
pub type Result<T> = std::result::Result<T, Error>;

/// What an operation on a graph can answer instead of its result.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The database answered; conflicts among them, which a transaction's body hands on.
    Database(perilune::Error),
    /// No graph lies at that node.
    NotAGraph(String),
    /// The node has children already.
    NotEmpty(String),
    /// There is no vertex with that id.
    NoVertex(VertexId),
    /// There is a vertex with that id.
    VertexExists(VertexId),
    /// There is no edge with that id.
    NoEdge(i64),
    /// The vertex has edges, and was to be deleted only without.
    HasEdges(VertexId),
    /// A walk or an algorithm has come to a limit that it was given.
    Limit {
        /// What was limited: `vertices`, `edges` or `milliseconds`.
        what: &'static str,
        /// How many were allowed.
        limit: u64,
    },
    /// The cost of the edge is negative or no number, or it has no weight.
    Cost(i64),
    /// A name, an id or an option is not one.
    Invalid(String),
    /// A file could not be read or written.
    Io(std::io::Error),
    /// The nodes of the graph contradict each other.
    Damaged(String),
}

impl Error {
    /// The word by which programs in C, Lua and Node.js tell apart what a graph refuses; none: another part of it has failed.
    #[must_use]
    pub fn kind(&self) -> Option<&'static str> {
        Some(match self {
            Error::NotAGraph(_) => "NOT_A_GRAPH",
            Error::NotEmpty(_) => "NOT_EMPTY",
            Error::NoVertex(_) => "NO_VERTEX",
            Error::VertexExists(_) => "VERTEX_EXISTS",
            Error::NoEdge(_) => "NO_EDGE",
            Error::HasEdges(_) => "HAS_EDGES",
            Error::Cost(_) => "COST",
            _ => return None,
        })
    }

    pub(crate) fn invalid(why: impl Into<String>) -> Error {
        Error::Invalid(why.into())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Database(error) => error.fmt(f),
            Error::NotAGraph(node) => {
                write!(f, "no graph lies at {node}: create one there, or name another node")
            }
            Error::NotEmpty(node) => {
                write!(f, "{node} has children, which a graph would mix with: give it a node without any")
            }
            Error::NoVertex(id) => write!(f, "there is no vertex {id}: create it first"),
            Error::VertexExists(id) => write!(f, "there is a vertex {id}: use it, or choose another id"),
            Error::NoEdge(id) => write!(f, "there is no edge {id}: it may have been deleted"),
            Error::HasEdges(id) => {
                write!(f, "vertex {id} has edges: delete them first, or delete it with `Edges::Remove`")
            }
            Error::Limit { what, limit } => {
                write!(f, "the walk has come to its limit of {limit} {what}: allow more, or narrow the walk")
            }
            Error::Cost(edge) => {
                write!(f, "edge {edge} costs no number from 0 on: give it a weight, or use another cost")
            }
            Error::Invalid(why) => f.write_str(why),
            Error::Io(error) => error.fmt(f),
            Error::Damaged(what) => write!(f, "the graph is damaged, {what}: have `check` tell all of it"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Database(error) => Some(error),
            Error::Io(error) => Some(error),
            _ => None,
        }
    }
}

impl From<perilune::Error> for Error {
    fn from(error: perilune::Error) -> Error {
        match error {
            perilune::Error::Other(other) => match other.downcast::<Error>() {
                Ok(own) => *own,
                Err(other) => Error::Database(perilune::Error::Other(other)),
            },
            error => Error::Database(error),
        }
    }
}

impl From<Error> for perilune::Error {
    fn from(error: Error) -> perilune::Error {
        match error {
            Error::Database(error) => error,
            own => perilune::Error::other(own),
        }
    }
}
