//! Edges and vertices from JSON Lines: an object a line.
//!
//! Of an edge the members `source`, `type` and `target` are what they say, of a vertex `id` and `labels`, a list; each other
//! member is a property. Example: `{"source":"ada","type":"KNOWS","target":"ben","since":1833}`.
//!
//! Invariants
//! - A property is a string, a number, true, false or null; lists and objects are refused.
//! - What no graph would take is refused here, with its line.

use std::io::BufRead;

use perilune::Value;
use serde_json::{Map, Value as Json};

use super::{at_line, RECORD_BYTES};
use crate::{Error, NewEdge, NewVertex, Result, VertexId};

/// The edges of a file of JSON Lines, one at a time.
#[derive(Debug)]
pub struct JsonLinesEdges<R>(Objects<R>);

/// The vertices of a file of JSON Lines, one at a time.
#[derive(Debug)]
pub struct JsonLinesVertices<R>(Objects<R>);

/// Reads edges of JSON Lines.
pub fn from_json_lines<R: BufRead>(reader: R) -> JsonLinesEdges<R> {
    JsonLinesEdges(Objects { reader, line: 0 })
}

/// Reads vertices of JSON Lines.
pub fn vertices_from_json_lines<R: BufRead>(reader: R) -> JsonLinesVertices<R> {
    JsonLinesVertices(Objects { reader, line: 0 })
}

impl<R: BufRead> Iterator for JsonLinesEdges<R> {
    type Item = Result<NewEdge>;

    fn next(&mut self) -> Option<Result<NewEdge>> {
        let members = self.0.read().transpose()?;
        Some(members.and_then(|members| edge(self.0.line, members)))
    }
}

impl<R: BufRead> Iterator for JsonLinesVertices<R> {
    type Item = Result<NewVertex>;

    fn next(&mut self) -> Option<Result<NewVertex>> {
        let members = self.0.read().transpose()?;
        Some(members.and_then(|members| vertex(self.0.line, members)))
    }
}

/// Objects, one a line.
#[derive(Debug)]
struct Objects<R> {
    reader: R,
    line: u64,
}

impl<R: BufRead> Objects<R> {
    /// The members of the next object.
    fn read(&mut self) -> Result<Option<Map<String, Json>>> {
        let mut text = Vec::new();
        while text.trim_ascii().is_empty() {
            text.clear();
            if self.reader.read_until(b'\n', &mut text).map_err(Error::Io)? == 0 {
                return Ok(None);
            }
            self.line += 1;
        }
        if text.len() > RECORD_BYTES {
            return Err(at_line(self.line, format!("a record of more than {RECORD_BYTES} bytes")));
        }
        serde_json::from_slice(&text).map(Some).map_err(|error| at_line(self.line, error))
    }
}

fn edge(line: u64, mut members: Map<String, Json>) -> Result<NewEdge> {
    let source = id_of(line, members.remove("source"), "source")?;
    let target = id_of(line, members.remove("target"), "target")?;
    let Some(Json::String(kind)) = members.remove("type") else {
        return Err(at_line(line, "no string as `type`"));
    };
    let edge = NewEdge { source, kind, target, properties: properties_of(line, members)? };
    edge.check().map_err(|error| at_line(line, error))?;
    Ok(edge)
}

fn vertex(line: u64, mut members: Map<String, Json>) -> Result<NewVertex> {
    let id = id_of(line, members.remove("id"), "id")?;
    let wrong = || at_line(line, "`labels` is no list of strings");
    let labels = match members.remove("labels") {
        None => Vec::new(),
        Some(Json::Array(labels)) => labels
            .into_iter()
            .map(|label| label.as_str().map(str::to_owned).ok_or_else(wrong))
            .collect::<Result<_>>()?,
        Some(_) => return Err(wrong()),
    };
    let vertex = NewVertex { id, labels, properties: properties_of(line, members)? };
    vertex.check().map_err(|error| at_line(line, error))?;
    Ok(vertex)
}

fn id_of(line: u64, member: Option<Json>, name: &str) -> Result<VertexId> {
    match member {
        Some(Json::String(text)) if !text.is_empty() => Ok(text.as_str().into()),
        Some(Json::Number(number)) if number.is_i64() => Ok(number.as_i64().unwrap_or(0).into()),
        _ => Err(at_line(line, format!("no string or integer as `{name}`"))),
    }
}

fn properties_of(line: u64, members: Map<String, Json>) -> Result<Vec<(String, Value)>> {
    let mut properties = Vec::new();
    for (name, value) in members {
        let value = match value {
            Json::Null => Value::Null,
            Json::Bool(truth) => Value::Bool(truth),
            Json::String(text) => Value::String(text.into_bytes()),
            Json::Number(number) => match (number.as_i64(), number.as_f64()) {
                (Some(int), _) => Value::Int(int),
                (None, Some(double)) => Value::Double(double),
                (None, None) => return Err(at_line(line, format!("`{name}` is out of range"))),
            },
            Json::Array(_) | Json::Object(_) => {
                let why = format!("`{name}` is a list or an object, not a single value");
                return Err(at_line(line, why));
            }
        };
        properties.push((name, value));
    }
    Ok(properties)
}
