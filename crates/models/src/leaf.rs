//! Values of JSON as values of nodes, and back.
//!
//! Typed values keep their kinds. Others lie as JSdb stores them: texts, null as an empty one; and they are read as JSdb reads
//! them, so that the text `12` becomes a number.

use perilune::{Node, SubscriptBuf, Value, ValueRef};
use serde_json::{Map, Number};

use crate::{Error, Json, Result};

/// JavaScript's largest safe integer.
const SAFE: f64 = 9_007_199_254_740_991.0;

/// How the values of a document lie. Nothing stored says it: who reads must know how it was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// The subscript of an array's first element: 0 in JSdb's layout, 1 in `settree`, `tojson`, SQL and Lua.
    pub first: i64,
    /// Whether values keep their kinds, and `[]` and `{}` are stored.
    pub typed: bool,
}

impl Default for Shape {
    fn default() -> Shape {
        Shape { first: 0, typed: true }
    }
}

/// The value of a node that a scalar, or an empty array or object, becomes; `None`: nothing is stored.
pub(crate) fn stored(json: &Json, shape: Shape) -> Option<Value> {
    let text = |text: &str| Value::String(text.as_bytes().to_vec());
    Some(match json {
        Json::String(string) => text(string),
        Json::Array(_) | Json::Object(_) if !shape.typed => return None,
        Json::Array(_) => Value::EmptyList,
        Json::Object(_) => Value::EmptyMap,
        Json::Null if shape.typed => Value::Null,
        Json::Bool(truth) if shape.typed => Value::Bool(*truth),
        Json::Number(number) if shape.typed => number_value(number),
        Json::Null => text(""),
        Json::Bool(truth) => text(if *truth { "true" } else { "false" }),
        Json::Number(number) => text(&number.to_string()),
    })
}

fn number_value(number: &Number) -> Value {
    match number.as_i64() {
        Some(integer) => Value::Int(integer),
        None => Value::Double(number.as_f64().unwrap_or(f64::NAN)),
    }
}

/// What a node's value is in JSON.
pub(crate) fn shown(node: &Node, value: &Value, shape: Shape) -> Result<Json> {
    let cannot = || Error::NotJson(node.to_string());
    let real = |number: f64| Number::from_f64(number).map(Json::Number).ok_or_else(cannot);
    match value {
        Value::Int(integer) => Ok(Json::from(*integer)),
        Value::Double(number) => real(*number),
        Value::Decimal(decimal) => real(f64::from(*decimal)),
        Value::Bool(truth) => Ok(Json::Bool(*truth)),
        Value::Null if shape.typed => Ok(Json::Null),
        Value::EmptyList if shape.typed => Ok(Json::Array(Vec::new())),
        Value::EmptyMap if shape.typed => Ok(Json::Object(Map::new())),
        Value::String(_) | Value::Record(_) | Value::Null | Value::EmptyList | Value::EmptyMap => {
            let text = String::from_utf8(text(value.as_ref())).map_err(|_| cannot())?;
            Ok(if shape.typed { Json::String(text) } else { converted(text) })
        }
    }
}

/// A text as JSdb reads it: a truth value, or a number if it is a safe integer.
fn converted(text: String) -> Json {
    match text.as_str() {
        "true" => return Json::Bool(true),
        "false" => return Json::Bool(false),
        _ => {}
    }
    let bare = text.trim();
    let is_number = bare.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c))
        && bare.ends_with(|c: char| c.is_ascii_digit() || c == '.');
    match bare.parse::<f64>() {
        Ok(number) if is_number && number.fract() == 0.0 && number.abs() <= SAFE => Json::from(number as i64),
        _ => Json::String(text),
    }
}

/// A value's text as JSdb sees it; of null, and of what is empty, none.
pub(crate) fn text(value: ValueRef<'_>) -> Vec<u8> {
    let mut text = Vec::new();
    match value {
        ValueRef::Bool(truth) => text.extend_from_slice(if truth { b"true" } else { b"false" }),
        other => other.write_text(&mut text),
    }
    text
}

/// The whole number that a value is, or that its text says: JSdb stores texts.
pub(crate) fn integer(value: ValueRef<'_>) -> Option<i64> {
    match value {
        ValueRef::Int(integer) => Some(integer),
        other => std::str::from_utf8(&text(other)).ok()?.parse().ok(),
    }
}

/// A subscript as the name of a property.
pub(crate) fn name(node: &Node, subscript: &SubscriptBuf) -> Result<String> {
    String::from_utf8(subscript.to_text().into_owned()).map_err(|_| Error::NotJson(node.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_read_as_jsdb_reads_them() {
        let cases = [
            ("true", Json::Bool(true)),
            ("false", Json::Bool(false)),
            ("12", Json::from(12)),
            ("007", Json::from(7)),
            ("-3", Json::from(-3)),
            ("9007199254740991", Json::from(9_007_199_254_740_991_i64)),
            ("9007199254740992", Json::from("9007199254740992")),
            ("1.5", Json::from("1.5")),
            ("", Json::from("")),
            ("-", Json::from("-")),
            ("inf", Json::from("inf")),
            ("True", Json::from("True")),
        ];
        for (text, want) in cases {
            assert_eq!(converted(text.to_owned()), want, "{text:?}");
        }
    }
}
