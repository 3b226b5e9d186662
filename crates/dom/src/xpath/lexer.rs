//! The words of an expression. Whether `*` and `and` are operators is the parser's to tell: after an operand they are.

use crate::characters::{is_name_char, is_name_start, is_space};
use crate::{DomError, Result};

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    /// `a`, `p:a` or `p:*`.
    Name(String),
    Number(f64),
    Text(String),
    /// A sign of one or two characters.
    Sign(&'static str),
}

const SIGNS: [&str; 23] = [
    "//", "::", "..", "!=", "<=", ">=", "(", ")", "[", "]", ".", "@", ",", "/", "|", "+", "-", "=", "<", ">",
    "*", "$", ":",
];

/// All words with their byte offsets.
pub(super) fn tokens(text: &str) -> Result<Vec<(usize, Token)>> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        let rest = &text[at..];
        let digit_behind = rest[c.len_utf8()..].starts_with(|c: char| c.is_ascii_digit());
        let length = if is_space(c) {
            c.len_utf8()
        } else if c.is_ascii_digit() || (c == '.' && digit_behind) {
            let whole = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
            let mut length = whole;
            if rest[whole..].starts_with('.') {
                let behind = &rest[whole + 1..];
                length += 1 + behind.find(|c: char| !c.is_ascii_digit()).unwrap_or(behind.len());
            }
            tokens.push((at, Token::Number(rest[..length].parse().unwrap_or(f64::NAN))));
            length
        } else if c == '"' || c == '\'' {
            let Some((inner, _)) = rest[1..].split_once(c) else {
                return Err(DomError::Expression { position: at, what: format!("no {c} ends this text") });
            };
            tokens.push((at, Token::Text(inner.to_owned())));
            inner.len() + 2
        } else if is_name_start(c) && c != ':' {
            let length = name(rest);
            tokens.push((at, Token::Name(rest[..length].to_owned())));
            length
        } else if let Some(sign) = SIGNS.iter().find(|sign| rest.starts_with(**sign)) {
            tokens.push((at, Token::Sign(sign)));
            sign.len()
        } else {
            return Err(DomError::Expression { position: at, what: format!("{c:?} means nothing here") });
        };
        at += length;
    }
    Ok(tokens)
}

/// Bytes of the name that `text` begins with, its prefix included.
fn name(text: &str) -> usize {
    let simple = |text: &str| text.find(|c| !is_name_char(c) || c == ':').unwrap_or(text.len());
    let length = simple(text);
    match text[length..].strip_prefix(':') {
        Some(behind) if behind.starts_with('*') => length + 2,
        Some(behind) if behind.starts_with(|c| is_name_start(c) && c != ':') => length + 1 + simple(behind),
        _ => length,
    }
}
