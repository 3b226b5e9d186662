//! All tests of graphs: one program, linked once.
//!
//! A program of its own has `storm`, which has a command of its own (`make graph-storm`).

mod algorithms;
mod changes;
mod exchange;
mod journeys;
mod model;
mod questions;
mod together;
mod walks;
mod worked_cases;
