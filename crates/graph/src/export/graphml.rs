//! GraphML: XML that most programs for graphs read.
//!
//! Labels are the attribute `labels`, joined by `:`; the type of an edge is its attribute `type`; properties are attributes of
//! their names, which are declared as text, since one property may have values of several types.
//! Example: `<edge id="e1" source="ada" target="ben"><data key="type">KNOWS</data></edge>`.
//!
//! Invariant: each key is declared before its use, those of vertices as `v.name`, those of edges as `e.name`.

use std::collections::BTreeSet;
use std::io::Write;

use perilune::Value;

use super::{each_edge, each_vertex, text_of};
use crate::{Error, Result, View};

const HEAD: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
  <key id="labels" for="node" attr.name="labels" attr.type="string"/>
  <key id="type" for="edge" attr.name="type" attr.type="string"/>"#;

/// Writes the graph as GraphML. It reads the graph twice: first for the names of properties.
///
/// # Errors
/// `Io`; `Limit`; the database's.
pub fn graphml(view: &mut View<'_>, out: &mut dyn Write) -> Result<()> {
    writeln!(out, "{HEAD}").map_err(Error::Io)?;
    let (mut of_vertices, mut of_edges) = (BTreeSet::new(), BTreeSet::new());
    each_vertex(view, &mut |vertex| {
        of_vertices.extend(vertex.properties.into_iter().map(|(name, _)| name));
        Ok(())
    })?;
    each_edge(view, &mut |_, properties| {
        of_edges.extend(properties.into_iter().map(|(name, _)| name));
        Ok(())
    })?;
    for (names, prefix, of) in [(of_vertices, "v", "node"), (of_edges, "e", "edge")] {
        for name in names {
            let name = escaped(&name);
            writeln!(
                out,
                r#"  <key id="{prefix}.{name}" for="{of}" attr.name="{name}" attr.type="string"/>"#
            )
            .map_err(Error::Io)?;
        }
    }
    writeln!(out, r#"  <graph edgedefault="directed">"#).map_err(Error::Io)?;
    each_vertex(view, &mut |vertex| {
        let (id, labels) = (escaped(&vertex.id.to_string()), escaped(&vertex.labels.join(":")));
        let data = data_of(&vertex.properties, "v");
        writeln!(out, r#"    <node id="{id}"><data key="labels">{labels}</data>{data}</node>"#)
            .map_err(Error::Io)
    })?;
    each_edge(view, &mut |edge, properties| {
        let (source, target) = (escaped(&edge.source.to_string()), escaped(&edge.target.to_string()));
        let (id, kind, data) = (edge.id, escaped(&edge.kind), data_of(&properties, "e"));
        writeln!(
            out,
            r#"    <edge id="e{id}" source="{source}" target="{target}"><data key="type">{kind}</data>{data}</edge>"#
        )
        .map_err(Error::Io)
    })?;
    writeln!(out, "  </graph>\n</graphml>").map_err(Error::Io)
}

fn data_of(properties: &[(String, Value)], prefix: &str) -> String {
    let data = properties.iter().map(|(name, value)| {
        format!(r#"<data key="{prefix}.{}">{}</data>"#, escaped(name), escaped(&text_of(value)))
    });
    data.collect()
}

/// Text as XML has it; characters that XML has not become U+FFFD.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\t' | '\n' | '\r' => out.push_str(&format!("&#{};", character as u32)),
            '\0'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            other => out.push(other),
        }
    }
    out
}
