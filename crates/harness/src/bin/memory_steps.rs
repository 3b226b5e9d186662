//! A process for golden scripts whose session is in a store of its own: shows and tests how a back end
//! serves steps from its standard input.

#![forbid(unsafe_code)]

use std::io;

use perilune_harness::memory::MemoryStore;
use perilune_harness::script::serve_steps;
use perilune_store::Store;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    Ok(serve_steps(MemoryStore::new().session()?, io::stdin().lock(), io::stdout())?)
}
