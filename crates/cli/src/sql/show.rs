//! Rows as text: a table for people, and forms for programs; and CSV as rows.
//!
//! Invariant: CSV and JSON are not shortened, and what is written as CSV is read again. NULL is an empty field, in
//! JSON null. A blob is the text `x'00ff'` in every form.

use std::io::{self, Write};

use perilune_sql::{real_text, Error, Row, Rows, Sink, SqlState, Value};

/// How rows are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// Columns below their names.
    Table,
    /// Fields with `|` between, without names.
    List,
    /// A line for each field.
    Line,
    /// As spreadsheets read it.
    Csv,
    /// An array of objects.
    Json,
}

impl Mode {
    /// The names of all.
    pub(super) const NAMES: [&'static str; 5] = ["table", "list", "line", "csv", "json"];

    /// By its name, which is one of them.
    pub(super) fn of(name: &str) -> Mode {
        match name {
            "list" => Mode::List,
            "line" => Mode::Line,
            "csv" => Mode::Csv,
            "json" => Mode::Json,
            _ => Mode::Table,
        }
    }
}

/// A value as people read it.
fn plain(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::Integer(integer) => integer.to_string(),
        Value::Real(real) => real_text(*real),
        Value::Text(text) => String::from_utf8_lossy(text).into_owned(),
        Value::Blob(blob) => {
            format!("x'{}'", blob.iter().map(|byte| format!("{byte:02x}")).collect::<String>())
        }
    }
}

/// Appends rows.
pub(super) fn write(rows: &Rows, mode: Mode, out: &mut Vec<u8>) {
    if mode == Mode::Table {
        return table(rows, out);
    }
    head(rows.columns(), mode, out);
    for (at, row) in rows.iter().enumerate() {
        record(rows.columns(), row, (mode, at == 0), out);
    }
    foot(mode, out);
}

/// Appends what stands before all rows.
fn head(columns: &[String], mode: Mode, out: &mut Vec<u8>) {
    match mode {
        Mode::Csv => line(columns.iter().map(|name| csv_field(name)), ",", out),
        Mode::Json => out.push(b'['),
        Mode::Table | Mode::List | Mode::Line => {}
    }
}

/// Appends what stands behind all rows.
fn foot(mode: Mode, out: &mut Vec<u8>) {
    if mode == Mode::Json {
        out.extend_from_slice(b"\n]\n");
    }
}

/// Appends a row, which may be the first.
fn record(columns: &[String], row: &[Value], (mode, is_first): (Mode, bool), out: &mut Vec<u8>) {
    match mode {
        Mode::Table | Mode::List => line(row.iter().map(plain), "|", out),
        Mode::Line => {
            let width = columns.iter().map(|name| name.chars().count()).max().unwrap_or(0);
            for (name, value) in columns.iter().zip(row) {
                out.extend_from_slice(format!("{name:>width$} = {}\n", plain(value)).as_bytes());
            }
            out.push(b'\n');
        }
        Mode::Csv => line(row.iter().map(|value| csv_field(&plain(value))), ",", out),
        Mode::Json => json(columns, row, is_first, out),
    }
}

/// Shows rows as they come, of a statement that runs once. A table is none that can be: its columns are as wide as its rows.
pub(super) struct Streamed<W> {
    mode: Mode,
    out: W,
    columns: Vec<String>,
    is_first: bool,
    buffer: Vec<u8>,
    /// Why nothing more is written.
    failure: Option<io::Error>,
}

impl<W: Write> Streamed<W> {
    pub(super) fn new(mode: Mode, out: W) -> Streamed<W> {
        Streamed { mode, out, columns: Vec::new(), is_first: true, buffer: Vec::new(), failure: None }
    }

    fn pass_on(&mut self) -> Result<(), Error> {
        let written = self.out.write_all(&self.buffer);
        self.buffer.clear();
        written.map_err(|error| {
            self.failure = Some(error);
            Error::new(SqlState::CANCELLED, "the rows cannot be written")
        })
    }

    /// Ends what was written; answers what could not be.
    pub(super) fn end(mut self) -> io::Result<()> {
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        foot(self.mode, &mut self.buffer);
        self.out.write_all(&self.buffer)?;
        self.out.flush()
    }
}

impl<W: Write> Sink for Streamed<W> {
    fn start(&mut self, columns: &[String]) -> Result<(), Error> {
        if !self.columns.is_empty() {
            return Err(Error::new(SqlState::CONFLICT, "rows were written already: run the statement again"));
        }
        self.columns = columns.to_vec();
        head(columns, self.mode, &mut self.buffer);
        Ok(())
    }

    fn row(&mut self, row: &Row<'_>) -> Result<(), Error> {
        let values: Vec<Value> = (0..row.len()).map(|column| Value::of(row.get(column))).collect();
        record(&self.columns, &values, (self.mode, self.is_first), &mut self.buffer);
        self.is_first = false;
        self.pass_on()
    }
}

fn line(fields: impl Iterator<Item = String>, between: &str, out: &mut Vec<u8>) {
    let fields: Vec<String> = fields.collect();
    out.extend_from_slice(fields.join(between).as_bytes());
    out.push(b'\n');
}

fn table(rows: &Rows, out: &mut Vec<u8>) {
    let texts: Vec<Vec<String>> = rows.iter().map(|row| row.iter().map(plain).collect()).collect();
    let mut widths: Vec<usize> = rows.columns().iter().map(|name| name.chars().count()).collect();
    for row in &texts {
        for (width, text) in widths.iter_mut().zip(row) {
            *width = (*width).max(text.chars().count());
        }
    }
    let padded = |texts: &[String]| {
        let cells = texts.iter().zip(&widths).map(|(text, width)| format!("{text:<width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    line(std::iter::once(padded(rows.columns())), "", out);
    line(widths.iter().map(|width| "-".repeat(*width)), "  ", out);
    for row in &texts {
        line(std::iter::once(padded(row)), "", out);
    }
}

fn csv_field(text: &str) -> String {
    if text.contains(['"', ',', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

fn json(columns: &[String], row: &[Value], is_first: bool, out: &mut Vec<u8>) {
    let value = |value: &Value| match value {
        Value::Null => serde_json::Value::Null,
        Value::Integer(integer) => serde_json::Value::from(*integer),
        Value::Real(real) => serde_json::Value::from(*real),
        other => serde_json::Value::from(plain(other)),
    };
    out.extend_from_slice(if is_first { b"\n{" } else { b",\n{" });
    for (column, (name, field)) in columns.iter().zip(row).enumerate() {
        let between = if column == 0 { "" } else { "," };
        let text = format!("{between}{}:{}", serde_json::Value::from(&name[..]), value(field));
        out.extend_from_slice(text.as_bytes());
    }
    out.push(b'}');
}

/// The records of a CSV file.
pub(super) fn read_csv(text: &str) -> Vec<Vec<String>> {
    let (mut records, mut record, mut field) = (Vec::new(), Vec::new(), String::new());
    let (mut is_quoted, mut has_any) = (false, false);
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        match c {
            '"' if is_quoted && characters.peek() == Some(&'"') => {
                characters.next();
                field.push('"');
            }
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => record.push(std::mem::take(&mut field)),
            '\r' if !is_quoted && characters.peek() == Some(&'\n') => {}
            '\n' if !is_quoted => {
                if has_any {
                    record.push(std::mem::take(&mut field));
                    records.push(std::mem::take(&mut record));
                }
                has_any = false;
                continue;
            }
            c => field.push(c),
        }
        has_any = true;
    }
    if has_any {
        record.push(field);
        records.push(record);
    }
    records
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_as_csv_is_read_again() {
        let fields = ["plain", "a,b", "say \"x\"", "two\nlines", ""];
        let text = fields.map(csv_field).join(",") + "\r\n" + "1,2,3,4,5";
        let records = read_csv(&text);
        assert_eq!(records[0], fields);
        assert_eq!(records[1], ["1", "2", "3", "4", "5"]);
        assert_eq!(records.len(), 2);
    }
}
