//! Edges as a walk meets them, and which of a vertex' edges are meant.
//!
//! Example: `Reach::out().of("KNOWS")` are the edges of type KNOWS that leave a vertex.

use std::sync::Arc;

use perilune::{Number, Value, ValueRef};

use crate::VertexId;

/// An edge: from `source` to `target`.
#[derive(Clone, Debug, PartialEq)]
pub struct Edge {
    /// Its number, which no other edge of the graph has or will have.
    pub id: i64,
    /// Where it begins.
    pub source: VertexId,
    /// Its type.
    pub kind: Arc<str>,
    /// Where it ends.
    pub target: VertexId,
    /// The number in the property that the graph keeps beside its edges, if the edge has one.
    pub weight: Option<f64>,
}

impl Edge {
    /// The end that is not `vertex`; of a loop, that vertex.
    #[must_use]
    pub fn other(&self, vertex: &VertexId) -> &VertexId {
        if self.source == *vertex {
            &self.target
        } else {
            &self.source
        }
    }
}

/// Which way edges are followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From source to target.
    Out,
    /// From target to source.
    In,
    /// Either way; a loop counts once.
    Both,
}

impl Direction {
    pub(crate) fn goes_out(self) -> bool {
        self != Direction::In
    }

    pub(crate) fn goes_in(self) -> bool {
        self != Direction::Out
    }
}

/// Which edges of a vertex are meant: a direction, and types.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reach {
    pub(crate) direction: Direction,
    /// None: every type.
    pub(crate) kinds: Vec<Arc<str>>,
}

impl Reach {
    /// Edges of all types.
    #[must_use]
    pub fn new(direction: Direction) -> Reach {
        Reach { direction, kinds: Vec::new() }
    }

    /// Those that leave a vertex.
    #[must_use]
    pub fn out() -> Reach {
        Reach::new(Direction::Out)
    }

    /// Those that end at a vertex.
    #[must_use]
    pub fn incoming() -> Reach {
        Reach::new(Direction::In)
    }

    /// Those of both directions.
    #[must_use]
    pub fn both() -> Reach {
        Reach::new(Direction::Both)
    }

    /// Only those of this type, and of the others given so.
    #[must_use]
    pub fn of(mut self, kind: &str) -> Reach {
        if self.kinds.iter().all(|known| **known != *kind) {
            self.kinds.push(kind.into());
        }
        self
    }

    /// As this one, against the edges.
    #[must_use]
    pub fn reversed(&self) -> Reach {
        let direction = match self.direction {
            Direction::Out => Direction::In,
            Direction::In => Direction::Out,
            Direction::Both => Direction::Both,
        };
        Reach { direction, kinds: self.kinds.clone() }
    }
}

/// The number that a value is, as a double; `None` for what is no number.
pub(crate) fn weight_of(value: &ValueRef<'_>) -> Option<f64> {
    match value {
        ValueRef::Int(int) => Some(*int as f64),
        ValueRef::Double(double) => Some(*double),
        ValueRef::Decimal(decimal) => Number::from(*decimal).to_string().parse().ok(),
        _ => None,
    }
}

/// Whether two values are equal: numbers by value, whatever their types.
pub(crate) fn same(a: &Value, b: &Value) -> bool {
    a == b || matches!((weight_of(&a.as_ref()), weight_of(&b.as_ref())), (Some(a), Some(b)) if a == b)
}

/// A value as text, without quotes.
pub(crate) fn text_of(value: &Value) -> String {
    match value {
        Value::Null | Value::EmptyList | Value::EmptyMap | Value::Record(_) => String::new(),
        Value::Bool(truth) => truth.to_string(),
        Value::Int(int) => int.to_string(),
        Value::Decimal(decimal) => Number::from(*decimal).to_string(),
        Value::Double(double) => double.to_string(),
        Value::String(bytes) => String::from_utf8_lossy(bytes).into_owned(),
    }
}
