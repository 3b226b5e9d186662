//! Import of vertices and edges: from CSV and JSON Lines, or from any iterator.
//!
//! ```
//! # let mut session = perilune::Database::open("memory:")?.session()?;
//! use perilune::node;
//! use perilune_graph::{import, Graph, GraphOptions, Missing};
//!
//! let mut graph = Graph::create(&mut session, &node!("^g")?, &GraphOptions::default())?;
//! let text = "source,type,target,since\nada,KNOWS,ben,1833\nben,KNOWS,cem,\n";
//! let edges = import::from_csv(text.as_bytes())?;
//! let count = graph.import(&mut session, edges, Missing::Create, &mut |_| {})?;
//! assert_eq!((count, graph.count_vertices(&mut session)?), (2, 3));
//! # Ok::<(), perilune_graph::Error>(())
//! ```
//!
//! Invariant: an import that fails has added the edges or vertices before the batch in which it failed, whole batches of 500: each is one
//! transaction. The error names the line.

mod csv;
mod json_lines;

use perilune::Session;

pub use self::csv::{from_csv, vertices_from_csv, CsvEdges, CsvVertices};
pub use self::json_lines::{from_json_lines, vertices_from_json_lines, JsonLinesEdges, JsonLinesVertices};
use crate::{Error, Graph, Missing, NewEdge, NewVertex, Result};

/// Edges or vertices of one transaction.
const BATCH: usize = 500;

/// Bytes of the longest record of a file.
const RECORD_BYTES: usize = 1 << 20;

impl Graph {
    /// Adds all edges that `edges` answers, and tells `progress` after each batch how many have been added; answers how many.
    ///
    /// # Errors
    /// As the iterator, and as [`Graph::add_edges`].
    pub fn import(
        &mut self,
        session: &mut Session,
        edges: impl IntoIterator<Item = Result<NewEdge>>,
        missing: Missing,
        progress: &mut dyn FnMut(u64),
    ) -> Result<u64> {
        in_batches(edges, progress, |batch| self.add_edges(session, batch, missing).map(drop))
    }

    /// Adds all vertices that `vertices` answers, as [`Graph::add_vertices`] does, and tells `progress` after each batch how many
    /// have been added; answers how many.
    ///
    /// # Errors
    /// As the iterator, and as [`Graph::add_vertices`].
    pub fn import_vertices(
        &self,
        session: &mut Session,
        vertices: impl IntoIterator<Item = Result<NewVertex>>,
        progress: &mut dyn FnMut(u64),
    ) -> Result<u64> {
        in_batches(vertices, progress, |batch| self.add_vertices(session, batch))
    }
}

fn in_batches<T>(
    things: impl IntoIterator<Item = Result<T>>,
    progress: &mut dyn FnMut(u64),
    mut add: impl FnMut(&[T]) -> Result<()>,
) -> Result<u64> {
    let mut batch = Vec::with_capacity(BATCH);
    let mut count = 0;
    let mut things = things.into_iter();
    loop {
        let thing = things.next().transpose()?;
        let is_end = thing.is_none();
        batch.extend(thing);
        if batch.len() == BATCH || (is_end && !batch.is_empty()) {
            add(&batch)?;
            count += batch.len() as u64;
            batch.clear();
            progress(count);
        }
        if is_end {
            return Ok(count);
        }
    }
}

/// What is wrong with a file, and where.
fn at_line(line: u64, why: impl std::fmt::Display) -> Error {
    Error::invalid(format!("line {line}: {why}"))
}
