//! What an edge costs.
//!
//! Example: `Cost::function(|edge| edge.weight.unwrap_or(1.0) * 2.0)`.
//!
//! Invariant: a cost is a finite number from 0 on, which all searches for cheapest paths rest on; anything else is an error.

use std::fmt;

use crate::{Edge, Error, Result};

/// What an edge costs.
pub enum Cost<'f> {
    /// One.
    One,
    /// Its weight; an edge without one is an error.
    Weight,
    /// What the function answers.
    Function(Box<dyn FnMut(&Edge) -> f64 + 'f>),
}

impl<'f> Cost<'f> {
    /// What the function answers.
    pub fn function(function: impl FnMut(&Edge) -> f64 + 'f) -> Cost<'f> {
        Cost::Function(Box::new(function))
    }

    pub(crate) fn of(&mut self, edge: &Edge) -> Result<f64> {
        let cost = match self {
            Cost::One => 1.0,
            Cost::Weight => edge.weight.unwrap_or(f64::NAN),
            Cost::Function(function) => function(edge),
        };
        if cost.is_finite() && cost >= 0.0 {
            Ok(cost)
        } else {
            Err(Error::Cost(edge.id))
        }
    }
}

impl fmt::Debug for Cost<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Cost::One => "One",
            Cost::Weight => "Weight",
            Cost::Function(_) => "Function",
        })
    }
}
