//! What scripts tell of graphs, and are told.
//!
//! Invariants
//! - Numbers are integers up to 2^53 and doubles; a larger integer is a string of its digits, lest it be rounded.
//! - Walks and algorithms are limited to what a run has memory for.

use perilune::Value as NodeValue;
use perilune_graph::ask::Table;
use perilune_graph::{Edge, Request, VertexId};

use super::{failure, vertex_of, wrong};
use crate::nodes::Result;
use crate::sandbox::{Question, Value, Values};

/// The largest integer up to which a number of Lua has all.
const EXACT: i64 = 1 << 53;

/// Bytes that a vertex or an edge takes about while it is walked or answered.
const EACH: usize = 128;

/// What a function was called with.
pub(super) struct Given<'a> {
    values: Vec<Value<'a>>,
    /// How many vertices, and how many edges, there is memory for.
    most: u64,
}

pub(super) fn given<'a>(question: &Question<'a>) -> Given<'a> {
    let arguments = question.arguments;
    let values = (0..arguments.len()).map(|at| Value::of(arguments.get(at).unwrap_or_default())).collect();
    Given { values, most: (question.keeps / EACH) as u64 }
}

impl Given<'_> {
    pub(super) fn count(&self) -> usize {
        self.values.len()
    }

    /// The options in a text; their limits are at most what there is memory for.
    pub(super) fn request(&self, at: usize) -> Result<Request> {
        let mut request = Request::parse(&self.text(at)?).map_err(failure)?;
        request.limits.vertices = request.limits.vertices.min(self.most);
        request.limits.edges = request.limits.edges.min(self.most);
        Ok(request)
    }

    /// A number from 0 on: of a graph or a walk, how many follow.
    pub(super) fn number(&self, at: usize) -> Result<usize> {
        match self.values.get(at) {
            Some(Value::Integer(number)) => {
                usize::try_from(*number).map_err(|_| wrong("a number is negative"))
            }
            _ => Err(wrong("this is no graph and no walk")),
        }
    }

    pub(super) fn text(&self, at: usize) -> Result<String> {
        match self.values.get(at) {
            Some(Value::Text(text)) => std::str::from_utf8(text)
                .map(str::to_owned)
                .map_err(|_| wrong("names and options of graphs are UTF-8")),
            _ => Err(wrong("a label, a type, the name of a property and a question are strings")),
        }
    }

    /// A text, or none where nil was told.
    pub(super) fn optional_text(&self, at: usize) -> Result<Option<String>> {
        match self.values.get(at) {
            None | Some(Value::Nothing) => Ok(None),
            Some(_) => self.text(at).map(Some),
        }
    }

    pub(super) fn truth(&self, at: usize) -> bool {
        matches!(self.values.get(at), Some(Value::Truth(true)))
    }

    pub(super) fn vertex(&self, at: usize) -> Result<VertexId> {
        vertex_of(self.values.get(at).unwrap_or(&Value::Nothing))
    }

    pub(super) fn edge(&self, at: usize) -> Result<i64> {
        match self.values.get(at) {
            Some(Value::Integer(edge)) => Ok(*edge),
            _ => Err(wrong("an edge is its number")),
        }
    }

    /// A value; none: nil.
    pub(super) fn value(&self, at: usize) -> Option<NodeValue> {
        Some(match self.values.get(at)? {
            Value::Nothing => return None,
            Value::Truth(truth) => NodeValue::Bool(*truth),
            Value::Integer(integer) => NodeValue::Int(*integer),
            Value::Double(double) => NodeValue::Double(*double),
            Value::Text(text) => NodeValue::String(text.to_vec()),
        })
    }

    /// Names and values from here on, in turn.
    pub(super) fn properties(&self, from: usize) -> Result<Vec<(String, NodeValue)>> {
        let pairs = (from..self.count()).step_by(2);
        pairs.map(|at| Ok((self.text(at)?, self.value(at + 1).unwrap_or(NodeValue::Null)))).collect()
    }
}

fn tell_integer(integer: i64, values: &mut Values<'_>) {
    match (-EXACT..=EXACT).contains(&integer) {
        true => values.integer(integer),
        false => values.text(integer.to_string().as_bytes()),
    }
}

/// A value as a script has it; null is nil.
pub(super) fn tell(value: &NodeValue, values: &mut Values<'_>) {
    match value {
        NodeValue::Int(integer) => tell_integer(*integer, values),
        NodeValue::Double(double) => values.double(*double),
        NodeValue::Decimal(decimal) => values.double(f64::from(*decimal)),
        NodeValue::Bool(truth) => values.truth(*truth),
        NodeValue::Null => values.nothing(),
        NodeValue::EmptyList => values.list(0),
        NodeValue::EmptyMap => values.table(0),
        NodeValue::String(bytes) | NodeValue::Record(bytes) => values.text(bytes),
    }
}

pub(super) fn tell_vertex(vertex: &VertexId, values: &mut Values<'_>) {
    match vertex.as_i64() {
        Some(integer) => tell_integer(integer, values),
        None => values.text(vertex.as_bytes().unwrap_or_default()),
    }
}

/// A list of tables by the names of columns.
pub(super) fn tell_table(table: &Table, values: &mut Values<'_>) {
    values.list(table.rows.len());
    for row in &table.rows {
        let there = row.iter().filter(|value| **value != NodeValue::Null).count();
        values.table(there);
        for (name, value) in table.columns.iter().zip(row).filter(|(_, value)| **value != NodeValue::Null) {
            values.text(name.as_bytes());
            tell(value, values);
        }
    }
}

/// An edge as a table.
pub(super) fn tell_edge(edge: &Edge, values: &mut Values<'_>) {
    values.table(if edge.weight.is_some() { 5 } else { 4 });
    values.text(b"id");
    tell_integer(edge.id, values);
    values.text(b"source");
    tell_vertex(&edge.source, values);
    values.text(b"type");
    values.text(edge.kind.as_bytes());
    values.text(b"target");
    tell_vertex(&edge.target, values);
    if let Some(weight) = edge.weight {
        values.text(b"weight");
        values.double(weight);
    }
}
