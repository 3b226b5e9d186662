//! SQL as tokens, by SQLite's lexical rules.
//!
//! Statements are looked at as tokens only: which tables they name, what kind they are, which pieces are ours to run. Whatever is
//! not ours goes on to SQLite as the user wrote it.
//!
//! ```text
//! SELECT "a""b" FROM t -- why
//! Word   Name   Word Word
//! ```
//!
//! Invariants
//! - Tokens lie in the text in order, and do not overlap; blanks and comments lie between them.
//! - A token's text is never empty.

use crate::error::{Error, Result, SqlState};

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A keyword or a plain name.
    Word,
    /// A name in `"`, `` ` `` or `[]`.
    Name,
    /// A text in `'`.
    Text,
    /// A blob, `x'..'`.
    Blob,
    /// A number.
    Number,
    /// `?`, `?1`, `:a`, `@a`, `$a`.
    Parameter,
    /// Anything else, as `(` or `<=`.
    Sign,
}

/// A token of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token<'a> {
    pub(crate) kind: Kind,
    pub(crate) text: &'a str,
    /// Where it begins, in bytes.
    pub(crate) at: usize,
}

impl Token<'_> {
    /// Whether it is this keyword, in any case.
    pub(crate) fn is(&self, word: &str) -> bool {
        self.kind == Kind::Word && self.text.eq_ignore_ascii_case(word)
    }

    /// Whether it is this sign.
    pub(crate) fn is_sign(&self, sign: &str) -> bool {
        self.kind == Kind::Sign && self.text == sign
    }

    /// Where it ends.
    pub(crate) fn end(&self) -> usize {
        self.at + self.text.len()
    }

    /// The name that it is, without quotes; a text in quotes is one, too, where a name must stand.
    pub(crate) fn name(&self) -> Option<String> {
        let inside = || &self.text[1..self.text.len() - 1];
        match (self.kind, self.text.as_bytes()[0]) {
            (Kind::Word, _) => Some(self.text.to_owned()),
            (Kind::Name, b'[') => Some(inside().to_owned()),
            (Kind::Name, b'`') => Some(inside().replace("``", "`")),
            (Kind::Name, _) => Some(inside().replace("\"\"", "\"")),
            (Kind::Text, _) => Some(inside().replace("''", "'")),
            _ => None,
        }
    }
}

/// Folds a name, as all names of SQL are compared.
pub(crate) fn fold(name: &str) -> String {
    name.to_ascii_lowercase()
}

/// A name in quotes, as SQL takes any.
pub(crate) fn quote(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Whether a word goes on with a statement where the alias of a table could stand.
pub(crate) fn is_keyword(token: &Token<'_>) -> bool {
    let words = [
        "where",
        "set",
        "on",
        "join",
        "left",
        "right",
        "inner",
        "cross",
        "natural",
        "full",
        "order",
        "group",
        "limit",
        "values",
        "select",
        "returning",
        "union",
        "except",
        "intersect",
        "using",
        "default",
        "indexed",
        "not",
        "having",
        "window",
        "from",
        "outer",
        "with",
    ];
    words.iter().any(|word| token.is(word))
}

/// Values one after the other, each a number with a sign or without, a text, a blob, a parameter, NULL, TRUE or FALSE; or the
/// place of what is none.
pub(crate) fn values(tokens: &[&Token<'_>]) -> std::result::Result<Vec<String>, usize> {
    let (mut list, mut sign) = (Vec::new(), "");
    for token in tokens {
        let is_value = matches!(token.kind, Kind::Number | Kind::Text | Kind::Blob | Kind::Parameter);
        let is_known = ["null", "true", "false"].iter().any(|word| token.is(word));
        if sign.is_empty() && (token.is_sign("-") || token.is_sign("+")) {
            sign = token.text;
        } else if token.kind == Kind::Number || sign.is_empty() && (is_value || is_known) {
            list.push(format!("{sign}{}", token.text));
            sign = "";
        } else {
            return Err(token.at);
        }
    }
    match tokens.last() {
        Some(last) if !sign.is_empty() => Err(last.at),
        _ => Ok(list),
    }
}

/// The tokens inside parentheses that stand around all of them.
pub(crate) fn without_parentheses<'t, 'a>(mut tokens: &'t [Token<'a>]) -> &'t [Token<'a>] {
    while let [open, inside @ .., close] = tokens {
        let mut depth = 0_i32;
        let is_around = open.is_sign("(") && close.is_sign(")");
        let closes = inside.iter().any(|token| {
            depth += i32::from(token.is_sign("(")) - i32::from(token.is_sign(")"));
            depth < 0
        });
        if !is_around || closes || inside.is_empty() {
            break;
        }
        tokens = inside;
    }
    tokens
}

/// Tokens as they are compared: names in lower case without quotes, and without a table's name before a column's, if that is one
/// of `qualifiers`.
pub(crate) fn normal(tokens: &[Token<'_>], qualifiers: &[&str]) -> Vec<String> {
    let (mut out, mut at) = (Vec::with_capacity(tokens.len()), 0);
    while let Some(token) = tokens.get(at) {
        let is_name = matches!(token.kind, Kind::Word | Kind::Name);
        let name = token.name().filter(|_| is_name).map(|name| fold(&name));
        let is_first = at == 0 || !tokens[at - 1].is_sign(".");
        let is_before_point = tokens.get(at + 1).is_some_and(|next| next.is_sign("."));
        match name {
            Some(name) if is_first && is_before_point && qualifiers.contains(&&name[..]) => at += 1,
            Some(name) => out.push(name),
            None if token.is_sign("==") => out.push("=".into()),
            None if token.is_sign("!=") => out.push("<>".into()),
            None => out.push(token.text.to_owned()),
        }
        at += 1;
    }
    out
}

/// The tokens of a text.
///
/// # Errors
/// `SYNTAX`, where a quote or a comment does not end, or a character begins nothing.
pub(crate) fn tokens(text: &str) -> Result<Vec<Token<'_>>> {
    let bytes = text.as_bytes();
    let (mut tokens, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        if let Some(end) = blank(bytes, at) {
            at = end;
            continue;
        }
        let (kind, end) = token(bytes, at)?;
        if !text.is_char_boundary(end) {
            return Err(Error::new(SqlState::SYNTAX, "a character that begins nothing").at(at));
        }
        tokens.push(Token { kind, text: &text[at..end], at });
        at = end;
    }
    Ok(tokens)
}

/// Where the blank or comment at `at` ends.
fn blank(bytes: &[u8], at: usize) -> Option<usize> {
    let rest = &bytes[at..];
    if rest[0].is_ascii_whitespace() {
        return Some(at + 1);
    }
    if rest.starts_with(b"--") {
        return Some(rest.iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |end| at + end + 1));
    }
    if rest.starts_with(b"/*") {
        // As in SQLite, one that does not end goes to the end of the text.
        let end = rest[2..].windows(2).position(|two| two == b"*/");
        return Some(end.map_or(bytes.len(), |end| at + 2 + end + 2));
    }
    None
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || byte >= 0x80
}

fn token(bytes: &[u8], at: usize) -> Result<(Kind, usize)> {
    let next = bytes.get(at + 1).copied().unwrap_or(0);
    let run = |from: usize, is: fn(u8) -> bool| {
        bytes[from..].iter().position(|byte| !is(*byte)).map_or(bytes.len(), |length| from + length)
    };
    Ok(match bytes[at] {
        b'\'' => (Kind::Text, quoted(bytes, at, b'\'')?),
        b'x' | b'X' if next == b'\'' => (Kind::Blob, quoted(bytes, at + 1, b'\'')?),
        quote @ (b'"' | b'`') => (Kind::Name, quoted(bytes, at, quote)?),
        b'[' => match bytes[at..].iter().position(|byte| *byte == b']') {
            Some(length) => (Kind::Name, at + length + 1),
            None => return Err(Error::new(SqlState::SYNTAX, "a name in [ without its ]").at(at)),
        },
        b'0'..=b'9' => (Kind::Number, number(bytes, at)),
        b'.' if next.is_ascii_digit() => (Kind::Number, number(bytes, at)),
        b'?' => (Kind::Parameter, run(at + 1, |byte| byte.is_ascii_digit())),
        b':' | b'@' | b'$' | b'#' if is_word(next) => (Kind::Parameter, run(at + 1, is_word)),
        byte if is_word(byte) => (Kind::Word, run(at, is_word)),
        _ => {
            let rest = &bytes[at..];
            let long: [&[u8]; 9] = [b"->>", b"->", b"||", b"<=", b">=", b"<>", b"<<", b">>", b"=="];
            let length = long.iter().find(|sign| rest.starts_with(sign)).map_or(1, |sign| sign.len());
            let length = if rest.starts_with(b"!=") { 2 } else { length };
            (Kind::Sign, at + length)
        }
    })
}

/// Where the text in quotes at `at` ends; a quote in it stands twice.
fn quoted(bytes: &[u8], at: usize, quote: u8) -> Result<usize> {
    let mut end = at + 1;
    while end < bytes.len() {
        if bytes[end] != quote {
            end += 1;
        } else if bytes.get(end + 1) == Some(&quote) {
            end += 2;
        } else {
            return Ok(end + 1);
        }
    }
    let what = format!("the text that begins here has no {} at its end", char::from(quote));
    Err(Error::new(SqlState::SYNTAX, what).at(at))
}

fn number(bytes: &[u8], at: usize) -> usize {
    let mut end = at;
    while end < bytes.len() {
        let is_sign = matches!(bytes[end], b'+' | b'-');
        let is_hex = bytes[at..].starts_with(b"0x") || bytes[at..].starts_with(b"0X");
        let behind_exponent = !is_hex && matches!(bytes[end - usize::from(end > at)], b'e' | b'E');
        if !(is_word(bytes[end]) || bytes[end] == b'.' || is_sign && behind_exponent && end > at) {
            break;
        }
        end += 1;
    }
    end
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<(Kind, &str)> {
        tokens(text).expect("tokens").into_iter().map(|token| (token.kind, token.text)).collect()
    }

    #[test]
    fn texts_are_cut_as_sqlite_does() {
        let text = "SELECT x'00', \"a\"\"b\",[c d] /* no */ FROM t WHERE i>=1.5e-3 AND s='it''s' -- end";
        assert_eq!(
            kinds(text).iter().map(|token| token.1).collect::<Vec<_>>(),
            [
                "SELECT",
                "x'00'",
                ",",
                "\"a\"\"b\"",
                ",",
                "[c d]",
                "FROM",
                "t",
                "WHERE",
                "i",
                ">=",
                "1.5e-3",
                "AND",
                "s",
                "=",
                "'it''s'"
            ]
        );
        assert_eq!(kinds("?1 :a"), [(Kind::Parameter, "?1"), (Kind::Parameter, ":a")]);
        assert_eq!(kinds("a->>'b'")[1], (Kind::Sign, "->>"));
        assert_eq!(kinds("é1"), [(Kind::Word, "é1")]);
        assert_eq!(tokens("\"a\"\"b\"").expect("one")[0].name(), Some("a\"b".into()));
        assert_eq!(tokens("select 'x").expect_err("no end").position(), Some(7));
    }
}
