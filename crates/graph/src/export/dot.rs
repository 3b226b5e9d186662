//! DOT: what Graphviz draws.
//!
//! Example: `"ada" -> "ben" [label="KNOWS"];`. A vertex is labelled by its property `name`, or else its id, and below that by
//! its labels.
//!
//! Invariant: quotes and backslashes are escaped, so that no id or name says anything to Graphviz.

use std::io::Write;

use super::{each_edge, each_vertex, text_of};
use crate::{Error, Result, View};

/// Writes the graph as a directed one of DOT.
///
/// # Errors
/// `Io`; `Limit`; the database's.
pub fn dot(view: &mut View<'_>, out: &mut dyn Write) -> Result<()> {
    writeln!(out, "digraph {{").map_err(Error::Io)?;
    each_vertex(view, &mut |vertex| {
        let name = vertex.properties.iter().find(|(name, _)| name == "name");
        let mut label = name.map_or_else(|| vertex.id.to_string(), |(_, value)| text_of(value));
        if !vertex.labels.is_empty() {
            label = format!("{label}\n{}", vertex.labels.join(", "));
        }
        let id = quoted(&vertex.id.to_string());
        writeln!(out, "  {id} [label={}];", quoted(&label)).map_err(Error::Io)
    })?;
    each_edge(view, &mut |edge, _| {
        let (source, target) = (quoted(&edge.source.to_string()), quoted(&edge.target.to_string()));
        writeln!(out, "  {source} -> {target} [label={}];", quoted(&edge.kind)).map_err(Error::Io)
    })?;
    writeln!(out, "}}").map_err(Error::Io)
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
}
