//! JSON Lines: an object a line, `{"node":"^name(1,\"x\")","value":...}`.
//!
//! | value | JSON |
//! |---|---|
//! | null, truth values, UTF-8 strings | these |
//! | integer | a number without point and exponent, in the range of an `i64` |
//! | double | a number with point or exponent; `{"double":"inf"}`, `"-inf"`, `"nan"`, `"nan(bits)"` |
//! | decimal that is no `i64` | `{"decimal":".5"}` |
//! | string that is no UTF-8 | `{"hex":"00ff"}` |
//! | empty list, empty map | `[]`, `{}` |
//! | record | `{"record":"record(1,\"x\")"}`, in the text form |

use perilune::key::{parse_key, parse_literal, parse_value, write_key, write_value, Space};
use perilune::{Batch, NodeRef, Value, ValueRef};
use serde_json::Value as Json;

use crate::exchange::format::Wrong;
use crate::exchange::text::Utf8;

/// Reads lines of JSON.
pub(crate) struct Parser;

impl Parser {
    /// Takes a line; blank ones say nothing.
    pub(crate) fn line(&mut self, line: &[u8], batch: &mut Batch) -> Result<(), Wrong> {
        if line.trim_ascii().is_empty() {
            return Ok(());
        }
        let json: Json = serde_json::from_slice(line).map_err(|error| {
            let text = error.to_string();
            let what = text.split(" at line ").next().unwrap_or(&text);
            Wrong::new(error.column().saturating_sub(1).min(line.len()), what)
        })?;
        let Json::Object(mut object) = json else {
            return Err(Wrong::new(0, "expected an object: {\"node\":\"^name(1)\",\"value\":...}"));
        };
        let (node, value) = (object.remove("node"), object.remove("value"));
        let place = |name: &str| find(line, name);
        let Some(Json::String(node)) = node else {
            return Err(Wrong::new(place("\"node\""), "expected \"node\" and a string, \"^name(1)\""));
        };
        let value = value.ok_or_else(|| Wrong::new(line.len() - 1, "expected \"value\""))?;
        if let Some(other) = object.keys().next() {
            return Err(Wrong::new(place(&format!("\"{other}\"")), "expected only \"node\" and \"value\""));
        }
        let key = parse_key(&node).map_err(|error| Wrong::new(place("\"node\""), error))?;
        if key.space == Space::Local {
            return Err(Wrong::new(place("\"node\""), "expected a node of the database: ^ before the name"));
        }
        let value = from_json(value).map_err(|what| Wrong::new(place("\"value\""), what))?;
        let node = NodeRef::from_encoded(key.key.as_bytes(), false);
        batch.push(node, value).map_err(|error| Wrong::new(0, error))
    }
}

/// Where a name stands in a line, or its beginning.
fn find(line: &[u8], name: &str) -> usize {
    line.windows(name.len()).position(|window| window == name.as_bytes()).unwrap_or(0)
}

fn from_json(json: Json) -> Result<Value, String> {
    match json {
        Json::Null => Ok(Value::Null),
        Json::Bool(truth) => Ok(Value::Bool(truth)),
        Json::Number(number) => match (number.as_i64(), number.as_u64(), number.as_f64()) {
            (Some(int), _, _) => Ok(Value::Int(int)),
            (None, Some(_), _) => {
                Err(format!("{number} is no 64-bit integer: write {{\"decimal\":\"{number}\"}}"))
            }
            (None, None, Some(double)) => Ok(Value::Double(double)),
            _ => Err(format!("{number} is no double")),
        },
        Json::String(text) => Ok(Value::String(text.into_bytes())),
        Json::Array(list) if list.is_empty() => Ok(Value::EmptyList),
        Json::Object(map) if map.is_empty() => Ok(Value::EmptyMap),
        Json::Object(map) if map.len() == 1 => {
            let (name, text) = map.into_iter().next().unwrap_or_default();
            match (&name[..], text) {
                ("decimal", Json::String(text)) => match parse_literal(text.as_bytes()) {
                    Ok(number) => Ok(Value::from(number)),
                    Err(_) => Err(format!("{text} is no number of at most 18 digits below 1E47")),
                },
                ("double", Json::String(text)) => match parse_value(text.as_bytes()) {
                    Ok(Value::Double(double)) => Ok(Value::Double(double)),
                    _ => Err("expected \"inf\", \"-inf\", \"nan\" or \"nan(bits)\"".into()),
                },
                ("hex", Json::String(text)) => from_hex(&text).map(Value::String),
                ("record", Json::String(text)) => match parse_value(text.as_bytes()) {
                    Ok(Value::Record(fields)) => Ok(Value::Record(fields)),
                    _ => Err("expected \"record(...)\"".into()),
                },
                _ => {
                    Err("expected {\"decimal\":...}, {\"double\":...}, {\"hex\":...} or {\"record\":...}"
                        .into())
                }
            }
        }
        _ => Err("expected one value: a list's elements and a map's entries are nodes of their own".into()),
    }
}

fn from_hex(text: &str) -> Result<Vec<u8>, String> {
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    let pairs = text.as_bytes().chunks(2).map(|pair| Some(digit(pair[0])? << 4 | digit(*pair.get(1)?)?));
    pairs.collect::<Option<Vec<u8>>>().ok_or_else(|| "expected pairs of hexadecimal digits".into())
}

/// Appends a line.
pub(crate) fn write(key: &[u8], value: &ValueRef<'_>, out: &mut Vec<u8>) -> Result<(), String> {
    let failed = |_| "its name is damaged".to_owned();
    let mut node = String::from("^");
    write_key(key, &mut node).map_err(failed)?;
    out.extend_from_slice(b"{\"node\":");
    write_string(&node, out);
    out.extend_from_slice(b",\"value\":");
    match value {
        ValueRef::String(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => write_string(text, out),
            Err(_) => {
                out.extend_from_slice(b"{\"hex\":\"");
                for byte in *bytes {
                    out.extend([byte >> 4, byte & 15].map(|digit| b"0123456789abcdef"[usize::from(digit)]));
                }
                out.extend_from_slice(b"\"}");
            }
        },
        ValueRef::Decimal(_) => out.extend_from_slice(format!("{{\"decimal\":\"{value}\"}}").as_bytes()),
        ValueRef::Double(double) if !double.is_finite() => {
            out.extend_from_slice(b"{\"double\":\"");
            write_value(value, &mut Utf8(out)).map_err(failed)?;
            out.extend_from_slice(b"\"}");
        }
        ValueRef::Record(_) => {
            let mut text = String::new();
            write_value(value, &mut text).map_err(failed)?;
            out.extend_from_slice(b"{\"record\":");
            write_string(&text, out);
            out.push(b'}');
        }
        // Rust's shortest digits, with a point or an exponent, are JSON, too.
        other => out.extend_from_slice(other.to_string().as_bytes()),
    }
    out.extend_from_slice(b"}\n");
    Ok(())
}

fn write_string(text: &str, out: &mut Vec<u8>) {
    // A vector cannot fail as a writer, nor a string as JSON.
    let _ = serde_json::to_writer(out, text);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_lines_are_located() {
        for (line, at, expected) in [
            ("[]", 0, "expected an object"),
            ("{\"node\":\"^a(1)\",", 15, "EOF"),
            ("{\"node\":1,\"value\":2}", 1, "expected \"node\""),
            ("{\"node\":\"a\",\"value\":2}", 1, "^ before the name"),
            ("{\"node\":\"^a(\",\"value\":2}", 1, "expected a number or a quoted string"),
            ("{\"node\":\"^a\"}", 12, "expected \"value\""),
            ("{\"node\":\"^a\",\"value\":[1]}", 13, "nodes of their own"),
            ("{\"node\":\"^a\",\"value\":{\"hex\":\"0\"}}", 13, "hexadecimal"),
            ("{\"node\":\"^a\",\"value\":18446744073709551615}", 13, "decimal"),
            ("{\"node\":\"^a\",\"value\":1,\"more\":2}", 23, "only"),
        ] {
            let wrong = Parser.line(line.as_bytes(), &mut Batch::new()).unwrap_err();
            assert!(wrong.at == at && wrong.what.contains(expected), "{line}: {wrong:?}");
        }
    }
}
