//! Perilune's native back end: one B+tree in a file that every process maps.

#![forbid(unsafe_code)]

mod error;
mod extent;
mod image;
mod limits;
mod page;
mod session;
mod tree;
