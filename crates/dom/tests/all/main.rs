//! All tests of documents and expressions: one program, linked once.
//!
//! A program of its own has `killed`, which has a command of its own (`make dom-storm`).

mod calls;
mod changes;
mod documents;
mod json;
mod level3;
mod xpath;
mod xpath_table;
