//! Graphs in the tree: vertices with labels and properties, edges between them, walks over them.
//!
//! A [`Graph`] lies below any node of a database, and all processes that use the database see it. Its nodes are documented
//! (`docs/format/graph.md`), so that whoever reads by node needs nothing of this crate.
#![forbid(unsafe_code)]

pub mod algorithm;
pub mod ask;
pub mod export;
pub mod import;
pub mod limits;

mod edge;
mod error;
mod vertex;

mod graph;

mod adjacency;
mod budget;
mod check;
mod edges;
mod index;
mod scan;
mod vertices;

mod bulk;

mod cost;
mod path;
mod traversal;
mod view;

pub mod request;
mod statistics;

pub use crate::budget::Limits;
pub use crate::bulk::{Missing, NewEdge, NewVertex};
pub use crate::check::CheckReport;
pub use crate::cost::Cost;
pub use crate::edge::{Direction, Edge, Reach};
pub use crate::error::{Error, Result};
pub use crate::graph::{Graph, GraphOptions};
pub use crate::path::Path;
pub use crate::request::Request;
pub use crate::scan::EdgeScan;
pub use crate::statistics::Statistics;
pub use crate::traversal::{Evaluation, Journey, Step, Traversal, Uniqueness, Walk};
pub use crate::vertex::VertexId;
pub use crate::vertices::Edges;
pub use crate::view::View;
