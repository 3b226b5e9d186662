//! Edges and vertices from CSV, as RFC 4180 has it: the first record names the columns.
//!
//! Of edges `source`, `type` and `target` are what they say, of vertices `id` and `labels`, which are apart by `:`; each other
//! column is a property. Example: `ada,KNOWS,ben,1833` below `source,type,target,since`.
//!
//! Invariants
//! - An empty field is no property. A field that is a number as it is written is one: `12`, `-1.5`, `2.50`, `1e6`; `007` is text.
//! - A record that is not as long as the first is refused, and one that no graph would take.

use std::io::BufRead;

use perilune::{Subscript, Value, ValueRef};

use super::{at_line, RECORD_BYTES};
use crate::{Error, NewEdge, NewVertex, Result};

/// The edges of a CSV file, one at a time.
#[derive(Debug)]
pub struct CsvEdges<R>(Table<R>);

/// The vertices of a CSV file, one at a time.
#[derive(Debug)]
pub struct CsvVertices<R>(Table<R>);

/// Reads edges of CSV.
///
/// # Errors
/// `Invalid` if the first record does not name `source`, `type` and `target`; `Io`.
pub fn from_csv<R: BufRead>(reader: R) -> Result<CsvEdges<R>> {
    Ok(CsvEdges(Table::new(reader, &["source", "type", "target"])?))
}

/// Reads vertices of CSV.
///
/// # Errors
/// `Invalid` if the first record does not name `id`; `Io`.
pub fn vertices_from_csv<R: BufRead>(reader: R) -> Result<CsvVertices<R>> {
    Ok(CsvVertices(Table::new(reader, &["id"])?))
}

impl<R: BufRead> Iterator for CsvEdges<R> {
    type Item = Result<NewEdge>;

    fn next(&mut self) -> Option<Result<NewEdge>> {
        let fields = self.0.read().transpose()?;
        Some(fields.and_then(|fields| self.edge(fields)))
    }
}

impl<R: BufRead> CsvEdges<R> {
    fn edge(&self, fields: Vec<Vec<u8>>) -> Result<NewEdge> {
        let line = self.0.records.line;
        let mut edge =
            NewEdge { source: "".into(), kind: String::new(), target: "".into(), properties: Vec::new() };
        for (column, field) in self.0.columns.iter().zip(fields) {
            match column.as_str() {
                "source" | "target" if field.is_empty() => {
                    return Err(at_line(line, format!("no {column}")));
                }
                "source" => edge.source = field.as_slice().into(),
                "target" => edge.target = field.as_slice().into(),
                "type" => edge.kind = String::from_utf8_lossy(&field).into_owned(),
                _ if field.is_empty() => {}
                name => edge.properties.push((name.to_owned(), value_of(field))),
            }
        }
        edge.check().map_err(|error| at_line(line, error))?;
        Ok(edge)
    }
}

impl<R: BufRead> Iterator for CsvVertices<R> {
    type Item = Result<NewVertex>;

    fn next(&mut self) -> Option<Result<NewVertex>> {
        let fields = self.0.read().transpose()?;
        Some(fields.and_then(|fields| self.vertex(fields)))
    }
}

impl<R: BufRead> CsvVertices<R> {
    fn vertex(&self, fields: Vec<Vec<u8>>) -> Result<NewVertex> {
        let line = self.0.records.line;
        let mut vertex = NewVertex { id: "".into(), labels: Vec::new(), properties: Vec::new() };
        for (column, field) in self.0.columns.iter().zip(fields) {
            match column.as_str() {
                "id" if field.is_empty() => return Err(at_line(line, "no id")),
                "id" => vertex.id = field.as_slice().into(),
                "labels" => {
                    let labels = String::from_utf8_lossy(&field).into_owned();
                    vertex.labels =
                        labels.split(':').filter(|label| !label.is_empty()).map(str::to_owned).collect();
                }
                _ if field.is_empty() => {}
                name => vertex.properties.push((name.to_owned(), value_of(field))),
            }
        }
        vertex.check().map_err(|error| at_line(line, error))?;
        Ok(vertex)
    }
}

/// Records below the names of their columns.
#[derive(Debug)]
struct Table<R> {
    records: Records<R>,
    columns: Vec<String>,
}

impl<R: BufRead> Table<R> {
    /// Reads the first record, which is to name each of `wanted` once.
    fn new(reader: R, wanted: &[&str]) -> Result<Table<R>> {
        let mut records = Records { reader, line: 1, next: 1 };
        let columns = records.read()?.unwrap_or_default();
        let columns: Vec<String> = columns
            .iter()
            .map(|name| String::from_utf8_lossy(name).trim_start_matches('\u{feff}').to_owned())
            .collect();
        for wanted in wanted {
            if columns.iter().filter(|column| *column == wanted).count() != 1 {
                return Err(at_line(1, format!("the columns are to be named, `{wanted}` once among them")));
            }
        }
        Ok(Table { records, columns })
    }

    /// The fields of the next record, as many as there are columns.
    fn read(&mut self) -> Result<Option<Vec<Vec<u8>>>> {
        let Some(fields) = self.records.read()? else { return Ok(None) };
        if fields.len() != self.columns.len() {
            let (there, wanted) = (fields.len(), self.columns.len());
            return Err(at_line(
                self.records.line,
                format!("{there} fields, not {wanted} as the first record"),
            ));
        }
        Ok(Some(fields))
    }
}

/// A field as a value.
fn value_of(field: Vec<u8>) -> Value {
    if let Some(number) = Subscript::from_bytes(&field).as_number() {
        return ValueRef::from(number).to_owned_value();
    }
    let text = std::str::from_utf8(&field).unwrap_or("");
    let is_numeral = text.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte))
        && text.bytes().any(|byte| b".eE".contains(&byte));
    match text.parse::<f64>() {
        Ok(double) if is_numeral && double.is_finite() => Value::Double(double),
        _ => Value::String(field),
    }
}

/// Records of CSV.
#[derive(Debug)]
struct Records<R> {
    reader: R,
    /// Where the last record began.
    line: u64,
    next: u64,
}

impl<R: BufRead> Records<R> {
    /// The fields of the next record that is not empty.
    fn read(&mut self) -> Result<Option<Vec<Vec<u8>>>> {
        let mut record = Vec::new();
        loop {
            self.line = self.next;
            record.clear();
            loop {
                if self.reader.read_until(b'\n', &mut record).map_err(Error::Io)? == 0 {
                    break;
                }
                self.next += 1;
                if record.len() > RECORD_BYTES {
                    return Err(at_line(self.line, format!("a record of more than {RECORD_BYTES} bytes")));
                }
                // An odd number of quotes: the record goes on behind the end of the line.
                if record.iter().filter(|byte| **byte == b'"').count() % 2 == 0 {
                    break;
                }
            }
            if record.is_empty() {
                return Ok(None);
            }
            let end = record.strip_suffix(b"\n").unwrap_or(&record);
            let end = end.strip_suffix(b"\r").unwrap_or(end);
            if !end.is_empty() {
                return self.split(end).map(Some);
            }
        }
    }

    fn split(&self, record: &[u8]) -> Result<Vec<Vec<u8>>> {
        let mut fields = vec![Vec::new()];
        let mut is_quoted = false;
        let mut bytes = record.iter().copied().peekable();
        while let Some(byte) = bytes.next() {
            let count = fields.len();
            let field = &mut fields[count - 1];
            match byte {
                b'"' if is_quoted && bytes.peek() == Some(&b'"') => {
                    bytes.next();
                    field.push(b'"');
                }
                b'"' if is_quoted => is_quoted = false,
                b'"' if field.is_empty() => is_quoted = true,
                b'"' => {
                    return Err(at_line(
                        self.line,
                        "a quote inside of a field: double it, and quote the field",
                    ))
                }
                b',' if !is_quoted => fields.push(Vec::new()),
                byte => field.push(byte),
            }
        }
        if is_quoted {
            return Err(at_line(self.line, "a quote is not closed"));
        }
        Ok(fields)
    }
}
