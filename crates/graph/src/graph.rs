//! A graph: where its parts lie in the tree, how it is made and opened.
//!
//! Problem: a walk expands a vertex at a time, so the edges of a vertex must lie together, for both directions. Idea: an edge
//! has an entry below each of its ends whose key says all that a walk asks for, so that expanding a vertex is one scan, mostly
//! of one leaf, and fetches nothing. All nodes: `docs/format/graph.md`.
//!
//! ```
//! # let directory = std::env::temp_dir().join(format!("perilune-doc-graph-{}", std::process::id()));
//! # std::fs::create_dir_all(&directory).unwrap();
//! # let mut session = perilune::Database::open(directory.join("t.db"))?.session()?;
//! use perilune::node;
//! use perilune_graph::{Direction, Graph, GraphOptions};
//!
//! let mut graph = Graph::create(&mut session, &node!("^social")?, &GraphOptions::default())?;
//! let ada = graph.add_vertex(&mut session, "ada", &["Person"])?;
//! let ben = graph.add_vertex(&mut session, "ben", &["Person"])?;
//! let knows = graph.add_edge(&mut session, &ada, "KNOWS", &ben)?;
//! graph.set_edge_property(&mut session, knows, "since", 1833)?;
//! assert_eq!(graph.degree(&mut session, &ben, Direction::In, Some("KNOWS"))?, 1);
//! # let _ = std::fs::remove_dir_all(&directory);
//! # Ok::<(), perilune_graph::Error>(())
//! ```
//!
//! Invariants
//! - Each change is one transaction, or a level of the caller's: entries of both directions, degrees and indexes agree always.
//! - An id of an edge is used once. A handle takes ids ahead only outside of transactions, where nothing takes them back, and
//!   only for its own process.

use perilune::{Node, Session, Value};

use crate::limits::{ID_BLOCK, NAME_BYTES, VERTEX_BYTES};
use crate::{Error, Result, VertexId};

/// The version of the layout, in the node `("graph")`.
const LAYOUT: i64 = 1;

/// How a graph is made.
#[derive(Clone, Debug, Default)]
pub struct GraphOptions {
    /// The property of edges that is kept in their entries too, so that a walk has it without fetching it: their weight.
    pub weight: Option<String>,
}

/// A handle on a graph. It holds no state of the graph but ids of edges taken ahead; clones take their own.
#[derive(Clone, Debug)]
pub struct Graph {
    root: Node,
    pub(crate) vertex: Node,
    pub(crate) edge: Node,
    pub(crate) out: Node,
    pub(crate) inward: Node,
    pub(crate) label: Node,
    pub(crate) index: Node,
    pub(crate) weight: Option<String>,
    ahead: Ahead,
}

/// Ids of edges that a handle has taken ahead. They are its own: a clone of it has none, and neither has a process that was forked
/// from the one that took them.
#[derive(Debug, Default)]
struct Ahead {
    next: i64,
    left: usize,
    process: u32,
}

impl Clone for Ahead {
    fn clone(&self) -> Ahead {
        Ahead::default()
    }
}

impl Graph {
    /// Makes a graph below `root`, which may have a value, but no children.
    ///
    /// # Errors
    /// `NotEmpty`; `Invalid` for the name of a weight; else the database's.
    pub fn create(session: &mut Session, root: &Node, options: &GraphOptions) -> Result<Graph> {
        if let Some(weight) = &options.weight {
            check_name("a property", weight)?;
        }
        session.transaction(|session| {
            if session.data(root)?.has_descendants() {
                return Err(Error::NotEmpty(root.to_string()).into());
            }
            let mut mark = root.child("graph")?;
            session.set(&mark, LAYOUT)?;
            if let Some(weight) = &options.weight {
                mark.push("weight")?;
                session.set(&mark, weight)?;
            }
            Ok(())
        })?;
        Graph::at(root, options.weight.clone())
    }

    /// Opens the graph below `root`.
    ///
    /// # Errors
    /// `NotAGraph`, also for the layout of another version; else the database's.
    pub fn open(session: &mut Session, root: &Node) -> Result<Graph> {
        let mark = root.child("graph")?;
        if session.get(&mark)? != Some(Value::Int(LAYOUT)) {
            return Err(Error::NotAGraph(root.to_string()));
        }
        let weight = session.get_str(&mark.with("weight")?)?.map(str::to_owned);
        Graph::at(root, weight)
    }

    fn at(root: &Node, weight: Option<String>) -> Result<Graph> {
        Ok(Graph {
            vertex: root.child("vertex")?,
            edge: root.child("edge")?,
            out: root.child("out")?,
            inward: root.child("in")?,
            label: root.child("label")?,
            index: root.child("index")?,
            root: root.clone(),
            weight,
            ahead: Ahead::default(),
        })
    }

    /// The node below which it lies.
    #[must_use]
    pub fn root(&self) -> &Node {
        &self.root
    }

    /// The property of edges that is their weight.
    #[must_use]
    pub fn weight(&self) -> Option<&str> {
        self.weight.as_deref()
    }

    /// How many vertices it has. This counts them; it does not read them.
    ///
    /// # Errors
    /// The database's.
    pub fn count_vertices(&self, session: &mut Session) -> Result<u64> {
        Ok(session.count_children(&self.vertex)?)
    }

    /// How many edges it has. This counts them; it does not read them.
    ///
    /// # Errors
    /// The database's.
    pub fn count_edges(&self, session: &mut Session) -> Result<u64> {
        Ok(session.count_children(&self.edge)?)
    }

    /// An id for a new edge.
    pub(crate) fn take_id(&mut self, session: &mut Session) -> Result<i64> {
        let process = std::process::id();
        if self.ahead.left == 0 || self.ahead.process != process {
            if session.depth() > 0 {
                return self.take_ids(session, 1);
            }
            self.ahead = Ahead { next: self.take_ids(session, ID_BLOCK)?, left: ID_BLOCK, process };
        }
        self.ahead.left -= 1;
        self.ahead.next += 1;
        Ok(self.ahead.next - 1)
    }

    /// The first of `count` consecutive ids for new edges.
    pub(crate) fn take_ids(&mut self, session: &mut Session, count: usize) -> Result<i64> {
        let last = session.increment(&self.root.child("graph")?.with("edges")?, count)?;
        let used_up = || Error::Damaged("its ids of edges are used up".to_owned());
        Ok(last.as_i64().ok_or_else(used_up)? - count as i64 + 1)
    }

    /// The node of a vertex.
    pub(crate) fn vertex_node(&self, id: &VertexId) -> Result<Node> {
        check_id(id)?;
        Ok(self.vertex.child(id)?)
    }

    /// The node of a vertex that there is.
    pub(crate) fn known_vertex(&self, session: &mut Session, id: &VertexId) -> Result<Node> {
        let node = self.vertex_node(id)?;
        match session.get_ref(&node)? {
            Some(_) => Ok(node),
            None => Err(Error::NoVertex(id.clone())),
        }
    }
}

/// Makes sure that a label, a type or the name of a property is one.
pub(crate) fn check_name(what: &str, name: &str) -> Result<()> {
    if name.is_empty() || name.len() > NAME_BYTES {
        return Err(Error::invalid(format!(
            "{what} has a name of 1 to {NAME_BYTES} bytes, not {}",
            name.len()
        )));
    }
    Ok(())
}

/// Makes sure that an id is not too long.
pub(crate) fn check_id(id: &VertexId) -> Result<()> {
    if id.is_too_long() {
        return Err(Error::invalid(format!("an id of a vertex has at most {VERTEX_BYTES} bytes")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use perilune::{node, Database};

    use super::*;

    #[test]
    fn ids_taken_ahead_are_for_the_handle_and_the_process_that_took_them() -> Result<()> {
        let mut session = Database::open("memory:")?.session()?;
        let mut graph = Graph::create(&mut session, &node!("^g")?, &GraphOptions::default())?;
        let first = graph.take_id(&mut session)?;
        assert_eq!(graph.take_id(&mut session)?, first + 1);
        let block = ID_BLOCK as i64;
        assert_eq!(graph.clone().take_id(&mut session)?, first + block);
        // As a child of fork finds it: taken by another process.
        graph.ahead.process ^= 1;
        assert_eq!(graph.take_id(&mut session)?, first + 2 * block);
        assert_eq!(graph.take_id(&mut session)?, first + 2 * block + 1);
        Ok(())
    }
}
