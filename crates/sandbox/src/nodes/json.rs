//! Values and subscripts as JSON, and numbers of JSON as values, for json.lua, which does trees of them.
//!
//! Invariant: a text is the one that `tojson` of bindings/lua writes, and a number is the one that `fromjson` reads.

use super::{child_beside, Failure, Result, Terms};
use crate::sandbox::{Value as Given, Values};
use perilune::key::parse_literal;
use perilune::{Node, Number, Session, Subscript, Value, ValueRef};

/// Texts of numbers that are longer become the nearest double.
const EXACT_TEXT: usize = 64;

/// Appends a value; text is written as it is, but for what JSON has escapes for.
fn write(value: ValueRef<'_>, out: &mut Vec<u8>) {
    match value {
        ValueRef::String(bytes) => write_string(bytes, out),
        ValueRef::Bool(truth) => out.extend_from_slice(if truth { b"true" } else { b"false" }),
        ValueRef::Null => out.extend_from_slice(b"null"),
        ValueRef::EmptyList => out.extend_from_slice(b"[]"),
        ValueRef::EmptyMap => out.extend_from_slice(b"{}"),
        ValueRef::Record(_) => write_string(value.to_string().as_bytes(), out),
        ValueRef::Double(double) => write_number(&double_text(double), out),
        ValueRef::Int(_) | ValueRef::Decimal(_) => {
            let mut text = Vec::new();
            value.write_text(&mut text);
            write_number(&text, out);
        }
    }
}

/// The fewest digits that are the double: in canonical form, or beyond the range of decimals with an exponent.
fn double_text(double: f64) -> Vec<u8> {
    let digits = |digits: usize| format!("{double:.*e}", digits - 1);
    let is_same = |text: &String| text.parse() == Ok(double);
    let text = (15..17).map(digits).find(is_same).unwrap_or_else(|| digits(17));
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let text = format!("{mantissa}E{:+03}", exponent.parse::<i32>().unwrap_or(0)).into_bytes();
    parse_literal(&text).map_or(text, |number| number.to_string().into_bytes())
}

/// NB: the canonical form has no zero before the point; JSON wants it.
fn write_number(text: &[u8], out: &mut Vec<u8>) {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    out.extend_from_slice(&text[..text.len() - digits.len()]);
    if digits.first() == Some(&b'.') {
        out.push(b'0');
    }
    out.extend_from_slice(digits);
}

fn write_string(bytes: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    for byte in bytes {
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', *byte]),
            0x08 => out.extend_from_slice(b"\\b"),
            0x0C => out.extend_from_slice(b"\\f"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0..=0x1F => out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
            _ => out.push(*byte),
        }
    }
    out.push(b'"');
}

/// A number of JSON: an integer or decimal if it is one exactly, else the nearest double; none if that is infinite.
pub fn read_number(text: &[u8]) -> Option<Value> {
    if text.len() < EXACT_TEXT {
        match parse_literal(text) {
            Ok(Number::Int(number)) => return Some(Value::Int(number)),
            Ok(Number::Decimal(number)) => return Some(Value::Decimal(number)),
            Err(_) => {}
        }
    }
    let nearest: f64 = std::str::from_utf8(text).ok()?.parse().ok()?;
    nearest.is_finite().then_some(Value::Double(nearest))
}

/// The node itself: what lies there, and its own value as JSON, if it has one that stands beside children.
pub fn own(session: &mut Session, node: &Node, terms: &Terms<'_>, values: &mut Values<'_>) -> Result<()> {
    let data = session.data(node)?.number();
    values.list(2);
    values.integer(data.into());
    value(session, node, data, terms, values)
}

/// The child behind one, or the first: its subscript by `tell`, that as a key of JSON, what lies there, its own value.
pub fn child<E: From<Failure> + From<perilune::Error>>(
    session: &mut Session,
    node: Node,
    from: &Given<'_>,
    terms: &Terms<'_>,
    values: &mut Values<'_>,
    tell: impl Fn(&Node, &mut Values<'_>) -> std::result::Result<(), E>,
) -> std::result::Result<(), E> {
    let Some(found) = child_beside(session, node, from, true, terms)? else {
        values.nothing();
        return Ok(());
    };
    let mut key = Vec::new();
    match found.last()? {
        Some(Subscript::Bytes(bytes)) => write_string(&bytes, &mut key),
        Some(Subscript::Number(number)) => write_string(number.to_string().as_bytes(), &mut key),
        None => {}
    }
    let data = session.data(&found)?.number();
    values.list(4);
    tell(&found, values)?;
    values.text(&key);
    values.integer(data.into());
    Ok(value(session, &found, data, terms, values)?)
}

fn value(
    session: &mut Session,
    node: &Node,
    data: u8,
    terms: &Terms<'_>,
    values: &mut Values<'_>,
) -> Result<()> {
    let is_beside = data >= 10;
    match session.get_ref(node)? {
        None => values.nothing(),
        Some(ValueRef::EmptyList | ValueRef::EmptyMap) if is_beside => values.nothing(),
        Some(value) => {
            if let ValueRef::String(bytes) = value {
                // Each byte may take six, and there are two copies of what they become.
                terms.check_room(bytes.len().saturating_mul(12))?;
            }
            let mut text = Vec::new();
            write(value, &mut text);
            values.text(&text);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(value: ValueRef<'_>) -> String {
        let mut out = Vec::new();
        write(value, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn values_are_written_as_the_module_for_lua_does() {
        for (double, expected) in [
            (0.5, "0.5"),
            (-0.25, "-0.25"),
            (1e20, "100000000000000000000"),
            (0.1 + 0.2, "0.30000000000000004"),
            (1e300, "1.00000000000000E+300"),
            (-1.5e-200, "-1.50000000000000E-200"),
        ] {
            assert_eq!(text(ValueRef::Double(double)), expected);
        }
        assert_eq!(text(ValueRef::Int(-7)), "-7");
        assert_eq!(text(ValueRef::String(b"a\"\\\n\x01/")), "\"a\\\"\\\\\\n\\u0001/\"");
        for (text, expected) in [
            ("-12", Value::Int(-12)),
            ("2.5e1", Value::Int(25)),
            ("1e300", Value::Double(1e300)),
            ("123456789012345678901234567890", Value::Double(1.234_567_890_123_456_8e29)),
        ] {
            assert_eq!(read_number(text.as_bytes()), Some(expected));
        }
        assert!(matches!(read_number(b"0.5"), Some(Value::Decimal(_))));
        assert_eq!(read_number(b"1e999"), None);
    }
}
