//! Does a graph agree with itself? Each node of it is held against those that must be there with it.
//!
//! Problem: an edge lies at three places, a vertex at more with its labels and indexes; what writes them by hand may forget
//! one. Idea: three passes, over vertices, edges and indexes, each of which asks for the counterpart of what it meets. An
//! entry without an edge is found by numbers: there are as many entries of each direction as edges.
//!
//! Example: `assert!(graph.check(&mut snapshot)?.faults.is_empty())`.
//!
//! Invariant: it writes nothing, and holds one vertex in memory at a time.

use std::sync::Arc;

use perilune::key::decode_subscript;
use perilune::{Cursor, Node, Session, Value};

use crate::adjacency::Entry;
use crate::edges::Ends;
use crate::index::IndexKey;
use crate::limits::FAULTS;
use crate::vertices::names_below;
use crate::{Direction, Error, Graph, Result, VertexId};

/// What a check has found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckReport {
    /// How many vertices there are.
    pub vertices: u64,
    /// How many edges there are.
    pub edges: u64,
    /// What is wrong, at most 100 times.
    pub faults: Vec<String>,
}

impl CheckReport {
    fn demand(&mut self, is_right: bool, fault: impl FnOnce() -> String) {
        if !is_right && self.faults.len() < FAULTS {
            self.faults.push(fault());
        }
    }
}

impl Graph {
    /// Compares all of the graph. To see one state while others write, give a snapshot's session, or call it in a transaction.
    ///
    /// # Errors
    /// The database's. What is wrong with the graph is no error, but in the report.
    pub fn check(&self, session: &mut Session) -> Result<CheckReport> {
        let mut report = CheckReport::default();
        self.check_vertices(session, &mut report)?;
        self.check_edges(session, &mut report)?;
        for (side, other) in [(&self.out, "source"), (&self.inward, "target")] {
            self.check_entries(session, side, other, &mut report)?;
        }
        self.check_indexes(session, &mut report)?;
        Ok(report)
    }

    fn check_vertices(&self, session: &mut Session, report: &mut CheckReport) -> Result<()> {
        let mut cursor = Cursor::children(&self.vertex);
        while cursor.next(session)? {
            let id = VertexId::from_subscript(&cursor.subscript()?);
            let node = cursor.node()?;
            report.vertices += 1;
            report.demand(cursor.value()?.is_some(), || format!("{node} has parts, but no value"));
            for (side, name) in [(&self.out, "out"), (&self.inward, "in")] {
                let direction = if name == "out" { Direction::Out } else { Direction::In };
                let counted = self.degree(session, &id, direction, None)?;
                let there = session.count_valued(&side.child(&id)?)?;
                report.demand(counted == there, || {
                    format!("{node} counts {counted} edges {name}, not {there}")
                });
                let mut kinds = Cursor::children(&node.child(name)?);
                while kinds.next(session)? {
                    let kind = kinds.subscript()?.into_owned();
                    let there = session.count_valued(&side.child(&id)?.with(&kind)?)?;
                    let counted = kinds.integer_value();
                    report.demand(counted == i64::try_from(there).ok(), || {
                        format!("{node} counts {counted:?} edges {name} of {kind}, not {there}")
                    });
                }
            }
            for label in self.labels(session, &id)? {
                let entry = self.label.child(&label)?.with(&id)?;
                report.demand(session.get_ref(&entry)?.is_some(), || format!("{entry} is missing"));
                for property in names_below(session, &self.index.child(&label)?)? {
                    let Some(value) = self.property(session, &id, &property)? else { continue };
                    let entry =
                        self.index.child(&label)?.with(&property)?.with(IndexKey(&value))?.with(&id)?;
                    report.demand(session.get_ref(&entry)?.is_some(), || format!("{entry} is missing"));
                }
            }
        }
        Ok(())
    }

    fn check_edges(&self, session: &mut Session, report: &mut CheckReport) -> Result<()> {
        let mut cursor = Cursor::children(&self.edge);
        while cursor.next(session)? {
            let node = cursor.node()?;
            let (Some(id), Some(value)) = (cursor.integer(), cursor.value()?) else {
                report.demand(false, || format!("{node} is no edge"));
                continue;
            };
            report.edges += 1;
            let ends = match Ends::read(&value) {
                Ok(ends) => ends,
                Err(error) => {
                    report.demand(false, || format!("{node}: {error}"));
                    continue;
                }
            };
            let weight = match &self.weight {
                None => Value::Null,
                Some(name) => session.get(&node.child(name)?)?.unwrap_or(Value::Null),
            };
            let (out, inward) = self.entries(id, &ends.source, &ends.kind, &ends.target)?;
            for entry in [out, inward] {
                let held = session.get(&entry)?;
                report.demand(held.as_ref() == Some(&weight), || {
                    format!("{entry} is {held:?}, not {weight:?}")
                });
            }
            for end in [&ends.source, &ends.target] {
                let is_there = self.has_vertex(session, end)?;
                report.demand(is_there, || format!("{node} ends at {end}, which is no vertex"));
            }
        }
        Ok(())
    }

    fn check_entries(
        &self,
        session: &mut Session,
        side: &Node,
        end: &str,
        report: &mut CheckReport,
    ) -> Result<()> {
        let mut kind: Arc<str> = Arc::from("");
        let mut cursor = Cursor::subtree(side).without_values();
        let mut count = 0;
        while cursor.next(session)? {
            let codes = &cursor.node_ref()?.encoded()[side.encoded().len()..];
            let read = decode_subscript(codes)
                .map_err(|error| Error::from(perilune::Error::from(error)))
                .and_then(|(_, length)| Entry::read(&codes[length..], &mut kind));
            match read {
                Ok(_) => count += 1,
                Err(error) => {
                    let node = cursor.node()?;
                    report.demand(false, || format!("{node}: {error}"));
                }
            }
        }
        let edges = report.edges;
        report.demand(count == edges, || format!("{edges} edges have {count} entries by {end}"));
        Ok(())
    }

    fn check_indexes(&self, session: &mut Session, report: &mut CheckReport) -> Result<()> {
        let mut cursor = Cursor::subtree(&self.label).without_values();
        while cursor.next(session)? {
            let node = cursor.node()?;
            let subscripts = node.subscripts()?;
            let [.., label, id] = &subscripts[..] else { continue };
            let held = self.vertex.child(id)?.with("label")?.with(label)?;
            report.demand(session.get_ref(&held)?.is_some(), || format!("{node} without {held}"));
        }
        let above = self.index.depth();
        let mut cursor = Cursor::subtree(&self.index).without_values();
        while cursor.next(session)? {
            let node = cursor.node()?;
            let subscripts = node.subscripts()?;
            let [label, property, key, id] = &subscripts[above..] else { continue };
            let vertex = self.vertex.child(id)?;
            let is_labelled = session.get_ref(&vertex.child("label")?.with(label)?)?.is_some();
            let value = session.get(&vertex.with("property")?.with(property)?)?;
            let is_right = match &value {
                Some(value) => self.index.child(IndexKey(value))? == self.index.child(key)?,
                None => false,
            };
            report.demand(is_labelled && is_right, || format!("{node} is of no such vertex"));
        }
        Ok(())
    }
}
