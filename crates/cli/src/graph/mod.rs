//! `graph`: vertices and edges in, out, drawn, counted, checked and walked.
//!
//! Example: `perilune graph path air.db ^air --from AMS --to SFO --cheapest`.
//!
//! Invariants
//! - What reads makes no database, and sees one state.
//! - A file goes in after all of it was read: one that is wrong changes nothing, and makes no database.

mod draw;
mod import;
mod options;
mod place;
mod show;
mod transfer;

use std::path::Path;

use perilune_graph::{Error, Graph, GraphOptions};

pub(crate) use options::GraphCommand;

use crate::failure::{environment, found, Failure, Result};
use place::Place;

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        match error {
            Error::Database(error) => error.into(),
            Error::Io(_) => environment(error.to_string()),
            Error::NotAGraph(node) => found(format!(
                "no graph lies at {node}: `perilune graph create` or `graph import` makes one, or name another node"
            )),
            Error::NoVertex(id) => found(format!("there is no vertex {id}: ids are told by `perilune graph export`")),
            Error::Limit { what, limit } => {
                found(format!("it has come to {limit} {what}: narrow it by --type, --direction or a smaller --depth"))
            }
            other => found(other.to_string()),
        }
    }
}

/// Does what `command` says.
pub(crate) fn run(command: &GraphCommand, flag: Option<&Path>) -> Result<()> {
    match command {
        GraphCommand::Create { words, weight } => {
            let place = Place::of(words, flag)?;
            let mut session = place.open_to_write()?.session()?;
            Graph::create(&mut session, &place.node, &GraphOptions { weight: weight.clone() })?;
            println!("{}: a graph without vertices", place.node);
            Ok(())
        }
        GraphCommand::Import(options) => import::run(options, flag),
        GraphCommand::Export { words, format, output, force } => {
            transfer::export(&Place::of(words, flag)?, *format, output.as_deref(), *force)
        }
        GraphCommand::Draw(options) => draw::run(options, flag),
        GraphCommand::Check { words } => show::check(&Place::of(words, flag)?),
        GraphCommand::Stat { words, json } => show::stat(&Place::of(words, flag)?, *json),
        GraphCommand::Walk(options) => show::walk(options, &Place::of(&options.words, flag)?),
        GraphCommand::Path(options) => show::path(options, &Place::of(&options.words, flag)?),
    }
}
