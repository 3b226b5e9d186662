//! What stands in a file, and how its values are written.

use md5::{Digest, Md5};
use perilune_sql::{real_text, Value};

/// The engine that `skipif` and `onlyif` mean.
const ENGINE: &str = "sqlite";

/// In which order answers are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sort {
    None,
    Rows,
    Values,
}

/// A record of a file.
pub(crate) enum Record {
    Statement {
        line: usize,
        sql: String,
        succeeds: bool,
    },
    Query {
        line: usize,
        sql: String,
        types: String,
        sort: Sort,
        label: Option<String>,
        expected: Vec<String>,
    },
    HashThreshold(usize),
}

/// The records that are for us, to the end or to `halt`.
pub(crate) fn parse(text: &str) -> Result<Vec<Record>, String> {
    let mut records = Vec::new();
    let mut lines = text.lines().enumerate().map(|(at, line)| (at + 1, line)).peekable();
    let mut skips = false;
    while let Some((number, line)) = lines.next() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let Some(first) = words.first() else { continue };
        if first.starts_with('#') {
            continue;
        }
        let is_own = words.get(1) == Some(&ENGINE);
        match *first {
            "skipif" => skips |= is_own,
            "onlyif" => skips |= !is_own,
            "halt" if skips => skips = false,
            "halt" => break,
            "hash-threshold" => {
                let values = words.get(1).and_then(|text| text.parse().ok());
                records.push(Record::HashThreshold(
                    values.ok_or(format!("line {number}: a number is missing"))?,
                ));
            }
            "statement" | "query" => {
                let mut sql = Vec::new();
                let mut has_answer = false;
                for (_, line) in lines.by_ref() {
                    has_answer = line == "----";
                    if has_answer || line.trim().is_empty() {
                        break;
                    }
                    sql.push(line);
                }
                let mut expected = Vec::new();
                while has_answer {
                    match lines.next() {
                        Some((_, line)) if !line.is_empty() => expected.push(line.to_owned()),
                        _ => has_answer = false,
                    }
                }
                let sql = sql.join("\n");
                if !std::mem::take(&mut skips) {
                    records.push(record(number, &words, sql, expected)?);
                }
            }
            other => return Err(format!("line {number}: {other} is not understood")),
        }
    }
    Ok(records)
}

fn record(line: usize, words: &[&str], sql: String, expected: Vec<String>) -> Result<Record, String> {
    match (words[0], words.get(1)) {
        ("statement", Some(&"ok")) => Ok(Record::Statement { line, sql, succeeds: true }),
        ("statement", Some(&"error")) => Ok(Record::Statement { line, sql, succeeds: false }),
        ("query", Some(types)) => {
            let sort = match words.get(2) {
                None | Some(&"nosort") => Sort::None,
                Some(&"rowsort") => Sort::Rows,
                Some(&"valuesort") => Sort::Values,
                Some(other) => return Err(format!("line {line}: {other} is no order")),
            };
            let label = words.get(3).map(|label| (*label).to_owned());
            Ok(Record::Query { line, sql, types: (*types).to_owned(), sort, label, expected })
        }
        _ => Err(format!("line {line}: {words:?} is not understood")),
    }
}

/// A value as the files write it.
pub(crate) fn format(value: &Value, kind: u8) -> String {
    let text = match value {
        Value::Null => return "NULL".to_owned(),
        Value::Integer(integer) => integer.to_string(),
        Value::Real(real) => real_text(*real),
        Value::Text(text) | Value::Blob(text) => String::from_utf8_lossy(text).into_owned(),
    };
    match kind {
        b'I' => match value {
            Value::Real(real) => (*real as i64).to_string(),
            Value::Integer(_) => text,
            _ => (leading(&text) as i64).to_string(),
        },
        b'R' => match value {
            Value::Real(real) => format!("{real:.3}"),
            Value::Integer(integer) => format!("{:.3}", *integer as f64),
            _ => format!("{:.3}", leading(&text)),
        },
        _ if text.is_empty() => "(empty)".to_owned(),
        _ => text.chars().map(|c| if (' '..='~').contains(&c) { c } else { '@' }).collect(),
    }
}

/// The number that a text begins with.
fn leading(text: &str) -> f64 {
    let text = text.trim();
    (0..=text.len()).rev().filter_map(|end| text.get(..end)?.parse().ok()).next().unwrap_or(0.0)
}

/// What the files keep of many values.
pub(crate) fn hash(values: &[String]) -> String {
    let mut digest = Md5::new();
    for value in values {
        digest.update(value.as_bytes());
        digest.update(b"\n");
    }
    digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}
