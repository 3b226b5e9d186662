//! All tests of statements and tables: one program, linked once.
//!
//! `proof` compares with plain SQLite.

#[path = "../scratch/mod.rs"]
mod scratch;

mod alchemy;
mod coded;
mod decimals;
mod documents;
mod evicted;
mod graphs;
mod indexes;
mod own;
mod prepared;
mod rewritten;
mod shown;
mod sizes;
mod statements;
mod used;
mod verified;
mod views;
mod wide;
