//! A process that answers the steps of golden scripts from a memory store of its own: an example of the process
//! that a back end brings for [`perilune_harness::script`], and its test.

#![forbid(unsafe_code)]

use std::io;

use perilune_harness::script::serve_steps;
use perilune_memory::MemoryStore;
use perilune_store::Store;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    Ok(serve_steps(MemoryStore::new().session()?, io::stdin().lock(), io::stdout())?)
}
