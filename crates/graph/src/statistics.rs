//! What a graph consists of, in numbers: for those who look at one for the first time.
//!
//! Example: `graph.snapshot(&database)?.statistics()?.types` are the types of edges, and how many there are of each.
//!
//! Invariant: edges are counted by the degrees at their sources; no edge is read.

use std::collections::BTreeMap;

use perilune::Cursor;

use crate::vertices::names_below;
use crate::{Direction, Result, VertexId, View};

/// The numbers of a graph.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// How many vertices there are.
    pub vertices: u64,
    /// How many of them have no edge.
    pub isolated: u64,
    /// How many edges there are.
    pub edges: u64,
    /// Labels, and how many vertices have each.
    pub labels: Vec<(String, u64)>,
    /// Types of edges, and how many edges have each.
    pub types: Vec<(String, u64)>,
    /// Label and property of each index.
    pub indexes: Vec<(String, String)>,
    /// The vertex of the most edges, the first of several, and how many it has; none without edges.
    pub busiest: Option<(VertexId, u64)>,
}

impl View<'_> {
    /// Counts what there is.
    ///
    /// # Errors
    /// `Limit`; the database's.
    pub fn statistics(&mut self) -> Result<Statistics> {
        self.begin(&[])?;
        let (graph, session) = self.parts();
        let mut found = Statistics { edges: graph.count_edges(session)?, ..Statistics::default() };
        for label in names_below(session, &graph.label)? {
            let count = session.count_children(&graph.label.child(&label)?)?;
            found.labels.push((label, count));
        }
        for label in names_below(session, &graph.index)? {
            for property in names_below(session, &graph.index.child(&label)?)? {
                found.indexes.push((label.clone(), property));
            }
        }
        let mut types: BTreeMap<String, u64> = BTreeMap::new();
        let mut ids = Vec::new();
        self.each_vertex(&mut |id| ids.push(id))?;
        found.vertices = ids.len() as u64;
        for id in ids {
            self.look_at_time()?;
            let (graph, session) = self.parts();
            let mut kinds = Cursor::children(&graph.vertex.child(&id)?.with("out")?);
            let mut degree = 0;
            while kinds.next(session)? {
                let count = kinds.integer_value().and_then(|count| u64::try_from(count).ok()).unwrap_or(0);
                let kind = String::from_utf8_lossy(&kinds.subscript()?.to_text()).into_owned();
                *types.entry(kind).or_default() += count;
                degree += count;
            }
            degree += graph.degree(session, &id, Direction::In, None)?;
            found.isolated += u64::from(degree == 0);
            if degree > found.busiest.as_ref().map_or(0, |(_, most)| *most) {
                found.busiest = Some((id, degree));
            }
        }
        found.types = types.into_iter().collect();
        Ok(found)
    }
}
