//! Attributes of a tag, and references in them and in text: XML's five entities and characters by number; nothing else is expanded.

use crate::characters::{is_char, is_name, is_space};
use crate::{DomError, Result};

/// An error about the text at `position`.
pub(crate) fn syntax<T>(position: usize, what: impl Into<String>) -> Result<T> {
    Err(DomError::Syntax { position, what: what.into() })
}

/// What a reference stands for, without `&` and `;`.
pub(crate) fn resolve(position: usize, name: &str) -> Result<char> {
    let code = match name {
        "amp" => return Ok('&'),
        "lt" => return Ok('<'),
        "gt" => return Ok('>'),
        "quot" => return Ok('"'),
        "apos" => return Ok('\''),
        _ => name.strip_prefix('#'),
    };
    let Some(code) = code else {
        return match is_name(name) {
            true => Err(DomError::Entity { position, name: name.to_owned() }),
            false => syntax(position, "& begins a reference; write &amp; for itself"),
        };
    };
    let (digits, radix) = code.strip_prefix('x').map_or((code, 10), |digits| (digits, 16));
    let number = match digits.chars().all(|c| c.is_digit(radix)) {
        true => u32::from_str_radix(digits, radix).ok(),
        false => None,
    };
    match number.and_then(char::from_u32).filter(|&c| is_char(c)) {
        Some(c) => Ok(c),
        None => syntax(position, format!("&{name}; is no character of XML")),
    }
}

/// Line ends as XML has them: one line feed each.
pub(crate) fn line_ends(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\r', "\n")
}

/// An attribute's value with references replaced and white space as spaces.
pub(crate) fn attribute_value(position: usize, raw: &str) -> Result<String> {
    let raw = line_ends(raw);
    let mut value = String::with_capacity(raw.len());
    let mut rest = raw.as_str();
    while let Some(at) = rest.find(['&', '<', '\n', '\t']) {
        value.push_str(&rest[..at]);
        let special = rest.as_bytes()[at];
        rest = &rest[at + 1..];
        match special {
            b'<' => return syntax(position, "an attribute contains no <; write &lt;"),
            b'&' => match rest.split_once(';') {
                Some((name, behind)) => {
                    value.push(resolve(position, name)?);
                    rest = behind;
                }
                None => return syntax(position, "& begins a reference; write &amp; for itself"),
            },
            _ => value.push(' '),
        }
    }
    value.push_str(rest);
    Ok(value)
}

/// Takes the next attribute from what is left of a tag: its name, and its value as it is written.
///
/// The parser beside it is content with attributes that no white space parts; XML is not.
pub(crate) fn next_attribute<'a>(position: usize, rest: &mut &'a str) -> Result<Option<(&'a str, &'a str)>> {
    let trimmed = rest.trim_start_matches(is_space);
    if trimmed.is_empty() {
        return Ok(None);
    }
    if trimmed.len() == rest.len() {
        return syntax(position, "white space stands before each attribute");
    }
    let Some((name, behind)) = trimmed.split_once('=') else {
        return syntax(position, "an attribute is name=\"value\"");
    };
    let behind = behind.trim_start_matches(is_space);
    let quote = behind.chars().next().filter(|c| matches!(c, '"' | '\''));
    let Some((value, behind)) = quote.and_then(|quote| behind[1..].split_once(quote)) else {
        return syntax(position, "an attribute's value is quoted");
    };
    *rest = behind;
    Ok(Some((name.trim_end_matches(is_space), value)))
}
