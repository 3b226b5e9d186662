//! JSON: one object with a list of vertices and one of edges, an element a line.
//!
//! Example of an edge: `{"id":1,"properties":{"since":1833},"source":"ada","target":"ben","type":"KNOWS"}`.
//!
//! Invariant: numbers that JSON has not (infinite and undefined doubles) become null; bytes that are no UTF-8, U+FFFD.

use std::io::Write;

use perilune::{Number, Value};
use serde_json::{json, Map, Value as Json};

use super::{each_edge, each_vertex, text_of};
use crate::{Error, Result, VertexId, View};

/// Writes the graph as JSON.
///
/// # Errors
/// `Io`; `Limit`; the database's.
pub fn json(view: &mut View<'_>, out: &mut dyn Write) -> Result<()> {
    write!(out, "{{\"vertices\":[").map_err(Error::Io)?;
    let mut separator = "\n";
    each_vertex(view, &mut |vertex| {
        let properties = object_of(&vertex.properties);
        let element = json!({"id": id_of(&vertex.id), "labels": vertex.labels, "properties": properties});
        write!(out, "{}{element}", std::mem::replace(&mut separator, ",\n")).map_err(Error::Io)
    })?;
    write!(out, "],\n\"edges\":[").map_err(Error::Io)?;
    separator = "\n";
    each_edge(view, &mut |edge, properties| {
        let element = json!({
            "id": edge.id,
            "source": id_of(&edge.source),
            "type": *edge.kind,
            "target": id_of(&edge.target),
            "properties": object_of(&properties),
        });
        write!(out, "{}{element}", std::mem::replace(&mut separator, ",\n")).map_err(Error::Io)
    })?;
    writeln!(out, "]}}").map_err(Error::Io)
}

fn id_of(id: &VertexId) -> Json {
    id.as_i64().map_or_else(|| Json::from(id.to_string()), Json::from)
}

fn object_of(properties: &[(String, Value)]) -> Map<String, Json> {
    properties.iter().map(|(name, value)| (name.clone(), json_of(value))).collect()
}

fn json_of(value: &Value) -> Json {
    match value {
        Value::Null | Value::Record(_) => Json::Null,
        Value::Bool(truth) => Json::from(*truth),
        Value::Int(int) => Json::from(*int),
        Value::Double(double) => Json::from(*double),
        Value::Decimal(decimal) => {
            Json::from(Number::from(*decimal).to_string().parse::<f64>().unwrap_or(f64::NAN))
        }
        Value::String(_) => Json::from(text_of(value)),
        Value::EmptyList => Json::Array(Vec::new()),
        Value::EmptyMap => Json::Object(Map::new()),
    }
}
